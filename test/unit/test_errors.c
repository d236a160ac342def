/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: output.  errors.h: the standard error of what looks divide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "../../src/output/errors.h"
#include "wallprof/random.h"

static struct wp_profile profile;

static int setup(void **state)
{
	const struct wp_profile_thread thread = { .tid = 1 };

	(void)state;
	assert_int_equal(wp_profile_init(&profile), 0);
	profile.meta.has_wall = true;
	for (int i = 0; i < 2; i++)
		wp_profile_add_thread(&profile, &thread);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wp_profile_clear(&profile);
	return 0;
}

/* Add to PROFILE a sample of STACK in THREAD. */
static struct wp_profile_sample *add(uint32_t thread, uint32_t stack,
				     enum wp_state state, uint64_t wall_ns)
{
	const struct wp_sample_key key = { .stack = stack,
					   .thread = thread,
					   .state = (uint8_t)state };
	struct wp_sample_set *set = &profile.sets[WP_PROFILE_WALL];

	assert_int_equal(wp_profile_add_sample(&profile, WP_PROFILE_WALL, &key,
					       1, wall_ns),
			 0);
	return &set->samples[set->nsamples - 1];
}

static void add_wait(uint32_t thread, uint32_t stack, uint64_t wall_ns,
		     uint64_t exact_ns, uint64_t looks)
{
	struct wp_profile_sample *s = add(thread, stack, WP_STATE_WAITING,
					  wall_ns);

	s->exact_ns = exact_ns;
	s->looks = looks;
}

/* Set ERRORS to those of rows by stack; the caller clears it. */
static void add_up(struct wp_errors *errors)
{
	assert_int_equal(wp_errors_init(errors, &profile, WP_PROFILE_WALL), 0);
	for (uint32_t i = 0; i < profile.sets[WP_PROFILE_WALL].nsamples; i++) {
		const struct wp_profile_sample *s = wp_errors_sample(errors, i);

		assert_int_equal(wp_errors_add(errors, s->key.stack, s), 0);
	}
}

/* The standard error of S of P ns by N samples, by the formula of errors.h. */
static double error(double s, double p, double n)
{
	double q = (n * s / p + 2) / (n + 4);

	return p * sqrt(q * (1 - q) / (n + 4));
}

/* Rows by stack: 0 has 400 of 1,000 ns by 100 looks in one thread and all that another
 * has, 1 the rest, 2 is known exactly.  Samples of both threads come mixed. */
static void a_share_is_as_wrong_as_tosses_of_a_coin(void **state)
{
	struct wp_errors errors;

	(void)state;
	add_wait(0, 0, 900, 500, 40);
	add_wait(1, 0, 300, 0, 1);
	add_wait(0, 1, 600, 0, 60);
	add_wait(0, 2, 700, 700, 0);
	add_up(&errors);
	assert_true(errors.known);
	/* 1,000 ns times the root of 0.4 * 0.6 / 100, and what one look leaves
	 * open: it would be 0 for a sample of all. */
	assert_in_range(error(400, 1000, 100), 48, 49);
	assert_float_equal(wp_errors_of(&errors, 0),
			   hypot(error(400, 1000, 100), error(300, 300, 1)),
			   0.01);
	assert_in_range(error(300, 300, 1), 60, 70);
	assert_float_equal(wp_errors_of(&errors, 1), error(600, 1000, 100),
			   0.01);
	assert_float_equal(wp_errors_of(&errors, 2), 0, 0);
	assert_float_equal(wp_errors_of(&errors, 3), 0, 0);
	wp_errors_clear(&errors);
}

/* Running and runnable time go to the same stacks. */
static void cpu_samples_divide_the_time_ready_to_run(void **state)
{
	struct wp_errors errors;

	(void)state;
	add(0, 0, WP_STATE_RUNNING, 500)->cpu_count = 30;
	add(0, 0, WP_STATE_RUNNABLE, 100);
	add(0, 1, WP_STATE_RUNNING, 200)->cpu_count = 10;
	/* No CPU samples: two looks. */
	add(1, 2, WP_STATE_RUNNING, 400)->looks = 1;
	add(1, 3, WP_STATE_RUNNING, 400)->looks = 1;
	add_up(&errors);
	assert_float_equal(wp_errors_of(&errors, 0), error(600, 800, 40), 0.01);
	assert_float_equal(wp_errors_of(&errors, 1), error(200, 800, 40), 0.01);
	assert_float_equal(wp_errors_of(&errors, 2), error(400, 800, 2), 0.01);
	wp_errors_clear(&errors);
}

/* Of a profile of others, or an old one. */
static void without_looks_no_error_is_known(void **state)
{
	struct wp_errors errors;

	(void)state;
	add(0, 0, WP_STATE_RUNNING, 500)->cpu_count = 30;
	add(0, 1, WP_STATE_WAITING, 500);
	add_up(&errors);
	assert_false(errors.known);
	wp_errors_clear(&errors);
	/* But of a CPU profile. */
	profile.meta.has_wall = false;
	add_up(&errors);
	assert_true(errors.known);
	wp_errors_clear(&errors);
}

/* A thread has one of two waits, P of its time the first: the error that is told of
 * each recording holds the truth as often as it should. */
