/* SPDX-License-Identifier: Apache-2.0 */
/* wake_weight.c - see wallprof/wake_weight.h. */
#include "wallprof/wake_weight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample_find.h"
#include "share.h"

/* The sums of some samples, and of those of them that were scaled so far: the last gets
 * the rest, so nothing is lost to rounding. */
struct sums {
	uint64_t count, ns;
	uint64_t seen_count, seen_ns;
};

/* Add S to PROFILE as one of SUMS' samples, which share COUNT and NS. */
static int add_share(struct wp_profile *profile,
		     const struct wp_profile_sample *s, struct sums *sums,
		     uint64_t count, uint64_t ns)
{
	count = wp_share_next(&sums->seen_count, s->count, sums->count, count);
	ns = wp_share_next(&sums->seen_ns, s->wall_ns, sums->ns, ns);
	return count || ns ? wp_profile_add_sample(profile, WP_PROFILE_WAKE,
						   &s->key, count, ns) :
			     0;
}

static void add_to(struct sums *sums, const struct wp_profile_sample *s)
{
	sums->count += s->count;
	sums->ns += s->wall_ns;
}

/* Take the wake profile's samples out of PROFILE. */
static struct wp_sample_set take(struct wp_profile *profile)
{
	struct wp_sample_set *set = &profile->sets[WP_PROFILE_WAKE];
	struct wp_sample_set old = *set;

	memset(set, 0, sizeof(*set));
	return old;
}

static void drop(struct wp_sample_set *set)
{
	free(set->samples);
	wp_index_clear(&set->index);
}

/* 0: A and B differ in nothing but why the woken thread waited. */
static int compare_wakes(const struct wp_sample_key *a,
			 const struct wp_sample_key *b)
{
	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return (a->object > b->object) - (a->object < b->object);
}

static int compare(const void *a, const void *b)
{
	const struct wp_profile_sample *x = a, *y = b;
	int order = compare_wakes(&x->key, &y->key);

	return order ? order : memcmp(&x->key, &y->key, sizeof(x->key));
}

/* Add V[0..N), the samples of one wake.  Why the woken thread waited was sampled by
 * itself: those that tell it share out the others. */
static int add_reasons(struct wp_profile *profile,
		       const struct wp_profile_sample *v, uint32_t n)
{
	struct sums all = { 0 }, known = { 0 };
	int rc = 0;

	for (uint32_t i = 0; i < n; i++) {
		add_to(&all, &v[i]);
		if (v[i].key.wait != WP_WAIT_NONE)
			add_to(&known, &v[i]);
	}
	for (uint32_t i = 0; i < n && !rc; i++)
		if (!known.count || !known.ns)
			rc = add_share(profile, &v[i], &all, all.count, all.ns);
		else if (v[i].key.wait != WP_WAIT_NONE)
			rc = add_share(profile, &v[i], &known, all.count,
				       all.ns);
	return rc;
}

static int share_reasons(struct wp_profile *profile)
{
	struct wp_sample_set old = take(profile);
	uint32_t first = 0;
	int rc = 0;

	if (old.nsamples)
		qsort(old.samples, old.nsamples, sizeof(*old.samples), compare);
	for (uint32_t i = 0; i < old.nsamples && !rc; i++) {
		if (i + 1 < old.nsamples &&
		    !compare_wakes(&old.samples[i].key,
				   &old.samples[i + 1].key))
			continue;
		rc = add_reasons(profile, old.samples + first, i + 1 - first);
		first = i + 1;
	}
	drop(&old);
	return rc;
}

/* The index of the sample in SET that holds all wakes like those of KEY; UINT32_MAX:
 * there is none, or KEY is its. */
static uint32_t find_all(const struct wp_sample_set *set,
			 const struct wp_sample_key *key)
{
	const struct wp_sample_key all = wp_wake_weight_all(key);

	if (key->stack == WP_WAKE_ALL)
		return UINT32_MAX;
	return wp_sample_find(set, &all);
}

/* Add S, sample I of OLD, to PROFILE.  STACKS: of each sample that holds all wakes of
 * one thread by another, those with a stack. */
static int scale(struct wp_profile *profile, const struct wp_sample_set *old,
		 struct sums *stacks, uint32_t i, uint32_t no_stack)
{
	struct wp_profile_sample s = old->samples[i];
	uint32_t of = find_all(old, &s.key);
	struct sums own = { s.count, s.wall_ns, 0, 0 };

