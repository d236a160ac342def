/* SPDX-License-Identifier: Apache-2.0 */
/* history.h - what came to a profile that grows, by time: a ring of the last minutes.
 *
 * Layer: profile.
 *
 * A mark says what each sample has gained since the mark before.  The sum of some
 * marks in a row is the profile of their time.
 */
#ifndef WP_HISTORY_H
#define WP_HISTORY_H

#include "wallprof/err.h"
#include "wallprof/profile.h"
#include "wallprof/renumber.h"

/* As the kind of an entry: SAMPLE is an index of threads, which gained CPU_NS. */
#define WP_HISTORY_THREAD WP_NPROFILE_KINDS

/* What one sample gained; it may be less than nothing (wp_profile_take_back). */
struct wp_history_entry {
	uint32_t kind : 4;
	/* Index of the samples of that kind. */
	uint32_t sample : 28;
	int32_t count;
	int32_t cpu_count;
	int32_t looks;
	int64_t wall_ns;
	int64_t cpu_ns;
	int64_t exact_ns;
	int64_t weight_ns;
};

enum { WP_HISTORY_COUNTERS = 28 };

/* What came between BEGIN_NS and END_NS (CLOCK_MONOTONIC). */
struct wp_history_mark {
	uint64_t begin_ns;
	uint64_t end_ns;
	/* What the counters gained that a view is of: history.c, COUNTED. */
	uint64_t counted[WP_HISTORY_COUNTERS];
	uint32_t n;
	struct wp_history_entry v[];
};

struct wp_history {
	/* marks[0..n) by time; each owned. */
	struct wp_history_mark **marks;
	uint32_t n, cap;
	/* Time to keep, and most bytes; marks are dropped, oldest first. */
	uint64_t keep_ns;
	size_t max_bytes;
	size_t bytes;
	/* Marks that went before their time for want of bytes. */
	uint64_t ndropped;
	/* End of the last mark. */
	uint64_t end_ns;
	/* The profile at the last mark; owned. */
	struct wp_profile_sample *last[WP_NPROFILE_KINDS];
	uint32_t nlast[WP_NPROFILE_KINDS], cap_last[WP_NPROFILE_KINDS];
	uint64_t *last_cpu_ns;
	uint32_t nlast_cpu, cap_last_cpu;
	struct wp_counters last_counters;
};

/* Keep marks of KEEP_NS, but no more than MAX_BYTES; the first begins at NOW_NS. */
void wp_history_init(struct wp_history *history, uint64_t keep_ns,
		     size_t max_bytes, uint64_t now_ns);
void wp_history_clear(struct wp_history *history);

/* Add a mark of what PROFILE has gained until NOW_NS; the last one, or NULL: no
 * memory. */
const struct wp_history_mark *wp_history_add(struct wp_history *history,
					     const struct wp_profile *profile,
					     uint64_t now_ns);

/* Say to RENUMBER, of PROFILE, what the marks refer to; or, after it has been applied, go
 * on with the new indices.  The last mark is of PROFILE as it is. */
void wp_history_renumber(struct wp_history *history,
			 const struct wp_profile *profile,
			 struct wp_renumber *renumber);

/* Forget what PROFILE's timeline has of the time before BEFORE_NS.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_history_forget_timeline(struct wp_profile *profile, uint64_t before_ns);

/* PROFILE has forgotten samples and threads (wp_profile_forget_process): forget them in all
 * marks. */
void wp_history_forget(struct wp_history *history,
		       const struct wp_profile *profile);

/* When the first mark begins (CLOCK_MONOTONIC); where there is none, when the next one
 * will. */
uint64_t wp_history_begin_ns(const struct wp_history *history);

/* Leave in PROFILE, which HISTORY is of, only what came in the marks whose middle is in
 * [*FROM_NS, *TO_NS]; if there are none, in the one mark that holds the middle of that
 * time: in its samples, its counters of what was done and lost, and its threads' times.
 * *FROM_NS and *TO_NS become the begin and the end of these marks.  PROFILE is not to
 * grow after that.  0; -ENOENT: there is no such mark, and PROFILE has no samples left;
 * -ENOMEM. */
WP_MUST_CHECK
int wp_history_view(const struct wp_history *history,
		    struct wp_profile *profile, uint64_t *from_ns,
		    uint64_t *to_ns);

/* Cut the timeline of PROFILE to the time from FROM_NS to TO_NS, and set the wall time of
 * each sample that is in it to what is left.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_history_cut_timeline(struct wp_profile *profile, uint64_t from_ns,
			    uint64_t to_ns);

#endif
