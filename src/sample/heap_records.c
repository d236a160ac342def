/* SPDX-License-Identifier: Apache-2.0 */
/* heap_records.c - what the BPF program sends becomes samples: see heap_state.h. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "heap_state.h"
#include "sampler_loop.h"
#include "stack_walk.h"
#include "target.h"
#include "threads.h"

/* Readers add values up as int64.  What a process maps and does not touch costs it
 * nothing: 64 TiB at a time have passed that in half a minute. */
#define BYTES_MAX ((uint64_t)INT64_MAX / 2)

/* A number near W whose mean is W. */
static uint32_t round_at_random(struct wp_sampler *loop, double w)
{
	double unit = (double)(wp_random_next(&loop->random) >> 11) * 0x1p-53;

	return w + unit < UINT32_MAX ? (uint32_t)(w + unit) : UINT32_MAX;
}

/* The variance of BYTES, those of a sample times its WEIGHT, in bytes * the rate: it was
 * sampled with a chance of 1 / WEIGHT (Horvitz and Thompson, "A generalization of
 * sampling without replacement", 1952). */
static uint64_t variance(const struct wp_sampler *loop, uint64_t bytes,
			 double weight)
{
	double v = (double)bytes * (1 - 1 / weight) * (double)bytes /
		   (double)loop->options.heap_rate;

	return v < (double)BYTES_MAX ? (uint64_t)v : BYTES_MAX;
}

/* Remove the allocator's frames from STACK, or say that its functions are sampled by
 * themselves: false. */
static bool strip(const struct wp_target *target, bool is_map,
		  struct wp_stack *stack)
{
	const struct wp_heap_sites *sites = &target->heap_samples->sites;
	uint32_t inner;

	if (!is_map)
		return wp_heap_sites_strip(sites, stack);
	inner = wp_heap_sites_inner(sites, stack);
	if (inner && !target->loop->options.heap_large)
		return false;
	/* A stack that ends there says why by its last frame. */
	if (inner == stack->depth)
		return true;
	stack->frames += inner;
	stack->cfa_avma += inner;
	stack->depth -= inner;
	return true;
}

/* OBJECT, by DATA and of weight WEIGHT, may be in use at the end. */
static int keep_object(struct wp_heap_samples *h,
		       const struct wp_heap_record *data,
		       const struct wp_heap_object *object, double weight)
{
	const struct wp_heap_map map = {
		.id = data->id,
		.at = object->at,
		.count = object->count,
		.weight = weight,
		.bytes = object->bytes,
		.variance = object->variance,
	};

	return wp_heap_call_is_map(data->call) ?
		       wp_heap_maps_add(&h->maps, &map) :
		       wp_heap_objects_add(&h->objects, h->probe, object);
}

static int add_sample(struct wp_target *target, const struct wp_thread *t,
		      const struct wp_perf_record *record,
		      const struct wp_heap_record *data)
{
	struct wp_heap_samples *h = target->heap_samples;
	struct wp_heap_sums *sums = &target->common->heap;
	struct wp_sample_set *set = &target->profile->sets[WP_PROFILE_HEAP];
	bool is_map = wp_heap_call_is_map(data->call);
	double weight = data->threshold ? 0x1p32 / data->threshold : 1;
	double bytes = weight * (double)data->size;
	struct wp_heap_object object = {
		.id = data->id,
		.time_ns = record->time_ns,
		.at = UINT32_MAX,
		.count = round_at_random(target->loop, weight),
		.bytes = bytes < (double)BYTES_MAX ? (uint64_t)llround(bytes) :
						     BYTES_MAX,
	};
	struct wp_stack_walk walk = wp_stack_walk_sample(target, &h->events,
							 record);
	struct wp_sample_key key = { .thread = t->index };
	int rc;

	/* What fails is tried again, and said, by the next look. */
	rc = h->sites.tried == target->space.view.generation ?
		     0 :
		     wp_heap_sites_search(&h->sites, target, h->probe, NULL);
	if (rc == -ENOMEM)
		return rc;
	if ((is_map && data->size < target->loop->options.heap_least) ||
	    !strip(target, is_map, &walk.stack)) {
		h->ninner++;
		return 0;
	}
	key.stack = wp_stack_walk_intern(target, &walk);
	if (key.stack == UINT32_MAX)
		return -ENOMEM;
	object.variance = variance(target->loop, object.bytes, weight);
	if (object.bytes > BYTES_MAX - sums->bytes) {
		sums->nbeyond++;
		return 0;
	}
	sums->bytes += object.bytes;
	rc = wp_profile_add_sample_hinted(target->profile, WP_PROFILE_HEAP,
					  &key, &object.at, object.count,
					  object.bytes);
	if (rc || object.at >= set->nsamples)
		return rc;
	set->samples[object.at].weight_ns += object.variance;
	if (wp_heap_call_may_throw(data->call)) {
		h->nthrowing++;
		return 0;
	}
	return keep_object(h, data, &object, weight);
}

/* The call of sample ID failed. */
static void take_back(struct wp_target *target, uint64_t id)
{
	struct wp_sample_set *set = &target->profile->sets[WP_PROFILE_HEAP];
	struct wp_heap_samples *h = target->heap_samples;

	target->common->heap.bytes -= wp_heap_objects_take_back(&h->objects,
								set, id) +
				      wp_heap_maps_take_back(&h->maps, set, id);
}

static int take_record(struct wp_target *target,
		       const struct wp_perf_record *record)
{
	struct wp_heap_record data;
	struct wp_thread *t;

	if (wp_heap_probe_tier(target->heap_samples->probe) !=
	    WP_HEAP_TIER_PERF)
		wp_heap_children_note(&target->heap_samples->children,
				      target->process->pid, record);
	if (record->pid != target->process->pid)
		return 0;
	if (record->type == WP_PERF_NAME && record->by_exec) {
		wp_heap_objects_forget(&target->heap_samples->objects);
		wp_heap_maps_forget_all(&target->heap_samples->maps);
	}
	if (record->type != WP_PERF_SAMPLE_OUTPUT ||
	    record->raw_len < sizeof(data))
		return 0;
	memcpy(&data, record->raw, sizeof(data));
	if (data.call == WP_HEAP_FAILED) {
		take_back(target, data.id);
		return 0;
	}
	t = wp_threads_find_or_add(target, record->tid);
	if (!t)
		return -ENOMEM;
	return t->watched ? add_sample(target, t, record, &data) : 0;
}

int wp_heap_records_read(struct wp_target *target, uint64_t until_ns)
{
	struct wp_heap_samples *h = target->heap_samples;
	struct wp_perf_record record;
	int rc = 0;

	while (!rc && wp_perf_source_next(&h->events, until_ns, &record))
		rc = take_record(target, &record);
	return rc ? rc : wp_heap_maps_read(&h->maps, h->probe, until_ns);
}
