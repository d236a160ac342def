/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  instant.h: what is said of all threads is of one moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "../../src/sample/instant.h"
#include "../../src/sample/thread.h"
#include "one_target.h"

enum { FIRST = 7, SECOND = 8 };

/* A lock that both wait for; who has it. */
static uint32_t word;
/* Readings of the clock until the next thing happens. */
static unsigned int left;

static int setup(void **state)
{
	struct wp_regs regs;

	(void)state;
	fake_stack_init(&stack, fake_stack_root);
	regs = fake_stack_regs(&stack);
	word = 100;
	left = 0;
	fake_target_open(&fake);
	options = fake_target_options();
	options.call_memory = true;
	for (pid_t tid = FIRST; tid <= SECOND; tid++) {
		fake_target_add_thread(&fake, tid, "waiter");
		fake_target_waits(&fake, tid, SYS_futex,
				  (uint64_t)(uintptr_t)&word, &regs);
	}
	start_target();
	tick();
	return 0;
}

static int end(void **state)
{
	fake_before_clock = NULL;
	return teardown(state);
}

static const struct wp_thread *thread(pid_t tid)
{
	return wp_threads_get(fake.target, tid);
}

static uint32_t holder(pid_t tid)
{
	uint32_t copied = 0;

	assert_true(wp_call_memory_read(thread(tid)->memory,
					(uint64_t)(uintptr_t)&word, &copied,
					sizeof(copied)));
	return copied;
}

static void change_holder(void)
{
	if (left && !--left)
		word++;
}

/* The holder changes, and the looker has no CPU for a millisecond. */
static void lose_cpu(void)
{
	if (!left || --left)
		return;
	word++;
	fake_now_ns += WP_NS_PER_MS;
}

static void always_lose_cpu(void)
{
	word++;
	fake_now_ns += WP_NS_PER_MS;
}

static void who_waits_for_one_lock_waits_for_one_holder(void **state)
{
	(void)state;
	/* Before the second copy, or later. */
	for (unsigned int at = 2; at <= 4; at++) {
		uint32_t was = word;

		left = at;
		fake_before_clock = change_holder;
		wp_instant_take(fake.target);
		fake_before_clock = NULL;
		assert_int_equal(word, was + 1);
		assert_int_equal(holder(FIRST), holder(SECOND));
	}
}

static void a_lock_is_read_again_if_the_looker_was_held_up(void **state)
{
	(void)state;
	left = 3;
	fake_before_clock = lose_cpu;
	wp_instant_take(fake.target);
	assert_int_equal(word, 101);
	assert_int_equal(holder(FIRST), 101);
	assert_int_equal(holder(SECOND), 101);
	assert_int_equal(thread(FIRST)->memory->time_ns, fake_now_ns);
	assert_true(thread(FIRST)->at_instant);
}

static void a_looker_that_is_always_held_up_comes_to_an_end(void **state)
{
	(void)state;
	fake_before_clock = always_lose_cpu;
	wp_instant_take(fake.target);
	assert_true(thread(FIRST)->at_instant);
	assert_int_equal(holder(FIRST), holder(SECOND));
}

static void a_thread_that_was_woken_is_not_of_the_moment(void **state)
{
	(void)state;
	fake_target_runs(&fake, SECOND);
	word++;
	wp_instant_take(fake.target);
	assert_true(thread(FIRST)->at_instant);
	assert_false(thread(SECOND)->at_instant);
	/* The lock that it waited for, as it was then. */
	assert_int_equal(holder(FIRST), word);
	assert_int_equal(holder(SECOND), word - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			who_waits_for_one_lock_waits_for_one_holder, setup,
			end),
		cmocka_unit_test_setup_teardown(
			a_lock_is_read_again_if_the_looker_was_held_up, setup,
			end),
		cmocka_unit_test_setup_teardown(
			a_looker_that_is_always_held_up_comes_to_an_end, setup,
			end),
		cmocka_unit_test_setup_teardown(
			a_thread_that_was_woken_is_not_of_the_moment, setup,
			end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
