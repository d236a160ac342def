/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: cmd.  src/cmd/losses.h: when a profile may mislead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/cmd/losses.h"
#include "profile_maker.h"
#include "wallprof/profile_processes.h"

static const uint64_t no_pc = 0;
static struct wp_options options;
static char text[WP_LOSSES_TEXT];

/* A thread that was in STATE for NS of wall time and CPU_NS of CPU time, with a stack
 * that ended as END. */
static void add(struct wp_profile *p, enum wp_profile_kind kind,
		enum wp_state state, enum wp_stack_end end, uint64_t ns,
		uint64_t cpu_ns)
{
	const struct wp_sample_key key = {
		.stack = mk_stack(p, &no_pc, end, 0),
		.thread = mk_thread(p, (int32_t)p->nthreads + 1, "any"),
		.state = (uint8_t)state,
	};

	assert_int_equal(wp_profile_add_sample(p, kind, &key, ns, ns), 0);
	if (cpu_ns)
		assert_int_equal(wp_profile_add_cpu(p, &key, 1, cpu_ns), 0);
}

static int setup(void **state)
{
	static struct wp_profile profile;

	assert_int_equal(wp_profile_init(&profile), 0);
	profile.meta.has_cpu = true;
	profile.counters.ticks = 100;
	options = (struct wp_options){ .kinds = 1u << WP_PROFILE_WALL };
	*state = &profile;
	return 0;
}

static int teardown(void **state)
{
	wp_profile_clear(*state);
	return 0;
}

static bool finds(struct wp_profile *p)
{
	wp_profile_add_up(p);
	return wp_losses_find(p, &options, text);
}

/* Threads that wait, with whole stacks, do not outvote those that run. */
static void cpu_time_is_judged_apart_from_wall_time(void **state)
{
	struct wp_profile *p = *state;

	for (int i = 0; i < 99; i++)
		add(p, WP_PROFILE_WALL, WP_STATE_WAITING, WP_END_ROOT, 1000, 0);
	add(p, WP_PROFILE_WALL, WP_STATE_RUNNING, WP_END_ROOT, 900, 900);
	add(p, WP_PROFILE_WALL, WP_STATE_RUNNING, WP_END_NO_INFO, 100, 100);
	assert_false(finds(p));
	assert_string_equal(text, "");
	add(p, WP_PROFILE_WALL, WP_STATE_RUNNING, WP_END_NO_INFO, 10, 10);
	assert_true(finds(p));
	assert_string_equal(text, "10.9 % of CPU time has no whole stack");
}

static void so_little_cpu_time_is_not_judged(void **state)
{
	struct wp_profile *p = *state;

	options.sampler.interval_ns = 100;
	add(p, WP_PROFILE_WALL, WP_STATE_WAITING, WP_END_ROOT, 9000, 0);
	add(p, WP_PROFILE_WALL, WP_STATE_RUNNING, WP_END_EMPTY, 299, 299);
	assert_false(finds(p));
	add(p, WP_PROFILE_WALL, WP_STATE_RUNNING, WP_END_EMPTY, 1, 1);
	assert_true(finds(p));
}

/* A thread that sleeps for a millisecond and runs for some microseconds, for less than a
 * second: no sample of CPU time meets it, though three are expected. */
static void what_looks_miss_by_chance_is_not_judged(void **state)
{
	struct wp_profile *p = *state;

	options.sampler.interval_ns = 100;
	add(p, WP_PROFILE_WALL, WP_STATE_WAITING, WP_END_ROOT, 9000, 0);
	add(p, WP_PROFILE_WALL, WP_STATE_RUNNING, WP_END_NOT_SEEN, 999, 999);
	assert_false(finds(p));
	add(p, WP_PROFILE_WALL, WP_STATE_RUNNING, WP_END_NOT_SEEN, 1, 1);
	assert_true(finds(p));
	assert_string_equal(text, "100 % of CPU time has no whole stack");
}

static void short_processes_are_not_judged_by_what_no_look_met(void **state)
{
	struct wp_profile *p = *state;

	add(p, WP_PROFILE_WALL, WP_STATE_RUNNING, WP_END_ROOT, 1000, 1000);
	add(p, WP_PROFILE_WALL, WP_STATE_RUNNING, WP_END_NOT_SEEN, 1000, 1000);
	assert_int_not_equal(wp_profile_share_process(p, 1, "a", 0),
			     UINT32_MAX);
	assert_true(finds(p));
	assert_int_not_equal(wp_profile_share_process(p, 2, "b", 0),
			     UINT32_MAX);
	assert_false(finds(p));
	/* What was met, and had no stack, counts. */
	add(p, WP_PROFILE_WALL, WP_STATE_RUNNING, WP_END_EMPTY, 1000, 1000);
	assert_true(finds(p));
}

