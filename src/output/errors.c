/* SPDX-License-Identifier: Apache-2.0 */
/* errors.c - see errors.h. */
#include "errors.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* What looks divide of S. */
static uint64_t divided_ns(const struct wp_profile_sample *s)
{
	return s->wall_ns > s->exact_ns ? s->wall_ns - s->exact_ns : 0;
}

int wp_errors_init(struct wp_errors *errors, const struct wp_profile *profile,
		   const struct wp_sample_set *set)
{
	*errors = (struct wp_errors){ .set = set, .parts = WP_PAIRS_INIT };
	errors->pools = calloc((size_t)profile->nthreads + 1,
			       sizeof(*errors->pools));
	if (!errors->pools)
		return -ENOMEM;
	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];
		struct wp_errors_pool *pool = &errors->pools[s->key.thread];

		if (s->key.state == WP_STATE_RUNNING ||
		    s->key.state == WP_STATE_RUNNABLE)
			continue;
		pool->ns += (double)divided_ns(s);
		pool->looks += (double)s->looks;
		errors->known |= s->looks > 0;
	}
	return 0;
}

int wp_errors_add(struct wp_errors *errors, uint32_t row,
		  const struct wp_profile_sample *s)
{
	uint32_t i = wp_pairs_add(&errors->parts, row, s->key.thread);

	if (i == UINT32_MAX)
		return -ENOMEM;
	errors->parts.v[i].self += divided_ns(s);
	return 0;
}

/* Of the sum PART of one row and thread. */
static double variance(const struct wp_errors *errors,
		       const struct wp_pair *part)
{
	const struct wp_errors_pool *pool = &errors->pools[part->b];
	double ns = (double)part->self;

	return pool->looks > 0 && pool->ns > ns ?
		       ns * (pool->ns - ns) / pool->looks :
		       0;
}

void wp_errors_finish(struct wp_errors *errors, struct wp_pairs *rows)
{
	double *sums = calloc((size_t)rows->len + 1, sizeof(*sums));

	errors->known &= sums != NULL;
	for (uint32_t i = 0; sums && i < errors->parts.len; i++)
		sums[errors->parts.v[i].a] += variance(errors,
						       &errors->parts.v[i]);
	for (uint32_t i = 0; sums && i < rows->len; i++)
		rows->v[i].total = (uint64_t)sqrt(sums[i]);
	free(sums);
}

void wp_errors_clear(struct wp_errors *errors)
{
	wp_pairs_clear(&errors->parts);
	free(errors->pools);
	errors->pools = NULL;
}
