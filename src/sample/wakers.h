/* SPDX-License-Identifier: Apache-2.0 */
/* wakers.h - which threads are to be told when they wake, and who wakes them.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_WAKERS_H
#define WP_WAKERS_H

#include "wallprof/perf.h"

struct wp_target;

enum { WP_WAKERS_NAMES = 256 };

#define WP_WAKERS_SOFT "[software interrupt]"

struct wp_wakers {
	/* The events whose wakes are filtered, when they were, and the threads
	 * that were met by then. */
	const struct wp_perf *perf;
	uint64_t filtered_ns;
	uint64_t nserials;
	/* Names of threads of other processes, by tid: a cache. */
	struct {
		pid_t tid;
		/* The name when it was read last, and when that was. */
		char comm[32];
		uint64_t read_ns;
		/* String id; stack with a frame that stands for it. */
		uint32_t name;
		uint32_t stack;
	} names[WP_WAKERS_NAMES];
};

/* RANGES, sorted, of TIDS[0..n), sorted: what else is in them is as little as can be.
 * Their number. */
size_t wp_wakers_ranges(struct wp_tid_range ranges[WP_PERF_RANGES_MAX],
			const pid_t *tids, size_t n);

/* Let PERF record the wakes of TARGET's threads, and of those that it starts next. */
void wp_wakers_filter(struct wp_wakers *wakers, struct wp_target *target,
		      struct wp_perf *perf);

/* The string id of who made RECORD's wake: "main (4711)", "interrupt", "interrupt on
 * curl (4712)"; UINT32_MAX without memory. */
uint32_t wp_wakers_name(struct wp_wakers *wakers, struct wp_target *target,
			const struct wp_perf_record *record);

/* The stack of TARGET's profile that stands for who made RECORD's wake, where that is no
 * thread that is recorded; its one frame is a text: "[interrupt]", "[software interrupt]",
 * "[kernel thread: kworker/0:1]", "[another process: curl]".  RECORD NULL: nobody is
 * known.  UINT32_MAX without memory. */
uint32_t wp_wakers_stack(struct wp_wakers *wakers, struct wp_target *target,
			 const struct wp_perf_record *record);

#endif
