/* SPDX-License-Identifier: Apache-2.0 */
/* switch_budget.c - see switch_budget.h. */
#include "switch_budget.h"

#include "wallprof/block_weight.h"
#include "wallprof/clock.h"

enum {
	/* Cheap number of samples per second: each costs the target 1 to 2 us,
	 * and wallprof as much. */
	STACKS_PER_S = 2000,
	/* Cheap number of records per second and CPU, at 0.6 us each. */
	RECORDS_PER_S = 10000,
	/* More than that, and events are closed in gaps. */
	RECORDS_CLOSE_PER_S = 100000,
	/* Length of a window, in sampling intervals; of one with enough records:
	 * still longer than the waits that ticks miss. */
	WINDOW_INTERVALS = 10,
	SHORT_WINDOW_INTERVALS = WP_BLOCK_TICKS + 2,
};

uint64_t wp_switch_budget_window_ns(uint64_t nrecords, uint64_t interval_ns)
{
	return interval_ns * (nrecords < RECORDS_PER_S ?
				      WINDOW_INTERVALS :
				      SHORT_WINDOW_INTERVALS);
}

/* Records per second to be expected: those of the windows before this one.  A
 * window is weighted by the gap after it; if the gap went by the window's own
 * records, windows of many waits would weigh more: by the variance of their
 * number, a tenth to a quarter too many on a busy machine. */
static double expect_records(struct wp_switch_budget *budget, double now)
{
	double before = budget->records_per_s > 0 ? budget->records_per_s : now;

	budget->records_per_s = before + (now - before) / 4;
	return before;
}

uint64_t wp_switch_budget_gap(struct wp_switch_budget *budget,
			      uint64_t window_ns, uint64_t nrecords,
			      size_t ncpus, uint64_t random)
{
	double cheap = (double)RECORDS_PER_S * (double)ncpus;
	double records = expect_records(budget, (double)(nrecords + 1) /
							(double)window_ns *
							WP_NS_PER_S);
	double gap = (double)window_ns * (records / cheap - 1);
	double closed = (double)WP_SWITCH_BUDGET_CLOSED_S * WP_NS_PER_S;

	budget->closes = records > RECORDS_CLOSE_PER_S;
	if (cheap / records > 0.8) {
		budget->closes = false;
		return 0;
	}
	if (budget->closes && gap < closed)
		gap = closed;
	return (uint64_t)gap / 1000 * (500 + random % 1000);
}

uint32_t wp_switch_budget_every(double samples_per_s, uint32_t every,
				uint64_t random)
{
	static const uint32_t primes[] = { 1,	 2,    3,    5,	  7,	11,
					   17,	 29,   43,   67,  101,	151,
					   227,	 347,  521,  787, 1181, 1777,
					   2663, 3989, 5987, 8999 };
	const size_t n = sizeof(primes) / sizeof(*primes);
	double want = samples_per_s * every / STACKS_PER_S;
	size_t i = 0;

	while (i + 2 < n && primes[i] < want)
		i++;
	return want <= 1 ? 1 : primes[i + random % 2];
}
