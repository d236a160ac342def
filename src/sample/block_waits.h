/* SPDX-License-Identifier: Apache-2.0 */
/* block_waits.h - waits, by the stack that waited: context switches and samples.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_BLOCK_WAITS_H
#define WP_BLOCK_WAITS_H

#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/profile.h"

struct wp_block_waits;
struct wp_common;
struct wp_target;
struct wp_thread;

/* Part of a thread. */
struct wp_thread_waits {
	/* When the thread left its CPU to wait, was woken since, and by whom (string
	 * id); 0: it did not, was not, or not known. */
	uint64_t out_ns;
	uint64_t wake_ns;
	uint32_t waker;
	/* The wake as a sample of the wake profile, by the thread with this tid, and
	 * in how many wakes one gives its stack; 0: this one did not. */
	struct wp_sample_key wake;
	pid_t waker_tid;
	uint32_t wake_every;
	/* When it entered a CPU last, by a record. */
	uint64_t in_ns;
	/* The sample at that switch, which stands for EVERY switches; 0: there
	 * was none, and KEY is not valid. */
	uint32_t every;
	struct wp_sample_key key;
	/* Ticks in a row that found it in one wait, and their time. */
	uint32_t samples;
	uint64_t samples_ns;
	/* Begin and end of the last stop that wallprof made. */
	uint64_t stop_begin_ns, stop_end_ns;
};

/* Begin to record waits of TARGET; where perf events are not permitted, by ticks alone.
 * 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_block_waits_open(struct wp_target *target);

/* Record no wakes but those of the threads that WAITS' only target has now; of several
 * targets, those of all processes.  Accepts NULL. */
void wp_block_waits_filter(struct wp_block_waits *waits);

/* Read the perf records of COMMON's targets, whose queued waits are recorded, before a
 * tick lists their threads.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_block_waits_tick(struct wp_common *common);

/* The same after the last tick, when all targets have been finished. */
WP_MUST_CHECK
int wp_block_waits_finish(struct wp_common *common);

/* Drop what is kept of entry PROCESS of the profile. */
void wp_block_waits_forget(struct wp_common *common, uint32_t process);

/* A sample found T waiting as KEY says, and stands for WALL_NS; or NSAME samples, if
 * that is not 0, found it in the same wait as its last.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_block_waits_add(struct wp_thread *t, const struct wp_sample_key *key,
		       uint64_t nsame, uint64_t wall_ns);

void wp_block_waits_close(struct wp_common *common);

#endif
