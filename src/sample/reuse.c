/* SPDX-License-Identifier: Apache-2.0 */
/* reuse.c - see reuse.h. */
#include "reuse.h"

enum {
	/* Frames from which on a walk is remembered. */
	DEPTH_MIN = 64,
	/* Walks after which it is seen whether it pays; walks without, if it
	 * does not, twice as many each time. */
	TRIAL = 16,
	REST = 256,
	DOUBLINGS_MAX = 12,
};

#define ROOM_MAX ((size_t)16 << 20)

void wp_reuse_clear(struct wp_reuse *reuse, struct wp_reuse_room *room)
{
	if (reuse->tail)
		room->used -= wp_tail_size(wp_tail_depth(reuse->tail));
	wp_tail_free(reuse->tail);
	reuse->tail = NULL;
	reuse->walks = 0;
	reuse->frames = reuse->reused = 0;
}

/* Make a tail for walks of DEPTH frames and somewhat more. */
static void open_tail(struct wp_reuse *reuse, struct wp_reuse_room *room,
		      uint32_t depth)
{
	uint32_t cap = depth + depth / 4 + DEPTH_MIN;

	wp_reuse_clear(reuse, room);
	if (wp_tail_size(cap) > ROOM_MAX - room->used)
		return;
	if (wp_tail_new(&reuse->tail, cap))
		reuse->tail = NULL;
	else
		room->used += wp_tail_size(cap);
}

/* Does it pay?  To remember a new frame costs as much as a step saves: a walk of
 * 5,000 frames takes 92 us, 16 with none of them new, 102 with half, 189 with
 * all. */
static void reckon(struct wp_reuse *reuse, struct wp_reuse_room *room)
{
	if (reuse->walks < TRIAL)
		return;
	if (2 * reuse->reused < reuse->frames) {
		wp_reuse_clear(reuse, room);
		reuse->rest = (uint32_t)REST << reuse->ntries;
		reuse->ntries += reuse->ntries < DOUBLINGS_MAX;
	}
	reuse->walks = 0;
	reuse->frames = reuse->reused = 0;
}

static void walk_again(struct wp_reuse *reuse, struct wp_unwinder *unwinder,
		       const struct wp_unwind_modules *modules,
		       const struct wp_regs *regs, const struct wp_mem *mem,
		       struct wp_stack *stack)
{
	const struct wp_unwind_stats *stats = wp_unwinder_stats(unwinder);
	uint64_t before = stats->reused;

	wp_unwind_walk_again(unwinder, modules, regs, mem, reuse->tail, stack);
	reuse->walks++;
	reuse->frames += stack->depth;
	reuse->reused += stats->reused - before;
}

void wp_reuse_walk(struct wp_reuse *reuse, struct wp_reuse_room *room,
		   struct wp_unwinder *unwinder,
		   const struct wp_unwind_modules *modules,
		   const struct wp_regs *regs, const struct wp_mem *mem,
		   struct wp_stack *stack)
{
	if (reuse->tail) {
		walk_again(reuse, unwinder, modules, regs, mem, stack);
		if (stack->depth > wp_tail_depth(reuse->tail))
			open_tail(reuse, room, stack->depth);
		else
			reckon(reuse, room);
		return;
	}
	wp_unwind_walk(unwinder, modules, regs, mem, stack);
	if (reuse->rest)
		reuse->rest--;
	else if (stack->depth >= DEPTH_MIN)
		open_tail(reuse, room, stack->depth);
}
