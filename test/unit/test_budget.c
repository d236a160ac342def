/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: profile.  budget.h: what a target makes grow ends where its part does, and
 * what is beyond is one stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "wallprof/budget.h"
#include "wallprof/profile.h"

enum { KB = 1024 };

static void a_part_ends_and_leaves_the_others_theirs(void **state)
{
	(void)state;
	wp_budget_set(64 * KB);
	assert_int_equal(wp_budget_per_file(), 4 * KB);
	assert_true(wp_budget_take(WP_BUDGET_STACKS, 20 * KB));
	assert_false(wp_budget_take(WP_BUDGET_STACKS, 1));
	assert_true(wp_budget_take(WP_BUDGET_MAPPINGS, 4 * KB - 1));
	assert_false(wp_budget_take(WP_BUDGET_MAPPINGS, 2));
	assert_true(wp_budget_take(WP_BUDGET_MAPPINGS, 1));
	assert_false(wp_budget_take(WP_BUDGET_FILES, UINT64_MAX));
	assert_true(wp_budget_take(WP_BUDGET_FILES, 16 * KB));
	wp_budget_set(WP_BUDGET_DEFAULT);
}

/* Add a stack of 500 frames like no other. */
static uint32_t add(struct wp_profile *profile, uint64_t nr)
{
	static struct wp_frame frames[500];
	const struct wp_stack stack = { .frames = frames, .depth = 500 };

	frames[0].pc_avma = nr;
	return wp_profile_add_stack(profile, &stack, 0);
}

static void stacks_beyond_the_budget_are_one(void **state)
{
	struct wp_profile profile;
	uint32_t first, dropped = 0;
	const struct wp_profile_stack *stack;

	(void)state;
	wp_budget_set(1024 * KB);
	assert_int_equal(wp_profile_init(&profile), 0);
	first = add(&profile, 1);
	for (uint64_t nr = 2; nr < 10000; nr++)
		dropped = add(&profile, nr);
	assert_true(profile.nstacks > 15);
	assert_true(profile.nframes * sizeof(struct wp_frame) +
			    profile.nframe_ids * sizeof(uint32_t) <
		    320 * KB);
	assert_int_equal(profile.counters.stacks_dropped,
			 10000 - profile.nstacks);
	stack = &profile.stacks[dropped];
	assert_int_equal(stack->end, WP_END_DROPPED);
	assert_int_equal(stack->depth, 0);
	/* What is there is found as before. */
	assert_int_equal(add(&profile, 1), first);
	assert_int_equal(wp_profile_locate(&profile), 0);
	assert_string_equal(
		wp_profile_str(
			&profile,
			profile.functions
				[profile.lines
					 [profile.locations
						  [profile.loc_pool
							   [stack->loc_first]]
							  .line_first]
						 .function]
					.name),
		"[dropped: memory]");
	wp_profile_clear(&profile);
	wp_budget_set(WP_BUDGET_DEFAULT);
}

/* Samples that differ in what they wait for. */
static void samples_beyond_the_budget_are_one_of_each_thread(void **state)
{
	const struct wp_profile_thread thread = { .tid = 1 };
	const struct wp_profile_sample *last;
	struct wp_profile profile;
	struct wp_sample_key key = { .state = WP_STATE_WAITING };
	uint64_t ns = 0;

	(void)state;
	wp_budget_set(256 * KB);
	assert_int_equal(wp_profile_init(&profile), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wp_profile_add_thread(&profile, &thread), i);
	key.stack = add(&profile, 1);
	for (uint32_t i = 0; i < 10000; i++) {
		key.object = i;
		key.thread = i % 2;
		assert_int_equal(wp_profile_add_sample(&profile,
						       WP_PROFILE_THREADS, &key,
						       1, 10),
				 0);
	}
	last = profile.sets[WP_PROFILE_THREADS].samples +
	       profile.sets[WP_PROFILE_THREADS].nsamples;
	assert_true(profile.sets[WP_PROFILE_THREADS].nsamples > 50);
	assert_true(profile.sets[WP_PROFILE_THREADS].nsamples * sizeof(*last) <
		    32 * KB);
	for (const struct wp_profile_sample *s = last; s-- > last - 2;) {
		assert_int_equal(profile.stacks[s->key.stack].end,
				 WP_END_DROPPED);
		assert_int_equal(s->key.state, WP_STATE_WAITING);
		assert_int_equal(s->key.object, 0);
	}
	assert_int_not_equal(last[-1].key.thread, last[-2].key.thread);
	for (const struct wp_profile_sample *s = last;
	     s-- > profile.sets[WP_PROFILE_THREADS].samples;)
		ns += s->wall_ns;
	assert_int_equal(ns, 100000);
	assert_int_equal(profile.counters.stacks_dropped,
			 last[-1].count + last[-2].count);
	wp_profile_clear(&profile);
	wp_budget_set(WP_BUDGET_DEFAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_ends_and_leaves_the_others_theirs),
		cmocka_unit_test(stacks_beyond_the_budget_are_one),
		cmocka_unit_test(
			samples_beyond_the_budget_are_one_of_each_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
