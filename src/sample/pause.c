/* SPDX-License-Identifier: Apache-2.0 */
/* pause.c - see pause.h. */
#include "pause.h"

#include <string.h>

#include "wallprof/clock.h"

/* Credit at the start, so that a short recording may stop at all. */
#define FIRST_CREDIT_NS (2 * WP_NS_PER_MS)
/* Time of which what stops did not take is kept for later ones. */
#define CREDIT_TIME_NS (10 * WP_NS_PER_S)
/* What a stop takes, until that is known. */
#define FIRST_MEAN_NS WP_NS_PER_MS

void wp_pauses_init(struct wp_pauses *pauses, uint64_t start_ns,
		    double max_share)
{
	memset(pauses, 0, sizeof(*pauses));
	pauses->start_ns = start_ns;
	pauses->max_share = max_share;
}

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int log;

	if (ns < 1 << WP_PAUSE_SUB_BITS)
		return (unsigned int)ns;
	log = 63 - (unsigned int)__builtin_clzll(ns);
	return (log - WP_PAUSE_SUB_BITS + 1) << WP_PAUSE_SUB_BITS |
	       (unsigned int)(ns >> (log - WP_PAUSE_SUB_BITS) &
			      ((1 << WP_PAUSE_SUB_BITS) - 1));
}

/* The longest duration that falls into BUCKET. */
static uint64_t bucket_top(unsigned int bucket)
{
	unsigned int log = (bucket >> WP_PAUSE_SUB_BITS) + WP_PAUSE_SUB_BITS;
	uint64_t sub = bucket & ((1 << WP_PAUSE_SUB_BITS) - 1);

	if (bucket < 1 << WP_PAUSE_SUB_BITS)
		return bucket;
	log--;
	return (UINT64_C(1) << log) + ((sub + 1) << (log - WP_PAUSE_SUB_BITS)) -
	       1;
}

void wp_pauses_add(struct wp_pauses *pauses, uint64_t ns)
{
	pauses->count[bucket_of(ns)]++;
	pauses->n++;
	pauses->total_ns += ns;
	if (ns > pauses->max_ns)
		pauses->max_ns = ns;
}

uint64_t wp_pauses_quantile(const struct wp_pauses *pauses, double q)
{
	uint64_t rank = (uint64_t)(q * (double)pauses->n), seen = 0;

	for (unsigned int i = 0; i < WP_PAUSE_BUCKETS; i++) {
		uint64_t top = bucket_top(i);

		seen += pauses->count[i];
		if (pauses->count[i] && (seen > rank || seen == pauses->n))
			return top < pauses->max_ns ? top : pauses->max_ns;
	}
	return 0;
}

uint64_t wp_pauses_credit(struct wp_pauses *pauses, uint64_t now_ns)
{
	uint64_t used_ns = pauses->total_ns + pauses->expired_ns;
	uint64_t allowed_ns, most_ns;

	if (pauses->max_share <= 0)
		return UINT64_MAX;
	most_ns = (uint64_t)(pauses->max_share * (double)CREDIT_TIME_NS) +
		  FIRST_CREDIT_NS;
	allowed_ns = (uint64_t)(pauses->max_share *
				(double)(now_ns - pauses->start_ns)) +
		     FIRST_CREDIT_NS;
	if (allowed_ns <= used_ns)
		return 0;
	if (allowed_ns - used_ns <= most_ns)
		return allowed_ns - used_ns;
	pauses->expired_ns += allowed_ns - used_ns - most_ns;
	return most_ns;
}

bool wp_pauses_allow(struct wp_pauses *pauses, uint64_t ncoming,
		     uint64_t now_ns)
{
	uint64_t mean_ns = pauses->n ? pauses->total_ns / pauses->n :
				       FIRST_MEAN_NS;

	return wp_pauses_credit(pauses, now_ns) > ncoming * mean_ns;
}

void wp_pause_bill_init(struct wp_pause_bill *bill, uint64_t credit_ns,
			uint64_t now_ns)
{
	*bill = (struct wp_pause_bill){ .left_ns = credit_ns, .at_ns = now_ns };
}

bool wp_pause_bill_pay(struct wp_pause_bill *bill, uint64_t now_ns)
{
	uint64_t ns = (now_ns - bill->at_ns) * bill->nheld;

	bill->at_ns = now_ns;
	if (bill->left_ns != UINT64_MAX)
		bill->left_ns -= ns < bill->left_ns ? ns : bill->left_ns;
	return bill->left_ns;
}

uint64_t wp_pause_bill_end(const struct wp_pause_bill *bill)
{
	uint64_t ns = bill->left_ns;

	if (bill->nheld)
		ns /= bill->nheld;
	return ns < UINT64_MAX - bill->at_ns ? bill->at_ns + ns : UINT64_MAX;
}
