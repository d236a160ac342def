/* SPDX-License-Identifier: Apache-2.0 */
/* vdso_i386.c - see vdso_i386.h. */
#include "vdso_i386.h"

#include <string.h>

#include "frame_pointer.h"
#include "leaf_i386.h"

enum {
	/* The longest function has 1.5 kB; from its start to its frame pointer are a
	 * call and an addition. */
	BEFORE = 2048,
	AFTER = 16,
	/* push %ebp; mov %esp, %ebp. */
	PROLOGUE = 3,
	RET = 0xc3,
};

static bool is_prologue(const uint8_t *p)
{
	return !memcmp(p, "\x55\x89\xe5", PROLOGUE);
}

/* Has nothing been pushed where the code goes on at P[0..AFTER)? */
static bool is_bare(const uint8_t *p)
{
	if (p[0] == RET || wp_leaf_i386_finds_address(p))
		return true;
	if (is_prologue(p))
		return true;
	/* A call of that; add $NUMBER, %eax or another. */
	if (p[0] == 0xe8)
		p += 5;
	if (p[0] == 0x05)
		return is_prologue(p + 5);
	return p[0] == 0x81 && is_prologue(p + 6);
}

/* Is there a prologue before code[0..n), its last byte at most at N? */
static bool has_prologue(const uint8_t *code, size_t n)
{
	for (size_t i = PROLOGUE; i <= n; i++)
		if (is_prologue(code + n - i))
			return true;
	return false;
}

enum wp_step_result wp_vdso_i386_step(struct wp_step *step,
				      const struct wp_unwind_modules *modules)
{
	const struct wp_unwind_module *module = step->module;
	uint64_t pc_avma = step->regs->v[WP_REG_PC];
	uint8_t code[BEFORE + AFTER];
	size_t n;

	if (!step->is_32bit || !module || !module->image ||
	    !module->image->read)
		return WP_STEP_NO_INFO;
	n = pc_avma - module->start_avma < BEFORE ?
		    (size_t)(pc_avma - module->start_avma) :
		    BEFORE;
	if (wp_code_read(module, step->mem, pc_avma - n, code, n + AFTER))
		return WP_STEP_NO_INFO;
	if (is_bare(code + n))
		return wp_leaf_i386_pop(step, modules, 0);
	/* Between the two instructions. */
	if (n && is_prologue(code + n - 1))
		return wp_leaf_i386_pop(step, modules, 4);
	return has_prologue(code, n) ?
		       wp_frame_pointer_step(step, modules, true) :
		       WP_STEP_NO_INFO;
}
