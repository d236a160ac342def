/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: ptrace.  tracer.h on real processes: who is stopped, and what becomes of
 * signals, of the end of a thread, and of those that do not stop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>
#include <sys/time.h>

#include "few_allocations.h"
#include "traced.h"

/* Called before each PTRACE_INTERRUPT of thread TID; NULL: nothing is called. */
static void (*on_interrupt)(pid_t tid);

long ptrace(enum __ptrace_request request, ...)
{
	va_list args;
	void *addr, *data;
	pid_t tid;

	va_start(args, request);
	tid = va_arg(args, pid_t);
	addr = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);
	if (request == PTRACE_INTERRUPT && on_interrupt)
		on_interrupt(tid);
	return syscall(SYS_ptrace, request, tid, addr, data);
}

static void spin(void)
{
	for (;;)
		shared->rounds++;
}

static void sleep_on(void)
{
	for (;;)
		pause();
}

/* The processes of this file share few pages: what ROUNDS counts is SPIN's. */
static void wait_for_rounds(void)
{
	unsigned int before = shared->rounds;

	while (shared->rounds - before < 1000)
		usleep(100);
}

static void on_signal(int sig)
{
	(void)sig;
	shared->handled++;
}

static void a_thread_stops_and_goes_on(void **state)
{
	struct wp_tracee *tracee;
	unsigned int rounds;
	uint64_t before_ns = wp_clock_ns();
	pid_t pid = start(spin);

	(void)state;
	wait_for_rounds();
	tracee = stop(pid);
	assert_int_equal(status_of(pid, "State:"), 't');
	rounds = shared->rounds;
	assert_int_equal(tracee->cookie, COOKIE);
	assert_int_equal(tracee->signal, 0);
	assert_false(tracee->unwanted);
	assert_true(before_ns <= tracee->asked_ns);
	assert_true(tracee->asked_ns <= tracee->stopped_ns);
	assert_true(tracee->stopped_ns <= wp_clock_ns());
	assert_ptr_equal(wp_tracer_find(&tracer, COOKIE), tracee);
	assert_null(wp_tracer_find(&tracer, OTHER));
	usleep(2000);
	assert_int_equal(shared->rounds, rounds);
	wp_tracer_release(&tracer, tracee);
	assert_free(pid);
	wait_for_rounds();
}

static void each_of_many_is_told_from_the_others(void **state)
{
	pid_t pids[3];
	int seen = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		pids[i] = start(i == 1 ? sleep_on : spin);
		assert_int_equal(
			wp_tracer_interrupt(&tracer, pids[i], (uint64_t)i + 10),
			0);
	}
	assert_int_equal(tracer.len, 3);
	for (int i = 0; i < 3; i++) {
		struct wp_tracee *tracee = wp_tracer_wait(
			&tracer, wp_clock_ns() + SOON_NS);

		assert_non_null(tracee);
		assert_int_equal(tracee->tid, pids[tracee->cookie - 10]);
		seen |= 1 << (tracee->cookie - 10);
	}
	assert_int_equal(seen, 7);
	/* Nobody is left to wait for. */
	assert_null(wp_tracer_wait(&tracer, wp_clock_ns() + SOON_NS));
	wp_tracer_release(&tracer, wp_tracer_find(&tracer, 10));
	assert_int_equal(wp_tracer_find(&tracer, 12)->tid, pids[2]);
	assert_int_equal(wp_tracer_find(&tracer, 11)->tid, pids[1]);
	wp_tracer_clear(&tracer);
	for (int i = 0; i < 3; i++)
		assert_free(pids[i]);
}

static unsigned int nreleased;

static void count_release(void)
{
	/* The thread runs on already. */
	assert_int_equal(wp_tracer_nheld, 0);
	nreleased++;
}

