/* SPDX-License-Identifier: Apache-2.0 */
/* pprof_intervals.c - see pprof_read.h: the timeline of the samples. */

#include "pprof_read.h"

/* Past so many, which take 384 MiB, intervals are merged. */
enum { INTERVALS_MAX = 1 << 24 };

/* The set's index of sample NUMBER of the file, from 1. */
static uint32_t sample_of(struct wp_pprof *p, uint64_t number)
{
	if (number && number <= p->nsamples)
		return p->samples[number - 1];
	wp_pprof_bad(p, "its timeline has a sample that is not there");
	return 0;
}

/* Add one interval; *THREAD is set by the first that tells. */
static void read_interval(struct wp_pprof *p, struct wp_reader *r,
			  uint32_t *thread, uint64_t *unwatched)
{
	const struct wp_sample_set *set = &p->profile->sets[p->kind];
	uint64_t number = wp_read_uleb(r), ns = wp_read_uleb(r);
	uint64_t holder = wp_read_uleb(r);
	struct wp_timeline *timeline = &p->profile->timeline;
	uint32_t sample;

	if (r->failed || ns > INT64_MAX / 1024) {
		wp_pprof_bad(p, r->failed ? "its timeline is cut short" :
					    "its timeline has an interval of "
					    "over 104 days");
		return;
	}
	if (!number) {
		*unwatched += ns;
		return;
	}
	sample = sample_of(p, number);
	if (p->rc)
		return;
	if (*thread == UINT32_MAX)
		*thread = set->samples[sample].key.thread;
	if (set->samples[sample].key.thread != *thread)
		wp_pprof_bad(p, "its timeline mixes threads");
	else if (wp_timeline_add(timeline, *thread, WP_TIMELINE_UNWATCHED,
				 *unwatched) ||
		 wp_timeline_add(timeline, *thread, sample, ns))
		wp_pprof_no_memory(p);
	*unwatched = 0;
	if (holder && !p->rc) {
		sample = sample_of(p, holder);
		if (!p->rc)
			wp_timeline_set_holder(timeline, *thread,
					       set->samples[sample].key.thread);
	}
	wp_timeline_end_interval(timeline, *thread);
}

static void read_thread(struct wp_pprof *p, struct wp_reader *r)
{
	uint64_t start = wp_read_uleb(r), n = wp_read_uleb(r), unwatched = 0;
	uint32_t thread = UINT32_MAX;

	while (n-- && !p->rc)
		read_interval(p, r, &thread, &unwatched);
	if (thread != UINT32_MAX && start <= INT64_MAX / 1024)
		p->profile->threads[thread].first_ns = start;
}

void wp_pprof_read_timeline(struct wp_pprof *p, struct wp_reader data)
{
	/* Each interval takes three bytes of the file. */
	uint64_t max = wp_reader_left(&data) / 3 + 1;

	p->profile->timeline.max = max < INTERVALS_MAX ? (uint32_t)max :
							 INTERVALS_MAX;
	if (wp_read_uleb(&data) != 1)
		return;
	while (!p->rc && wp_reader_left(&data))
		read_thread(p, &data);
}
