/* SPDX-License-Identifier: Apache-2.0 */
/* aside.c - see aside.h. */
#include "aside.h"

#include <errno.h>

#include "stack_walk.h"
#include "target.h"
#include "thread.h"

enum {
	/* Stops for a sample: most find another kind of stack. */
	STOPS = 4,
};

void wp_aside_init(struct wp_aside *aside)
{
	*aside = (struct wp_aside){ .len = SIZE_MAX };
	for (int kind = 0; kind < WP_NASIDES; kind++)
		aside->stacks[kind] = UINT32_MAX;
}

/* The kind of a stack on two, by who was called last. */
static enum wp_aside_kind kind_of(const struct wp_thread *t,
				  const struct wp_stack *stack)
{
	uint32_t mapping = stack->depth ? stack->frames[0].mapping :
					  WP_MAPPING_NONE;

	return mapping != WP_MAPPING_NONE &&
			       t->target->profile->mappings[mapping].image ?
		       WP_ASIDE_FILE :
		       WP_ASIDE_CODE;
}

int wp_aside_put(struct wp_thread *t, const struct wp_stack_walk *walk)
{
	enum wp_aside_kind kind = WP_ASIDE_DEEP;
	uint32_t *stack;

	if (walk->stack.end == WP_END_OTHER_STACK) {
		kind = kind_of(t, &walk->stack);
		t->aside.has_two_stacks = true;
	} else if (walk->read_len < t->aside.len) {
		t->aside.len = walk->read_len;
	}
	stack = &t->aside.stacks[kind];
	if (*stack == UINT32_MAX)
		*stack = wp_stack_walk_intern(t->target, walk);
	if (*stack == UINT32_MAX)
		return -ENOMEM;
	wp_time_ledger_set_aside(&t->time, kind);
	t->aside.stops = STOPS;
	return 0;
}

/* A stop found STACK of KIND. */
static void take(struct wp_thread *t, enum wp_aside_kind kind, uint32_t stack)
{
	wp_time_ledger_take_aside(&t->time, kind);
	t->aside.stacks[kind] = stack;
}

void wp_aside_take(struct wp_thread *t, const struct wp_stack_walk *walk,
		   uint32_t stack)
{
	const struct wp_time_aside *aside = t->time.aside;
	bool waits = false;

	if (walk->is_on_two_stacks)
		take(t, kind_of(t, &walk->stack), stack);
	if (walk->read_len > t->aside.len)
		take(t, WP_ASIDE_DEEP, stack);
	for (int kind = 0; kind < WP_NASIDES; kind++)
		waits |= aside[kind].cpu_count > 0;
	if (!waits)
		t->aside.stops = 0;
	t->aside.stops -= t->aside.stops > 0;
}
