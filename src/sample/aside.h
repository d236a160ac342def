/* SPDX-License-Identifier: Apache-2.0 */
/* aside.h - CPU samples that wait for a stop that finds a stack of their kind.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * A CPU sample's stack may go on where the kernel did not copy it: a ptrace
 * stop, which copies all, supplies another one.  It has to be of the same kind:
 * functions that are called on a stack of their own, as C is by Erlang's and
 * Lisp's code, would lose their time to who calls them, where the next sample
 * or stop finds those.
 */
#ifndef WP_ASIDE_H
#define WP_ASIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "time_ledger.h"

struct wp_stack_walk;
struct wp_thread;

struct wp_aside {
	/* Stops that are yet to be asked for. */
	unsigned int stops;
	/* Of each kind the last stack that a stop found, or what is known of a
	 * sample's; UINT32_MAX: none. */
	uint32_t stacks[WP_NASIDES];
	/* Walks of stacks of WP_ASIDE_DEEP read more bytes than those of samples, which
	 * end before the copy does: or at its begin, where the rest is below sp. */
	size_t len;
	/* A sample was on two stacks. */
	bool has_two_stacks;
};

void wp_aside_init(struct wp_aside *aside);

/* WALK of T's sample ended where its copy did, or on another stack: all that
 * is owed waits for a stack of that kind.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_aside_put(struct wp_thread *t, const struct wp_stack_walk *walk);

/* T was stopped at STACK, by WALK: what waits for one of its kind is owed. */
void wp_aside_take(struct wp_thread *t, const struct wp_stack_walk *walk,
		   uint32_t stack);

#endif
