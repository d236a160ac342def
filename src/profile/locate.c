/* SPDX-License-Identifier: Apache-2.0 */
/* locate.c - see wallprof/profile.h: stacks to locations, lines, functions. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/base_name.h"
#include "wallprof/hash.h"
#include "wallprof/profile.h"
#include "wallprof/vec.h"

/* Locations in the making. */
struct locator {
	struct wp_profile *profile;
	struct wp_index index;
	/* Of each of the profile's frames its location plus 1; 0: not known. */
	uint32_t *of_frames;
};

uint32_t wp_profile_add_function(struct wp_profile *profile,
				 const struct wp_profile_function *function)
{
	uint64_t hash = wp_hash_bytes(0, function, sizeof(*function));
	uint32_t found = WP_INDEX_FIND(
		&profile->function_index, hash, i,
		!memcmp(&profile->functions[i], function, sizeof(*function)));

	if (found != WP_INDEX_NONE)
		return found;
	if (WP_VEC_ROOM(profile->functions, profile->nfunctions,
			profile->cap_functions, 1) ||
	    wp_index_add(&profile->function_index, hash, profile->nfunctions))
		return UINT32_MAX;
	profile->functions[profile->nfunctions] = *function;
	return profile->nfunctions++;
}

int wp_profile_add_line(struct wp_profile *profile, uint32_t loc,
			struct wp_profile_line line)
{
	struct wp_profile_location *location = &profile->locations[loc];

	if (!location->nlines)
		location->line_first = profile->nlines;
	assert(location->line_first + location->nlines == profile->nlines);
	if (WP_VEC_ROOM(profile->lines, profile->nlines, profile->cap_lines, 1))
		return -ENOMEM;
	profile->lines[profile->nlines++] = line;
	location->nlines++;
	return 0;
}

static bool same_location(const struct wp_profile_location *a,
			  const struct wp_profile_location *b)
{
	return a->avma == b->avma && a->mapping == b->mapping &&
	       a->text == b->text && a->guessed == b->guessed;
}

static uint64_t location_hash(const struct wp_profile_location *l)
{
	return wp_hash_u64(wp_hash_u64(l->avma + l->guessed) ^
			   ((uint64_t)l->mapping << 32 | l->text));
}

/* A text or a kernel function is its own name. */
static int name_location(struct wp_profile *profile, uint32_t loc)
{
	uint32_t text = profile->locations[loc].text;
	struct wp_profile_function function = {
		.name = text,
		.system_name = text,
	};
	uint32_t index = wp_profile_add_function(profile, &function);

	if (index == UINT32_MAX)
		return -ENOMEM;
	return wp_profile_add_line(
		profile, loc, (struct wp_profile_line){ .function = index });
}

static int intern_location(struct locator *l,
			   const struct wp_profile_location *want,
			   uint32_t *ret_index)
{
	struct wp_profile *profile = l->profile;
	uint64_t hash = location_hash(want);

	*ret_index = WP_INDEX_FIND(&l->index, hash, i,
				   same_location(&profile->locations[i], want));
	if (*ret_index != WP_INDEX_NONE)
		return 0;
	if (WP_VEC_ROOM(profile->locations, profile->nlocations,
			profile->cap_locations, 1) ||
	    wp_index_add(&l->index, hash, profile->nlocations))
		return -ENOMEM;
	*ret_index = profile->nlocations;
	profile->locations[profile->nlocations++] = *want;
	return want->text ? name_location(profile, *ret_index) : 0;
}

/* The mapping ID if AVMA lies inside it: the address before a return address
 * at the very start of a mapping does not. */
static uint32_t mapping_of(const struct wp_profile *profile, uint32_t id,
			   uint64_t avma)
{
	const struct wp_profile_mapping *m;

	if (id == WP_MAPPING_NONE || id >= profile->nmappings)
		return WP_MAPPING_NONE;
	m = &profile->mappings[id];
	return m->start_avma <= avma && avma < m->end_avma ? id :
							     WP_MAPPING_NONE;
}

static int locate_frame(struct locator *l, uint32_t id, uint32_t *ret_index)
{
	const struct wp_frame *frame = &l->profile->frames[id];
	struct wp_profile_location want = { 0 };
	int rc;

	if (l->of_frames[id]) {
		*ret_index = l->of_frames[id] - 1;
		return 0;
	}
	if (frame->flags & WP_FRAME_NAMED) {
		want.mapping = frame->mapping;
		want.text = (uint32_t)frame->pc_avma;
	} else {
		want.avma = wp_frame_lookup_avma(frame);
		want.mapping = mapping_of(l->profile, frame->mapping,
					  want.avma);
		want.guessed = frame->flags & WP_FRAME_GUESSED;
	}
	rc = intern_location(l, &want, ret_index);
	if (!rc)
		l->of_frames[id] = *ret_index + 1;
	return rc;
}

