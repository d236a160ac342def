/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  sandbox.h: what can still be done inside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wallprof/io.h"
#include "wallprof/procfs.h"
#include "wallprof/sandbox.h"
#include "few_allocations.h"

#ifdef __SANITIZE_ADDRESS__
/* It has terabytes of address space. */
#define MEMORY UINT64_MAX
#else
#define MEMORY (UINT64_C(256) << 20)
#endif

static int null_fd, kept_fd;
static pid_t parent;

/* The status of a child that enters the sandbox and ends with what TRY
 * returns. */
static int run(int (*try)(void))
{
	int keep[] = { kept_fd };
	struct wp_sandbox sandbox = { keep, 1, getpid(), MEMORY, 1, NULL, 0 };
	int status;
	pid_t pid;

	parent = getpid();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(wp_sandbox_enter(&sandbox) ? 99 : try());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int error_of(long rc)
{
	return rc < 0 ? errno : 0;
}

static int reads_what_is_kept(void)
{
	char c;

	return pread(kept_fd, &c, 1, 0) == 1 && c == 'x' ? 0 : 1;
}

static int allocates(void)
{
	char *p = malloc(1 << 20);

	if (!p)
		return 1;
	memset(p, 1, 1 << 20);
	free(p);
	return 0;
}

static int allocates_too_much(void)
{
	return error_of((long)mmap(NULL, (size_t)1 << 30,
				   PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static int reads_what_is_not_kept(void)
{
	char c;

	return error_of(read(null_fd, &c, 1));
}

static int opens(void)
{
	return error_of(open("/dev/null", O_RDONLY));
}

static int writes(void)
{
	return error_of(write(kept_fd, "y", 1));
}

static int makes_code(void)
{
	return error_of((long)mmap(NULL, 4096, PROT_READ | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static int makes_data_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ?
		       98 :
		       error_of(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

static int takes_its_limit_back(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	return error_of(setrlimit(RLIMIT_AS, &limit));
}

static int signals_another(void)
{
	return error_of(syscall(SYS_tgkill, parent, parent, SIGCONT));
}

static void files_are_read_and_memory_is_used(void **state)
{
	(void)state;
	assert_int_equal(run(reads_what_is_kept), 0);
	assert_int_equal(run(allocates), 0);
}

static void all_else_fails(void **state)
{
	static const struct {
		const char *what;
		int (*try)(void);
		int error;
	} tries[] = {
		{ "another descriptor", reads_what_is_not_kept, EBADF },
		{ "open", opens, EPERM },
		{ "write", writes, EPERM },
		{ "code", makes_code, EPERM },
		{ "data to code", makes_data_code, EPERM },
		{ "setrlimit", takes_its_limit_back, EPERM },
		{ "signal", signals_another, EPERM },
		{ "a GiB", allocates_too_much,
		  MEMORY == UINT64_MAX ? 0 : ENOMEM },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		int status = run(tries[i].try);

		if (!WIFEXITED(status) || WEXITSTATUS(status) != tries[i].error)
			fail_msg("%s: status 0x%x", tries[i].what, status);
	}
}

static int makes_a_socket(void)
{
	return socket(AF_INET, SOCK_STREAM, 0) < 0;
}

static int forks(void)
{
	return fork() < 0;
}

static int executes(void)
{
	char name[] = "true", *const argv[] = { name, NULL };

	return execv("/bin/true", argv);
}

static int reads_its_parent(void)
{
	return syscall(SYS_process_vm_readv, parent, NULL, 0, NULL, 0, 0) < 0;
}

#if defined(__x86_64__)
/* By the numbers of another architecture: 20 is getpid there, writev here. */
static int calls_as_i386(void)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(20L) : "memory");
	return ret < 0;
}

static void calls_of_another_architecture_are_deadly(void **state)
{
	int status = run(calls_as_i386);

	(void)state;
	/* SIGSEGV from a kernel without such calls. */
	assert_true(WIFSIGNALED(status));
	assert_true(WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV);
}
#endif

static void an_intruder_is_killed(void **state)
{
	static int (*const tries[])(void) = { makes_a_socket, forks, executes,
					      reads_its_parent };

	(void)state;
	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		int status = run(tries[i]);

		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
			fail_msg("try %zu: status 0x%x", i, status);
	}
}

static int loops(void)
{
	for (volatile unsigned int i = 0;; i++)
		;
	return 0;
}

static void one_that_loops_runs_out_of_time(void **state)
{
	int status = run(loops);

	(void)state;
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGXCPU);
}

static void one_whose_parent_is_gone_does_not_begin(void **state)
{
	int keep[] = { kept_fd };
	/* Not our parent's number. */
	struct wp_sandbox sandbox = {
		keep, 1, getpid() + 1, MEMORY, 1, NULL, 0
	};
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(wp_sandbox_enter(&sandbox) == -ESRCH ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Set by a child that is inside. */
static volatile int *inside;

static void change_nothing(void)
{
}

/* As before Linux 5.9. */
static void lose_close_range(void)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { 4, program };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(1);
}

enum { FIRST_FD = 20 };

/* A child that is inside, having called CHANGE, and keeps descriptors 20, 21 and
 * 24 of those from 20 to 25. */
static pid_t fork_inside(void (*change)(void))
{
	int keep[] = { FIRST_FD + 4, FIRST_FD, FIRST_FD + 1 };
	struct wp_sandbox sandbox = { keep, 3, getpid(), MEMORY, 1, NULL, 0 };
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int fd = FIRST_FD; fd < FIRST_FD + 6; fd++)
		if (dup2(kept_fd, fd) != fd)
			_exit(1);
	change();
	if (wp_sandbox_enter(&sandbox))
		_exit(1);
	*inside = 1;
	for (;;)
		syscall(SYS_futex, inside, 0, 1, NULL, NULL, 0);
}

static void assert_descriptors(pid_t pid)
{
	for (int fd = 0; fd < 64; fd++) {
		bool want = fd == FIRST_FD || fd == FIRST_FD + 1 ||
			    fd == FIRST_FD + 4;
		char path[64];
		struct stat st;

#ifdef __SANITIZE_ADDRESS__
		want |= fd == STDERR_FILENO;
#endif
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		if (want != !lstat(path, &st))
			fail_msg("descriptor %d", fd);
	}
}

static uint64_t status_of(pid_t pid, const char *name, int base)
{
	char path[64], text[4096];
	uint64_t val;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	n = wp_io_read_at(AT_FDCWD, path, text, sizeof(text));
	assert_true(n > 0);
	assert_int_equal(
		wp_proc_status_parse(&val, text, (size_t)n, name, base), 0);
	return val;
}

static void assert_limit(pid_t pid, int which, uint64_t soft, uint64_t hard)
{
	struct rlimit limit;

	assert_int_equal(syscall(SYS_prlimit64, pid, which, NULL, &limit), 0);
	assert_int_equal(limit.rlim_cur, soft);
	assert_int_equal(limit.rlim_max, hard);
}

/* What the kernel knows of one that is inside. */
static void assert_confined(pid_t pid)
{
	struct rlimit as;
	uint64_t mask = status_of(pid, "SigBlk", 16);

	assert_int_equal(status_of(pid, "NoNewPrivs", 10), 1);
	assert_int_equal(status_of(pid, "Seccomp", 10), 2);
	assert_int_equal(status_of(pid, "CapEff", 16), 0);
	assert_int_equal(status_of(pid, "CapPrm", 16), 0);
	assert_int_equal(status_of(pid, "CapAmb", 16), 0);
	/* CAP_SETPCAP */
	if (status_of(getpid(), "CapEff", 16) >> 8 & 1)
		assert_int_equal(status_of(pid, "CapBnd", 16), 0);
	assert_true(mask >> (SIGTERM - 1) & 1 && mask >> (SIGINT - 1) & 1);
	assert_false(mask >> (SIGSEGV - 1) & 1 || mask >> (SIGXCPU - 1) & 1);
	assert_limit(pid, RLIMIT_CPU, 1, 3);
	assert_limit(pid, RLIMIT_CORE, 0, 0);
	assert_limit(pid, RLIMIT_NPROC, 0, 0);
	assert_int_equal(getrlimit(RLIMIT_AS, &as), 0);
	assert_limit(pid, RLIMIT_AS,
		     as.rlim_cur < MEMORY ? as.rlim_cur : MEMORY, as.rlim_max);
}

static void what_is_dropped_is_seen_from_outside(void **state)
{
	static void (*const changes[])(void) = { change_nothing,
						 lose_close_range };

	(void)state;
	inside = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(inside != MAP_FAILED);
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		pid_t pid = fork_inside(changes[i]);

		while (!*inside) {
			assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
			usleep(1000);
		}
		*inside = 0;
		assert_confined(pid);
		/* Whose memory is nobody's but root's to look at. */
		if (!geteuid())
			assert_descriptors(pid);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	munmap((void *)inside, 4096);
}

/* Calls beside those that everybody has. */
static void more_calls_are_bounded(void **state)
{
	static int more[33];

	(void)state;
	for (size_t i = 0; i < 33; i++)
		more[i] = SYS_getppid;
	for (size_t n = 32; n <= 33; n++) {
		int keep[] = { kept_fd }, status;
		struct wp_sandbox sandbox = { keep, 1,	  getpid(), MEMORY,
					      1,    more, n };
		pid_t pid = fork();

		if (pid == 0)
			_exit(wp_sandbox_enter(&sandbox) !=
			      (n > 32 ? -E2BIG : 0));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

#ifdef CAN_FAIL
static int cannot_allocate(void)
{
	return malloc(1) ? 1 : 0;
}

static void it_is_entered_without_memory(void **state)
{
	int status;

	(void)state;
	allocations_left = 0;
	status = run(cannot_allocate);
	allocations_left = -1;
	assert_int_equal(status, 0);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_read_and_memory_is_used),
		cmocka_unit_test(all_else_fails),
		cmocka_unit_test(an_intruder_is_killed),
#if defined(__x86_64__)
		cmocka_unit_test(calls_of_another_architecture_are_deadly),
#endif
		cmocka_unit_test(one_that_loops_runs_out_of_time),
		cmocka_unit_test(what_is_dropped_is_seen_from_outside),
		cmocka_unit_test(more_calls_are_bounded),
		cmocka_unit_test(one_whose_parent_is_gone_does_not_begin),
#ifdef CAN_FAIL
		cmocka_unit_test(it_is_entered_without_memory),
#endif
	};

	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	kept_fd = memfd_create("kept", MFD_CLOEXEC);
	if (null_fd < 0 || kept_fd < 0 || write(kept_fd, "x", 1) != 1)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