static void who_is_held_is_counted(void **state)
{
	pid_t pids[] = { start(spin), start(spin) };

	(void)state;
	nreleased = 0;
	wp_tracer_nheld = 0;
	wp_tracer_on_release = count_release;
	interrupt(pids[0]);
	assert_int_equal(wp_tracer_nheld, 1);
	assert_int_equal(wp_tracer_interrupt(&tracer, getpid(), COOKIE),
			 -EPERM);
	assert_int_equal(wp_tracer_interrupt(&tracer, pids[1], OTHER), 0);
	assert_int_equal(wp_tracer_nheld, 2);
	for (int i = 0; i < 2; i++) {
		struct wp_tracee *tracee = wp_tracer_wait(
			&tracer, wp_clock_ns() + SOON_NS);

		assert_non_null(tracee);
		assert_int_equal(nreleased, 0);
		wp_tracer_release(&tracer, tracee);
		assert_int_equal(wp_tracer_nheld, 1 - i);
	}
	assert_int_equal(nreleased, 1);
	/* One that has not stopped is held until it has. */
	interrupt(pids[0]);
	wp_tracer_clear(&tracer);
	assert_int_equal(nreleased, 2);
	assert_free(pids[0]);
	wp_tracer_on_release = NULL;
}

static void who_cannot_be_stopped_is_refused(void **state)
{
	pid_t pid = start(spin), gone = fork();

	(void)state;
	if (gone == 0)
		_exit(0);
	waitpid(gone, NULL, 0);
	assert_int_equal(wp_tracer_interrupt(&tracer, gone, COOKIE), -ESRCH);
	/* kthreadd, or in a PID namespace whoever may not be traced: this
	 * process itself. */
	assert_int_equal(wp_tracer_interrupt(&tracer, getpid(), COOKIE),
			 -EPERM);
	assert_int_equal(tracer.len, 0);
	interrupt(pid);
	assert_int_equal(wp_tracer_interrupt(&tracer, pid, OTHER), -EALREADY);
	assert_int_equal(tracer.len, 1);
}

/* As wp_tracer_interrupt, but for the interrupt; TRACER is empty. */
static void seize(pid_t tid)
{
	free(tracer.v);
	tracer.v = calloc(4, sizeof(*tracer.v));
	assert_non_null(tracer.v);
	tracer.cap = 4;
	tracer.v[0] = (struct wp_tracee){ .tid = tid, .cookie = COOKIE };
	tracer.len = 1;
	wp_tracer_nheld++;
	assert_int_equal(ptrace(PTRACE_SEIZE, tid, 0, 0), 0);
}

/* Sends itself SIGUSR1 when it is told to. */
static void raise_when_told(void)
{
	signal(SIGUSR1, on_signal);
	while (!shared->go)
		;
	raise(SIGUSR1);
	spin();
}

static void a_signal_is_passed_on(void **state)
{
	struct wp_tracee *tracee;
	struct wp_stop_facts facts;
	struct wp_regs regs;
	pid_t pid = start(raise_when_told);

	(void)state;
	for (int reads = 0; reads < 2; reads++) {
		/* The signal comes first. */
		seize(pid);
		shared->go = 1;
		if (reads)
			kill(pid, SIGUSR1);
		tracee = wp_tracer_wait(&tracer, wp_clock_ns() + SOON_NS);
		assert_non_null(tracee);
		assert_int_equal(tracee->signal, SIGUSR1);
		if (reads)
			assert_int_equal(
				wp_tracer_read_regs(tracee, &regs, &facts), 0);
		wp_tracer_release(&tracer, tracee);
		assert_free(pid);
		wait_for_rounds();
		assert_int_equal(shared->handled, reads + 1);
		wp_tracer_clear(&tracer);
	}
}

static void a_stopped_process_stays_stopped(void **state)
{
	struct wp_tracee *tracee;
	pid_t pid = start(spin);

	(void)state;
	kill(pid, SIGSTOP);
	wait_for_state(pid, 'T');
	tracee = stop(pid);
	/* A group-stop is none of the signals that are passed on. */
	assert_int_equal(tracee->signal, 0);
	wp_tracer_release(&tracer, tracee);
	assert_int_equal(status_of(pid, "TracerPid:"), 0);
	wait_for_state(pid, 'T');
	kill(pid, SIGCONT);
	wait_for_rounds();
}

