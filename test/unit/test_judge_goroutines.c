/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: hang.  Verdicts on dumps of Go programs made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

#include "wallprof/graph.h"

static struct wp_dump d;

static uint32_t text(const char *s)
{
	return wp_intern_add_str(&d.strings, s);
}

/* Thread I is in FUNCTION. */
static void put_in(uint32_t i, const char *function)
{
	struct wp_dump_frame *f = wp_dump_add_frame(&d);

	f->function = text(function);
	d.threads[i].stack.first_frame = d.nframes - 1;
	d.threads[i].stack.nframes = 1;
}

/* A process 42 with a thread, seen twice, and a goroutine in FUNCTIONS, innermost
 * first, which end with NULL. */
static void start(const char *const *functions)
{
	struct wp_dump_process *p;
	struct wp_dump_thread *t;
	struct wp_dump_goroutine *g;

	d = (struct wp_dump)WP_DUMP_INIT;
	d.interval_ns = 2000000000;
	p = wp_dump_add_process(&d);
	p->pid = 42;
	t = wp_dump_add_thread(&d);
	t->state = WP_STATE_WAITING;
	t->wait = WP_WAIT_POLL;
	p->nthreads = 1;
	g = wp_dump_add_goroutine(&d);
	p->ngoroutines = 1;
	g->id = 7;
	g->reason = text("chan send");
	for (; *functions; functions++) {
		struct wp_dump_frame *f = wp_dump_add_frame(&d);

		f->function = f->system_name = text(*functions);
		f->file = text("/src/main.go");
		f->line = 12;
		g->stack.nframes++;
	}
	g->stack.site = g->stack.nframes - 1;
	g->created = (struct wp_dump_stack){ g->stack.nframes - 1, 1, 1, 0, 0 };
	p->nown_goroutines = 3;
	put_in(0, "runtime.netpoll");
}

static enum wp_verdict judge(const char *part)
{
	enum wp_verdict verdict = WP_NVERDICTS;
	char why[512];

	assert_int_equal(wp_graph_build(&d), 0);
	assert_int_equal(wp_verdict_find(&d, &verdict, why, sizeof(why)), 0);
	if (!strstr(why, part))
		fail_msg("\"%s\" is not in \"%s\"", part, why);
	wp_dump_clear(&d);
	return verdict;
}

static const char *const locks[] = { "runtime.gopark",
				     "sync.runtime_SemacquireMutex",
				     "sync.(*Mutex).Lock", "main.work", NULL };
/* Since Go 1.24. */
static const char *const slow_locks[] = {
	"runtime.gopark",
	"runtime.semacquire1",
	"internal/sync.runtime_SemacquireMutex",
	"internal/sync.(*Mutex).lockSlow",
	"internal/sync.(*Mutex).Lock",
	"sync.(*Mutex).Lock",
	"main.work",
	NULL
};
static const char *const sends[] = { "runtime.gopark", "runtime.chansend",
				     "main.handle", NULL };

static void one_that_wants_a_lock_makes_it_a_deadlock(void **state)
{
	(void)state;
	start(locks);
	d.processes[0].goroutines_wait_inside = true;
	d.processes[0].goroutines_take_signals = true;
	assert_int_equal(judge("all 3 goroutines of process 42 wait for each "
			       "other, one of them for a lock at main.work "
			       "main.go:12"),
			 WP_VERDICT_DEADLOCK);
	start(slow_locks);
	d.processes[0].goroutines_wait_inside = true;
	d.processes[0].goroutines_take_signals = true;
	assert_int_equal(judge("one of them for a lock at main.work"),
			 WP_VERDICT_DEADLOCK);
	/* One that calls what locks is not one that wants a lock. */
	start((const char *const[]){ "runtime.gopark", "main.f",
				     "sync.(*Mutex).Lock", NULL });
	d.processes[0].goroutines_wait_inside = true;
	assert_int_equal(judge("all 3 goroutines"), WP_VERDICT_NO_PROGRESS);
}

