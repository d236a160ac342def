/* SPDX-License-Identifier: Apache-2.0 */
/* test_a64_state.c - what instructions of aarch64 do to sp, x29 and x30, on any machine.
 *
 * Layer: unwind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

#include "../../unwind/a64_state.h"

#define AVMA UINT64_C(0x10000)

static struct wp_a64_state at_start(void)
{
	return (struct wp_a64_state){ .sp = { .base = WP_A64_SP },
				      .fp = { .base = WP_A64_FP },
				      .lr = { .base = WP_A64_LR } };
}

static void the_way_on_is_known(void **state)
{
	/* Target, from the instruction on, where there is one. */
	static const struct {
		uint32_t insn;
		enum wp_a64_kind kind;
		int64_t target;
	} insns[] = {
		/* ret */
		{ 0xd65f03c0, WP_A64_RETURN, 0 },
		/* retaa */
		{ 0xd65f0bff, WP_A64_RETURN, 0 },
		/* retab */
		{ 0xd65f0fff, WP_A64_RETURN, 0 },
		/* ret x9 */
		{ 0xd65f0120, WP_A64_END, 0 },
		/* bl .+64 */
		{ 0x94000010, WP_A64_CALL, 0 },
		/* blr x3 */
		{ 0xd63f0060, WP_A64_CALL, 0 },
		/* blraaz x3 */
		{ 0xd63f087f, WP_A64_CALL, 0 },
		/* blrab x3, x4 */
		{ 0xd73f0c64, WP_A64_CALL, 0 },
		/* br x17 */
		{ 0xd61f0220, WP_A64_JUMP_REG, 0 },
		/* braa x3, x4 */
		{ 0xd71f0864, WP_A64_JUMP_REG, 0 },
		/* brk #1 */
		{ 0xd4200020, WP_A64_END, 0 },
		/* udf #7 */
		{ 0x00000007, WP_A64_END, 0 },
		/* b .+4096 */
		{ 0x14000400, WP_A64_JUMP, 4096 },
		/* b .-4096 */
		{ 0x17fffc00, WP_A64_JUMP, -4096 },
		/* b.ne .-8 */
		{ 0x54ffffc1, WP_A64_BRANCH, -8 },
		/* cbz w3, .+1048572 */
		{ 0x347fffe3, WP_A64_BRANCH, 1048572 },
		/* cbnz x3, .-1048576 */
		{ 0xb5800003, WP_A64_BRANCH, -1048576 },
		/* tbz w3, #5, .+32764 */
		{ 0x362bffe3, WP_A64_BRANCH, 32764 },
		/* tbnz x3, #35, .-32768 */
		{ 0xb71c0003, WP_A64_BRANCH, -32768 },
		/* svc #0 */
		{ 0xd4000001, WP_A64_PLAIN, 0 },
		/* nop */
		{ 0xd503201f, WP_A64_PLAIN, 0 },
		/* autiasp */
		{ 0xd50323bf, WP_A64_PLAIN, 0 },
		/* ldp x29, x30, [sp], #16 */
		{ 0xa8c17bfd, WP_A64_PLAIN, 0 },
		/* mov x29, sp */
		{ 0x910003fd, WP_A64_PLAIN, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(insns) / sizeof(*insns); i++) {
		uint64_t target = 0;

		assert_int_equal(wp_a64_kind(insns[i].insn, AVMA, &target),
				 insns[i].kind);
		if (insns[i].target)
			assert_int_equal((int64_t)(target - AVMA),
					 insns[i].target);
	}
}

#define KEPT_SP                                                                \
	{                                                                      \
		0, WP_A64_SP, false                                            \
	}
#define KEPT_FP                                                                \
	{                                                                      \
		0, WP_A64_FP, false                                            \
	}
#define KEPT_LR                                                                \
	{                                                                      \
		0, WP_A64_LR, false                                            \
	}
#define LOST                                                                   \
	{                                                                      \
		0, WP_A64_LOST, false                                          \
	}
#define SP_PLUS(off)                                                           \
	{                                                                      \
		off, WP_A64_SP, false                                          \
	}
#define FP_PLUS(off)                                                           \
	{                                                                      \
		off, WP_A64_FP, false                                          \
	}
#define SP_WORD(off)                                                           \
	{                                                                      \
		off, WP_A64_SP, true                                           \
	}
#define FP_WORD(off)                                                           \
	{                                                                      \
		off, WP_A64_FP, true                                           \
	}