static void one_that_dies_is_dropped(void **state)
{
	struct wp_stop_facts facts;
	struct wp_tracee *tracee;
	struct wp_regs regs;
	pid_t pid = start(spin);
	uint64_t begin_ns;

	(void)state;
	tracee = stop(pid);
	kill(pid, SIGKILL);
	wait_for_state(pid, 'Z');
	assert_int_equal(wp_tracer_read_regs(tracee, &regs, &facts), -ESRCH);
	tracee->stopped = false;
	begin_ns = wp_clock_ns();
	assert_null(wp_tracer_wait(&tracer, begin_ns + SOON_NS));
	assert_true(wp_clock_ns() - begin_ns < SOON_NS / 2);
	assert_int_equal(tracer.len, 0);
	assert_false(tracer.child_ended);
}

static void end_with_3(void)
{
	while (!shared->go)
		usleep(1000);
	_exit(3);
}

static void the_end_of_the_child_ends_a_wait(void **state)
{
	pid_t spinner = start(spin), pid = start(end_with_3);
	uint64_t begin_ns = wp_clock_ns();

	(void)state;
	tracer.child = pid;
	assert_null(wp_tracer_sleep(&tracer, begin_ns + 20 * MS));
	assert_false(tracer.child_ended);
	assert_true(wp_clock_ns() - begin_ns >= 20 * MS);
	shared->go = 1;
	assert_null(wp_tracer_sleep(&tracer, wp_clock_ns() + SOON_NS));
	assert_true(tracer.child_ended);
	assert_true(WIFEXITED(tracer.child_status));
	assert_int_equal(WEXITSTATUS(tracer.child_status), 3);
	/* And a wait for others. */
	interrupt(spinner);
	while (!tracer.v[0].stopped)
		wp_tracer_wait(&tracer, wp_clock_ns() + MS);
	assert_true(wp_clock_ns() - begin_ns < SOON_NS / 2);
}

/* In vfork(2), which no stop ends, until it is told to go on. */
static void wait_for_child(void)
{
	pid_t self = getpid();

	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* It may have died before. */
		while (!shared->go && getppid() == self)
			usleep(1000);
		_exit(0);
	}
	spin();
}

static pid_t start_vfork(void)
{
	pid_t pid = start(wait_for_child);

	wait_for_state(pid, 'D');
	interrupt(pid);
	return pid;
}

static uint64_t own_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * WP_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void a_wait_is_over_in_time(void **state)
{
	uint64_t cpu_ns = own_cpu_ns();
	uint64_t begin_ns, took_ns;

	(void)state;
	start_vfork();
	begin_ns = wp_clock_ns();
	assert_null(wp_tracer_wait(&tracer, 0));
	assert_true(wp_clock_ns() - begin_ns < SOON_NS / 2);
	for (int i = 0; i < 3; i++) {
		begin_ns = wp_clock_ns();
		assert_null(wp_tracer_wait(&tracer, begin_ns + 30 * MS));
		took_ns = wp_clock_ns() - begin_ns;
		assert_true(took_ns >= 30 * MS && took_ns < SOON_NS / 2);
	}
	/* It sleeps. */
	assert_true(own_cpu_ns() - cpu_ns < 30 * MS);
	assert_int_equal(tracer.len, 1);
	assert_non_null(wp_tracer_find(&tracer, COOKIE));
}

static volatile unsigned int nalarms;

static void note_alarm(int sig)
{
	(void)sig;
	nalarms++;
}

static void a_signal_ends_no_wait(void **state)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } },
			       none = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = note_alarm };
	uint64_t begin_ns, took_ns;

	(void)state;
	start_vfork();
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	begin_ns = wp_clock_ns();
	assert_null(wp_tracer_wait(&tracer, begin_ns + 30 * MS));
	took_ns = wp_clock_ns() - begin_ns;
	assert_int_equal(setitimer(ITIMER_REAL, &none, NULL), 0);
	assert_true(nalarms > 0);
	assert_true(took_ns >= 30 * MS && took_ns < SOON_NS / 2);
}

static void a_stop_that_has_come_is_taken_at_once(void **state)
{
	struct wp_tracee *tracee;
	uint64_t begin_ns;
	pid_t pid = start(spin);

	(void)state;
	for (int i = 0; i < 2; i++) {
		interrupt(pid);
		wait_for_state(pid, 't');
		begin_ns = wp_clock_ns();
		tracee = wp_tracer_sleep(&tracer, i ? begin_ns + SOON_NS : 0);
		assert_non_null(tracee);
		assert_true(wp_clock_ns() - begin_ns < SOON_NS / 2);
		wp_tracer_release(&tracer, tracee);
		assert_free(pid);
	}
}

