/* SPDX-License-Identifier: Apache-2.0 */
/* target_looks.h - look at the threads of a target, in a tick.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * Where the BPF scan is of those threads only that were put on a CPU since the last tick,
 * and they are few, the others are passed over: they wait where they did, and are paid
 * for all such ticks together when that is asked for (wp_threads_settle).
 */
#ifndef WP_TARGET_LOOKS_H
#define WP_TARGET_LOOKS_H

#include "wallprof/err.h"

struct wp_target;

/* 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_target_looks(struct wp_target *target);

#endif
