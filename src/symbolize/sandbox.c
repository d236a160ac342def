/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.c - see sandbox.h.
 *
 * The filter is a list of thirty numbers, so it is written out here: libseccomp
 * would be one more library that wallprof cannot run without.
 */
#include "sandbox.h"

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

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#error "no seccomp filter for this machine"
#endif

/* Sanitizers tell what they found on standard error; a release must not: what
 * is written there comes from the files of others. */
#ifdef __SANITIZE_ADDRESS__
enum { KEEPS_STDERR = 1 };
#else
enum { KEEPS_STDERR = 0 };
#endif

enum { FILTER_MAX = 256 };

/* Calls on memory and on what is open. */
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

/* Allowed without PROT_EXEC, which is in their third argument. */
static const int allowed_for_data[] = { SYS_mmap, SYS_mprotect };

/* No library tries these: whoever does is an intruder.  All the rest fails with
 * EPERM, as libraries look for things that they can do without. */
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

struct filter {
	struct sock_filter v[FILTER_MAX];
	unsigned short len;
};

static void add(struct filter *f, uint16_t code, uint32_t k, uint8_t yes,
		uint8_t no)
{
	if (f->len < FILTER_MAX)
		f->v[f->len++] = (struct sock_filter){ code, yes, no, k };
}

static void load(struct filter *f, size_t off)
{
	add(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)off, 0, 0);
}

static void end(struct filter *f, uint32_t action)
{
	add(f, BPF_RET | BPF_K, action, 0, 0);
}

/* If what was loaded is K, go on; else skip N. */
static void unless_skip(struct filter *f, int k, uint8_t n)
{
	add(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)k, 0, n);
}

static const uint32_t denied = SECCOMP_RET_ERRNO | EPERM;

static void list(struct filter *f, const int *calls, size_t n, uint32_t action)
{
	for (size_t i = 0; i < n; i++) {
		unless_skip(f, calls[i], 1);
		end(f, action);
	}
}

#define LIST(f, calls, action)                                                 \
	list(f, calls, sizeof(calls) / sizeof(*(calls)), action)

/* CALL, if its argument ARG, of 32 bits, is VALUE. */
static void allow_with(struct filter *f, int call, unsigned int arg, int value)
{
	unless_skip(f, call, 4);
	load(f, offsetof(struct seccomp_data, args[arg]));
	unless_skip(f, value, 1);
	end(f, SECCOMP_RET_ALLOW);
	end(f, denied);
}

static void allow_for_data(struct filter *f, int call)
{
	unless_skip(f, call, 4);
	load(f, offsetof(struct seccomp_data, args[2]));
	add(f, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
	end(f, denied);
	end(f, SECCOMP_RET_ALLOW);
}

static void make_filter(struct filter *f)
{
	f->len = 0;
	load(f, offsetof(struct seccomp_data, arch));
	unless_skip(f, (int)OWN_ARCH, 1);
	add(f, BPF_JMP | BPF_JA, 1, 0, 0);
	end(f, SECCOMP_RET_KILL_PROCESS);
	load(f, offsetof(struct seccomp_data, nr));
	LIST(f, allowed, SECCOMP_RET_ALLOW);
	for (size_t i = 0;
	     i < sizeof(allowed_for_data) / sizeof(*allowed_for_data); i++)
		allow_for_data(f, allowed_for_data[i]);
	/* abort(3) */
	allow_with(f, SYS_tgkill, 0, (int)getpid());
	if (KEEPS_STDERR)
		allow_with(f, SYS_write, 0, STDERR_FILENO);
	LIST(f, deadly, SECCOMP_RET_KILL_PROCESS);
	end(f, denied);
}

static int set_filter(void)
{
	struct filter f;
	struct sock_fprog program = { 0, f.v };

	make_filter(&f);
	program.len = f.len;
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

	/* Denied to whoever has nothing to drop. */
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
	/* The parent allows more memory with each file that it hands out. */
	int rc = lower_limit(RLIMIT_AS, sandbox->memory, RLIM_INFINITY);

	/* SIGXCPU says more than the SIGKILL of the hard limit. */
	if (!rc)
		rc = lower_limit(RLIMIT_CPU, sandbox->cpu_s,
				 sandbox->cpu_s + 2);
	if (!rc)
		rc = lower_limit(RLIMIT_CORE, 0, 0);
	if (!rc)
		rc = lower_limit(RLIMIT_NPROC, 0, 0);
	return rc;
}

/* Signals of the terminal are the parent's to answer. */
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
	/* It may have died before. */
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
	/* Nobody of the same user attaches; no core goes to a handler. */
	if (!rc && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		rc = -errno;
	if (!rc)
		rc = die_with(sandbox->parent);
	return rc ? rc : set_filter();
}
