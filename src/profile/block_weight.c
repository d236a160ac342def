/* SPDX-License-Identifier: Apache-2.0 */
/* block_weight.c - see wallprof/block_weight.h. */
#include "wallprof/block_weight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "share.h"

/* From 0 to below 1. */
static double fraction(uint64_t random)
{
	return (double)(random >> 11) * 0x1p-53;
}

double wp_block_weight_keep(uint64_t rate_ns, uint64_t delay_ns,
			    uint64_t random)
{
	double p;

	if (delay_ns >= rate_ns)
		return 1;
	/* A wait of 0 ns by the clock took some time. */
	p = (double)(delay_ns ? delay_ns : 1) / (double)rate_ns;
	return fraction(random) < p ? 1 / p : 0;
}

static double clamp(double p)
{
	return p < 0 ? 0 : p > 1 ? 1 : p;
}

/* The probability that WP_BLOCK_TICKS ticks find a wait of X intervals, averaged over
 * the place B in an interval, from 0 to 1, at which the wait begins.  The first tick
 * that finds it is that of its own interval, with probability 1 - B, or that of the
 * next; the tick that must still find it comes within the first Y of its interval
 * with probability Y.
 */
static double probability_of_all_ticks(double x)
{
	enum { STEPS = 64 };
	double sum = 0;

	for (int i = 0; i < STEPS; i++) {
		double b = (i + 0.5) / STEPS, y = x - WP_BLOCK_TICKS + b;

		sum += (1 - b) * clamp(y + 1) + b * clamp(y);
	}
	return sum / STEPS;
}

struct wp_block_parts wp_block_weight_missed_by_ticks(uint64_t delay_ns,
						      uint64_t interval_ns)
{
	double x = (double)delay_ns / (double)interval_ns, thrice;

	if (x <= WP_BLOCK_TICKS - 2)
		return (struct wp_block_parts){ 1, 1 };
	if (x >= WP_BLOCK_TICKS + 1)
		return (struct wp_block_parts){ 0, 0 };
	/* A wait that is longer by two intervals is found three times with the
	 * probability that this one is found once.  On average X ticks find a
	 * wait of X intervals. */
	thrice = probability_of_all_ticks(x);
	return (struct wp_block_parts){
		1 - thrice, (probability_of_all_ticks(x + 2) +
			     probability_of_all_ticks(x + 1) - 2 * thrice) /
				    x
	};
}

double wp_block_weight_in_window(uint64_t delay_ns, uint64_t window_ns,
				 uint64_t cycle_ns)
{
	if (delay_ns >= window_ns)
		return 0;
	return (double)cycle_ns / (double)(window_ns - delay_ns);
}

uint32_t wp_block_weight_class(uint64_t delay_ns)
{
	uint32_t top;

	if (delay_ns < 2)
		return 1;
	/* The bit below the highest one halves a power of two. */
	top = 63 - (uint32_t)__builtin_clzll(delay_ns);
	return 1 + 2 * (top - 1) + (delay_ns >> (top - 1) & 1);
}

/* Sums of one thread's samples in one class. */
struct sums {
	/* Of all waits, and of those with a stack. */
	uint64_t count, ns;
	uint64_t sampled_count, sampled_ns;
	/* Sums of the samples scaled so far: the last sample gets the rest, so
	 * nothing is lost to rounding. */
	uint64_t seen_count, seen_ns;
};

/* sums[thread][row]; NULL for a thread without waits, as most are.  The rows are the
 * classes of waits, then those of waits for a CPU. */
struct class_sums {
	struct sums **sums;
	uint32_t nthreads;
};

enum { ROWS = WP_BLOCK_CLASSES + 1 };

static uint32_t class_of(const struct wp_sample_key *key)
{
	return wp_block_weight_class_of(key->object);
}

static struct sums *sums_of(struct class_sums *st,
			    const struct wp_sample_key *key)
{
	struct sums **of = &st->sums[key->thread];

	if (!*of)
		*of = calloc((size_t)2 * ROWS, sizeof(**of));
	if (!*of)
		return NULL;
	return &(*of)[class_of(key) +
		      (key->state == WP_STATE_RUNNABLE ? ROWS : 0)];
}

static int add_up(struct class_sums *st, const struct wp_sample_set *set)
{
	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];
		struct sums *sums;

		if (!class_of(&s->key))
			continue;
		sums = sums_of(st, &s->key);
		if (!sums)
			return -ENOMEM;
		if (s->key.stack == WP_BLOCK_ALL) {
			sums->count = s->count;
			sums->ns = s->wall_ns;
		} else {
			sums->sampled_count += s->count;
			sums->sampled_ns += s->wall_ns;
		}
	}
	return 0;
}

static bool is_sampled(const struct sums *sums)
{
	return sums->sampled_count || sums->sampled_ns;
}

/* The class nearest to C of which a stack was sampled; 0: none was. */
static uint32_t nearest_sampled(const struct sums *sums, uint32_t c)
{
	for (uint32_t d = 0; d <= WP_BLOCK_CLASSES; d++) {
		if (c > d && is_sampled(&sums[c - d]))
			return c - d;
		if (c + d <= WP_BLOCK_CLASSES && is_sampled(&sums[c + d]))
			return c + d;
	}
	return 0;
}

