/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_arch.h - the registers whose rules are kept, per machine.
 *
 * Layer: unwind.  Private to unwind/.
 *
 * These are the callee-saved registers, the stack pointer and the return address:
 * the rules of callers need no others.  Rules for other registers are skipped.
 */
#ifndef WP_CFI_ARCH_H
#define WP_CFI_ARCH_H

#include "wallprof/types.h"

/* X(slot, DWARF register number). */
#if defined(__x86_64__)
/* System V psABI x86-64, figures 3.4 and 3.36. */
#define WP_CFI_TRACKED(X)                                                      \
	X(0, 3) X(1, 6) X(2, 7) X(3, 12) X(4, 13) X(5, 14) X(6, 15) X(7, 16)
enum {
	WP_CFI_NTRACKED = 8,
	WP_CFI_FP_SLOT = 1,
	WP_CFI_SP_SLOT = 2,
	WP_CFI_RA_SLOT = 7,
	/* The return address column of every CIE. */
	WP_CFI_RA_REG = 16,
};
#elif defined(__aarch64__)
/* AAPCS64, 6.1.1; AADWARF64, 4.1. */
#define WP_CFI_TRACKED(X)                                                      \
	X(0, 19)                                                               \
	X(1, 20)                                                               \
	X(2, 21)                                                               \
	X(3, 22)                                                               \
	X(4, 23)                                                               \
	X(5, 24)                                                               \
	X(6, 25)                                                               \
	X(7, 26)                                                               \
	X(8, 27)                                                               \
	X(9, 28)                                                               \
	X(10, 29)                                                              \
	X(11, 30)                                                              \
	X(12, 31)
enum {
	WP_CFI_NTRACKED = 13,
	WP_CFI_FP_SLOT = 10,
	WP_CFI_SP_SLOT = 12,
	WP_CFI_RA_SLOT = 11,
	WP_CFI_RA_REG = 30,
};
#endif

/* DWARF number of a slot. */
static const uint8_t wp_cfi_tracked[WP_CFI_NTRACKED] = {
#define X(slot, reg) [slot] = reg,
	WP_CFI_TRACKED(X)
#undef X
};

/* The number in struct wp_regs of DWARF register REG, of i386's if IS_32BIT (System V
 * psABI i386, table 2.14): as it is on other machines; UINT64_MAX: there is none. */
static inline uint64_t wp_cfi_reg(bool is_32bit, uint64_t reg)
{
#if defined(__x86_64__)
	/* eax, ecx, edx, ebx, esp, ebp, esi, edi, the return address. */
	static const uint8_t i386[] = {
		0,	   2,	       1,	   3,	      WP_REG_SP,
		WP_REG_FP, WP_REG_ESI, WP_REG_EDI, WP_REG_PC,
	};

	if (is_32bit)
		return reg < sizeof(i386) ? i386[reg] : UINT64_MAX;
#else
	(void)is_32bit;
#endif
	return reg;
}

/* Slot of a register's number in struct wp_regs, or -1. */
static inline int wp_cfi_slot(uint64_t reg)
{
	static const int8_t slot_plus_one[WP_NREGS] = {
#define X(slot, r) [r] = slot + 1,
		WP_CFI_TRACKED(X)
#undef X
	};

	return reg < WP_NREGS ? slot_plus_one[reg] - 1 : -1;
}

#endif
