/* SPDX-License-Identifier: Apache-2.0 */
/* privileges.c - see privileges.h. */
#include "privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wallprof/access.h"

static int drop_ptrace(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
	const uint32_t bit = CAP_TO_MASK(CAP_SYS_PTRACE);

	if (syscall(SYS_capget, &header, caps))
		return -errno;
	caps[CAP_TO_INDEX(CAP_SYS_PTRACE)].permitted &= ~bit;
	caps[CAP_TO_INDEX(CAP_SYS_PTRACE)].effective &= ~bit;
	return syscall(SYS_capset, &header, caps) ? -errno : 0;
}

int wp_privileges_drop(struct wp_err *err)
{
	int scope, rc;

	/* capabilities(7), "Capabilities and execution of programs by root";
	 * getauxval(3). */
	if (!getauxval(AT_SECURE))
		return 0;
	if (getuid() != geteuid() || getgid() != getegid())
		return wp_err_set(err, -EPERM,
				  "will not run set-user-ID or "
				  "set-group-ID: it would show anybody's "
				  "processes to everybody; see PERMISSIONS in "
				  "wallprof(1)");
	/* Yama's scopes 1 and 2 are why users need it for their own. */
	scope = wp_access_yama_scope();
	rc = scope == 1 || scope == 2 ? 0 : drop_ptrace();
	return rc ? wp_err_set(err, rc, "cannot drop CAP_SYS_PTRACE: %s",
			       strerror(-rc)) :
		    0;
}
