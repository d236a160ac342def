/* SPDX-License-Identifier: Apache-2.0 */
/* one_target.h - the fake target of a test program, the options that it is sampled
 * with, and a stack for its threads.  Included after cmocka.h.
 */
#ifndef WP_TEST_ONE_TARGET_H
#define WP_TEST_ONE_TARGET_H

#include "fake_target.h"

enum { TICK = 10 * WP_NS_PER_MS };

static struct fake_target fake;
__attribute__((unused)) static struct fake_stack stack;
static struct wp_sampler_options options;

__attribute__((unused)) static int teardown(void **state)
{
	(void)state;
	fake_target_close(&fake);
	return 0;
}

/* Begin to sample with OPTIONS. */
__attribute__((unused)) static void start_target(void)
{
	assert_int_equal(fake_target_start(&fake, &options), 0);
}

/* 10 ms pass, then there is a tick. */
__attribute__((unused)) static void tick(void)
{
	assert_int_equal(fake_target_tick(&fake, TICK), 0);
}

#endif
