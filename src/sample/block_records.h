/* SPDX-License-Identifier: Apache-2.0 */
/* block_records.h - from perf records of switches and wakes to waits.
 *
 * Layer: sample.  Private to src/sample/, of block_waits.c.
 */
#ifndef WP_BLOCK_RECORDS_H
#define WP_BLOCK_RECORDS_H

#include "perf_source.h"
#include "switch_budget.h"
#include "switch_sample.h"
#include "wakers.h"
#include "wallprof/profile.h"

struct wp_sampler;
struct wp_target;
struct wp_thread;

enum {
	/* Tids whose process is known. */
	WP_BLOCK_RECORDS_TIDS = 2048,
	/* Most waits that are kept until their window is over. */
	WP_BLOCK_RECORDS_WAITS = 1 << 16,
};

/* A wait until the thread was woken, or the wait for a CPU after that; or the wake. */
struct wp_block_wait {
	/* In state waiting or runnable; the object is who woke it.  Of a wake that of
	 * the wake profile. */
	struct wp_sample_key key;
	uint64_t delay_ns;
	/* What was to be in the window for the wait to be known. */
	uint64_t span_ns;
	/* Its stack is that of one switch, or wake, in so many; 0: it has none. */
	uint32_t every;
	bool is_wake;
};

/* The process of a thread by its last switch, which wakes do not tell. */
struct wp_block_tid {
	pid_t tid;
	/* 0: no switch has told it yet. */
	pid_t pid;
	bool is_recorded;
};

/* Of all targets that share a profile. */
struct wp_block_waits {
	/* Borrowed. */
	struct wp_sampler *loop;
	struct wp_profile *profile;
	/* Which profiles are made of them: waits, by the stack that waited, and wakes,
	 * by the stack of who woke. */
	bool wants_waits, wants_wakes;
	/* The only target; NULL: events of CPUs are those of all processes. */
	struct wp_target *only;
	/* Enabled in windows of time, disabled in the gaps between them, and
	 * closed in long gaps. */
	struct wp_perf_source events;
	/* There are no perf events: ticks tell all waits. */
	bool no_events;
	struct wp_switch_budget budget;
	/* Samples are taken at every EVERYth switch, before CHANGED_NS at every
	 * EVERY_BEFOREth. */
	uint32_t every, every_before;
	uint64_t changed_ns;
	/* The same of samples of who wakes. */
	uint32_t wake_every, wake_every_before;
	uint64_t wake_changed_ns;
	/* Begin and end of the last window, and end of the gap after it. */
	uint64_t on_ns, off_ns, turn_ns;
	/* Waits that began before are not known: records were lost, or not
	 * made. */
	uint64_t valid_ns;
	/* Records and samples read, and records lost, in this window, those of
	 * other processes included. */
	uint64_t records, lost, samples, wake_samples;
	/* Sums of all windows. */
	uint64_t all_records, all_lost, recorded_ns;
	uint64_t start_ns;
	/* Waits that were kept with their stack, and waits of which the end is not
	 * known: they hold the time until the thread ran. */
	uint64_t stacks, unsplit;
	/* Wakes that were kept with the stack of who made them. */
	uint64_t wake_stacks;
	/* 0, or why wakes are not recorded. */
	int wake_rc;
	/* Waits of this window: waits[0..nwaits), owned; and those that found no
	 * room. */
	struct wp_block_wait *waits;
	uint32_t nwaits, dropped;
	struct wp_switch_sample_calls calls;
	/* A cache, empty when there is a new target. */
	struct wp_block_tid tids[WP_BLOCK_RECORDS_TIDS];
	struct wp_wakers wakers;
};

/* Read the records of before UNTIL_NS, and keep the waits that they tell.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_block_records_read(struct wp_block_waits *waits, uint64_t until_ns);

/* Keep W until its window is over, if there is room. */
void wp_block_records_keep(struct wp_block_waits *waits,
			   const struct wp_block_wait *w);

/* The last tick found T in the wait that ends at NOW. */
bool wp_block_records_found_waiting(const struct wp_thread *t, uint64_t now);

#endif
