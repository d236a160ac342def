/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_time.c - see wp_profile_finish_cpu of wallprof/profile.h.
 *
 * Samples tell the shares of stacks in a thread's CPU time, schedstat its sum.
 */
#include <stdlib.h>

#include "wallprof/profile.h"

/* Sums of one thread's samples. */
struct sums {
	uint64_t cpu_ns;
	uint64_t ready_ns;
	/* Weight of the samples scaled so far, and the CPU time that they got:
	 * the last sample gets the rest, so nothing is lost to rounding. */
	uint64_t seen_ns;
	uint64_t given_ns;
};

static bool is_ready(const struct wp_profile_sample *s)
{
	return s->key.state == WP_STATE_RUNNING ||
	       s->key.state == WP_STATE_RUNNABLE;
}

/* The part of ALL for a further sample with NS of the sum SUM. */
static uint64_t share(struct sums *sums, uint64_t ns, uint64_t sum,
		      uint64_t all)
{
	uint64_t until;

	sums->seen_ns += ns;
	until = (uint64_t)((__uint128_t)all * sums->seen_ns / sum);
	ns = until - sums->given_ns;
	sums->given_ns = until;
	return ns;
}

static void scale_sample(struct wp_profile_sample *s, struct sums *sums,
			 uint64_t cpu_ns)
{
	if (sums->cpu_ns)
		s->cpu_ns = share(sums, s->cpu_ns, sums->cpu_ns, cpu_ns);
	else if (sums->ready_ns && is_ready(s)) {
		s->cpu_count = s->count;
		s->cpu_ns = share(sums, s->wall_ns, sums->ready_ns, cpu_ns);
	}
}

void wp_profile_finish_cpu(struct wp_profile *profile)
{
	struct wp_sample_set *set = &profile->sets[WP_PROFILE_WALL];
	struct sums *sums = calloc((size_t)profile->nthreads + 1,
				   sizeof(*sums));

	/* Without memory the samples stay as they were taken. */
	if (!sums)
		return;
	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];

		sums[s->key.thread].cpu_ns += s->cpu_ns;
		if (is_ready(s))
			sums[s->key.thread].ready_ns += s->wall_ns;
	}
	for (uint32_t i = 0; i < set->nsamples; i++) {
		uint32_t thread = set->samples[i].key.thread;

		scale_sample(&set->samples[i], &sums[thread],
			     profile->threads[thread].cpu_ns);
	}
	free(sums);
}
