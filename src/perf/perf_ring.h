/* SPDX-License-Identifier: Apache-2.0 */
/* perf_ring.h - take records out of a ring that the kernel fills.
 *
 * Layer: perf.  Private to src/trace/.
 */
#ifndef WP_TRACE_PERF_RING_H
#define WP_TRACE_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A record tells its size in 16 bits: no record is longer. */
enum { WP_PERF_RECORD_MAX = 65536 };

struct wp_perf_ring {
	/* The kernel's page, where data_head and data_tail are; borrowed. */
	struct perf_event_mmap_page *page;
	/* data[0..size), SIZE a power of two; borrowed. */
	const uint8_t *data;
	uint64_t size;
	/* Read up to here, of what was there at the last load; both count on
	 * for ever, modulo 2^64. */
	uint64_t pos;
	uint64_t head;
	/* Of the record at POS, which is LEN bytes long; LEN 0: there is none.
	 */
	uint64_t time_ns;
	size_t len;
};

/* See what there is now.  False: what was there is no sequence of records,
 * and the rest of it is dropped. */
bool wp_perf_ring_load(struct wp_perf_ring *ring);

/* The bytes of the record at POS (LEN is not 0): in the ring, or in
 * BOUNCE[0..WP_PERF_RECORD_MAX) when it lies around the end.  Aligned to 8 if
 * both are. */
const void *wp_perf_ring_bytes(const struct wp_perf_ring *ring, void *bounce);

/* Go to the next record, giving room back now and then.  False as for load. */
bool wp_perf_ring_next(struct wp_perf_ring *ring);

/* Give all that was read back to the kernel. */
void wp_perf_ring_release(struct wp_perf_ring *ring);

#endif
