/* SPDX-License-Identifier: Apache-2.0 */
/* host_events.h - one perf reader per CPU for all processes.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * Where several processes are recorded, events of CPUs bring the CPU samples of all
 * of them, and tell which processes start, end and change their names.
 */
#ifndef WP_HOST_EVENTS_H
#define WP_HOST_EVENTS_H

#include "wallprof/err.h"

struct wp_sampler;

/* Open them, if LOOP records several processes.  Without permission there are none:
 * each target has events of its own then, and the caller of the sampler looks for new
 * processes itself. */
void wp_host_events_open(struct wp_sampler *loop, struct wp_err *err);

/* Take what there is: before the targets begin a tick, and after the last.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_host_events_read(struct wp_sampler *loop);
WP_MUST_CHECK
int wp_host_events_finish(struct wp_sampler *loop);

void wp_host_events_close(struct wp_sampler *loop);

#endif
