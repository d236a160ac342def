/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  target_looks.h: which threads a tick looks at, and which it is to look
 * at in the next one.  What a scan tells of them is the test's: it sets the scan's
 * records, and defines wp_task_scan_*. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "../../src/sample/goroutine_times.h"
#include "../../src/sample/lock_holders.h"
#include "../../src/sample/target_looks.h"
#include "few_allocations.h"
#include "guarded.h"
#include "one_target.h"

/* Threads FIRST to FIRST + NTHREADS - 1 wait. */
enum { FIRST = 10, NTHREADS = 9, MANY = 100, MOVED_MAX = 8 };
/* Of target_looks.c. */
enum { CHILD_LOOKS = 1024 };

/* Readings of all threads. */
static unsigned int nreads;
/* The part of a tick that is tried. */
static int (*step)(struct wp_target *);
/* The scan is of the threads that moved only. */
static bool is_of_moved;

int wp_task_scan_open(struct wp_task_scan **ret, size_t nthreads,
		      struct wp_err *err)
{
	(void)nthreads;
	(void)err;
	*ret = (struct wp_task_scan *)&nreads;
	return 0;
}

int wp_task_scan_add(struct wp_task_scan *scan, pid_t pid)
{
	(void)scan;
	(void)pid;
	return 0;
}

void wp_task_scan_drop(struct wp_task_scan *scan, pid_t pid)
{
	(void)scan;
	(void)pid;
}

int wp_task_scan_read(struct wp_task_scan *scan,
		      const struct wp_task_record *const **ret, size_t *ret_n)
{
	(void)scan;
	nreads++;
	*ret = NULL;
	*ret_n = 0;
	return 0;
}

size_t wp_task_scan_lacks_room(const struct wp_task_scan *s)
{
	(void)s;
	return 0;
}

int wp_task_scan_note_switches(struct wp_task_scan *scan, bool on)
{
	(void)scan;
	return on ? -EOPNOTSUPP : 0;
}

int wp_task_scan_read_moved(struct wp_task_scan *scan,
			    const struct wp_task_record *const **ret,
			    size_t *ret_n, uint64_t *ret_switches)
{
	(void)scan;
	(void)ret;
	(void)ret_n;
	(void)ret_switches;
	return -EAGAIN;
}

void wp_task_scan_close(struct wp_task_scan *scan)
{
	(void)scan;
}

/* Thread TID waits in call NR, where it was not before. */
static void waits_in(pid_t tid, long nr, uint64_t arg)
{
	const struct wp_regs regs = fake_stack_regs(&stack);
	static uint64_t nslices = 1;

	fake_target_waits(&fake, tid, nr, arg, &regs);
	fake_target_schedstat(&fake, tid, 1000, 0, ++nslices);
}

/* Thread TID runs since the last tick. */
static void runs(pid_t tid)
{
	static uint64_t run_ns = 1000;

	fake_target_runs(&fake, tid);
	fake_target_schedstat(&fake, tid, run_ns += WP_NS_PER_MS, 0, 2);
}

/* Thread TID ends: what was open of it would be an empty file. */
static void ends(pid_t tid)
{
	wp_thread_files_close(&wp_threads_find(fake.target, tid)->files);
	fake_target_end_thread(&fake, tid);
}

static int setup(void **state)
{
	(void)state;
	fake_stack_init(&stack, fake_stack_root);
	fake_target_open(&fake);
	fake_stop.regs = fake_stack_regs(&stack);
	options = fake_target_options();
	step = wp_target_sample;
	is_of_moved = true;
	nreads = 0;
	return 0;
}

/* N threads wait, and have been looked at. */
static void start_with(pid_t n)
{
	for (pid_t tid = FIRST; tid < FIRST + n; tid++) {
		fake_target_add_thread(&fake, tid, "waiter");
		waits_in(tid, SYS_nanosleep, 0);
	}
	start_target();
	tick();
	assert_int_equal(fake.target->nthreads, n);
}

static struct wp_thread *thread(pid_t tid)
{
	return fake.target->threads[tid - FIRST];
}