/* Who waits for a signal may hold the lock; whether one does is written nowhere. */
static void a_signal_that_one_waits_for_may_end_a_deadlock(void **state)
{
	static const char unless[] = "; unless a signal comes that one of them "
				     "waits for";
	static const struct {
		const char *reason, *function;
		bool takes_signals, is_told;
	} cases[] = {
		{ "chan receive", "main.main", true, true },
		{ "select", "main.main", true, true },
		{ "select", "main.main", false, false },
		{ "chan send", "main.main", true, false },
		/* runtime.ensureSigM, which waits for who wants signals. */
		{ "select", "runtime.ensureSigM.func1", true, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		enum wp_verdict verdict = WP_NVERDICTS;
		struct wp_dump_goroutine *g;
		struct wp_dump_frame *f;
		char why[512];

		start(locks);
		d.processes[0].goroutines_wait_inside = true;
		d.processes[0].goroutines_take_signals = cases[i].takes_signals;
		g = wp_dump_add_goroutine(&d);
		f = wp_dump_add_frame(&d);
		f->system_name = text(cases[i].function);
		g->reason = text(cases[i].reason);
		g->stack.first_frame = d.nframes - 1;
		g->stack.nframes = 1;
		d.processes[0].ngoroutines = 2;
		assert_int_equal(wp_graph_build(&d), 0);
		assert_int_equal(
			wp_verdict_find(&d, &verdict, why, sizeof(why)), 0);
		assert_int_equal(verdict, WP_VERDICT_DEADLOCK);
		assert_int_equal(strstr(why, unless) != NULL, cases[i].is_told);
		wp_dump_clear(&d);
	}
}

static void signals_and_timers_may_come(void **state)
{
	(void)state;
	start(sends);
	d.processes[0].goroutines_wait_inside = true;
	assert_int_equal(judge("wait for each other"), WP_VERDICT_NO_PROGRESS);
	start(sends);
	d.processes[0].goroutines_wait_inside = true;
	d.processes[0].goroutines_take_signals = true;
	assert_int_equal(judge("thread"), WP_VERDICT_HEALTHY);
	start(locks);
	d.processes[0].goroutines_wait_inside = true;
	d.threads[0].call.timed = true;
	assert_int_equal(judge("thread"), WP_VERDICT_HEALTHY);
}

static void a_thread_of_c_may_call_back(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct wp_dump_thread *t;

		start(sends);
		d.processes[0].goroutines_wait_inside = true;
		t = wp_dump_add_thread(&d);
		d.processes[0].nthreads = 2;
		put_in(1, i == 1 ? "runtime.futex" : "serve_in_c");
		t->state = i == 4 ? WP_STATE_EXITING : WP_STATE_WAITING;
		t->wait = i == 2 || i == 3 ? WP_WAIT_CONDVAR : WP_WAIT_SOCKET;
		t->call.nr = SYS_futex;
		t->call.args[1] = FUTEX_PRIVATE_FLAG;
		/* It has run between the looks. */
		t->times.still = i != 3;
		if (i == 0 || i == 3)
			assert_int_equal(judge("thread"), WP_VERDICT_HEALTHY);
		else
			assert_int_equal(judge("all 3 goroutines"),
					 WP_VERDICT_NO_PROGRESS);
	}
}

static void a_group_that_grows_is_named(void **state)
{
	(void)state;
	start(sends);
	d.processes[0].grown = 1;
	d.processes[0].nbefore = 100;
	d.processes[0].nafter = 140;
	assert_int_equal(judge("only get more: 140 wait (chan send) at "
			       "main.handle main.go:12, 40 more than 2 s "
			       "before, and of those none has run or ended; "
			       "created by main.handle main.go:12"),
			 WP_VERDICT_NO_PROGRESS);
	start(sends);
	assert_int_equal(judge("thread"), WP_VERDICT_HEALTHY);
	start(sends);
	d.processes[0].grown = 1;
	d.processes[0].grown_is_queue = true;
	d.processes[0].nbefore = 100;
	d.processes[0].nafter = 140;
	assert_int_equal(
		judge("; of goroutines 140 wait (chan send) at "
		      "main.handle main.go:12, 40 more than 2 s before, "
		      "as in a queue: older ones have ended"),
		WP_VERDICT_HEALTHY);
}

/* G waits for the lock at AVMA. */
static void set_wait(struct wp_dump_goroutine *g, uint64_t avma,
		     const char *kind)
{
	struct wp_dump_wait *wait = wp_dump_add_wait(&d);

	assert_true(g && wait);
	*wait = (struct wp_dump_wait){ .kind = text(kind),
				       .text = text("held"),
				       .avma = avma };
	g->first_wait = d.nwaits - 1;
	g->nwaits = 1;
}

/* One more goroutine waits for the lock at AVMA. */
static void add_waiter(uint64_t avma, const char *kind)
{
	set_wait(wp_dump_add_goroutine(&d), avma, kind);
	d.processes[0].ngoroutines++;
}

static void add_waiters(uint64_t avma, const char *kind)
{
	add_waiter(avma, kind);
	add_waiter(avma, kind);
}

static void those_that_wait_for_timers_may_get_more(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		/* Whether it is a timer's, a timer must say. */
		bool is_sure = way & 1, has_timer = way & 2;

		start(sends);
		d.processes[0].grown = 1;
		d.processes[0].nafter = 40;
		d.threads[0].call.timed = has_timer;
		set_wait(&d.goroutines[0], 0x40, "channel");
		wp_dump_add_wait(&d);
		d.goroutines[0].nwaits = 2;
		d.waits[1].is_timers = is_sure;
		d.waits[1].may_be_timers = true;
		assert_int_equal(judge(""), is_sure || has_timer ?
						    WP_VERDICT_HEALTHY :
						    WP_VERDICT_NO_PROGRESS);
	}
	/* Who waits for timers runs. */
	start(sends);
	d.processes[0].grown = 1;
	d.threads[0].state = WP_STATE_RUNNABLE;
	set_wait(&d.goroutines[0], 0x40, "channel");
	d.waits[0].may_be_timers = true;
	assert_int_equal(judge(""), WP_VERDICT_HEALTHY);
	/* It waits for something else. */
	start(sends);
	d.processes[0].grown = 1;
	d.threads[0].call.timed = true;
	set_wait(&d.goroutines[0], 0x40, "channel");
	assert_int_equal(judge("only get more"), WP_VERDICT_NO_PROGRESS);
}

