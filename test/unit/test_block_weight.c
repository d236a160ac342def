/* SPDX-License-Identifier: Apache-2.0 */
/* What sampled waits stand for.  Layer: profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "wallprof/block_weight.h"
#include "wallprof/hash.h"

static uint64_t seed;

static uint64_t next_random(void)
{
	return wp_hash_u64(++seed * UINT64_C(0x9e3779b97f4a7c15));
}

static double uniform(void)
{
	return (double)(next_random() >> 11) * 0x1p-53;
}

static int reset(void **state)
{
	(void)state;
	seed = 0;
	return 0;
}

struct sum {
	double count;
	double ns;
};

static void add(struct sum *sum, uint64_t rate_ns, uint64_t delay_ns)
{
	double weight = wp_block_weight_keep(rate_ns, delay_ns, next_random());

	sum->count += weight;
	sum->ns += weight * (double)delay_ns;
}

static void assert_close(double got, double want, double share)
{
	if (fabs(got - want) > share * want)
		fail_msg("%f is not within %.1f %% of %f", got, 100 * share,
			 want);
}

/* A waits once for 100 ns, B ten times for 10 ns: as much, and ten times as
 * often, at whatever rate. */
static void ten_short_waits_weigh_as_much_as_a_long_one(void **state)
{
	(void)state;
	for (uint64_t rate = 1; rate <= 100000; rate *= 10) {
		enum { ROUNDS = 400000 };
		struct sum a = { 0 }, b = { 0 };

		for (int i = 0; i < ROUNDS; i++) {
			add(&a, rate, 100);
			for (int k = 0; k < 10; k++)
				add(&b, rate, 10);
		}
		/* At the highest rate one of 1,000 and of 10,000 is kept: 400
		 * samples of either, 5 % of standard deviation. */
		assert_close(a.ns, 100.0 * ROUNDS, rate < 10000 ? 0.05 : 0.2);
		assert_close(b.ns, 100.0 * ROUNDS, rate < 10000 ? 0.05 : 0.2);
		assert_close(b.count / a.count, 10, rate < 10000 ? 0.1 : 0.4);
	}
}

/* About MEAN, bell-shaped, by the sum of uniform numbers. */
static uint64_t duration(double mean)
{
	double x = 0;

	for (int i = 0; i < 12; i++)
		x += uniform();
	x = mean + (x - 6) * mean / 6;
	return x < 1 ? 1 : (uint64_t)x;
}

/* Means of 1,000, 2,000 and 3,000 ns, equal sums: the simulation in Felix
 * Geisendoerfer's notes on Go's block profile, in which long waits drown short
 * ones from a rate of 1,000 ns on. */
static void three_kinds_of_equal_sums_stay_equal(void **state)
{
	(void)state;
	for (uint64_t rate = 1; rate <= 100000; rate *= 10) {
		double total = 0;
		struct sum got[3] = { { 0 } };
		double want[3] = { 0 };

		for (int kind = 0; kind < 3; kind++) {
			while (want[kind] < 6e8) {
				uint64_t ns = duration(1000.0 * (kind + 1));

				want[kind] += (double)ns;
				add(&got[kind], rate, ns);
			}
			total += got[kind].ns;
		}
		for (int kind = 0; kind < 3; kind++) {
			assert_close(got[kind].ns / total, 1.0 / 3, 0.05);
			assert_close(got[kind].ns, want[kind], 0.05);
			assert_close(got[kind].count,
				     want[kind] / (1000.0 * (kind + 1)), 0.05);
		}
	}
}

/* What a rate of the wrong kind would do, so that the tests above can fail. */
static void samples_without_weights_are_biased(void **state)
{
	double ns[2] = { 0 };

	(void)state;
	for (int i = 0; i < 100000; i++) {
		ns[0] += 100 *
			 (wp_block_weight_keep(100, 100, next_random()) > 0);
		for (int k = 0; k < 10; k++)
			ns[1] += 10 * (wp_block_weight_keep(100, 10,
							    next_random()) > 0);
	}
	assert_true(ns[0] > 9 * ns[1]);
}

static void no_rate_keeps_all(void **state)
{
	(void)state;
	for (uint64_t ns = 0; ns < 100; ns++)
		assert_true(wp_block_weight_keep(0, ns, next_random()) == 1);
	assert_true(wp_block_weight_keep(1000, 1000, UINT64_MAX) == 1);
	assert_true(wp_block_weight_keep(1000, 999, UINT64_MAX) == 0);
	assert_true(wp_block_weight_keep(1000, 500, 0) == 2);
	assert_true(wp_block_weight_keep(1000, 0, 0) == 1000);
}