#ifdef CAN_FAIL
static void without_memory_nobody_is_stopped(void **state)
{
	pid_t pid = start(spin);

	(void)state;
	allocations_left = 0;
	assert_int_equal(wp_tracer_interrupt(&tracer, pid, COOKIE), -ENOMEM);
	allocations_left = -1;
	assert_free(pid);
}
#endif

static void polling_in_vain_is_left_out_for_a_while(void **state)
{
	(void)state;
	start_vfork();
	assert_null(wp_tracer_wait(&tracer, wp_clock_ns() + MS));
	assert_int_equal(tracer.spins_left_out, 32);
	assert_null(wp_tracer_wait(&tracer, wp_clock_ns() + MS));
	assert_int_equal(tracer.spins_left_out, 31);
	tracer.spins_left_out = 1;
	assert_null(wp_tracer_wait(&tracer, wp_clock_ns() + MS));
	assert_int_equal(tracer.spins_left_out, 0);
}

/* The last of NLATE that stopped late: when, and when it was told. */
static pid_t late_tid;
static uint64_t late_ns, late_told_ns;
static unsigned int nlate;

static void note_late(void *ctx, pid_t tid, uint64_t stopped_ns)
{
	assert_ptr_equal(ctx, &tracer);
	late_tid = tid;
	late_ns = stopped_ns;
	late_told_ns = wp_clock_ns();
	nlate++;
}

static void who_is_released_before_it_stops_is_let_go_then(void **state)
{
	uint64_t begin_ns;
	pid_t pid = start_vfork();

	(void)state;
	nlate = 0;
	tracer.on_late = note_late;
	tracer.late_ctx = &tracer;
	wp_tracer_release(&tracer, wp_tracer_find(&tracer, COOKIE));
	assert_null(wp_tracer_find(&tracer, COOKIE));
	assert_null(wp_tracer_find(&tracer, 0));
	assert_int_equal(tracer.len, 1);
	/* Nobody waits for it. */
	begin_ns = wp_clock_ns();
	assert_null(wp_tracer_wait(&tracer, begin_ns + SOON_NS));
	assert_true(wp_clock_ns() - begin_ns < SOON_NS / 2);
	assert_int_equal(nlate, 0);
	begin_ns = wp_clock_ns();
	shared->go = 1;
	while (tracer.len)
		assert_null(wp_tracer_sleep(&tracer, wp_clock_ns() + MS));
	/* Once, but where it is to make a call again. */
	assert_true(nlate >= 1);
	assert_int_equal(late_tid, pid);
	assert_in_range(late_ns, begin_ns, late_told_ns);
	wait_for_rounds();
	assert_free(pid);
}

static void who_is_released_before_it_stops_can_be_wanted_again(void **state)
{
	struct wp_tracee *tracee;
	pid_t pid = start_vfork();
	uint64_t asked_ns = wp_clock_ns();

	(void)state;
	wp_tracer_release(&tracer, wp_tracer_find(&tracer, COOKIE));
	assert_int_equal(wp_tracer_interrupt(&tracer, pid, OTHER), 0);
	assert_int_equal(tracer.len, 1);
	assert_int_equal(wp_tracer_nheld, 1);
	assert_null(wp_tracer_find(&tracer, COOKIE));
	tracee = wp_tracer_find(&tracer, OTHER);
	assert_non_null(tracee);
	assert_true(tracee->asked_ns >= asked_ns);
	assert_int_equal(wp_tracer_interrupt(&tracer, pid, COOKIE), -EALREADY);
	shared->go = 1;
	tracee = wp_tracer_wait(&tracer, wp_clock_ns() + SOON_NS);
	assert_non_null(tracee);
	assert_int_equal(tracee->cookie, OTHER);
	wp_tracer_release(&tracer, tracee);
	wait_for_rounds();
	assert_free(pid);
}

