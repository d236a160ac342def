/* SPDX-License-Identifier: Apache-2.0 */
/* rule.h - a row of CFI, packed to be cached and executed.
 *
 * Layer: unwind.  Private to unwind/.
 */
#ifndef WP_RULE_H
#define WP_RULE_H

#include "cfi.h"

/* Words of the stack that one read fetches at most: one for each register. */
enum { WP_RULE_WORDS = WP_CFI_NTRACKED };

enum wp_rule_flags {
	/* The code is a signal trampoline. */
	WP_RULE_SIGNAL = 1,
	/* The return address is signed (aarch64). */
	WP_RULE_RA_SIGNED = 2,
	/* CFA = register + offset, and every register is kept or in one short
	 * stretch of the stack: the rules are in u.block. */
	WP_RULE_BLOCK = 4,
	/* is_injected of struct wp_cfi_row. */
	WP_RULE_INJECTED = 8,
};

struct wp_rule {
	int32_t cfa_off;
	/* enum wp_cfi_cfa_kind. */
	uint8_t cfa_kind;
	uint8_t cfa_reg;
	/* enum wp_rule_flags. */
	uint8_t flags;
	/* enum wp_step_result: what every step by the rule comes to; WP_STEP_OK
	 * if that depends on the registers. */
	uint8_t result;
	/* enum wp_cfi_kind, 4 bits for each slot. */
	uint64_t kinds;
	union {
		/* By slot, as in struct wp_cfi_place; file offsets are
		 * unsigned. */
		int32_t val[WP_CFI_NTRACKED];
		/* With WP_RULE_BLOCK. */
		struct {
			/* Registers that are known afterwards, a bit each: all
			 * of SET; those of KEPT that were known before. */
			uint64_t set;
			uint64_t kept;
			/* The stretch: [CFA + lo, CFA + lo + 8 * len). */
			int32_t lo;
			uint8_t len;
			/* By slot: the word of the stretch that has the value;
			 * WP_RULE_WORDS + slot: the register itself. */
			uint8_t from[WP_CFI_NTRACKED];
		} block;
	} u;
};

/* A rule whose every step comes to RESULT. */
struct wp_rule wp_rule_of_result(enum wp_step_result result);

/* Pack ROW, whose expressions are in IMAGE.  A row that does not fit, or cannot be
 * right, makes a rule of WP_STEP_BAD_INFO.
 */
struct wp_rule wp_rule_pack(const struct wp_cfi_row *row, bool is_signal,
			    struct wp_elf_image *image);

/* Unpack where RULE has the register of SLOT. */
struct wp_cfi_place wp_rule_place(const struct wp_rule *rule,
				  unsigned int slot);

/* Make STEP by RULE.  Allocates nothing. */
enum wp_step_result wp_rule_execute(const struct wp_rule *rule,
				    struct wp_step *step);

#endif
