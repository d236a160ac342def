/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.c - see wallprof/sandbox.h. */
#include "wallprof/sandbox.h"

#include <errno.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
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

#if defined(__x86_64__)
enum { OWN_ARCH = AUDIT_ARCH_X86_64 };
#elif defined(__aarch64__)
enum { OWN_ARCH = AUDIT_ARCH_AARCH64 };
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

enum { MORE_MAX = 32 };

/* A filter of seccomp(2).  libseccomp asks for memory some 700 times to make one,
 * and where one of these fails (2.5.4) searches its lists for ever, or crashes.
 */
struct filter {
	/* Two for each call, and some for those with a condition. */
	struct sock_filter
		v[2 * (sizeof(allowed) + sizeof(deadly)) / sizeof(*allowed) +
		  2 * MORE_MAX + 32];
	unsigned short n;
};

enum { FORBID = SECCOMP_RET_ERRNO | EPERM };

static void add(struct filter *f, unsigned int code, uint32_t k)
{
	f->v[f->n++] = (struct sock_filter){ .code = (uint16_t)code, .k = k };
}

static void load(struct filter *f, size_t offset)
{
	add(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

/* Compare what is loaded with K: skip YES instructions if TEST holds, else NO. */
static void branch(struct filter *f, unsigned int test, uint32_t k, uint8_t yes,
		   uint8_t no)
{
	add(f, BPF_JMP | test | BPF_K, k);
	f->v[f->n - 1].jt = yes;
	f->v[f->n - 1].jf = no;
}

/* With the call's number loaded: each of CALLS ends in ACTION. */
static void add_calls(struct filter *f, const int *calls, size_t n,
		      uint32_t action)
{
	for (size_t i = 0; i < n; i++) {
		branch(f, BPF_JEQ, (uint32_t)calls[i], 0, 1);
		add(f, BPF_RET, action);
	}
}

/* The same: CALL ends in YES if TEST holds for K and the low word of its argument
 * NR, else in NO. */
static void add_call_if(struct filter *f, int call, unsigned int nr,
			unsigned int test, uint32_t k, uint32_t yes,
			uint32_t no)
{
	static const size_t low = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 :
									   0;

	branch(f, BPF_JEQ, (uint32_t)call, 0, 4);
	load(f, offsetof(struct seccomp_data, args) + 8 * nr + low);
	branch(f, test, k, 0, 1);
	add(f, BPF_RET, yes);
	add(f, BPF_RET, no);
}

static void make_filter(struct filter *f, const struct wp_sandbox *sandbox)
{
	load(f, offsetof(struct seccomp_data, arch));
	branch(f, BPF_JEQ, OWN_ARCH, 1, 0);
	add(f, BPF_RET, SECCOMP_RET_KILL_PROCESS);
	load(f, offsetof(struct seccomp_data, nr));
	/* x86-64: calls of x32. */
	branch(f, BPF_JGE, 0x40000000, 0, 1);
	add(f, BPF_RET, SECCOMP_RET_KILL_PROCESS);
	add_calls(f, deadly, sizeof(deadly) / sizeof(*deadly),
		  SECCOMP_RET_KILL_PROCESS);
	add_calls(f, allowed, sizeof(allowed) / sizeof(*allowed),
		  SECCOMP_RET_ALLOW);
	add_calls(f, sandbox->more, sandbox->nmore, SECCOMP_RET_ALLOW);
	add_call_if(f, SYS_mmap, 2, BPF_JSET, PROT_EXEC, FORBID,
		    SECCOMP_RET_ALLOW);
	add_call_if(f, SYS_mprotect, 2, BPF_JSET, PROT_EXEC, FORBID,
		    SECCOMP_RET_ALLOW);
	/* abort(3) */
	add_call_if(f, SYS_tgkill, 0, BPF_JEQ, (uint32_t)getpid(),
		    SECCOMP_RET_ALLOW, FORBID);
	if (KEEPS_STDERR)
		add_call_if(f, SYS_write, 0, BPF_JEQ, STDERR_FILENO,
			    SECCOMP_RET_ALLOW, FORBID);
	add(f, BPF_RET, FORBID);
}

static int set_filter(const struct wp_sandbox *sandbox)
{
	struct filter filter = { .n = 0 };
	struct sock_fprog program = { 0, filter.v };

	if (sandbox->nmore > MORE_MAX)
		return -E2BIG;
	make_filter(&filter, sandbox);
	program.len = filter.n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return -errno;
	return 0;
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
	return rc ? rc : set_filter(sandbox);
}
