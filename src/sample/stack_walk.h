/* SPDX-License-Identifier: Apache-2.0 */
/* stack_walk.h - from registers and a stack copy to a stack of the profile.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_STACK_WALK_H
#define WP_STACK_WALK_H

#include "perf_source.h"
#include "wallprof/unwind.h"

struct wp_profile;
struct wp_target;

/* The result of a walk. */
struct wp_stack_walk {
	/* Frames lie in the loop's room: borrowed until the next walk. */
	struct wp_stack stack;
	/* The stack goes on past its copy (what follows was read from the live
	 * thread if that stands still). */
	bool is_beyond_copy;
	/* Bytes of the copy that it read, from the copy's begin. */
	size_t read_len;
	/* Frames are on a second stack, of which there is no copy. */
	bool is_on_two_stacks;
	/* An address is in no mapping of the map as it was last read, and the
	 * map was not read again: that was done just before, or the walk was in
	 * a stop window. */
	bool map_is_stale;
};

/* Walk the loop's stack copy of a thread of TARGET with REGS.  Where the map is
 * stale, it is read again and the walk made again, except in a stop window. */
struct wp_stack_walk wp_stack_walk(struct wp_target *target,
				   const struct wp_regs *regs,
				   enum wp_unwind_pace pace);

/* Walk the stack copy and registers in RECORD, a sample of SOURCE.  If the stack
 * goes on past its copy, SOURCE's stack_was_cut is set, or it is read on in the thread,
 * which may take some ms of each tick (stack_join.h). */
struct wp_stack_walk wp_stack_walk_sample(struct wp_target *target,
					  struct wp_perf_source *source,
					  const struct wp_perf_record *record);

/* Has a stack that ends because of END all its frames, or as many as are kept? */
static inline bool wp_stack_walk_is_whole(enum wp_stack_end end)
{
	return end == WP_END_ROOT || end == WP_END_DEPTH_LIMIT;
}

/* Add the stack of WALK to TARGET's profile: its index, UINT32_MAX without
 * memory. */
uint32_t wp_stack_walk_intern(struct wp_target *target,
			      const struct wp_stack_walk *walk);

/* A walk without a frame so far, which ends because of END. */
struct wp_stack_walk wp_stack_walk_none(struct wp_target *target,
					enum wp_stack_end end);

/* A walk that has no frame but that at PC_AVMA, and reads no memory. */
struct wp_stack_walk wp_stack_walk_innermost(struct wp_target *target,
					     uint64_t pc_avma,
					     enum wp_stack_end end);

/* The index of the stack without frames that ends because of END. */
uint32_t wp_stack_walk_intern_none(struct wp_target *target,
				   enum wp_stack_end end);

/* A frame of PROFILE that is TEXT; its pc_avma is UINT32_MAX without memory. */
struct wp_frame wp_stack_walk_text_frame(struct wp_profile *profile,
					 const char *text);

#endif
