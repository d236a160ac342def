/* SPDX-License-Identifier: Apache-2.0 */
/* stop_move.h - has a thread that was stopped moved since it was looked at?
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_STOP_MOVE_H
#define WP_STOP_MOVE_H

#include "wallprof/procfs.h"
#include "wallprof/tracer.h"

struct wp_thread;

/* T stands still, as TIMES, its schedstat, REGS and FACTS, read there, say: set what
 * T->stop tells of its move since its sample. */
void wp_stop_move_settle(struct wp_thread *t, const struct wp_schedstat *times,
			 const struct wp_regs *regs,
			 const struct wp_stop_facts *facts);

#endif