/* What the looks of a tick return whose scan says that TIDS[0..N) have moved. */
static int look_rc(const pid_t *tids, size_t n)
{
	struct wp_bpf_scan *scan = &fake.sampler->scan;
	struct wp_task_record records[MOVED_MAX];
	const struct wp_task_record *v[MOVED_MAX], **moved;
	int rc;

	for (size_t i = 0; i < n; i++) {
		/* With times that no thread has: /proc is asked. */
		records[i] = (struct wp_task_record){
			.pid = fake.process.pid,
			.tid = tids[i],
			.start_ns = 1,
			.run_ns = 1,
			.slices = 1 << 20,
			.comm = "waiter",
		};
		v[i] = &records[i];
	}
	moved = guarded(v, n * sizeof(*v));
	fake_now_ns += TICK;
	fake.sampler->tick_ns = fake.sampler->region_end_ns = fake_now_ns;
	fake.target->tick++;
	scan->v = moved;
	scan->n = n;
	scan->is_of_moved = is_of_moved;
	rc = step(fake.target);
	wp_bpf_scan_forget(fake.sampler);
	guarded_free(moved, n * sizeof(*v));
	return rc;
}

static void look(const pid_t *tids, size_t n)
{
	assert_int_equal(look_rc(tids, n), 0);
}

/* The last tick looked at threads TIDS[0..N), and at no other. */
static void assert_looked_at(const pid_t *tids, size_t n)
{
	size_t nlooked = 0;

	for (size_t i = 0; i < fake.target->nthreads; i++) {
		const struct wp_thread *t = fake.target->threads[i];

		if (t->paid_tick != fake.target->tick)
			continue;
		assert_true(nlooked < n);
		assert_int_equal(t->tid, tids[nlooked++]);
	}
	assert_int_equal(nlooked, n);
}

static void assert_looked_at_all(void)
{
	for (size_t i = 0; i < fake.target->nthreads; i++)
		assert_int_equal(fake.target->threads[i]->paid_tick,
				 fake.target->tick);
}

