/* SPDX-License-Identifier: Apache-2.0 */
/* thread_lock.h - the lock that a thread waits for, at its sample.
 *
 * Layer: dump.
 */
#ifndef WP_THREAD_LOCK_H
#define WP_THREAD_LOCK_H

#include "wallprof/snapshot.h"

/* Set the lock of T, a waiting thread of PROCESS, by its stack and the memory that was
 * copied with it, which VIEW of its sample has; its wait reason, where the lock tells
 * it; and whether its call may have a time limit.  Memory that is read now, because it
 * is not in the copy, counts only if T has not moved. */
void wp_thread_lock_decode(struct wp_dump_thread *t, const struct wp_dump *dump,
			   struct wp_snapshot_process *process,
			   const struct wp_thread_view *view);

#endif
