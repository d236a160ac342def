/* SPDX-License-Identifier: Apache-2.0 */
/* scan_loader.h - load the programs of a scan in a thread, beside the sampling.
 *
 * Most of the time is the kernel's verifier: 100 ms, so ten ticks at 100 Hz.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_SCAN_LOADER_H
#define WP_SCAN_LOADER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "wallprof/err.h"
#include "wallprof/task_scan.h"

struct wp_scan_loader {
	pthread_t thread;
	/* The thread has begun and has not been joined. */
	bool runs;
	/* The thread has set SCAN and WHY. */
	atomic_bool is_done;
	/* Of how many threads the scan is; the scan, or NULL and why there is none. */
	size_t nthreads;
	struct wp_task_scan *scan;
	struct wp_err why;
};

/* Begin to load programs for NTHREADS threads.  0, or -errno: no thread can be created. */
WP_MUST_CHECK
int wp_scan_loader_begin(struct wp_scan_loader *loader, size_t nthreads);

/* Wait for the thread of LOADER, if one runs, and let go of its scan. */
void wp_scan_loader_close(struct wp_scan_loader *loader);

/* Has the thread of LOADER ended?  Then *RET is its scan, the caller's from now on, or
 * NULL, and *WHY is why there is none. */
bool wp_scan_loader_take(struct wp_scan_loader *loader,
			 struct wp_task_scan **ret, struct wp_err *why);

#endif
