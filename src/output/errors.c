/* SPDX-License-Identifier: Apache-2.0 */
/* errors.c - see errors.h. */
#include "errors.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "wallprof/vec.h"

static enum wp_errors_part part_of(const struct wp_profile_sample *s)
{
	return wp_types_state_is_ready((enum wp_state)s->key.state) ?
		       WP_ERRORS_READY :
		       WP_ERRORS_WAITS;
}

/* What samples divide of S. */
static double divided_ns(const struct wp_errors *errors,
			 const struct wp_profile_sample *s)
{
	uint64_t ns = wp_profile_time(errors->profile, errors->kind, s);

	return ns > s->exact_ns ? (double)(ns - s->exact_ns) : 0;
}

static const struct wp_sample_set *set_of(const struct wp_errors *errors)
{
	return &errors->profile->sets[errors->kind];
}

const struct wp_profile_sample *wp_errors_sample(const struct wp_errors *errors,
						 uint32_t i)
{
	return &set_of(errors)->samples[errors->order[i]];
}

static struct wp_errors_pool *pool_of(const struct wp_errors *errors,
				      uint32_t thread, enum wp_errors_part part)
{
	return &errors->pools[(size_t)thread * WP_ERRORS_NPARTS + part];
}

/* Of the bytes of S. */
static double heap_variance(const struct wp_errors *errors,
			    const struct wp_profile_sample *s)
{
	return errors->kind == WP_PROFILE_HEAP ?
		       (double)s->weight_ns *
			       (double)errors->profile->meta.heap_period :
		       0;
}

/* Sum up what is in use, or was allocated. */
static void sum_heap(struct wp_errors *errors)
{
	const struct wp_sample_set *set = set_of(errors);

	for (uint32_t i = 0; i < set->nsamples; i++) {
		errors->all += divided_ns(errors, &set->samples[i]);
		errors->all_variance += heap_variance(errors, &set->samples[i]);
	}
	errors->known = errors->all_variance > 0;
}

/* Set the pools; LOOKS has a number for each thread. */
static void fill_pools(struct wp_errors *errors, double *looks)
{
	const struct wp_sample_set *set = set_of(errors);
	bool by_cpu = !errors->profile->meta.has_wall;

	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];
		enum wp_errors_part part = part_of(s);
		struct wp_errors_pool *pool = pool_of(errors, s->key.thread,
						      part);

		pool->ns += divided_ns(errors, s);
		if (part == WP_ERRORS_WAITS)
			pool->looks += (double)s->looks;
		else
			pool->looks += (double)s->cpu_count;
		if (part == WP_ERRORS_READY)
			looks[s->key.thread] += (double)s->looks;
		errors->known |= s->looks || (by_cpu && s->cpu_count);
	}
}

/* Set ORDER by counting; NEXT has a place for each thread and one more, all 0. */
static void sort_samples(struct wp_errors *errors, uint32_t nthreads,
			 uint32_t *next)
{
	const struct wp_sample_set *set = set_of(errors);

	for (uint32_t i = 0; i < set->nsamples; i++)
		next[set->samples[i].key.thread + 1]++;
	for (uint32_t t = 0; t < nthreads; t++)
		next[t + 1] += next[t];
	for (uint32_t i = 0; i < set->nsamples; i++)
		errors->order[next[set->samples[i].key.thread]++] = i;
}

int wp_errors_init(struct wp_errors *errors, const struct wp_profile *profile,
		   enum wp_profile_kind kind)
{
	size_t n = (size_t)profile->nthreads + 1;
	uint32_t *next = calloc(n + 1, sizeof(*next));
	double *looks = calloc(n, sizeof(*looks));
	int rc = -ENOMEM;

	*errors = (struct wp_errors){ .profile = profile, .kind = kind };
	errors->pools = calloc(n * WP_ERRORS_NPARTS, sizeof(*errors->pools));
	errors->order = calloc((size_t)set_of(errors)->nsamples + 1,
			       sizeof(*errors->order));
	if (next && looks && errors->pools && errors->order) {
		if (kind == WP_PROFILE_HEAP)
			sum_heap(errors);
		else
			fill_pools(errors, looks);
		sort_samples(errors, profile->nthreads, next);
		rc = 0;
	}
	for (uint32_t t = 0; !rc && t < profile->nthreads; t++) {
		struct wp_errors_pool *pool = pool_of(errors, t,
						      WP_ERRORS_READY);

		if (pool->looks <= 0)
			pool->looks = looks[t];
	}
	free(next);
	free(looks);
	return rc;
}

/* Of what ROW's last thread has. */
static double variance(const struct wp_errors *errors,
		       const struct wp_errors_row *row)
{
	double sum = 0;

	for (int part = 0; part < WP_ERRORS_NPARTS; part++) {
		const struct wp_errors_pool *pool = pool_of(
			errors, row->thread, (enum wp_errors_part)part);
		double n = pool->looks + 4, q;

		if (pool->looks <= 0 || row->ns[part] <= 0)
			continue;
		q = (pool->looks * row->ns[part] / pool->ns + 2) / n;
		sum += pool->ns * pool->ns * q * (1 - q) / n;
	}
	return sum;
}

int wp_errors_add(struct wp_errors *errors, uint32_t i,
		  const struct wp_profile_sample *s)
{
	struct wp_errors_row *row;

	if (i >= errors->nrows) {
		uint32_t n = i + 1 - errors->nrows;

		if (WP_VEC_ROOM(errors->rows, errors->nrows, errors->cap_rows,
				n))
			return -ENOMEM;
		for (; n; n--)
			errors->rows[errors->nrows++] = (struct wp_errors_row){
				0
			};
	}
	row = &errors->rows[i];
	row->variance += heap_variance(errors, s);
	if (errors->kind != WP_PROFILE_HEAP && row->thread != s->key.thread)
		*row = (struct wp_errors_row){
			.thread = s->key.thread,
			.variance = row->variance + variance(errors, row),
		};
	row->ns[part_of(s)] += divided_ns(errors, s);
	return 0;
}

/* V of S bytes, enlarged as errors.h says. */
static double enlarge(const struct wp_errors *errors, double v, double s)
{
	double weight = s > 0 ? v / s : errors->all_variance / errors->all;

	return v + 2 * weight * weight;
}

static double heap_error(const struct wp_errors *errors,
			 const struct wp_errors_row *row)
{
	double s = row->ns[WP_ERRORS_WAITS] + row->ns[WP_ERRORS_READY];
	double r = s / errors->all;

	if (!errors->known || s <= 0)
		return 0;
	return sqrt((1 - r) * (1 - r) * enlarge(errors, row->variance, s) +
		    r * r *
			    enlarge(errors,
				    errors->all_variance - row->variance,
				    errors->all - s));
}

double wp_errors_of(const struct wp_errors *errors, uint32_t i)
{
	const struct wp_errors_row *row = &errors->rows[i];

	if (i >= errors->nrows)
		return 0;
	return errors->kind == WP_PROFILE_HEAP ?
		       heap_error(errors, row) :
		       sqrt(row->variance + variance(errors, row));
}

void wp_errors_clear(struct wp_errors *errors)
{
	free(errors->order);
	free(errors->pools);
	free(errors->rows);
	*errors = (struct wp_errors){ 0 };
}
