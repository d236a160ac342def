/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  wait_queue.h: what a look found is kept until it is described, and
 * the time that it is paid is paid once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "one_target.h"

enum { TID = 7 };

static struct wp_thread *t;

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, TID, "waiter");
	options = fake_target_options();
	start_target();
	t = wp_threads_find_or_add(fake.target, TID);
	assert_non_null(t);
	fake_now_ns += TICK;
	wp_time_ledger_look(&t->time, &(struct wp_schedstat){ 1000, 0, 1 },
			    fake_now_ns, fake_now_ns, false);
	return 0;
}

/* A look with WEIGHT_NS finds T in state LETTER, in SYS_futex. */
static int add(char letter, uint32_t stack_index, uint64_t weight_ns)
{
	const struct wp_thread_facts facts = { .state_char = letter,
					       .syscall_nr = SYS_futex,
					       .args = { 0x1234 } };

	return wp_wait_queue_add(t, &facts, stack_index, weight_ns);
}

static void a_wait_has_what_the_look_found(void **state)
{
	const struct wp_queued_wait *wait = fake.target->wait_queue.v;

	(void)state;
	assert_int_equal(add('S', 3, TICK), 0);
	assert_int_equal(fake.target->wait_queue.n, 1);
	assert_ptr_equal(wait->thread, t);
	assert_int_equal(wait->key.stack, 3);
	assert_int_equal(wait->key.thread, t->index);
	assert_int_equal(wait->key.state, WP_STATE_WAITING);
	assert_int_equal(wait->key.wait, WP_WAIT_FUTEX);
	/* These take reads. */
	assert_int_equal(wait->key.syscall, 0);
	assert_int_equal(wait->key.object, 0);
	assert_int_equal(wait->facts.args[0], 0x1234);
	assert_int_equal(wait->weight_ns, TICK);
	assert_true(wait->by_chance);
	assert_true(t->wait.waiting);
}

static void time_is_paid_to_the_first_of_two(void **state)
{
	const struct wp_queued_wait *v;

	(void)state;
	assert_int_equal(add('S', 3, TICK), 0);
	assert_int_equal(wp_wait_queue_reserve(&fake.target->wait_queue, 2), 0);
	v = fake.target->wait_queue.v;
	assert_int_equal(add('T', 3, 0), 0);
	assert_int_equal(v[0].wall_ns, TICK);
	assert_int_equal(v[1].wall_ns, 0);
	assert_int_equal(v[1].key.state, WP_STATE_STOPPED);
	/* No look found it by chance: it divides no time. */
	assert_int_equal(v[1].weight_ns, 0);
	assert_false(v[1].by_chance);
	v = &v[fake.target->wait_queue.n = 1];
	assert_int_equal(add('S', 3, 1), 0);
	assert_true(v->by_chance);
}

/* No stack for want of memory, or no room: the time stays owed. */
static void what_is_not_queued_keeps_its_time(void **state)
{
	struct wp_wait_queue *queue = &fake.target->wait_queue;

	(void)state;
	assert_int_equal(add('S', UINT32_MAX, TICK), -ENOMEM);
	assert_int_equal(queue->n, 0);
	queue->n = queue->cap;
	assert_int_equal(add('S', 3, TICK), -ENOMEM);
	assert_int_equal(queue->n, queue->cap);
	queue->n = 0;
	assert_false(t->wait.waiting);
	assert_int_equal(t->time.waiting_ns, TICK);
}

static void what_is_reserved_is_there(void **state)
{
	struct wp_wait_queue queue = { 0 };

	(void)state;
	assert_int_equal(wp_wait_queue_reserve(&queue, 0), 0);
	assert_null(queue.v);
	assert_int_equal(wp_wait_queue_reserve(&queue, 1), 0);
	assert_true(queue.cap >= 1);
	/* In all, not besides what is in it. */
	queue.n = 1;
	assert_int_equal(wp_wait_queue_reserve(&queue, 100), 0);
	assert_in_range(queue.cap, 100, 199);
	queue.n = queue.cap;
	assert_int_equal(wp_wait_queue_reserve(&queue, queue.cap - 1), 0);
	assert_int_equal(queue.n, queue.cap);
	assert_int_equal(wp_wait_queue_reserve(&queue, queue.cap + 1), 0);
	assert_true(queue.cap > queue.n);
	wp_wait_queue_clear(&queue);
	assert_null(queue.v);
	assert_int_equal(queue.n + queue.cap, 0);
}

static void more_than_there_can_be_is_no_memory(void **state)
{
	struct wp_wait_queue queue = { 0 };

	(void)state;
	assert_int_equal(wp_wait_queue_reserve(&queue, SIZE_MAX / 2), -ENOMEM);
	assert_null(queue.v);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_wait_has_what_the_look_found),
		TEST(time_is_paid_to_the_first_of_two),
		TEST(what_is_not_queued_keeps_its_time),
		TEST(what_is_reserved_is_there),
		TEST(more_than_there_can_be_is_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