	if (of != UINT32_MAX)
		return add_share(profile, &s, &stacks[of],
				 old->samples[of].count,
				 old->samples[of].wall_ns);
	if (s.key.stack == WP_WAKE_ALL) {
		s.key.stack = no_stack;
		own.count = stacks[i].count ? 0 : s.count;
		own.ns = stacks[i].ns ? 0 : s.wall_ns;
		s.count = own.count;
		s.wall_ns = own.ns;
	}
	return add_share(profile, &s, &own, s.count, s.wall_ns);
}

static int scale_stacks(struct wp_profile *profile, uint32_t no_stack)
{
	struct wp_sample_set old = take(profile);
	struct sums *stacks = calloc((size_t)old.nsamples + 1, sizeof(*stacks));
	int rc = stacks ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < old.nsamples && !rc; i++) {
		uint32_t of = find_all(&old, &old.samples[i].key);

		if (of != UINT32_MAX)
			add_to(&stacks[of], &old.samples[i]);
	}
	for (uint32_t i = 0; i < old.nsamples && !rc; i++)
		rc = scale(profile, &old, stacks, i, no_stack);
	free(stacks);
	drop(&old);
	return rc;
}

/* A woken thread's entry: how long it waited by its wall-clock samples, and the waits
 * that wakes ended; its text, 0: not made yet. */
struct woken {
	uint64_t wall_ns, delay_ns;
	uint32_t text;
};

/* Windows and losses are scaled for as if what they hide were like what was recorded;
 * the scheduler knows how long a thread waited, and no more can have ended. */
static void scale_to_clock(struct wp_profile *profile, struct woken *woken)
{
	const struct wp_sample_set *wall = &profile->sets[WP_PROFILE_WALL];
	struct wp_sample_set *set = &profile->sets[WP_PROFILE_WAKE];

	for (uint32_t i = 0; i < wall->nsamples; i++)
		if (wall->samples[i].key.state == WP_STATE_WAITING)
			woken[wall->samples[i].key.thread].wall_ns +=
				wall->samples[i].wall_ns;
	for (uint32_t i = 0; i < set->nsamples; i++)
		woken[set->samples[i].key.object].delay_ns +=
			set->samples[i].wall_ns;
	for (uint32_t i = 0; i < set->nsamples; i++) {
		struct wp_profile_sample *s = &set->samples[i];
		const struct woken *w = &woken[s->key.object];
		double part;

		if (!w->wall_ns || w->delay_ns <= w->wall_ns)
			continue;
		part = (double)w->wall_ns / (double)w->delay_ns;
		s->count = (uint64_t)((double)s->count * part + 0.5);
		s->wall_ns = (uint64_t)((double)s->wall_ns * part);
	}
}

/* The string id of what thread T is called, "worker (4711)"; UINT32_MAX without memory. */
static uint32_t text_of(struct wp_profile *profile,
			const struct wp_profile_thread *t)
{
	char text[96];

	/* The tid is that of one of the threads that share the entry. */
	if (t->is_shared)
		return t->name;
	snprintf(text, sizeof(text), "%s (%d)",
		 wp_profile_str(profile, t->name), t->tid);
	return wp_intern_add_str(&profile->strings, text);
}

/* Let the samples' objects be texts, as in all other profiles. */
static int name_woken(struct wp_profile *profile, struct woken *woken)
{
	struct wp_sample_set old = take(profile);
	int rc = 0;

	for (uint32_t i = 0; i < old.nsamples && !rc; i++) {
		struct wp_profile_sample *s = &old.samples[i];
		uint32_t entry = s->key.object;
		struct woken *w = &woken[entry];

		if (!w->text)
			w->text = text_of(profile, &profile->threads[entry]);
		s->key.object = w->text;
		rc = w->text == UINT32_MAX ?
			     -ENOMEM :
			     wp_profile_add_sample(profile, WP_PROFILE_WAKE,
						   &s->key, s->count,
						   s->wall_ns);
	}
	drop(&old);
	return rc;
}

int wp_wake_weight_finish(struct wp_profile *profile, uint32_t no_stack)
{
	struct woken *woken = calloc((size_t)profile->nthreads + 1,
				     sizeof(*woken));
	int rc = woken ? share_reasons(profile) : -ENOMEM;

	if (!rc)
		rc = scale_stacks(profile, no_stack);
	if (!rc) {
		scale_to_clock(profile, woken);
		rc = name_woken(profile, woken);
	}
	free(woken);
	return rc;
}
