/* SPDX-License-Identifier: Apache-2.0 */
/* access.c - see wallprof/access.h. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "wallprof/access.h"
#include "wallprof/io.h"
#include "wallprof/procfs.h"

/* include/uapi/linux/capability.h */
enum { CAP_SYS_PTRACE_BIT = 19 };

/* Tracers of tracers that are looked at. */
enum { TRACERS_MAX = 8 };

int wp_access_yama_scope(void)
{
	char text[16];
	ssize_t n = wp_io_read_at(AT_FDCWD,
				  "/proc/sys/kernel/yama/ptrace_scope", text,
				  sizeof(text));

	return n > 0 && text[0] >= '0' && text[0] <= '3' ? text[0] - '0' : 0;
}

static int explain_owner(pid_t pid, uid_t owner, struct wp_err *err)
{
	const struct passwd *pw = getpwuid(owner);

	return wp_err_set(
		err, -EPERM,
		"process %d belongs to %s (uid %u) and you are uid "
		"%u; run wallprof as that user or as root (sudo)%s",
		pid, pw ? pw->pw_name : "another user", owner, geteuid(),
		getauxval(AT_SECURE) ?
			": what "
			"capabilities its file has makes no difference" :
			", or give it CAP_SYS_PTRACE");
}

pid_t wp_access_tracer(pid_t pid)
{
	uint64_t tracer;

	return wp_proc_status_read(&tracer, pid, "TracerPid", 10) ?
		       0 :
		       (pid_t)tracer;
}

/* The thread that traces a process may not be its first one. */
static bool is_traced_by(pid_t tracee, pid_t pid)
{
	uint64_t tgid;
	pid_t tracer = tracee;

	/* A tracer may have one itself. */
	for (int i = 0; i < TRACERS_MAX; i++) {
		tracer = wp_access_tracer(tracer);
		if (!tracer || wp_proc_status_read(&tgid, tracer, "Tgid", 10))
			return false;
		if ((pid_t)tgid == pid)
			return true;
		tracer = (pid_t)tgid;
	}
	return false;
}

bool wp_access_traces_us(pid_t pid)
{
	return is_traced_by(getpid(), pid) || is_traced_by(getppid(), pid);
}

bool wp_access_exists(pid_t pid)
{
	return pid > 0 && (!kill(pid, 0) || errno == EPERM);
}

bool wp_access_is_hidden(pid_t pid)
{
	uint64_t owner;

	return wp_proc_status_read(&owner, pid, "Uid", 10) &&
	       wp_access_exists(pid);
}

static int explain_hidden(pid_t pid, struct wp_err *err)
{
	return wp_err_set(
		err, -EPERM,
		"process %d is hidden from you: /proc is mounted with "
		"hidepid, and it is not yours, or does not let "
		"itself be looked at; run wallprof as root (sudo)",
		pid);
}

int wp_access_denied(pid_t pid, struct wp_err *err)
{
	int scope = wp_access_yama_scope();
	uint64_t caps = 0, owner = 0, mode = 0;
	pid_t tracer = wp_access_tracer(pid);
	bool capable = !wp_proc_status_read(&caps, 0, "CapEff", 16) &&
		       (caps >> CAP_SYS_PTRACE_BIT & 1);
	/* Files of /proc are their owner's: it does not help with those. */
	bool only_own = !capable || getauxval(AT_SECURE);

	if (tracer)
		return wp_err_set(err, -EPERM,
				  "process %d is traced by process %d (a "
				  "debugger or strace); end that first",
				  pid, tracer);
	if (scope == 3)
		return wp_err_set(err, -EPERM,
				  "kernel.yama.ptrace_scope is 3: nobody may "
				  "look into other processes until a reboot "
				  "with another value");
	if (!capable && !geteuid())
		return wp_err_set(err, -EPERM,
				  "this root has no CAP_SYS_PTRACE (a "
				  "container?): start it with --cap-add "
				  "SYS_PTRACE, or run wallprof outside of it");
	if (wp_access_is_hidden(pid))
		return explain_hidden(pid, err);
	if (only_own && !wp_proc_status_read(&owner, pid, "Uid", 10) &&
	    owner != geteuid())
		return explain_owner(pid, (uid_t)owner, err);
	if (!capable && scope)
		return wp_err_set(err, -EPERM,
				  "kernel.yama.ptrace_scope is %d: only %s may "
				  "look into process %d; run wallprof as root "
				  "(sudo), or set it to 0 with sysctl",
				  scope,
				  scope == 1 ? "its parents and root" : "root",
				  pid);
	if (!wp_proc_status_read(&mode, 0, "Seccomp", 10) && mode == 2)
		return wp_err_set(
			err, -EPERM,
			"a seccomp filter on wallprof forbids to look "
			"into process %d (a container's default "
			"profile?): run wallprof outside of it, or "
			"allow ptrace and process_vm_readv",
			pid);
	if (only_own)
		return wp_err_set(
			err, -EPERM,
			"process %d does not let itself be looked at "
			"(it is set-user-id, has capabilities, or set "
			"PR_SET_DUMPABLE to 0); run wallprof as root "
			"(sudo)",
			pid);
	return wp_err_set(err, -EPERM,
			  "not allowed to look at process %d: it is in a user "
			  "namespace or under a security module (AppArmor, "
			  "SELinux) that forbids it",
			  pid);
}
