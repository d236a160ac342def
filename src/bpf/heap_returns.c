/* SPDX-License-Identifier: Apache-2.0 */
/* heap_returns.c - see heap_returns.h. */
#include "heap_returns.h"

/* Entries are in order of time but for such as two threads made at once; and so many of
 * the oldest may be overwritten while they are read. */
enum { DISORDER = 16 };

/* A CPU's ring: N calls, of which the oldest is at FIRST. */
struct ring {
	const volatile struct wp_heap_return *v;
	uint32_t first;
	uint32_t n;
};

/* The ring goes round where times go back. */
static struct ring ring_at(const volatile struct wp_heap_return *v)
{
	uint32_t low = 1, high = WP_HEAP_RETURNS;

	if (!v[0].time_ns)
		return (struct ring){ v, 0, 0 };
	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (v[mid].time_ns < v[0].time_ns)
			high = mid;
		else
			low = mid + 1;
	}
	if (low == WP_HEAP_RETURNS)
		return (struct ring){ v, 0, WP_HEAP_RETURNS };
	if (!v[low].time_ns)
		return (struct ring){ v, 0, low };
	return (struct ring){ v, low, WP_HEAP_RETURNS };
}

static const volatile struct wp_heap_return *entry(const struct ring *ring,
						   uint32_t i)
{
	return &ring->v[(ring->first + i) % WP_HEAP_RETURNS];
}

/* How many of RING's calls are of before TIME_NS, or almost. */
static uint32_t count_before(const struct ring *ring, uint64_t time_ns)
{
	uint32_t low = 0, high = ring->n;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (entry(ring, mid)->time_ns <= time_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return ring->n - low < DISORDER ? ring->n : low + DISORDER;
}

/* The last of RING's calls that CALL asks for, into *BEST if that is an earlier one. */
static void search(const struct ring *ring, const struct wp_heap_return *call,
		   struct wp_heap_return *best)
{
	for (uint32_t i = count_before(ring, call->time_ns); i-- > 0;) {
		struct wp_heap_return found = *entry(ring, i);

		if (found.time_ns + 1 <= best->time_ns)
			return;
		if (found.time_ns > call->time_ns || found.sp != call->sp ||
		    found.pc == call->pc)
			continue;
		*best = found;
		return;
	}
}

uint64_t wp_heap_returns_find(const struct wp_heap_returns *returns,
			      const struct wp_heap_return *call)
{
	struct wp_heap_return best = { 0 };

	for (uint32_t i = 0; i < returns->nrings; i++) {
		struct ring ring = ring_at(returns->v + i * WP_HEAP_RETURNS);

		search(&ring, call, &best);
	}
	/* What has been overwritten may have been a later one.  Last, as the rings go
	 * round meanwhile; and the very oldest may have just become the latest. */
	for (uint32_t i = 0; best.pc && i < returns->nrings; i++) {
		struct ring ring = ring_at(returns->v + i * WP_HEAP_RETURNS);

		if (ring.n == WP_HEAP_RETURNS &&
		    entry(&ring, DISORDER)->time_ns > best.time_ns)
			return 0;
	}
	return best.pc;
}
