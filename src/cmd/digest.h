/* SPDX-License-Identifier: Apache-2.0 */
/* digest.h - what a recording says of its process in numbers, second by second.
 *
 * Layer: cmd.
 */
#ifndef WP_DIGEST_H
#define WP_DIGEST_H

#include "parts.h"
#include "recorder.h"
#include "recording.h"

/* A thread, from mark to mark. */
struct wp_digest_thread {
	/* The sample with most of its time in the last mark, that time, and since when
	 * it is there without having run; 0: it ran. */
	uint32_t sample;
	int64_t ns;
	uint64_t since_ns;
	/* All of its time in that mark. */
	int64_t sum_ns;
	/* Number of the last mark that had time of it. */
	uint64_t mark;
	/* Time that it was ready to run, and in this mark ran. */
	uint64_t runnable_ns;
	bool ran;
};

struct wp_digest {
	/* By the profile's threads; owned. */
	struct wp_digest_thread *v;
	uint32_t n, cap;
	uint64_t nmarks;
	/* Of the last mark: threads, those that waited for locks most of it, and those
	 * that have waited for a thread of the process for seconds. */
	uint32_t nthreads;
	uint32_t nlocked;
	uint32_t nsuspects;
	/* End of the last mark in which a thread ran, or begin of the first mark. */
	uint64_t ran_ns;
	/* The longest that a thread that did not run in it had been ready to run. */
	uint64_t starved_ns;
	/* All time so far, which may fall; the status tells the most that it has been. */
	int64_t sums[WP_NSTATES][WP_NWAITS];
	/* Of several processes; NULL otherwise. */
	struct wp_parts *parts;
};

/* Set what is known at the begin of R: how what is recorded is called. */
void wp_digest_describe(struct wp_recorder_status *status,
			const struct wp_recording *r);

/* Add MARK, PROFILE's last, to STATUS, and to the parts, of which those that nothing is
 * known of for KEEP_NS are dropped.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_digest_add(struct wp_digest *digest, const struct wp_profile *profile,
		  const struct wp_history_mark *mark, uint64_t keep_ns,
		  struct wp_recorder_status *status);

/* The profile has been renumbered. */
void wp_digest_renumber(struct wp_digest *digest, struct wp_renumber *renumber);

/* Set what this process itself takes. */
void wp_digest_own(struct wp_recorder_status *status);

#endif
