/* SPDX-License-Identifier: Apache-2.0 */
/* DWARF expressions.  Layer: unwind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "cfi_bytes.h"

/* Memory: 0x10 bytes at 0x5000. */
static enum wp_mem_result read_fake(void *ctx, uint64_t avma, void *buf,
				    size_t len)
{
	static const uint8_t bytes[16] = { 0x11, 0x22, 0x33, 0x44, 0x55,
					   0x66, 0x77, 0x88, 1 };
	uint64_t at = avma - 0x5000;

	(void)ctx;
	if (at > sizeof(bytes) || len > sizeof(bytes) - at)
		return WP_MEM_UNREADABLE;
	memcpy(buf, bytes + at, len);
	return WP_MEM_OK;
}

/* Evaluate with register N = 0x5000 + N, but for 11, which is not known; in a
 * module with bias 0x10000. */
static enum wp_step_result eval(const char *code, size_t len,
				const uint64_t *initial, uint64_t *ret)
{
	const struct wp_unwind_module module = { .bias = 0x10000 };
	const struct wp_mem mem = { read_fake, NULL };
	struct wp_regs regs = { .known = 0 };
	struct wp_step step = { .module = &module, .regs = &regs, .mem = &mem };
	uint8_t *exact = test_malloc(len ? len : 1);
	enum wp_step_result result;

	for (unsigned int i = 0; i < WP_NREGS; i++)
		if (i != 11)
			wp_reg_set(&regs, i, 0x5000 + i);
	memcpy(exact, code, len);
	result = wp_cfi_expr(wp_reader_of(exact, len), &step, initial, ret);
	test_free(exact);
	return result;
}

struct expr_case {
	const char *code;
	size_t len;
	uint64_t want;
};

static void assert_cases(const struct expr_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t val = ~cases[i].want;
		enum wp_step_result result = eval(cases[i].code, cases[i].len,
						  NULL, &val);

		if (result != WP_STEP_OK || val != cases[i].want)
			print_error("case %zu\n", i);
		assert_int_equal(result, WP_STEP_OK);
		assert_int_equal(val, cases[i].want);
	}
}

#define M(n) ((uint64_t) - (n))

