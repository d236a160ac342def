/* SPDX-License-Identifier: Apache-2.0 */
/* top.h - what the threads of a profile that still grows did since the last look.
 *
 * Layer: output.
 */
#ifndef WP_TOP_H
#define WP_TOP_H

#include <stdio.h>

#include "wallprof/err.h"
#include "wallprof/profile.h"

#define WP_TOP_SORTS(X)                                                        \
	X(RUNNING, "running")                                                  \
	X(RUNNABLE, "runnable")                                                \
	X(WAITING, "waiting")                                                  \
	X(SINCE, "for how long")                                               \
	X(NAME, "name")                                                        \
	X(TID, "tid")

enum wp_top_sort {
#define X(name, text) WP_TOP_##name,
	WP_TOP_SORTS(X)
#undef X
		WP_NTOP_SORTS
};

const char *wp_top_sort_name(enum wp_top_sort sort);

/* A thread since the last look. */
struct wp_top_thread {
	/* Index of the profile's threads. */
	uint32_t thread;
	/* Its time by enum wp_state, and together. */
	uint64_t ns[WP_NSTATES];
	uint64_t all_ns;
	/* Index of the sample with most of it. */
	uint32_t sample;
	/* It has been there without running for so long; 0: it ran. */
	uint64_t since_ns;
	/* It had been there since before the first look. */
	bool from_begin;
};

/* What is kept of a thread from look to look. */
struct wp_top_known {
	uint32_t sample;
	uint64_t since_ns;
	bool from_begin;
	/* CPU time of all that the profile has of it. */
	uint64_t cpu_ns;
};

struct wp_top {
	/* The threads that are wanted, v[0..n) in order, owned. */
	struct wp_top_thread *v;
	uint32_t n, cap;
	/* How many there are. */
	uint32_t nall;
	/* By the profile's threads; owned. */
	struct wp_top_known *known;
	uint32_t nknown, cap_known;
	/* The profile's samples with what came since the last look; owned.  Wait
	 * reasons may be refined. */
	struct wp_sample_set set;
	/* Wall time of each before; owned. */
	uint64_t *before_ns;
	uint32_t nbefore, cap_before;
	/* CLOCK_MONOTONIC of the looks; 0: none yet. */
	uint64_t first_ns;
	uint64_t look_ns;
	/* What came between the last two, per thread: what is owed to a thread
	 * is paid late, so it is not quite the time between them. */
	uint64_t mean_ns;
	enum wp_top_sort sort;
	/* Threads whose name, wait or object holds it; "": all. */
	char filter[64];
};

#define WP_TOP_INIT                                                            \
	{                                                                      \
		0                                                              \
	}

/* Set TOP->set to what came to PROFILE until NOW_NS.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_top_look(struct wp_top *top, const struct wp_profile *profile,
		uint64_t now_ns);
/* Then, once waits are refined, list the threads that TOP's filter wants.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_top_list(struct wp_top *top, const struct wp_profile *profile);
void wp_top_clear(struct wp_top *top);

/* Each writes lines of at most WIDTH columns to OUT, and returns 0, -ENOMEM or the
 * -errno of a write: the sums of all threads; the heading and threads v[first..first
 * + n); where threads wait, and the functions that run, the N with most time; the stack
 * of V. */
WP_MUST_CHECK
int wp_top_write_sums(const struct wp_top *top,
		      const struct wp_profile *profile, unsigned int width,
		      FILE *out);
WP_MUST_CHECK
int wp_top_write_threads(const struct wp_top *top,
			 const struct wp_profile *profile, uint32_t first,
			 uint32_t n, unsigned int width, FILE *out);
WP_MUST_CHECK
int wp_top_write_places(const struct wp_top *top,
			const struct wp_profile *profile, bool waiting,
			uint32_t n, unsigned int width, FILE *out);
WP_MUST_CHECK
int wp_top_write_stack(const struct wp_top *top,
		       const struct wp_profile *profile,
		       const struct wp_top_thread *v, unsigned int width,
		       FILE *out);

#endif
