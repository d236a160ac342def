/* SPDX-License-Identifier: Apache-2.0 */
/* switch_budget.h - how many context switches are recorded, and sampled.
 *
 * Layer: sample.  Private to src/sample/.  Pure computation.
 *
 * Where switches are too many for a record of each, they are recorded in windows
 * of time with gaps in between.
 */
#ifndef WP_SWITCH_BUDGET_H
#define WP_SWITCH_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* One switch in so many is sampled until their rate is known. */
	WP_SWITCH_BUDGET_FIRST_EVERY = 101,
	/* Mean gap, in seconds, in which events are closed. */
	WP_SWITCH_BUDGET_CLOSED_S = 4,
};

struct wp_switch_budget {
	/* Records per second in the windows so far, averaged; 0: no window. */
	double records_per_s;
	/* Events are to be closed in the next gap: even disabled events slow
	 * each switch down while they are open and for a second after
	 * (kernel/events/core.c, perf_sched_work). */
	bool closes;
};

/* Least length of a window that has NRECORDS so far. */
uint64_t wp_switch_budget_window_ns(uint64_t nrecords, uint64_t interval_ns);

/* The gap after a window of WINDOW_NS with NRECORDS, lost ones included, of NCPUS
 * CPUs, such that as many records are left as are cheap; 0: none.  RANDOM varies it
 * from a half to one and a half times that, so that no program's period is in step
 * with it. */
uint64_t wp_switch_budget_gap(struct wp_switch_budget *budget,
			      uint64_t window_ns, uint64_t nrecords,
			      size_t ncpus, uint64_t random);

/* N such that samples at every Nth switch are cheap, where SAMPLES_PER_S were taken
 * at every EVERYth.  1 or, varied by RANDOM, one of two primes: threads that take
 * turns are in step with any other number sooner. */
uint32_t wp_switch_budget_every(double samples_per_s, uint32_t every,
				uint64_t random);

#endif
