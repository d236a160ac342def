/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  targets.c: a pid is that of the process that has it now, and who is let
 * go of is said once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "fake_target.h"

/* The three in the sampler of the first. */
enum { TARGETS = 3, PID = 5000, MS = WP_NS_PER_MS };

static struct fake_target fakes[TARGETS];
static struct wp_sampler *loop;

/* Who was let go of, in order. */
static struct wp_process *ended[TARGETS];
static size_t nended;

static int setup(void **state)
{
	const struct wp_sampler_options options = fake_target_options();
	struct wp_err err = WP_ERR_INIT;

	(void)state;
	nended = 0;
	for (int i = 0; i < TARGETS; i++) {
		fake_target_open(&fakes[i]);
		fake_target_add_thread(&fakes[i], 10 + i, "worker");
	}
	assert_int_equal(fake_target_start(&fakes[0], &options), 0);
	loop = fakes[0].sampler;
	for (int i = 1; i < TARGETS; i++)
		assert_int_equal(wp_sampler_add_target(loop, &fakes[i].process,
						       &fakes[i].profile,
						       &fakes[i].target, &err),
				 0);
	/* The first two share a place among the hints. */
	fakes[0].process.pid = PID;
	fakes[1].process.pid = PID + WP_SAMPLER_HINTS;
	fakes[2].process.pid = PID + 1;
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (int i = 0; i < TARGETS; i++)
		fake_target_close(&fakes[i]);
	return 0;
}

static void let_go(void *ctx, struct wp_process *process)
{
	assert_ptr_equal(ctx, &nended);
	ended[nended++] = process;
}

static int retire(void)
{
	return wp_sampler_retire(loop, let_go, &nended);
}

static void each_pid_has_its_target(void **state)
{
	(void)state;
	/* Again and again: they take each other's hint. */
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < TARGETS; i++) {
			pid_t pid = fakes[i].process.pid;

			assert_ptr_equal(wp_sampler_find(loop, pid),
					 fakes[i].target);
			assert_ptr_equal(wp_sampler_find(loop, pid),
					 fakes[i].target);
		}
	assert_null(wp_sampler_find(loop, PID + 2));
	assert_null(wp_sampler_find_last(loop, PID + 2 * WP_SAMPLER_HINTS));
}

static void who_has_ended_is_found_as_the_last_alone(void **state)
{
	struct wp_target *target = fakes[1].target;
	pid_t pid = fakes[1].process.pid;

	(void)state;
	assert_ptr_equal(wp_sampler_find(loop, pid), target);
	target->gone = true;
	assert_null(wp_sampler_find(loop, pid));
	assert_ptr_equal(wp_sampler_find_last(loop, pid), target);
}

static size_t count_living(void)
{
	size_t n = 0;

	for (size_t i = 0; i < loop->ntargets; i++)
		n += !loop->targets[i]->gone;
	return n;
}

/* The kernel gives a pid again. */
static void a_pid_is_that_of_who_began_last(void **state)
{
	(void)state;
	assert_ptr_equal(wp_sampler_find(loop, PID), fakes[0].target);
	fakes[0].target->gone = true;
	fakes[2].process.pid = PID;
	assert_ptr_equal(wp_sampler_find(loop, PID), fakes[2].target);
	assert_ptr_equal(wp_sampler_find_last(loop, PID), fakes[2].target);
	/* Both have ended: still the last. */
	fakes[2].target->gone = true;
	assert_ptr_equal(wp_sampler_find_last(loop, PID), fakes[2].target);
}

static void who_goes_on_stays_in_order(void **state)
{
	struct wp_target *stays[] = { fakes[0].target, fakes[2].target };

	(void)state;
	assert_int_equal(count_living(), 3);
	assert_int_equal(retire(), 0);
	assert_int_equal(nended, 0);
	fakes[1].target->gone = true;
	assert_int_equal(count_living(), 2);
	assert_int_equal(loop->ntargets, 3);
	assert_int_equal(retire(), 0);
	assert_int_equal(nended, 1);
	assert_ptr_equal(ended[0], &fakes[1].process);
	assert_int_equal(loop->ntargets, 2);
	assert_ptr_equal(loop->targets[0], stays[0]);
	assert_ptr_equal(loop->targets[1], stays[1]);
	/* A hint from before leads nowhere else. */
	assert_ptr_equal(wp_sampler_find(loop, PID + 1), stays[1]);
	assert_null(wp_sampler_find(loop, PID + WP_SAMPLER_HINTS));
	assert_int_equal(count_living(), 2);
}

static void the_last_one_may_go(void **state)
{
	(void)state;
	for (int i = 0; i < TARGETS; i++) {
		assert_ptr_equal(wp_sampler_find(loop, fakes[i].process.pid),
				 fakes[i].target);
		fakes[i].target->gone = true;
	}
	assert_int_equal(count_living(), 0);
	assert_int_equal(retire(), 0);
	assert_int_equal(nended, TARGETS);
	for (int i = 0; i < TARGETS; i++)
		assert_null(wp_sampler_find_last(loop, fakes[i].process.pid));
	assert_int_equal(wp_sampler_count_threads(loop), 0);
}

static void watched_threads_of_all_are_counted(void **state)
{
	(void)state;
	assert_int_equal(fake_target_tick(&fakes[0], 10 * MS), 0);
	assert_int_equal(wp_sampler_count_threads(loop), TARGETS);
}

/* Without memory for what is left to be paid, all are kept. */
static void who_cannot_be_paid_is_kept(void **state)
{
	const struct wp_stop_request sample = {
		.weight_ns = MS,
		.slices = 1,
		.sp_avma = 4096,
		.facts = { .state_char = 'S', .syscall_nr = SYS_nanosleep },
	};
	struct wp_target *target = fakes[1].target;
	struct wp_wait_queue *queue = &target->wait_queue;
	struct wp_thread *t = wp_threads_find_or_add(target, 11);

	(void)state;
	assert_non_null(t);
	wp_stop_request_registers(t, &sample);
	wp_stop_requests_take(&target->stop_requests, 0);
	wp_stop_request_sent(t, 1);
	fakes[0].target->gone = target->gone = true;
	queue->n = queue->cap;
	assert_int_equal(retire(), -ENOMEM);
	queue->n = 0;
	assert_int_equal(nended, 0);
	assert_int_equal(loop->ntargets, TARGETS);
	assert_ptr_equal(loop->targets[1], target);
}

static void who_is_forgotten_counts_as_denied_once(void **state)
{
	struct wp_process other = WP_PROCESS_INIT;
	uint64_t *denied = &fakes[1].profile.counters.processes_denied;

	(void)state;
	wp_sampler_forget(loop, &other);
	assert_int_equal(count_living(), 3);
	wp_sampler_forget(loop, &fakes[1].process);
	wp_sampler_forget(loop, &fakes[1].process);
	assert_int_equal(*denied, 1);
	assert_true(fakes[1].target->gone);
	assert_int_equal(fakes[0].profile.counters.processes_denied, 0);
	assert_int_equal(count_living(), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_pid_has_its_target),
		TEST(who_has_ended_is_found_as_the_last_alone),
		TEST(a_pid_is_that_of_who_began_last),
		TEST(who_goes_on_stays_in_order),
		TEST(the_last_one_may_go),
		TEST(watched_threads_of_all_are_counted),
		TEST(who_cannot_be_paid_is_kept),
		TEST(who_is_forgotten_counts_as_denied_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
