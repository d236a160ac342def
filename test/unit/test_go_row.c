/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: unwind.  go_row.h: frames of Go's functions, by .gopclntab. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../unwind/go_row.h"
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
	/* In it, where its frame has 0x1000 bytes. */
	FRAMED = TEXT + 0x80,
	FRAME = 0x1000,
	TOP_FRAME = 1,
	SP_WRITE = 2,
	FRAMES_AT = 8,
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

/* A program of the three functions with CODE, the third of which has FLAGS and its table
 * of frame sizes at FRAMES_OFF. */
static struct wp_elf_image program_of(const uint8_t *code, uint8_t flags,
				      uint32_t frames_off)
{
	uint8_t file[CODE_AT + CODE_LEN] = { 0 };
	struct section s = make();
	struct wp_elf_image image;
	struct wp_go_table table;
	uint32_t func_off;

	s.image = image_of(s.v, s.len, TABLE);
	s.image.go_table = (struct wp_elf_range){ TABLE, 0, s.len };
	assert_int_equal(wp_go_table_open(&table, &s.image), 0);
	*flags_of(&s, &table, 2, true) = flags;
	memcpy(&func_off, s.v + table.funcs_off + 2 * 8 + 4, 4);
	put_at(&s, table.funcs_off + func_off + 16, frames_off, 4);
	image_free(&s.image);
	memcpy(file, s.v, s.len);
	memcpy(file + CODE_AT, code, CODE_LEN);
	image = image_of(file, sizeof(file), TEXT - CODE_AT);
	image.go_table = (struct wp_elf_range){ TEXT - CODE_AT, 0, s.len };
	test_free(s.v);
	return image;
}

/* The row at SVMA of such a program. */
static enum wp_step_result row_of(const uint8_t *code, uint8_t flags,
				  uint64_t svma, struct wp_cfi_row *ret)
{
	struct wp_elf_image image = program_of(code, flags, FRAMES_AT);
	enum wp_step_result result = wp_go_row(&image, svma, ret);

	image_free(&image);
	return result;
}

/* int3 up to the next function's alignment; more of it is code. */
static void padding_behind_a_function_is_none_of_it(void **state)
{
	const struct {
		size_t int3s, padding;
	} cases[] = { { 0, 0 },	  { 1, 1 },   { 8, 8 },
		      { 63, 63 }, { 64, 64 }, { 65, 64 } };
	struct wp_cfi_row row;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t code[CODE_LEN] = { 0 };
		uint64_t end = TEXT_END - cases[i].padding;

		memset(code + CODE_LEN - cases[i].int3s, 0xcc, cases[i].int3s);
		assert_int_equal(row_of(code, 0, end - 1, &row), WP_STEP_OK);
		assert_int_equal(row_of(code, 0, end, &row), WP_STEP_NO_INFO);
	}
}

static void a_row_has_the_caller_and_its_frame_pointer(void **state)
{
	static const uint8_t code[CODE_LEN];
	const struct {
		uint64_t svma;
		int64_t size;
	} cases[] = { { PC, 0 }, { FRAMED, FRAME } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct wp_cfi_place *fp;
		struct wp_cfi_row row;

		assert_int_equal(row_of(code, 0, cases[i].svma, &row),
				 WP_STEP_OK);
		assert_int_equal(row.cfa_kind, WP_CFI_CFA_REG);
		assert_int_equal(row.cfa_reg, WP_REG_SP);
		assert_int_equal(row.cfa_off, cases[i].size + 8);
		assert_int_equal(row.reg[WP_CFI_RA_SLOT].kind, WP_CFI_OFFSET);
		assert_int_equal(row.reg[WP_CFI_SP_SLOT].kind,
				 WP_CFI_VAL_OFFSET);
		/* It is saved at once where there is a frame. */
		fp = &row.reg[WP_CFI_FP_SLOT];
		assert_int_equal(fp->kind,
				 cases[i].size ? WP_CFI_OFFSET : WP_CFI_SAME);
		/* Go keeps no other register over a call. */
		for (unsigned int k = 0; k < WP_CFI_NTRACKED; k++)
			if (k != WP_CFI_RA_SLOT && k != WP_CFI_SP_SLOT &&
			    k != WP_CFI_FP_SLOT)
				assert_int_equal(row.reg[k].kind,
						 WP_CFI_UNDEFINED);
	}
}

