/* SPDX-License-Identifier: Apache-2.0 */
/* wake_weight.c - see wallprof/wake_weight.h. */
#include "wallprof/wake_weight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/hash.h"

/* The sums of some samples, and of those of them that were scaled so far: the last gets
 * the rest, so nothing is lost to rounding. */
struct sums {
	uint64_t count, ns;
	uint64_t seen_count, seen_ns;
};

/* The part of ALL that goes with X more of SUM, of which *SEEN was before. */
static uint64_t share(uint64_t *seen, uint64_t x, uint64_t sum, uint64_t all)
{
	uint64_t before;

	if (!x)
		return 0;
	before = (uint64_t)((__uint128_t)all * *seen / sum);
	*seen += x;
	return (uint64_t)((__uint128_t)all * *seen / sum) - before;
}

/* Add S to PROFILE as one of SUMS' samples, which share COUNT and NS. */
static int add_share(struct wp_profile *profile,
		     const struct wp_profile_sample *s, struct sums *sums,
		     uint64_t count, uint64_t ns)
{
	count = share(&sums->seen_count, s->count, sums->count, count);
	ns = share(&sums->seen_ns, s->wall_ns, sums->ns, ns);
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
	return WP_INDEX_FIND(&set->index, wp_hash_bytes(0, &all, sizeof(all)),
			     i,
			     !memcmp(&set->samples[i].key, &all, sizeof(all)));
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

/* A woken thread: how long it waited by its wall-clock samples, and the waits that wakes
 * ended. */
struct woken {
	int32_t tid;
	uint64_t wall_ns, delay_ns;
};

struct all_woken {
	struct woken *v;
	uint32_t n;
	struct wp_index index;
};

static uint64_t hash_of(int32_t tid)
{
	return wp_hash_u64((uint32_t)tid);
}

static struct woken *find_woken(const struct all_woken *all, int32_t tid)
{
	uint32_t at = WP_INDEX_FIND(&all->index, hash_of(tid), i,
				    all->v[i].tid == tid);

	return at == WP_INDEX_NONE ? NULL : &all->v[at];
}

/* The thread that sample S woke; NULL: its tid is not known, or not of one thread. */
static struct woken *woken_of(const struct wp_profile *profile,
			      const struct all_woken *all,
			      const struct wp_profile_sample *s)
{
	/* "worker (4711)": its name may change. */
	const char *tid = strrchr(wp_profile_str(profile, s->key.object), '(');

	return tid ? find_woken(all, (int32_t)strtol(tid + 1, NULL, 10)) : NULL;
}

/* Of each thread with an entry of its own. */
static int find_all_woken(const struct wp_profile *profile,
			  struct all_woken *all)
{
	const struct wp_sample_set *wall = &profile->sets[WP_PROFILE_WALL];

	all->v = calloc((size_t)profile->nthreads + 1, sizeof(*all->v));
	if (!all->v)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->nthreads; i++) {
		const struct wp_profile_thread *t = &profile->threads[i];

		if (t->is_shared || find_woken(all, t->tid))
			continue;
		if (wp_index_add(&all->index, hash_of(t->tid), all->n))
			return -ENOMEM;
		all->v[all->n++].tid = t->tid;
	}
	for (uint32_t i = 0; i < wall->nsamples; i++) {
		const struct wp_profile_sample *s = &wall->samples[i];
		struct woken *w = find_woken(
			all, profile->threads[s->key.thread].tid);

		if (w && s->key.state == WP_STATE_WAITING)
			w->wall_ns += s->wall_ns;
	}
	return 0;
}

/* Windows and losses are scaled for as if what they hide were like what was recorded;
 * the scheduler knows how long a thread waited, and no more can have ended. */
static int scale_to_clock(struct wp_profile *profile)
{
	struct wp_sample_set *set = &profile->sets[WP_PROFILE_WAKE];
	struct all_woken all = { 0 };
	int rc = find_all_woken(profile, &all);

	for (uint32_t i = 0; i < set->nsamples && !rc; i++) {
		struct woken *w = woken_of(profile, &all, &set->samples[i]);

		if (w)
			w->delay_ns += set->samples[i].wall_ns;
	}
	for (uint32_t i = 0; i < set->nsamples && !rc; i++) {
		struct wp_profile_sample *s = &set->samples[i];
		const struct woken *w = woken_of(profile, &all, s);
		double part;

		if (!w || !w->wall_ns || w->delay_ns <= w->wall_ns)
			continue;
		part = (double)w->wall_ns / (double)w->delay_ns;
		s->count = (uint64_t)((double)s->count * part + 0.5);
		s->wall_ns = (uint64_t)((double)s->wall_ns * part);
	}
	free(all.v);
	wp_index_clear(&all.index);
	return rc;
}

int wp_wake_weight_finish(struct wp_profile *profile, uint32_t no_stack)
{
	int rc = share_reasons(profile);

	if (!rc)
		rc = scale_stacks(profile, no_stack);
	return rc ? rc : scale_to_clock(profile);
}
