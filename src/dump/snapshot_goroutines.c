/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_goroutines.c - a sampled process's goroutines as those of a dump.
 */
#include <errno.h>
#include <stdlib.h>

#include "goroutine_waits.h"
#include "pid_namespace.h"
#include "snapshot_priv.h"
#include "wallprof/clock.h"

#define NOT_ADDED UINT32_MAX

struct job {
	struct wp_dump *dump;
	struct wp_snapshot_process *process;
	const struct wp_dump_process *entry;
	const struct wp_snapshot_sample *sample;
	/* added[i]: stack I of the profile, which goroutines share, as the
	 * dump's; its first frame is NOT_ADDED until it is.  Owned. */
	struct wp_dump_stack *added;
	/* The labels added last: where they were, and where they are. */
	uint32_t labels_from, labels_to;
	/* Of its program's clock, which its waits are told by (wp_clock_ahead_ns). */
	int64_t ahead_ns;
};

static int add_stack(struct job *job, uint32_t index, struct wp_dump_stack *ret)
{
	int rc = 0;

	if (job->added[index].first_frame == NOT_ADDED)
		rc = wp_snapshot_add_stack(job->dump, job->sample, index,
					   &job->added[index]);
	*ret = job->added[index];
	return rc;
}

/* The thread of the process with tid OWN in its own PID namespace: its tid in
 * ours; 0: none. */
static int32_t find_tid(const struct job *job, int32_t own)
{
	return own ? wp_pid_namespace_thread(job->process, own, 0) : 0;
}

/* The stack of a goroutine that runs is its thread's, if that ran when it was
 * sampled. */
static void take_running(const struct job *job, struct wp_dump_goroutine *g)
{
	const struct wp_dump_process *p = job->entry;

	for (uint32_t i = 0; i < p->nthreads; i++) {
		const struct wp_dump_thread *t =
			&job->dump->threads[p->first_thread + i];

		if (t->tid == g->tid && wp_types_state_is_ready(t->state))
			g->stack = t->stack;
	}
}

static int add_labels(struct job *job, const struct wp_goroutine *from,
		      struct wp_dump_goroutine *g)
{
	const struct wp_goroutine_label *labels =
		job->sample->goroutines.all.labels + from->first_label;

	g->nlabels = from->nlabels;
	/* Goroutines that follow each other share them there. */
	g->first_label = job->labels_to;
	if (!from->nlabels || from->first_label == job->labels_from)
		return 0;
	g->first_label = job->dump->nlabels;
	for (uint32_t i = 0; i < from->nlabels; i++) {
		struct wp_dump_label *label = wp_dump_add_label(job->dump);

		if (!label)
			return -ENOMEM;
		label->key = labels[i].key;
		label->value = labels[i].value;
	}
	job->labels_from = from->first_label;
	job->labels_to = g->first_label;
	return 0;
}

static int add_goroutine(struct job *job, const struct wp_goroutine *from)
{
	const struct wp_goroutine_list *list = &job->sample->goroutines;
	const struct wp_goroutine_stacks *stacks = &list->stacks[from->stack];
	struct wp_dump_goroutine *g = wp_dump_add_goroutine(job->dump);
	uint64_t now_ns = list->time_ns + (uint64_t)job->ahead_ns;
	int rc;

	if (!g)
		return -ENOMEM;
	g->id = from->id;
	g->parent_id = from->parent_id;
	g->state = wp_intern_add_str(&job->dump->strings,
				     wp_go_program_state_name(from->state));
	g->reason = from->reason;
	if (from->since_ns && from->since_ns <= now_ns)
		g->waited_ns = now_ns - from->since_ns;
	g->tid = find_tid(job, from->tid);
	g->locked_tid = find_tid(job, from->locked_tid);
	if (g->state == UINT32_MAX)
		return -ENOMEM;
	rc = add_stack(job, stacks->own, &g->stack);
	if (!rc)
		rc = add_stack(job, stacks->created, &g->created);
	if (!rc)
		rc = add_labels(job, from, g);
	if (!rc)
		rc = wp_goroutine_waits_add(job->dump, job->process, &list->all,
					    from, g);
	if (from->state == WP_GOROUTINE_RUNNING)
		take_running(job, g);
	return rc;
}

static int compare_ids(const void *a, const void *b)
{
	const struct wp_dump_goroutine *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int add_all(struct job *job)
{
	const struct wp_goroutines *all = &job->sample->goroutines.all;
	uint32_t nstacks = job->sample->profile.nstacks;
	int rc = 0;

	job->added = calloc((size_t)nstacks + 1, sizeof(*job->added));
	if (!job->added)
		return -ENOMEM;
	for (uint32_t i = 0; i < nstacks; i++)
		job->added[i].first_frame = NOT_ADDED;
	for (uint32_t i = 0; !rc && i < all->len; i++)
		rc = add_goroutine(job, &all->v[i]);
	free(job->added);
	return rc;
}

int wp_snapshot_add_goroutines(struct wp_snapshot *snapshot, uint32_t index,
			       struct wp_snapshot_sample *sample)
{
	uint64_t half = sample->goroutines.all.taken / 2;
	struct wp_dump *dump = &snapshot->dump;
	struct wp_dump_process *p = &dump->processes[index];
	struct job job = { .dump = dump,
			   .process = snapshot->processes[index],
			   .entry = p,
			   .sample = sample,
			   .labels_from = UINT32_MAX };
	int rc;

	job.ahead_ns = wp_clock_ahead_ns(job.process->process.proc_fd);
	p->go_version = wp_intern_add_str(&dump->strings,
					  sample->goroutines.version);
	p->go_error = wp_intern_add_str(&dump->strings, sample->go_err.msg);
	if (p->go_version == UINT32_MAX || p->go_error == UINT32_MAX)
		return -ENOMEM;
	p->first_goroutine = dump->ngoroutines;
	p->nlost_goroutines = sample->goroutines.all.nunread;
	rc = add_all(&job);
	sample->goroutines.all.taken -= half;
	dump->taken += half;
	p->ngoroutines = dump->ngoroutines - p->first_goroutine;
	if (p->ngoroutines)
		qsort(dump->goroutines + p->first_goroutine, p->ngoroutines,
		      sizeof(*dump->goroutines), compare_ids);
	return rc;
}
