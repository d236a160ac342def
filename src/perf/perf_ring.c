/* SPDX-License-Identifier: Apache-2.0 */
/* perf_ring.c - see perf_ring.h; the protocol is that of perf_event_open(2),
 * "MMAP layout": data_head is read before the data, data_tail written after. */
#include "perf_ring.h"

#include <string.h>

#include "perf_decode.h"

static uint8_t *copy_out(const struct wp_perf_ring *ring, uint64_t off,
			 void *buf, size_t len)
{
	uint64_t at = (ring->pos + off) & (ring->size - 1);
	size_t first = len < ring->size - at ? len : (size_t)(ring->size - at);

	memcpy(buf, ring->data + at, first);
	memcpy((uint8_t *)buf + first, ring->data, len - first);
	return buf;
}

/* Find length and time of the record at POS. */
static bool measure(struct wp_perf_ring *ring)
{
	uint64_t left = ring->head - ring->pos;
	struct perf_event_header h;
	size_t off;

	ring->len = 0;
	if (!left)
		return true;
	if (left < sizeof(h) || left > ring->size)
		goto bad;
	copy_out(ring, 0, &h, sizeof(h));
	/* The kernel pads to 8 bytes. */
	if (h.size < sizeof(h) || h.size > left || h.size % 8)
		goto bad;
	ring->len = h.size;
	/* One too short for a time is handed out, and found malformed, at
	 * once. */
	ring->time_ns = 0;
	off = wp_perf_time_off(h.type, h.size);
	if (off)
		copy_out(ring, off, &ring->time_ns, sizeof(ring->time_ns));
	return true;
bad:
	ring->pos = ring->head;
	wp_perf_ring_release(ring);
	return false;
}

bool wp_perf_ring_load(struct wp_perf_ring *ring)
{
	ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	return measure(ring);
}

const void *wp_perf_ring_bytes(const struct wp_perf_ring *ring, void *bounce)
{
	uint64_t at = ring->pos & (ring->size - 1);

	if (ring->len <= ring->size - at)
		return ring->data + at;
	return copy_out(ring, 0, bounce, ring->len);
}

void wp_perf_ring_release(struct wp_perf_ring *ring)
{
	__atomic_store_n(&ring->page->data_tail, ring->pos, __ATOMIC_RELEASE);
}

bool wp_perf_ring_next(struct wp_perf_ring *ring)
{
	ring->pos += ring->len;
	/* Not at every record: the kernel's CPU has the line too. */
	if (ring->pos - ring->page->data_tail >= ring->size / 16)
		wp_perf_ring_release(ring);
	return measure(ring);
}
