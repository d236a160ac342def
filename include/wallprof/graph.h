/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h - which waits of a dump can never end, and what that says of its
 * processes.
 *
 * Layer: hang.
 */
#ifndef WP_GRAPH_H
#define WP_GRAPH_H

#include "wallprof/dump.h"

/* Add the edges of DUMP's locks and joins to those that it has, and find the
 * threads that are stuck, cycles, roots and waiters.  Idempotent.
 *
 * Returns 0, or -ENOMEM: then none of these is set.
 */
WP_MUST_CHECK
int wp_graph_build(struct wp_dump *dump);

#define WP_VERDICTS(X)                                                               \
	/* Something runs, or waits for what comes from outside. */                  \
	X(HEALTHY, "healthy")                                                        \
	/* A cycle of waits: nothing inside can end it. */                           \
	X(DEADLOCK, "deadlock")                                                      \
	/* No thread ran between two snapshots, and a wait is one that another     \
	 * part of the process must end. */ \
	X(NO_PROGRESS, "no progress")

enum wp_verdict {
#define X(name, text) WP_VERDICT_##name,
	WP_VERDICTS(X)
#undef X
		WP_NVERDICTS
};

const char *wp_verdict_name(enum wp_verdict verdict);

/* Judge the processes of DUMP that are no peers; its graph is built.
 * WHY[0..size) is set to the reason, a sentence without a full stop.
 *
 * Returns 0; -ESRCH when not one of their threads was read, which WHY says;
 * -ENOMEM.
 */
WP_MUST_CHECK
int wp_verdict_find(const struct wp_dump *dump, enum wp_verdict *ret_verdict,
		    char *why, size_t size);

#endif
