/* SPDX-License-Identifier: Apache-2.0 */
/* heap_objects.c - see heap_objects.h. */
#include "heap_objects.h"

#include <errno.h>
#include <stdlib.h>

#include "wallprof/budget.h"
#include "wallprof/clock.h"
#include "wallprof/hash.h"
#include "wallprof/vec.h"

enum { FIRST_SWEEP = 1 << 16 };
/* A call that is sampled has returned by then, and its object lives or not. */
#define SETTLE_NS WP_NS_PER_S

static struct wp_heap_object *find(struct wp_heap_objects *o, uint64_t id)
{
	uint32_t i = WP_INDEX_FIND(&o->index, wp_hash_u64(id), k,
				   o->v[k].id == id);

	return i == WP_INDEX_NONE ? NULL : &o->v[i];
}

static void mark_live(void *ctx, uint64_t id)
{
	struct wp_heap_object *object = find(ctx, id);

	if (object)
		object->is_live = true;
}

static int find_live(struct wp_heap_objects *o, struct wp_heap_probe *probe)
{
	for (size_t i = 0; i < o->n; i++)
		o->v[i].is_live = false;
	return wp_heap_probe_each_live(probe, mark_live, o);
}

/* Forget the objects that are freed. */
static int sweep(struct wp_heap_objects *o, struct wp_heap_probe *probe,
		 uint64_t now)
{
	size_t n = 0;
	int rc = 0;

	o->sweep_at = 2 * o->n;
	if (find_live(o, probe))
		return 0;
	wp_index_clear(&o->index);
	for (size_t i = 0; i < o->n && !rc; i++) {
		if (!o->v[i].is_live && o->v[i].time_ns + SETTLE_NS < now)
			continue;
		rc = wp_index_add(&o->index, wp_hash_u64(o->v[i].id),
				  (uint32_t)n);
		o->v[n++] = o->v[i];
	}
	wp_budget_give(WP_BUDGET_HEAP, (o->n - n) * sizeof(*o->v));
	o->n = n;
	o->sweep_at = 2 * n > FIRST_SWEEP ? 2 * n : FIRST_SWEEP;
	return rc;
}

int wp_heap_objects_add(struct wp_heap_objects *o, struct wp_heap_probe *probe,
			const struct wp_heap_object *object)
{
	int rc = 0;

	if (o->n >= (o->sweep_at ? o->sweep_at : FIRST_SWEEP))
		rc = sweep(o, probe, object->time_ns);
	if (rc)
		return rc;
	if (o->n == UINT32_MAX ||
	    !wp_budget_take(WP_BUDGET_HEAP, sizeof(*object))) {
		o->ndropped++;
		return 0;
	}
	if (WP_VEC_ROOM(o->v, o->n, o->cap, 1) ||
	    wp_index_add(&o->index, wp_hash_u64(object->id), (uint32_t)o->n))
		return -ENOMEM;
	o->v[o->n++] = *object;
	return 0;
}

uint64_t wp_heap_objects_take_back(struct wp_heap_objects *o,
				   struct wp_sample_set *set, uint64_t id)
{
	struct wp_heap_object *object = find(o, id);
	uint64_t bytes;

	if (!object || object->at >= set->nsamples)
		return 0;
	bytes = object->bytes;
	set->samples[object->at].count -= object->count;
	set->samples[object->at].wall_ns -= object->bytes;
	set->samples[object->at].weight_ns -= object->variance;
	object->count = 0;
	object->bytes = object->variance = 0;
	return bytes;
}

int wp_heap_objects_count(struct wp_heap_objects *o,
			  struct wp_heap_probe *probe,
			  struct wp_sample_set *set, uint64_t until_ns)
{
	int rc = find_live(o, probe);

	for (size_t i = 0; !rc && i < o->n; i++) {
		const struct wp_heap_object *object = &o->v[i];

		if (!object->is_live || object->time_ns >= until_ns ||
		    object->at >= set->nsamples)
			continue;
		set->samples[object->at].cpu_count += object->count;
		set->samples[object->at].cpu_ns += object->bytes;
		set->samples[object->at].looks += object->variance;
	}
	return rc;
}

void wp_heap_objects_forget(struct wp_heap_objects *o)
{
	wp_budget_give(WP_BUDGET_HEAP, o->n * sizeof(*o->v));
	wp_index_clear(&o->index);
	o->n = 0;
}

void wp_heap_objects_clear(struct wp_heap_objects *o)
{
	wp_heap_objects_forget(o);
	free(o->v);
	*o = (struct wp_heap_objects){ 0 };
}
