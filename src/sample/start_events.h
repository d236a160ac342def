/* SPDX-License-Identifier: Apache-2.0 */
/* start_events.h - perf events of threads that start, of all targets with one profile.
 *
 * Layer: sample.  Private to src/sample/, of thread_starts.c.
 */
#ifndef WP_START_EVENTS_H
#define WP_START_EVENTS_H

#include "perf_source.h"

struct wp_common;
struct wp_target;

struct wp_start_events {
	/* None open: ticks compare their lists of threads. */
	struct wp_perf_source events;
	/* The only target; NULL: events are those of all processes. */
	struct wp_target *only;
	/* Threads counted, and those of them without a stack. */
	uint64_t created, without_stack;
	/* Why there are no events. */
	struct wp_err why;
};

/* NULL: all processes. */
const struct wp_process *
wp_start_events_process(const struct wp_start_events *events);

/* Those of TARGET's common, opened with its first target; NULL without memory. */
struct wp_start_events *wp_start_events_find_or_add(struct wp_target *target);

/* Say in COMMON's profile where its thread starts are from. */
void wp_start_events_describe(struct wp_common *common);

void wp_start_events_close(struct wp_common *common);

#endif
