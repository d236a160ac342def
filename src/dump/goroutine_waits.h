/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_waits.h - what a goroutine waits for, in words.
 *
 * Layer: dump.
 */
#ifndef WP_GOROUTINE_WAITS_H
#define WP_GOROUTINE_WAITS_H

#include "wallprof/go_program.h"
#include "wallprof/snapshot.h"

/* Add to DUMP what FROM, one of ALL and of PROCESS's, waits for; TO is the same
 * goroutine in the dump, whose stack is there.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_goroutine_waits_add(struct wp_dump *dump,
			   struct wp_snapshot_process *process,
			   const struct wp_goroutines *all,
			   const struct wp_goroutine *from,
			   struct wp_dump_goroutine *to);

#endif
