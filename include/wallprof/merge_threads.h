/* SPDX-License-Identifier: Apache-2.0 */
/* merge_threads.h - one entry for threads whose names differ only in digits.
 *
 * Layer: profile.
 */
#ifndef WP_MERGE_THREADS_H
#define WP_MERGE_THREADS_H

#include "wallprof/profile.h"

/* Make of the threads of PROFILE's samples of WALL one for each name, with each run of
 * digits made '*', and beyond MOST names one for all others; drop what they wait for.  So the
 * number of labels' values is bounded, as a store wants it that keeps a series for
 * each.  No sum over a stack, state and wait reason changes; the timeline is cleared.
 * 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_merge_threads(struct wp_profile *profile, uint32_t most);

#endif
