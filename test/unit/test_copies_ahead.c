/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  copies_ahead.h: which stacks are copied together, and for whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "../../src/sample/copies_ahead.h"
#include "one_target.h"

enum { FIRST = 7, MOST = 40 };

/* The stacks of MOST threads: each a page, filled with its index. */
static uint8_t *pages;
static struct wp_task_record records[MOST];
static const struct wp_task_record *v[MOST];

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void look_at_all(size_t n)
{
	fake.sampler->scan.v = v;
	fake.sampler->scan.n = n;
	fake.sampler->scan.next = 0;
}

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	pages = mmap(NULL, MOST * page_size(), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return -1;
	for (int i = 0; i < MOST; i++) {
		fake_target_add_thread(&fake, FIRST + i, "waiter");
		memset(pages + (size_t)i * page_size(), i + 1, page_size());
		records[i] = (struct wp_task_record){ .pid = getpid(),
						      .tid = FIRST + i,
						      .state_char = 'S',
						      .run_ns = 1000,
						      .slices = 1,
						      .nr = SYS_nanosleep };
		records[i].regs[WP_REG_SP] = (uintptr_t)pages +
					     (size_t)i * page_size() + 512;
		v[i] = &records[i];
	}
	options = fake_target_options();
	start_target();
	for (int i = 0; i < MOST; i++)
		if (!wp_threads_find_or_add(fake.target, FIRST + i))
			return -1;
	look_at_all(MOST);
	return 0;
}

static int end(void **state)
{
	munmap(pages, MOST * page_size());
	wp_bpf_scan_forget(fake.sampler);
	return teardown(state);
}

static struct wp_thread *thread(int i)
{
	return wp_threads_find(fake.target, FIRST + i);
}

static bool take(int i, size_t *ret_len, const uint8_t **ret_data)
{
	const struct wp_task_record *record = wp_bpf_scan_find(
		fake.sampler, getpid(), FIRST + i);

	assert_ptr_equal(record, &records[i]);
	return wp_copies_ahead_take(thread(i), record, ret_len, ret_data);
}

static size_t count_ahead(void)
{
	return fake.sampler->ahead.n - fake.sampler->ahead.next;
}

static void assert_taken(int i)
{
	const uint8_t *data;
	size_t len;

	assert_true(take(i, &len, &data));
	assert_int_equal(len, wp_stack_copy_short(records[i].regs[WP_REG_SP] -
							  WP_RED_ZONE,
						  page_size()));
	assert_int_equal(data[0], i + 1);
	assert_int_equal(data[len - 1], i + 1);
}

static void assert_alone(int i)
{
	const uint8_t *data;
	size_t len;

	assert_false(take(i, &len, &data));
}

static void each_has_its_own_stack(void **state)
{
	(void)state;
	for (int i = 0; i < MOST; i++) {
		assert_taken(i);
		assert_int_equal(count_ahead(),
				 i < 32 ? 15 - i % 16 : MOST - 1 - i);
	}
}

static void a_copy_is_taken_once(void **state)
{
	(void)state;
	assert_taken(0);
	/* Were it looked at again, it would have moved. */
	assert_alone(0);
	assert_taken(1);
}

/* The look of some is not by their records, or does not come. */
static void copies_that_nobody_asks_for_are_passed_over(void **state)
{
	(void)state;
	assert_taken(0);
	assert_taken(5);
	assert_int_equal(count_ahead(), 10);
	assert_alone(3);
	assert_taken(6);
}

static void who_has_not_moved_is_not_copied(void **state)
{
	const struct wp_schedstat same = { 1000, 0, 1 };

	(void)state;
	for (int i = 1; i < MOST; i++) {
		struct wp_thread *t = thread(i);

		if (i == 4)
			continue;
		wp_time_ledger_look(&t->time, &same, fake_now_ns, fake_now_ns,
				    false);
		t->wait.waiting = true;
	}
	assert_taken(0);
	assert_int_equal(count_ahead(), 1);
	assert_taken(4);
	/* The records from there on have been seen: a look at each would have its thread
	 * waiting where it was. */
	assert_alone(20);
}

static void who_does_not_wait_briefly_is_not_copied(void **state)
{
	(void)state;
	records[1].state_char = 0;
	records[2].regs[WP_REG_SP] = 0;
	records[3].state_char = 't';
	thread(4)->copy_len_waiting *= 2;
	thread(5)->watched = false;
	/* Another process's begin there. */
	records[7].pid++;
	assert_taken(0);
	assert_int_equal(count_ahead(), 1);
	assert_alone(4);
	assert_taken(6);
}

static void a_thread_alone_is_copied_alone(void **state)
{
	(void)state;
	look_at_all(1);
	assert_alone(0);
}

static void what_cannot_be_read_is_left_to_the_look(void **state)
{
	(void)state;
	assert_int_equal(munmap(pages + 2 * page_size(), page_size()), 0);
	assert_taken(0);
	assert_taken(1);
	assert_alone(2);
	assert_taken(3);
}

static void records_that_are_given_back_have_no_copies(void **state)
{
	(void)state;
	assert_taken(0);
	wp_bpf_scan_forget(fake.sampler);
	assert_int_equal(count_ahead(), 0);
	memset(pages + page_size(), 2, page_size());
	look_at_all(MOST);
	assert_taken(1);
}

static void a_record_that_was_not_the_last_asked_for_has_none(void **state)
{
	const uint8_t *data;
	size_t len;

	(void)state;
	assert_false(wp_copies_ahead_take(thread(0), &records[0], &len, &data));
	assert_ptr_equal(wp_bpf_scan_find(fake.sampler, getpid(), FIRST + 1),
			 &records[1]);
	assert_false(wp_copies_ahead_take(thread(0), &records[0], &len, &data));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_has_its_own_stack),
		TEST(a_copy_is_taken_once),
		TEST(copies_that_nobody_asks_for_are_passed_over),
		TEST(who_has_not_moved_is_not_copied),
		TEST(who_does_not_wait_briefly_is_not_copied),
		TEST(a_thread_alone_is_copied_alone),
		TEST(what_cannot_be_read_is_left_to_the_look),
		TEST(records_that_are_given_back_have_no_copies),
		TEST(a_record_that_was_not_the_last_asked_for_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
