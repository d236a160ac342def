/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  goroutine_times.h, goroutine_kept.h: each goroutine gets the time
 * between two looks, in the state that it is found in, and no nanosecond twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "../../src/sample/goroutine_kept.h"
#include "../../src/sample/stack_walk.h"
#include "one_target.h"

#include "go_target_maker.h"

enum {
	TID = 77,
	/* Of Go's runtime. */
	RUNS = 2,
	CALLS = 3,
	WAITS = 4,
	READY = 1,
	ENDED = 6,
	MACHINE = 48,
	STATUS = 144,
	SEQ = 191,
};

/* How much of a wait that holds is exact.  The end of the made stack is told by the code of
 * x86-64's goexit: elsewhere it is read again at each look. */
#if defined(__x86_64__)
#define EXACT(ns) (ns)
#else
#define EXACT(ns) 0
#endif

static struct wp_goroutine_times *times;
static struct wp_thread *t;

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, TID, "worker");
	options = fake_target_options();
	options.goroutines = options.goroutine_ids = true;
	made_go_init(&made);
	made_goexit();
	return 0;
}

/* The target runs the made program from now on. */
static void start(void)
{
	start_target();
	t = wp_threads_find_or_add(fake.target, TID);
	assert_non_null(t);
	made_target_show();
	fake.target->go_is_none = false;
	fake.sampler->tick_ns = fake_now_ns;
	assert_int_equal(wp_goroutine_kept_open(fake.target), 0);
	times = fake.target->goroutines;
	assert_non_null(times);
}

/* NS pass, then there is a look. */
static void look_after(uint64_t ns)
{
	made_target_update();
	fake_now_ns += ns;
	fake.sampler->tick_ns = fake.target->last_tick_ns = fake_now_ns;
	assert_int_equal(wp_goroutine_times_tick(fake.target), 0);
	assert_ptr_equal(fake.target->goroutines, times);
}

static void set_status(size_t i, uint32_t status)
{
	made_put(made_g(&made, i, STATUS), 0, status, 4);
	++*made_g(&made, i, SEQ);
}

/* It is parked: it waits, and has no thread. */
static void park(size_t i)
{
	set_status(i, WAITS);
	made_put(made_g(&made, i, MACHINE), 0, 0, 8);
}

static const struct wp_sample_set *wall(void)
{
	return &fake.profile.sets[WP_PROFILE_WALL];
}

/* Of goroutine ID, which runs or has another entry than others, in STATE. */
static struct wp_profile_sample sum_of(uint64_t id, enum wp_state state)
{
	struct wp_profile_sample sum = { .count = 0 };

	for (uint32_t i = 0; i < wall()->nsamples; i++) {
		const struct wp_profile_sample *s = &wall()->samples[i];

		if (s->key.state != state ||
		    fake.profile.threads[s->key.thread].goroutine != id)
			continue;
		sum.key = s->key;
		sum.wall_ns += s->wall_ns;
		sum.exact_ns += s->exact_ns;
		sum.weight_ns += s->weight_ns;
		sum.looks += s->looks;
	}
	return sum;
}

/* Goroutine ID has been in STATE for NS, of which EXACT are known exactly. */
static void assert_time(uint64_t id, enum wp_state state, uint64_t ns,
			uint64_t exact)
{
	struct wp_profile_sample sum = sum_of(id, state);

	assert_int_equal(sum.wall_ns, ns);
	assert_int_equal(sum.exact_ns, exact);
	/* The rest of it looks divide. */
	assert_int_equal(sum.exact_ns + sum.weight_ns,
			 state == WP_STATE_RUNNABLE ? sum.weight_ns : ns);
}

static uint64_t all_ns(void)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < wall()->nsamples; i++)
		ns += wall()->samples[i].wall_ns;
	return ns;
}

static const char *string(uint32_t id)
{
	return wp_profile_str(&fake.profile, id);
}

/* A stack of main.main that begins with ROOT, as far as END. */
static uint32_t stack_that_ends(uint64_t root, enum wp_stack_end end)
{
	struct wp_frame frames[] = { { .pc_avma = MADE_MAIN + 0x10 },
				     { .pc_avma = root + 2,
				       .flags = WP_FRAME_RETURN } };
	const struct wp_stack two = { .frames = frames,
				      .depth = 2,
				      .end = end };

	return wp_profile_add_stack(&fake.profile, &two, 0);
}

