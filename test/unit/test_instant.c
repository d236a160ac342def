/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  instant.h: what is said of all threads is of one moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>
#include <time.h>

#include "../../src/sample/instant.h"
#include "../../src/sample/thread.h"
#include "one_target.h"

enum { FIRST = 7, SECOND = 8 };

/* Where both wait. */
static struct wp_regs place;

/* A lock that both wait for; who has it. */
static uint32_t word;
/* Readings of the clock until the next thing happens. */
static unsigned int left;

/* FIRST's wait has no time limit. */
static void wait_for(pid_t tid, const uint32_t *futex)
{
	fake_target_waits_timed(&fake, tid, SYS_futex,
				(uint64_t)(uintptr_t)futex,
				tid == FIRST ? 0 : (uintptr_t)&fake, &place);
}

static int setup(void **state)
{
	(void)state;
	fake_stack_init(&stack, fake_stack_root);
	place = fake_stack_regs(&stack);
	word = 100;
	left = 0;
	fake_target_open(&fake);
	options = fake_target_options();
	options.call_memory = true;
	for (pid_t tid = FIRST; tid <= SECOND; tid++) {
		fake_target_add_thread(&fake, tid, "waiter");
		wait_for(tid, &word);
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
	return wp_threads_find_or_add(fake.target, tid);
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

static void a_thread_that_waits_in_the_same_call_again_is_told(void **state)
{
	(void)state;
	for (pid_t tid = FIRST; tid <= SECOND; tid++)
		fake_target_schedstat(&fake, tid, 2000, 0, 2);
	word++;
	wp_instant_take(fake.target);
	assert_false(thread(FIRST)->at_instant);
	assert_false(thread(FIRST)->waits_again);
	/* Its lock is the sample's. */
	assert_int_equal(holder(FIRST), word - 1);
	assert_false(thread(SECOND)->at_instant);
	assert_true(thread(SECOND)->waits_again);
	assert_int_equal(holder(SECOND), word);
	/* Called from elsewhere. */
	place.v[WP_REG_SP] += 16;
	wait_for(SECOND, &word);
	wp_instant_take(fake.target);
	assert_false(thread(SECOND)->waits_again);
	/* For another futex. */
	place.v[WP_REG_SP] -= 16;
	wait_for(SECOND, &left);
	wp_instant_take(fake.target);
	assert_false(thread(SECOND)->waits_again);
}

static unsigned int nreads;

static void count_reads(void)
{
	nreads++;
}

/* The clock goes on by what one thread may take at most. */
static void take_time(void)
{
	nreads++;
	fake_now_ns += 100 * WP_NS_PER_US;
}

/* Where nothing holds up who looks, one look will do: of the clock once before it, and
 * after each of two threads twice. */
static void one_look_will_do(void **state)
{
	(void)state;
	nreads = 0;
	fake_before_clock = count_reads;
	wp_instant_take(fake.target);
	assert_int_equal(nreads, 5);
	nreads = 0;
	fake_before_clock = take_time;
	wp_instant_take(fake.target);
	assert_int_equal(nreads, 5);
}

/* It sleeps in a call whose memory, the time, is no lock. */
static void a_sleeper_is_of_the_moment_without_a_lock(void **state)
{
	static const struct timespec time = { 3, 0 };
	const struct wp_regs regs = fake_stack_regs(&stack);
	const struct wp_thread *t;

	(void)state;
	fake_target_waits(&fake, FIRST, SYS_nanosleep,
			  (uint64_t)(uintptr_t)&time, &regs);
	fake_target_schedstat(&fake, FIRST, 2000, 0, 2);
	tick();
	wp_instant_take(fake.target);
	t = thread(FIRST);
	assert_int_equal(t->memory->nparts, 1);
	assert_int_equal(t->memory->lock_len, 0);
	assert_true(t->at_instant);
	assert_true(thread(SECOND)->at_instant);
	assert_true(thread(SECOND)->memory->lock_len > 0);
}

/* A stop is on its way that is to tell its registers: it waits where its sample found it,
 * unless the stop found it elsewhere. */
static void one_that_is_stopped_for_its_registers_waits_as_sampled(void **state)
{
	struct wp_thread *t = wp_threads_find_or_add(fake.target, FIRST);

	(void)state;
	t->stop.pending = t->stop.for_registers = true;
	t->stop.facts = t->wait.facts;
	t->wait.waiting = false;
	word++;
	wp_instant_take(fake.target);
	assert_true(t->at_instant);
	assert_int_equal(holder(FIRST), word);
	t->stop.moved = true;
	wp_instant_take(fake.target);
	assert_false(t->at_instant);
	/* One that ran waits for nothing. */
	t->stop.moved = t->stop.for_registers = false;
	word++;
	wp_instant_take(fake.target);
	assert_int_equal(holder(FIRST), word - 1);
	t->stop.pending = false;
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
		cmocka_unit_test_setup_teardown(
			a_thread_that_waits_in_the_same_call_again_is_told,
			setup, end),
		cmocka_unit_test_setup_teardown(one_look_will_do, setup, end),
		cmocka_unit_test_setup_teardown(
			a_sleeper_is_of_the_moment_without_a_lock, setup, end),
		cmocka_unit_test_setup_teardown(
			one_that_is_stopped_for_its_registers_waits_as_sampled,
			setup, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
