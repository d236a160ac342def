/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: cmd.  What a mark says of the process: who ran, who waits, who is starved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../../src/cmd/digest.h"
#include "profile_maker.h"

enum { S = 1000000000 };

static struct wp_profile profile;
static struct wp_history history;
static struct wp_digest digest;
static struct wp_recorder_status status;
static struct wp_sample_key keys[WP_NSTATES];
static uint64_t at_s;

static int setup(void **state)
{
	uint32_t thread;

	(void)state;
	assert_int_equal(wp_profile_init(&profile), 0);
	digest = (struct wp_digest){ 0 };
	memset(&status, 0, sizeof(status));
	at_s = 1;
	thread = mk_thread(&profile, 1, "main");
	profile.threads[thread].cpu_ns = 0;
	wp_history_init(&history, 600 * (uint64_t)S, 64 << 20, S);
	for (uint8_t i = 0; i < WP_NSTATES; i++)
		keys[i] = (struct wp_sample_key){
			.thread = thread,
			.state = i,
			.stack = mk_stack(&profile,
					  (const uint64_t[]){ i + 1, 0 },
					  WP_END_ROOT, 0),
		};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(digest.v);
	wp_history_clear(&history);
	wp_profile_clear(&profile);
	return 0;
}

static void spend(enum wp_state in, uint64_t ns)
{
	assert_int_equal(wp_profile_add_sample(&profile, WP_PROFILE_WALL,
					       &keys[in], 1, ns),
			 0);
}

static void mark(void)
{
	const struct wp_history_mark *m = wp_history_add(&history, &profile,
							 ++at_s * S);

	assert_non_null(m);
	assert_int_equal(
		wp_digest_add(&digest, &profile, m, 600 * (uint64_t)S, &status),
		0);
}

static void a_wait_grows_while_the_thread_does_not_run(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		spend(WP_STATE_WAITING, S);
		mark();
	}
	assert_int_equal(status.longest_wait_ns, 5 * (uint64_t)S);
	assert_int_equal(status.threads[WP_STATE_WAITING], 1);
	/* It began with the first mark. */
	assert_int_equal(digest.ran_ns, S);
}

/* No look and no CPU sample met it in that, so all its time is waiting so far. */
static void who_ran_for_a_moment_has_run(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		spend(WP_STATE_WAITING, S);
		profile.threads[0].cpu_ns += i == 3 ? 50000 : 0;
		mark();
	}
	assert_int_equal(digest.ran_ns, 5 * (uint64_t)S);
	assert_int_equal(status.longest_wait_ns, S);
}

static void who_never_runs_is_starved(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		spend(WP_STATE_RUNNABLE, S);
		mark();
	}
	assert_int_equal(digest.starved_ns, 4 * (uint64_t)S);
	spend(WP_STATE_RUNNING, S);
	mark();
	assert_int_equal(digest.starved_ns, 0);
}

/* What many short waits for a CPU took is told when there is a stack for it. */
static void who_ran_between_is_not_starved(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		spend(WP_STATE_WAITING, S);
		profile.threads[0].cpu_ns += 1000;
		mark();
	}
	spend(WP_STATE_RUNNABLE, 6 * (uint64_t)S);
	profile.threads[0].cpu_ns += 1000;
	mark();
	assert_int_equal(digest.starved_ns, 0);
}

/* Those that share an entry count each. */
static void threads_that_wait_for_locks_are_counted(void **state)
{
	(void)state;
	profile.threads[0].nmore = 199;
	keys[WP_STATE_WAITING].wait = WP_WAIT_LOCK;
	spend(WP_STATE_WAITING, 200 * (uint64_t)S);
	mark();
	assert_int_equal(digest.nthreads, 200);
	assert_int_equal(digest.nlocked, 200);
	assert_int_equal(status.threads[WP_STATE_WAITING], 200);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_wait_grows_while_the_thread_does_not_run),
		TEST(who_ran_for_a_moment_has_run),
		TEST(who_never_runs_is_starved),
		TEST(who_ran_between_is_not_starved),
		TEST(threads_that_wait_for_locks_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
