/* SPDX-License-Identifier: Apache-2.0 */
/* heap_samples.h - samples of what a target allocates, and of what of that is in use.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_HEAP_SAMPLES_H
#define WP_HEAP_SAMPLES_H

#include <stdbool.h>

#include "wallprof/err.h"

struct wp_target;

/* Begin to sample allocations; a Go program's own heap profile is read at the end
 * instead.  Calls are counted for some milliseconds first: where probes would take more
 * of the target's time than they may, they are removed again, and that is an error.
 *
 * 0; -EDQUOT: they would cost too much; -ENOENT: no allocator is found; -ENOTSUP,
 * -EPERM, -ENOMEM.  ERR says why, and what to do. */
WP_MUST_CHECK
int wp_heap_samples_open(struct wp_target *target, struct wp_err *err);

/* Take the samples that have come, and probe the allocators of files that are mapped
 * since.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_heap_samples_tick(struct wp_target *target);

/* Is TARGET, which has just begun, to be looked at again as soon as can be? */
bool wp_heap_samples_hurry(const struct wp_target *target);

/* After the last tick: find what is in use.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_heap_samples_finish(struct wp_target *target);

void wp_heap_samples_close(struct wp_target *target);

#endif
