/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: unwind.  go_switch.h: from the thread's stack to the goroutine's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../unwind/go_switch.h"
#include "cfi_bytes.h"
#include "make_go_table.h"

#if defined(__x86_64__)
enum {
	/* The file: the table, and from CODE_AT on the code, which begins at
	 * TEXT. */
	CODE_AT = MAX,
	CODE_LEN = 0x200,
	/* The caller's call, the first function's; its frame there. */
	CALL_AT = 0x10,
	RETURN = TEXT + CALL_AT + 5,
	CALLER_FRAME = 24,
	/* A pc in the third function, which it calls. */
	CALLEE = 0x60,
	PC = TEXT + CALLEE + 8,
	/* The goroutine's stack, and the thread's. */
	STACK = 0x70000,
	WORDS = 64,
	THREAD_STACK = 0x90000,
};

struct rig {
	struct wp_elf_image image;
	struct wp_unwind_module module;
	struct wp_regs regs;
	struct wp_mem mem;
	struct wp_step step;
	uint64_t words[WORDS];
	enum wp_mem_result unread;
};

static enum wp_mem_result read_stack(void *ctx, uint64_t avma, void *buf,
				     size_t len)
{
	const struct rig *r = ctx;
	/* What is below the stack reads as 0. */
	uint64_t below = 0x1000, at = avma - (STACK - below);
	uint8_t *to = buf;

	if (r->unread)
		return r->unread;
	if (at > below + sizeof(r->words) ||
	    len > below + sizeof(r->words) - at)
		return WP_MEM_UNREADABLE;
	for (size_t i = 0; i < len; i++, at++)
		to[i] = at < below ? 0 :
				     ((const uint8_t *)r->words)[at - below];
	return WP_MEM_OK;
}

static int setup(void **state)
{
	static const uint8_t call[] = { 0xe8, CALLEE - CALL_AT - 5, 0, 0, 0 };
	struct rig *r = test_calloc(1, sizeof(*r));
	struct section table = make();
	uint8_t file[CODE_AT + CODE_LEN] = { 0 };

	memcpy(file, table.v, table.len);
	memcpy(file + CODE_AT + CALL_AT, call, sizeof(call));
	r->image = image_of(file, sizeof(file), TEXT - CODE_AT);
	r->image.go_table = (struct wp_elf_range){ TEXT - CODE_AT, 0,
						   table.len };
	r->module.image = &r->image;
	r->mem = (struct wp_mem){ .read = read_stack, .ctx = r };
	r->step = (struct wp_step){ .module = &r->module,
				    .regs = &r->regs,
				    .mem = &r->mem,
				    .is_return = true };
	wp_reg_set(&r->regs, WP_REG_PC, PC);
	wp_reg_set(&r->regs, WP_REG_SP, THREAD_STACK);
	wp_reg_set(&r->regs, WP_REG_FP, STACK + 8 * 40);
	test_free(table.v);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	image_free(&r->image);
	test_free(r);
	return 0;
}

static void assert_caller(const struct rig *r, uint64_t sp, uint64_t fp)
{
	assert_int_equal(r->regs.v[WP_REG_PC], RETURN);
	assert_int_equal(r->regs.v[WP_REG_SP], sp);
	assert_int_equal(r->step.cfa_avma, sp);
	assert_int_equal(r->regs.v[WP_REG_FP], fp);
	assert_int_equal(r->regs.known, UINT64_C(1) << WP_REG_PC |
						UINT64_C(1) << WP_REG_SP |
						UINT64_C(1) << WP_REG_FP);
	assert_true(r->step.is_switch);
}

static void without_a_frame_the_callers_size_leads_to_it(void **state)
{
	struct rig *r = *state;
	uint64_t fp = r->regs.v[WP_REG_FP];

	/* Left by an earlier call, of another distance. */
	r->words[40 - CALLER_FRAME / 8 - 2] = RETURN;
	r->words[40 - CALLER_FRAME / 8] = RETURN;
	assert_int_equal(wp_go_switch_step(&r->step, 0), WP_STEP_OK);
	assert_caller(r, fp - CALLER_FRAME + 8, fp);
}

