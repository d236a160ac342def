/* SPDX-License-Identifier: Apache-2.0 */
/* sample_result.h - how a sample of a thread ended.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_SAMPLE_RESULT_H
#define WP_SAMPLE_RESULT_H

#include <errno.h>

enum wp_sample_result {
	/* The sample is recorded or queued, or its time is owed. */
	WP_SAMPLE_DONE,
	/* The thread ran while it was read. */
	WP_SAMPLE_MOVED,
	/* The thread is to be stopped. */
	WP_SAMPLE_WANTS_STOP,
	/* The thread waits: it is to be sampled once the threads that run have
	 * been stopped (--stop=all). */
	WP_SAMPLE_PUT_OFF,
	/* The thread has ended. */
	WP_SAMPLE_GONE,
	/* The thread could not be read: its time goes to the next sample. */
	WP_SAMPLE_FAILED,
	WP_SAMPLE_NO_MEMORY,
};

/* What -ERRNO, from reading a file of a thread, means for its sample. */
static inline enum wp_sample_result wp_sample_result_of(int rc)
{
	switch (rc) {
	case -ESRCH:
	case -ENOENT:
		return WP_SAMPLE_GONE;
	case -ENOMEM:
		return WP_SAMPLE_NO_MEMORY;
	default:
		return WP_SAMPLE_FAILED;
	}
}

#endif
