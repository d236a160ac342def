/* SPDX-License-Identifier: Apache-2.0 */
/* reuse.h - walks that take over what the thread's last one found.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * Only for stacks that are deep and mostly stay as they are: remembering costs
 * more than a walk of few frames.
 */
#ifndef WP_REUSE_H
#define WP_REUSE_H

#include "wallprof/unwind.h"

/* The last walk of a thread, of one kind. */
struct wp_reuse {
	/* NULL: too shallow so far, or it does not pay; owned. */
	struct wp_tail *tail;
	/* Walks until it is tried again. */
	uint32_t rest;
	uint32_t ntries;
	/* Since the last reckoning: walks, their frames, and those that were
	 * taken over. */
	uint32_t walks;
	uint64_t frames;
	uint64_t reused;
};

/* What the remembered walks of all threads may take. */
struct wp_reuse_room {
	size_t used;
};

/* As wp_unwind_walk, with REUSE if that pays.  It may allocate. */
void wp_reuse_walk(struct wp_reuse *reuse, struct wp_reuse_room *room,
		   struct wp_unwinder *unwinder,
		   const struct wp_unwind_modules *modules,
		   const struct wp_regs *regs, const struct wp_mem *mem,
		   struct wp_stack *stack);

void wp_reuse_clear(struct wp_reuse *reuse, struct wp_reuse_room *room);

#endif
