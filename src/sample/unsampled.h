/* SPDX-License-Identifier: Apache-2.0 */
/* unsampled.h - run time of a thread that its CPU samples do not cover.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * An event of a thread takes no sample in the kernel where that is not permitted, and
 * none at all once the thread has executed a set-user-id program.  If CPU samples
 * divided that time too, it would go to what they met.  So the samples stand for what
 * they cover, and the rest goes to stacks by stops: where the event is of user code,
 * to those at the end of a system call, which the thread was in; where stops find none,
 * or CPU samples have ceased to come, to any.  Where the thread is not to be stopped it
 * goes to no stack.
 */
#ifndef WP_UNSAMPLED_H
#define WP_UNSAMPLED_H

#include <stdbool.h>
#include <stdint.h>

#include "wallprof/err.h"

struct wp_thread;

/* Has T run time of which only a stop can tell? */
bool wp_unsampled_wants_stop(struct wp_thread *t);

/* A stop found T running, AT_CALL: at the end of a system call.  Owe T's unsampled time
 * as a CPU sample for its stack if it is of there. */
void wp_unsampled_stop(struct wp_thread *t, bool at_call);

/* How much of T's running time stays owed, as only a stop can tell of it: the stacks that
 * CPU samples bring, or stops elsewhere, would be given time in calls. */
uint64_t wp_unsampled_kept(struct wp_thread *t);

/* Record T's unsampled time with no stack if no stop can tell of it, or, where the event
 * is of user code only, none will as T, or the recording, has ENDED.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_unsampled_record(struct wp_thread *t, bool ended);

#endif
