/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h - the table of a target's threads.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_THREADS_H
#define WP_THREADS_H

#include "thread.h"
#include "wallprof/task_record.h"

/* Bring the table up to date if the number of threads differs from it and, where not
 * all are watched, as often as it costs little.  Threads that have ended go to the
 * target's list of ended threads.  0, -ESRCH when there is no thread, -ENOMEM. */
WP_MUST_CHECK
int wp_threads_update(struct wp_target *target);

/* Is T's tid, by RECORD, another thread's by now? */
bool wp_threads_is_another(struct wp_thread *t,
			   const struct wp_task_record *record);

/* Does the BPF scan show just the threads of the table, and all of them alive? */
bool wp_threads_are_as_scanned(const struct wp_target *target);

/* Pay T up to the last tick whose looks are over, if it was not looked at since it was
 * known not to have moved. */
void wp_threads_settle(struct wp_thread *t);

/* Where in TARGET's table TID is, or would be. */
size_t wp_threads_place(const struct wp_target *target, pid_t tid);

/* The thread TID, settled; NULL if it is not in the table. */
struct wp_thread *wp_threads_find(const struct wp_target *target, pid_t tid);

/* The same, added if new; NULL without memory. */
struct wp_thread *wp_threads_find_or_add(struct wp_target *target, pid_t tid);

/* threads[I] has ended: move it to the list of ended threads.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_threads_end(struct wp_target *target, size_t i);

/* The same of T. */
WP_MUST_CHECK
int wp_threads_end_found(struct wp_thread *t);

/* Read what TID is called now.  False, and "", for a thread that has ended. */
bool wp_threads_read_name(const struct wp_target *target, pid_t tid,
			  char name[WP_COMM_MAX]);

/* T is called NAME now. */
void wp_threads_rename(struct wp_thread *t, const char *name);

/* Free the threads in the list of ended threads. */
void wp_threads_free_ended(struct wp_target *target);

/* T has run since its last sample, or is not watched: its name may have changed.
 * It is read, from RECORD, T's BPF scan result, unless that is NULL, at calls 1,
 * 2, 4, 8, ... and every 512th, once in a tick. */
void wp_threads_name(struct wp_thread *t, const struct wp_task_record *record);

/* Free all threads. */
void wp_threads_clear(struct wp_target *target);

#endif
