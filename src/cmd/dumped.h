/* SPDX-License-Identifier: Apache-2.0 */
/* dumped.h - the processes that a dump or a check is of.
 *
 * Layer: cmd.
 */
#ifndef WP_DUMPED_H
#define WP_DUMPED_H

#include "options.h"
#include "wallprof/goroutine_marks.h"
#include "wallprof/process.h"
#include "wallprof/snapshot.h"

struct wp_dumped {
	/* Those named by their pids come first, [0..nnamed): they must be there. */
	struct wp_tids pids;
	size_t nnamed;
	/* times[0..pids.len), of a first look; NULL: there was none. */
	struct wp_thread_times *times;
	/* Likewise of their goroutines. */
	struct wp_goroutine_marks *marks;
};

/* List what OPTIONS ask for, each process once, by its pid.  0, or -errno with ERR; the
 * caller clears in any case. */
WP_MUST_CHECK
int wp_dumped_list(struct wp_dumped *dumped, const struct wp_options *options,
		   struct wp_err *err);

/* Note when each thread ran, and each goroutine.  Errors of the named ones, -ENOTSUP
 * where no such time can be read; with ERR. */
WP_MUST_CHECK
int wp_dumped_read_times(struct wp_dumped *dumped, struct wp_err *err);

/* Sample all into SNAPSHOT.  Errors of the named ones, or of the last if
 * none can be sampled, with ERR; others that cannot be are entries with an error. */
WP_MUST_CHECK
int wp_dumped_sample(const struct wp_dumped *dumped,
		     struct wp_snapshot *snapshot, struct wp_err *err);

/* Mark the threads in SNAPSHOT that have not run since the first look; look at the
 * goroutines again and note what became of them. */
void wp_dumped_mark_still(const struct wp_dumped *dumped,
			  struct wp_snapshot *snapshot);

/* Are there threads of peers of which it is not known since when they wait?  They want
 * another look, an interval after the sample. */
bool wp_dumped_wants_look(const struct wp_snapshot *snapshot);

/* Mark those of them that have not run since the sample. */
void wp_dumped_look_again(struct wp_snapshot *snapshot);

void wp_dumped_clear(struct wp_dumped *dumped);

#endif
