/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.c - see sandbox.h. */
#include "sandbox.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sanitizers report on standard error.  A release must not write there: the
 * text would come from hostile files. */
#ifdef __SANITIZE_ADDRESS__
enum { KEEPS_STDERR = 1 };
#else
enum { KEEPS_STDERR = 0 };
#endif

/* Calls on memory and on open files; mmap and mprotect come with a condition.
 */
/* clang-format off */
static const int allowed[] = {
	SYS_read, SYS_pread64, SYS_lseek, SYS_close, SYS_fstat,
	SYS_recvmsg, SYS_sendmsg,
	SYS_brk, SYS_munmap, SYS_mremap, SYS_madvise,
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,
	SYS_futex, SYS_restart_syscall, SYS_clock_gettime, SYS_gettimeofday,
	SYS_getrandom, SYS_sysinfo, SYS_getpid, SYS_gettid,
	SYS_exit, SYS_exit_group,
};
/* clang-format on */

/* Calls that no library makes: they end an intruder.  All others fail with
 * EPERM, as libraries try things that they can do without. */
/* clang-format off */
static const int deadly[] = {
	SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv,
	SYS_process_vm_writev, SYS_clone, SYS_clone3, SYS_socket, SYS_connect,
	SYS_kill, SYS_bpf, SYS_io_uring_setup, SYS_mount, SYS_unshare,
	SYS_setns, SYS_pidfd_getfd,
#ifdef SYS_fork
	SYS_fork, SYS_vfork,
#endif
};
/* clang-format on */

static int add_rules(scmp_filter_ctx filter, const int *calls, size_t n,
		     uint32_t action)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++)
		rc = seccomp_rule_add(filter, action, calls[i], 0);
	return rc;
}

static int make_filter(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp no_code = SCMP_A2(SCMP_CMP_MASKED_EQ,
						    PROT_EXEC, 0);
	const struct scmp_arg_cmp own_pid = SCMP_A0(
		SCMP_CMP_MASKED_EQ, UINT32_MAX, (scmp_datum_t)getpid());
	const struct scmp_arg_cmp to_stderr = SCMP_A0(
		SCMP_CMP_MASKED_EQ, UINT32_MAX, STDERR_FILENO);
	int rc = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH,
				  SCMP_ACT_KILL_PROCESS);

	if (!rc)
		rc = add_rules(filter, allowed,
			       sizeof(allowed) / sizeof(*allowed),
			       SCMP_ACT_ALLOW);
	if (!rc)
		rc = add_rules(filter, deadly, sizeof(deadly) / sizeof(*deadly),
			       SCMP_ACT_KILL_PROCESS);
	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SYS_mmap, 1,
				      no_code);
	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SYS_mprotect, 1,
				      no_code);
	/* abort(3) */
	if (!rc)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SYS_tgkill, 1,
				      own_pid);
	if (!rc && KEEPS_STDERR)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SYS_write, 1,
				      to_stderr);
	return rc;
}

static int set_filter(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int rc = filter ? make_filter(filter) : -ENOMEM;

	/* Sets no_new_privs, too. */
	if (!rc)
		rc = seccomp_load(filter);
	seccomp_release(filter);
	return rc;
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void close_from_to(unsigned int first, unsigned int last)
{
	struct rlimit limit;

	if (KEEPS_STDERR && first <= STDERR_FILENO && last >= STDERR_FILENO) {
		for (; first < STDERR_FILENO; first++)
			close((int)first);
		first = STDERR_FILENO + 1;
	}
	if (first > last || !syscall(SYS_close_range, first, last, 0))
		return;
	/* Linux before 5.9. */
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > 1 << 20)
		limit.rlim_cur = 1 << 20;
	for (unsigned int fd = first; fd <= last && fd < limit.rlim_cur; fd++)
		close((int)fd);
}

static void close_others(const struct wp_sandbox *sandbox)
{
	unsigned int next = 0;

	qsort(sandbox->keep, sandbox->nkeep, sizeof(*sandbox->keep), by_value);
	for (size_t i = 0; i < sandbox->nkeep; i++) {
		unsigned int fd = (unsigned int)sandbox->keep[i];

		if (fd > next)
			close_from_to(next, fd - 1);
		next = fd + 1;
	}
	close_from_to(next, UINT_MAX);
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	/* Fails without CAP_SETPCAP: then there is nothing to drop. */
	for (int cap = 0; !prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); cap++)
		;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

static int lower_limit(int which, uint64_t soft, uint64_t hard)
{
	struct rlimit limit;

	if (getrlimit(which, &limit))
		return -errno;
	if (soft < limit.rlim_cur)
		limit.rlim_cur = soft;
	if (hard < limit.rlim_max)
		limit.rlim_max = hard;
	return setrlimit(which, &limit) ? -errno : 0;
}

static int lower_limits(const struct wp_sandbox *sandbox)
{
	/* No hard limit: the parent raises the soft one with each debug file.
	 */
	int rc = lower_limit(RLIMIT_AS, sandbox->memory, RLIM_INFINITY);

	/* The soft limit sends SIGXCPU, which tells why, the hard one SIGKILL.
	 */
	if (!rc)
		rc = lower_limit(RLIMIT_CPU, sandbox->cpu_s,
				 sandbox->cpu_s + 2);
	if (!rc)
		rc = lower_limit(RLIMIT_CORE, 0, 0);
	if (!rc)
		rc = lower_limit(RLIMIT_NPROC, 0, 0);
	return rc;
}

/* Block all but the signals of faults: the parent answers the terminal's. */
static void block_signals(void)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGILL,  SIGFPE,
				   SIGABRT, SIGSYS, SIGTRAP, SIGXCPU };
	sigset_t set;

	sigfillset(&set);
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		sigdelset(&set, own[i]);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

static int die_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return -errno;
	/* The parent may have ended before the call. */
	return getppid() == parent ? 0 : -ESRCH;
}

int wp_sandbox_enter(const struct wp_sandbox *sandbox)
{
	int rc;

	block_signals();
	close_others(sandbox);
	rc = lower_limits(sandbox);
	if (!rc)
		rc = drop_capabilities();
	/* No process of the same user may attach; no core goes to a handler. */
	if (!rc && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		rc = -errno;
	if (!rc)
		rc = die_with(sandbox->parent);
	return rc ? rc : set_filter();
}
