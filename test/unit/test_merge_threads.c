/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: profile.  Threads by the names that they have but for digits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "wallprof/merge_threads.h"
#include "wallprof/profile_processes.h"
#include "profile_maker.h"

static uint64_t wall_of(const struct wp_profile *p, const char *name)
{
	const struct wp_sample_set *set = &p->sets[WP_PROFILE_WALL];
	uint64_t sum = 0;

	for (uint32_t i = 0; i < set->nsamples; i++) {
		uint32_t thread = set->samples[i].key.thread;

		if (!strcmp(wp_profile_str(p, p->threads[thread].name), name))
			sum += set->samples[i].wall_ns;
	}
	return sum;
}

static void no_sum_changes(void **state)
{
	struct wp_profile p;
	uint32_t n;

	(void)state;
	make_server(&p);
	n = p.sets[WP_PROFILE_WALL].nsamples;
	assert_int_equal(wp_merge_threads(&p, 64), 0);
	/* The two workers had three samples each. */
	assert_int_equal(p.sets[WP_PROFILE_WALL].nsamples, n - 3);
	assert_int_equal(wall_of(&p, "work-*"), 20000000000);
	assert_int_equal(wall_of(&p, "server"), 10000000000);
	wp_profile_add_up(&p);
	assert_int_equal(p.sums[WP_PROFILE_WALL].wall_ns, 40000000000);
	assert_int_equal(p.sums[WP_PROFILE_WALL].threads, 3);
	wp_profile_clear(&p);
}

/* Three processes of two names, each with a thread of the same name. */
static void processes_of_a_name_are_one(void **state)
{
	static const char *const names[] = { "nginx", "php", "nginx" };
	static const uint64_t none[] = { 0 };
	struct wp_profile p;
	uint32_t stack;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	stack = mk_stack(&p, none, WP_END_ROOT, 0);
	for (int32_t i = 0; i < 3; i++) {
		uint32_t process = wp_profile_share_process(&p, i + 1, names[i],
							    0);
		uint32_t thread = mk_thread(&p, i + 1, "worker");

		p.threads[thread].process = process;
		mk_sample(&p, thread, stack, WP_STATE_WAITING, WP_WAIT_POLL, "",
			  1, 10);
	}
	assert_int_equal(wp_merge_threads(&p, 64), 0);
	assert_int_equal(p.sets[WP_PROFILE_WALL].nsamples, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct wp_profile_sample *s =
			&p.sets[WP_PROFILE_WALL].samples[i];
		const struct wp_profile_process *process =
			wp_profile_process_of(&p, &p.threads[s->key.thread]);

		assert_string_equal(wp_profile_str(&p, process->name),
				    names[i]);
		assert_int_equal(process->pid, 0);
		assert_int_equal(s->wall_ns, i ? 10 : 20);
	}
	wp_profile_clear(&p);
}

/* What stands for all threads of a name has the id of none. */
static void entries_have_no_tid(void **state)
{
	const struct wp_sample_set *set;
	struct wp_profile p;

	(void)state;
	make_server(&p);
	assert_int_equal(wp_merge_threads(&p, 64), 0);
	set = &p.sets[WP_PROFILE_WALL];
	for (uint32_t i = 0; i < set->nsamples; i++)
		assert_int_equal(p.threads[set->samples[i].key.thread].tid, 0);
	wp_profile_clear(&p);
}

static void names_are_bounded(void **state)
{
	static const uint64_t none[] = { 0 };
	struct wp_profile p;
	uint32_t stack;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	stack = mk_stack(&p, none, WP_END_ROOT, 0);
	for (int i = 0; i < 100; i++) {
		char name[] = { (char)('a' + i % 26), (char)('a' + i / 26), 0 };

		mk_sample(&p, mk_thread(&p, i, name), stack, WP_STATE_WAITING,
			  WP_WAIT_POLL, name, 1, 10);
	}
	assert_int_equal(wp_merge_threads(&p, 8), 0);
	assert_int_equal(p.sets[WP_PROFILE_WALL].nsamples, 9);
	assert_int_equal(wall_of(&p, "aa"), 10);
	assert_int_equal(wall_of(&p, "[other threads]"), 920);
	wp_profile_clear(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_sum_changes),
		cmocka_unit_test(entries_have_no_tid),
		cmocka_unit_test(names_are_bounded),
		cmocka_unit_test(processes_of_a_name_are_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
