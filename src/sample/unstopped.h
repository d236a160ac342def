/* SPDX-License-Identifier: Apache-2.0 */
/* unstopped.h - a thread that was to be stopped and was not: where its time goes.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * Each that returns int returns 0 or -ENOMEM.
 */
#ifndef WP_UNSTOPPED_H
#define WP_UNSTOPPED_H

#include "thread.h"

/* T gets no stop because of WHY, so no stack: record what its sample found. */
WP_MUST_CHECK
int wp_unstopped_record(struct wp_thread *t, enum wp_stack_end why);

/* None that was to be stopped in this tick is: --stop=never. */
WP_MUST_CHECK
int wp_unstopped_record_all(struct wp_target *target);

/* T gets no stop now: its time, and what its look stands for, goes to the next stack of
 * the same state. */
WP_MUST_CHECK
int wp_unstopped_owe(struct wp_thread *t);

/* The same, as --max-stopped leaves no room for the stop. */
WP_MUST_CHECK
int wp_unstopped_put_off(struct wp_thread *t);

/* T ended before its stop could be read: what is owed is paid at its end. */
void wp_unstopped_end(struct wp_thread *t);

/* The kernel refused to stop T because of RC. */
WP_MUST_CHECK
int wp_unstopped_refuse(struct wp_thread *t, int rc);

#endif