/* What begins a stack has that flag; where it has made a frame, or has not left the
 * stack, there is a caller. */
static void a_function_that_leaves_a_stack_may_be_its_first(void **state)
{
	static const uint8_t code[CODE_LEN];
	const struct {
		uint8_t flags;
		uint64_t svma;
		enum wp_step_result result;
		int kind;
	} cases[] = {
		{ TOP_FRAME | SP_WRITE, PC, WP_STEP_ROOT, 0 },
		{ TOP_FRAME | SP_WRITE, FRAMED, WP_STEP_OK, WP_CFI_CFA_SWITCH },
		{ SP_WRITE, PC, WP_STEP_OK, WP_CFI_CFA_SWITCH },
		{ TOP_FRAME, PC, WP_STEP_OK, WP_CFI_CFA_REG },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct wp_cfi_row row;

		assert_int_equal(
			row_of(code, cases[i].flags, cases[i].svma, &row),
			cases[i].result);
		if (cases[i].result == WP_STEP_OK)
			assert_int_equal(row.cfa_kind, cases[i].kind);
	}
}

static void code_that_begins_a_stack_ends_the_walk(void **state)
{
	/* goexit, and systemstack behind its call (test_go_end.c). */
	static const uint8_t goexit[] = { 0x90, 0xe8, 1, 2, 3, 4, 0x90 };
	static const uint8_t systemstack[] = {
		0xff, 0xd7, 0x64, 0x48, 0x8b, 0x04, 0x25, 0xf8, 0xff,
		0xff, 0xff, 0x48, 0x8b, 0x58, 0x30, 0x48, 0x8b, 0x83,
		0,    0,    0,	  0,	0x64, 0x48, 0x89, 0x04, 0x25,
		0xf8, 0xff, 0xff, 0xff, 0x48, 0x8b, 0x60, 0x38
	};
	uint8_t code[CODE_LEN] = { 0 };
	struct wp_cfi_row row;

	(void)state;
	memset(code, 0xcc, starts[1]);
	memcpy(code, goexit, sizeof(goexit));
	memcpy(code + (FRAMED - TEXT), systemstack, sizeof(systemstack));
	assert_int_equal(row_of(code, 0, TEXT, &row), WP_STEP_ROOT);
	assert_int_equal(row_of(code, 0, FRAMED + 1, &row),
			 WP_STEP_UNKNOWN_REG);
	/* The table says how it leaves the stack. */
	assert_int_equal(row_of(code, SP_WRITE, FRAMED + 1, &row), WP_STEP_OK);
	assert_int_equal(row.cfa_kind, WP_CFI_CFA_SWITCH);
	assert_int_equal(row_of(code, SP_WRITE, TEXT, &row), WP_STEP_ROOT);
}

static void what_the_table_lacks_is_not_malformed(void **state)
{
	static const uint8_t code[CODE_LEN];
	struct wp_cfi_row row;
	struct wp_elf_image image = program_of(code, 0, 0x7fffffff);

	(void)state;
	assert_int_equal(wp_go_row(&image, PC, &row), WP_STEP_BAD_INFO);
	/* Of the second function there are no sizes. */
	assert_int_equal(wp_go_row(&image, TEXT + starts[1], &row),
			 WP_STEP_NO_INFO);
	assert_int_equal(wp_go_row(&image, TEXT - 1, &row), WP_STEP_NO_INFO);
	image_free(&image);
}
#endif

int main(void)
{
#if defined(__x86_64__)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_was_preempted_is_where_it_was),
		cmocka_unit_test(another_function_was_called),
		cmocka_unit_test(padding_behind_a_function_is_none_of_it),
		cmocka_unit_test(a_row_has_the_caller_and_its_frame_pointer),
		cmocka_unit_test(
			a_function_that_leaves_a_stack_may_be_its_first),
		cmocka_unit_test(code_that_begins_a_stack_ends_the_walk),
		cmocka_unit_test(what_the_table_lacks_is_not_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
#else
	return 0;
#endif
}
