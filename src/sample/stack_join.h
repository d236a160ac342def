/* SPDX-License-Identifier: Apache-2.0 */
/* stack_join.h - whether what was read above the end of a sample's copy is of the stack
 * that was sampled.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * The thread goes on meanwhile.  It may return past the copy's end and call others, whose
 * frames overwrite those above that end first; the end itself they reach a moment later,
 * if the thread has a CPU in that moment.  What no look at the thread can tell: that it
 * has left, and come to the same end by other callers.
 */
#ifndef WP_STACK_JOIN_H
#define WP_STACK_JOIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "stack_copy.h"

enum { WP_STACK_JOINS = 64 };

/* Of some threads, the hash of an end and of what is above it, which were found to be of
 * one stack; 0: none.  And how many moments were waited for in tick NTICK. */
struct wp_stack_joins {
	uint64_t hash[WP_STACK_JOINS];
	uint64_t ntick;
	int nmoments;
};

/* Is what the walk has read above the end of COPY's sample, of thread TID, of the sample's
 * stack?  False, too, if the thread does not run while it is waited for: some ms at most
 * in each NTICK.  JOINS is added to. */
bool wp_stack_join_holds(struct wp_stack_joins *joins,
			 const struct wp_stack_copy *copy, pid_t tid,
			 uint64_t ntick);

#endif
