/* SPDX-License-Identifier: Apache-2.0 */
/* shared_mutex.h - mutexes of several processes (PTHREAD_PROCESS_SHARED).
 *
 * Layer: dump.
 */
#ifndef WP_SHARED_MUTEX_H
#define WP_SHARED_MUTEX_H

#include "wallprof/snapshot.h"

/* After the last process: a thread of SNAPSHOT that waits for a mutex in shared memory,
 * has not run since its sample, and whose mutex a thread of one other process of the dump
 * still has, which maps the same place of the same file, is held up by that thread.  Of
 * a lock that a process of another PID namespace may have no holder is known, and the wait
 * counts as doubtful.
 * BY_TID: as wp_dump_sort_tids.  Takes a second at most; past that, no holder is
 * known. */
void wp_shared_mutex_find(struct wp_snapshot *snapshot, const uint32_t *by_tid);

#endif
