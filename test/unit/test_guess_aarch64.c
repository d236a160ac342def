/* SPDX-License-Identifier: Apache-2.0 */
/* test_guess_aarch64.c - aarch64's steps without unwind info, over code and a stack that
 * are arrays.
 *
 * Layer: unwind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../unwind/prover.h"

#if defined(__aarch64__)

enum { NWORDS = 64, SLOT = 16, CALL = 4 };

#define CODE UINT64_C(0x400000)
#define STACK UINT64_C(0x7ffc00000000)
#define BRK 0xd4200000

static uint32_t code[NWORDS];
static uint64_t stack[16];

static enum wp_mem_result read_mem(void *ctx, uint64_t avma, void *buf,
				   size_t len)
{
	(void)ctx;
	if (avma >= CODE && avma - CODE + len <= sizeof(code))
		memcpy(buf, (const char *)code + (avma - CODE), len);
	else if (avma >= STACK && avma - STACK + len <= sizeof(stack))
		memcpy(buf, (const char *)stack + (avma - STACK), len);
	else
		return WP_MEM_UNREADABLE;
	return WP_MEM_OK;
}

/* Slots of the PLT as ld.bfd and lld make them, among code that ends: adrp x16; ldr
 * x17, [x16, #8]; add x16, x16, #8; br x17. */
static void each_place_in_a_slot_of_the_plt_returns_to_lr(void **state)
{
	static const struct {
		uint32_t insn[6];
		int len;
	} slots[] = {
		{ { 0x90000110, 0xf9400611, 0x91002210, 0xd61f0220 }, 4 },
		/* bti c in front. */
		{ { 0xd503245f, 0x90000110, 0xf9400611, 0x91002210,
		    0xd61f0220 },
		  5 },
		/* autia1716 before the branch. */
		{ { 0xb0000110, 0xf9400611, 0x91002210, 0xd503219f,
		    0xd61f0220 },
		  5 },
		{ { 0xd503245f, 0xb0000110, 0xf9400611, 0x91002210, 0xd503219f,
		    0xd61f0220 },
		  6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(slots) / sizeof(*slots); i++) {
		for (int at = -1; at <= slots[i].len; at++) {
			struct wp_unwind_module module = {
				.start_avma = CODE,
				.end_avma = CODE + sizeof(code),
				.bias = CODE,
				.mapping = 1,
			};
			struct wp_unwind_modules modules = { .v = &module,
							     .len = 1,
							     .generation = 1 };
			struct wp_mem mem = { read_mem, NULL };
			struct wp_regs regs = { 0 };
			struct wp_step step = { .module = &module,
						.regs = &regs,
						.mem = &mem };
			enum wp_step_result result;

			for (int k = 0; k < NWORDS; k++)
				code[k] = BRK;
			/* bl */
			code[CALL] = 0x94000010;
			memcpy(code + SLOT, slots[i].insn,
			       (size_t)slots[i].len * sizeof(*code));
			wp_reg_set(&regs, WP_REG_PC,
				   CODE + 4 * (uint64_t)(SLOT + at));
			wp_reg_set(&regs, WP_REG_SP, STACK);
			wp_reg_set(&regs, WP_REG_LR, CODE + 4 * (CALL + 1));
			result = wp_step_guess(NULL, &step, &modules);
			if (at < 0 || at == slots[i].len) {
				assert_int_not_equal(result, WP_STEP_OK);
				continue;
			}
			assert_int_equal(result, WP_STEP_OK);
			assert_int_equal(regs.v[WP_REG_PC],
					 CODE + 4 * (CALL + 1));
			assert_int_equal(regs.v[WP_REG_SP], STACK);
			assert_int_equal(step.cfa_avma, STACK);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_place_in_a_slot_of_the_plt_returns_to_lr),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 0;
}

#endif
