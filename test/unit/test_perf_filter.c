/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: perf.  Wakes of two threads that sleep, against how often the test woke them
 * and when it had their wakes recorded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wallprof/perf.h"

enum { ROUNDS = 20 };

static struct sleeper {
	pthread_t thread;
	_Atomic pid_t tid;
	sem_t wake;
	atomic_bool is_over;
	/* Records of its wakes, and samples of who made them, so far. */
	unsigned int wakes, samples;
} sleepers[2];

static struct wp_process self;
static struct wp_perf *perf;

static void *sleep_on(void *arg)
{
	struct sleeper *s = arg;

	s->tid = gettid();
	while (!s->is_over)
		sem_wait(&s->wake);
	return arg;
}

static bool sleeps(const struct sleeper *s)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", s->tid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
	fclose(f);
	return state == 'S';
}

static void wake(struct sleeper *s)
{
	while (!s->tid || !sleeps(s))
		usleep(200);
	sem_post(&s->wake);
}

static void wake_both(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		wake(&sleepers[0]);
		wake(&sleepers[1]);
	}
}

static void read_records(void)
{
	struct wp_perf_record rec;

	while (wp_perf_next(perf, UINT64_MAX, &rec)) {
		for (int i = 0; i < 2; i++) {
			struct sleeper *s = &sleepers[i];
			pid_t by = rec.waker_tid;

			s->wakes += rec.type == WP_PERF_WAKE &&
				    rec.tid == s->tid && by == gettid();
			s->samples += rec.type == WP_PERF_SAMPLE_WAKE &&
				      rec.tid == s->tid && by == gettid();
		}
	}
}

/* Wake both and compare how often each was told to be woken, and sampled. */
static void assert_told(bool first, bool second, bool sampled)
{
	const bool told[] = { first, second };

	for (int i = 0; i < 2; i++)
		sleepers[i].wakes = sleepers[i].samples = 0;
	wake_both();
	read_records();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sleepers[i].wakes, told[i] ? ROUNDS : 0);
		assert_int_equal(sleepers[i].samples,
				 told[i] && sampled ? ROUNDS : 0);
	}
}

static int setup(void **state)
{
	const struct wp_perf_options options = {
		.switches = true,
		.wakes = true,
		.wake_sample_every = 1,
		.ring_bytes = 4 << 20,
	};
	struct wp_err err = WP_ERR_INIT;

	(void)state;
	memset(sleepers, 0, sizeof(sleepers));
	for (int i = 0; i < 2; i++) {
		sem_init(&sleepers[i].wake, 0, 0);
		pthread_create(&sleepers[i].thread, NULL, sleep_on,
			       &sleepers[i]);
		while (!sleepers[i].tid)
			usleep(200);
	}
	assert_int_equal(wp_process_open(&self, getpid(), &err), 0);
	if (wp_perf_open(&perf, &self, &options, &err))
		perf = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		sleepers[i].is_over = true;
		sem_post(&sleepers[i].wake);
		pthread_join(sleepers[i].thread, NULL);
	}
	wp_perf_close(perf);
	wp_process_clear(&self);
	return 0;
}

/* Without permission, or tracefs. */
static void skip_unless_told(void)
{
	if (!perf || wp_perf_facts(perf)->wake_rc)
		skip();
}

static struct wp_tid_range only(pid_t tid)
{
	return (struct wp_tid_range){ tid, tid };
}

static void a_filter_takes_the_place_of_the_one_before(void **state)
{
	const pid_t main_tid = gettid();
	const struct wp_tid_range first[] = { only(main_tid),
					      only(sleepers[0].tid) },
				  second[] = { only(main_tid),
					       only(sleepers[1].tid) };

	(void)state;
	skip_unless_told();
	assert_true(sleepers[0].tid < sleepers[1].tid);
	wp_perf_filter_wakes(perf, first, 2, 0);
	wp_perf_enable(perf);
	assert_told(true, false, true);
	wp_perf_filter_wakes(perf, second, 2, 0);
	assert_told(false, true, true);
	/* Those that start next are told as well. */
	wp_perf_filter_wakes(perf, first, 2, sleepers[1].tid - sleepers[0].tid);
	assert_told(true, true, true);
	wp_perf_disable(perf);
	wp_perf_filter_wakes(perf, first, 2, 0);
	assert_told(false, false, false);
	assert_int_equal(wp_perf_stats(perf)->malformed, 0);
}

/* What was recorded by the event before is handed out after the change. */
static void no_record_is_lost_by_the_change(void **state)
{
	const struct wp_tid_range both[] = { { sleepers[0].tid,
					       sleepers[1].tid } };

	(void)state;
	skip_unless_told();
	wp_perf_filter_wakes(perf, both, 1, 0);
	wp_perf_enable(perf);
	wake_both();
	wp_perf_filter_wakes(perf, both, 1, 1);
	wake_both();
	read_records();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sleepers[i].wakes, 2 * ROUNDS);
		/* Who wakes them is in none of the ranges. */
		assert_int_equal(sleepers[i].samples, 0);
	}
}

static void as_many_ranges_as_there_may_be_are_taken(void **state)
{
	struct wp_tid_range v[WP_PERF_RANGES_MAX];
	const pid_t tid = sleepers[1].tid;

	(void)state;
	skip_unless_told();
	/* Numbers as long as they come (linux/threads.h, PID_MAX_LIMIT). */
	for (int i = 0; i < WP_PERF_RANGES_MAX; i++)
		v[i] = (struct wp_tid_range){ (4 << 20) - 90 + 10 * i,
					      (4 << 20) - 89 + 10 * i };
	v[0] = only(tid);
	wp_perf_filter_wakes(perf, v, WP_PERF_RANGES_MAX, 0);
	wp_perf_enable(perf);
	assert_told(false, true, false);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_filter_takes_the_place_of_the_one_before),
		TEST(no_record_is_lost_by_the_change),
		TEST(as_many_ranges_as_there_may_be_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