static uint32_t stack_from(uint64_t root)
{
	return stack_that_ends(root, WP_END_ROOT);
}

static void each_gets_the_time_since_the_last_look(void **state)
{
	(void)state;
	start();
	look_after(TICK);
	assert_time(1, WP_STATE_WAITING, TICK, 0);
	assert_time(2, WP_STATE_RUNNING, TICK, 0);
	assert_time(3, WP_STATE_WAITING, TICK, 0);
	/* The fourth has ended. */
	assert_int_equal(all_ns(), 3 * TICK);
	look_after(3 * TICK);
	/* In its wait all the time. */
	assert_time(1, WP_STATE_WAITING, 4 * TICK, EXACT(3 * TICK));
	assert_time(2, WP_STATE_RUNNING, 4 * TICK, 0);
	assert_int_equal(all_ns(), 12 * TICK);
	assert_int_equal(sum_of(1, WP_STATE_WAITING).looks, 2);
	look_after(0);
	assert_int_equal(all_ns(), 12 * TICK);
	assert_int_equal(sum_of(1, WP_STATE_WAITING).looks, 2);
}

static void a_wait_is_told_in_gos_words(void **state)
{
	struct wp_sample_key key;

	(void)state;
	start();
	look_after(TICK);
	key = sum_of(1, WP_STATE_WAITING).key;
	assert_int_equal(key.wait, WP_WAIT_GO);
	assert_string_equal(string(key.syscall), "IO wait");
	assert_int_equal(wp_profile_frame(&fake.profile,
					  &fake.profile.stacks[key.stack], 0)
				 ->pc_avma,
			 MADE_GOEXIT);
	key = sum_of(2, WP_STATE_RUNNING).key;
	assert_int_equal(key.wait, WP_WAIT_NONE);
	assert_int_equal(key.syscall, 0);
}

static void one_that_has_moved_is_read_again(void **state)
{
	(void)state;
	start();
	look_after(TICK);
	/* It ran, and waits again, for something else. */
	set_status(0, WAITS);
	*made_g(&made, 0, 176) = 3;
	look_after(TICK);
	assert_time(1, WP_STATE_WAITING, 2 * TICK, 0);
	assert_string_equal(string(sum_of(1, WP_STATE_WAITING).key.syscall),
			    "chan receive");
	set_status(0, READY);
	look_after(TICK);
	assert_time(1, WP_STATE_RUNNABLE, TICK, 0);
	assert_int_equal(sum_of(1, WP_STATE_RUNNABLE).key.syscall, 0);
	look_after(TICK);
	/* A goroutine in the run queue is found in it, not known to be. */
	assert_time(1, WP_STATE_RUNNABLE, 2 * TICK, 0);
	assert_int_equal(all_ns(), 4 * 3 * TICK);
}

static void one_that_ends_and_one_that_begins(void **state)
{
	(void)state;
	start();
	look_after(TICK);
	set_status(0, ENDED);
	set_status(3, WAITS);
	look_after(TICK);
	assert_time(1, WP_STATE_WAITING, TICK, 0);
	assert_time(4, WP_STATE_WAITING, TICK, 0);
	assert_int_equal(all_ns(), 6 * TICK);
	/* Its struct is used again. */
	made_goroutine(&made, 0, WAITS);
	made_put(made_g(&made, 0, 152), 0, 9, 8);
	made_put(made_g(&made, 0, 64), 0, MADE_GOEXIT, 8);
	look_after(TICK);
	assert_time(1, WP_STATE_WAITING, TICK, 0);
	assert_time(9, WP_STATE_WAITING, TICK, 0);
}

static void one_that_runs_has_its_threads_stack(void **state)
{
	(void)state;
	start();
	t->last_running_stack = stack_from(MADE_GOEXIT);
	look_after(TICK);
	assert_int_equal(sum_of(2, WP_STATE_RUNNING).key.stack,
			 t->last_running_stack);
	assert_int_equal(fake.profile.threads[t->goroutine_entry].goroutine, 2);
	/* It waits, and its thread runs none. */
	park(1);
	look_after(TICK);
	assert_int_equal(t->goroutine_entry, UINT32_MAX);
}

