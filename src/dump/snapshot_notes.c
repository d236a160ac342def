/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_notes.c - what is read of a process's threads right after their
 * sample: while names are looked up, a busy program moves on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call_text.h"
#include "snapshot_priv.h"
#include "thread_times.h"
#include "wallprof/syscall_nr.h"

enum { OBJECT_MAX = 640 };

static void keep_view(void *ctx, const struct wp_thread_view *view)
{
	struct wp_snapshot_sample *sample = ctx;

	if (view->index < sample->profile.nthreads)
		sample->notes[view->index].view = *view;
}

/* Read CLOCK for each CPU that a wait of SAMPLE began on, soon after the sample:
 * what is stolen of a CPU's time in between makes waits too short. */
static void read_clocks(struct wp_sched_clock *clock,
			const struct wp_snapshot_sample *sample)
{
	for (uint32_t i = 0; i < sample->profile.nthreads; i++) {
		const struct wp_thread_look *look = &sample->notes[i].view.look;

		if (look->exec_start_ns && look->cpu >= 0)
			(void)wp_sched_clock_find(clock, look->cpu);
	}
}

/* Set the text of T's call, which waits as KEY says, as VIEW tells. */
static int describe_call(struct wp_snapshot_sample *sample,
			 struct wp_dump_thread *t,
			 struct wp_snapshot_process *process,
			 const struct wp_sample_key *key,
			 const struct wp_thread_view *view)
{
	char text[OBJECT_MAX], wchan[WP_WCHAN_MAX];
	struct wp_call_found found = { .tid = t->tid,
				       .object = text,
				       .memory = view->memory };
	struct wp_intern *strings = &sample->profile.strings;
	int rc;

	/* Not a pointer into the table, which may move as it grows. */
	snprintf(text, sizeof(text), "%s", wp_intern_str(strings, key->object));
	/* The kernel function of a wait in D state tells more than the call does. */
	if ((key->wait == WP_WAIT_DISK || key->wait == WP_WAIT_MMAP_LOCK) &&
	    wp_hold_wchan(wchan, process->process.task_fd, t->tid))
		found.wchan = wchan;
	rc = wp_call_text(&t->call, strings, process, &found);
	/* What is said of a futex was copied with its stack. */
	if (rc || t->call.nr < 0 || t->call.nr == SYS_futex ||
	    wp_thread_times_same_wait(t, view, &process->process))
		return rc;
	found.moved = true;
	/* It may have got what it waited for.  Where the kernel counts no
	 * timeslices, nothing tells that. */
	t->open_ended = t->times.slices_at != UINT64_MAX;
	return wp_call_text(&t->call, strings, process, &found);
}

static int note_thread(struct wp_snapshot_sample *sample,
		       struct wp_snapshot_process *process,
		       struct wp_sched_clock *clock,
		       const struct wp_sample_key *key)
{
	struct wp_snapshot_note *note = &sample->notes[key->thread];
	const struct wp_thread_view *view = &note->view;
	struct wp_dump_thread *t = &note->thread;

	*t = WP_DUMP_THREAD_INIT;
	t->tid = sample->profile.threads[key->thread].tid;
	t->name = sample->profile.threads[key->thread].name;
	t->state = (enum wp_state)key->state;
	t->moved = !view->at_instant;
	if (t->state == WP_STATE_WAITING) {
		t->call.nr = view->syscall_nr;
		memcpy(t->call.args, view->args, sizeof(t->call.args));
	}
	wp_thread_times_set(t, view, &process->process, clock);
	return describe_call(sample, t, process, key, view);
}

int wp_snapshot_note_threads(struct wp_snapshot_sample *sample,
			     struct wp_snapshot_process *process,
			     struct wp_sched_clock *clock)
{
	const struct wp_profile *p = &sample->profile;
	const struct wp_sample_set *set = &p->sets[WP_PROFILE_THREADS];
	int rc = 0;

	sample->notes = calloc((size_t)p->nthreads + 1, sizeof(*sample->notes));
	if (!sample->notes)
		return -ENOMEM;
	wp_sampler_each_thread(sample->target, keep_view, sample);
	read_clocks(clock, sample);
	for (uint32_t i = 0; i < set->nsamples && !rc; i++) {
		const struct wp_sample_key *key = &set->samples[i].key;

		if (!set->samples[i].count)
			continue;
		sample->notes[key->thread].sample = i + 1;
		rc = note_thread(sample, process, clock, key);
	}
	return rc;
}
