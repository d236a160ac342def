/* SPDX-License-Identifier: Apache-2.0 */
/* cumulative.h - waits since the begin of a recording that goes on, which only grow.
 *
 * Layer: profile.
 *
 * A scraper subtracts what it got last from what it gets now.  But what is estimated of
 * all time anew each time (wallprof/block_weight.h) gives a stack less when another has
 * come.  Here each part of the time is estimated once, and added up.
 */
#ifndef WP_CUMULATIVE_H
#define WP_CUMULATIVE_H

#include "wallprof/err.h"
#include "wallprof/history.h"
#include "wallprof/profile.h"
#include "wallprof/renumber.h"

struct wp_cumulative {
	/* As those of BLOCK after wp_block_weight_finish, but without who woke the
	 * thread; WEIGHT_NS is when the sample grew last.  Owned. */
	struct wp_sample_set set;
	/* The end of the last mark that is in it. */
	uint64_t until_ns;
};

/* Add the waits of HISTORY's marks, of PROFILE, that are not in CUMULATIVE.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_cumulative_add(struct wp_cumulative *cumulative,
		      const struct wp_history *history,
		      struct wp_profile *profile);

/* See wp_history_renumber; what has not grown since SINCE_NS goes.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_cumulative_renumber(struct wp_cumulative *cumulative, uint64_t since_ns,
			   struct wp_renumber *renumber);

/* PROFILE has forgotten processes: forget their waits. */
void wp_cumulative_forget(struct wp_cumulative *cumulative,
			  const struct wp_profile *profile);

void wp_cumulative_clear(struct wp_cumulative *cumulative);

#endif
