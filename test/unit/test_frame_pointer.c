/* SPDX-License-Identifier: Apache-2.0 */
/* test_frame_pointer.c - which frame pointers are believed, and where they lead.
 *
 * Layer: unwind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../unwind/frame_pointer.h"

#if defined(__x86_64__)

enum {
	CODE_SIZE = 0x400,
	/* Behind a call; where an interpreter takes its stack up again. */
	RETURN = 0x105,
	RESUMES = 0x200,
	/* Where the thread is. */
	PC = 0x300,
	NWORDS = 800,
	/* Bytes of the largest frame. */
	FRAME_MAX = 1 << 20,
};

#define CODE UINT64_C(0x400000)
#define STACK UINT64_C(0x7ffc0000)

/* Memory: code of no file; words at STACK; two more at FAR. */
static struct {
	uint8_t code[CODE_SIZE];
	uint8_t stack[8 * NWORDS];
	uint64_t far_avma;
	uint64_t far[2];
	struct wp_unwind_module module;
	struct wp_unwind_modules modules;
	struct wp_mem mem;
	struct wp_regs regs;
	struct wp_step step;
} f;

static bool read_range(const void *from, uint64_t start_avma, size_t size,
		       uint64_t avma, void *buf, size_t len)
{
	if (avma < start_avma || len > size || avma - start_avma > size - len)
		return false;
	memcpy(buf, (const uint8_t *)from + (avma - start_avma), len);
	return true;
}

static enum wp_mem_result read_mem(void *ctx, uint64_t avma, void *buf,
				   size_t len)
{
	(void)ctx;
	return read_range(f.code, CODE, CODE_SIZE, avma, buf, len) ||
			       read_range(f.stack, STACK, sizeof(f.stack), avma,
					  buf, len) ||
			       (f.far_avma && read_range(f.far, f.far_avma, 16,
							 avma, buf, len)) ?
		       WP_MEM_OK :
		       WP_MEM_UNREADABLE;
}

static int start(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	memset(f.code, 0xcc, sizeof(f.code));
	memcpy(f.code + RETURN - 5, "\xe8\0\0\0\0", 5);
	/* mov -16(%rbp),%rsp. */
	memcpy(f.code + RESUMES, "\x48\x8b\x65\xf0", 4);
	f.module = (struct wp_unwind_module){ .start_avma = CODE,
					      .end_avma = CODE + CODE_SIZE,
					      .bias = CODE };
	f.modules = (struct wp_unwind_modules){ .v = &f.module, .len = 1 };
	f.mem.read = read_mem;
	f.step = (struct wp_step){ .module = &f.module,
				   .regs = &f.regs,
				   .mem = &f.mem };
	return 0;
}

static void put_word(unsigned int n, uint64_t val)
{
	memcpy(f.stack + (f.step.is_32bit ? 4 : 8) * n, &val,
	       f.step.is_32bit ? 4 : 8);
}

static enum wp_step_result step(uint64_t pc_avma, uint64_t sp_avma, uint64_t fp,
				bool is_certain)
{
	f.regs.known = 0;
	f.step.is_switch = false;
	wp_reg_set(&f.regs, WP_REG_PC, pc_avma);
	wp_reg_set(&f.regs, WP_REG_SP, sp_avma);
	wp_reg_set(&f.regs, WP_REG_FP, fp);
	return wp_frame_pointer_step(&f.step, &f.modules, is_certain);
}

/* The step over the record at words N and N + 1, whose caller's frame pointer is that
 * many bytes above it. */
static enum wp_step_result step_over(unsigned int n, uint64_t above)
{
	uint64_t fp = STACK + 8 * n;

	put_word(n, above == UINT64_MAX ? 0 : fp + above);
	put_word(n + 1, CODE + RETURN);
	return step(CODE + PC, STACK, fp, false);
}

