/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_times.h - the wall time of a Go program's goroutines.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * At each look every goroutine gets the time since the last look, in the state that
 * it is found in: so the times of all add up to the time that each was there.  A
 * goroutine that runs gets the stack that its thread ran with last, and waits for a
 * CPU as the thread does (ready_share.h); the profile divides the running time of each
 * entry over its CPU samples in the end.
 * Of the target's threads only CPU samples are recorded meanwhile.
 */
#ifndef WP_GOROUTINE_TIMES_H
#define WP_GOROUTINE_TIMES_H

#include "go_target.h"
#include "thread.h"
#include "wallprof/goroutine_entries.h"
#include "wallprof/goroutine_looks.h"

/* What the last look found of a goroutine. */
struct wp_goroutine_slot {
	struct wp_goroutine_words words;
	uint64_t labels_avma;
	/* Number of the last look that found it; 0: none did. */
	uint32_t look;
	/* Entry of the profile's threads; of its runtime. */
	uint32_t entry;
	bool is_runtime;
	/* KEY is what WORDS say. */
	bool holds;
	/* To what its time goes; sample of WALL that has that key. */
	struct wp_sample_key key;
	uint32_t sample;
};

/* A goroutine that has a thread. */
struct wp_goroutine_runner {
	uint32_t index;
	int32_t tid;
	uint64_t m_avma;
};

struct wp_goroutine_times {
	struct wp_target *target;
	struct wp_go_target go;
	struct wp_goroutine_looks *looks;
	/* By place in the program's list, [0..n), owned; what is taken of the
	 * budget for them. */
	struct wp_goroutine_slot *slots;
	uint32_t n, cap;
	uint64_t taken;
	/* Of the look at hand, owned: those whose stacks are to be read, and those
	 * with a thread. */
	uint32_t *changed;
	uint32_t nchanged, cap_changed;
	struct wp_goroutine_runner *runners;
	uint32_t nrunners, cap_runners;
	struct wp_goroutines read;
	/* No entry before FIRST_ENTRY is theirs: the target may have executed one Go
	 * program after another. */
	struct wp_goroutine_entries entries;
	uint32_t first_entry;
	/* PID namespaces between wallprof's and the program's. */
	int level;
	/* The entry of the labels at CACHED_LABELS_AVMA, as of look CACHED_LOOK. */
	uint64_t cached_labels_avma;
	uint32_t cached_look;
	uint32_t cached_entry;
	/* When the first look was; when the last was, and the one before while it
	 * goes on; its number. */
	uint64_t begin_ns;
	uint64_t last_ns;
	uint64_t since_ns;
	uint32_t look;
	/* Nanoseconds that the look at hand gives each. */
	uint64_t ns;
	int rc;
	/* CPU time of the target's threads, by the scheduler; what looks cost. */
	uint64_t cpu_ns;
	uint64_t cost_ns;
	/* Looks that were put off as the last ones took too long; goroutines that
	 * were not read, at most at one look. */
	uint64_t nput_off;
	uint32_t nunread;
};

/* At the end of TARGET's tick: look at its goroutines, if they have been found.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_goroutine_times_tick(struct wp_target *target);

/* T has a CPU sample with REGS and STACK: note whose it is. */
void wp_goroutine_times_note(struct wp_thread *t, const struct wp_regs *regs,
			     const struct wp_stack *stack);

/* The entry that T's CPU samples go to. */
uint32_t wp_goroutine_times_entry(const struct wp_thread *t);

/* After the last tick of TARGET: pay what its end leaves, and its CPU time.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_goroutine_times_finish(struct wp_target *target);

void wp_goroutine_times_close(struct wp_target *target);

#endif