/* The next tick is to look at TIDS[0..N), by tid. */
static void assert_restless(const pid_t *tids, size_t n)
{
	assert_int_equal(fake.target->restless.len, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(fake.target->restless.v[i], tids[i]);
}

static void a_thread_that_did_not_move_is_passed_over(void **state)
{
	static const pid_t moved[] = { 12, 17 };

	(void)state;
	start_with(NTHREADS);
	assert_restless(NULL, 0);
	look(moved, 2);
	assert_looked_at(moved, 2);
	assert_restless(NULL, 0);
	look(NULL, 0);
	assert_looked_at(NULL, 0);
	/* It is paid all the same. */
	wp_threads_settle(thread(11));
	assert_int_equal(fake_target_wall_ns(&fake, 11, WP_STATE_WAITING),
			 3 * TICK);
}

static void all_are_looked_at_where_the_scan_is_of_all(void **state)
{
	(void)state;
	start_with(NTHREADS);
	is_of_moved = false;
	look(NULL, 0);
	assert_looked_at_all();
	assert_restless(NULL, 0);
}

/* Two of eight threads are one in four. */
static void all_are_looked_at_where_one_in_four_may_have_moved(void **state)
{
	static const pid_t one[] = { 12 }, two[] = { 12, 14 }, other[] = { 14 };

	(void)state;
	start_with(8);
	look(two, 2);
	assert_looked_at_all();
	look(one, 1);
	assert_looked_at(one, 1);
	runs(12);
	look(one, 1);
	assert_looked_at(one, 1);
	assert_restless(one, 1);
	look(other, 1);
	assert_looked_at_all();
	look(NULL, 0);
	assert_looked_at(one, 1);
}

static void all_are_looked_at_once_where_one_is_new(void **state)
{
	static const pid_t moved[] = { 12 };

	(void)state;
	start_with(NTHREADS);
	fake_target_add_thread(&fake, FIRST + NTHREADS, "new");
	waits_in(FIRST + NTHREADS, SYS_nanosleep, 0);
	assert_non_null(wp_threads_find_or_add(fake.target, FIRST + NTHREADS));
	look(moved, 1);
	assert_looked_at_all();
	look(moved, 1);
	assert_looked_at(moved, 1);
}

static void all_are_looked_at_for_goroutines_and_holders_of_locks(void **state)
{
	struct wp_goroutine_times times = { 0 };

	(void)state;
	start_with(NTHREADS);
	look(NULL, 0);
	assert_looked_at(NULL, 0);
	step = wp_target_looks;
	fake.target->goroutines = &times;
	look(NULL, 0);
	fake.target->goroutines = NULL;
	assert_looked_at_all();
	look(NULL, 0);
	assert_looked_at(NULL, 0);
	assert_int_equal(wp_lock_holders_open(fake.target), 0);
	look(NULL, 0);
	assert_looked_at_all();
}

static void all_are_looked_at_where_all_are_stopped(void **state)
{
	(void)state;
	start_with(NTHREADS);
	fake.sampler->options.stop = WP_STOP_ALL;
	look(NULL, 0);
	assert_looked_at_all();
}

static void who_moved_and_who_is_restless_are_each_looked_at_once(void **state)
{
	static const struct {
		pid_t moved[4], restless[4], looked[6];
		size_t nmoved, nrestless, nlooked;
	} rows[] = {
		{ { 0 }, { 0 }, { 0 }, 0, 0, 0 },
		{ { 12 }, { 0 }, { 12 }, 1, 0, 1 },
		{ { 0 }, { 12 }, { 12 }, 0, 1, 1 },
		{ { 12 }, { 12 }, { 12 }, 1, 1, 1 },
		{ { 12 }, { 30 }, { 12, 30 }, 1, 1, 2 },
		{ { 30 }, { 12 }, { 12, 30 }, 1, 1, 2 },
		{ { 12, 15, 20 },
		  { 11, 15, 30 },
		  { 11, 12, 15, 20, 30 },
		  3,
		  3,
		  5 },
		{ { 12, 15, 30 },
		  { 13, 15, 20 },
		  { 12, 13, 15, 20, 30 },
		  3,
		  3,
		  5 },
		/* Two of them are no threads. */
		{ { 9, 12 }, { 11, 900 }, { 11, 12 }, 2, 2, 2 },
	};

	(void)state;
	start_with(40);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_tids was;
		size_t n = rows[i].nrestless, size = n * sizeof(pid_t);
		uint64_t before;

		/* All are paid up to here. */
		fake.target->has_new = true;
		look(NULL, 0);
		assert_looked_at_all();
		before = fake.profile.counters.unchanged;
		was = fake.target->restless;
		fake.target->restless = (struct wp_tids){
			guarded(rows[i].restless, size), n, n
		};
		look(rows[i].moved, rows[i].nmoved);
		guarded_free(fake.target->was_restless.v, size);
		fake.target->was_restless = was;
		assert_looked_at(rows[i].looked, rows[i].nlooked);
		assert_int_equal(fake.profile.counters.unchanged - before,
				 rows[i].nlooked);
		assert_restless(NULL, 0);
	}
}

static void a_thread_that_runs_is_looked_at_until_it_waits(void **state)
{
	static const pid_t first[] = { 12, 16 }, both[] = { 12, 14 },
			   one[] = { 12 };

	(void)state;
	start_with(20);
	runs(12);
	look(first, 2);
	assert_looked_at(first, 2);
	assert_restless(one, 1);
	runs(14);
	look(&both[1], 1);
	assert_looked_at(both, 2);
	assert_restless(both, 2);
	waits_in(14, SYS_nanosleep, 0);
	look(NULL, 0);
	assert_looked_at(both, 2);
	assert_restless(one, 1);
	waits_in(12, SYS_nanosleep, 0);
	look(NULL, 0);
	assert_looked_at(one, 1);
	assert_restless(NULL, 0);
	look(NULL, 0);
	assert_looked_at(NULL, 0);
}

/* From the first look on that finds it so, whatever it waited for before: and no more
 * once it has been looked at so often. */
