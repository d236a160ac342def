/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: cmd.  Hours of a target that never does the same twice, by a clock of the
 * test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/cmd/forget.h"
#include "profile_maker.h"

enum { S = 1000000000, KEEP_S = 600, HOUR_S = 3600, HOURS = 6, DEPTH = 40 };

static struct wp_recording r;
static struct wp_digest digest;
static struct wp_recorder_status status;
static struct wp_forget forget;

/* A new thread with a name, a stack and an object that none had before. */
static void add_new(uint64_t at_s)
{
	char name[32];
	uint64_t pcs[DEPTH + 1];
	uint32_t thread;

	snprintf(name, sizeof(name), "request-%llu", (unsigned long long)at_s);
	thread = mk_thread(&r.profile, (int32_t)(at_s % 30000) + 2, name);
	r.profile.threads[thread].first_ns = (at_s - 1) * S;
	r.profile.threads[thread].last_ns = at_s * S;
	for (int i = 0; i < DEPTH; i++)
		pcs[i] = (at_s << 8) + (uint64_t)i + 1;
	pcs[DEPTH] = 0;
	mk_sample(&r.profile, thread, mk_stack(&r.profile, pcs, WP_END_ROOT, 0),
		  WP_STATE_WAITING, WP_WAIT_SOCKET, name, 20, S);
}

/* Second AT_S: its thread, and one that is there all the time. */
static uint64_t pass_second(uint64_t at_s, const struct wp_sample_key *idle)
{
	const struct wp_history_mark *mark;

	add_new(at_s);
	assert_int_equal(
		wp_profile_add_sample(&r.profile, WP_PROFILE_WALL, idle, 1, S),
		0);
	mark = wp_history_add(&r.history, &r.profile, at_s * S);
	assert_non_null(mark);
	assert_int_equal(wp_digest_add(&digest, &r.profile, mark,
				       KEEP_S * (uint64_t)S, &status),
			 0);
	if (wp_forget_is_due(&forget, &r, at_s * S))
		assert_int_equal(wp_forget_old(&forget, &r, &digest), 0);
	assert_int_equal(status.threads[WP_STATE_WAITING], 2);
	assert_true(status.longest_wait_ns >= (at_s - 1) * S);
	return wp_renumber_size(&r.profile) + r.history.bytes;
}

static void memory_is_flat_for_hours(void **state)
{
	uint64_t most[HOURS] = { 0 }, from, to, sum = 0;
	const struct wp_sample_set *set = &r.profile.sets[WP_PROFILE_WALL];
	struct wp_sample_key idle = { .state = WP_STATE_WAITING };
	uint32_t n = 0;

	(void)state;
	assert_int_equal(wp_profile_init(&r.profile), 0);
	wp_timeline_start(&r.profile.timeline, 4 << 20);
	wp_history_init(&r.history, (uint64_t)KEEP_S * S, 64 << 20, 0);
	idle.thread = mk_thread(&r.profile, 1, "main");
	idle.stack = mk_stack(&r.profile, (const uint64_t[]){ 9, 0 },
			      WP_END_ROOT, 0);
	for (uint64_t at_s = 1; at_s < HOURS * HOUR_S; at_s++) {
		uint64_t size = pass_second(at_s, &idle);

		if (size > most[at_s / HOUR_S])
			most[at_s / HOUR_S] = size;
	}
	for (int i = 1; i < HOURS; i++)
		assert_true(most[i] <= most[0] + most[0] / 20);
	/* Nothing that is asked for is missing: one thread of each second. */
	to = r.history.end_ns;
	from = to - (uint64_t)60 * S;
	assert_int_equal(wp_history_view(&r.history, &r.profile, &from, &to),
			 0);
	for (uint32_t i = 0; i < set->nsamples; i++)
		if (set->samples[i].wall_ns) {
			n++;
			sum += set->samples[i].wall_ns;
		}
	assert_int_equal(n, 61);
	assert_int_equal(sum / S, 120);
	wp_history_clear(&r.history);
	wp_profile_clear(&r.profile);
	free(digest.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_flat_for_hours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
