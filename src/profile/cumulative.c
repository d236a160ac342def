/* SPDX-License-Identifier: Apache-2.0 */
/* cumulative.c - see wallprof/cumulative.h. */
#include "wallprof/cumulative.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "budget_bytes.h"
#include "sample_find.h"
#include "wallprof/block_weight.h"
#include "wallprof/budget.h"
#include "wallprof/vec.h"

/* Threads that are looked at together: each takes 12 KB meanwhile. */
enum { BATCH = 1024 };

static void drop(struct wp_sample_set *set)
{
	wp_budget_give(WP_BUDGET_SAMPLES,
		       (uint64_t)set->npaid * WP_SAMPLE_BYTES);
	free(set->samples);
	wp_index_clear(&set->index);
	*set = (struct wp_sample_set){ 0 };
}

void wp_cumulative_clear(struct wp_cumulative *c)
{
	drop(&c->set);
}

/* What OF's samples of KIND gained in the marks of H after SINCE_NS, without an
 * index.  0 or -ENOMEM. */
static int gains(struct wp_sample_set *ret, const struct wp_history *h,
		 const struct wp_sample_set *of, unsigned int kind,
		 uint64_t since_ns)
{
	*ret = (struct wp_sample_set){ .nsamples = of->nsamples };
	ret->samples = calloc((size_t)of->nsamples + 1, sizeof(*ret->samples));
	if (!ret->samples)
		return -ENOMEM;
	for (uint32_t i = 0; i < of->nsamples; i++)
		ret->samples[i].key = of->samples[i].key;
	for (uint32_t m = h->n; m-- > 0 && h->marks[m]->end_ns > since_ns;)
		for (uint32_t i = 0; i < h->marks[m]->n; i++) {
			const struct wp_history_entry *e = &h->marks[m]->v[i];
			struct wp_profile_sample *s = &ret->samples[e->sample];

			if (e->kind != kind)
				continue;
			s->count += (uint64_t)(int64_t)e->count;
			s->wall_ns += (uint64_t)e->wall_ns;
		}
	return 0;
}

/* What was taken back may have come before. */
static uint64_t not_below_zero(uint64_t value)
{
	return value > INT64_MAX ? 0 : value;
}

/* Add PART, of the time up to NOW_NS, to C; P->sets[BLOCK] is C's meanwhile. */
static int add_part(struct wp_cumulative *c, struct wp_profile *p,
		    const struct wp_sample_set *part, uint64_t now_ns)
{
	struct wp_sample_set *set = &p->sets[WP_PROFILE_BLOCK];
	int rc = 0;

	*set = c->set;
	for (uint32_t i = 0; i < part->nsamples && !rc; i++) {
		const struct wp_profile_sample *s = &part->samples[i];
		uint32_t hint = UINT32_MAX;

		rc = wp_profile_add_sample_hinted(
			p, WP_PROFILE_BLOCK, &s->key, &hint,
			not_below_zero(s->count), not_below_zero(s->wall_ns));
		if (!rc)
			set->samples[hint].weight_ns = now_ns;
	}
	c->set = *set;
	return rc;
}

/* Add what S gained to the sample of RET with KEY. */
static int add_gain(struct wp_sample_set *ret, const struct wp_sample_key *key,
		    const struct wp_profile_sample *s)
{
	uint32_t i = wp_sample_find(ret, key);

	if (i == WP_INDEX_NONE) {
		i = ret->nsamples;
		if (WP_VEC_ROOM(ret->samples, ret->nsamples, ret->cap_samples,
				1) ||
		    wp_index_add(&ret->index, wp_sample_hash(key), i))
			return -ENOMEM;
		ret->samples[ret->nsamples++] = (struct wp_profile_sample){
			.key = *key
		};
	}
	ret->samples[i].count += s->count;
	ret->samples[i].wall_ns += s->wall_ns;
	return 0;
}

/* The samples of OF that gained something and are of threads from FIRST on, BATCH of
 * them.  Who woke the thread is left out: a wait that goes on is of nobody, and
 * moves to who ends it. */
