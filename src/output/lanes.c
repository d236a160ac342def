/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.c - see lanes.h. */
#include "lanes.h"

#include <errno.h>
#include <stdlib.h>

#include "columns.h"

static const struct wp_profile_sample *samples_of(const struct wp_lanes *lanes)
{
	return lanes->profile->sets[lanes->kind].samples;
}

/* Of the timeline, and of the samples whose thread is not in it: count the rows of
 * each thread into first[t + 1], or with PLACE put each in its place. */
static void each_row(struct wp_lanes *lanes, bool place)
{
	const struct wp_sample_set *set = &lanes->profile->sets[lanes->kind];
	const struct wp_timeline *timeline = &lanes->profile->timeline;
	/* It is of wall time. */
	uint32_t n = lanes->kind == WP_PROFILE_WALL &&
				     lanes->profile->meta.has_wall ?
			     timeline->n :
			     0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t thread = timeline->v[i].thread;

		if (place)
			lanes->order[lanes->first[thread]++] = i;
		else
			lanes->first[thread + 1]++;
		lanes->timed[thread] = true;
	}
	for (uint32_t i = 0; i < set->nsamples; i++) {
		uint32_t thread = set->samples[i].key.thread;

		if (lanes->timed[thread])
			continue;
		if (place)
			lanes->order[lanes->first[thread]++] = i;
		else
			lanes->first[thread + 1]++;
	}
}

int wp_lanes_init(struct wp_lanes *lanes, const struct wp_profile *profile,
		  enum wp_profile_kind kind)
{
	uint32_t n = profile->nthreads;

	*lanes = (struct wp_lanes){
		.profile = profile,
		.kind = kind,
		.first = calloc((size_t)n + 2, sizeof(*lanes->first)),
		.timed = calloc((size_t)n + 1, sizeof(*lanes->timed)),
		.begin_ns = n ? UINT64_MAX : 0,
	};
	if (!lanes->first || !lanes->timed)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (profile->threads[i].first_ns < lanes->begin_ns)
			lanes->begin_ns = profile->threads[i].first_ns;
	each_row(lanes, false);
	for (uint32_t i = 0; i < n; i++)
		lanes->first[i + 1] += lanes->first[i];
	lanes->nrows = lanes->first[n];
	lanes->order = calloc((size_t)lanes->nrows + 1, sizeof(*lanes->order));
	if (!lanes->order)
		return -ENOMEM;
	each_row(lanes, true);
	/* Placing has moved each thread's first to the next one's. */
	for (uint32_t i = n; i > 0; i--)
		lanes->first[i] = lanes->first[i - 1];
	lanes->first[0] = 0;
	return 0;
}

void wp_lanes_clear(struct wp_lanes *lanes)
{
	free(lanes->first);
	free(lanes->order);
	free(lanes->timed);
	*lanes = (struct wp_lanes){ 0 };
}

struct wp_lane_row wp_lanes_row(const struct wp_lanes *lanes, uint32_t thread,
				uint32_t i)
{
	const struct wp_profile_sample *samples = samples_of(lanes);
	const struct wp_timeline_interval *one;
	struct wp_columns c;

	if (!lanes->timed[thread]) {
		c = wp_columns_of(&lanes->profile->meta, lanes->kind);
		samples += lanes->order[i];
		return (struct wp_lane_row){
			.sample = samples,
			.key = &samples->key,
			.value = wp_columns_value(samples, &c.v[c.main]),
		};
	}
	one = &lanes->profile->timeline.v[lanes->order[i]];
	if (one->sample == WP_TIMELINE_UNWATCHED)
		return (struct wp_lane_row){ .value = one->ns };
	return (struct wp_lane_row){
		.sample = &samples[one->sample],
		.key = &samples[one->sample].key,
		.value = one->ns,
		.holder = one->holder,
	};
}

uint64_t wp_lanes_start_ns(const struct wp_lanes *lanes, uint32_t thread)
{
	return lanes->profile->threads[thread].first_ns - lanes->begin_ns +
	       wp_timeline_dropped_ns(&lanes->profile->timeline, thread);
}
