/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: hang.  dump.h: what is found in a dump. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "wallprof/dump.h"

static struct wp_dump dump;

static int setup(void **state)
{
	(void)state;
	dump = (struct wp_dump)WP_DUMP_INIT;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wp_dump_clear(&dump);
	return 0;
}

static void add_thread(int32_t tid)
{
	struct wp_dump_thread *t = wp_dump_add_thread(&dump);

	assert_non_null(t);
	t->tid = tid;
}

static void what_is_added_is_empty(void **state)
{
	(void)state;
	add_thread(1);
	assert_int_equal(dump.threads[0].call.nr, -1);
	assert_int_equal(dump.threads[0].times.cpu, -1);
	assert_true(dump.threads[0].times.waited_ns == UINT64_MAX);
	assert_string_equal(dump.threads[0].lock.type, "");
	assert_non_null(wp_dump_add_goroutine(&dump));
	assert_true(dump.goroutines[0].waited_ns == UINT64_MAX);
	assert_non_null(wp_dump_add_label(&dump));
	assert_int_equal(dump.nlabels, 1);
	for (int i = 0; i < 2; i++) {
		const struct wp_dump_frame *frame = wp_dump_add_frame(&dump);
		const struct wp_edge *edge = wp_dump_add_edge(&dump);

		assert_ptr_equal(frame, &dump.frames[i]);
		assert_ptr_equal(edge, &dump.edges[i]);
		assert_int_equal(dump.frames[i].pc_avma, 0);
		assert_int_equal(dump.edges[i].from, 0);
		dump.frames[i].pc_avma = 1;
		dump.edges[i].from = 1;
	}
	assert_int_equal(dump.nframes, 2);
	assert_int_equal(dump.nedges, 2);
}

static void a_process_is_found_by_its_pid(void **state)
{
	(void)state;
	assert_true(wp_dump_find_process(&dump, 0) == UINT32_MAX);
	for (int32_t pid = 10; pid < 13; pid++) {
		struct wp_dump_process *p = wp_dump_add_process(&dump);

		assert_non_null(p);
		p->pid = pid;
	}
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(wp_dump_find_process(&dump, 10 + (int)i), i);
	assert_true(wp_dump_find_process(&dump, 0) == UINT32_MAX);
	assert_true(wp_dump_find_process(&dump, 13) == UINT32_MAX);
}

static void a_thread_is_found_by_its_tid(void **state)
{
	static const int32_t tids[] = { 30, 10, 20, 10 };
	uint32_t *by_tid;

	(void)state;
	by_tid = wp_dump_sort_tids(&dump);
	assert_non_null(by_tid);
	assert_true(wp_dump_find_tid(&dump, by_tid, 0) == UINT32_MAX);
	free(by_tid);
	for (size_t i = 0; i < 4; i++)
		add_thread(tids[i]);
	by_tid = wp_dump_sort_tids(&dump);
	assert_non_null(by_tid);
	assert_int_equal(wp_dump_find_tid(&dump, by_tid, 30), 0);
	assert_int_equal(wp_dump_find_tid(&dump, by_tid, 10), 1);
	assert_int_equal(wp_dump_find_tid(&dump, by_tid, 20), 2);
	assert_true(wp_dump_find_tid(&dump, by_tid, 9) == UINT32_MAX);
	assert_true(wp_dump_find_tid(&dump, by_tid, 15) == UINT32_MAX);
	assert_true(wp_dump_find_tid(&dump, by_tid, 31) == UINT32_MAX);
	free(by_tid);
}

static void threads_are_ordered_by_tid_then_by_place(void **state)
{
	static const uint32_t i[] = { 0, 1, 2 };

	(void)state;
	add_thread(7);
	add_thread(5);
	add_thread(7);
	assert_int_equal(wp_dump_compare_tids(&i[0], &i[1], &dump), 1);
	assert_int_equal(wp_dump_compare_tids(&i[1], &i[0], &dump), -1);
	assert_int_equal(wp_dump_compare_tids(&i[0], &i[2], &dump), -1);
	assert_int_equal(wp_dump_compare_tids(&i[2], &i[0], &dump), 1);
	assert_int_equal(wp_dump_compare_tids(&i[2], &i[2], &dump), 0);
}

static void a_stack_that_is_cut_says_why(void **state)
{
	struct wp_dump_stack stack = { .end = WP_END_ROOT, .nframes = 1 };
	char buf[WP_DUMP_CUT_MAX], want[WP_DUMP_CUT_MAX];
	const char *why = wp_stack_end_text(WP_END_NO_MODULE);

	(void)state;
	assert_ptr_equal(wp_dump_cut_text(&dump, &stack, buf), buf);
	assert_string_equal(buf, "");
	stack.end = WP_END_NO_MODULE;
	assert_string_equal(wp_dump_cut_text(&dump, &stack, buf), why);
	stack.end_module = wp_intern_add_str(&dump.strings, "libc.so.6");
	snprintf(want, sizeof(want), "%s in libc.so.6", why);
	assert_string_equal(wp_dump_cut_text(&dump, &stack, buf), want);
}

static void edges_have_names(void **state)
{
	(void)state;
	assert_string_equal(wp_dump_edge_name(WP_EDGE_LOCK), "lock");
	assert_string_equal(wp_dump_edge_name(WP_EDGE_FILE_LOCK), "file lock");
	assert_string_equal(wp_dump_edge_name(WP_NEDGE_KINDS), "unknown");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_added_is_empty),
		TEST(a_process_is_found_by_its_pid),
		TEST(a_thread_is_found_by_its_tid),
		TEST(threads_are_ordered_by_tid_then_by_place),
		TEST(a_stack_that_is_cut_says_why),
		TEST(edges_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