/* Add classes without a sampled stack to the nearest class that has one. */
static void merge_classes(struct sums *sums)
{
	for (uint32_t c = 1; c <= WP_BLOCK_CLASSES; c++) {
		uint32_t to = nearest_sampled(sums, c);

		if (!to || to == c)
			continue;
		sums[to].count += sums[c].count;
		sums[to].ns += sums[c].ns;
		sums[c].count = sums[c].ns = 0;
	}
}

/* How long a thread waited. */
struct waited {
	/* By the wall-clock samples, which know it exactly. */
	uint64_t wall_ns;
	/* By the waits that ticks told, and what they are to be scaled by. */
	uint64_t ticks_ns;
	double factor;
};

/* Of each thread, but for FACTOR, which is 1.  0 or -ENOMEM. */
static int find_waited(const struct wp_profile *profile,
		       const struct wp_sample_set *block, struct waited **ret)
{
	const struct wp_sample_set *wall = &profile->sets[WP_PROFILE_WALL];
	struct waited *v = calloc((size_t)profile->nthreads + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->nthreads; i++)
		v[i].factor = 1;
	for (uint32_t i = 0; i < wall->nsamples; i++)
		if (wall->samples[i].key.state == WP_STATE_WAITING)
			v[wall->samples[i].key.thread].wall_ns +=
				wall->samples[i].wall_ns;
	for (uint32_t i = 0; i < block->nsamples; i++)
		if (!class_of(&block->samples[i].key))
			v[block->samples[i].key.thread].ticks_ns +=
				block->samples[i].wall_ns;
	*ret = v;
	return 0;
}

/* Windows recorded a part of a thread's waits, and ticks take a wait for a CPU for
 * the end of the wait before it; the scheduler knows the sum.  Scale the sums of the
 * thread's classes to that; if it leaves too little for them, all its waits. */
static void scale_classes(struct sums *sums, struct waited *w)
{
	double all = (double)w->wall_ns, ticks = (double)w->ticks_ns;
	double ns = 0, factor;

	for (uint32_t c = 1; sums && c <= WP_BLOCK_CLASSES; c++)
		ns += (double)sums[c].ns;
	if (!w->wall_ns || ns + ticks <= 0)
		return;
	factor = ns > 0 ? (all - ticks) / ns : 0;
	/* Of a long wait that windows missed nothing is known. */
	if (factor > 2 || (ns <= 0 && ticks <= all))
		return;
	if (factor < 0.5)
		factor = w->factor = all / (ticks + ns);
	for (uint32_t c = 1; sums && c <= WP_BLOCK_CLASSES; c++) {
		sums[c].count = (uint64_t)((double)sums[c].count * factor +
					   0.5);
		sums[c].ns = (uint64_t)((double)sums[c].ns * factor);
	}
}

/* Add S, scaled to the sums of its class, or one that ticks told by FACTOR, to the
 * profile, without its class. */
static int scale_sample(struct wp_profile *profile, struct class_sums *st,
			const struct wp_profile_sample *s, uint32_t no_stack,
			double factor)
{
	struct wp_sample_key key = s->key;
	uint64_t count = s->count, ns = s->wall_ns;
	struct sums *sums = class_of(&key) ? sums_of(st, &key) : NULL;

	if (sums && key.stack != WP_BLOCK_ALL) {
		count = wp_share_next(&sums->seen_count, count,
				      sums->sampled_count, sums->count);
		ns = wp_share_next(&sums->seen_ns, ns, sums->sampled_ns,
				   sums->ns);
	} else if (sums) {
		key.stack = no_stack;
		count = is_sampled(sums) ? 0 : sums->count;
		ns = is_sampled(sums) ? 0 : sums->ns;
	} else if (factor < 1) {
		ns = (uint64_t)((double)ns * factor);
	}
	key.object >>= 8;
	return count || ns ? wp_profile_add_sample(profile, WP_PROFILE_BLOCK,
						   &key, count, ns) :
			     0;
}

int wp_block_weight_finish(struct wp_profile *profile, uint32_t no_stack)
{
	struct wp_sample_set *set = &profile->sets[WP_PROFILE_BLOCK];
	struct wp_sample_set old = *set;
	struct class_sums st = { .nthreads = profile->nthreads };
	struct waited *waited = NULL;
	int rc;

	st.sums = calloc((size_t)st.nthreads + 1, sizeof(*st.sums));
	if (!st.sums)
		return -ENOMEM;
	memset(set, 0, sizeof(*set));
	rc = add_up(&st, &old);
	if (!rc)
		rc = find_waited(profile, &old, &waited);
	for (uint32_t i = 0; i < st.nthreads && !rc; i++) {
		scale_classes(st.sums[i], &waited[i]);
		if (!st.sums[i])
			continue;
		merge_classes(st.sums[i]);
		merge_classes(st.sums[i] + ROWS);
	}
	for (uint32_t i = 0; i < old.nsamples && !rc; i++)
		rc = scale_sample(profile, &st, &old.samples[i], no_stack,
				  waited[old.samples[i].key.thread].factor);
	free(waited);
	for (uint32_t i = 0; i < st.nthreads; i++)
		free(st.sums[i]);
	free(st.sums);
	free(old.samples);
	wp_index_clear(&old.index);
	return rc;
}

uint64_t wp_block_weight_round(double x, uint64_t random)
{
	uint64_t whole = (uint64_t)x;

	return whole + (fraction(random) < x - (double)whole);
}
