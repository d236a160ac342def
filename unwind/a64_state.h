/* SPDX-License-Identifier: Apache-2.0 */
/* a64_state.h - what instructions of aarch64 do to sp, x29 and x30.
 *
 * Layer: unwind.  Private to unwind/; aarch64.
 *
 * Encodings: Arm Architecture Reference Manual for A-profile, C4.1.
 */
#ifndef WP_A64_STATE_H
#define WP_A64_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* A register as it was where the flow began. */
enum wp_a64_base { WP_A64_LOST, WP_A64_SP, WP_A64_FP, WP_A64_LR };

/* BASE + off, or the word there.  Of lr the value itself alone. */
struct wp_a64_val {
	int64_t off;
	/* enum wp_a64_base; WP_A64_LOST: not known. */
	uint8_t base;
	bool is_word;
};

struct wp_a64_state {
	struct wp_a64_val sp;
	struct wp_a64_val fp;
	struct wp_a64_val lr;
	/* Where the flow itself has stored fp and lr, and what they were. */
	struct wp_a64_val stored_at[2];
	struct wp_a64_val stored[2];
	/* A register that has a constant, as one has by which a large frame is made and
	 * left; 0: none. */
	uint8_t const_reg;
	uint64_t constant;
};

enum wp_a64_kind {
	WP_A64_PLAIN,
	WP_A64_CALL,
	/* To lr. */
	WP_A64_RETURN,
	/* To an address in a register. */
	WP_A64_JUMP_REG,
	/* To a place in the code: always; or else on. */
	WP_A64_JUMP,
	WP_A64_BRANCH,
	/* Code does not go on there. */
	WP_A64_END,
};

/* What INSN, at PC_AVMA, is; of jumps and branches the target too. */
enum wp_a64_kind wp_a64_kind(uint32_t insn, uint64_t pc_avma,
			     uint64_t *ret_target_avma);

/* Does INSN read or write memory by x29? */
bool wp_a64_is_by_fp(uint32_t insn);

/* Let STATE be what it is after INSN, which is WP_A64_PLAIN. */
void wp_a64_execute(struct wp_a64_state *state, uint32_t insn);

#endif