static void assert_val(struct wp_a64_val val, struct wp_a64_val truth)
{
	assert_int_equal(val.base, truth.base);
	assert_int_equal(val.off, truth.off);
	assert_int_equal(val.is_word, truth.is_word);
}

static void each_instruction_changes_what_it_writes(void **state)
{
	static const struct {
		uint32_t insn;
		struct wp_a64_val sp, fp, lr;
	} insns[] = {
		/* ldp x29, x30, [sp], #32 */
		{ 0xa8c27bfd, SP_PLUS(32), SP_WORD(0), SP_WORD(8) },
		/* ldp x29, x30, [sp, #48] */
		{ 0xa9437bfd, KEPT_SP, SP_WORD(48), SP_WORD(56) },
		/* ldp x29, x30, [sp, #16]! */
		{ 0xa9c17bfd, SP_PLUS(16), SP_WORD(16), SP_WORD(24) },
		/* ldp x30, x19, [sp], #16 */
		{ 0xa8c14ffe, SP_PLUS(16), KEPT_FP, SP_WORD(0) },
		/* ldp x19, x30, [sp, #16] */
		{ 0xa9417bf3, KEPT_SP, KEPT_FP, SP_WORD(24) },
		/* ldp x29, x30, [x29] */
		{ 0xa9407bbd, KEPT_SP, FP_WORD(0), FP_WORD(8) },
		/* ldp x29, x30, [sp, #-16] */
		{ 0xa97f7bfd, KEPT_SP, LOST, LOST },
		/* ldp x29, x30, [x9] */
		{ 0xa940793d, KEPT_SP, LOST, LOST },
		/* ldp w29, w30, [sp], #8 */
		{ 0x28c17bfd, SP_PLUS(8), LOST, LOST },
		/* ldpsw x29, x30, [sp], #8 */
		{ 0x68c17bfd, SP_PLUS(8), LOST, LOST },
		/* stgp x0, x1, [sp, #-32]!, and [sp], #32 */
		{ 0x69bf07e0, SP_PLUS(-32), KEPT_FP, KEPT_LR },
		{ 0x688107e0, SP_PLUS(32), KEPT_FP, KEPT_LR },
		/* ldp d29, d30, [sp], #16 */
		{ 0x6cc17bfd, SP_PLUS(16), KEPT_FP, KEPT_LR },
		/* ldp q29, q30, [sp], #32 */
		{ 0xacc17bfd, SP_PLUS(32), KEPT_FP, KEPT_LR },
		/* stp x29, x30, [sp, #-512]! */
		{ 0xa9a07bfd, SP_PLUS(-512), KEPT_FP, KEPT_LR },
		/* stp d8, d9, [sp, #-64]! */
		{ 0x6dbc27e8, SP_PLUS(-64), KEPT_FP, KEPT_LR },
		/* stp s8, s9, [sp, #-8]! */
		{ 0x2dbf27e8, SP_PLUS(-8), KEPT_FP, KEPT_LR },
		/* ldr x30, [sp], #16 */
		{ 0xf84107fe, SP_PLUS(16), KEPT_FP, SP_WORD(0) },
		/* ldr x30, [sp, #8] */
		{ 0xf94007fe, KEPT_SP, KEPT_FP, SP_WORD(8) },
		/* ldr x30, [sp, #32760] */
		{ 0xf97ffffe, KEPT_SP, KEPT_FP, SP_WORD(32760) },
		/* ldr x30, [sp, #8]! */
		{ 0xf8408ffe, SP_PLUS(8), KEPT_FP, SP_WORD(8) },
		/* ldur x30, [x29, #-9] */
		{ 0xf85f73be, KEPT_SP, KEPT_FP, FP_WORD(-9) },
		/* ldr x30, [sp, x1] */
		{ 0xf8616bfe, KEPT_SP, KEPT_FP, LOST },
		/* ldr w30, [sp, #8] */
		{ 0xb9400bfe, KEPT_SP, KEPT_FP, LOST },
		/* ldrsw x30, [sp, #8] */
		{ 0xb9800bfe, KEPT_SP, KEPT_FP, LOST },
		/* ldr d30, [sp, #8] */
		{ 0xfd4007fe, KEPT_SP, KEPT_FP, KEPT_LR },
		/* ldr x30, .+16 */
		{ 0x5800009e, KEPT_SP, KEPT_FP, LOST },
		/* ldr d30, .+16 */
		{ 0x5c00009e, KEPT_SP, KEPT_FP, KEPT_LR },
		/* ldxr x30, [x1] */
		{ 0xc85f7c3e, KEPT_SP, KEPT_FP, LOST },
		/* stxr w30, x1, [x2] */
		{ 0xc81e7c41, KEPT_SP, KEPT_FP, LOST },
		/* ldadd x1, x30, [x2] */
		{ 0xf821005e, KEPT_SP, KEPT_FP, LOST },
		/* ldraa x1, [sp, #8]! */
		{ 0xf8201fe1, LOST, KEPT_FP, KEPT_LR },
		/* str x30, [sp, #-16]! */
		{ 0xf81f0ffe, SP_PLUS(-16), KEPT_FP, KEPT_LR },
		/* str q8, [sp, #-16]! */
		{ 0x3c9f0fe8, SP_PLUS(-16), KEPT_FP, KEPT_LR },
		/* st1 {v8.16b}, [sp], #16 */
		{ 0x4c9f73e8, LOST, KEPT_FP, KEPT_LR },
		/* ld1 {v8.d}[1], [sp], #8 */
		{ 0x4ddf87e8, LOST, KEPT_FP, KEPT_LR },
		/* ld1 {v30.16b}, [sp] */
		{ 0x4c4073fe, KEPT_SP, KEPT_FP, KEPT_LR },
		/* stg sp, [sp], #16 */
		{ 0xd92017ff, LOST, KEPT_FP, KEPT_LR },
		/* sub sp, sp, #48 */
		{ 0xd100c3ff, SP_PLUS(-48), KEPT_FP, KEPT_LR },
		/* sub sp, sp, #1, lsl #12 */
		{ 0xd14007ff, SP_PLUS(-4096), KEPT_FP, KEPT_LR },
		/* add sp, sp, #4095 */
		{ 0x913fffff, SP_PLUS(4095), KEPT_FP, KEPT_LR },
		/* mov sp, x29 */
		{ 0x910003bf, FP_PLUS(0), KEPT_FP, KEPT_LR },
		/* sub sp, x29, #16 */
		{ 0xd10043bf, FP_PLUS(-16), KEPT_FP, KEPT_LR },
		/* mov sp, x9 */
		{ 0x9100013f, LOST, KEPT_FP, KEPT_LR },
		/* sub sp, sp, x9 */
		{ 0xcb2963ff, LOST, KEPT_FP, KEPT_LR },
		/* and sp, x9, #-16 */
		{ 0x927ced3f, LOST, KEPT_FP, KEPT_LR },
		/* addvl sp, sp, #-1 */
		{ 0x043f57ff, LOST, KEPT_FP, KEPT_LR },
		/* cmp x9, #16 */
		{ 0xf100413f, KEPT_SP, KEPT_FP, KEPT_LR },
		/* tst x9, #16 */
		{ 0xf27c013f, KEPT_SP, KEPT_FP, KEPT_LR },
		/* cmp sp, x9 */
		{ 0xeb2963ff, KEPT_SP, KEPT_FP, KEPT_LR },
		/* mov x29, sp */
		{ 0x910003fd, KEPT_SP, SP_PLUS(0), KEPT_LR },
		/* add x29, sp, #48 */
		{ 0x9100c3fd, KEPT_SP, SP_PLUS(48), KEPT_LR },
		/* mov x29, #0 */
		{ 0xd280001d, KEPT_SP, LOST, KEPT_LR },
		/* mov x30, x9 */
		{ 0xaa0903fe, KEPT_SP, KEPT_FP, LOST },
		/* mov x9, x30 */
		{ 0xaa1e03e9, KEPT_SP, KEPT_FP, KEPT_LR },
		/* adr x30, .+16 */
		{ 0x1000009e, KEPT_SP, KEPT_FP, LOST },
		/* add x0, x29, x30 */
		{ 0x8b1e03a0, KEPT_SP, KEPT_FP, KEPT_LR },
		/* csel x30, x1, x2, ne */
		{ 0x9a82103e, KEPT_SP, KEPT_FP, LOST },
		/* mrs x30, tpidr_el0 */
		{ 0xd53bd05e, KEPT_SP, KEPT_FP, LOST },
		/* autia x30, sp */
		{ 0xdac113fe, KEPT_SP, KEPT_FP, KEPT_LR },
		/* xpaci x30 */
		{ 0xdac143fe, KEPT_SP, KEPT_FP, KEPT_LR },
		/* paciasp */
		{ 0xd503233f, KEPT_SP, KEPT_FP, KEPT_LR },
		/* add v30.4s, v29.4s, v31.4s */
		{ 0x4ebf87be, KEPT_SP, KEPT_FP, KEPT_LR },
		/* fmov d30, x1 */
		{ 0x9e67003e, KEPT_SP, KEPT_FP, KEPT_LR },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(insns) / sizeof(*insns); i++) {
		struct wp_a64_state now = at_start();

		wp_a64_execute(&now, insns[i].insn);
		assert_val(now.sp, insns[i].sp);
		assert_val(now.fp, insns[i].fp);
		assert_val(now.lr, insns[i].lr);
	}
}

