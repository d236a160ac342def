/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - see view.h. */
#include "view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "wallprof/base_name.h"

/* High bits of a view's id, by the kind of frame. */
#define KERNEL_BIT (UINT64_C(1) << 32)
#define ADDRESS_BIT (UINT64_C(1) << 33)

/* How many levels location LOC has; at least 1. */
static uint32_t count_levels(const struct wp_profile *profile, uint32_t loc)
{
	uint32_t n = profile->locations[loc].nlines;

	return n ? n : 1;
}

static void set_function(const struct wp_profile *profile,
			 const struct wp_profile_line *line,
			 struct wp_view *view)
{
	const struct wp_profile_function *f =
		&profile->functions[line->function];

	view->id = line->function;
	view->function = wp_profile_str(profile, f->name);
	view->file = wp_base_name(wp_profile_str(profile, f->file));
	view->line = line->line;
	if (!*view->function)
		view->function = "[no name]";
}

void wp_view_set(const struct wp_profile *profile, uint32_t loc, uint32_t level,
		 struct wp_view *view)
{
	const struct wp_profile_location *l = &profile->locations[loc];

	*view = (struct wp_view){
		.id = loc | ADDRESS_BIT,
		.loc = loc,
		.level = level,
		.file = "",
		.module = "",
		.guessed = l->guessed,
		.kernel = l->mapping == WP_MAPPING_KERNEL,
		.text = l->text && l->mapping == WP_MAPPING_NONE,
		.inlined = level + 1 < l->nlines,
	};
	snprintf(view->address, sizeof(view->address), "0x%" PRIx64, l->avma);
	if (level < l->nlines)
		set_function(profile, &profile->lines[l->line_first + level],
			     view);
	if (view->kernel)
		view->id |= KERNEL_BIT;
	else if (l->mapping < profile->nmappings)
		view->module = wp_base_name(wp_profile_str(
			profile, profile->mappings[l->mapping].path));
}

static bool walk_location(const struct wp_profile *profile, uint32_t loc,
			  bool root_first,
			  bool (*each)(void *ctx, const struct wp_view *view),
			  void *ctx)
{
	uint32_t n = count_levels(profile, loc);
	struct wp_view view;

	for (uint32_t i = 0; i < n; i++) {
		wp_view_set(profile, loc, root_first ? n - 1 - i : i, &view);
		if (!each(ctx, &view))
			return false;
	}
	return true;
}

void wp_view_walk(const struct wp_profile *profile, uint32_t stack,
		  bool root_first,
		  bool (*each)(void *ctx, const struct wp_view *view),
		  void *ctx)
{
	const struct wp_profile_stack *s = &profile->stacks[stack];
	const uint32_t *loc = profile->loc_pool + s->loc_first;

	for (uint32_t i = 0; i < s->nlocs; i++)
		if (!walk_location(profile,
				   loc[root_first ? s->nlocs - 1 - i : i],
				   root_first, each, ctx))
			return;
}
