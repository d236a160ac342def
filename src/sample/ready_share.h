/* SPDX-License-Identifier: Apache-2.0 */
/* ready_share.h - of the time that goroutines had a thread, how much the thread waited
 * for a CPU.
 *
 * Layer: sample.  Private to src/sample/.  Pure: reads no /proc and no clock.
 *
 * Go says that a goroutine runs as long as it has a thread; the scheduler's books of
 * the thread tell how much of that was on a CPU.  The books tell late, and what the
 * thread does between looks, and for no goroutine, is in them as well.  So what is kept
 * is which share of the time that the thread ran or waited for a CPU was such a wait,
 * over about a second; and what was said before the books told is made up for.
 */
#ifndef WP_READY_SHARE_H
#define WP_READY_SHARE_H

#include "time_ledger.h"

/* All 0 at first. */
struct wp_ready_share {
	/* The ledger's sums when they were read last. */
	uint64_t all_running_ns;
	uint64_t all_runnable_ns;
	/* Lately: what they have grown, what goroutines had, and how much of that was
	 * told as a wait for a CPU; less than nothing: too little. */
	uint64_t running_ns;
	uint64_t runnable_ns;
	uint64_t had_ns;
	int64_t waited_ns;
};

/* Goroutines had the thread of LEDGER for NS: returns how much of it was a wait for a
 * CPU. */
uint64_t wp_ready_share_take(struct wp_ready_share *share,
			     const struct wp_time_ledger *ledger, uint64_t ns);

#endif