static void without_such_a_word_there_is_no_caller(void **state)
{
	struct rig *r = *state;

	r->words[40 - CALLER_FRAME / 8 - 1] = RETURN;
	/* Of another call. */
	r->words[40 - CALLER_FRAME / 8] = RETURN + 1;
	assert_int_equal(wp_go_switch_step(&r->step, 0), WP_STEP_UNKNOWN_REG);
	assert_int_equal(r->regs.v[WP_REG_PC], PC);
}

/* All words of a hostile stack look like its return address, and each has a table. */
static void a_search_ends_when_the_walk_has_used_up_its_work(void **state)
{
	struct rig *r = *state;
	uint32_t work = 20000;

	for (size_t i = 0; i < WORDS; i++)
		r->words[i] = RETURN;
	r->step.work = &work;
	assert_int_equal(wp_go_switch_step(&r->step, 0), WP_STEP_TOO_SLOW);
	assert_int_equal(r->regs.v[WP_REG_PC], PC);
	assert_in_range(work, 0, 1023);
}

static void a_frame_begins_with_a_record(void **state)
{
	struct rig *r = *state;

	r->words[40] = 0x12345678;
	r->words[41] = RETURN;
	assert_int_equal(wp_go_switch_step(&r->step, 8), WP_STEP_OK);
	assert_caller(r, STACK + 8 * 42, 0x12345678);
}

static void a_record_of_another_function_is_none(void **state)
{
	struct rig *r = *state;

	r->words[41] = RETURN - 1;
	assert_int_equal(wp_go_switch_step(&r->step, 8), WP_STEP_UNKNOWN_REG);
}

/* At the end of the callee the frame pointer is the caller's again. */
static void the_last_instructions_are_on_the_goroutines_stack(void **state)
{
	struct rig *r = *state;

	r->step.is_return = false;
	wp_reg_set(&r->regs, WP_REG_SP, STACK + 8 * 10);
	r->words[11] = 0x12345678;
	r->words[12] = RETURN;
	assert_int_equal(wp_go_switch_step(&r->step, 16), WP_STEP_OK);
	assert_int_equal(r->regs.v[WP_REG_SP], STACK + 8 * 13);
	assert_int_equal(r->regs.v[WP_REG_FP], 0x12345678);
	assert_false(r->step.is_switch);
}

static void without_a_frame_pointer_nothing_leads_back(void **state)
{
	struct rig *r = *state;

	r->regs.known &= ~(UINT64_C(1) << WP_REG_FP);
	assert_int_equal(wp_go_switch_step(&r->step, 0), WP_STEP_UNKNOWN_REG);
	assert_int_equal(wp_go_switch_step(&r->step, 8), WP_STEP_UNKNOWN_REG);
}

static void another_stack_that_is_not_there_is_said(void **state)
{
	struct rig *r = *state;

	r->unread = WP_MEM_OTHER_STACK;
	assert_int_equal(wp_go_switch_step(&r->step, 0), WP_STEP_OTHER_STACK);
	assert_int_equal(wp_go_switch_step(&r->step, 8), WP_STEP_OTHER_STACK);
}

static void a_broken_table_is_said(void **state)
{
	struct rig *r = *state;

	r->image.go_table.size = 8;
	assert_int_equal(wp_go_switch_step(&r->step, 0), WP_STEP_BAD_INFO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#endif

int main(void)
{
#if defined(__x86_64__)
	const struct CMUnitTest tests[] = {
		TEST(without_a_frame_the_callers_size_leads_to_it),
		TEST(without_such_a_word_there_is_no_caller),
		TEST(a_search_ends_when_the_walk_has_used_up_its_work),
		TEST(a_frame_begins_with_a_record),
		TEST(a_record_of_another_function_is_none),
		TEST(the_last_instructions_are_on_the_goroutines_stack),
		TEST(without_a_frame_pointer_nothing_leads_back),
		TEST(another_stack_that_is_not_there_is_said),
		TEST(a_broken_table_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
#else
	return 0;
#endif
}
