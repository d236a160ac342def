/* SPDX-License-Identifier: Apache-2.0 */
/* heap_sums.h - what the heap profiles of all processes of a recording have together.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_HEAP_SUMS_H
#define WP_HEAP_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"
#include "wallprof/heap_probe.h"
#include "wallprof/process.h"

struct wp_common;
struct wp_sampler;
struct wp_target;

/* Processes that are probed at once.  Each has rings and tables of its own, and takes
 * some 0.1 s of wallprof's time. */
enum { WP_HEAP_PROCESSES_MAX = 16 };

struct wp_heap_sums {
	/* Processes that are probed now. */
	uint32_t nopen;
	/* What it took to probe those that began while others were recorded. */
	uint64_t open_ns;
	/* All that was allocated; samples that would make it more than is counted. */
	uint64_t bytes;
	uint64_t nbeyond;
	/* Most of the threads' time that probes took in one look. */
	double cost;

	/* Of the processes that have been finished: how many, and how many of them not
	 * to the end; the first of these, "nginx (4711)", and why. */
	uint32_t nprocesses, nended;
	char who[WP_COMM_MAX + 16];
	struct wp_err why;
	/* How many had a probe, and how the last one was made. */
	uint32_t nprobed;
	enum wp_heap_tier tier;
	bool lacks_mprotect;
	struct wp_heap_counts counts;
	/* Samples of an allocator that another called; objects that were left out for
	 * want of memory. */
	uint64_t ninner, ndropped;
	/* Samples of functions that may throw. */
	uint64_t nthrowing;
	/* Functions that are not probed, as that would take long. */
	size_t nslow;
	size_t noverwritten, nplaces;
	/* Names of the files whose functions were probed: "libc.so.6, ...". */
	char files[256];
	/* Those of them that have an operator new of their own. */
	char throwing[256];
};

/* Add up what TARGET's heap profile has, which is finished. */
void wp_heap_sums_add(struct wp_target *target);

/* Say in COMMON's profile how its heap profile was made, and what it lacks, if any
 * process was probed.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_heap_sums_describe(struct wp_common *common,
			  const struct wp_sampler *loop);

#endif
