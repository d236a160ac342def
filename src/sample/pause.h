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
	/* What of it was not taken in time. */
	uint64_t expired_ns;
};

void wp_pauses_init(struct wp_pauses *pauses, uint64_t start_ns,
		    double max_share);
void wp_pauses_add(struct wp_pauses *pauses, uint64_t ns);
/* The duration that share Q (0 to 1) of all stops do not exceed; 0 if there were
 * none. */
uint64_t wp_pauses_quantile(const struct wp_pauses *pauses, double q);
/* The time that stops may still take at NOW_NS, at most what 10 s give: what was left of
 * the time before expires.  UINT64_MAX: no limit. */
uint64_t wp_pauses_credit(struct wp_pauses *pauses, uint64_t now_ns);

/* Is there time left for a stop at NOW_NS, besides NCOMING that have been requested
 * and will take as long as others have on average? */
bool wp_pauses_allow(struct wp_pauses *pauses, uint64_t ncoming,
		     uint64_t now_ns);

/* What threads that are held at once take of a credit. */
struct wp_pause_bill {
	/* UINT64_MAX: no limit. */
	uint64_t left_ns;
	/* Up to when the held threads have paid, and their number, which the
	 * caller changes after paying. */
	uint64_t at_ns;
	uint64_t nheld;
};

void wp_pause_bill_init(struct wp_pause_bill *bill, uint64_t credit_ns,
			uint64_t now_ns);
/* Pay for all held threads up to NOW_NS.  Is any of the credit left? */
bool wp_pause_bill_pay(struct wp_pause_bill *bill, uint64_t now_ns);
/* When the credit ends if no more threads are held. */
uint64_t wp_pause_bill_end(const struct wp_pause_bill *bill);

#endif