static void who_waits_for_a_child_is_looked_at_for_long(void **state)
{
	static const pid_t one[] = { 12 };

	(void)state;
	start_with(NTHREADS);
	for (int wait = 0; wait < 2; wait++) {
		waits_in(12, SYS_wait4, (uint64_t)-1);
		look(one, 1);
		assert_restless(one, 1);
		assert_int_equal(thread(12)->wait.key.wait, WP_WAIT_CHILD);
		for (int i = 0; i < 3; i++) {
			look(NULL, 0);
			assert_looked_at(one, 1);
			assert_restless(one, 1);
		}
		thread(12)->wait.child_looks = CHILD_LOOKS - 2;
		look(NULL, 0);
		assert_restless(one, 1);
		look(NULL, 0);
		assert_looked_at(one, 1);
		assert_restless(NULL, 0);
		look(NULL, 0);
		assert_looked_at(NULL, 0);
	}
	/* A wait for something else is passed over at once. */
	waits_in(12, SYS_wait4, (uint64_t)-1);
	look(one, 1);
	assert_restless(one, 1);
	waits_in(12, SYS_nanosleep, 0);
	look(one, 1);
	assert_looked_at(one, 1);
	assert_restless(NULL, 0);
}

/* Where threads are not sampled they are looked at for the scheduler's books. */
static void only_who_owes_cpu_samples_is_restless_without_samples(void **state)
{
	static const pid_t one[] = { 12 };

	(void)state;
	start_with(NTHREADS);
	step = wp_target_looks;
	fake.target->samples_threads = false;
	is_of_moved = false;
	thread(12)->time.cpu_count = 1;
	look(NULL, 0);
	assert_restless(one, 1);
	thread(12)->time.cpu_count = 0;
	look(NULL, 0);
	assert_restless(NULL, 0);
}

static void who_is_to_be_stopped_is_restless_in_any_case(void **state)
{
	static const pid_t both[] = { 12, 14 };

	(void)state;
	start_with(NTHREADS);
	step = wp_target_looks;
	fake.target->has_new = true;
	thread(12)->stop.listed = true;
	thread(14)->stop.pending = true;
	assert_int_equal(
		wp_tracer_interrupt(&fake.tracer, 14, (uintptr_t)thread(14)),
		0);
	look(NULL, 0);
	assert_restless(both, 2);
	look(NULL, 0);
	assert_looked_at(both, 2);
	thread(12)->stop.listed = false;
	thread(14)->stop.pending = false;
	wp_tracer_release(&fake.tracer, &fake.tracer.v[0]);
	look(NULL, 0);
	assert_looked_at(both, 2);
	assert_restless(NULL, 0);
}

/* Its name may come to be wanted. */
static void who_is_not_watched_is_restless_in_any_case(void **state)
{
	static const pid_t one[] = { FIRST + NTHREADS };
	struct wp_thread *t;
	uint32_t before;

	(void)state;
	options.thread_globs[0] = "w*";
	start_with(NTHREADS);
	fake_target_add_thread(&fake, *one, "idle");
	t = wp_threads_find_or_add(fake.target, *one);
	assert_false(t->watched);
	for (int samples = 0; samples < 2; samples++) {
		fake.target->samples_threads = samples;
		before = t->nsamples;
		look(NULL, 0);
		assert_int_equal(t->nsamples, before + 1);
		assert_restless(one, 1);
		look(NULL, 0);
		assert_int_equal(t->nsamples, before + 2);
		assert_looked_at(NULL, 0);
		assert_restless(one, 1);
	}
	assert_int_equal(fake.profile.counters.samples_lost, 0);
}

static void a_thread_that_has_ended_is_paid_and_let_go(void **state)
{
	static const pid_t moved[] = { 12, 13 }, others[] = { 13 };

	(void)state;
	start_with(40);
	ends(12);
	look(moved, 2);
	assert_int_equal(fake.target->nthreads, 39);
	assert_null(wp_threads_find(fake.target, 12));
	assert_looked_at(others, 1);
	assert_restless(NULL, 0);
	assert_int_equal(fake.target->nended, 1);
	assert_int_equal(wp_target_end_tick(fake.target), 0);
	assert_int_equal(fake.target->nended, 0);
	/* Its time is that of the tick before. */
	assert_int_equal(fake_target_wall_ns(&fake, 12, WP_STATE_WAITING),
			 TICK);
	ends(13);
	ends(FIRST + 39);
	is_of_moved = false;
	look(NULL, 0);
	assert_int_equal(fake.target->nthreads, 37);
	assert_null(wp_threads_find(fake.target, 13));
	assert_looked_at_all();
	assert_restless(NULL, 0);
	assert_int_equal(fake_target_wall_ns(&fake, 11, WP_STATE_WAITING),
			 3 * TICK);
}

