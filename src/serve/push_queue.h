/* SPDX-License-Identifier: Apache-2.0 */
/* push_queue.h - profiles that wait for the collector.
 *
 * Layer: serve.  Private to src/serve/.  Reads no clock and no socket.
 */
#ifndef WP_PUSH_QUEUE_H
#define WP_PUSH_QUEUE_H

#include "wallprof/push.h"

enum { WP_PUSH_QUEUE_MAX = 256 };
#define WP_PUSH_QUEUE_BYTES (UINT64_C(64) << 20)

struct wp_push_entry {
	struct wp_push_item item;
	/* Owned. */
	int file;
	uint64_t size;
};

struct wp_push_queue {
	/* v[0..n), oldest first. */
	struct wp_push_entry v[WP_PUSH_QUEUE_MAX];
	uint32_t n;
	/* The first is being sent: it is not dropped. */
	bool is_sending;
	/* The next may be sent from then on, and the pause after another failure. */
	uint64_t next_ns;
	uint64_t pause_ns;
	struct wp_push_stats stats;
};

/* Add ITEM with FILE of SIZE bytes, which is owned from now on; the oldest go where
 * there is no room. */
void wp_push_queue_add(struct wp_push_queue *queue,
		       const struct wp_push_item *item, int file,
		       uint64_t size);

/* The one that is to be sent at NOW_NS; NULL: none. */
const struct wp_push_entry *wp_push_queue_begin(struct wp_push_queue *queue,
						uint64_t now_ns);

/* The collector answered with STATUS, as of HTTP, or 0: not at all, for WHY.  Of a status
 * 3xx WHY is where it sends its clients. */
void wp_push_queue_end(struct wp_push_queue *queue, long status,
		       const char *why, uint64_t now_ns);

#endif
