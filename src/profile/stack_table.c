/* SPDX-License-Identifier: Apache-2.0 */
/* stack_table.c - see wallprof/profile.h: each distinct stack once. */
#include "stack_table.h"

#include <string.h>

#include "wallprof/budget.h"
#include "wallprof/hash.h"
#include "wallprof/profile.h"
#include "wallprof/vec.h"

_Static_assert(sizeof(struct wp_frame) == 16,
	       "frames are compared by their bytes, so they have no padding");

static const struct wp_frame *frames_of(const struct wp_profile *profile,
					const struct wp_profile_stack *stack)
{
	return profile->frames + stack->first;
}

static bool same_stack(const struct wp_profile *profile, uint32_t index,
		       const struct wp_stack *want, uint32_t end_mapping)
{
	const struct wp_profile_stack *have = &profile->stacks[index];

	return have->depth == want->depth && have->end == want->end &&
	       have->end_mapping == end_mapping &&
	       (!want->depth || !memcmp(frames_of(profile, have), want->frames,
					want->depth * sizeof(*want->frames)));
}

uint64_t wp_stack_table_hash(const struct wp_frame *frames, uint32_t depth,
			     uint8_t end, uint32_t end_mapping)
{
	return wp_hash_bytes((uint64_t)end_mapping << 8 | end, frames,
			     depth * sizeof(*frames));
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
	uint64_t hash = wp_stack_table_hash(stack->frames, stack->depth,
					    (uint8_t)stack->end, end_mapping);
	uint32_t found = WP_INDEX_FIND(
		&profile->stack_index, hash, i,
		same_stack(profile, i, stack, end_mapping));

	if (found != WP_INDEX_NONE)
		return found;
	if (stack->depth &&
	    !wp_budget_take(WP_BUDGET_STACKS, wp_stack_bytes(stack->depth)))
		return wp_profile_drop_stack(profile);
	if (WP_VEC_ROOM(profile->stacks, profile->nstacks, profile->cap_stacks,
			1) ||
	    WP_VEC_ROOM(profile->frames, profile->nframes, profile->cap_frames,
			stack->depth) ||
	    wp_index_add(&profile->stack_index, hash, profile->nstacks))
		return UINT32_MAX;
	profile->stacks[profile->nstacks] = (struct wp_profile_stack){
		.first = profile->nframes,
		.depth = stack->depth,
		.end = (uint8_t)stack->end,
		.end_mapping = end_mapping,
	};
	if (stack->depth)
		memcpy(profile->frames + profile->nframes, stack->frames,
		       stack->depth * sizeof(*stack->frames));
	profile->nframes += stack->depth;
	return profile->nstacks++;
}
