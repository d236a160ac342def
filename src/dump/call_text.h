/* SPDX-License-Identifier: Apache-2.0 */
/* call_text.h - a system call and its arguments in words.
 *
 * Layer: dump.
 */
#ifndef WP_CALL_TEXT_H
#define WP_CALL_TEXT_H

#include "wallprof/snapshot.h"

/* Set CALL's text, a string of DUMP, from the rest of CALL, in which a thread
 * of PROCESS sleeps; "" if there is no call.  OBJECT is what its descriptor
 * argument refers to, "" if it has none.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_call_text(struct wp_dump_call *call, struct wp_dump *dump,
		 struct wp_snapshot_process *process, const char *object);

#endif
