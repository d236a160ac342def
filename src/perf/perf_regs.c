/* SPDX-License-Identifier: Apache-2.0 */
/* perf_regs.c - which register is which: perf's order against DWARF's. */
#include "perf_decode.h"

#include <string.h>

#if defined(__x86_64__)
#include <asm/perf_regs.h>

/* By ascending bit, the order of the values. */
static const struct {
	uint8_t bit;
	uint8_t dwarf;
} regs_table[] = {
	{ PERF_REG_X86_AX, 0 },	  { PERF_REG_X86_BX, 3 },
	{ PERF_REG_X86_CX, 2 },	  { PERF_REG_X86_DX, 1 },
	{ PERF_REG_X86_SI, 4 },	  { PERF_REG_X86_DI, 5 },
	{ PERF_REG_X86_BP, 6 },	  { PERF_REG_X86_SP, 7 },
	{ PERF_REG_X86_IP, 16 },  { PERF_REG_X86_R8, 8 },
	{ PERF_REG_X86_R9, 9 },	  { PERF_REG_X86_R10, 10 },
	{ PERF_REG_X86_R11, 11 }, { PERF_REG_X86_R12, 12 },
	{ PERF_REG_X86_R13, 13 }, { PERF_REG_X86_R14, 14 },
	{ PERF_REG_X86_R15, 15 },
};
#elif defined(__aarch64__)
/* x0..x29, lr, sp, pc have the same numbers (arch/arm64/include/uapi/asm/
 * perf_regs.h; AADWARF64, but for the pc, which types.h numbers). */
#define SAME4(n)                                                               \
	{ n, n }, { n + 1, n + 1 }, { n + 2, n + 2 },                          \
	{                                                                      \
		n + 3, n + 3                                                   \
	}
static const struct {
	uint8_t bit;
	uint8_t dwarf;
} regs_table[] = {
	SAME4(0),  SAME4(4),  SAME4(8),	 SAME4(12),	    SAME4(16),
	SAME4(20), SAME4(24), SAME4(28), { 32, WP_REG_PC },
};
#endif

enum { NTABLE = sizeof(regs_table) / sizeof(*regs_table) };
_Static_assert((int)NTABLE == (int)WP_NREGS, "one of perf's for each of ours");

uint64_t wp_perf_regs_mask(void)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < NTABLE; i++)
		mask |= UINT64_C(1) << regs_table[i].bit;
	return mask;
}

void wp_perf_regs_set(struct wp_regs *regs, const uint8_t *values)
{
	for (size_t i = 0; i < NTABLE; i++) {
		uint64_t val;

		memcpy(&val, values + 8 * i, sizeof(val));
		wp_reg_set(regs, regs_table[i].dwarf, val);
	}
}