static int choose(struct wp_sample_set *ret, const struct wp_sample_set *of,
		  uint32_t first)
{
	int rc = 0;

	*ret = (struct wp_sample_set){ 0 };
	for (uint32_t i = 0; i < of->nsamples && !rc; i++) {
		const struct wp_profile_sample *s = &of->samples[i];
		struct wp_sample_key key = s->key;

		key.object = wp_block_weight_class_of(key.object);
		if (key.thread >= first && key.thread - first < BATCH &&
		    (s->count || s->wall_ns))
			rc = add_gain(ret, &key, s);
	}
	/* More was taken back than came. */
	for (uint32_t i = 0; i < ret->nsamples; i++) {
		struct wp_profile_sample *s = &ret->samples[i];

		s->count = not_below_zero(s->count);
		s->wall_ns = not_below_zero(s->wall_ns);
	}
	return rc;
}

/* Add what threads from FIRST on gained, ALL, to C: the profile is of that for once. */
static int add_batch(struct wp_cumulative *c, struct wp_profile *p,
		     const struct wp_sample_set all[2], uint32_t first,
		     uint64_t now_ns)
{
	const struct wp_stack none = { .end = WP_END_EMPTY };
	struct wp_sample_set *block = &p->sets[WP_PROFILE_BLOCK];
	struct wp_sample_set *wall = &p->sets[WP_PROFILE_WALL];
	struct wp_sample_set was_block = *block, was_wall = *wall;
	struct wp_sample_set part = { 0 };
	uint32_t stack = wp_profile_add_stack(p, &none, WP_MAPPING_NONE);
	int rc;

	*block = part;
	rc = stack == UINT32_MAX ? -ENOMEM : choose(block, &all[0], first);
	if (!rc && block->nsamples) {
		*wall = all[1];
		rc = wp_block_weight_finish(p, stack);
		*wall = was_wall;
	}
	part = *block;
	if (!rc)
		rc = add_part(c, p, &part, now_ns);
	*block = was_block;
	drop(&part);
	return rc;
}

int wp_cumulative_add(struct wp_cumulative *c, const struct wp_history *h,
		      struct wp_profile *p)
{
	struct wp_sample_set all[2] = { 0 };
	int rc = gains(&all[0], h, &p->sets[WP_PROFILE_BLOCK], WP_PROFILE_BLOCK,
		       c->until_ns);

	if (!rc)
		rc = gains(&all[1], h, &p->sets[WP_PROFILE_WALL],
			   WP_PROFILE_WALL, c->until_ns);
	for (uint32_t first = 0; first < p->nthreads && !rc; first += BATCH)
		rc = add_batch(c, p, all, first, h->end_ns);
	drop(&all[0]);
	drop(&all[1]);
	if (!rc)
		c->until_ns = h->end_ns;
	return rc;
}

void wp_cumulative_forget(struct wp_cumulative *c, const struct wp_profile *p)
{
	for (uint32_t i = 0; i < c->set.nsamples; i++) {
		struct wp_profile_sample *s = &c->set.samples[i];
		uint32_t process = p->threads[s->key.thread].process;

		if (p->processes[process].is_forgotten)
			*s = (struct wp_profile_sample){ .key = s->key };
	}
}

int wp_cumulative_renumber(struct wp_cumulative *c, uint64_t since_ns,
			   struct wp_renumber *r)
{
	struct wp_sample_set *set = &c->set;
	struct wp_index index = WP_INDEX_INIT;
	uint32_t n = 0;
	int rc;

	for (uint32_t i = 0; i < set->nsamples; i++) {
		struct wp_profile_sample *s = &set->samples[i];

		if (s->weight_ns < since_ns)
			continue;
		/* Its object is one, as those of other kinds. */
		wp_renumber_key(r, WP_PROFILE_WALL, &s->key);
		if (r->is_numbered)
			set->samples[n] = *s;
		n++;
	}
	if (!r->is_numbered)
		return 0;
	rc = wp_index_reserve(&index, n);
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = wp_index_add(&index, wp_sample_hash(&set->samples[i].key),
				  i);
	if (rc)
		return rc;
	wp_index_clear(&set->index);
	set->index = index;
	set->nsamples = n;
	if (set->npaid > n) {
		wp_budget_give(WP_BUDGET_SAMPLES,
			       (uint64_t)(set->npaid - n) * WP_SAMPLE_BYTES);
		set->npaid = n;
	}
	return 0;
}