static void run(struct wp_a64_state *now, const uint32_t *insns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		wp_a64_execute(now, insns[i]);
}

static void what_was_stored_is_read_back(void **state)
{
	static const uint32_t code[] = {
		/* stp x29, x30, [sp, #-32]! */
		0xa9be7bfd,
		/* mov x29, sp */
		0x910003fd,
		/* sub sp, sp, #64 */
		0xd10103ff,
		/* mov x30, #0 */
		0xd280001e,
		/* mov sp, x29 */
		0x910003bf,
		/* ldp x29, x30, [sp], #32 */
		0xa8c27bfd,
	};
	struct wp_a64_state now = at_start();

	(void)state;
	run(&now, code, 4);
	assert_val(now.sp, (struct wp_a64_val)SP_PLUS(-96));
	assert_val(now.fp, (struct wp_a64_val)SP_PLUS(-32));
	assert_val(now.lr, (struct wp_a64_val)LOST);
	run(&now, code + 4, 2);
	assert_val(now.sp, (struct wp_a64_val)KEPT_SP);
	assert_val(now.fp, (struct wp_a64_val)KEPT_FP);
	assert_val(now.lr, (struct wp_a64_val)KEPT_LR);
	/* What is not known is not known either when it is read back. */
	now.lr = (struct wp_a64_val)LOST;
	run(&now, code, 6);
	assert_val(now.lr, (struct wp_a64_val)LOST);
	assert_val(now.fp, (struct wp_a64_val)KEPT_FP);
}