/* Go knows of no wait for a CPU: the books of the thread do. */
static void one_that_runs_waits_for_a_cpu_as_its_thread_does(void **state)
{
	(void)state;
	start();
	t->last_running_stack = stack_from(MADE_GOEXIT);
	t->time.all_running_ns += TICK / 4;
	t->time.all_runnable_ns += TICK - TICK / 4;
	look_after(TICK);
	assert_int_equal(sum_of(2, WP_STATE_RUNNING).wall_ns, TICK / 4);
	assert_int_equal(sum_of(2, WP_STATE_RUNNABLE).wall_ns, TICK - TICK / 4);
	assert_int_equal(sum_of(2, WP_STATE_RUNNABLE).key.stack,
			 t->last_running_stack);
	/* A look is one, and all of what it gives. */
	assert_int_equal(sum_of(2, WP_STATE_RUNNING).looks, 1);
	assert_int_equal(sum_of(2, WP_STATE_RUNNABLE).looks, 0);
	assert_int_equal(all_ns(), 3 * TICK);
	/* In a call as well, where it does not wait. */
	set_status(1, CALLS);
	t->time.all_runnable_ns += TICK;
	look_after(TICK);
	assert_int_equal(sum_of(2, WP_STATE_RUNNABLE).wall_ns,
			 2 * TICK - TICK / 4);
	assert_int_equal(sum_of(2, WP_STATE_RUNNABLE).looks, 1);
	assert_int_equal(all_ns(), 6 * TICK);
}

/* As the garbage collector's workers do, which mark on their threads' own stacks. */
static void one_that_waits_on_a_thread_runs(void **state)
{
	(void)state;
	start();
	t->last_running_stack = stack_from(MADE_GOEXIT);
	set_status(1, WAITS);
	look_after(TICK);
	look_after(TICK);
	assert_time(2, WP_STATE_RUNNING, 2 * TICK, 0);
	assert_int_equal(fake.profile.threads[t->goroutine_entry].goroutine, 2);
	park(1);
	look_after(TICK);
	assert_time(2, WP_STATE_RUNNING, 2 * TICK, 0);
	assert_time(2, WP_STATE_WAITING, TICK, 0);
}

/* The thread was sampled before the look, while it looked for work. */
static void the_schedulers_stack_is_not_a_goroutines(void **state)
{
	uint32_t stack_of_it;

	(void)state;
	start();
	t->last_running_stack = stack_from(MADE_MAIN);
	look_after(TICK);
	stack_of_it = sum_of(2, WP_STATE_RUNNING).key.stack;
	assert_int_equal(fake.profile.stacks[stack_of_it].depth, 0);
	assert_int_equal(fake.profile.stacks[stack_of_it].end, WP_END_EMPTY);
}

/* Its outermost frame is not its first. */
static void a_stack_that_is_cut_may_be_a_goroutines(void **state)
{
	(void)state;
	start();
	t->last_running_stack = stack_that_ends(MADE_MAIN, WP_END_BEYOND_COPY);
	look_after(TICK);
	assert_int_equal(sum_of(2, WP_STATE_RUNNING).key.stack,
			 t->last_running_stack);
}

/* C code, which Go calls on the thread's own stack. */
static void a_stack_of_c_code_may_be_a_goroutines(void **state)
{
	(void)state;
	start();
	t->last_running_stack = stack_from(0x1000);
	look_after(TICK);
	assert_int_equal(sum_of(2, WP_STATE_RUNNING).key.stack,
			 t->last_running_stack);
}

static void one_in_a_call_waits_as_its_thread_does(void **state)
{
	(void)state;
	start();
	t->wait.waiting = true;
	t->wait.key = (struct wp_sample_key){ .stack = stack_from(MADE_GOEXIT),
					      .thread = t->index,
					      .state = WP_STATE_WAITING,
					      .wait = WP_WAIT_SOCKET };
	/* One that runs does not. */
	look_after(TICK);
	assert_time(2, WP_STATE_RUNNING, TICK, 0);
	set_status(1, CALLS);
	look_after(TICK);
	assert_time(2, WP_STATE_WAITING, TICK, 0);
	assert_int_equal(sum_of(2, WP_STATE_WAITING).key.wait, WP_WAIT_SOCKET);
	assert_int_equal(sum_of(2, WP_STATE_WAITING).key.stack,
			 t->wait.key.stack);
	/* The thread has gone on, in C code: the goroutine runs. */
	t->wait.waiting = false;
	look_after(TICK);
	assert_time(2, WP_STATE_RUNNING, 2 * TICK, 0);
	assert_int_equal(all_ns(), 9 * TICK);
}

