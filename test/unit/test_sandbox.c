/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  sandbox.h: what can still be done inside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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
