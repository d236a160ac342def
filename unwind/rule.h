/* SPDX-License-Identifier: Apache-2.0 */
/* rule.h - a row, packed to be cached and executed.
 *
 * Layer: unwind.  Private to unwind/.
 */
#ifndef WP_RULE_H
#define WP_RULE_H

#include "cfi.h"

/* The stack words that one read fetches: enough for every register. */
enum { WP_RULE_WORDS = WP_CFI_NTRACKED };

enum wp_rule_flags {
	/* The code is a signal trampoline. */
	WP_RULE_SIGNAL = 1,
	/* The return address is signed (aarch64). */
	WP_RULE_RA_SIGNED = 2,
	/* CFA = register + offset, every register is kept or in one short
	 * stretch of the stack: u.block holds. */
	WP_RULE_BLOCK = 4,
};

struct wp_rule {
	int32_t cfa_off;
	/* enum wp_cfi_cfa_kind. */
	uint8_t cfa_kind;
	uint8_t cfa_reg;
	/* enum wp_rule_flags. */
	uint8_t flags;
	/* enum wp_step_result: what a step comes to without looking at the
	 * registers, WP_STEP_OK if it must look. */
	uint8_t result;
	/* enum wp_cfi_kind, 4 bits for each slot. */
	uint64_t kinds;
	union {
		/* As in struct wp_cfi_place; file offsets unsigned. */
		int32_t val[WP_CFI_NTRACKED];
		/* The same rules, made for speed. */
		struct {
			/* Registers, as bits: in memory or set; kept. */
			uint64_t set;
			uint64_t kept;
			/* Words [CFA + lo, CFA + lo + 8 * len). */
			int32_t lo;
			uint8_t len;
			/* By slot: word of the stretch; WP_RULE_WORDS + slot:
			 * the register's own value. */
			uint8_t from[WP_CFI_NTRACKED];
		} block;
	} u;
};

/* A rule whose every step comes to RESULT. */
struct wp_rule wp_rule_of_result(enum wp_step_result result);

/* Pack ROW.  IMAGE has its expressions.  What does not fit, or cannot be right,
 * makes a rule of WP_STEP_BAD_INFO.
 */
struct wp_rule wp_rule_pack(const struct wp_cfi_row *row, bool is_signal,
			    struct wp_elf_image *image);

/* The rule for a slot, unpacked. */
struct wp_cfi_place wp_rule_place(const struct wp_rule *rule,
				  unsigned int slot);

/* Make the step that RULE says.  Allocates nothing. */
enum wp_step_result wp_rule_execute(const struct wp_rule *rule,
				    struct wp_step *step);

#endif
