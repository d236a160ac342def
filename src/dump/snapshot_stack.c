/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_stack.c - a profile's stack as a stack of a dump.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "snapshot_priv.h"
#include "wallprof/base_name.h"
#include "wallprof/state.h"

/* Frames among which the site of a wait is looked for. */
enum { SITE_FRAMES_MAX = 64 };

/* String id of the base name of string PATH. */
static uint32_t base_name_id(struct wp_dump *dump, uint32_t path)
{
	/* Not a pointer into the table, which may move as it grows. */
	char name[NAME_MAX + 1];

	snprintf(name, sizeof(name), "%s",
		 wp_base_name(wp_dump_str(dump, path)));
	return wp_intern_add_str(&dump->strings, name);
}

/* String id of the name of the module that STACK's walk ended in, 0 where that
 * tells nothing. */
static uint32_t end_module_id(struct wp_dump *dump, const struct wp_profile *p,
			      const struct wp_profile_stack *stack)
{
	uint32_t mapping = wp_profile_end_mapping(p, stack);

	if (mapping == WP_MAPPING_NONE)
		return 0;
	if (!p->mappings[mapping].path)
		return wp_intern_add_str(&dump->strings, "anonymous memory");
	return base_name_id(dump, p->mappings[mapping].path);
}

void wp_snapshot_open_go(struct wp_snapshot_sample *sample)
{
	const struct wp_profile *p = &sample->profile;

	for (uint32_t i = 1; *sample->goroutines.version && i < p->nmappings;
	     i++)
		if (p->mappings[i].image &&
		    p->mappings[i].image->go_table.size &&
		    !wp_go_table_open(&sample->go_table, p->mappings[i].image))
			return;
	sample->go_table.image = NULL;
}

/* How far PC, in mapping M, is behind the start of a function of Go's; 0 where it is that
 * start: the goroutine has not begun. */
static uint32_t go_offset(const struct wp_snapshot_sample *sample,
			  const struct wp_profile_mapping *m, uint64_t pc_avma)
{
	const struct wp_go_table *table = &sample->go_table;
	uint64_t svma = pc_avma - m->bias;
	struct wp_go_func func;

	if (!table->image || m->image != table->image ||
	    (!wp_go_table_find(table, svma, &func) &&
	     svma == func.start_svma) ||
	    wp_go_table_find(table, svma - 1, &func) || svma < func.start_svma)
		return 0;
	return (uint32_t)(svma - func.start_svma);
}

/* The frames at LOC; PC: where the code goes on. */
static int add_frames(struct wp_dump *dump,
		      const struct wp_snapshot_sample *sample,
		      const struct wp_profile_location *loc, uint64_t pc_avma)
{
	const struct wp_profile *p = &sample->profile;
	uint32_t module = 0;

	if (loc->mapping == WP_MAPPING_KERNEL)
		module = wp_intern_add_str(&dump->strings, "[kernel]");
	else if (loc->mapping != WP_MAPPING_NONE)
		module = base_name_id(dump, p->mappings[loc->mapping].path);
	if (module == UINT32_MAX)
		return -ENOMEM;
	for (uint32_t i = 0; i < loc->nlines; i++) {
		const struct wp_profile_line *line =
			&p->lines[loc->line_first + i];
		const struct wp_profile_function *f =
			&p->functions[line->function];
		struct wp_dump_frame *frame = wp_dump_add_frame(dump);

		if (!frame)
			return -ENOMEM;
		*frame = (struct wp_dump_frame){
			.pc_avma = loc->avma,
			.function = f->name,
			.system_name = f->system_name,
			.file = f->file,
			.module = module,
			.line = line->line,
			.inlined = i + 1 < loc->nlines,
			.kernel = loc->mapping == WP_MAPPING_KERNEL,
			.guessed = loc->guessed,
		};
		if (!frame->inlined && loc->mapping < p->nmappings)
			frame->go_off = go_offset(
				sample, &p->mappings[loc->mapping], pc_avma);
	}
	return 0;
}

static void find_site(const struct wp_dump *dump, struct wp_dump_stack *stack)
{
	struct wp_named_frame named[SITE_FRAMES_MAX] = { 0 };
	uint32_t at[SITE_FRAMES_MAX];
	size_t n = 0, site;

	for (uint32_t i = 0; i < stack->nframes && n < SITE_FRAMES_MAX; i++) {
		const struct wp_dump_frame *f =
			&dump->frames[stack->first_frame + i];

		if (f->kernel)
			continue;
		at[n] = i;
		named[n++] = (struct wp_named_frame){
			wp_dump_str(dump, f->system_name),
			wp_dump_str(dump, f->function),
			wp_dump_str(dump, f->module)
		};
	}
	site = wp_state_wait_site(named, n);
	stack->site = site < n ? at[site] : stack->nframes;
}

int wp_snapshot_add_stack(struct wp_dump *dump,
			  const struct wp_snapshot_sample *sample,
			  uint32_t index, struct wp_dump_stack *ret)
{
	const struct wp_profile *p = &sample->profile;
	const struct wp_profile_stack *stack = &p->stacks[index];
	int rc = 0;

	ret->first_frame = dump->nframes;
	for (uint32_t i = 0; i < stack->nlocs && !rc; i++) {
		const struct wp_profile_location *loc =
			&p->locations[p->loc_pool[stack->loc_first + i]];

		/* A text is a name of the kernel's, or says how the walk ended, which
		 * the enum does here. */
		if (!loc->text || loc->mapping == WP_MAPPING_KERNEL)
			rc = add_frames(
				dump, sample, loc,
				i < stack->depth ?
					wp_profile_frame(p, stack, i)->pc_avma :
					loc->avma);
	}
	ret->nframes = dump->nframes - ret->first_frame;
	ret->end = (enum wp_stack_end)stack->end;
	ret->end_module = end_module_id(dump, p, stack);
	if (!rc && ret->end_module == UINT32_MAX)
		rc = -ENOMEM;
	if (!rc)
		find_site(dump, ret);
	return rc;
}
