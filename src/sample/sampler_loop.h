/* SPDX-License-Identifier: Apache-2.0 */
/* sampler_loop.h - what all targets of a sampler share.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_SAMPLER_LOOP_H
#define WP_SAMPLER_LOOP_H

#include <sys/resource.h>

#include "bpf_scan.h"
#include "copies_ahead.h"
#include "image_cache.h"
#include "common.h"
#include "kernel_frames.h"
#include "own_cpu.h"
#include "pace.h"
#include "perf_source.h"
#include "stack_copy.h"
#include "stack_join.h"
#include "stop_held.h"
#include "wallprof/kallsyms.h"
#include "wallprof/random.h"
#include "wallprof/sampler.h"

enum { WP_SAMPLER_HINTS = 1024 };

/* Holds no state of one process. */
struct wp_sampler {
	struct wp_sampler_options options;
	/* Borrowed. */
	struct wp_tracer *tracer;
	/* targets[0..ntargets), each owned. */
	struct wp_target **targets;
	size_t ntargets, cap_targets;
	/* Where in TARGETS a pid was found last, by its remainder. */
	uint32_t hints[WP_SAMPLER_HINTS];
	/* One for each profile: commons[0..ncommons), each owned. */
	struct wp_common **commons;
	size_t ncommons, cap_commons;
	/* Of all processes, where these are wanted and permitted. */
	struct wp_perf_source host_events;
	/* Threads whose names its records of this tick changed. */
	struct wp_thread *renamed;

	struct wp_unwinder *unwinder;
	struct wp_image_cache images;
	struct wp_bpf_scan scan;
	/* The stack that was copied last. */
	struct wp_stack_copy copy;
	/* Ends of samples, and frames above them, that are of one stack. */
	struct wp_stack_joins joins;
	struct wp_copies_ahead ahead;
	/* Of threads that were stopped together. */
	struct wp_stops_held held;
	/* Room for the frames of one walk, and before them for the kernel's. */
	struct wp_frame *frame_room;
	uint64_t *cfa_room;
	struct wp_kallsyms kallsyms;

	/* When the first tick was due. */
	uint64_t start_ns;
	/* When the tick at hand was due, 0: not known, and when it began. */
	uint64_t due_ns;
	uint64_t tick_ns;
	struct wp_own_cpu own_cpu;
	/* The tick at hand was due while the one before it was made, which takes longest
	 * of threads that have just run: no chance find either.  Of ticks in a row that
	 * are, every other is taken for one, for there may be no more. */
	bool is_overdue;
	/* Number of the tick at hand, from 1. */
	uint64_t ntick;
	/* Our own CPU time for what was loaded before the first tick. */
	uint64_t prepare_cpu_ns;
	/* The first tick has been given out: it opens the books. */
	bool opened;
	/* Index, from 0, of the interval whose tick is to come. */
	uint64_t next_index;
	/* Ticks are so far apart. */
	struct wp_pace pace;
	/* End of the intervals that the tick at hand was drawn from, or the tick
	 * itself if that is later. */
	uint64_t region_end_ns;
	/* The tick at hand is the last one: what is owed gets a stack now. */
	bool finishing;
	/* For jitter, rounding and fairness. */
	struct wp_random random;
	/* The kernel counts in /proc/TID/schedstat. */
	bool schedstat_works;
	/* RLIMIT_NOFILE. */
	rlim_t fd_limit;
};

/* CPU time between two CPU samples. */
static inline uint64_t wp_sampler_period(const struct wp_sampler *loop)
{
	double mean = loop->pace.mean > 1 ? loop->pace.mean : 1;

	return (uint64_t)((double)loop->options.interval_ns * mean);
}

/* The target with PID that has not ended; NULL: it is not recorded. */
struct wp_target *wp_sampler_find(struct wp_sampler *loop, pid_t pid);
/* The one that began last, also if it has ended and is not let go of yet. */
struct wp_target *wp_sampler_find_last(struct wp_sampler *loop, pid_t pid);

#endif
