/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  Ticks of a target with a fake /proc, clock and tracer: what each
 * thread is credited with is the time that the clock passed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "fake_target.h"

static struct fake_target fake;
static struct fake_stack stack;

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	fake_stack_init(&stack, fake_stack_root);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_target_close(&fake);
	return 0;
}

static void start(const struct wp_sampler_options *options)
{
	assert_int_equal(fake_target_start(&fake, options), 0);
}

static void a_waiting_thread_is_credited_with_all_its_time(void **state)
{
	const struct wp_sampler_options options = fake_target_options();
	const struct wp_regs regs = fake_stack_regs(&stack);

	(void)state;
	fake_target_add_thread(&fake, 7, "waiter");
	fake_target_waits(&fake, 7, SYS_nanosleep, 0, &regs);
	start(&options);
	for (int i = 0; i < 10; i++)
		assert_int_equal(fake_target_tick(&fake, 10 * WP_NS_PER_MS), 0);
	assert_int_equal(fake_target_wall_ns(&fake, 7, WP_STATE_WAITING),
			 100 * WP_NS_PER_MS);
	assert_int_equal(fake.profile.counters.no_stop, 1);
	assert_int_equal(fake.profile.counters.unchanged, 9);
	/* The leaf, its caller, and what glibc begins a context with. */
	assert_int_equal(fake.profile.stacks[0].depth, 3);
	assert_int_equal(fake_stop.ninterrupts, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_waiting_thread_is_credited_with_all_its_time, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