static int step_whole(struct wp_target *target)
{
	int rc = wp_target_begin_tick(target);

	/* It counts the tick, as the test has. */
	target->tick--;
	return rc ? rc : wp_target_sample(target);
}

/* As many threads as before: the first time it is met a tick later. */
static void
a_thread_that_takes_the_place_of_another_is_looked_at_at_once(void **state)
{
	(void)state;
	start_with(NTHREADS);
	step = step_whole;
	is_of_moved = false;
	for (pid_t old = 12; old < 16; old++) {
		pid_t new = old + NTHREADS;

		ends(old);
		fake_target_add_thread(&fake, new, "next");
		waits_in(new, SYS_nanosleep, 0);
		look(NULL, 0);
		assert_null(wp_threads_find(fake.target, old));
		if (old > 12)
			assert_int_equal(
				wp_threads_find(fake.target, new)->paid_tick,
				fake.target->tick);
		assert_int_equal(wp_target_end_tick(fake.target), 0);
	}
	look(NULL, 0);
	assert_non_null(wp_threads_find(fake.target, 12 + NTHREADS));
	/* They have run for 1 us. */
	assert_int_equal(
		fake_target_wall_ns(&fake, 13 + NTHREADS, WP_STATE_WAITING),
		4 * TICK - 1000);
	assert_int_equal(
		fake_target_wall_ns(&fake, 15 + NTHREADS, WP_STATE_WAITING),
		2 * TICK - 1000);
}

/* Only who starts it has been on a CPU. */
static void a_thread_that_waits_for_its_first_cpu_is_met(void **state)
{
	static const pid_t moved[] = { 12 };
	const pid_t new = FIRST + NTHREADS;

	(void)state;
	start_with(NTHREADS);
	step = step_whole;
	look(moved, 1);
	fake_target_add_thread(&fake, new, "next");
	fake_target_runs(&fake, new);
	fake_target_schedstat(&fake, new, 0, TICK, 0);
	look(NULL, 0);
	assert_null(wp_threads_find(fake.target, new));
	look(moved, 1);
	assert_non_null(wp_threads_find(fake.target, new));
}

static void a_look_that_failed_is_counted(void **state)
{
	static const pid_t moved[] = { 12, 13 };

	(void)state;
	start_with(NTHREADS);
	assert_int_equal(fake.profile.counters.samples_lost, 0);
	waits_in(12, SYS_nanosleep, 0);
	fake_target_write(&fake, 12, "syscall", "what?\n");
	look(moved, 2);
	assert_looked_at(moved, 2);
	assert_int_equal(fake.profile.counters.samples_lost, 1);
}

/* No wait can be queued where two threads run that wait now. */
static void looks_without_memory_end_the_tick(void **state)
{
	static const pid_t both[] = { 12, 14 }, one[] = { 12 };

	(void)state;
	start_with(NTHREADS);
	for (int all = 0; all < 2; all++) {
		struct wp_wait_queue *queue = &fake.target->wait_queue;

		runs(12);
		runs(14);
		look(both, 2);
		assert_restless(both, 2);
		waits_in(12, SYS_nanosleep, 0);
		waits_in(14, SYS_nanosleep, 0);
		fake.target->has_new = all;
		queue->n = queue->cap;
		assert_int_equal(look_rc(NULL, 0), -ENOMEM);
		queue->n = 0;
		if (!all)
			assert_looked_at(one, 1);
		assert_true(thread(14)->paid_tick < fake.target->tick);
		look(both, 2);
	}
}

#ifdef CAN_FAIL
static int look_without_memory(const pid_t *tids, size_t n)
{
	int rc;

	/* What comes after the looks has no memory either. */
	step = wp_target_looks;
	allocations_left = 0;
	rc = look_rc(tids, n);
	allocations_left = -1;
	return rc;
}

