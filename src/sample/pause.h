/* SPDX-License-Identifier: Apache-2.0 */
/* pause.h - durations of stops, and their budget.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_PAUSE_H
#define WP_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* Buckets are powers of two of a nanosecond, each cut into 16: a
	 * quantile is right to within 1/16. */
	WP_PAUSE_SUB_BITS = 4,
	WP_PAUSE_BUCKETS = (64 - WP_PAUSE_SUB_BITS + 1) << WP_PAUSE_SUB_BITS,
};

struct wp_pauses {
	/* Stops per bucket. */
	uint32_t count[WP_PAUSE_BUCKETS];
	uint64_t n;
	uint64_t total_ns;
	uint64_t max_ns;
	/* Begin of the time that the budget is a share of. */
	uint64_t start_ns;
	/* Share of the time since START_NS that all stops may take; 0: no limit. */
	double max_share;
};

void wp_pauses_init(struct wp_pauses *pauses, uint64_t start_ns,
		    double max_share);
void wp_pauses_add(struct wp_pauses *pauses, uint64_t ns);
/* The duration that share Q (0 to 1) of all stops do not exceed; 0 if there were
 * none. */
uint64_t wp_pauses_quantile(const struct wp_pauses *pauses, double q);
/* Is there budget left for a stop at NOW_NS? */
bool wp_pauses_allow(const struct wp_pauses *pauses, uint64_t now_ns);

#endif