/* Go knows of no page fault, and of nothing that holds all threads: it says that they
 * run. */
static void one_that_runs_waits_for_a_page_as_its_thread_does(void **state)
{
	static const enum wp_wait waits[] = { WP_WAIT_PAGE_FAULT,
					      WP_WAIT_MMAP_LOCK, WP_WAIT_FROZEN,
					      WP_WAIT_CORE_DUMP };

	(void)state;
	start();
	t->wait.waiting = true;
	t->time.all_runnable_ns = TICK;
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		t->wait.key = (struct wp_sample_key){
			.stack = stack_from(MADE_GOEXIT),
			.thread = t->index,
			.state = WP_STATE_WAITING,
			.wait = (uint8_t)waits[i]
		};
		look_after(TICK);
		assert_time(2, WP_STATE_WAITING, (i + 1) * TICK, 0);
		assert_int_equal(sum_of(2, WP_STATE_WAITING).key.wait,
				 waits[i]);
	}
	assert_int_equal(sum_of(2, WP_STATE_WAITING).key.stack,
			 t->wait.key.stack);
	/* The scheduler did before it ran the goroutine. */
	t->wait.key.stack = stack_from(MADE_MAIN);
	look_after(TICK);
	assert_time(2, WP_STATE_WAITING, 4 * TICK, 0);
	assert_int_equal(all_ns(), 5 * 3 * TICK);
}

static void one_in_a_call_of_an_unknown_thread_waits(void **state)
{
	(void)state;
	start();
	made_put(made.memory, MADE_M + 72, 78, 8);
	set_status(1, CALLS);
	look_after(TICK);
	assert_time(2, WP_STATE_WAITING, TICK, 0);
}

/* Two levels of PID namespaces: the program's number is told by status. */
static void a_thread_is_found_by_its_number_in_a_container(void **state)
{
	(void)state;
	fake_target_write(&fake, 0, "status", "NSpid:\t100\t5\n");
	fake_target_add_thread(&fake, 79, "other");
	fake_target_write(&fake, TID, "status", "NSpid:\t77\t12\n");
	fake_target_write(&fake, 79, "status", "NSpid:\t79\t77\n");
	start();
	assert_int_equal(times->level, 1);
	assert_non_null(wp_threads_find_or_add(fake.target, 79));
	assert_ptr_equal(wp_goroutine_kept_thread(times, 77),
			 wp_threads_find(fake.target, 79));
	assert_ptr_equal(wp_goroutine_kept_thread(times, 12), t);
	assert_null(wp_goroutine_kept_thread(times, 5));
	assert_null(wp_goroutine_kept_thread(times, 0));
	assert_null(wp_goroutine_kept_thread(times, -1));
}

/* After the last look the program ended: until then all went on. */
static void the_end_is_paid(void **state)
{
	(void)state;
	start();
	look_after(TICK);
	set_status(0, ENDED);
	look_after(TICK);
	fake.target->last_tick_ns += TICK / 2;
	assert_int_equal(wp_goroutine_times_finish(fake.target), 0);
	assert_int_equal(all_ns(), 5 * TICK);
	fake.target->gone = true;
	assert_int_equal(wp_goroutine_times_finish(fake.target), 0);
	assert_int_equal(all_ns(), 5 * TICK + 2 * (TICK / 2));
	/* Once. */
	assert_int_equal(wp_goroutine_times_finish(fake.target), 0);
	assert_int_equal(all_ns(), 5 * TICK + 2 * (TICK / 2));
	fake.target->gone = false;
}

static uint64_t cpu_of(uint64_t id)
{
	for (uint32_t i = 0; i < fake.profile.nthreads; i++)
		if (fake.profile.threads[i].goroutine == id &&
		    fake.profile.threads[i].part)
			return fake.profile.threads[i].cpu_ns;
	return UINT64_MAX;
}