static void a_lock_that_several_wait_for_is_named(void **state)
{
	(void)state;
	start(sends);
	add_waiters(0x20, "sync.Mutex");
	add_waiters(0x10, "sync.RWMutex");
	add_waiters(0x10, "sync.RWMutex");
	add_waiters(0x30, "channel");
	add_waiters(0x30, "channel");
	add_waiters(0x30, "channel");
	assert_int_equal(judge("; 4 goroutines wait for sync.RWMutex 0x10, "
			       "held, Go does not note by whom"),
			 WP_VERDICT_HEALTHY);
	start(sends);
	d.processes[0].grown = 2;
	add_waiters(0x20, "sync.Mutex");
	assert_int_equal(judge("; one waits for sync.Mutex 0x20, held"),
			 WP_VERDICT_NO_PROGRESS);
}

static void waiters_of_one_lock_are_found_among_others(void **state)
{
	(void)state;
	start(sends);
	for (int i = 0; i < 3; i++) {
		add_waiter(0x30, "sync.Mutex");
		add_waiter(0x10, "sync.Mutex");
		add_waiter(0x20, "sync.Mutex");
	}
	add_waiter(0x10, "sync.Mutex");
	assert_int_equal(judge("; 4 goroutines wait for sync.Mutex 0x10, held"),
			 WP_VERDICT_HEALTHY);
	/* Two are enough. */
	start(sends);
	add_waiters(0x10, "sync.Mutex");
	assert_int_equal(judge("; 2 goroutines wait for sync.Mutex 0x10, held"),
			 WP_VERDICT_HEALTHY);
}

static void a_deadlock_names_the_lock_that_one_waits_for(void **state)
{
	(void)state;
	start(locks);
	d.processes[0].goroutines_wait_inside = true;
	set_wait(&d.goroutines[0], 0x40, "sync.Mutex");
	assert_int_equal(judge("main.work main.go:12: sync.Mutex 0x40, held"),
			 WP_VERDICT_DEADLOCK);
}

static void what_was_not_read_is_said_not_to_be_judged(void **state)
{
	(void)state;
	start(sends);
	d.processes[0].nlost_goroutines = 70000;
	assert_int_equal(judge("; 70000 goroutines were not read, and so none "
			       "is judged"),
			 WP_VERDICT_HEALTHY);
}

static void one_that_is_in_gos_runtime_alone_wants_no_lock(void **state)
{
	(void)state;
	start((const char *const[]){ "runtime.gopark", "runtime.bgsweep",
				     NULL });
	d.processes[0].goroutines_wait_inside = true;
	assert_int_equal(judge("all 3 goroutines"), WP_VERDICT_NO_PROGRESS);
}

/* No thread waits for the timer that will end it. */
static void a_program_that_is_stopped_is_in_no_deadlock(void **state)
{
	(void)state;
	start(locks);
	d.processes[0].goroutines_wait_inside = true;
	d.threads[0].times.still = true;
	d.threads[0].state = WP_STATE_STOPPED;
	d.threads[0].wait = WP_WAIT_NONE;
	assert_int_equal(judge("is stopped"), WP_VERDICT_NO_PROGRESS);
	start(locks);
	d.processes[0].goroutines_wait_inside = true;
	d.threads[0].times.still = true;
	d.processes[0].hold = WP_HOLD_FROZEN;
	assert_int_equal(judge("is frozen"), WP_VERDICT_NO_PROGRESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_wants_a_lock_makes_it_a_deadlock),
		cmocka_unit_test(
			a_signal_that_one_waits_for_may_end_a_deadlock),
		cmocka_unit_test(a_program_that_is_stopped_is_in_no_deadlock),
		cmocka_unit_test(signals_and_timers_may_come),
		cmocka_unit_test(a_thread_of_c_may_call_back),
		cmocka_unit_test(a_group_that_grows_is_named),
		cmocka_unit_test(those_that_wait_for_timers_may_get_more),
		cmocka_unit_test(a_lock_that_several_wait_for_is_named),
		cmocka_unit_test(waiters_of_one_lock_are_found_among_others),
		cmocka_unit_test(what_was_not_read_is_said_not_to_be_judged),
		cmocka_unit_test(a_deadlock_names_the_lock_that_one_waits_for),
		cmocka_unit_test(
			one_that_is_in_gos_runtime_alone_wants_no_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