/* How many of the looks of each interval are in DELAY from BEGIN. */
static int looks_in(uint64_t begin, uint64_t delay, uint64_t interval)
{
	int n = 0;

	for (uint64_t k = 0; k * interval < begin + delay; k++) {
		uint64_t at = k * interval + next_random() % interval;

		n += at >= begin && at < begin + delay;
	}
	return n;
}

/* Waits of all lengths under looks at random times of each interval: what
 * looks tell and what they are said to miss make the whole. */
static void looks_and_what_they_miss_make_the_whole(void **state)
{
	enum { I = 10000, N = 100000 };

	(void)state;
	for (uint64_t delay = I / 4; delay < 6 * I; delay += I / 4) {
		struct wp_block_parts missed = wp_block_weight_missed_by_ticks(
			delay, I);
		struct sum told = { 0 };

		for (int i = 0; i < N; i++) {
			uint64_t begin = next_random() % I;
			int looks = looks_in(begin, delay, I);

			if (looks < WP_BLOCK_TICKS)
				continue;
			told.count++;
			told.ns += (double)looks * I;
		}
		assert_close(told.count / N + missed.count, 1, 0.01);
		assert_close(told.ns / N + missed.time * (double)delay,
			     (double)delay, 0.01);
	}
}

static void waits_in_windows_make_the_whole(void **state)
{
	enum { WINDOW = 100, CYCLE = 1000, N = 1000000 };

	(void)state;
	for (uint64_t delay = 1; delay < 90; delay += 20) {
		double sum = 0;

		for (int i = 0; i < N; i++) {
			uint64_t begin = next_random() % CYCLE;

			if (begin + delay < WINDOW)
				sum += wp_block_weight_in_window(delay, WINDOW,
								 CYCLE);
		}
		assert_close(sum, N, 0.05);
	}
	assert_true(wp_block_weight_in_window(100, 100, 1000) == 0);
	assert_true(wp_block_weight_in_window(50, 100, 100) == 2);
}

static struct wp_profile profile;

static void add_to(uint32_t stack, uint32_t thread, uint64_t delay_ns,
		   uint64_t count)
{
	struct wp_sample_key key = {
		.stack = stack,
		.thread = thread,
		.state = WP_STATE_WAITING,
		.object = delay_ns ? wp_block_weight_class(delay_ns) : 0
	};

	assert_int_equal(wp_profile_add_sample(&profile, WP_PROFILE_BLOCK, &key,
					       count, count * delay_ns),
			 0);
}

static void assert_sample(uint32_t stack, uint32_t thread, uint64_t count,
			  uint64_t ns)
{
	const struct wp_sample_set *set = &profile.sets[WP_PROFILE_BLOCK];

	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];

		assert_int_equal(s->key.object, 0);
		if (s->key.stack != stack || s->key.thread != thread)
			continue;
		assert_int_equal(s->count, count);
		assert_int_equal(s->wall_ns, ns);
		return;
	}
	fail_msg("no sample of stack %u, thread %u", stack, thread);
}

/* Thread 0: 1,000 waits of 1,000 ns, a third of whose samples have stack 1;
 * 10 of 8,000 ns without a sample go with them.  Thread 1 has no stack at
 * all. */
static void samples_add_up_to_what_there_was(void **state)
{
	static const struct wp_profile_thread thread;
	enum { NO_STACK = 9 };

	(void)state;
	assert_int_equal(wp_profile_init(&profile), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wp_profile_add_thread(&profile, &thread), i);
	add_to(1, 0, 1000, 10);
	add_to(2, 0, 1000, 20);
	add_to(WP_BLOCK_ALL, 0, 1000, 1000);
	add_to(WP_BLOCK_ALL, 0, 8000, 10);
	add_to(WP_BLOCK_ALL, 1, 50, 7);
	assert_int_equal(wp_block_weight_finish(&profile, NO_STACK), 0);
	assert_int_equal(profile.sets[WP_PROFILE_BLOCK].nsamples, 3);
	assert_sample(1, 0, 336, 360000);
	assert_sample(2, 0, 674, 720000);
	assert_sample(NO_STACK, 1, 7, 350);
	wp_profile_clear(&profile);
}

/* 100 waits of 1,000 ns by records, and one of 5,000 by ticks: the clock says 125,000
 * and more in all.  Waits for a CPU are none. */