static void the_truth_is_within_two_errors_in_95_of_100(void **state)
{
	enum { RECORDINGS = 10000, LOOKS = 100 };
	static const double shares[] = { 0.5, 0.3, 0.1, 0.05 };
	struct wp_random random = { 1 };

	(void)state;
	add_wait(0, 0, 0, 0, 0);
	add_wait(0, 1, 0, 0, 0);
	for (size_t k = 0; k < sizeof(shares) / sizeof(*shares); k++) {
		struct wp_profile_sample *s =
			profile.sets[WP_PROFILE_WALL].samples;
		unsigned int within = 0;

		for (int i = 0; i < RECORDINGS; i++) {
			struct wp_errors errors;
			uint64_t first = 0;

			for (int look = 0; look < LOOKS; look++)
				first += (double)(wp_random_next(&random) >>
						  11) < shares[k] * 0x1p53;
			s[0].looks = first;
			s[0].wall_ns = first * 1000;
			s[1].looks = LOOKS - first;
			s[1].wall_ns = (LOOKS - first) * 1000;
			add_up(&errors);
			within += fabs((double)s[0].wall_ns -
				       shares[k] * LOOKS * 1000) <=
				  2 * wp_errors_of(&errors, 0);
			wp_errors_clear(&errors);
		}
		assert_in_range(within, RECORDINGS * 93 / 100,
				RECORDINGS * 98 / 100);
	}
}

/* Add to PROFILE what was sampled of STACK's objects: BYTES, whose variance is so much in
 * bytes * 65536. */
static void add_bytes(uint32_t stack, double bytes, double variance)
{
	const struct wp_sample_key key = { .stack = stack };
	struct wp_sample_set *set = &profile.sets[WP_PROFILE_HEAP];

	assert_int_equal(wp_profile_add_sample(&profile, WP_PROFILE_HEAP, &key,
					       1, (uint64_t)llround(bytes)),
			 0);
	set->samples[set->nsamples - 1].weight_ns += (uint64_t)llround(
		variance);
}

/* The error of the share of ROW's bytes, times all. */
static double error_of_bytes(uint32_t row)
{
	struct wp_errors errors;
	double v;

	assert_int_equal(wp_errors_init(&errors, &profile, WP_PROFILE_HEAP), 0);
	for (uint32_t i = 0; i < profile.sets[WP_PROFILE_HEAP].nsamples; i++) {
		const struct wp_profile_sample *s = wp_errors_sample(&errors,
								     i);

		assert_int_equal(wp_errors_add(&errors, s->key.stack, s), 0);
	}
	v = wp_errors_of(&errors, row);
	assert_int_equal(errors.known, errors.all_variance > 0);
	wp_errors_clear(&errors);
	return v;
}

static void forget_bytes(void)
{
	struct wp_sample_set *set = &profile.sets[WP_PROFILE_HEAP];

	set->nsamples = 0;
	wp_index_clear(&set->index);
}

/* The numbers are those of model.test.mjs. */
static void of_bytes_the_sum_is_sampled_too(void **state)
{
	(void)state;
	profile.meta.is_of_allocations = true;
	profile.meta.heap_period = 65536;
	assert_float_equal(error_of_bytes(0), 0, 0);
	add_bytes(0, 1e6, 0);
	assert_float_equal(error_of_bytes(0), 0, 0);
	add_bytes(1, 3e6, 1e6);
	add_bytes(1, 0, 2e6);
	/* The other's are known: r = 1/4, V' = 3e6 * 65536 + 2 * (65536)^2. */
	assert_float_equal(error_of_bytes(0), 113246.95, 0.01);
	assert_float_equal(error_of_bytes(1), error_of_bytes(0), 0.01);
	forget_bytes();
}

/* Five sites of the same rate, from 20 samples on average to 500: as often as it should
 * the error that is told of each recording holds the truth. */
static void
the_true_part_of_bytes_is_within_two_errors_in_95_of_100(void **state)
{
	enum { RECORDINGS = 2000, SITES = 5, RATE = 65536 };
	static const struct {
		double number, size;
	} sites[SITES] = {
		{ 28000, 48 },	{ 6000, 700 },	 { 2000, 4096 },
		{ 800, 20000 }, { 160, 200000 },
	};
	struct wp_random random = { 1 };
	unsigned int within = 0;
	double truth = 0;

	(void)state;
	profile.meta.is_of_allocations = true;
	profile.meta.heap_period = RATE;
	for (int k = 0; k < SITES; k++)
		truth += sites[k].number * sites[k].size;
	for (int i = 0; i < RECORDINGS; i++) {
		double bytes[SITES], all = 0;

		for (uint32_t k = 0; k < SITES; k++) {
			double p = -expm1(-sites[k].size / RATE), n = 0;
			double one = sites[k].size / p, at = -1;

			/* The distance to the next that is sampled. */
			while ((at += 1 +
				      floor(log1p(-(double)(wp_random_next(
								    &random) >>
							    11) *
						  0x1p-53) /
					    log1p(-p))) < sites[k].number)
				n++;
			bytes[k] = n * one;
			all += bytes[k];
			add_bytes(k, bytes[k], bytes[k] * one * (1 - p) / RATE);
		}
		for (uint32_t k = 0; k < SITES; k++)
			within += fabs(bytes[k] / all - sites[k].number *
								sites[k].size /
								truth) *
					  all <=
				  2 * error_of_bytes(k);
		forget_bytes();
	}
	assert_in_range(within, RECORDINGS * SITES * 93 / 100,
			RECORDINGS * SITES * 97 / 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_share_is_as_wrong_as_tosses_of_a_coin),
		TEST(cpu_samples_divide_the_time_ready_to_run),
		TEST(without_looks_no_error_is_known),
		TEST(the_truth_is_within_two_errors_in_95_of_100),
		TEST(of_bytes_the_sum_is_sampled_too),
		TEST(the_true_part_of_bytes_is_within_two_errors_in_95_of_100),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
