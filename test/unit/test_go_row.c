/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: unwind.  go_row.h: frames of Go's functions, by .gopclntab. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cfi_bytes.h"
#include "make_go_table.h"
#include "wallprof/unwind.h"

#if defined(__x86_64__)
enum {
	/* The file: the table, and from CODE_AT on the code, which begins at
	 * TEXT. */
	CODE_AT = MAX,
	CODE_LEN = 0x200,
	/* In the third function, before it makes its frame. */
	PC = TEXT + 0x64,
	STACK = 0x70000,
};

static enum wp_mem_result read_word(void *ctx, uint64_t avma, void *buf,
				    size_t len)
{
	uint8_t *to = buf;

	for (size_t i = 0; i < len; i++, avma++) {
		uint64_t at = avma - STACK;

		if (at >= 2 * sizeof(uint64_t))
			return WP_MEM_UNREADABLE;
		to[i] = ((const uint8_t *)ctx)[at];
	}
	return WP_MEM_OK;
}

/* Walk from the third function, which is named NAME and has RETURN_AVMA above
 * its frame; the flags of its caller's frame, and its caller's caller in
 * *RET_NEXT, 0 if the walk did not get there. */
static uint32_t caller_of(const char *name, uint64_t return_avma,
			  uint64_t *ret_next)
{
	uint64_t words[2] = { return_avma, TEXT + 2 };
	struct section s = make();
	uint8_t file[CODE_AT + CODE_LEN] = { 0 };
	struct wp_elf_image image;
	struct wp_unwind_module module = { .start_avma = TEXT,
					   .end_avma = TEXT + CODE_LEN,
					   .image = &image };
	struct wp_unwind_modules modules = { .v = &module, .len = 1 };
	struct wp_mem mem = { .read = read_word, .ctx = words };
	struct wp_frame frames[8];
	uint64_t cfa[8];
	struct wp_stack stack = { .frames = frames, .cfa_avma = cfa, .cap = 8 };
	struct wp_unwinder *unwinder;
	struct wp_go_table table;
	struct wp_regs regs = { 0 };
	uint32_t func_off;

	s.image = image_of(s.v, s.len, TABLE);
	s.image.go_table = (struct wp_elf_range){ TABLE, 0, s.len };
	assert_int_equal(wp_go_table_open(&table, &s.image), 0);
	memcpy(&func_off, s.v + table.funcs_off + 2 * 8 + 4, 4);
	put_at(&s, table.funcs_off + func_off + 4, s.len - table.names_off, 4);
	for (size_t i = 0, end = strlen(name) + 1; i < end; i++)
		put_at(&s, s.len, (uint8_t)name[i], 1);
	image_free(&s.image);
	memcpy(file, s.v, s.len);
	image = image_of(file, sizeof(file), TEXT - CODE_AT);
	image.go_table = (struct wp_elf_range){ TEXT - CODE_AT, 0, s.len };

	wp_reg_set(&regs, WP_REG_PC, PC);
	wp_reg_set(&regs, WP_REG_SP, STACK);
	assert_int_equal(wp_unwinder_new(&unwinder, WP_UNWIND_ROWS), 0);
	wp_unwind_walk(unwinder, &modules, &regs, &mem, WP_UNWIND_THOROUGH,
		       &stack);
	assert_true(stack.depth >= 2);
	assert_int_equal(frames[1].pc_avma, return_avma);
	*ret_next = stack.depth > 2 ? frames[2].pc_avma : 0;
	wp_unwinder_free(unwinder);
	image_free(&image);
	test_free(s.v);
	return frames[1].flags;
}

/* A thread is preempted before any instruction, a function's first too: the byte
 * before is another function's.  C calls back from behind such a pc, too. */
static void who_was_preempted_is_where_it_was(void **state)
{
	static const char *const callees[] = { "runtime.asyncPreempt",
					       "runtime.sigpanic",
					       "runtime.debugCallV2",
					       "runtime.cgocallback" };
	uint64_t next;

	(void)state;
	for (size_t i = 0; i < sizeof(callees) / sizeof(*callees); i++) {
		assert_int_equal(caller_of(callees[i], TEXT, &next), 0);
		assert_int_equal(next, TEXT + 2);
	}
}

static void another_function_was_called(void **state)
{
	static const char *const callees[] = { "main.ccc",
					       "runtime.asyncPreempt2",
					       "asyncPreempt", "" };
	uint64_t next;

	(void)state;
	for (size_t i = 0; i < sizeof(callees) / sizeof(*callees); i++) {
		assert_int_equal(caller_of(callees[i], TEXT + 1, &next),
				 WP_FRAME_RETURN);
		assert_int_equal(next, TEXT + 2);
		/* No function ends there. */
		(void)caller_of(callees[i], TEXT, &next);
		assert_int_equal(next, 0);
	}
}
#endif

int main(void)
{
#if defined(__x86_64__)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_was_preempted_is_where_it_was),
		cmocka_unit_test(another_function_was_called),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
#else
	return 0;
#endif
}
