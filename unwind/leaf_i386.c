/* SPDX-License-Identifier: Apache-2.0 */
/* leaf_i386.c - see leaf_i386.h. */
#include "leaf_i386.h"

#include <string.h>

#include "frame_pointer.h"

enum {
	RET = 0xc3,
	CALL = 0xe8,
	CALL_LEN = 5,
	FINDS_LEN = 4,
	WORD = 4,
	PUSHED_MAX = 3 * WORD,
};

bool wp_leaf_i386_finds_address(const uint8_t *code)
{
	return code[0] == 0x8b && (code[1] & 0xc7) == 0x04 && code[2] == 0x24 &&
	       code[3] == RET;
}

enum wp_step_result wp_leaf_i386_pop(struct wp_step *step,
				     const struct wp_unwind_modules *modules,
				     uint64_t pushed)
{
	uint64_t slot_avma = step->regs->v[WP_REG_SP] + pushed, return_avma;
	enum wp_step_result result;

	result = wp_step_word(step, slot_avma, &return_avma);
	if (result != WP_STEP_OK)
		return result;
	if (!wp_frame_pointer_may_return(modules, step->mem, return_avma))
		return WP_STEP_NO_INFO;
	step->regs->known &= WP_ARCH_CALLEE_SAVED;
	wp_reg_set(step->regs, WP_REG_PC, return_avma);
	wp_reg_set(step->regs, WP_REG_SP, slot_avma + WORD);
	step->cfa_avma = slot_avma + WORD;
	return WP_STEP_OK;
}

enum wp_step_result wp_leaf_i386_step(struct wp_step *step,
				      const struct wp_unwind_modules *modules)
{
	uint8_t code[FINDS_LEN];

	if (!step->is_32bit || !step->module || step->is_return ||
	    wp_code_read(step->module, step->mem, step->regs->v[WP_REG_PC],
			 code, sizeof(code)) ||
	    (code[0] != RET && !wp_leaf_i386_finds_address(code)))
		return WP_STEP_NO_INFO;
	return wp_leaf_i386_pop(step, modules, 0);
}

/* Is STEP's pc behind a call of code that finds its own address? */
static bool has_found_address(const struct wp_step *step)
{
	uint64_t pc_avma = step->regs->v[WP_REG_PC];
	uint8_t call[CALL_LEN], code[FINDS_LEN];
	int32_t rel;

	if (wp_code_read(step->module, step->mem, pc_avma - sizeof(call), call,
			 sizeof(call)) ||
	    call[0] != CALL)
		return false;
	memcpy(&rel, call + 1, sizeof(rel));
	return !wp_code_read(step->module, step->mem,
			     wp_step_narrow(step, pc_avma + (uint64_t)rel),
			     code, sizeof(code)) &&
	       wp_leaf_i386_finds_address(code);
}

enum wp_step_result wp_leaf_i386_scan(struct wp_step *step,
				      const struct wp_unwind_modules *modules)
{
	enum wp_step_result result = WP_STEP_NO_INFO;

	if (!step->module || (step->is_return && !has_found_address(step)))
		return WP_STEP_NO_INFO;
	for (uint64_t pushed = 0;
	     pushed <= PUSHED_MAX && result == WP_STEP_NO_INFO; pushed += WORD)
		result = wp_leaf_i386_pop(step, modules, pushed);
	/* Which registers it has pushed is not known: glibc's never push ebp. */
	if (result == WP_STEP_OK)
		step->regs->known &= UINT64_C(1) << WP_REG_FP |
				     UINT64_C(1) << WP_REG_PC |
				     UINT64_C(1) << WP_REG_SP;
	return result;
}
