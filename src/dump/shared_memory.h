/* SPDX-License-Identifier: Apache-2.0 */
/* shared_memory.h - processes that have one memory (clone(2), CLONE_VM).
 *
 * Layer: dump.
 */
#ifndef WP_SHARED_MEMORY_H
#define WP_SHARED_MEMORY_H

#include "wallprof/snapshot.h"

/* Mark the processes of SNAPSHOT whose memory another process has, too, or may have, if a
 * verdict may be made of their waits; a lock of theirs whose holder is gone has one that is
 * not recorded.  Takes 1 us for each process of the machine and of these, half a second at
 * most. */
void wp_shared_memory_find(struct wp_snapshot *snapshot);

#endif
