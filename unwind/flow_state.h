/* SPDX-License-Identifier: Apache-2.0 */
/* flow_state.h - what is known of registers and stack at one point of a
 * function's code, and what an instruction does to that.
 *
 * Layer: unwind.  Private to unwind/; x86-64.
 *
 * A value is known as long as it is a constant plus what a register held where
 * the flow started.  The target's registers and stack are not read: what is
 * known holds for the code, whichever thread runs it.
 */
#ifndef WP_FLOW_STATE_H
#define WP_FLOW_STATE_H

#include "insn.h"

enum {
	/* Registers that a function must keep: rbx, rbp, r12 to r15 (psABI
	 * 3.2.1). */
	WP_NKEPT = 6,
};

/* Machine numbers of the kept registers. */
extern const uint8_t wp_kept_regs[WP_NKEPT];

/* What the offset of a value is added to. */
enum wp_flow_base {
	/* The value is not known. */
	WP_BASE_NONE,
	/* Zero: the value is a constant. */
	WP_BASE_ZERO,
	/* The value is not a sum, but the word in memory at: the start's rsp, or
	 * rbp, plus the offset. */
	WP_BASE_AT_SP,
	WP_BASE_AT_FP,
	/* The word at: the struct's word, plus the offset. */
	WP_BASE_AT_WORD,
	/* WP_BASE_REG + N: what register N held at the start. */
	WP_BASE_REG,
	WP_BASE_SP = WP_BASE_REG + WP_RSP,
	WP_BASE_FP = WP_BASE_REG + WP_RBP,
	/* What the struct's word held at the start. */
	WP_BASE_WORD = WP_BASE_REG + WP_NGPRS,
};

struct wp_flow_state {
	/* The next instruction. */
	uint64_t pc_avma;
	/* Values of the registers: base[N] + off[N]; enum wp_flow_base. */
	int64_t off[WP_NGPRS];
	uint8_t base[WP_NGPRS];
	/* Bit I: the word at (the start's rsp) + saved_off[I] holds what kept
	 * register I held at the start. */
	uint8_t saved;
	int64_t saved_off[WP_NKEPT];
	/* Bit I: since the start, kept register I's value of then was put into
	 * memory; at the start it was not there yet. */
	uint8_t stored;
	/* The words [LO, HI), as offsets from the start's rsp, and from its rbp:
	 * all words written since the start are among them. */
	struct wp_flow_range {
		int64_t lo;
		int64_t hi;
	} over_sp, over_fp, over_word;
	/* rsp was set back to the word at WORD_BASE (WP_BASE_SP or _FP) + WORD_OFF:
	 * so code returns that has aligned its stack.  WORD_BASE 0: it was not. */
	uint8_t word_base;
	int64_t word_off;
	/* A call was passed, which may be one that never returns: the code
	 * behind it may be another function's. */
	bool past_call;
};

/* Let STATE be at PC_AVMA and the flow start there: every register holds what it
 * holds. */
void wp_flow_state_start(struct wp_flow_state *state, uint64_t pc_avma);

/* Do to STATE what INSN does, which changes no control flow.  STATE->pc_avma is
 * already the next instruction's. */
void wp_flow_state_execute(struct wp_flow_state *state,
			   const struct wp_insn *insn);

/* The values of REGS, a bit each, are not known any more. */
void wp_flow_state_forget(struct wp_flow_state *state, uint32_t regs);

/* True, and *RET_BASE + *RET_OFF, if the address of INSN's operand in memory is
 * known.  STATE->pc_avma is already the next instruction's. */
bool wp_flow_state_operand(const struct wp_flow_state *state,
			   const struct wp_insn *insn, uint8_t *ret_base,
			   int64_t *ret_off);

#endif