uint32_t wp_profile_end_mapping(const struct wp_profile *profile,
				const struct wp_profile_stack *stack)
{
	switch (stack->end) {
	case WP_END_NO_INFO:
	case WP_END_BAD_INFO:
	case WP_END_UNKNOWN_REG:
	case WP_END_NO_PROGRESS:
		return stack->end_mapping < profile->nmappings ?
			       stack->end_mapping :
			       WP_MAPPING_NONE;
	default:
		return WP_MAPPING_NONE;
	}
}

/* The name of the module that STACK's walk ended in; NULL where that tells
 * nothing. */
static const char *end_module(const struct wp_profile *profile,
			      const struct wp_profile_stack *stack)
{
	uint32_t mapping = wp_profile_end_mapping(profile, stack);
	const char *path;

	if (mapping == WP_MAPPING_NONE)
		return NULL;
	path = wp_profile_str(profile, profile->mappings[mapping].path);
	return *path ? wp_base_name(path) : "anonymous memory";
}

/* The text that stands for what STACK lacks; "" when it lacks nothing. */
static void end_text(const struct wp_profile *profile,
		     const struct wp_profile_stack *stack, char *text,
		     size_t size)
{
	const char *why = wp_stack_end_text((enum wp_stack_end)stack->end);
	const char *module = end_module(profile, stack);

	text[0] = '\0';
	if (!stack->depth &&
	    (stack->end == WP_END_ROOT || stack->end == WP_END_EMPTY))
		snprintf(text, size, "[no stack]");
	else if (stack->end == WP_END_DROPPED || stack->end == WP_END_WORKER)
		snprintf(text, size, "[%s]", why);
	else if (stack->end == WP_END_HOLDER)
		snprintf(text, size, "[%s, those who waited]", why);
	else if (!stack->depth || stack->end != WP_END_ROOT)
		snprintf(text, size, "[%s: %s%s%.200s]",
			 stack->depth ? "truncated" : "no stack", why,
			 module ? " in " : "", module ? module : "");
}

static int locate_end(struct locator *l, const struct wp_profile_stack *stack,
		      uint32_t *ret_index)
{
	struct wp_profile_location want = { 0 };
	char text[512];

	end_text(l->profile, stack, text, sizeof(text));
	want.text = wp_intern_add_str(&l->profile->strings, text);
	if (want.text == UINT32_MAX)
		return -ENOMEM;
	return intern_location(l, &want, ret_index);
}

static int locate_stack(struct locator *l, struct wp_profile_stack *stack)
{
	struct wp_profile *profile = l->profile;
	uint32_t *pool;
	int rc;

	if (WP_VEC_ROOM(profile->loc_pool, profile->nloc_pool,
			profile->cap_loc_pool, (uint64_t)stack->depth + 1))
		return -ENOMEM;
	pool = profile->loc_pool + profile->nloc_pool;
	stack->loc_first = profile->nloc_pool;
	stack->nlocs = stack->depth;
	for (uint32_t i = 0; i < stack->depth; i++) {
		rc = locate_frame(l, profile->frame_ids[stack->first + i],
				  &pool[i]);
		if (rc)
			return rc;
	}
	if (!stack->depth || stack->end != WP_END_ROOT) {
		rc = locate_end(l, stack, &pool[stack->nlocs++]);
		if (rc)
			return rc;
	}
	profile->nloc_pool += stack->nlocs;
	return 0;
}

int wp_profile_locate(struct wp_profile *profile)
{
	struct locator l = { .profile = profile };
	int rc = 0;

	if (profile->nlocated == profile->nstacks)
		return 0;
	l.of_frames = calloc((size_t)profile->nframes + 1,
			     sizeof(*l.of_frames));
	if (!l.of_frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->nlocations && !rc; i++)
		rc = wp_index_add(&l.index,
				  location_hash(&profile->locations[i]), i);
	while (profile->nlocated < profile->nstacks && !rc) {
		rc = locate_stack(&l, &profile->stacks[profile->nlocated]);
		profile->nlocated += !rc;
	}
	wp_index_clear(&l.index);
	free(l.of_frames);
	return rc;
}
