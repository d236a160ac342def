/* SPDX-License-Identifier: Apache-2.0 */
/* lock_holders.h - waits for locks, by the stack that held the lock.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_LOCK_HOLDERS_H
#define WP_LOCK_HOLDERS_H

#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/profile.h"

struct wp_target;
struct wp_thread;

/* Part of a thread. */
struct wp_thread_locks {
	/* The tick whose sample found it waiting last, the time that sample
	 * stands for, and whether it was in the same wait as the one before. */
	uint64_t tick_ns;
	uint64_t wait_ns;
	bool same;
	/* Its tid in its own PID namespace; 0: not read. */
	pid_t ns_tid;
};

/* Begin to look for the holders of locks.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_lock_holders_open(struct wp_target *target);

/* A sample found T waiting, SAME: in the same wait as its last sample, and stands
 * for WALL_NS. */
void wp_lock_holders_note_wait(struct wp_thread *t, bool same,
			       uint64_t wall_ns);

/* Charge the holders of locks with the waits that this tick's samples found, and
 * request their stacks; before the stops of the tick.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_lock_holders_tick(struct wp_target *target);

/* A sample of T came with KEY: the waits that T is charged with go there.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_lock_holders_charge(struct wp_thread *t,
			   const struct wp_sample_key *key);

/* After the last tick: pay what is left.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_lock_holders_finish(struct wp_target *target);

void wp_lock_holders_close(struct wp_target *target);

#endif
