/* SPDX-License-Identifier: Apache-2.0 */
/* guess_flow.h - what code does to the stack pointer and to the registers
 * that a function must keep, on the ways that it may go.
 *
 * Layer: unwind.  Private to unwind/; x86-64.
 *
 * Values are followed as far as they are sums of a constant and what a
 * register held at the start.  Nothing of the target's registers or stack is
 * looked at: what is found holds for the code, whoever runs it.
 */
#ifndef WP_GUESS_FLOW_H
#define WP_GUESS_FLOW_H

#include "guess_insn.h"
#include "wallprof/unwind.h"

enum {
	/* Registers that a function must keep: rbx, rbp, r12 to r15. */
	WP_NKEPT = 6,
	/* Ways not gone yet. */
	WP_FLOW_PENDING = 48,
	WP_FLOW_VISITED_BITS = 13,
};

/* Machine numbers of the kept registers. */
extern const uint8_t wp_kept_regs[WP_NKEPT];

/* What the offset of a value is added to. */
enum wp_flow_base {
	/* The value is not known. */
	WP_BASE_NONE,
	/* Nothing: a constant. */
	WP_BASE_ZERO,
	/* Not a sum, but the word in memory at: what rsp, or rbp, held at the
	 * start, plus the offset. */
	WP_BASE_AT_SP,
	WP_BASE_AT_FP,
	/* Plus N: what register N held at the start. */
	WP_BASE_REG,
	WP_BASE_SP = WP_BASE_REG + WP_RSP,
	WP_BASE_FP = WP_BASE_REG + WP_RBP,
};

struct wp_flow_state {
	uint64_t pc_avma;
	int64_t off[WP_NGPRS];
	/* enum wp_flow_base. */
	uint8_t base[WP_NGPRS];
	/* Bit I: the word at (rsp of the start) + saved_off[I] holds what kept
	 * register I held at the start. */
	uint8_t saved;
	int64_t saved_off[WP_NKEPT];
	/* Bit I: what kept register I held at the start was put into memory on
	 * the way: at the start it was not there yet. */
	uint8_t stored;
	/* Words from LO up to HI were written on the way, or some of them: by
	 * the offset from what rsp, and rbp, held at the start. */
	struct wp_flow_range {
		int64_t lo;
		int64_t hi;
	} over_sp, over_fp;
	/* The way went through a call, which may be one that never returns;
	 * what is behind it may be another function. */
	bool past_call;
};

/* Why a way was reported. */
enum wp_flow_stop {
	/* No more ways, or too many. */
	WP_FLOW_OVER,
	/* It has come to the goal. */
	WP_FLOW_AT_GOAL,
	/* It is at a return, or has just torn down its frame by rbp: rsp is
	 * where the return address is. */
	WP_FLOW_RETURNS,
	/* It goes on where nobody knows: a jump by register or table. */
	WP_FLOW_LOST,
};

struct wp_flow {
	const struct wp_unwind_modules *modules;
	const struct wp_mem *mem;
	/* Words of memory (slots of GOTs) that may still be read. */
	unsigned int reads;
	/* Code as it lies in an image: [code_avma, code_end_avma). */
	const uint8_t *code;
	uint64_t code_avma;
	uint64_t code_end_avma;

	/* Report a way that comes here; 0: where it returns. */
	uint64_t goal_avma;
	/* Instructions that may still be looked at. */
	unsigned int budget;
	struct wp_flow_state now;
	bool has_now;
	unsigned int npending;
	struct wp_flow_state pending[WP_FLOW_PENDING];
	/* Hashes of (pc, rsp) seen in the run STAMP. */
	uint32_t stamp;
	struct {
		uint32_t stamp;
		uint32_t key;
	} visited[1 << WP_FLOW_VISITED_BITS];
};

/* Look at these images and this memory from now on, READS words of it. */
void wp_flow_open(struct wp_flow *flow, const struct wp_unwind_modules *modules,
		  const struct wp_mem *mem, unsigned int reads);

/* The word of memory at AVMA, which is a slot of a GOT: true, and *RET. */
bool wp_flow_slot(struct wp_flow *flow, uint64_t avma, uint64_t *ret);

/* Up to LEN bytes of code at AVMA out of modules' files: how many. */
size_t wp_flow_code(struct wp_flow *flow, uint64_t avma, uint8_t *buf,
		    size_t len);

/* Begin at START_AVMA, with BUDGET instructions to look at. */
void wp_flow_start(struct wp_flow *flow, uint64_t start_avma,
		   uint64_t goal_avma, unsigned int budget);

/* Go on to the next way that is to be reported: why, and *RET.  *RET is valid
 * until the next call; untouched on WP_FLOW_OVER.
 */
enum wp_flow_stop wp_flow_next(struct wp_flow *flow,
			       const struct wp_flow_state **ret);

#endif