static void the_callers_is_above_and_not_too_far(void **state)
{
	(void)state;
	assert_int_equal(step_over(0, 16), WP_STEP_OK);
	assert_int_equal(f.regs.v[WP_REG_PC], CODE + RETURN);
	assert_int_equal(f.regs.v[WP_REG_SP], STACK + 16);
	assert_int_equal(f.regs.v[WP_REG_FP], STACK + 16);
	assert_int_equal(f.step.cfa_avma, STACK + 16);
	assert_false(f.step.is_switch);
	memset(f.stack, 0, sizeof(f.stack));
	assert_int_equal(step_over(3, 0), WP_STEP_NO_INFO);
	assert_int_equal(step_over(3, (uint64_t)-8), WP_STEP_NO_INFO);
	assert_int_equal(step_over(3, FRAME_MAX), WP_STEP_OK);
	assert_int_equal(step_over(3, FRAME_MAX + 8), WP_STEP_NO_INFO);
	/* None: the first frame of code of no file, or of nobody's. */
	assert_int_equal(step_over(3, UINT64_MAX), WP_STEP_OK);
	f.step.module = NULL;
	assert_int_equal(step_over(3, UINT64_MAX), WP_STEP_OK);
}

/* Between sp and the record. */
static void no_word_before_it_may_be_a_return_address(void **state)
{
	(void)state;
	assert_int_equal(step_over(512, 16), WP_STEP_OK);
	assert_int_equal(step_over(513, 16), WP_STEP_NO_INFO);
	for (unsigned int n = 0; n < 130; n += 43) {
		start(NULL);
		put_word(n, CODE + RETURN);
		assert_int_equal(step_over(130, 16), WP_STEP_NO_INFO);
		/* Its code knows better. */
		assert_int_equal(step(CODE + PC, STACK, STACK + 8 * 130, true),
				 WP_STEP_OK);
	}
	/* They cannot be read. */
	start(NULL);
	f.far_avma = STACK - 16;
	f.far[0] = STACK + 80;
	f.far[1] = CODE + RETURN;
	assert_int_equal(step(CODE + PC, STACK - 64, STACK - 16, false),
			 WP_STEP_NO_INFO);
	assert_int_equal(step(CODE + PC, STACK - 64, STACK - 16, true),
			 WP_STEP_OK);
}

/* The target's memory is read for each word that points to code of no file. */
static void words_cost_what_they_make_be_read(void **state)
{
	uint32_t work = 100 * 40;

	(void)state;
	for (unsigned int n = 0; n < 100; n++)
		put_word(n, CODE + PC + 1);
	f.step.work = &work;
	assert_int_equal(step_over(100, 16), WP_STEP_OK);
	assert_int_equal(work, 0);
	work = 100 * 40 - 1;
	assert_int_equal(step_over(100, 16), WP_STEP_TOO_SLOW);
	/* Others cost nothing. */
	memset(f.stack, 0, sizeof(f.stack));
	work = 0;
	assert_int_equal(step_over(100, 16), WP_STEP_OK);
}

/* A record farther away, or below sp, is of another stack. */
static void a_record_on_another_stack(void **state)
{
	static const struct {
		uint64_t fp;
		bool is_switch;
	} rows[] = { { STACK, false },
		     { STACK + FRAME_MAX, false },
		     { STACK + FRAME_MAX + 8, true },
		     { STACK - 16, true } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t fp = rows[i].fp;

		start(NULL);
		f.far_avma = fp;
		f.far[0] = fp + 32;
		f.far[1] = CODE + RETURN;
		put_word(0, fp + 32);
		put_word(1, CODE + RETURN);
		assert_int_equal(step(CODE + PC, STACK, fp, true), WP_STEP_OK);
		assert_int_equal(f.step.is_switch, rows[i].is_switch);
		if (!rows[i].is_switch)
			continue;
		assert_int_equal(step(CODE + PC, STACK, fp, false),
				 WP_STEP_NO_INFO);
		f.far[0] = fp;
		assert_int_equal(step(CODE + PC, STACK, fp, true),
				 WP_STEP_NO_INFO);
		f.far[0] = 0;
		assert_int_equal(step(CODE + PC, STACK, fp, true), WP_STEP_OK);
		f.far_avma = 0;
		assert_int_equal(step(CODE + PC, STACK, fp, true),
				 WP_STEP_UNREADABLE);
	}
	assert_int_equal(step(CODE + PC, STACK, 0, true), WP_STEP_NO_INFO);
	assert_int_equal(step(CODE + PC, STACK, STACK - 12, true),
			 WP_STEP_NO_INFO);
}