static void a_stop_that_comes_late_is_ended_for_who_meets_it(void **state)
{
	pid_t pid = start_vfork();

	(void)state;
	/* Still wanted, another's, and not yet come. */
	assert_false(wp_tracer_end_late(&tracer, pid));
	wp_tracer_release(&tracer, wp_tracer_find(&tracer, COOKIE));
	assert_false(wp_tracer_end_late(&tracer, getpid()));
	assert_true(wp_tracer_end_late(&tracer, pid));
	assert_int_equal(tracer.len, 1);
	shared->go = 1;
	wait_for_state(pid, 't');
	assert_true(wp_tracer_end_late(&tracer, pid));
	assert_int_equal(tracer.len, 0);
	assert_false(wp_tracer_end_late(&tracer, pid));
	wait_for_rounds();
	assert_free(pid);
}

static void clearing_waits_no_longer_than_it_may(void **state)
{
	uint64_t begin_ns, took_ns;
	pid_t pid = start(spin);

	(void)state;
	stop(pid);
	start_vfork();
	begin_ns = wp_clock_ns();
	wp_tracer_clear(&tracer);
	took_ns = wp_clock_ns() - begin_ns;
	assert_true(took_ns >= 100 * MS && took_ns < SOON_NS / 2);
	assert_free(pid);
	assert_null(tracer.v);
	assert_int_equal(tracer.cap, 0);
	begin_ns = wp_clock_ns();
	wp_tracer_clear(&tracer);
	assert_null(tracer.v);
}

/* Nothing asks for its stop any more. */
static void who_stops_after_clearing_goes_on(void **state)
{
	pid_t pid = start_vfork(), other = start_vfork();

	(void)state;
	wp_tracer_clear(&tracer);
	assert_int_equal(tracer.len, 0);
	assert_int_equal(wp_tracer_nheld, 0);
	assert_int_equal(status_of(pid, "TracerPid:"), getpid());
	/* One ends instead, and whoever waits for it is told. */
	kill(other, SIGKILL);
	while (waitpid(other, NULL, WNOHANG) != other)
		usleep(1000);
	shared->go = 1;
	while (status_of(pid, "TracerPid:"))
		usleep(1000);
	wait_for_rounds();
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
}

static void clearing_takes_stops_that_come(void **state)
{
	pid_t pid = start_vfork();

	(void)state;
	shared->go = 1;
	wp_tracer_clear(&tracer);
	assert_free(pid);
	wait_for_rounds();
}

static void *execute(void *arg)
{
	shared->tid = gettid();
	while (!shared->go)
		usleep(1000);
	execl("/bin/sleep", "sleep", "1000", NULL);
	return arg;
}

static void execute_in_a_thread(void)
{
	pthread_t t;

	pthread_create(&t, NULL, execute, NULL);
	for (;;)
		pause();
}

static void wait_for_exec(pid_t pid)
{
	char path[64], name[16] = "";

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	while (strcmp(name, "sleep\n") != 0) {
		FILE *f = fopen(path, "r");

		assert_non_null(f);
		assert_non_null(fgets(name, sizeof(name), f));
		fclose(f);
	}
}

/* The thread takes the process's number on, which nobody asked for. */
static void one_that_executes_under_another_number_is_let_go(void **state)
{
	int nheld = wp_tracer_nheld;
	pid_t pid = start(execute_in_a_thread);

	(void)state;
	while (!shared->tid)
		usleep(1000);
	seize(shared->tid);
	shared->go = 1;
	wait_for_exec(pid);
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	while (status_of(pid, "TracerPid:"))
		assert_null(wp_tracer_sleep(&tracer, wp_clock_ns() + MS));
	wait_for_state(pid, 'S');
	/* What it was is found to be gone. */
	while (tracer.len)
		assert_null(wp_tracer_sleep(&tracer, wp_clock_ns() + MS));
	assert_int_equal(wp_tracer_nheld, nheld);
}

static void execute_alone(void)
{
	execute(NULL);
}

/* Let TID, which is seized, come to the end of its execve, or further than that. */
static void let_execute(pid_t tid)
{
	on_interrupt = NULL;
	shared->go = 1;
	wait_for_exec(tid);
	while (!strchr("St", status_of(tid, "State:")))
		usleep(1000);
}

