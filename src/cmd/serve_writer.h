/* SPDX-License-Identifier: Apache-2.0 */
/* serve_writer.h - a process that makes one answer.
 *
 * Layer: cmd.
 */
#ifndef WP_SERVE_WRITER_H
#define WP_SERVE_WRITER_H

#include "recording.h"

/* Its name (comm). */
#define WP_WRITER_COMM "wp-answer"

struct wp_writer {
	/* Where its answer comes from, and the file that it writes to; -1: none. */
	int result;
	int file;
	pid_t pid;
	/* When it has ended, unless it does not come back from the kernel
	 * (CLOCK_MONOTONIC). */
	uint64_t until_ns;
};

/* Have JOB of R made, by a process that has R as it is now.  0 or -errno. */
WP_MUST_CHECK
int wp_writer_start(struct wp_writer *writer, struct wp_recording *r,
		    const struct wp_recording_job *job);

/* 0: RET has the answer; -EAGAIN: not yet. */
WP_MUST_CHECK
int wp_writer_take(struct wp_writer *writer, struct wp_serve_answer *ret);

/* Have the process end early. */
void wp_writer_stop(const struct wp_writer *writer);

void wp_writer_clear(struct wp_writer *writer);

#endif
