/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  pace.h: how many intervals a tick stands for, and that time is whole
 * however many these are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "../../src/sample/pace.h"
#include "one_target.h"

enum { MOST = 100 };

/* The mean stride once ticks that take TICK_NS each, at an interval of 10 ms, have been
 * made for SECONDS; *RET_SHARE: what they took of the last second. */
static double settle(struct wp_pace *pace, double max_share, uint64_t tick_ns,
		     unsigned int seconds, double *ret_share)
{
	static uint64_t now_ns = WP_NS_PER_S, used_ns;
	uint64_t end_ns = now_ns + seconds * WP_NS_PER_S, stride;
	uint64_t before_ns = 0;

	while (now_ns < end_ns) {
		stride = wp_pace_stride(pace, now_ns, used_ns, max_share, MOST);
		if (now_ns + WP_NS_PER_S >= end_ns && !before_ns)
			before_ns = used_ns;
		now_ns += stride * TICK;
		used_ns += tick_ns;
	}
	*ret_share = (double)(used_ns - before_ns) / (double)WP_NS_PER_S;
	return pace->mean;
}

/* Windows are of whole ticks. */
static void assert_double(double is, double want)
{
	assert_true(is > 0.97 * want && is < 1.03 * want);
}

static void what_costs_too_much_comes_less_often(void **state)
{
	struct wp_pace pace = { 0 };
	double share;

	(void)state;
	/* 20 % of a core at every interval. */
	assert_double(settle(&pace, 0.05, 2 * WP_NS_PER_MS, 20, &share), 4);
	assert_true(share > 0.045 && share <= 0.055);
	/* It costs less now: 2 %. */
	assert_double(settle(&pace, 0.05, WP_NS_PER_MS / 5, 20, &share), 1);
	/* However much it costs. */
	assert_double(settle(&pace, 0.05, WP_NS_PER_S, 200, &share), MOST);
}

static void what_is_within_the_limit_is_left(void **state)
{
	struct wp_pace pace = { 0 };
	double share;

	(void)state;
	assert_double(settle(&pace, 0.05, WP_NS_PER_MS / 3, 10, &share), 1);
	assert_double(settle(&pace, 0, 5 * WP_NS_PER_MS, 10, &share), 1);
}

/* 5.5 % at every interval: one tick of eleven is left out, not one of two. */
static void no_more_is_left_out_than_has_to_be(void **state)
{
	struct wp_pace pace = { 0 };
	double share;

	(void)state;
	assert_double(settle(&pace, 0.05, 55 * WP_NS_PER_MS / 100, 60, &share),
		      1.1);
	assert_true(share > 0.049 && share <= 0.051);
}

/* At the end of each window: of 200 ms while all ticks are made, then of a second. */
static void it_goes_up_at_once_and_half_of_the_way_down(void **state)
{
	struct wp_pace pace = { 0 };
	uint64_t begin_ns = WP_NS_PER_S;

	(void)state;
	assert_int_equal(wp_pace_stride(&pace, begin_ns, 0, 0.05, MOST), 1);
	begin_ns += 200 * WP_NS_PER_MS;
	(void)wp_pace_stride(&pace, begin_ns - 1, 40 * WP_NS_PER_MS, 0.05,
			     MOST);
	assert_true(pace.mean == 1);
	(void)wp_pace_stride(&pace, begin_ns, 40 * WP_NS_PER_MS, 0.05, MOST);
	assert_double(pace.mean, 4);
	/* Half as much as it may: 2 would be enough. */
	begin_ns += WP_NS_PER_S;
	(void)wp_pace_stride(&pace, begin_ns - 1, 65 * WP_NS_PER_MS, 0.05,
			     MOST);
	assert_double(pace.mean, 4);
	(void)wp_pace_stride(&pace, begin_ns, 65 * WP_NS_PER_MS, 0.05, MOST);
	assert_double(pace.mean, 3);
}

static int setup(void **state)
{
	static struct wp_regs regs;

	(void)state;
	fake_stack_init(&stack, fake_stack_root);
	regs = fake_stack_regs(&stack);
	fake_target_open(&fake);
	fake_target_add_thread(&fake, 5, "waiter");
	fake_target_waits(&fake, 5, SYS_nanosleep, 0, &regs);
	options = fake_target_options();
	return 0;
}

/* The fake's CPU time is all its time. */
static void time_is_whole_however_few_ticks_there_are(void **state)
{
	struct wp_counters *c = &fake.profile.counters;
	uint64_t begin_ns, now_ns, due_ns;

	(void)state;
	options.max_cpu = 0.05;
	start_target();
	begin_ns = now_ns = wp_sampler_next_tick(fake.sampler, fake_now_ns);
	assert_int_equal(fake_target_tick(&fake, begin_ns - fake_now_ns), 0);
	while (fake_now_ns - begin_ns < 10 * WP_NS_PER_S) {
		due_ns = wp_sampler_next_tick(fake.sampler, fake_now_ns);
		assert_true(due_ns >= now_ns);
		assert_true(due_ns < fake_now_ns + 2 * WP_NS_PER_S);
		now_ns = due_ns;
		assert_int_equal(fake_target_tick(&fake, due_ns - fake_now_ns),
				 0);
	}
	/* 200 ms of 20, a second of 5, then one a second: it is never cheap enough. */
	assert_in_range(c->ticks, 20 + 5 + 6, 24 + 6 + 14);
	assert_int_equal(c->missed_ticks, 0);
	assert_in_range(c->ticks + c->spared_ticks, 990, 1210);
	assert_int_equal(fake_target_wall_ns(&fake, 5, WP_NSTATES),
			 fake_now_ns - begin_ns);
	assert_int_equal(wp_sampler_period(fake.sampler),
			 (uint64_t)(fake.sampler->pace.mean * TICK));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_costs_too_much_comes_less_often),
		cmocka_unit_test(what_is_within_the_limit_is_left),
		cmocka_unit_test(no_more_is_left_out_than_has_to_be),
		cmocka_unit_test(it_goes_up_at_once_and_half_of_the_way_down),
		cmocka_unit_test_setup_teardown(
			time_is_whole_however_few_ticks_there_are, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
