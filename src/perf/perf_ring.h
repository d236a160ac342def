/* SPDX-License-Identifier: Apache-2.0 */
/* perf_ring.h - reads records from a ring buffer that the kernel fills.
 *
 * Layer: perf.  Private to src/perf/.
 */
#ifndef WP_PERF_RING_H
#define WP_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A record has 16 bits for its size. */
enum { WP_PERF_RECORD_MAX = 65536 };

struct wp_perf_ring {
	/* The kernel's page, with data_head and data_tail; borrowed. */
	struct perf_event_mmap_page *page;
	/* data[0..size), SIZE a power of two; borrowed. */
	const uint8_t *data;
	uint64_t size;
	/* Position of the next record, and end of what was there at the last
	 * load; both count up modulo 2^64. */
	uint64_t pos;
	uint64_t head;
	/* Time and length of the record at POS; LEN 0: there is none. */
	uint64_t time_ns;
	size_t len;
};

/* Load data_head and find the first record.  False: what was there is no sequence
 * of records, and the rest of it is dropped. */
bool wp_perf_ring_load(struct wp_perf_ring *ring);

/* The bytes of the record at POS (LEN is not 0): in the ring buffer, or copied to
 * BOUNCE[0..WP_PERF_RECORD_MAX) if the record wraps around its end.  Aligned to 8
 * if both are. */
const void *wp_perf_ring_bytes(const struct wp_perf_ring *ring, void *bounce);

/* Go to the next record; give room back to the kernel now and then.  False as for
 * wp_perf_ring_load. */
bool wp_perf_ring_next(struct wp_perf_ring *ring);

/* Give the room of all records before POS back to the kernel. */
void wp_perf_ring_release(struct wp_perf_ring *ring);

#endif
