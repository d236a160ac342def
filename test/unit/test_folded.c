/* SPDX-License-Identifier: Apache-2.0 */
/* Folded stacks.
 *
 * Layer: output.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile_maker.h"
#include "wallprof/output.h"

static void assert_kind_folds(const struct wp_profile *p,
			      enum wp_profile_kind kind, const char *want)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(wp_write_folded(p, kind, f), 0);
	fclose(f);
	assert_string_equal(text, want);
	free(text);
}

static void assert_folds(const struct wp_profile *p, const char *want)
{
	assert_kind_folds(p, WP_PROFILE_WALL, want);
}

static void server_folds_to_known_lines(void **state)
{
	struct wp_profile p;

	(void)state;
	make_server(&p);
	assert_folds(
		&p,
		"?[31m\xef\xbf\xbd:e\xc3\xa9?;[no stack: memory not readable]"
		" 10000000\n"
		"server;main;serve;epoll_wait 9000000\n"
		"server;main;serve;handle;parse_inline_[i] 1000000\n"
		"work-1;[truncated: no unwind info in anonymous memory];"
		"hot:loop?(int) 3950000\n"
		"work-1;start_thread;work;__lll_lock_wait 6000000\n"
		"work-1;start_thread;work;syscall 50000\n"
		"work-2;[truncated: no unwind info in anonymous memory];"
		"hot:loop?(int) 3950000\n"
		"work-2;start_thread;work;__lll_lock_wait 6000000\n"
		"work-2;start_thread;work;syscall 50000\n");
	wp_profile_clear(&p);
}

/* The states of one stack, two threads of one name, and two addresses of one
 * function make one line; rounding happens once. */
static void equal_lines_are_one(void **state)
{
	static const struct maker_symbol symbols[] = {
		{ 0x10, "f", "", 0 },
		{ 0x20, "f", "", 0 },
	};
	static const uint64_t a[] = { 0x10, 0 }, b[] = { 0x20, 0 };
	struct wp_profile p;
	uint32_t t, u, s;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	t = mk_thread(&p, 1, "");
	u = mk_thread(&p, 2, "");
	s = mk_stack(&p, a, WP_END_ROOT, 0);
	mk_sample(&p, t, s, WP_STATE_RUNNING, WP_WAIT_NONE, "", 1, 1400);
	mk_sample(&p, t, s, WP_STATE_RUNNABLE, WP_WAIT_NONE, "", 1, 1400);
	s = mk_stack(&p, b, WP_END_ROOT, 0);
	mk_sample(&p, u, s, WP_STATE_RUNNING, WP_WAIT_NONE, "", 1, 1400);
	mk_lines(&p, symbols, 2);
	assert_folds(&p, "[no name];f 4\n");
	wp_profile_clear(&p);
}

static void kernel_and_bare_addresses_are_named(void **state)
{
	struct wp_profile p;
	struct wp_frame frames[2];
	struct wp_stack stack = { .frames = frames, .depth = 2 };
	uint32_t t;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	t = mk_thread(&p, 1, "a b");
	frames[0] = (struct wp_frame){ .pc_avma = mk_str(&p, "do_futex"),
				       .mapping = WP_MAPPING_KERNEL,
				       .flags = WP_FRAME_NAMED };
	frames[1] = (struct wp_frame){ .pc_avma = 0x1235,
				       .flags = WP_FRAME_RETURN };
	mk_sample(&p, t, wp_profile_add_stack(&p, &stack, 0), WP_STATE_WAITING,
		  WP_WAIT_LOCK, "", 1, 1000);
	mk_lines(&p, NULL, 0);
	assert_folds(&p, "a b;0x1234;do_futex_[k] 1\n");
	wp_profile_clear(&p);
}

/* As all other formats show it: bytes in use, or else that were allocated. */
static void a_heap_folds_to_bytes(void **state)
{
	static const uint64_t a[] = { 0x10, 0 };
	struct wp_sample_key key = { 0 };
	struct wp_profile p;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	key.thread = mk_thread(&p, 1, "t");
	key.stack = mk_stack(&p, a, WP_END_ROOT, 0);
	assert_int_equal(
		wp_profile_add_sample(&p, WP_PROFILE_HEAP, &key, 7, 700), 0);
	p.sets[WP_PROFILE_HEAP].samples[0].cpu_count = 2;
	p.sets[WP_PROFILE_HEAP].samples[0].cpu_ns = 200;
	mk_lines(&p, NULL, 0);
	assert_kind_folds(&p, WP_PROFILE_HEAP, "t;0x10 200\n");
	p.meta.is_of_allocations = true;
	assert_kind_folds(&p, WP_PROFILE_HEAP, "t;0x10 700\n");
	wp_profile_clear(&p);
}

/* As prctl(PR_SET_NAME, "") leaves it. */
static void a_process_without_a_name_has_a_place_of_its_own(void **state)
{
	static const char *const names[] = { "", "nginx" };
	static const uint64_t a[] = { 0x10, 0 };
	struct wp_profile p;
	uint32_t stack;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	stack = mk_stack(&p, a, WP_END_ROOT, 0);
	for (int32_t i = 0; i < 2; i++) {
		const struct wp_profile_process process = {
			.pid = i + 1,
			.name = mk_str(&p, names[i]),
		};
		uint32_t t = mk_thread(&p, i + 1, "t");

		p.threads[t].process = wp_profile_add_process(&p, &process);
		mk_sample(&p, t, stack, WP_STATE_RUNNING, WP_WAIT_NONE, "", 1,
			  1000);
	}
	mk_lines(&p, NULL, 0);
	assert_folds(&p, "[no name];t;0x10 1\nnginx;t;0x10 1\n");
	wp_profile_clear(&p);
}

static void less_than_a_microsecond_is_no_line(void **state)
{
	static const uint64_t a[] = { 0x10, 0 };
	struct wp_profile p;
	uint32_t t;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	t = mk_thread(&p, 1, "t");
	mk_sample(&p, t, mk_stack(&p, a, WP_END_ROOT, 0), WP_STATE_RUNNING,
		  WP_WAIT_NONE, "", 1, 499);
	mk_lines(&p, NULL, 0);
	assert_folds(&p, "");
	wp_profile_clear(&p);
}

static void full_disk_is_an_error(void **state)
{
	FILE *f = fopen("/dev/full", "w");
	struct wp_profile p;

	(void)state;
	if (!f)
		skip();
	make_server(&p);
	assert_int_equal(wp_write_folded(&p, WP_PROFILE_WALL, f), -ENOSPC);
	fclose(f);
	wp_profile_clear(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_folds_to_known_lines),
		cmocka_unit_test(equal_lines_are_one),
		cmocka_unit_test(kernel_and_bare_addresses_are_named),
		cmocka_unit_test(a_heap_folds_to_bytes),
		cmocka_unit_test(
			a_process_without_a_name_has_a_place_of_its_own),
		cmocka_unit_test(less_than_a_microsecond_is_no_line),
		cmocka_unit_test(full_disk_is_an_error),
	};

	return cmocka_run_group_tests_name("folded", tests, NULL, NULL);
}