static void no_room_for_who_is_restless_is_an_error(void **state)
{
	static const pid_t one[] = { 12 };

	(void)state;
	start_with(NTHREADS);
	/* There is room for all before the first that is restless. */
	free(fake.target->restless.v);
	fake.target->restless = fake.target->was_restless = (struct wp_tids){
		0
	};
	assert_int_equal(look_without_memory(one, 1), -ENOMEM);
	assert_int_equal(look_without_memory(one, 1), -ENOMEM);
	look(one, 1);
	assert_true(fake.target->restless.cap >= 2 * NTHREADS);
}

static void no_room_for_who_has_ended_is_an_error(void **state)
{
	static const pid_t one[] = { 12 };

	(void)state;
	start_with(NTHREADS);
	assert_int_equal(fake.target->cap_ended, 0);
	ends(12);
	assert_int_equal(look_without_memory(one, 1), -ENOMEM);
	is_of_moved = false;
	assert_int_equal(look_without_memory(one, 1), -ENOMEM);
	assert_int_equal(fake.target->nthreads, NTHREADS);
}
#endif

/* Nor is its place read. */
static void no_thread_behind_the_last_is_fetched(void **state)
{
	struct wp_thread **threads;
	size_t size;

	(void)state;
	start_with(NTHREADS);
	threads = fake.target->threads;
	size = NTHREADS * sizeof(struct wp_thread *);
	fake.target->threads = guarded(threads, size);
	fake.target->has_new = true;
	look(NULL, 0);
	assert_looked_at_all();
	guarded_free(fake.target->threads, size);
	fake.target->threads = threads;
}

/* In a tick with --stop=all, N threads wait where they did not before. */
static void look_at_instant(pid_t n)
{
	for (pid_t tid = FIRST; tid < FIRST + n; tid++)
		waits_in(tid, SYS_nanosleep, 0);
	nreads = 0;
	look(NULL, 0);
	assert_looked_at_all();
	for (pid_t tid = FIRST; tid < FIRST + n; tid++)
		assert_true(thread(tid)->wait.waiting);
}

/* To read all threads pays where more than one in a hundred was put off. */
static void threads_that_were_put_off_are_scanned_again_if_many(void **state)
{
	(void)state;
	is_of_moved = false;
	options.stop = WP_STOP_ALL;
	start_with(MANY);
	fake.sampler->scan.scan = (struct wp_task_scan *)&nreads;
	look_at_instant(0);
	assert_int_equal(nreads, 0);
	look_at_instant(1);
	assert_int_equal(nreads, 0);
	look_at_instant(2);
	assert_int_equal(nreads, 1);
	/* None is loaded while threads are held, though a stack wants a register. */
	fake.sampler->scan.scan = NULL;
	fake.sampler->options.scan = WP_SCAN_AUTO;
	fake.sampler->scan.wants_regs = true;
	look_at_instant(2);
	assert_false(fake.sampler->scan.tried);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_thread_that_did_not_move_is_passed_over),
		TEST(all_are_looked_at_where_the_scan_is_of_all),
		TEST(all_are_looked_at_where_one_in_four_may_have_moved),
		TEST(all_are_looked_at_once_where_one_is_new),
		TEST(all_are_looked_at_for_goroutines_and_holders_of_locks),
		TEST(all_are_looked_at_where_all_are_stopped),
		TEST(who_moved_and_who_is_restless_are_each_looked_at_once),
		TEST(a_thread_that_runs_is_looked_at_until_it_waits),
		TEST(who_waits_for_a_child_is_looked_at_for_long),
		TEST(only_who_owes_cpu_samples_is_restless_without_samples),
		TEST(who_is_to_be_stopped_is_restless_in_any_case),
		TEST(who_is_not_watched_is_restless_in_any_case),
		TEST(a_thread_that_has_ended_is_paid_and_let_go),
		TEST(a_thread_that_takes_the_place_of_another_is_looked_at_at_once),
		TEST(a_thread_that_waits_for_its_first_cpu_is_met),
		TEST(a_look_that_failed_is_counted),
		TEST(looks_without_memory_end_the_tick),
#ifdef CAN_FAIL
		TEST(no_room_for_who_is_restless_is_an_error),
		TEST(no_room_for_who_has_ended_is_an_error),
#endif
		TEST(no_thread_behind_the_last_is_fetched),
		TEST(threads_that_were_put_off_are_scanned_again_if_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
