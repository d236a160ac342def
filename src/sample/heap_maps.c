/* SPDX-License-Identifier: Apache-2.0 */
/* heap_maps.c - see heap_maps.h. */
#include "heap_maps.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wallprof/lower_bound.h"
#include "wallprof/vec.h"

enum {
	/* vm.max_map_count, 65,530 unless set, bounds what a process has. */
	MAPS_MAX = 1 << 18,
	PENDING_MAX = 1 << 18,
	/* Calls under way that are sampled. */
	FRESH_MAX = 4096,
};

/* Make room for a mapping at I. */
static int insert(struct wp_heap_maps *maps, size_t i,
		  const struct wp_heap_map *map)
{
	if (maps->n == MAPS_MAX) {
		maps->ndropped++;
		return 0;
	}
	if (WP_VEC_ROOM(maps->v, maps->n, maps->cap, 1))
		return -ENOMEM;
	memmove(&maps->v[i + 1], &maps->v[i],
		(maps->n++ - i) * sizeof(*maps->v));
	maps->v[i] = *map;
	return 0;
}

static void drop(struct wp_heap_maps *maps, size_t i)
{
	memmove(&maps->v[i], &maps->v[i + 1],
		(--maps->n - i) * sizeof(*maps->v));
}

/* The first that ends behind AVMA. */
static size_t first_behind(const struct wp_heap_maps *maps, uint64_t avma)
{
	return WP_LOWER_BOUND(maps->n, i, maps->v[i].end_avma <= avma);
}

/* Forget what was mapped in RANGE before its time. */
static int forget(struct wp_heap_maps *maps, const struct wp_heap_mapped *range)
{
	size_t i = first_behind(maps, range->start);
	int rc = 0;

	while (!rc && i < maps->n && maps->v[i].start_avma < range->end) {
		struct wp_heap_map *m = &maps->v[i], rest = *m;

		if (m->time_ns > range->time_ns) {
			i++;
			continue;
		}
		if (m->start_avma < range->start && m->end_avma > range->end) {
			m->end_avma = range->start;
			rest.start_avma = range->end;
			rest.count = 0;
			rc = insert(maps, ++i, &rest);
			break;
		}
		if (m->start_avma < range->start) {
			m->end_avma = range->start;
			i++;
		} else if (m->end_avma > range->end) {
			m->start_avma = range->end;
			i++;
		} else {
			drop(maps, i);
		}
	}
	return rc;
}

int wp_heap_maps_add(struct wp_heap_maps *maps, const struct wp_heap_map *map)
{
	/* The oldest failed, or its record was lost. */
	if (maps->nfresh == FRESH_MAX)
		memmove(maps->fresh, maps->fresh + 1,
			--maps->nfresh * sizeof(*maps->fresh));
	if (WP_VEC_ROOM(maps->fresh, maps->nfresh, maps->cap_fresh, 1))
		return -ENOMEM;
	maps->fresh[maps->nfresh++] = *map;
	return 0;
}

/* Take the sample ID out of those without a place.  False: it is not one. */
static bool take_fresh(struct wp_heap_maps *maps, uint64_t id,
		       struct wp_heap_map *ret)
{
	for (size_t i = maps->nfresh; i-- > 0;) {
		if (maps->fresh[i].id != id)
			continue;
		*ret = maps->fresh[i];
		memmove(&maps->fresh[i], &maps->fresh[i + 1],
			(--maps->nfresh - i) * sizeof(*maps->fresh));
		return true;
	}
	return false;
}

uint64_t wp_heap_maps_take_back(struct wp_heap_maps *maps,
				struct wp_sample_set *set, uint64_t id)
{
	struct wp_heap_map map;

	if (!take_fresh(maps, id, &map) || map.at >= set->nsamples)
		return 0;
	set->samples[map.at].count -= map.count;
	set->samples[map.at].wall_ns -= map.bytes;
	set->samples[map.at].weight_ns -= map.variance;
	return map.bytes;
}

int wp_heap_maps_place(struct wp_heap_maps *maps,
		       const struct wp_heap_mapped *range)
{
	struct wp_heap_map map;
	int rc;
	size_t i;

	if (range->start >= range->end)
		return 0;
	rc = forget(maps, range);
	if (rc || !range->id || !take_fresh(maps, range->id, &map))
		return rc;
	map.start_avma = range->start;
	map.end_avma = range->end;
	map.time_ns = range->time_ns;
	i = first_behind(maps, map.start_avma);
	/* Something newer is there. */
	if (i < maps->n && maps->v[i].start_avma < map.end_avma)
		return 0;
	return insert(maps, i, &map);
}

/* The kernel maps whole pages, and gives back whole ones (munmap(2)). */
static uint64_t end_of_page(uint64_t avma)
{
	const uint64_t in_page = (uint64_t)sysconf(_SC_PAGESIZE) - 1;

	return avma > UINT64_MAX - in_page ? avma : (avma + in_page) & ~in_page;
}

static void keep_pending(void *ctx, const struct wp_heap_mapped *range)
{
	struct wp_heap_maps *maps = ctx;
	struct wp_heap_mapped whole = *range;

	/* A sample is of the bytes that were asked for. */
	if (!range->id)
		whole.end = end_of_page(range->end);

	if (maps->npending == PENDING_MAX ||
	    WP_VEC_ROOM(maps->pending, maps->npending, maps->cap_pending, 1))
		maps->ndropped++;
	else
		maps->pending[maps->npending++] = whole;
}

int wp_heap_maps_read(struct wp_heap_maps *maps, struct wp_heap_probe *probe,
		      uint64_t until_ns)
{
	size_t n = 0;
	int rc = 0;

	wp_heap_probe_each_mapped(probe, keep_pending, maps);
	for (size_t i = 0; i < maps->npending && !rc; i++)
		if (maps->pending[i].time_ns < until_ns)
			rc = wp_heap_maps_place(maps, &maps->pending[i]);
		else
			maps->pending[n++] = maps->pending[i];
	maps->npending = n;
	return rc;
}

void wp_heap_maps_count(const struct wp_heap_maps *maps,
			struct wp_sample_set *set, uint64_t until_ns)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct wp_heap_map *m = &maps->v[i];
		double bytes = m->weight *
			       (double)(m->end_avma - m->start_avma);

		if (m->time_ns >= until_ns || m->at >= set->nsamples)
			continue;
		set->samples[m->at].cpu_count += m->count;
		set->samples[m->at].cpu_ns += (uint64_t)llround(bytes);
		if (m->bytes)
			set->samples[m->at].looks +=
				(uint64_t)((double)m->variance * bytes /
					   (double)m->bytes);
	}
}

void wp_heap_maps_forget_all(struct wp_heap_maps *maps)
{
	maps->n = maps->nfresh = maps->npending = 0;
}

void wp_heap_maps_clear(struct wp_heap_maps *maps)
{
	free(maps->v);
	free(maps->fresh);
	free(maps->pending);
	*maps = (struct wp_heap_maps){ 0 };
}
