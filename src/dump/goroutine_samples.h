/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_samples.h - goroutines as samples of a profile.
 *
 * Layer: dump.
 */
#ifndef WP_GOROUTINE_SAMPLES_H
#define WP_GOROUTINE_SAMPLES_H

#include "wallprof/snapshot.h"
#include "wallprof/goroutine_stacks.h"

/* Add the goroutines of LIST, whose stacks and strings are PROFILE's, to its set
 * GOROUTINE, how many were not read to its counters, and to its meta LEFT_OUT, which
 * says whose were not ("": nobody's).  One that runs has the stack of its thread of
 * PROCESS, if the set of THREADS has that.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_goroutine_samples_add(struct wp_profile *profile,
			     struct wp_snapshot_process *process,
			     const struct wp_goroutine_list *list,
			     const char *left_out);

#endif
