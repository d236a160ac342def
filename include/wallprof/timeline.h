/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.h - what each thread did when: a log of changes, bounded.
 *
 * Layer: profile.
 *
 * The log of a thread is a sequence of intervals without gaps, which begins when
 * the thread's entry in the profile does.  An interval is the time that one call of
 * wp_profile_add_sample added to a sample, or several in a row to the same sample:
 * so for each sample the sum of its intervals is its wall time, to the nanosecond,
 * and a thread that does not move adds nothing.
 *
 * Time that a thread owes (it ran, and the stack that this goes to is not known yet)
 * is in the log where it was paid, later than it passed by what was owed then.
 *
 * When the log is full, neighbouring intervals of one sample that lie in one window
 * of time become one, oldest first: sums hold, the order inside a window is lost.
 * The windows double as often as that takes.
 */
#ifndef WP_TIMELINE_H
#define WP_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"

/* Instead of a sample: the thread was not watched. */
#define WP_TIMELINE_UNWATCHED UINT32_MAX

struct wp_timeline_interval {
	uint64_t ns;
	/* Index of the profile's threads[]. */
	uint32_t thread;
	/* Index of the samples of WALL. */
	uint32_t sample;
	/* Index + 1 of the thread that held the lock which THREAD waited for;
	 * 0: none, or not known. */
	uint32_t holder;
};

struct wp_timeline_thread {
	/* Index + 1 of its last interval, which may still grow if IS_OPEN; 0: there
	 * is none. */
	uint32_t last;
	bool is_open;
	/* Time of its oldest intervals, which did not fit and were dropped. */
	uint64_t dropped_ns;
	/* Time taken back that was found in none of its intervals: those that it adds
	 * next are shorter by that. */
	uint64_t owed_ns;
};

struct wp_timeline {
	/* v[0..n) in the order in which they were added, owned: those of one
	 * thread are in order of time. */
	struct wp_timeline_interval *v;
	uint32_t n;
	uint32_t cap;
	/* Most intervals; 0: no log is kept. */
	uint32_t max;
	/* By thread, [0..nthreads), owned; a thread without intervals may be
	 * missing. */
	struct wp_timeline_thread *threads;
	uint32_t nthreads;
	uint32_t cap_threads;
	/* v[0..nmerged) have been merged in windows of WINDOW_NS, the rest in
	 * windows of half of that (those of FIRST_WINDOW_NS: not at all).
	 * WINDOW_NS 0: none has been. */
	uint32_t nmerged;
	uint64_t window_ns;
	/* Intervals that merging or dropping made fewer. */
	uint64_t nlost;
};

/* Keep a log of at most SIZE bytes, and at least one interval; before the first
 * sample. */
void wp_timeline_start(struct wp_timeline *timeline, size_t size);

/* THREAD spent NS more with SAMPLE, or unwatched.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_timeline_add(struct wp_timeline *timeline, uint32_t thread,
		    uint32_t sample, uint64_t ns);

/* NS of what was added to THREAD with SAMPLE, its last wait, is taken back. */
void wp_timeline_take_back(struct wp_timeline *timeline, uint32_t thread,
			   uint32_t sample, uint64_t ns);

/* What THREAD does next is another wait, though it may go to the same sample. */
void wp_timeline_end_interval(struct wp_timeline *timeline, uint32_t thread);

/* HOLDER, an index of threads, holds the lock that THREAD's last interval waits
 * for; if that had another holder, the next interval has this one. */
void wp_timeline_set_holder(struct wp_timeline *timeline, uint32_t thread,
			    uint32_t holder);

/* Time of THREAD that was dropped: its first interval begins that much later than
 * its entry in the profile. */
uint64_t wp_timeline_dropped_ns(const struct wp_timeline *timeline,
				uint32_t thread);

/* The times of samples have been divided anew: that of sample I, which was
 * BEFORE[I], is AFTER[I], for all I below N.  Its intervals change in proportion. */
void wp_timeline_divide(struct wp_timeline *timeline, const uint64_t *before,
			const uint64_t *after, uint32_t n);

void wp_timeline_clear(struct wp_timeline *timeline);

#endif
