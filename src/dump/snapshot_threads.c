/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_threads.c - a sampled process's threads as threads of a dump.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot_priv.h"
#include "thread_lock.h"
#include "wallprof/base_name.h"
#include "wallprof/state.h"

/* Frames among which the site of a wait is looked for. */
enum { SITE_FRAMES_MAX = 64 };

struct job {
	struct wp_dump *dump;
	struct wp_snapshot_process *process;
	uint32_t index;
	const struct wp_snapshot_sample *sample;
};

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

static int add_frames(struct job *job, const struct wp_profile_location *loc)
{
	const struct wp_profile *p = &job->sample->profile;
	uint32_t module = 0;

	if (loc->mapping == WP_MAPPING_KERNEL)
		module = wp_intern_add_str(&job->dump->strings, "[kernel]");
	else if (loc->mapping != WP_MAPPING_NONE)
		module = base_name_id(job->dump,
				      p->mappings[loc->mapping].path);
	if (module == UINT32_MAX)
		return -ENOMEM;
	for (uint32_t i = 0; i < loc->nlines; i++) {
		const struct wp_profile_line *line =
			&p->lines[loc->line_first + i];
		const struct wp_profile_function *f =
			&p->functions[line->function];
		struct wp_dump_frame *frame = wp_dump_add_frame(job->dump);

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
	}
	return 0;
}

static int add_stack(struct job *job, struct wp_dump_stack *ret, uint32_t index)
{
	const struct wp_profile *p = &job->sample->profile;
	const struct wp_profile_stack *stack = &p->stacks[index];
	int rc = 0;

	ret->first_frame = job->dump->nframes;
	for (uint32_t i = 0; i < stack->nlocs && !rc; i++) {
		const struct wp_profile_location *loc =
			&p->locations[p->loc_pool[stack->loc_first + i]];

		/* A text says how the walk ended, which the enum does here. */
		if (!loc->text)
			rc = add_frames(job, loc);
	}
	ret->nframes = job->dump->nframes - ret->first_frame;
	ret->end = (enum wp_stack_end)stack->end;
	ret->end_module = end_module_id(job->dump, p, stack);
	return rc || ret->end_module != UINT32_MAX ? rc : -ENOMEM;
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

static int add_thread(struct job *job, const struct wp_snapshot_note *note)
{
	const struct wp_profile *p = &job->sample->profile;
	const struct wp_sample_key *key =
		&p->sets[WP_PROFILE_THREADS].samples[note->sample - 1].key;
	struct wp_dump_thread *t = wp_dump_add_thread(job->dump);
	int rc;

	if (!t)
		return -ENOMEM;
	*t = note->thread;
	t->process = job->index;
	/* By the stack, too. */
	t->wait = (enum wp_wait)key->wait;
	rc = add_stack(job, &t->stack, key->stack);
	if (rc)
		return rc;
	find_site(job->dump, &t->stack);
	if (t->state == WP_STATE_WAITING)
		wp_thread_lock_decode(t, job->dump, job->process,
				      note->view.memory);
	job->dump->processes[job->index].nthreads++;
	return 0;
}

int wp_snapshot_add_threads(struct wp_snapshot *snapshot, uint32_t index,
			    const struct wp_snapshot_sample *sample)
{
	struct job job = { .dump = &snapshot->dump,
			   .process = snapshot->processes[index],
			   .index = index,
			   .sample = sample };
	int rc = 0;

	for (uint32_t i = 0; i < sample->profile.nthreads && !rc; i++) {
		if (sample->notes[i].sample)
			rc = add_thread(&job, &sample->notes[i]);
		else
			snapshot->dump.processes[index].nlost++;
	}
	return rc;
}
