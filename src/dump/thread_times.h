/* SPDX-License-Identifier: Apache-2.0 */
/* thread_times.h - how long a thread has been waiting.
 *
 * Layer: dump.
 */
#ifndef WP_THREAD_TIMES_H
#define WP_THREAD_TIMES_H

#include "wallprof/snapshot.h"

/* Read file NAME of thread TID into BUF[0..size), as wp_io_read_at does. */
ssize_t wp_thread_times_file(const struct wp_process *process, pid_t tid,
			     const char *name, char *buf, size_t size);

/* Read and parse /proc/TID/stat of thread TID.  False: it is gone. */
bool wp_thread_times_stat(struct wp_proc_stat *ret,
			  const struct wp_process *process, pid_t tid);

/* The timeslices that thread TID has had; UINT64_MAX: it is gone. */
uint64_t wp_thread_times_slices(const struct wp_process *process, pid_t tid);

/* Set T->times, by VIEW of its sample.  A T that wallprof stopped gets some time to
 * go back to its wait. */
void wp_thread_times_set(struct wp_dump_thread *t,
			 const struct wp_thread_view *view,
			 const struct wp_process *process,
			 struct wp_sched_clock *clock);

/* Has T, whose times are set, been in the wait that its sample found, which VIEW
 * tells of, ever since, as far as can be told? */
bool wp_thread_times_same_wait(const struct wp_dump_thread *t,
			       const struct wp_thread_view *view,
			       const struct wp_process *process);

#endif
