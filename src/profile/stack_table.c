/* SPDX-License-Identifier: Apache-2.0 */
/* stack_table.c - see wallprof/profile.h: each distinct stack once. */
#include <string.h>

#include "slots.h"
#include "wallprof/hash.h"
#include "wallprof/profile.h"
#include "wallprof/vec.h"

_Static_assert(sizeof(struct wp_frame) == 16,
	       "frames are compared by their bytes, so they have no padding");

static uint64_t hash_frames(const struct wp_frame *frames, uint32_t depth,
			    uint8_t end, uint32_t end_mapping)
{
	return wp_hash_bytes((uint64_t)end_mapping << 8 | end, frames,
			     depth * sizeof(*frames));
}

static const struct wp_frame *frames_of(const struct wp_profile *profile,
					const struct wp_profile_stack *stack)
{
	return profile->frames + stack->first;
}

static uint64_t hash_stack(const void *owner, uint32_t index)
{
	const struct wp_profile *profile = owner;
	const struct wp_profile_stack *stack = &profile->stacks[index];

	return hash_frames(frames_of(profile, stack), stack->depth, stack->end,
			   stack->end_mapping);
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

/* The slot of the stack, or the free one where it belongs. */
static uint32_t *find_stack(const struct wp_profile *profile,
			    const struct wp_stack *want, uint32_t end_mapping,
			    uint64_t hash)
{
	uint32_t mask = profile->nstack_slots - 1;
	uint32_t i = (uint32_t)hash & mask;

	for (;; i = (i + 1) & mask) {
		uint32_t *slot = &profile->stack_slot[i];

		if (!*slot || same_stack(profile, *slot - 1, want, end_mapping))
			return slot;
	}
}

static uint32_t new_stack(struct wp_profile *profile,
			  const struct wp_stack *stack, uint32_t end_mapping,
			  uint64_t hash)
{
	if (WP_VEC_ROOM(profile->stacks, profile->nstacks, profile->cap_stacks,
			1) ||
	    WP_VEC_ROOM(profile->frames, profile->nframes, profile->cap_frames,
			stack->depth) ||
	    wp_slots_room(profile, &profile->stack_slot, &profile->nstack_slots,
			  profile->nstacks, hash_stack))
		return UINT32_MAX;
	/* Before the stack is in the array: the search compares with those. */
	*find_stack(profile, stack, end_mapping, hash) = profile->nstacks + 1;
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

uint32_t wp_profile_add_stack(struct wp_profile *profile,
			      const struct wp_stack *stack,
			      uint32_t end_mapping)
{
	uint64_t hash = hash_frames(stack->frames, stack->depth,
				    (uint8_t)stack->end, end_mapping);

	if (profile->nstack_slots) {
		uint32_t slot = *find_stack(profile, stack, end_mapping, hash);

		if (slot)
			return slot - 1;
	}
	return new_stack(profile, stack, end_mapping, hash);
}
