/* SPDX-License-Identifier: Apache-2.0 */
/* hang_watch.h - has the process that is recorded come to hang?
 *
 * Layer: cmd.
 */
#ifndef WP_HANG_WATCH_H
#define WP_HANG_WATCH_H

#include "digest.h"
#include "recording.h"
#include "serve_writer.h"

struct wp_hang_watch {
	enum {
		WP_HANG_WATCH_IDLE,
		/* Two snapshots are compared. */
		WP_HANG_WATCH_CHECKS,
		/* A dump and the last minute are written. */
		WP_HANG_WATCH_KEEPS,
	} state;
	struct wp_writer writer;
	/* When to check next, and the pause after that; 0: anew. */
	uint64_t next_ns;
	uint64_t pause_ns;
	/* When files were written last, and whether what was seen then holds still:
	 * a verdict, or a threshold. */
	uint64_t kept_ns;
	bool is_hung;
	bool is_over;
	/* What is to be kept: why, and with a verdict what the check printed, else -1. */
	char reason[WP_SERVE_TEXT_SIZE];
	int report;
};

void wp_hang_watch_init(struct wp_hang_watch *watch);

/* What OPTIONS' threshold D is over, in TEXT: "threads in wait=lock: 75 % (over 50 %)".
 * False: none. */
bool wp_hang_watch_is_over(const struct wp_options *options,
			   const struct wp_digest *d, uint64_t now_ns,
			   char *text, size_t size);

/* Is it time for a check at NOW_NS?  At once if threads have just come to wait for
 * locks, then ever more seldom. */
bool wp_hang_watch_is_due(struct wp_hang_watch *watch,
			  const struct wp_options *options,
			  const struct wp_digest *d, uint64_t now_ns);

/* After a mark that D has: begin what is due, take what is done, into STATUS.  Once the
 * process has ended, when there are no marks: only take it, and let STATUS have no hang. */
void wp_hang_watch_step(struct wp_hang_watch *watch, struct wp_recording *r,
			const struct wp_digest *d,
			struct wp_recorder_status *status);

#endif
