/* SPDX-License-Identifier: Apache-2.0 */
/* history_timeline.c - see wp_history_cut_timeline of wallprof/history.h. */
#include <errno.h>
#include <stdlib.h>

#include "wallprof/history.h"

/* The part of NS from AT_NS on that is in the time from FROM_NS to TO_NS. */
static uint64_t part_of(uint64_t at_ns, uint64_t ns, uint64_t from_ns,
			uint64_t to_ns)
{
	uint64_t begin = at_ns < from_ns ? from_ns : at_ns;
	uint64_t end = at_ns + ns > to_ns ? to_ns : at_ns + ns;

	return end > begin ? end - begin : 0;
}

/* Each sample in the timeline has its wall time from there. */
static void forget_time(struct wp_profile *p)
{
	struct wp_sample_set *set = &p->sets[WP_PROFILE_WALL];
	const struct wp_timeline *t = &p->timeline;

	for (uint32_t i = 0; i < t->n; i++)
		if (t->v[i].sample != WP_TIMELINE_UNWATCHED)
			set->samples[t->v[i].sample].wall_ns = 0;
}

/* When the first interval of each of P's threads begins; NULL without memory. */
static uint64_t *begins(const struct wp_profile *p)
{
	uint64_t *at_ns = calloc((size_t)p->nthreads + 1, sizeof(*at_ns));

	for (uint32_t i = 0; i < p->nthreads && at_ns; i++)
		at_ns[i] = p->threads[i].first_ns +
			   wp_timeline_dropped_ns(&p->timeline, i);
	return at_ns;
}

int wp_history_forget_timeline(struct wp_profile *p, uint64_t before_ns)
{
	struct wp_timeline *t = &p->timeline;
	uint64_t *at_ns = begins(p);
	uint32_t n = 0, nmerged = 0;

	if (!at_ns)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct wp_timeline_interval one = t->v[i];
		struct wp_timeline_thread *of = &t->threads[one.thread];
		bool stays;

		at_ns[one.thread] += one.ns;
		stays = at_ns[one.thread] > before_ns;
		if (stays) {
			nmerged += i < t->nmerged;
			t->v[n++] = one;
		} else {
			of->dropped_ns += one.ns;
		}
		if (of->last == i + 1)
			of->last = stays ? n : 0;
	}
	t->n = n;
	t->nmerged = nmerged;
	free(at_ns);
	return 0;
}

int wp_history_cut_timeline(struct wp_profile *p, uint64_t from_ns,
			    uint64_t to_ns)
{
	struct wp_sample_set *set = &p->sets[WP_PROFILE_WALL];
	struct wp_timeline *t = &p->timeline;
	uint64_t *at_ns = begins(p);
	uint32_t n = 0;

	if (!at_ns)
		return -ENOMEM;
	forget_time(p);
	for (uint32_t i = 0; i < t->n; i++) {
		struct wp_timeline_interval one = t->v[i];
		uint64_t ns = part_of(at_ns[one.thread], one.ns, from_ns,
				      to_ns);

		at_ns[one.thread] += one.ns;
		if (!ns)
			continue;
		one.ns = ns;
		t->v[n++] = one;
		if (one.sample != WP_TIMELINE_UNWATCHED)
			set->samples[one.sample].wall_ns += ns;
	}
	t->n = n;
	for (uint32_t i = 0; i < set->nsamples; i++)
		if (set->samples[i].exact_ns > set->samples[i].wall_ns)
			set->samples[i].exact_ns = set->samples[i].wall_ns;
	for (uint32_t i = 0; i < t->nthreads; i++) {
		uint64_t first = p->threads[i].first_ns;
		uint64_t begin = first + t->threads[i].dropped_ns;

		if (first < from_ns)
			first = from_ns;
		t->threads[i].last = 0;
		t->threads[i].dropped_ns = begin > first ? begin - first : 0;
	}
	free(at_ns);
	return 0;
}
