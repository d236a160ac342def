/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_perfring.c - a ring of perf records.
 *
 * The first byte says which fields samples have, the second where the ring was
 * read up to (in 8 bytes), then come the bytes of the ring.
 *
 * Layer: perf.
 */
#include "../../src/perf/perf_decode.h"
#include "../../src/perf/perf_ring.h"
#include "fuzz.h"

static uint64_t sample_type_of(uint8_t flags)
{
	return WP_PERF_SAMPLE_BASE |
	       (flags & 1 ? (uint64_t)PERF_SAMPLE_CALLCHAIN : 0) |
	       (flags & 2 ? (uint64_t)PERF_SAMPLE_REGS_USER : 0) |
	       (flags & 4 ? (uint64_t)PERF_SAMPLE_STACK_USER : 0);
}

static bool is_inside(const void *p, size_t n, const uint8_t *bytes, size_t len)
{
	const uint8_t *at = p;

	return at >= bytes && at <= bytes + len &&
	       n <= (size_t)(bytes + len - at);
}

static void parse(uint64_t sample_type, const uint8_t *bytes, size_t len)
{
	struct wp_perf_writer writer = { 0 };
	struct wp_perf_record rec;

	if (wp_perf_parse(&rec, &writer, sample_type, bytes, len))
		return;
	FUZZ_CHECK(rec.type <= WP_PERF_UNTHROTTLE);
	FUZZ_CHECK(!rec.stack == !rec.stack_len);
	FUZZ_CHECK(!rec.kernel_chain == !rec.kernel_len);
	if (rec.stack)
		FUZZ_CHECK(is_inside(rec.stack, rec.stack_len, bytes, len));
	if (rec.kernel_chain)
		FUZZ_CHECK(is_inside(rec.kernel_chain,
				     rec.kernel_len * sizeof(uint64_t), bytes,
				     len));
}

static void read_ring(struct wp_perf_ring *ring, uint64_t sample_type,
		      void *bounce)
{
	uint64_t start = ring->pos;
	size_t most = ring->size / 8, n = 0;
	bool ok = wp_perf_ring_load(ring);

	while (ok && ring->len) {
		/* Forwards, and never more than there is. */
		FUZZ_CHECK(n++ < most);
		FUZZ_CHECK(ring->pos - start <= ring->size);
		FUZZ_CHECK(ring->len <= ring->head - ring->pos);
		parse(sample_type, wp_perf_ring_bytes(ring, bounce), ring->len);
		ok = wp_perf_ring_next(ring);
	}
	FUZZ_CHECK(ring->pos == ring->head && !ring->len);
	wp_perf_ring_release(ring);
	FUZZ_CHECK(ring->page->data_tail == ring->head);
}

/* The records as they follow each other, without a ring. */
static void read_straight(uint64_t sample_type, const uint8_t *p, size_t left)
{
	struct perf_event_header h;

	while (left >= sizeof(h)) {
		uint8_t *exact;

		memcpy(&h, p, sizeof(h));
		if (h.size < sizeof(h) || h.size > left)
			return;
		exact = malloc(h.size);
		if (!exact)
			return;
		memcpy(exact, p, h.size);
		parse(sample_type, exact, h.size);
		FUZZ_CHECK(wp_perf_time_off(h.type, h.size) + 8 <= h.size ||
			   !wp_perf_time_off(h.type, h.size));
		free(exact);
		p += h.size;
		left -= h.size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_event_mmap_page *page = calloc(1, sizeof(*page));
	uint8_t *bytes = calloc(1, 65536), *bounce = malloc(WP_PERF_RECORD_MAX);
	struct wp_perf_ring ring = { .page = page, .data = bytes, .size = 64 };
	uint64_t sample_type;

	if (size < 2 || size > 65536 || !page || !bytes || !bounce)
		goto out;
	sample_type = sample_type_of(data[0]);
	while (ring.size < size - 2)
		ring.size *= 2;
	/* From POS on, around the end. */
	ring.pos = UINT64_C(8) * data[1] + UINT64_MAX - ring.size + 1;
	for (size_t i = 0; i < size - 2; i++)
		bytes[(ring.pos + i) & (ring.size - 1)] = data[2 + i];
	page->data_tail = ring.pos;
	page->data_head = ring.pos + size - 2;
	read_ring(&ring, sample_type, bounce);
	read_straight(sample_type, data + 2, size - 2);
out:
	free(page);
	free(bytes);
	free(bounce);
	return 0;
}
