/* SPDX-License-Identifier: Apache-2.0 */
/* errors.h - standard errors of the waiting times of a table's rows.
 *
 * What looks divide of a thread's waiting time, P ns by N looks that found the thread
 * changed, goes to a row by S ns of it, like coin tosses: the variance of S is
 * S (P - S) / N.  What is known exactly has none.
 */
#ifndef WP_ERRORS_H
#define WP_ERRORS_H

#include "pairs.h"
#include "wallprof/profile.h"

struct wp_errors {
	const struct wp_sample_set *set;
	/* What looks divide, by row and thread. */
	struct wp_pairs parts;
	/* By thread: what looks divide in all, and their number; owned. */
	struct wp_errors_pool {
		double ns;
		double looks;
	} * pools;
	/* Any looks are known of. */
	bool known;
};

/* Of SET, of PROFILE.  0 or -ENOMEM; the caller clears ERRORS in both cases. */
WP_MUST_CHECK
int wp_errors_init(struct wp_errors *errors, const struct wp_profile *profile,
		   const struct wp_sample_set *set);
/* S is in row ROW.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_errors_add(struct wp_errors *errors, uint32_t row,
		  const struct wp_profile_sample *s);
/* Set the TOTAL of each of ROWS, not sorted yet, to its standard error in ns. */
void wp_errors_finish(struct wp_errors *errors, struct wp_pairs *rows);
void wp_errors_clear(struct wp_errors *errors);

#endif
