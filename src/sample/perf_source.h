/* SPDX-License-Identifier: Apache-2.0 */
/* perf_source.h - perf events that are replaced by others while they record.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * CPU samples, waits and thread starts read one each.  Events are replaced to
 * copy more of each stack, or to change their scope; no record is lost by that.
 */
#ifndef WP_PERF_SOURCE_H
#define WP_PERF_SOURCE_H

#include "wallprof/perf.h"

enum { WP_PERF_SOURCE_FIRST_STACK = 8192 };

struct wp_perf_source {
	/* NULL: no events are open. */
	struct wp_perf *perf;
	/* What PERF was opened with. */
	struct wp_perf_options options;
	/* Events record. */
	bool enabled;
	/* The events that PERF has replaced, until their last record is read;
	 * NULL: none.  Records of before FROM_NS are OLD's, later ones PERF's. */
	struct wp_perf *old;
	uint64_t from_ns;
	/* Records lost by events that are closed. */
	uint64_t closed_lost;
	/* Set by the caller: a stack went on past its copy. */
	bool stack_was_cut;
	/* Longer copies cannot be had. */
	bool cannot_grow;
};

/* Open events of PROCESS with OPTIONS in place of those that SOURCE has; with too
 * few descriptors for events of threads, events of CPUs.  They record if SOURCE
 * is enabled.  If it is not, records of the replaced events that were not read
 * are dropped.
 *
 * 0; -EBUSY when replaced events have records that were not read yet; the codes
 * and ERR of wp_perf_open.  On failure SOURCE stays as it is.
 */
WP_MUST_CHECK
int wp_perf_source_open(struct wp_perf_source *source,
			const struct wp_process *process,
			const struct wp_perf_options *options,
			struct wp_err *err);

void wp_perf_source_enable(struct wp_perf_source *source);
void wp_perf_source_disable(struct wp_perf_source *source);

/* As wp_perf_next, over the replaced events and the present ones; false where no
 * events are open. */
WP_MUST_CHECK
bool wp_perf_source_next(struct wp_perf_source *source, uint64_t until_ns,
			 struct wp_perf_record *ret);

/* If a stack was cut since the last call, copy four times as much of each from
 * now on.  Nothing changes where that is not permitted, where all that fits a
 * record is copied already, and until the records of replaced events are read. */
void wp_perf_source_grow(struct wp_perf_source *source,
			 const struct wp_process *process);

/* Records lost since SOURCE was first opened. */
uint64_t wp_perf_source_lost(const struct wp_perf_source *source);

/* Close all events; what was lost stays counted. */
void wp_perf_source_close(struct wp_perf_source *source);

#endif
