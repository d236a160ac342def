/* SPDX-License-Identifier: Apache-2.0 */
/* common.c - see common.h. */
#include "common.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "block_waits.h"
#include "sampler_loop.h"
#include "start_events.h"
#include "wallprof/clock.h"
#include "wallprof/state.h"
#include "wallprof/vec.h"

/* A thread that changes its name all the time must not fill our memory. */
enum { NAMES_MAX = 20000 };

/* Names of calls get small ids, so that a sample key holds one in 16 bits. */
static int add_syscall_names(struct wp_profile *profile)
{
	for (long nr = 0; nr < WP_SYSCALLS_MAX; nr++) {
		const struct wp_syscall_info *info = wp_syscall_find(nr);

		if (info && wp_intern_add_str(&profile->strings, info->name) ==
				    UINT32_MAX)
			return -ENOMEM;
	}
	return 0;
}

struct wp_common *wp_common_find_or_add(struct wp_sampler *loop,
					struct wp_profile *profile)
{
	struct wp_common *common;

	for (size_t i = 0; i < loop->ncommons; i++)
		if (loop->commons[i]->profile == profile)
			return loop->commons[i];
	if (WP_VEC_ROOM(loop->commons, loop->ncommons, loop->cap_commons, 1) ||
	    add_syscall_names(profile))
		return NULL;
	common = calloc(1, sizeof(*common));
	if (!common)
		return NULL;
	common->profile = profile;
	common->ncalls = profile->strings.len;
	wp_modules_init(&common->modules, profile, &loop->images);
	loop->commons[loop->ncommons++] = common;
	return common;
}

void wp_common_begin(struct wp_common *common, const struct wp_sampler *loop,
		     uint64_t now_ns)
{
	const struct wp_sampler_options *options = &loop->options;
	struct wp_profile_meta *meta = &common->profile->meta;

	if (common->start_ns)
		return;
	common->start_ns = common->last_tick_ns = now_ns;
	common->start_cpu_ns = wp_clock_used_ns(RUSAGE_SELF);
	if (!loop->opened)
		common->start_cpu_ns -= loop->prepare_cpu_ns;
	wp_pauses_init(&common->pauses, now_ns, options->max_stopped);
	meta->has_wall = options->wall;
	meta->has_cpu = options->cpu;
	meta->time_ns = wp_clock_utc_ns();
	meta->period_ns = (int64_t)options->interval_ns;
	if (!loop->schedstat_works)
		meta->source[WP_PROFILE_WALL] = wp_intern_add_str(
			&common->profile->strings,
			"running, runnable and waiting time is estimated from "
			"samples: /proc/TID/schedstat tells nothing");
}

uint32_t wp_common_rename(struct wp_common *common, uint32_t was,
			  const char *name)
{
	struct wp_intern *strings = &common->profile->strings;
	uint32_t id = wp_intern_find(strings, name);

	if (id != UINT32_MAX)
		return id;
	if (was && common->nnames >= NAMES_MAX) {
		common->profile->counters.names_dropped++;
		return was;
	}
	common->nnames += was != 0;
	id = wp_intern_add_str(strings, name);
	return id == UINT32_MAX ? was : id;
}

void wp_common_finish(struct wp_common *common, const struct wp_sampler *loop)
{
	wp_start_events_describe(common);
	if (common->wants_running)
		wp_profile_divide_wall(common->profile,
				       loop->options.stop == WP_STOP_ALL);
	if (loop->options.cpu)
		wp_profile_finish_cpu(common->profile);
}

void wp_common_fill_counters(struct wp_common *common,
			     const struct wp_sampler *loop)
{
	const struct wp_err *no_scan = &loop->scan.why;
	struct wp_profile_meta *meta = &common->profile->meta;
	struct wp_counters *c = &common->profile->counters;
	const struct wp_pauses *pauses = &common->pauses;
	double seconds;
	uint32_t id;

	wp_profile_add_up(common->profile);
	c->files_dropped = wp_image_cache_count_dropped(&loop->images);
	c->eintrs_left = loop->tracer->eintrs_left;
	c->execs_again = loop->tracer->execs_again;
	c->rights_lost = loop->tracer->rights_lost;
	c->pause_p50_ns = wp_pauses_quantile(pauses, 0.5);
	c->pause_p99_ns = wp_pauses_quantile(pauses, 0.99);
	c->pause_max_ns = pauses->max_ns;
	c->pause_total_ns = pauses->total_ns;
	meta->duration_ns = (int64_t)(common->last_tick_ns - common->start_ns);
	meta->own_cpu_ns = wp_clock_used_ns(RUSAGE_SELF) - common->start_cpu_ns;
	seconds = (double)meta->duration_ns / (double)WP_NS_PER_S;
	/* The first tick opens the books, the last one closes them. */
	meta->achieved_hz = c->ticks > 2 && seconds > 0 ?
				    (double)(c->ticks - 2) / seconds :
				    0;
	if (!no_scan->code)
		return;
	id = wp_intern_add_str(&common->profile->strings, no_scan->msg);
	if (id != UINT32_MAX)
		meta->no_scan = id;
}

void wp_common_free(struct wp_common *common)
{
	if (!common)
		return;
	wp_block_waits_close(common);
	wp_start_events_close(common);
	wp_modules_clear(&common->modules);
	free(common);
}