static void waits_add_up_to_what_the_clock_says(void **state)
{
	static const struct wp_profile_thread thread;
	static const struct {
		uint64_t wall_ns, count, ns, ticks_ns;
	} rows[] = {
		{ 125000, 120, 120000, 5000 },
		{ 55000, 50, 50000, 5000 },
		/* Ticks told too much. */
		{ 15000, 14, 14285, 714 },
		{ 4000, 4, 3809, 190 },
		/* Nobody saw the rest. */
		{ 300000, 100, 100000, 5000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_sample_key key = { .state = WP_STATE_WAITING };

		assert_int_equal(wp_profile_init(&profile), 0);
		assert_int_equal(wp_profile_add_thread(&profile, &thread), 0);
		assert_int_equal(wp_profile_add_sample(&profile,
						       WP_PROFILE_WALL, &key, 1,
						       rows[i].wall_ns),
				 0);
		key.state = WP_STATE_RUNNABLE;
		assert_int_equal(wp_profile_add_sample(&profile,
						       WP_PROFILE_WALL, &key, 1,
						       1000000),
				 0);
		add_to(1, 0, 1000, 10);
		add_to(WP_BLOCK_ALL, 0, 1000, 100);
		add_to(2, 0, 0, 0);
		key.state = WP_STATE_WAITING;
		key.stack = 2;
		assert_int_equal(wp_profile_add_sample(&profile,
						       WP_PROFILE_BLOCK, &key,
						       1, 5000),
				 0);
		assert_int_equal(wp_block_weight_finish(&profile, 9), 0);
		assert_sample(1, 0, rows[i].count, rows[i].ns);
		assert_sample(2, 0, 1, rows[i].ticks_ns);
		wp_profile_clear(&profile);
	}
}

/* Waits for a CPU have classes of their own, and each its waker. */
static void waits_for_a_cpu_are_kept_apart(void **state)
{
	static const struct wp_profile_thread thread;
	struct wp_sample_key key = { .stack = WP_BLOCK_ALL,
				     .state = WP_STATE_RUNNABLE };
	const struct wp_sample_set *set = &profile.sets[WP_PROFILE_BLOCK];

	(void)state;
	assert_int_equal(wp_profile_init(&profile), 0);
	assert_int_equal(wp_profile_add_thread(&profile, &thread), 0);
	add_to(1, 0, 1000, 10);
	add_to(WP_BLOCK_ALL, 0, 1000, 100);
	key.object = wp_block_weight_object(0, 5);
	assert_int_equal(
		wp_profile_add_sample(&profile, WP_PROFILE_BLOCK, &key, 0, 700),
		0);
	key.object = wp_block_weight_object(77, 5);
	key.stack = 1;
	assert_int_equal(
		wp_profile_add_sample(&profile, WP_PROFILE_BLOCK, &key, 0, 7),
		0);
	assert_int_equal(wp_block_weight_finish(&profile, 9), 0);
	assert_int_equal(set->nsamples, 2);
	assert_int_equal(set->samples[0].key.state, WP_STATE_WAITING);
	assert_int_equal(set->samples[0].key.object, 0);
	assert_int_equal(set->samples[0].wall_ns, 100000);
	assert_int_equal(set->samples[1].key.state, WP_STATE_RUNNABLE);
	assert_int_equal(set->samples[1].key.object, 77);
	assert_int_equal(set->samples[1].count, 0);
	assert_int_equal(set->samples[1].wall_ns, 700);
	wp_profile_clear(&profile);
}

static void classes_are_half_powers_of_two(void **state)
{
	uint32_t last = 0;

	(void)state;
	assert_int_equal(wp_block_weight_class(0), wp_block_weight_class(1));
	assert_int_equal(wp_block_weight_class(1024),
			 wp_block_weight_class(1535));
	assert_int_equal(wp_block_weight_class(1536),
			 wp_block_weight_class(2047));
	for (int i = 1; i < 64; i++) {
		uint64_t ns = UINT64_C(1) << i;

		assert_true(wp_block_weight_class(ns) > last);
		assert_true(wp_block_weight_class(ns + ns / 2) >
			    wp_block_weight_class(ns));
		last = wp_block_weight_class(ns + ns / 2);
	}
	assert_true(wp_block_weight_class(UINT64_MAX) <= WP_BLOCK_CLASSES);
}

static void rounding_is_right_on_average(void **state)
{
	uint64_t sum = 0;

	(void)state;
	for (int i = 0; i < 100000; i++)
		sum += wp_block_weight_round(2.3, next_random());
	assert_close((double)sum, 230000, 0.01);
	assert_int_equal(wp_block_weight_round(7, UINT64_MAX), 7);
	assert_int_equal(wp_block_weight_round(0, 0), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, reset)
	const struct CMUnitTest tests[] = {
		T(ten_short_waits_weigh_as_much_as_a_long_one),
		T(three_kinds_of_equal_sums_stay_equal),
		T(samples_without_weights_are_biased),
		T(no_rate_keeps_all),
		T(looks_and_what_they_miss_make_the_whole),
		T(waits_in_windows_make_the_whole),
		T(samples_add_up_to_what_there_was),
		T(waits_add_up_to_what_the_clock_says),
		T(waits_for_a_cpu_are_kept_apart),
		T(classes_are_half_powers_of_two),
		T(rounding_is_right_on_average),
	};
#undef T
	return cmocka_run_group_tests_name("block", tests, NULL, NULL);
}
