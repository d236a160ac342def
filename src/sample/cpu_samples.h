/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_samples.h - CPU samples of a target, by perf events.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_CPU_SAMPLES_H
#define WP_CPU_SAMPLES_H

#include "wallprof/err.h"
#include "wallprof/perf.h"
#include "wallprof/procfs.h"

struct wp_target;
struct wp_thread;

/* Open perf events.  Where they are not permitted, ERR says why, and the CPU time of
 * each thread is divided over its running samples. */
void wp_cpu_samples_open(struct wp_target *target, struct wp_err *err);

/* Take RECORD, a CPU sample of TARGET by the loop's events.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_cpu_samples_take(struct wp_target *target,
			const struct wp_perf_record *record);

/* Record the CPU samples that perf events have taken.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_cpu_samples_read(struct wp_target *target);

/* The same after the last tick. */
WP_MUST_CHECK
int wp_cpu_samples_finish(struct wp_target *target);

void wp_cpu_samples_close(struct wp_target *target);

#endif
