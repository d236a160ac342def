/* SPDX-License-Identifier: Apache-2.0 */
/* call_text.h - a system call and its arguments in words.
 *
 * Layer: dump.
 */
#ifndef WP_CALL_TEXT_H
#define WP_CALL_TEXT_H

#include "wallprof/snapshot.h"

/* What was found of a blocked call. */
struct wp_call_found {
	/* Which thread, whose descriptors they are; 0: the first. */
	pid_t tid;
	/* What its descriptor argument refers to, "" if it has none. */
	const char *object;
	/* The kernel's function that it sleeps in, for who waits for the disk; NULL: not
	 * known. */
	const char *wchan;
	/* Copied while the thread slept in it; NULL: nothing. */
	const struct wp_call_memory *memory;
	/* The thread has moved: names of descriptors and processes, which are
	 * read now, are left out. */
	bool moved;
};

/* Set CALL's text, one of STRINGS, from the rest of CALL, in which a thread
 * of PROCESS sleeps, and FOUND; "" if there is no call.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_call_text(struct wp_dump_call *call, struct wp_intern *strings,
		 struct wp_snapshot_process *process,
		 const struct wp_call_found *found);

#endif