static void constants(void **state)
{
	static const struct expr_case cases[] = {
		{ LIT("\x30"), 0 },
		{ LIT("\x4f"), 31 },
		{ LIT("\x08\xff"), 255 },
		{ LIT("\x09\xff"), M(1) },
		{ LIT("\x0a\xff\xff"), 65535 },
		{ LIT("\x0b\xfe\xff"), M(2) },
		{ LIT("\x0c\xff\xff\xff\xff"), UINT32_MAX },
		{ LIT("\x0d\xfd\xff\xff\xff"), M(3) },
		{ LIT("\x0e\x08\x07\x06\x05\x04\x03\x02\x01"),
		  UINT64_C(0x0102030405060708) },
		{ LIT("\x0f\xff\xff\xff\xff\xff\xff\xff\xff"), M(1) },
		{ LIT("\x10\xe5\x8e\x26"), 624485 },
		{ LIT("\x11\x80\x7f"), M(128) },
		/* addr: an svma, so the bias is added */
		{ LIT("\x03\x00\x10\0\0\0\0\0\0"), 0x11000 },
	};

	(void)state;
	assert_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

static void stack_operations(void **state)
{
	static const struct expr_case cases[] = {
		/* lit1 lit2: dup plus; drop; over; pick 1; swap minus */
		{ LIT("\x31\x32\x12\x22"), 4 },
		{ LIT("\x31\x32\x13"), 1 },
		{ LIT("\x31\x32\x14"), 1 },
		{ LIT("\x31\x32\x15\x01"), 1 },
		{ LIT("\x31\x32\x15\x00"), 2 },
		{ LIT("\x31\x32\x16\x1c"), 1 },
		/* lit1 lit2 lit3 rot: 3 1 2 from below (DWARF 5, D.1.2) */
		{ LIT("\x31\x32\x33\x17"), 2 },
		{ LIT("\x31\x32\x33\x17\x13"), 1 },
		{ LIT("\x31\x32\x33\x17\x13\x13"), 3 },
		{ LIT("\x31\x96"), 1 },
	};

	(void)state;
	assert_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

static void arithmetic(void **state)
{
	static const struct expr_case cases[] = {
		{ LIT("\x09\xfb\x19"), 5 },
		{ LIT("\x35\x19"), 5 },
		{ LIT("\x3c\x3a\x1a"), 8 },
		/* div is signed, mod is not */
		{ LIT("\x09\xf8\x33\x1b"), M(2) },
		{ LIT("\x09\xff\x3a\x1d"), 5 },
		{ LIT("\x33\x35\x1c"), M(2) },
		{ LIT("\x33\x35\x1e"), 15 },
		{ LIT("\x33\x1f"), M(3) },
		{ LIT("\x30\x20"), UINT64_MAX },
		{ LIT("\x38\x31\x21"), 9 },
		{ LIT("\x38\x31\x22"), 9 },
		{ LIT("\x38\x23\xac\x02"), 308 },
		{ LIT("\x31\x34\x24"), 16 },
		{ LIT("\x31\x08\x40\x24"), 0 },
		{ LIT("\x09\xff\x08\x3c\x25"), 15 },
		{ LIT("\x09\xff\x08\x40\x25"), 0 },
		{ LIT("\x09\xf0\x32\x26"), M(4) },
		{ LIT("\x09\xf0\x08\x40\x26"), M(1) },
		{ LIT("\x3c\x3a\x27"), 6 },
		/* The smallest number / -1 wraps, it does not trap */
		{ LIT("\x31\x08\x3f\x24\x09\xff\x1b"), UINT64_C(1) << 63 },
	};

	(void)state;
	assert_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

static void comparisons_are_signed(void **state)
{
	/* -1 and 1; 1 and 1; 1 and -1: eq ge gt le lt ne */
	static const struct expr_case cases[] = {
		{ LIT("\x09\xff\x31\x29"), 0 }, { LIT("\x31\x31\x29"), 1 },
		{ LIT("\x09\xff\x31\x2a"), 0 }, { LIT("\x31\x31\x2a"), 1 },
		{ LIT("\x31\x09\xff\x2a"), 1 }, { LIT("\x09\xff\x31\x2b"), 0 },
		{ LIT("\x31\x31\x2b"), 0 },	{ LIT("\x31\x09\xff\x2b"), 1 },
		{ LIT("\x09\xff\x31\x2c"), 1 }, { LIT("\x31\x31\x2c"), 1 },
		{ LIT("\x31\x09\xff\x2c"), 0 }, { LIT("\x09\xff\x31\x2d"), 1 },
		{ LIT("\x31\x31\x2d"), 0 },	{ LIT("\x09\xff\x31\x2e"), 1 },
		{ LIT("\x31\x31\x2e"), 0 },
	};

	(void)state;
	assert_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

static void branches(void **state)
{
	static const struct expr_case cases[] = {
		/* lit1 skip +1 lit2 */
		{ LIT("\x31\x2f\x01\x00\x32"), 1 },
		/* lit1, bra over lit2: taken, not taken */
		{ LIT("\x31\x31\x28\x01\x00\x32"), 1 },
		{ LIT("\x31\x30\x28\x01\x00\x32"), 2 },
		/* To the very end */
		{ LIT("\x31\x2f\x00\x00"), 1 },
		/* Backwards, counting down: lit5; (lit1 minus dup bra -6) */
		{ LIT("\x35\x31\x1c\x12\x28\xfa\xff"), 0 },
	};

	(void)state;
	assert_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

static void registers_and_memory(void **state)
{
	static const struct expr_case cases[] = {
		/* breg7 8, breg0 -1, bregx 16 4, reg6, regx 3 */
		{ LIT("\x77\x08"), 0x500f },
		{ LIT("\x70\x7f"), 0x4fff },
		{ LIT("\x92\x10\x04"), 0x5014 },
		{ LIT("\x56"), 0x5006 },
		{ LIT("\x90\x03"), 0x5003 },
		/* breg0 0: deref; deref_size 1, 2, 4, 8 */
		{ LIT("\x70\x00\x06"), UINT64_C(0x8877665544332211) },
		{ LIT("\x70\x00\x94\x01"), 0x11 },
		{ LIT("\x70\x00\x94\x02"), 0x2211 },
		{ LIT("\x70\x00\x94\x04"), 0x44332211 },
		{ LIT("\x70\x08\x94\x08"), 1 },
	};

	(void)state;
	assert_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

static void the_cfa_is_on_the_stack_first(void **state)
{
	uint64_t cfa = 0x100, val;

	(void)state;
	assert_int_equal(eval(LIT("\x38\x1c"), &cfa, &val), WP_STEP_OK);
	assert_int_equal(val, 0xf8);
	assert_int_equal(eval(LIT(""), &cfa, &val), WP_STEP_OK);
	assert_int_equal(val, 0x100);
}

/* glibc's __restore_rt: cfa = *(rsp + 160); what ld says of a .plt. */
static void expressions_of_real_code(void **state)
{
	static const struct expr_case cases[] = {
		/* rip is 0x5010: & 15 is 0, below 11 */
		{ LIT("\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"), 0x500f },
		/* The same at rip + 11 */
		{ LIT("\x77\x08\x80\x0b\x3f\x1a\x3b\x2a\x33\x24\x22"), 0x5017 },
		/* libgcrypt: *(rsp + 1) + 56, on rsp = 0x5007 */
		{ LIT("\x77\x01\x06\x23\x38"), 1 + 56 },
	};

	(void)state;
	assert_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

static void each_failure_has_its_result(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		enum wp_step_result want;
	} cases[] = {
		{ LIT("\x7b\x00"), WP_STEP_UNKNOWN_REG },
		{ LIT("\x90\x0b"), WP_STEP_UNKNOWN_REG },
		{ LIT("\x70\x09\x06"), WP_STEP_UNREADABLE },
		{ LIT("\x30\x06"), WP_STEP_UNREADABLE },
		{ LIT("\x30\x20\x06"), WP_STEP_UNREADABLE },
		/* Nothing; too little on the stack, for each operation */
		{ LIT(""), WP_STEP_BAD_INFO },
		{ LIT("\x06"), WP_STEP_BAD_INFO },
		{ LIT("\x12"), WP_STEP_BAD_INFO },
		{ LIT("\x31\x13"), WP_STEP_BAD_INFO },
		{ LIT("\x31\x14"), WP_STEP_BAD_INFO },
		{ LIT("\x31\x15\x01"), WP_STEP_BAD_INFO },
		{ LIT("\x31\x15\xff"), WP_STEP_BAD_INFO },
		{ LIT("\x31\x16"), WP_STEP_BAD_INFO },
		{ LIT("\x16"), WP_STEP_BAD_INFO },
		{ LIT("\x31\x32\x17"), WP_STEP_BAD_INFO },
		{ LIT("\x31\x22"), WP_STEP_BAD_INFO },
		{ LIT("\x19"), WP_STEP_BAD_INFO },
		{ LIT("\x28\x00\x00"), WP_STEP_BAD_INFO },
		/* Division by nothing */
		{ LIT("\x31\x30\x1b"), WP_STEP_BAD_INFO },
		{ LIT("\x31\x30\x1d"), WP_STEP_BAD_INFO },
		/* Branches out of the expression */
		{ LIT("\x31\x2f\x01\x00"), WP_STEP_BAD_INFO },
		{ LIT("\x31\x2f\xfb\xff"), WP_STEP_BAD_INFO },
		/* For ever; for ever with a growing stack */
		{ LIT("\x2f\xfd\xff"), WP_STEP_BAD_INFO },
		{ LIT("\x31\x2f\xfc\xff"), WP_STEP_BAD_INFO },
		/* A register that is none, a size that is none */
		{ LIT("\x92\x21\x00"), WP_STEP_BAD_INFO },
		{ LIT("\x92\xff\xff\x03\x00"), WP_STEP_BAD_INFO },
		{ LIT("\x70\x00\x94\x03"), WP_STEP_BAD_INFO },
		{ LIT("\x70\x00\x94\x00"), WP_STEP_BAD_INFO },
		/* Not CFI's: xderef, fbreg, piece, call_frame_cfa, unknown */
		{ LIT("\x31\x31\x18"), WP_STEP_BAD_INFO },
		{ LIT("\x91\x00"), WP_STEP_BAD_INFO },
		{ LIT("\x31\x93\x08"), WP_STEP_BAD_INFO },
		{ LIT("\x9c"), WP_STEP_BAD_INFO },
		{ LIT("\xff"), WP_STEP_BAD_INFO },
		{ LIT("\x00"), WP_STEP_BAD_INFO },
		/* Operands that are not there */
		{ LIT("\x08"), WP_STEP_BAD_INFO },
		{ LIT("\x0e\x01\x02\x03"), WP_STEP_BAD_INFO },
		{ LIT("\x77"), WP_STEP_BAD_INFO },
		{ LIT("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
		  WP_STEP_BAD_INFO },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t val = 42;
		enum wp_step_result result = eval(cases[i].code, cases[i].len,
						  NULL, &val);

		if (result != cases[i].want)
			print_error("case %zu\n", i);
		assert_int_equal(result, cases[i].want);
		assert_int_equal(val, 42);
	}
}

static void the_stack_is_bounded(void **state)
{
	char code[65];
	uint64_t val;

	(void)state;
	memset(code, 0x31, sizeof(code));
	assert_int_equal(eval(code, 64, NULL, &val), WP_STEP_OK);
	assert_int_equal(eval(code, 65, NULL, &val), WP_STEP_BAD_INFO);
}

static void every_opcode_is_safe(void **state)
{
	(void)state;
	for (unsigned int op = 0; op < 256; op++) {
		/* With 0 to 3 on the stack and 0 to 10 bytes of operands. */
		for (unsigned int n = 0; n < 4; n++) {
			for (unsigned int len = 0; len <= 10; len++) {
				char code[16] = "\x31\x32\x33";
				uint64_t val;

				memset(code + n, 0xff, sizeof(code) - n);
				code[n] = (char)op;
				(void)eval(code, n + 1 + len, NULL, &val);
			}
		}
	}
}

static void shapes(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		enum wp_cfi_shape want;
		uint64_t reg;
		int64_t off;
	} cases[] = {
		{ LIT("\x76\x70"), WP_CFI_SHAPE_SUM, 6, -16 },
		{ LIT("\x77\xa0\x01"), WP_CFI_SHAPE_SUM, 7, 160 },
		{ LIT("\x77\xa0\x01\x06"), WP_CFI_SHAPE_DEREF, 7, 160 },
		{ LIT("\x76\x78\x06"), WP_CFI_SHAPE_DEREF, 6, -8 },
		{ LIT("\x77\xa0\x01\x06\x06"), WP_CFI_SHAPE_OTHER, 0, 0 },
		{ LIT("\x77\x08\x06\x23\x38"), WP_CFI_SHAPE_OTHER, 0, 0 },
		{ LIT("\x77"), WP_CFI_SHAPE_OTHER, 0, 0 },
		{ LIT(""), WP_CFI_SHAPE_OTHER, 0, 0 },
		{ LIT("\x31"), WP_CFI_SHAPE_OTHER, 0, 0 },
#if defined(__x86_64__)
		{ LIT("\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"),
		  WP_CFI_SHAPE_PLT, 0, 11 },
		{ LIT("\x77\x08\x80\x00\x3f\x1a\x39\x2a\x33\x24\x22"),
		  WP_CFI_SHAPE_PLT, 0, 9 },
		/* Another limit than a number; one byte different; cut */
		{ LIT("\x77\x08\x80\x00\x3f\x1a\x22\x2a\x33\x24\x22"),
		  WP_CFI_SHAPE_OTHER, 0, 0 },
		{ LIT("\x77\x08\x80\x00\x3f\x1a\x3b\x2b\x33\x24\x22"),
		  WP_CFI_SHAPE_OTHER, 0, 0 },
		{ LIT("\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24"),
		  WP_CFI_SHAPE_OTHER, 0, 0 },
#endif
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t *exact = test_malloc(cases[i].len ? cases[i].len : 1);
		uint64_t reg = 0;
		int64_t off = 0;
		const struct wp_elf_image image = WP_ELF_IMAGE_INIT;
		enum wp_cfi_shape shape;

		memcpy(exact, cases[i].code, cases[i].len);
		shape = wp_cfi_expr_shape(wp_reader_of(exact, cases[i].len),
					  &image, &reg, &off);
		if (shape != cases[i].want)
			print_error("case %zu\n", i);
		assert_int_equal(shape, cases[i].want);
		if (shape == WP_CFI_SHAPE_SUM || shape == WP_CFI_SHAPE_DEREF)
			assert_int_equal(reg, cases[i].reg);
		if (shape != WP_CFI_SHAPE_OTHER)
			assert_int_equal(off, cases[i].off);
		test_free(exact);
	}
}

static void expressions_lie_in_the_file(void **state)
{
	struct wp_elf_image image = image_of("\x02\x77\x08\x7f\x80", 5, 0);
	struct wp_reader r = wp_cfi_expr_at(&image, 0);

	(void)state;
	assert_int_equal(wp_reader_left(&r), 2);
	assert_int_equal(r.pos[0], 0x77);
	/* Longer than the file; a length that is cut; past the end. */
	r = wp_cfi_expr_at(&image, 3);
	assert_true(r.failed);
	r = wp_cfi_expr_at(&image, 4);
	assert_true(r.failed);
	r = wp_cfi_expr_at(&image, 5);
	assert_true(r.failed);
	r = wp_cfi_expr_at(&image, UINT64_MAX);
	assert_true(r.failed);
	image_free(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants),
		cmocka_unit_test(stack_operations),
		cmocka_unit_test(arithmetic),
		cmocka_unit_test(comparisons_are_signed),
		cmocka_unit_test(branches),
		cmocka_unit_test(registers_and_memory),
		cmocka_unit_test(the_cfa_is_on_the_stack_first),
		cmocka_unit_test(expressions_of_real_code),
		cmocka_unit_test(each_failure_has_its_result),
		cmocka_unit_test(the_stack_is_bounded),
		cmocka_unit_test(every_opcode_is_safe),
		cmocka_unit_test(shapes),
		cmocka_unit_test(expressions_lie_in_the_file),
	};
	return cmocka_run_group_tests_name("cfi_expr", tests, NULL, NULL);
}