static void running_time_stands_for_cpu_time_that_was_not_recorded(void **state)
{
	struct wp_profile *p = *state;

	p->meta.has_cpu = false;
	add(p, WP_PROFILE_WALL, WP_STATE_WAITING, WP_END_ROOT, 9900, 0);
	add(p, WP_PROFILE_WALL, WP_STATE_RUNNABLE, WP_END_EMPTY, 100, 0);
	assert_false(finds(p));
	add(p, WP_PROFILE_WALL, WP_STATE_RUNNING, WP_END_EMPTY, 100, 0);
	assert_true(finds(p));
	assert_string_equal(text, "100 % of CPU time has no whole stack");
	/* --stop=never asked for it. */
	options.sampler.stop = WP_STOP_NEVER;
	assert_false(finds(p));
}

static void cut_stacks_of_waits_are_losses_of_wall_time(void **state)
{
	struct wp_profile *p = *state;

	add(p, WP_PROFILE_WALL, WP_STATE_WAITING, WP_END_ROOT, 800, 0);
	add(p, WP_PROFILE_WALL, WP_STATE_WAITING, WP_END_NO_INFO, 200, 0);
	assert_true(finds(p));
	assert_string_equal(text, "20 % of wall time has no whole stack");
}

static void what_needs_no_stack_is_no_loss(void **state)
{
	struct wp_profile *p = *state;

	add(p, WP_PROFILE_WALL, WP_STATE_EXITING, WP_END_EMPTY, 500, 0);
	add(p, WP_PROFILE_WALL, WP_STATE_RUNNING, WP_END_DEPTH_LIMIT, 500, 9);
	assert_false(finds(p));
}

static void what_the_heap_profile_lacks_is_a_loss(void **state)
{
	struct wp_profile *p = *state;

	p->counters.heap_samples = 100;
	p->counters.heap_lost = 10;
	assert_false(finds(p));
	p->counters.heap_lost = 11;
	assert_true(finds(p));
	assert_string_equal(text, "11 of 100 samples of allocations were lost");
	p->counters.heap_lost = 0;
	p->counters.heap_overwritten = 2;
	assert_true(finds(p));
	assert_string_equal(text, "the process has written over 2 probes on "
				  "its allocator");
	p->counters.heap_overwritten = 0;
	p->counters.heap_throwing = 3;
	assert_true(finds(p));
	assert_string_equal(text, "3 samples of allocations, of operator new, "
				  "are not known to be in use");
	p->counters.heap_throwing = 0;
	p->counters.heap_ended = 1;
	assert_true(finds(p));
	assert_string_equal(text,
			    "the heap profile ended before the recording");
	p->counters.heap_ended = 0;
	p->counters.heap_unread = 1;
	assert_true(finds(p));
	assert_string_equal(text, "more than a tenth of the heap was not read, "
				  "or changed meanwhile");
}

static void only_kinds_that_are_written_count(void **state)
{
	struct wp_profile *p = *state;

	add(p, WP_PROFILE_WALL, WP_STATE_RUNNING, WP_END_ROOT, 500, 500);
	add(p, WP_PROFILE_THREADCREATE, WP_STATE_RUNNING, WP_END_ROOT, 7, 0);
	add(p, WP_PROFILE_THREADCREATE, WP_STATE_RUNNING, WP_END_NO_RECORD, 3,
	    0);
	add(p, WP_PROFILE_MUTEX, WP_STATE_WAITING, WP_END_HOLDER, 3, 0);
	assert_false(finds(p));
	options.kinds |= 1u << WP_PROFILE_THREADCREATE | 1u << WP_PROFILE_MUTEX;
	assert_true(finds(p));
	assert_string_equal(text, "30 % of threads have no whole stack");
}

static void samples_and_ticks_that_were_not_made_are_losses(void **state)
{
	struct wp_profile *p = *state;

	add(p, WP_PROFILE_WALL, WP_STATE_WAITING, WP_END_ROOT, 90, 0);
	p->counters.samples_lost = 9;
	p->counters.missed_ticks = 100;
	assert_false(finds(p));
	p->counters.samples_lost = 11;
	assert_true(finds(p));
	assert_string_equal(text, "11 samples could not be taken and 90 were");
	p->counters.missed_ticks = 101;
	assert_true(finds(p));
	assert_string_equal(text,
			    "more ticks were missed (101) than made (100)");
	/* Allocations are sampled all the same. */
	options.kinds = 1u << WP_PROFILE_HEAP;
	p->counters.samples_lost = 0;
	assert_false(finds(p));
	p->counters.unnamed = 1;
	assert_true(finds(p));
	assert_string_equal(text, "naming functions failed");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(cpu_time_is_judged_apart_from_wall_time),
		TEST(so_little_cpu_time_is_not_judged),
		TEST(what_looks_miss_by_chance_is_not_judged),
		TEST(short_processes_are_not_judged_by_what_no_look_met),
		TEST(running_time_stands_for_cpu_time_that_was_not_recorded),
		TEST(cut_stacks_of_waits_are_losses_of_wall_time),
		TEST(what_needs_no_stack_is_no_loss),
		TEST(what_the_heap_profile_lacks_is_a_loss),
		TEST(only_kinds_that_are_written_count),
		TEST(samples_and_ticks_that_were_not_made_are_losses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