static void one_that_executes_before_it_is_asked_is_new(void **state)
{
	struct wp_stop_facts facts;
	struct wp_tracee *tracee;
	struct wp_regs regs;
	pid_t pid = start(execute_alone);

	(void)state;
	on_interrupt = let_execute;
	tracee = stop(pid);
	assert_int_equal(wp_tracer_read_regs(tracee, &regs, &facts), 0);
	assert_true(tracee->entry_avma);
	assert_int_equal(facts.syscall_nr, -1);
	wp_tracer_release(&tracer, tracee);
	assert_free(pid);
	wait_for_state(pid, 'S');
}

/* A process whose first thread was traced, and has ended for one that is not, and has
 * its number now. */
static pid_t start_lost(void)
{
	pid_t pid = start(execute_in_a_thread);

	while (!shared->tid)
		usleep(1000);
	seize(pid);
	shared->go = 1;
	wait_for_exec(pid);
	return pid;
}

/* The same, of a thread that executes under another number: nobody has asked that one. */
static pid_t leader;

static void let_thread_execute(pid_t tid)
{
	(void)tid;
	let_execute(leader);
}

static void
one_that_gets_another_number_before_it_is_asked_is_let_go(void **state)
{
	int nheld = wp_tracer_nheld;

	(void)state;
	leader = start(execute_in_a_thread);
	while (!shared->tid)
		usleep(1000);
	on_interrupt = let_thread_execute;
	interrupt(shared->tid);
	while (status_of(leader, "TracerPid:") || tracer.len)
		assert_null(wp_tracer_sleep(&tracer, wp_clock_ns() + MS));
	wait_for_state(leader, 'S');
	assert_int_equal(wp_tracer_nheld, nheld);
}

static void one_that_was_lost_by_an_exec_is_interrupted_anew(void **state)
{
	int nheld = wp_tracer_nheld;
	pid_t pid = start_lost();
	struct wp_tracee *tracee;

	(void)state;
	tracee = stop(pid);
	assert_int_equal(tracer.len, 1);
	wp_tracer_release(&tracer, tracee);
	assert_free(pid);
	assert_int_equal(wp_tracer_nheld, nheld);
}

/* Once of some times, for this process may have to wait for a CPU. */
static void one_that_was_lost_by_an_exec_is_not_waited_for(void **state)
{
	uint64_t least_ns = SOON_NS;

	(void)state;
	for (int i = 0; i < 3; i++) {
		uint64_t begin_ns;

		shared->go = shared->tid = 0;
		start_lost();
		begin_ns = wp_clock_ns();
		wp_tracer_clear(&tracer);
		if (least_ns > wp_clock_ns() - begin_ns)
			least_ns = wp_clock_ns() - begin_ns;
	}
	assert_true(least_ns < 100 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_thread_stops_and_goes_on),
		TEST(each_of_many_is_told_from_the_others),
		TEST(who_is_held_is_counted),
		TEST(who_cannot_be_stopped_is_refused),
		TEST(a_signal_is_passed_on),
		TEST(a_stopped_process_stays_stopped),
		TEST(one_that_dies_is_dropped),
		TEST(the_end_of_the_child_ends_a_wait),
		TEST(a_wait_is_over_in_time),
		TEST(a_signal_ends_no_wait),
		TEST(a_stop_that_has_come_is_taken_at_once),
#ifdef CAN_FAIL
		TEST(without_memory_nobody_is_stopped),
#endif
		TEST(polling_in_vain_is_left_out_for_a_while),
		TEST(who_is_released_before_it_stops_is_let_go_then),
		TEST(who_is_released_before_it_stops_can_be_wanted_again),
		TEST(a_stop_that_comes_late_is_ended_for_who_meets_it),
		TEST(clearing_waits_no_longer_than_it_may),
		TEST(who_stops_after_clearing_goes_on),
		TEST(clearing_takes_stops_that_come),
		TEST(one_that_executes_under_another_number_is_let_go),
		TEST(one_that_executes_before_it_is_asked_is_new),
		TEST(one_that_gets_another_number_before_it_is_asked_is_let_go),
		TEST(one_that_was_lost_by_an_exec_is_interrupted_anew),
		TEST(one_that_was_lost_by_an_exec_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