static void cpu_time_goes_by_running_time(void **state)
{
	(void)state;
	start();
	look_after(TICK);
	park(1);
	set_status(2, RUNS);
	look_after(3 * TICK);
	times->cpu_ns = 800;
	assert_int_equal(wp_goroutine_times_finish(fake.target), 0);
	assert_int_equal(cpu_of(1), 0);
	assert_int_equal(cpu_of(2), 200);
	assert_int_equal(cpu_of(3), 600);
}

static void cpu_time_goes_by_cpu_samples_where_there_are_any(void **state)
{
	struct wp_sample_key key;

	(void)state;
	start();
	look_after(TICK);
	key = sum_of(1, WP_STATE_WAITING).key;
	key.state = WP_STATE_RUNNING;
	assert_int_equal(wp_profile_add_cpu(&fake.profile, &key, 1, 30), 0);
	key.thread = sum_of(3, WP_STATE_WAITING).key.thread;
	assert_int_equal(wp_profile_add_cpu(&fake.profile, &key, 1, 10), 0);
	/* One of a thread is not theirs. */
	key.thread = t->index;
	assert_int_equal(wp_profile_add_cpu(&fake.profile, &key, 1, 1000), 0);
	times->cpu_ns = 80;
	assert_int_equal(wp_goroutine_times_finish(fake.target), 0);
	assert_int_equal(cpu_of(1), 60);
	assert_int_equal(cpu_of(2), 0);
	assert_int_equal(cpu_of(3), 20);
	assert_int_equal(fake.profile.threads[t->index].cpu_ns, 0);
}

/* CPU samples told more than the scheduler: less than nothing is left. */
static void cpu_time_below_nothing_is_none(void **state)
{
	(void)state;
	start();
	look_after(TICK);
	times->cpu_ns = UINT64_MAX - 5;
	assert_int_equal(wp_goroutine_times_finish(fake.target), 0);
	assert_int_equal(cpu_of(2), 0);
}

static void looks_that_cost_too_much_are_put_off(void **state)
{
	(void)state;
	start();
	look_after(TICK);
	/* 200 ms are free, and a quarter of the time since. */
	times->cost_ns = 200 * WP_NS_PER_MS + TICK / 2;
	look_after(TICK);
	assert_int_equal(times->nput_off, 0);
	times->cost_ns = 200 * WP_NS_PER_MS + 3 * (TICK / 4) + 1;
	look_after(TICK);
	assert_int_equal(times->nput_off, 1);
	assert_int_equal(all_ns(), 6 * TICK);
	/* The next look has the time of both. */
	look_after(TICK);
	assert_int_equal(times->nput_off, 1);
	assert_int_equal(all_ns(), 12 * TICK);
	/* The last one is made at any cost. */
	times->cost_ns = WP_NS_PER_S;
	fake.sampler->finishing = true;
	look_after(TICK);
	assert_int_equal(all_ns(), 15 * TICK);
}

static uint64_t all_cpu_ns(void)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < fake.profile.nthreads; i++)
		ns += fake.profile.threads[i].cpu_ns;
	return ns;
}

static const char *source(void)
{
	assert_int_equal(wp_goroutine_times_finish(fake.target), 0);
	return string(fake.profile.meta.source[WP_PROFILE_WALL]);
}

/* Nothing can be read of the program any more. */
static void lose_memory(void)
{
	fake.process.pid = fake.process.reader_tid = 0x7ffffff0;
}

static void tick_at_the_end(void)
{
	fake_now_ns += TICK;
	fake.sampler->tick_ns = fake_now_ns;
	assert_int_equal(wp_goroutine_times_tick(fake.target), 0);
	fake.target->last_tick_ns = fake_now_ns;
}

/* It has executed another program: its threads are recorded from now on. */
static void memory_that_has_gone_ends_the_looks(void **state)
{
	const pid_t own = fake.process.pid;

	(void)state;
	start();
	look_after(TICK);
	times->cpu_ns = 800;
	lose_memory();
	tick_at_the_end();
	fake.process.pid = fake.process.reader_tid = own;
	assert_null(fake.target->goroutines);
	/* Up to now they went on. */
	assert_int_equal(all_ns(), 6 * TICK);
	assert_int_equal(cpu_of(2), 800);
	assert_string_equal(
		source(),
		"goroutines of go1.22.3, looked at 100 times a second");
	/* The map was read again: it is not that of the made program. */
	assert_true(fake.target->space.view.len > 1);
}

