/* SPDX-License-Identifier: Apache-2.0 */
/* call_text.h - the system call that a thread sleeps in, in words.
 *
 * Layer: dump.
 */
#ifndef WP_CALL_TEXT_H
#define WP_CALL_TEXT_H

#include "wallprof/snapshot.h"

/* Put into *RET what call THREAD of PROCESS sleeps in, with its arguments;
 * OBJECT: what a descriptor among them is, "" if there is none.  A string id
 * of DUMP's; 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_call_text(uint32_t *ret, struct wp_dump *dump,
		 struct wp_snapshot_process *look,
		 const struct wp_dump_thread *thread, const char *object);

#endif
