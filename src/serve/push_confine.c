/* SPDX-License-Identifier: Apache-2.0 */
/* push_confine.c - see push_confine.h.
 *
 * A library that resolves names, starts threads and speaks TLS needs more calls than
 * the sandbox of wallprof/sandbox.h has; so it is rights that are given up here. */
#include "push_confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOBODY = 65534 };
#define MEMORY_MAX (UINT64_C(1) << 30)

#define LANDLOCK_READS                                                         \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* All of version 1 of the interface. */
#define LANDLOCK_ALL ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)

static void allow_reads(int ruleset, const char *path)
{
	struct landlock_path_beneath_attr rule = {
		.allowed_access = LANDLOCK_READS,
		.parent_fd = open(path, O_PATH | O_CLOEXEC),
	};

	if (rule.parent_fd < 0)
		return;
	syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH,
		&rule, 0);
	close(rule.parent_fd);
}

/* Whoever is in a domain of Landlock can trace nobody outside. */
static void enter_landlock(void)
{
	/* Of the resolver and of certificates. */
	static const char *const read[] = { "/etc",
					    "/usr",
					    "/lib",
					    "/lib64",
					    "/run/systemd/resolve",
					    "/var/lib/ca-certificates" };
	const struct landlock_ruleset_attr all = {
		.handled_access_fs = LANDLOCK_ALL,
	};
	int ruleset = (int)syscall(SYS_landlock_create_ruleset, &all,
				   sizeof(all), 0);

	if (ruleset < 0)
		return;
	for (size_t i = 0; i < sizeof(read) / sizeof(*read); i++)
		allow_reads(ruleset, read[i]);
	syscall(SYS_landlock_restrict_self, ruleset, 0);
	close(ruleset);
}

/* Without the right to change it the user id stays; capabilities do not. */
static int drop_rights(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	const struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };

	if (!geteuid() && !setgroups(0, NULL) &&
	    !setresgid(NOBODY, NOBODY, NOBODY) &&
	    setresuid(NOBODY, NOBODY, NOBODY))
		return -errno;
	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

int wp_push_confine(pid_t parent)
{
	const struct rlimit no_core = { 0, 0 };
	int rc;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	enter_landlock();
	rc = drop_rights();
	if (rc)
		return rc;
	setrlimit(RLIMIT_CORE, &no_core);
#ifndef __SANITIZE_ADDRESS__
	setrlimit(RLIMIT_AS, &(struct rlimit){ MEMORY_MAX, MEMORY_MAX });
#endif
	/* A change of ids has cleared it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}
