/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: ptrace.  wp_tracer_read_regs on real processes: what the registers say,
 * and that the call which a stop has interrupted goes on as if nothing had been.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "traced.h"
#include "wallprof/syscall_nr.h"

/* aarch64 has only these, which C libraries call there. */
#if defined(__x86_64__)
enum { EPOLL_CALL = SYS_epoll_wait, PAUSE_CALL = SYS_pause };
#else
enum { EPOLL_CALL = SYS_epoll_pwait, PAUSE_CALL = SYS_ppoll };
#endif

/* Of a process that says what its calls returned. */
static struct {
	volatile int ended, result;
} * call;

static int setup_call(void **state)
{
	call = mmap(NULL, sizeof(*call), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(call != MAP_FAILED);
	return setup(state);
}

/* What the last stop told. */
static struct wp_regs regs;
static struct wp_stop_facts facts;

static void stop_and_read(pid_t pid)
{
	struct wp_tracee *tracee = stop(pid);

	assert_int_equal(wp_tracer_read_regs(tracee, &regs, &facts), 0);
	wp_tracer_release(&tracer, tracee);
	assert_free(pid);
}

#if defined(__x86_64__)
/* Spins with 100 + N in the register that DWARF numbers N. */
static void spin_with_known_registers(void)
{
	__asm__ volatile("mov $100, %%rax; mov $101, %%rdx; mov $102, %%rcx;"
			 "mov $103, %%rbx; mov $104, %%rsi; mov $105, %%rdi;"
			 "mov $106, %%rbp; mov $107, %%rsp; mov $108, %%r8;"
			 "mov $109, %%r9; mov $110, %%r10; mov $111, %%r11;"
			 "mov $112, %%r12; mov $113, %%r13; mov $114, %%r14;"
			 "mov $115, %%r15; "
			 ".globl known_registers_spin;"
			 "known_registers_spin: jmp known_registers_spin"
			 :
			 :
			 : "memory");
}

extern char known_registers_spin[];

static void all_registers_are_told(void **state)
{
	pid_t pid = start(spin_with_known_registers);

	(void)state;
	usleep(1000);
	do
		stop_and_read(pid);
	while (regs.v[WP_REG_PC] != (uintptr_t)known_registers_spin);
	for (unsigned int i = 0; i < 16; i++)
		assert_int_equal(regs.v[i], 100 + i);
	for (unsigned int i = 0; i < WP_NREGS; i++)
		assert_true(wp_reg_known(&regs, i));
	assert_int_equal(facts.syscall_nr, -1);
	assert_false(facts.asleep || facts.at_call_end);
	assert_false(facts.eintr_repaired);
}

/* -EINTR in rax, and in no call. */
static void spin_with_a_number_like_an_error(void)
{
	__asm__ volatile("mov $-4, %%rax;"
			 ".globl like_an_error_spin;"
			 "like_an_error_spin: jmp like_an_error_spin"
			 :
			 :
			 : "memory", "rax");
}

extern char like_an_error_spin[];

static void what_is_no_call_is_not_repaired(void **state)
{
	pid_t pid = start(spin_with_a_number_like_an_error);

	(void)state;
	for (int n = 0; n < 3;) {
		stop_and_read(pid);
		assert_false(facts.eintr_repaired || facts.asleep);
		if (regs.v[WP_REG_PC] != (uintptr_t)like_an_error_spin)
			continue;
		assert_int_equal(regs.v[0], (uint64_t)-EINTR);
		n++;
	}
}
#endif

static void end_call(long result)
{
	call->result = result < 0 ? -errno : (int)result;
	call->ended = 1;
	for (;;)
		pause();
}

static void sleep_in_epoll(void)
{
	struct epoll_event event;

	end_call(epoll_wait(epoll_create1(0), &event, 1, 300));
}

/* Stopped in a call that the kernel ends by EINTR, again and again. */
static void a_call_that_a_stop_would_end_goes_on(void **state)
{
	pid_t pid = start(sleep_in_epoll);
	int repaired = 0;

	(void)state;
	wait_for_state(pid, 'S');
	for (int i = 0; i < 5; i++) {
		stop_and_read(pid);
		repaired += facts.eintr_repaired;
		assert_true(facts.asleep);
		assert_false(facts.at_call_end);
		assert_int_equal(facts.syscall_nr, EPOLL_CALL);
		assert_int_equal(facts.args[2], 1);
		assert_int_equal(facts.args[3], 300);
		wait_for_state(pid, 'S');
	}
	assert_int_equal(repaired, 5);
	while (!call->ended)
		usleep(1000);
	assert_int_equal(call->result, 0);
}

static void one_that_is_not_read_is_repaired_all_the_same(void **state)
{
	pid_t pid = start(sleep_in_epoll);

	(void)state;
	wait_for_state(pid, 'S');
	wp_tracer_release(&tracer, stop(pid));
	assert_free(pid);
	while (!call->ended)
		usleep(1000);
	assert_int_equal(call->result, 0);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void sleep_in_epoll_and_handle(void)
{
	struct epoll_event event;

	signal(SIGUSR1, on_signal);
	end_call(epoll_wait(epoll_create1(0), &event, 1, -1));
}

static void a_signal_ends_such_a_call_as_ever(void **state)
{
	pid_t pid = start(sleep_in_epoll_and_handle);
	struct wp_tracee *tracee;

	(void)state;
	wait_for_state(pid, 'S');
	interrupt(pid);
	/* Whether its stop is for the signal or for us. */
	kill(pid, SIGUSR1);
	while (tracer.len) {
		tracee = wp_tracer_sleep(&tracer, wp_clock_ns() + MS);
		if (!tracee)
			continue;
		assert_int_equal(wp_tracer_read_regs(tracee, &regs, &facts), 0);
		assert_true(facts.asleep);
		assert_int_equal(facts.eintr_repaired, !tracee->signal);
		wp_tracer_release(&tracer, tracee);
	}
	while (!call->ended)
		usleep(1000);
	assert_int_equal(call->result, -EINTR);
}

#if defined(__x86_64__)
/* It comes between PTRACE_SEIZE and PTRACE_INTERRUPT, and is not discarded when sent,
 * for its thread is traced.  (On aarch64 nothing has noted the call of such a thread.) */
static void a_signal_without_a_handler_ends_no_call(void **state)
{
	static const int sigs[] = { SIGURG, SIGWINCH, SIGCONT };
	pid_t pid = start(sleep_in_epoll);

	(void)state;
	for (size_t i = 0; i < sizeof(sigs) / sizeof(*sigs); i++) {
		wait_for_state(pid, 'S');
		assert_int_equal(
			ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD), 0);
		kill(pid, sigs[i]);
		while (status_of(pid, "TracerPid:"))
			assert_null(
				wp_tracer_sleep(&tracer, wp_clock_ns() + MS));
	}
	while (!call->ended)
		usleep(1000);
	assert_int_equal(call->result, 0);
}
#endif

#if defined(__x86_64__)
/* A file server's reply can end close by EINTR, when the descriptor is another's. */
static void close_is_not_made_again(void **state)
{
	pid_t pid = start(sleep_in_epoll);
	struct user_regs_struct r;
	struct wp_tracee *tracee;

	(void)state;
	wait_for_state(pid, 'S');
	tracee = stop(pid);
	assert_int_equal(ptrace(PTRACE_GETREGS, pid, 0, &r), 0);
	assert_int_equal((long)r.rax, -EINTR);
	r.orig_rax = SYS_close;
	assert_int_equal(ptrace(PTRACE_SETREGS, pid, 0, &r), 0);
	assert_int_equal(wp_tracer_read_regs(tracee, &regs, &facts), 0);
	assert_true(facts.asleep);
	assert_false(facts.eintr_repaired);
	wp_tracer_release(&tracer, tracee);
	assert_free(pid);
	assert_int_equal(tracer.eintrs_left, 1);
	while (!call->ended)
		usleep(1000);
	assert_int_equal(call->result, -EINTR);
}
#endif

static void sleep_in_read(void)
{
	int ends[2];
	char c;

	end_call(pipe(ends) ? 0 : read(ends[0], &c, 1));
}

static void the_call_number_0_is_one_as_well(void **state)
{
	pid_t pid = start(sleep_in_read);

	(void)state;
	wait_for_state(pid, 'S');
	stop_and_read(pid);
	assert_true(facts.asleep);
	assert_int_equal(facts.syscall_nr, SYS_read);
	assert_int_equal(facts.args[2], 1);
}

static void call_on(void)
{
	for (;;)
		getppid();
}

static void a_call_that_has_a_result_is_no_sleep(void **state)
{
	pid_t pid = start(call_on);

	(void)state;
	for (int i = 0; i < 200; i++) {
		stop_and_read(pid);
		assert_false(facts.asleep);
		assert_int_equal(facts.syscall_nr, -1);
	}
}

/* A thread that was on its way into its call when the stop was asked for: some kernels
 * for aarch64 do not tell what it was called with. */
static void one_that_was_not_seen_before_is_repaired_or_counted(void **state)
{
	pid_t pid = start(sleep_in_epoll);
	struct wp_tracee *tracee;

	(void)state;
	wait_for_state(pid, 'S');
	tracee = stop(pid);
	tracee->restart.before.running = true;
	tracee->restart.argument = NULL;
	assert_int_equal(wp_tracer_read_regs(tracee, &regs, &facts), 0);
	assert_true(facts.asleep);
	wp_tracer_release(&tracer, tracee);
	assert_int_equal(tracer.eintrs_left, !facts.eintr_repaired);
	assert_free(pid);
	while (!call->ended)
		usleep(1000);
	assert_int_equal(call->result, facts.eintr_repaired ? 0 : -EINTR);
}

/* Where BPF is permitted, which reads what no register set has. */
static void one_that_was_not_seen_before_is_repaired_by_bpf(void **state)
{
	pid_t pid = start(sleep_in_epoll);
	struct wp_tracee *tracee;

	(void)state;
	wait_for_state(pid, 'S');
	tracee = stop(pid);
	tracee->restart.before.running = true;
	assert_int_equal(wp_tracer_read_regs(tracee, &regs, &facts), 0);
	wp_tracer_release(&tracer, tracee);
	if (tracer.argument.tried && !tracer.argument.object)
		skip();
	assert_true(facts.eintr_repaired);
	assert_int_equal(tracer.eintrs_left, 0);
	assert_free(pid);
	while (!call->ended)
		usleep(1000);
	assert_int_equal(call->result, 0);
}

/* A thread that was seen in the same call of another descriptor: what that said of it
 * comes last. */
static void one_that_was_seen_in_another_call_is_repaired_as_it_is(void **state)
{
	pid_t pid = start(sleep_in_epoll);
	struct wp_tracee *tracee;

	(void)state;
	wait_for_state(pid, 'S');
	tracee = stop(pid);
	tracee->restart.before.args[0] = 1000;
	assert_int_equal(wp_tracer_read_regs(tracee, &regs, &facts), 0);
	assert_true(facts.eintr_repaired);
	wp_tracer_release(&tracer, tracee);
	assert_free(pid);
	while (!call->ended)
		usleep(1000);
	/* Linux 6.12 without BPF has nothing else. */
	if (call->result == -EBADF && !tracer.argument.object)
		skip();
	assert_int_equal(call->result, 0);
}

static void sleep_in_pause(void)
{
	end_call(pause());
}

static void sleep_for_a_while(void)
{
	const struct timespec ts = { 0, 300 * 1000 * 1000 };

	end_call(nanosleep(&ts, NULL));
}

/* Restarted by the kernel itself, from ERESTARTNOHAND and from
 * ERESTART_RESTARTBLOCK. */
static void a_call_that_the_kernel_restarts_is_left_alone(void **state)
{
	pid_t pauser = start(sleep_in_pause), sleeper;

	(void)state;
	wait_for_state(pauser, 'S');
	stop_and_read(pauser);
	assert_true(facts.asleep);
	assert_false(facts.eintr_repaired);
	assert_int_equal(facts.syscall_nr, PAUSE_CALL);
	sleeper = start(sleep_for_a_while);
	wait_for_state(sleeper, 'S');
	stop_and_read(sleeper);
	assert_true(facts.asleep);
	assert_false(facts.eintr_repaired);
	assert_true(facts.syscall_nr == SYS_nanosleep ||
		    facts.syscall_nr == SYS_clock_nanosleep);
	/* Which it goes on in, by another number. */
	wait_for_state(sleeper, 'S');
	stop_and_read(sleeper);
	assert_true(call->ended || facts.syscall_nr == SYS_restart_syscall);
	while (!call->ended)
		usleep(1000);
	assert_int_equal(call->result, 0);
}

/* A filter that kills who calls restart_syscall. */
static void sleep_behind_a_filter(void)
{
	struct sock_filter v[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_restart_syscall, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, v };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(77);
	sleep_for_a_while();
}

static void behind_a_filter_a_call_keeps_its_number(void **state)
{
	pid_t pid = start(sleep_behind_a_filter);

	(void)state;
	while (!wp_tracer_has_filter(pid))
		usleep(1000);
	wait_for_state(pid, 'S');
	stop_and_read(pid);
	assert_true(facts.asleep);
	assert_false(facts.eintr_repaired);
	while (!call->ended) {
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		usleep(1000);
	}
	assert_int_equal(call->result, 0);
	assert_false(wp_tracer_has_filter(getpid()));
	assert_false(wp_tracer_has_filter(-1));
}

#if defined(__x86_64__)
enum { CODE = 0x10000000, RESULT = CODE + 0x800, EVENTS = CODE + 0x900 };

/* 32-bit code, which has the time-out at CODE + 16: epoll_wait(EPFD, EVENTS, 1,
 * time-out), its result to RESULT, a loop for ever. */
static const unsigned char code_32[] = {
	0xbb, 0,    0,	  0, 0, /* mov EPFD, %ebx */
	0xb9, 0,    0x09, 0, 0x10, /* mov EVENTS, %ecx */
	0xba, 1,    0,	  0, 0, /* mov 1, %edx */
	0xbe, 0x2c, 1,	  0, 0, /* mov 300, %esi */
	0xb8, 0,    1,	  0, 0, /* mov 256, %eax */
	0xcd, 0x80, /* int 0x80 */
	0xa3, 0,    0x08, 0, 0x10, /* mov %eax, RESULT */
	0xeb, 0xfe, /* jmp . */
};
/* eax, edx, ecx, ebx, ebp, esp, esi, edi, eip. */
enum {
	KNOWN_32 = 0xf | 1 << WP_REG_FP | 1 << WP_REG_SP | 1 << WP_REG_ESI |
		   1 << WP_REG_EDI | 1 << WP_REG_PC,
};
enum { SPIN_32 = CODE + sizeof(code_32) - 2, AFTER_CALL_32 = SPIN_32 - 5 };

/* arch/x86/include/asm/segment.h: __USER32_CS; __USER_DS is 0x2b. */
static const struct {
	uint32_t offset;
	uint16_t selector;
} start_32 = { CODE, 0x23 };

static void run_32(void)
{
	unsigned char *p = mmap(
		(void *)CODE, 0x1000, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	int epfd = epoll_create1(0);

	if (p == MAP_FAILED)
		_exit(77);
	memcpy(p, code_32, sizeof(code_32));
	memset(p + 0x800, 0x55, 4);
	p[1] = (unsigned char)epfd;
	/* Not lret: qemu before 9.1 reads what that takes from the stack by the right of
	 * the kernel, which SMAP refuses. */
	__asm__ volatile("mov %0, %%rsp; mov $0x2b, %%ecx; mov %%ecx, %%ds;"
			 "ljmpl *%1"
			 :
			 : "r"((uintptr_t)CODE + 0xff0), "m"(start_32)
			 : "memory", "ecx");
}

/* Is the other table of calls there?  With ia32_emulation=off a call by it is a fault. */
static bool has_calls_32(void)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		long nr = 20; /* getpid */

		__asm__ volatile("int $0x80" : "+a"(nr) : : "memory");
		_exit(nr <= 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

static int result_of(pid_t pid)
{
	char path[64];
	int ret = 0, fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY);
	assert_int_equal(pread(fd, &ret, sizeof(ret), RESULT), sizeof(ret));
	close(fd);
	return ret;
}

static void a_thread_in_32_bit_mode_is_let_go_unharmed(void **state)
{
	pid_t pid;
	int repaired = 0;

	(void)state;
	if (!has_calls_32())
		skip();
	pid = start(run_32);
	/* Until it is in its call, by the other table's number. */
	do {
		stop_and_read(pid);
		repaired += facts.eintr_repaired;
		usleep(1000);
	} while (!repaired);
	assert_true(facts.is_32bit);
	assert_true(facts.asleep);
	assert_false(facts.at_call_end);
	assert_int_equal(facts.syscall_nr, 256);
	assert_int_equal(facts.args[1], EVENTS);
	assert_int_equal(facts.args[2], 1);
	assert_int_equal(facts.args[3], 300);
	for (unsigned int i = 0; i < WP_NREGS; i++)
		assert_int_equal(wp_reg_known(&regs, i), KNOWN_32 >> i & 1);
	assert_int_equal(regs.v[2], EVENTS);
	assert_int_equal(regs.v[WP_REG_ESI], 300);
	assert_int_equal(regs.v[WP_REG_PC], AFTER_CALL_32);
	assert_int_equal(regs.v[WP_REG_SP], CODE + 0xff0);
	while (result_of(pid) == 0x55555555)
		usleep(1000);
	assert_int_equal(result_of(pid), 0);
	stop_and_read(pid);
	assert_false(facts.eintr_repaired);
	assert_int_equal(regs.v[WP_REG_PC], SPIN_32);
}
#endif

#define CALL_TEST(name)                                                        \
	cmocka_unit_test_setup_teardown(name, setup_call, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		CALL_TEST(all_registers_are_told),
		CALL_TEST(what_is_no_call_is_not_repaired),
		CALL_TEST(a_thread_in_32_bit_mode_is_let_go_unharmed),
#endif
		CALL_TEST(a_call_that_a_stop_would_end_goes_on),
		CALL_TEST(one_that_was_not_seen_before_is_repaired_or_counted),
		CALL_TEST(one_that_was_not_seen_before_is_repaired_by_bpf),
		CALL_TEST(
			one_that_was_seen_in_another_call_is_repaired_as_it_is),
		CALL_TEST(one_that_is_not_read_is_repaired_all_the_same),
		CALL_TEST(a_signal_ends_such_a_call_as_ever),
#if defined(__x86_64__)
		CALL_TEST(a_signal_without_a_handler_ends_no_call),
		CALL_TEST(close_is_not_made_again),
#endif
		CALL_TEST(the_call_number_0_is_one_as_well),
		CALL_TEST(a_call_that_has_a_result_is_no_sleep),
		CALL_TEST(a_call_that_the_kernel_restarts_is_left_alone),
		CALL_TEST(behind_a_filter_a_call_keeps_its_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
