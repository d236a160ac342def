/* SPDX-License-Identifier: Apache-2.0 */
/* stack_table.c - see wallprof/profile.h: each distinct stack once. */
#include "budget_bytes.h"
#include "stack_table.h"

#include <errno.h>
#include <string.h>

#include "wallprof/budget.h"
#include "wallprof/hash.h"
#include "wallprof/profile.h"
#include "wallprof/vec.h"

_Static_assert(sizeof(struct wp_frame) == 16,
	       "frames are compared by their bytes, so they have no padding");

static bool same_stack(const struct wp_profile *profile, uint32_t index,
		       const struct wp_stack *want, uint32_t end_mapping)
{
	const struct wp_profile_stack *have = &profile->stacks[index];

	if (have->depth != want->depth || have->end != want->end ||
	    have->end_mapping != end_mapping)
		return false;
	for (uint32_t i = 0; i < want->depth; i++)
		if (memcmp(wp_profile_frame(profile, have, i), &want->frames[i],
			   sizeof(*want->frames)) != 0)
			return false;
	return true;
}

uint64_t wp_stack_table_hash_end(uint8_t end, uint32_t end_mapping)
{
	return wp_hash_u64((uint64_t)end_mapping << 8 | end);
}

uint64_t wp_stack_table_hash_frame(uint64_t seed, const struct wp_frame *frame)
{
	uint64_t rest = (uint64_t)frame->flags << 32 | frame->mapping;

	return wp_hash_u64((seed ^ frame->pc_avma) + wp_hash_u64(rest));
}

/* Take BYTES of the budget, which is a recording's: a file that is read has bounds of its
 * own. */
static bool take(const struct wp_profile *profile, uint64_t bytes)
{
	return profile->meta.was_read ||
	       wp_budget_take(WP_BUDGET_STACKS, bytes);
}

static void give(const struct wp_profile *profile, uint64_t bytes)
{
	if (!profile->meta.was_read)
		wp_budget_give(WP_BUDGET_STACKS, bytes);
}

/* Set *RET to the index of a frame like FRAME.  0; -ENOMEM; -ENOSPC, and it would take
 * more than --max-memory. */
static int intern_frame(struct wp_profile *profile,
			const struct wp_frame *frame, uint32_t *ret)
{
	uint64_t hash = wp_stack_table_hash_frame(0, frame);

	*ret = WP_INDEX_FIND(
		&profile->frame_index, hash, i,
		!memcmp(&profile->frames[i], frame, sizeof(*frame)));
	if (*ret != WP_INDEX_NONE)
		return 0;
	if (!take(profile, WP_FRAME_BYTES))
		return -ENOSPC;
	if (WP_VEC_ROOM(profile->frames, profile->nframes, profile->cap_frames,
			1) ||
	    wp_index_add(&profile->frame_index, hash, profile->nframes)) {
		give(profile, WP_FRAME_BYTES);
		return -ENOMEM;
	}
	*ret = profile->nframes;
	profile->frames[profile->nframes++] = *frame;
	return 0;
}

/* Put the indices of STACK's frames behind those of all stacks. */
static int intern_frames(struct wp_profile *profile,
			 const struct wp_stack *stack)
{
	int rc = 0;

	if (WP_VEC_ROOM(profile->frame_ids, profile->nframe_ids,
			profile->cap_frame_ids, stack->depth))
		return -ENOMEM;
	for (uint32_t i = 0; i < stack->depth && !rc; i++)
		rc = intern_frame(profile, &stack->frames[i],
				  &profile->frame_ids[profile->nframe_ids + i]);
	return rc;
}

static uint64_t hash_of(const struct wp_stack *stack, uint32_t end_mapping)
{
	uint64_t hash = wp_stack_table_hash_end((uint8_t)stack->end,
						end_mapping);

	for (uint32_t i = 0; i < stack->depth; i++)
		hash = wp_stack_table_hash_frame(hash, &stack->frames[i]);
	return hash;
}

uint32_t wp_profile_drop_stack(struct wp_profile *profile)
{
	const struct wp_stack dropped = { .end = WP_END_DROPPED };

	profile->counters.stacks_dropped++;
	return wp_profile_add_stack(profile, &dropped, WP_MAPPING_NONE);
}

uint32_t wp_profile_add_stack(struct wp_profile *profile,
			      const struct wp_stack *stack,
			      uint32_t end_mapping)
{
	uint64_t hash = hash_of(stack, end_mapping);
	uint32_t found = WP_INDEX_FIND(
		&profile->stack_index, hash, i,
		same_stack(profile, i, stack, end_mapping));
	int rc;

	if (found != WP_INDEX_NONE)
		return found;
	if (stack->depth && !take(profile, wp_stack_bytes(stack->depth)))
		return wp_profile_drop_stack(profile);
	rc = intern_frames(profile, stack);
	if (!rc &&
	    (WP_VEC_ROOM(profile->stacks, profile->nstacks, profile->cap_stacks,
			 1) ||
	     wp_index_add(&profile->stack_index, hash, profile->nstacks)))
		rc = -ENOMEM;
	if (rc) {
		if (stack->depth)
			give(profile, wp_stack_bytes(stack->depth));
		return rc == -ENOSPC ? wp_profile_drop_stack(profile) :
				       UINT32_MAX;
	}
	profile->stacks[profile->nstacks] = (struct wp_profile_stack){
		.first = profile->nframe_ids,
		.depth = stack->depth,
		.end = (uint8_t)stack->end,
		.end_mapping = end_mapping,
	};
	profile->nframe_ids += stack->depth;
	return profile->nstacks++;
}
