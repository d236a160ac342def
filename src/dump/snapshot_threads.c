/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_threads.c - a sampled process's threads as threads of a dump.
 *
 * Locks are read here, after the sampling: which memory to read the stack tells.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call_text.h"
#include "pid_namespace.h"
#include "snapshot_priv.h"
#include "thread_times.h"
#include "wallprof/base_name.h"
#include "wallprof/procfs.h"
#include "wallprof/state.h"

/* Frames among which the site of a wait is looked for. */
enum { SITE_FRAMES_MAX = 64 };

struct job {
	struct wp_dump *dump;
	struct wp_snapshot *snapshot;
	struct wp_snapshot_process *process;
	uint32_t index;
	const struct wp_snapshot_sample *sample;
	/* Per thread of the profile: what the sampler says beside its sample,
	 * and its sample (index + 1; 0: none).  Owned. */
	struct wp_thread_view *views;
	uint32_t *samples;
};

static void keep_view(void *ctx, const struct wp_thread_view *view)
{
	struct job *job = ctx;

	if (view->index < job->sample->profile.nthreads)
		job->views[view->index] = *view;
}

static int index_threads(struct job *job)
{
	const struct wp_profile *p = &job->sample->profile;
	const struct wp_sample_set *set = &p->sets[WP_PROFILE_THREADS];

	job->views = calloc((size_t)p->nthreads + 1, sizeof(*job->views));
	job->samples = calloc((size_t)p->nthreads + 1, sizeof(*job->samples));
	if (!job->views || !job->samples)
		return -ENOMEM;
	wp_sampler_each_thread(job->sample->target, keep_view, job);
	for (uint32_t i = 0; i < set->nsamples; i++)
		if (set->samples[i].count)
			job->samples[set->samples[i].key.thread] = i + 1;
	return 0;
}

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

/* See struct wp_lock_query. */
static int32_t find_thread(void *ctx, int32_t own)
{
	struct wp_snapshot_process *process = ctx;
	int32_t tid = wp_pid_namespace_thread(process, own);
	struct wp_proc_stat stat;
	char text[1024];
	ssize_t n;

	if (!tid)
		return 0;
	n = wp_thread_times_file(&process->process, tid, "stat", text,
				 sizeof(text));
	if (n <= 0 || wp_proc_stat_parse(&stat, text, (size_t)n) ||
	    stat.state_char == 'Z' || stat.state_char == 'X')
		return 0;
	return tid;
}

static enum wp_mem_result read_memory(void *ctx, uint64_t avma, void *buf,
				      size_t len)
{
	const struct wp_snapshot_process *process = ctx;

	return wp_process_read(&process->process, avma, buf, len) ==
			       (ssize_t)len ?
		       WP_MEM_OK :
		       WP_MEM_UNREADABLE;
}

/* Does /proc say that T is still in the call that the sampler saw? */
static bool is_in_call(const struct wp_snapshot_process *process,
		       const struct wp_dump_thread *t)
{
	struct wp_proc_syscall call;
	char text[256];
	ssize_t n = wp_thread_times_file(&process->process, t->tid, "syscall",
					 text, sizeof(text));

	return n > 0 && !wp_proc_syscall_parse(&call, text, (size_t)n) &&
	       !call.running &&
	       (call.nr == t->call.nr || call.nr == wp_syscall_restart) &&
	       !memcmp(call.args, t->call.args, 3 * sizeof(*t->call.args));
}

/* Set FRAMES to T's innermost user frames; returns how many there are. */
static uint32_t
collect_user_frames(struct wp_lock_frame frames[WP_LOCK_FRAMES_MAX],
		    const struct wp_dump *dump, const struct wp_dump_thread *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->stack.nframes && n < WP_LOCK_FRAMES_MAX;
	     i++) {
		const struct wp_dump_frame *f =
			&dump->frames[t->stack.first_frame + i];
		uint32_t name = f->system_name ? f->system_name : f->function;

		if (!f->kernel)
			frames[n++] = (struct wp_lock_frame){
				.function = wp_dump_str(dump, name),
				.module = f->module,
				.guessed = f->guessed,
			};
	}
	return n;
}

static void decode_lock(const struct job *job, struct wp_dump_thread *t)
{
	const struct wp_lock_query query = {
		.mem = { read_memory, job->process },
		.find_thread = find_thread,
		.ctx = job->process,
	};
	struct wp_lock_frame frames[WP_LOCK_FRAMES_MAX];
	const struct wp_lock_wait wait = {
		.syscall_nr = t->call.nr,
		.args = t->call.args,
		.wait = t->wait,
		.frames = frames,
		.nframes = collect_user_frames(frames, job->dump, t),
	};
	struct wp_lock_answer answer;

	wp_lock_decode(&wait, &query, &answer);
	t->call.timed = answer.timed;
	t->wait = answer.wait;
	if (answer.lock.kind != WP_LOCK_NONE && is_in_call(job->process, t))
		t->lock = answer.lock;
}

static int add_thread(struct job *job, uint32_t index)
{
	const struct wp_profile *p = &job->sample->profile;
	const struct wp_thread_view *view = &job->views[index];
	const struct wp_sample_key *key =
		&p->sets[WP_PROFILE_THREADS]
			 .samples[job->samples[index] - 1]
			 .key;
	struct wp_dump_thread *t = wp_dump_add_thread(job->dump);
	int rc;

	if (!t)
		return -ENOMEM;
	t->process = job->index;
	t->tid = p->threads[index].tid;
	t->name = p->threads[index].name;
	t->state = (enum wp_state)key->state;
	t->wait = (enum wp_wait)key->wait;
	if (t->state == WP_STATE_WAITING) {
		t->call.nr = view->syscall_nr;
		memcpy(t->call.args, view->args, sizeof(t->call.args));
	}
	wp_thread_times_set(t, &job->sample->times, view->slices,
			    &job->process->process, &job->snapshot->clock);
	rc = add_stack(job, &t->stack, key->stack);
	if (rc)
		return rc;
	find_site(job->dump, &t->stack);
	if (t->state == WP_STATE_WAITING)
		decode_lock(job, t);
	job->dump->processes[job->index].nthreads++;
	return wp_call_text(&t->call, job->dump, job->process,
			    wp_dump_str(job->dump, key->object));
}

int wp_snapshot_add_threads(struct wp_snapshot *snapshot, uint32_t index,
			    const struct wp_snapshot_sample *sample)
{
	struct job job = { .dump = &snapshot->dump,
			   .snapshot = snapshot,
			   .process = snapshot->processes[index],
			   .index = index,
			   .sample = sample };
	int rc = index_threads(&job);

	for (uint32_t i = 0; i < sample->profile.nthreads && !rc; i++) {
		if (job.samples[i])
			rc = add_thread(&job, i);
		else
			snapshot->dump.processes[index].nlost++;
	}
	free(job.views);
	free(job.samples);
	return rc;
}
