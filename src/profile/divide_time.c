/* SPDX-License-Identifier: Apache-2.0 */
/* divide_time.c - divides each thread's time over its samples: see
 * wp_profile_finish_cpu and wp_profile_divide_wall of wallprof/profile.h.
 *
 * The scheduler tells sums, samples tell shares.
 */
#include <stdlib.h>

#include "wallprof/profile.h"

/* A sum that is divided over samples by their weights. */
struct pool {
	uint64_t ns;
	uint64_t weight;
	/* Weight of the samples so far, and what they got: the last one gets the
	 * rest, so nothing is lost to rounding. */
	uint64_t seen;
	uint64_t given_ns;
};

/* What a sample of WEIGHT gets. */
static uint64_t share(struct pool *pool, uint64_t weight)
{
	uint64_t until, ns;

	pool->seen += weight;
	until = (uint64_t)((__uint128_t)pool->ns * pool->seen / pool->weight);
	ns = until - pool->given_ns;
	pool->given_ns = until;
	return ns;
}

static bool is_ready(const struct wp_profile_sample *s)
{
	return wp_types_state_is_ready((enum wp_state)s->key.state);
}

/* One thread. */
struct cpu_sums {
	struct pool cpu;
	/* Where it has no CPU samples: by its running time, or if it has none of
	 * that either by its runnable time. */
	struct pool running;
	struct pool runnable;
};

static void scale_sample(struct wp_profile_sample *s, struct cpu_sums *sums)
{
	struct pool *pool = sums->running.weight ? &sums->running :
						   &sums->runnable;
	enum wp_state state = sums->running.weight ? WP_STATE_RUNNING :
						     WP_STATE_RUNNABLE;

	if (sums->cpu.weight) {
		s->cpu_ns = share(&sums->cpu, s->cpu_ns);
	} else if (pool->weight && s->key.state == state) {
		s->cpu_count = s->count;
		s->cpu_ns = share(pool, s->wall_ns);
	}
}

void wp_profile_finish_cpu(struct wp_profile *profile)
{
	struct wp_sample_set *set = &profile->sets[WP_PROFILE_WALL];
	struct cpu_sums *sums = calloc((size_t)profile->nthreads + 1,
				       sizeof(*sums));

	/* Without memory the samples stay as they were taken. */
	if (!sums)
		return;
	for (uint32_t i = 0; i < profile->nthreads; i++)
		sums[i].cpu.ns = sums[i].running.ns = sums[i].runnable.ns =
			profile->threads[i].cpu_ns;
	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];
		struct cpu_sums *sum = &sums[s->key.thread];

		sum->cpu.weight += s->cpu_ns;
		if (s->key.state == WP_STATE_RUNNING)
			sum->running.weight += s->wall_ns;
		if (s->key.state == WP_STATE_RUNNABLE)
			sum->runnable.weight += s->wall_ns;
	}
	for (uint32_t i = 0; i < set->nsamples; i++)
		scale_sample(&set->samples[i],
			     &sums[set->samples[i].key.thread]);
	free(sums);
}

/* One thread: what looks divide of its waiting time; its running time, which CPU
 * samples divide, or where there are none looks. */
struct wall_sums {
	struct pool waiting;
	struct pool by_cpu;
	struct pool by_looks;
};

struct division {
	struct wp_profile *profile;
	bool by_looks;
	/* By thread; owned. */
	struct wall_sums *sums;
	/* Times of the samples before and after; owned. */
	uint64_t *before, *after;
};

/* The timeline has no place for a sample that has no time yet. */
static bool takes_part(const struct division *d,
		       const struct wp_profile_sample *s)
{
	return s->wall_ns || !d->profile->timeline.max;
}

static void add_to_pools(struct division *d, const struct wp_profile_sample *s)
{
	struct wall_sums *sums = &d->sums[s->key.thread];
	bool part = takes_part(d, s);

	if (!is_ready(s)) {
		sums->waiting.ns += s->wall_ns - s->exact_ns;
		sums->waiting.weight += part ? s->weight_ns : 0;
	} else if (s->key.state == WP_STATE_RUNNING) {
		sums->by_cpu.ns += s->wall_ns;
		sums->by_looks.ns += s->wall_ns;
		sums->by_cpu.weight += part ? s->cpu_ns : 0;
		sums->by_looks.weight += part ? s->weight_ns : 0;
	}
}

static uint64_t divided(struct division *d, const struct wp_profile_sample *s)
{
	struct wall_sums *sums = &d->sums[s->key.thread];
	bool part = takes_part(d, s);

	if (!is_ready(s))
		return sums->waiting.weight ?
			       s->exact_ns + (part ? share(&sums->waiting,
							   s->weight_ns) :
						     0) :
			       s->wall_ns;
	if (s->key.state != WP_STATE_RUNNING)
		return s->wall_ns;
	if (sums->by_cpu.weight && !(d->by_looks && sums->by_looks.weight))
		return part ? share(&sums->by_cpu, s->cpu_ns) : 0;
	if (sums->by_looks.weight)
		return part ? share(&sums->by_looks, s->weight_ns) : 0;
	return s->wall_ns;
}

void wp_profile_divide_wall(struct wp_profile *profile, bool by_looks)
{
	struct wp_sample_set *set = &profile->sets[WP_PROFILE_WALL];
	struct division d = { .profile = profile, .by_looks = by_looks };

	d.sums = calloc((size_t)profile->nthreads + 1, sizeof(*d.sums));
	d.before = calloc((size_t)set->nsamples + 1, sizeof(*d.before));
	d.after = calloc((size_t)set->nsamples + 1, sizeof(*d.after));
	/* Without memory the samples stay as they were taken. */
	if (!d.sums || !d.before || !d.after)
		goto out;
	for (uint32_t i = 0; i < set->nsamples; i++)
		add_to_pools(&d, &set->samples[i]);
	for (uint32_t i = 0; i < set->nsamples; i++) {
		d.before[i] = set->samples[i].wall_ns;
		d.after[i] = divided(&d, &set->samples[i]);
	}
	for (uint32_t i = 0; i < set->nsamples; i++)
		set->samples[i].wall_ns = d.after[i];
	wp_timeline_divide(&profile->timeline, d.before, d.after,
			   set->nsamples);
out:
	free(d.sums);
	free(d.before);
	free(d.after);
}
