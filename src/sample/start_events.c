/* SPDX-License-Identifier: Apache-2.0 */
/* start_events.c - see start_events.h. */
#include "start_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sampler_loop.h"
#include "target.h"

enum {
	/* Ring buffers of all CPUs together, and most of one. */
	RINGS_BYTES = 16 << 20,
	RING_MOST = 4 << 20,
};

const struct wp_process *
wp_start_events_process(const struct wp_start_events *all)
{
	return all->only ? all->only->process : NULL;
}

static int open_events(struct wp_start_events *all)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	size_t share = (size_t)RINGS_BYTES / (size_t)(cpus > 0 ? cpus : 1);
	const struct wp_perf_options options = {
		.scope = all->only ? WP_PERF_AUTO : WP_PERF_CPU,
		.tasks = true,
		.thread_starts = true,
		.stack_bytes = WP_PERF_SOURCE_FIRST_STACK,
		.user_regs = true,
		.ring_bytes = share > RING_MOST ? RING_MOST :
			      share > WP_PERF_RING_DEFAULT ?
						  share :
						  WP_PERF_RING_DEFAULT,
	};

	return wp_perf_source_open(&all->events, wp_start_events_process(all),
				   &options, &all->why);
}

struct wp_start_events *wp_start_events_find_or_add(struct wp_target *target)
{
	struct wp_start_events *all = target->common->start_events;

	if (all)
		return all;
	all = target->common->start_events = calloc(1, sizeof(*all));
	if (!all)
		return NULL;
	all->only = target->loop->options.many ? NULL : target;
	wp_perf_source_enable(&all->events);
	/* On failure ALL->why holds the reason. */
	(void)!open_events(all);
	return all;
}

static const char *why_no_stacks(const struct wp_perf_facts *facts)
{
	switch (facts->thread_start_rc) {
	case 0:
		return "";
	case -EPERM:
	case -EACCES:
		return facts->user_only ?
			       ", no stacks: kernel.perf_event_paranoid or missing "
			       "CAP_PERFMON forbids samples of the kernel" :
			       ", no stacks: tracefs, which tells the tracepoint "
			       "task:task_newtask, may not be read (run wallprof as "
			       "root)";
	default:
		return ", no stacks: the kernel has no tracepoint "
		       "task:task_newtask";
	}
}

void wp_start_events_describe(struct wp_common *common)
{
	const struct wp_start_events *all = common->start_events;
	char text[sizeof(all->why.msg) + 256];
	uint32_t id;
	int n;

	if (!all)
		return;
	n = snprintf(text, sizeof(text),
		     "%llu threads created, %llu "
		     "without the stack that did it, %llu records of perf "
		     "events lost; ",
		     (unsigned long long)all->created,
		     (unsigned long long)all->without_stack,
		     (unsigned long long)wp_perf_source_lost(&all->events));

	if (all->events.perf)
		snprintf(text + n, sizeof(text) - (size_t)n,
			 "told by perf events of each %s%s",
			 wp_perf_facts(all->events.perf)->main_scope ==
					 WP_PERF_CPU ?
				 "CPU" :
				 "thread",
			 why_no_stacks(wp_perf_facts(all->events.perf)));
	else
		snprintf(text + n, sizeof(text) - (size_t)n,
			 "told by lists of threads, in which those are missing "
			 "that lived between two ticks, and a thread stands "
			 "for who created it (%s)",
			 all->why.msg);
	id = wp_intern_add_str(&common->profile->strings, text);
	if (id != UINT32_MAX)
		common->profile->meta.source[WP_PROFILE_THREADCREATE] = id;
}

void wp_start_events_close(struct wp_common *common)
{
	if (!common->start_events)
		return;
	wp_perf_source_close(&common->start_events->events);
	free(common->start_events);
	common->start_events = NULL;
}