/* Its memory goes some time before its last thread does. */
static void a_program_that_ends_keeps_its_goroutines(void **state)
{
	const pid_t own = fake.process.pid;
	char path[128];

	(void)state;
	start();
	look_after(TICK);
	lose_memory();
	snprintf(path, sizeof(path), "%s/maps", fake.dir);
	assert_int_equal(unlink(path), 0);
	fake_target_write(&fake, 0, "maps", "");
	fake_target_write(&fake, TID, "maps", "");
	tick_at_the_end();
	assert_ptr_equal(fake.target->goroutines, times);
	assert_int_equal(all_ns(), 6 * TICK);
	/* Its threads cost CPU time yet. */
	times->cpu_ns = 800;
	tick_at_the_end();
	assert_int_equal(wp_goroutine_kept_open(fake.target), 0);
	assert_ptr_equal(fake.target->goroutines, times);
	fake.target->last_tick_ns += TICK;
	fake.target->gone = true;
	assert_int_equal(strncmp(source(), "goroutines of", 13), 0);
	assert_int_equal(all_ns(), 12 * TICK);
	assert_int_equal(cpu_of(2), 800);
	fake.target->gone = false;
	fake.process.pid = fake.process.reader_tid = own;
}

/* The list of the program before may still be mapped. */
static void another_program_ends_the_looks(void **state)
{
	(void)state;
	start();
	look_after(TICK);
	times->cpu_ns = 800;
	fake.target->space.nexecs++;
	tick_at_the_end();
	assert_null(fake.target->goroutines);
	assert_int_equal(all_ns(), 6 * TICK);
	assert_int_equal(cpu_of(2), 800);
	/* Its own goroutines are others, though they have the same numbers. */
	assert_int_equal(wp_goroutine_kept_open(fake.target), 0);
	times = fake.target->goroutines;
	assert_non_null(times);
	look_after(TICK);
	assert_int_equal(all_ns(), 9 * TICK);
	times->cpu_ns = 50;
	assert_int_equal(wp_goroutine_times_finish(fake.target), 0);
	assert_int_equal(cpu_of(2), 800);
	assert_int_equal(all_cpu_ns(), 850);
}

static void the_profile_says_how_it_was_made(void **state)
{
	(void)state;
	start();
	for (int i = 0; i < 4; i++)
		look_after(WP_NS_PER_S / 4);
	assert_string_equal(
		source(), "goroutines of go1.22.3, looked at 4 times a second");
	assert_true(fake.profile.meta.is_of_goroutines);
	times->nput_off = 1;
	times->cost_ns = 8 * WP_NS_PER_MS;
	times->nunread = 7;
	assert_string_equal(
		source(),
		"goroutines of go1.22.3, looked at 4 times a second (a look "
		"takes 2 ms of CPU time, and all looks at most a quarter of a "
		"CPU); up to 7 goroutines were not read");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, made_target_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_gets_the_time_since_the_last_look),
		TEST(a_wait_is_told_in_gos_words),
		TEST(one_that_has_moved_is_read_again),
		TEST(one_that_ends_and_one_that_begins),
		TEST(one_that_runs_has_its_threads_stack),
		TEST(one_that_runs_waits_for_a_cpu_as_its_thread_does),
		TEST(one_that_waits_on_a_thread_runs),
		TEST(the_schedulers_stack_is_not_a_goroutines),
		TEST(a_stack_that_is_cut_may_be_a_goroutines),
		TEST(a_stack_of_c_code_may_be_a_goroutines),
		TEST(one_in_a_call_waits_as_its_thread_does),
		TEST(one_that_runs_waits_for_a_page_as_its_thread_does),
		TEST(one_in_a_call_of_an_unknown_thread_waits),
		TEST(a_thread_is_found_by_its_number_in_a_container),
		TEST(the_end_is_paid),
		TEST(cpu_time_goes_by_running_time),
		TEST(cpu_time_goes_by_cpu_samples_where_there_are_any),
		TEST(cpu_time_below_nothing_is_none),
		TEST(looks_that_cost_too_much_are_put_off),
		TEST(memory_that_has_gone_ends_the_looks),
		TEST(a_program_that_ends_keeps_its_goroutines),
		TEST(another_program_ends_the_looks),
		TEST(the_profile_says_how_it_was_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