/* As a large frame is left. */
static void a_constant_is_added(void **state)
{
	static const uint32_t code[] = {
		/* mov x12, #0x2890 */
		0xd285120c,
		/* movk x12, #0x1, lsl #16 */
		0xf2a0002c,
		/* ldp x27, x28, [sp, #80] */
		0xa94573fb,
		/* add sp, sp, x12 */
		0x8b2c63ff,
		/* mov x12, #0x10 */
		0xd280020c,
		/* sub sp, sp, x12 */
		0xcb2c63ff,
	};
	static const uint32_t other[] = {
		/* ldr x12, [x1] */
		0xf940002c,
		/* ldp x11, x12, [x1] */
		0xa940302b,
		/* add x12, x12, #1 */
		0x9100058c,
		/* mov w13, #0x10 */
		0x5280020d,
	};
	struct wp_a64_state now = at_start();

	(void)state;
	run(&now, code, 4);
	assert_val(now.sp, (struct wp_a64_val)SP_PLUS(0x12890));
	run(&now, code + 4, 2);
	assert_val(now.sp, (struct wp_a64_val)SP_PLUS(0x12880));
	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++) {
		now = at_start();
		run(&now, code, 2);
		run(&now, other + i, 1);
		run(&now, code + 3, 1);
		assert_val(now.sp, (struct wp_a64_val)LOST);
	}
}

static void uses_of_the_frame_pointer_are_known(void **state)
{
	(void)state;
	/* ldr x0, [x29, #24] */
	assert_true(wp_a64_is_by_fp(0xf9400fa0));
	/* str d0, [x29, #-8]! */
	assert_true(wp_a64_is_by_fp(0xfc1f8fa0));
	/* stp x0, x1, [x29, #16] */
	assert_true(wp_a64_is_by_fp(0xa90107a0));
	/* ldr x0, 0x74 behind it */
	assert_false(wp_a64_is_by_fp(0x580003a0));
	/* ldr x29, [x0] */
	assert_false(wp_a64_is_by_fp(0xf940001d));
	/* add x0, x29, #16 */
	assert_false(wp_a64_is_by_fp(0x910043a0));
	/* ldr x0, [sp, #24] */
	assert_false(wp_a64_is_by_fp(0xf9400fe0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_way_on_is_known),
		cmocka_unit_test(each_instruction_changes_what_it_writes),
		cmocka_unit_test(what_was_stored_is_read_back),
		cmocka_unit_test(a_constant_is_added),
		cmocka_unit_test(uses_of_the_frame_pointer_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
