/* SPDX-License-Identifier: Apache-2.0 */
/* host_events.c - see host_events.h. */
#include "host_events.h"

#include <string.h>

#include "cpu_samples.h"
#include "sampler_loop.h"
#include "target.h"
#include "threads.h"

void wp_host_events_open(struct wp_sampler *loop, struct wp_err *err)
{
	const struct wp_sampler_options *o = &loop->options;
	const struct wp_perf_options options = {
		.scope = WP_PERF_CPU,
		.period_ns = o->cpu ? o->interval_ns : 0,
		.seed = wp_random_next(&loop->random),
		.stack_bytes = o->cpu ? WP_PERF_SOURCE_FIRST_STACK : 0,
		.user_regs = o->cpu,
		.kernel_chain = o->cpu && o->kernel,
		.tasks = true,
	};

	if (!o->many)
		return;
	wp_perf_source_enable(&loop->host_events);
	(void)!wp_perf_source_open(&loop->host_events, NULL, &options, err);
}

/* Only the last of the names that a thread takes within a tick is kept, or those of
 * programs that it executes and of its entry, as what it does then is theirs. */
static void rename_thread(struct wp_sampler *loop,
			  const struct wp_perf_record *record)
{
	struct wp_target *target = wp_sampler_find(loop, record->pid);
	struct wp_thread *t = target ? wp_threads_find(target, record->tid) :
				       NULL;
	size_t len;

	if (!t)
		return;
	len = strnlen(record->name, sizeof(t->new_name) - 1);
	if (record->by_exec || t->shared)
		wp_threads_rename(t, record->name);
	memcpy(t->new_name, record->name, len);
	t->new_name[len] = '\0';
	if (t->is_renamed)
		return;
	t->is_renamed = true;
	t->next_renamed = loop->renamed;
	loop->renamed = t;
}

static void rename_threads(struct wp_sampler *loop)
{
	for (struct wp_thread *t = loop->renamed; t; t = t->next_renamed) {
		t->is_renamed = false;
		wp_threads_rename(t, t->new_name);
	}
	loop->renamed = NULL;
}

static int take(struct wp_sampler *loop, const struct wp_perf_record *record)
{
	const struct wp_task_watch *watch = &loop->options.watch;
	struct wp_target *target;

	switch (record->type) {
	case WP_PERF_SAMPLE_CPU:
		/* The process may have ended since. */
		target = wp_sampler_find_last(loop, record->pid);
		return target && !target->forgotten ?
			       wp_cpu_samples_take(target, record) :
			       0;
	case WP_PERF_NAME:
		rename_thread(loop, record);
		break;
	case WP_PERF_FORK:
	case WP_PERF_EXIT:
		/* Threads are found by their processes. */
		if (record->pid != record->tid)
			return 0;
		break;
	default:
		return 0;
	}
	if (watch->tell && !loop->finishing)
		watch->tell(watch->ctx, record);
	return 0;
}

static int take_all(struct wp_sampler *loop)
{
	struct wp_perf_record record;
	int rc = 0;

	while (!rc &&
	       wp_perf_source_next(&loop->host_events, UINT64_MAX, &record))
		rc = take(loop, &record);
	rename_threads(loop);
	for (size_t i = 0; i < loop->ncommons; i++)
		loop->commons[i]->profile->counters.cpu_lost =
			wp_perf_source_lost(&loop->host_events);
	return rc;
}

int wp_host_events_read(struct wp_sampler *loop)
{
	int rc;

	if (!loop->host_events.perf)
		return 0;
	rc = take_all(loop);
	if (rc || !loop->options.cpu)
		return rc;
	wp_perf_draw_periods(loop->host_events.perf, wp_sampler_period(loop));
	wp_perf_source_grow(&loop->host_events, NULL);
	return 0;
}

int wp_host_events_finish(struct wp_sampler *loop)
{
	if (!loop->host_events.perf)
		return 0;
	wp_perf_source_disable(&loop->host_events);
	return take_all(loop);
}

void wp_host_events_close(struct wp_sampler *loop)
{
	wp_perf_source_close(&loop->host_events);
}