/* The first address of a module follows nothing of it. */
static void who_may_be_returned_to_is_in_a_module(void **state)
{
	(void)state;
	f.module.start_avma = CODE + RESUMES;
	assert_false(wp_frame_pointer_may_return(&f.modules, &f.mem,
						 CODE + RESUMES));
	f.module.start_avma = CODE + RESUMES - 1;
	assert_true(wp_frame_pointer_may_return(&f.modules, &f.mem,
						CODE + RESUMES));
	assert_false(wp_frame_pointer_may_return(&f.modules, &f.mem, 0));
}

/* HotSpot's interpreter has the caller's sp in the word below the record. */
static void an_interpreters_caller_has_its_sp_in_the_frame(void **state)
{
	enum { RECORD = 20, ABOVE = RECORD + 2 };
	static const struct {
		int64_t saved;
		bool is_taken;
	} rows[] = { { -8, false },
		     { 0, true },
		     { 24, true },
		     { 28, false },
		     { FRAME_MAX - 8, true },
		     { FRAME_MAX, false } };
	const uint64_t above = STACK + 8 * ABOVE, fp = STACK + 8 * RECORD;

	(void)state;
	put_word(RECORD, STACK + 8 * 40);
	put_word(RECORD + 1, CODE + RETURN);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t saved = above + (uint64_t)rows[i].saved;

		put_word(RECORD - 1, saved);
		f.step.is_return = true;
		assert_int_equal(step(CODE + RESUMES, STACK, fp, true),
				 WP_STEP_OK);
		assert_int_equal(f.regs.v[WP_REG_SP],
				 rows[i].is_taken ? saved : above);
		/* Other code has anything there. */
		assert_int_equal(step(CODE + RETURN, STACK, fp, true),
				 WP_STEP_OK);
		assert_int_equal(f.regs.v[WP_REG_SP], above);
		f.step.is_return = false;
		assert_int_equal(step(CODE + RESUMES, STACK, fp, true),
				 WP_STEP_OK);
		assert_int_equal(f.regs.v[WP_REG_SP], above);
	}
	f.step.is_return = true;
	f.step.module = NULL;
	put_word(RECORD - 1, above + 24);
	assert_int_equal(step(CODE + RESUMES, STACK, fp, true), WP_STEP_OK);
	assert_int_equal(f.regs.v[WP_REG_SP], above);
}

static void records_of_32_bits(void **state)
{
	(void)state;
	f.step.is_32bit = f.step.is_return = true;
	put_word(5, STACK + 80);
	put_word(6, CODE + RETURN);
	for (int is_certain = 0; is_certain < 2; is_certain++) {
		assert_int_equal(
			step(CODE + RESUMES, STACK, STACK + 20, is_certain),
			WP_STEP_OK);
		assert_int_equal(f.regs.v[WP_REG_SP], STACK + 28);
		assert_int_equal(f.regs.v[WP_REG_FP], STACK + 80);
	}
	put_word(4, CODE + RETURN);
	assert_int_equal(step(CODE + RESUMES, STACK, STACK + 20, false),
			 WP_STEP_NO_INFO);
	assert_int_equal(
		step(CODE + RESUMES, STACK, STACK + sizeof(f.stack), true),
		WP_STEP_UNREADABLE);
}

#define TEST(f) cmocka_unit_test_setup(f, start)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_callers_is_above_and_not_too_far),
		TEST(no_word_before_it_may_be_a_return_address),
		TEST(words_cost_what_they_make_be_read),
		TEST(a_record_on_another_stack),
		TEST(who_may_be_returned_to_is_in_a_module),
		TEST(an_interpreters_caller_has_its_sp_in_the_frame),
		TEST(records_of_32_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

/* The calls above are of x86-64. */
int main(void)
{
	return 0;
}

#endif
