/* SPDX-License-Identifier: Apache-2.0 */
/* tail.h - what a thread's last walk found, to be taken over where it holds.
 *
 * Layer: unwind.  Private to unwind/.
 *
 * What a step comes to depends on the registers that it starts with, the words
 * of memory that it reads, and the files.  So from a frame that has the same
 * registers on, a walk goes as the last one did, if no word that was read from
 * there on has another value.
 */
#ifndef WP_TAIL_H
#define WP_TAIL_H

#include "wallprof/unwind.h"

/* A walk begins, from SP, through MEM: see what of the last one still holds.
 * Returns what to read through instead. */
struct wp_mem wp_tail_open(struct wp_tail *tail, uint64_t generation,
			   uint64_t sp_avma, const struct wp_mem *mem);

/* Is the walk, which has come to REGS in a frame with FLAGS, where the last one
 * was?  Then the rest is put behind STACK's frames, and its end into STACK. */
bool wp_tail_join(struct wp_tail *tail, const struct wp_regs *regs,
		  uint32_t flags, struct wp_stack *stack);

/* It goes on by a step from REGS. */
void wp_tail_add(struct wp_tail *tail, const struct wp_regs *regs);

/* That step is not to be repeated: it was a guess, or left a handler. */
void wp_tail_close(struct wp_tail *tail);

/* The walk is over: remember it, unless memory was missing.  STACK is all of it.
 * Returns how many frames were taken over. */
uint32_t wp_tail_keep(struct wp_tail *tail, const struct wp_stack *stack);

#endif
