/* SPDX-License-Identifier: Apache-2.0 */
/* flow.h - the ways that code may go, and the state at their ends.
 *
 * Layer: unwind.  Private to unwind/; x86-64.
 */
#ifndef WP_FLOW_H
#define WP_FLOW_H

#include "flow_state.h"
#include "wallprof/unwind.h"

enum {
	/* Branches that wait to be followed. */
	WP_FLOW_PENDING = 48,
	WP_FLOW_VISITED_BITS = 13,
	/* Bytes of code that are looked at at a time. */
	WP_FLOW_WINDOW = 4096,
};

/* Why a way was reported. */
enum wp_flow_stop {
	/* There are no more ways, or too many. */
	WP_FLOW_OVER,
	/* The way has come to the goal. */
	WP_FLOW_AT_GOAL,
	/* The way is at a return, or has just torn down its frame by rbp: rsp
	 * points to the return address. */
	WP_FLOW_RETURNS,
	/* The way goes on at an address that is not known: a jump by register
	 * or table. */
	WP_FLOW_LOST,
	/* The same, where a word of the stack says; without a goal only.  So
	 * code returns that has popped its return address. */
	WP_FLOW_JUMPS_BACK,
};

struct wp_flow {
	/* Borrowed. */
	const struct wp_unwind_modules *modules;
	const struct wp_mem *mem;
	/* Words of memory (slots of GOTs) that may still be read. */
	unsigned int reads;
	/* Windows on code of no file that may. */
	unsigned int windows;
	/* Code as it lies in an image, or in ROOM: [code_avma, code_end_avma). */
	const uint8_t *code;
	uint64_t code_avma;
	uint64_t code_end_avma;
	/* Code of no file, as it was read. */
	uint8_t room[WP_FLOW_WINDOW];

	uint64_t start_avma;
	/* Report a way that comes here; 0: where it returns. */
	uint64_t goal_avma;
	/* Instructions that may still be followed. */
	unsigned int budget;
	/* The lowest offset from the start's rbp of a word that is read or
	 * written by it, if below 0: what rbp points to is a frame. */
	int64_t fp_use;
	/* Code of no file that has been on another stack reads its frame pointer
	 * back from the word at kept register HOME_REG (machine number) +
	 * HOME_OFF; HOME_REG 0: it does not.  It is taken for the start's. */
	uint8_t home_reg;
	int64_t home_off;
	/* The first way's state that has just made rbp point into the stack, with
	 * no call before, if HAS_PROLOGUE: so a function sets up its frame
	 * pointer, which is not there before. */
	bool has_prologue;
	struct wp_flow_state prologue;
	/* The way being followed, if HAS_NOW. */
	struct wp_flow_state now;
	bool has_now;
	/* Branches not yet followed: pending[0..npending). */
	unsigned int npending;
	struct wp_flow_state pending[WP_FLOW_PENDING];
	/* A set of hashes of (pc, rsp), by open addressing: an entry is in it if
	 * its stamp is STAMP, which each start changes. */
	uint32_t stamp;
	struct {
		uint32_t stamp;
		uint32_t key;
	} visited[1 << WP_FLOW_VISITED_BITS];
};

/* Let FLOW read MODULES' code, and at most READS words of data in MEM; both are
 * borrowed until the next call. */
void wp_flow_open(struct wp_flow *flow, const struct wp_unwind_modules *modules,
		  const struct wp_mem *mem, unsigned int reads);

/* Read the slot of a GOT at AVMA: true, and *RET. */
bool wp_flow_slot(struct wp_flow *flow, uint64_t avma, uint64_t *ret);

/* Copy up to LEN bytes of code at AVMA out of modules' files, or out of memory
 * where a module has none: how many. */
size_t wp_flow_code(struct wp_flow *flow, uint64_t avma, uint8_t *buf,
		    size_t len);

/* Start at START_AVMA, to follow at most BUDGET instructions. */
void wp_flow_start(struct wp_flow *flow, uint64_t start_avma,
		   uint64_t goal_avma, unsigned int budget);

/* Follow ways up to the next that is to be reported: why, and *RET, its state,
 * borrowed until the next call and untouched on WP_FLOW_OVER.
 */
enum wp_flow_stop wp_flow_next(struct wp_flow *flow,
			       const struct wp_flow_state **ret);

#endif
