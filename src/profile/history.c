/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - see wallprof/history.h. */
#include "wallprof/history.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sample_find.h"
#include "wallprof/block_weight.h"
#include "wallprof/vec.h"

_Static_assert(WP_HISTORY_THREAD < 16, "a kind has four bits");

/* The counters of what happens.  The others tell how things are: of a file that could not
 * be opened the names are missing still. */
#define AT(field) offsetof(struct wp_counters, field)
static const size_t counted[] = {
	AT(ticks),	     AT(missed_ticks),
	AT(spared_ticks),    AT(scans),
	AT(unchanged),	     AT(no_stop),
	AT(cached_site),     AT(stopped),
	AT(partial),	     AT(kernel_denied),
	AT(no_stack),	     AT(sampled),
	AT(cpu_lost),	     AT(stops),
	AT(stops_given_up),  AT(stops_refused),
	AT(stops_left_out),  AT(stops_over_budget),
	AT(eintr_repaired),  AT(inconsistent),
	AT(threads_seen),    AT(threads_lost),
	AT(goroutines_lost), AT(samples_lost),
	AT(map_reloads),     AT(execs),
	AT(processes_lost),  AT(processes_denied),
};
_Static_assert(sizeof(counted) / sizeof(*counted) == WP_HISTORY_COUNTERS,
	       "a mark has room for all");

static uint64_t *counter(struct wp_counters *counters, unsigned int i)
{
	return (uint64_t *)((char *)counters + counted[i]);
}

void wp_history_init(struct wp_history *history, uint64_t keep_ns,
		     size_t max_bytes, uint64_t now_ns)
{
	*history = (struct wp_history){ .keep_ns = keep_ns,
					.max_bytes = max_bytes,
					.end_ns = now_ns };
}

void wp_history_clear(struct wp_history *history)
{
	for (uint32_t i = 0; i < history->n; i++)
		free(history->marks[i]);
	free(history->marks);
	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		free(history->last[kind]);
	free(history->last_cpu_ns);
	*history = (struct wp_history){ 0 };
}

static size_t size_of(const struct wp_history_mark *mark)
{
	return sizeof(*mark) + mark->n * sizeof(*mark->v);
}

/* Make room for the profile as it is now; what is new was nothing before. */
static int grow_last(struct wp_history *h, const struct wp_profile *p)
{
	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++) {
		uint32_t n = p->sets[kind].nsamples;

		if (WP_VEC_ROOM(h->last[kind], 0, h->cap_last[kind], n))
			return -ENOMEM;
		while (h->nlast[kind] < n)
			h->last[kind][h->nlast[kind]++] =
				(struct wp_profile_sample){ 0 };
	}
	if (WP_VEC_ROOM(h->last_cpu_ns, 0, h->cap_last_cpu, p->nthreads))
		return -ENOMEM;
	while (h->nlast_cpu < p->nthreads)
		h->last_cpu_ns[h->nlast_cpu++] = 0;
	return 0;
}

/* The values of a sample are all that is behind its key. */
static bool is_same(const struct wp_profile_sample *a,
		    const struct wp_profile_sample *b)
{
	return a->wall_ns == b->wall_ns && a->count == b->count &&
	       a->cpu_ns == b->cpu_ns && a->cpu_count == b->cpu_count &&
	       a->exact_ns == b->exact_ns && a->looks == b->looks &&
	       a->weight_ns == b->weight_ns;
}

static uint32_t count_changed(const struct wp_history *h,
			      const struct wp_profile *p)
{
	uint32_t n = 0;

	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		for (uint32_t i = 0; i < p->sets[kind].nsamples; i++)
			n += !is_same(&h->last[kind][i],
				      &p->sets[kind].samples[i]);
	for (uint32_t i = 0; i < p->nthreads; i++)
		n += h->last_cpu_ns[i] != p->threads[i].cpu_ns;
	return n;
}

static struct wp_history_entry gain(unsigned int kind, uint32_t i,
				    const struct wp_profile_sample *was,
				    const struct wp_profile_sample *is)
{
	return (struct wp_history_entry){
		.kind = kind & 15,
		.sample = i & 0xfffffff,
		.count = (int32_t)(is->count - was->count),
		.cpu_count = (int32_t)(is->cpu_count - was->cpu_count),
		.looks = (int32_t)(is->looks - was->looks),
		.wall_ns = (int64_t)(is->wall_ns - was->wall_ns),
		.cpu_ns = (int64_t)(is->cpu_ns - was->cpu_ns),
		.exact_ns = (int64_t)(is->exact_ns - was->exact_ns),
		.weight_ns = (int64_t)(is->weight_ns - was->weight_ns),
	};
}

/* Fill in MARK, which has room for all that changed. */
static void note_changed(struct wp_history *h, const struct wp_profile *p,
			 struct wp_history_mark *mark)
{
	for (unsigned int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		for (uint32_t i = 0; i < p->sets[kind].nsamples; i++) {
			struct wp_profile_sample *was = &h->last[kind][i];
			const struct wp_profile_sample *is =
				&p->sets[kind].samples[i];

			if (is_same(was, is))
				continue;
			mark->v[mark->n++] = gain(kind, i, was, is);
			*was = *is;
		}
	for (uint32_t i = 0; i < p->nthreads; i++) {
		uint64_t *was = &h->last_cpu_ns[i];
		uint64_t is = p->threads[i].cpu_ns;

		if (*was == is)
			continue;
		mark->v[mark->n++] = (struct wp_history_entry){
			.kind = WP_HISTORY_THREAD & 15,
			.sample = i & 0xfffffff,
			.cpu_ns = (int64_t)(is - *was)
		};
		*was = is;
	}
}

static void drop_first(struct wp_history *h, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		h->bytes -= size_of(h->marks[i]);
		free(h->marks[i]);
	}
	h->n -= n;
	memmove(h->marks, h->marks + n, h->n * sizeof(*h->marks));
}

/* The newest stays in any case. */
static void drop_old(struct wp_history *h)
{
	size_t bytes = h->bytes;
	uint32_t n = 0;

	while (n + 1 < h->n && h->marks[n]->end_ns + h->keep_ns < h->end_ns)
		bytes -= size_of(h->marks[n++]);
	for (; n + 1 < h->n && bytes > h->max_bytes; h->ndropped++)
		bytes -= size_of(h->marks[n++]);
	if (n)
		drop_first(h, n);
}

const struct wp_history_mark *wp_history_add(struct wp_history *h,
					     const struct wp_profile *p,
					     uint64_t now_ns)
{
	struct wp_counters is = p->counters;
	struct wp_history_mark *mark;
	uint32_t n;

	if (grow_last(h, p) || WP_VEC_ROOM(h->marks, h->n, h->cap, 1))
		return NULL;
	n = count_changed(h, p);
	mark = malloc(sizeof(*mark) + n * sizeof(*mark->v));
	if (!mark)
		return NULL;
	*mark = (struct wp_history_mark){
		.begin_ns = h->end_ns,
		.end_ns = now_ns,
	};
	for (unsigned int i = 0; i < WP_HISTORY_COUNTERS; i++)
		mark->counted[i] = *counter(&is, i) -
				   *counter(&h->last_counters, i);
	note_changed(h, p, mark);
	h->last_counters = is;
	h->end_ns = now_ns;
	h->bytes += size_of(mark);
	h->marks[h->n++] = mark;
	drop_old(h);
	return mark;
}

static void renumber_mark(struct wp_history_mark *mark, struct wp_renumber *r)
{
	for (uint32_t i = 0; i < mark->n; i++) {
		struct wp_history_entry *e = &mark->v[i];
		uint32_t index = e->sample;

		wp_renumber_ref(r,
				e->kind == WP_HISTORY_THREAD ?
					WP_REF_THREAD :
					WP_REF_SAMPLE + e->kind,
				&index);
		e->sample = index & 0xfffffff;
	}
}

void wp_history_renumber(struct wp_history *h, const struct wp_profile *p,
			 struct wp_renumber *r)
{
	for (uint32_t i = 0; i < h->n; i++)
		renumber_mark(h->marks[i], r);
	if (!r->is_numbered)
		return;
	/* There are fewer than there were. */
	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++) {
		const struct wp_sample_set *set = &p->sets[kind];

		h->nlast[kind] = set->nsamples;
		if (set->nsamples)
			memcpy(h->last[kind], set->samples,
			       set->nsamples * sizeof(*set->samples));
		WP_VEC_SHRINK(h->last[kind], h->nlast[kind], h->cap_last[kind]);
	}
	h->nlast_cpu = p->nthreads;
	for (uint32_t i = 0; i < p->nthreads; i++)
		h->last_cpu_ns[i] = p->threads[i].cpu_ns;
	WP_VEC_SHRINK(h->last_cpu_ns, h->nlast_cpu, h->cap_last_cpu);
}

uint64_t wp_history_begin_ns(const struct wp_history *h)
{
	return h->n ? h->marks[0]->begin_ns : h->end_ns;
}

static bool is_nothing(const struct wp_profile_sample *s)
{
	const struct wp_profile_sample nothing = { .key = s->key };

	return is_same(s, &nothing);
}

/* Is what E is of nothing now, in P? */
static bool is_forgotten(const struct wp_profile *p,
			 const struct wp_history_entry *e)
{
	if (e->kind == WP_HISTORY_THREAD)
		return !p->threads[e->sample].cpu_ns;
	return is_nothing(&p->sets[e->kind].samples[e->sample]);
}

void wp_history_forget(struct wp_history *h, const struct wp_profile *p)
{
	for (uint32_t i = 0; i < h->n; i++) {
		struct wp_history_mark *mark = h->marks[i];

		for (uint32_t k = 0; k < mark->n; k++)
			if (is_forgotten(p, &mark->v[k]))
				mark->v[k] = (struct wp_history_entry){
					.kind = mark->v[k].kind,
					.sample = mark->v[k].sample
				};
	}
	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		for (uint32_t i = 0; i < h->nlast[kind]; i++)
			if (is_nothing(&p->sets[kind].samples[i]))
				h->last[kind][i] = p->sets[kind].samples[i];
	for (uint32_t i = 0; i < h->nlast_cpu; i++)
		if (!p->threads[i].cpu_ns)
			h->last_cpu_ns[i] = 0;
}

static void set_to_nothing(struct wp_profile *p)
{
	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		for (uint32_t i = 0; i < p->sets[kind].nsamples; i++) {
			struct wp_profile_sample *s = &p->sets[kind].samples[i];

			*s = (struct wp_profile_sample){ .key = s->key };
		}
	for (uint32_t i = 0; i < p->nthreads; i++)
		p->threads[i].cpu_ns = 0;
	for (unsigned int i = 0; i < WP_HISTORY_COUNTERS; i++)
		*counter(&p->counters, i) = 0;
}

static void add_mark(struct wp_profile *p, const struct wp_history_mark *mark)
{
	for (uint32_t i = 0; i < mark->n; i++) {
		const struct wp_history_entry *e = &mark->v[i];
		struct wp_profile_sample *s;

		if (e->kind == WP_HISTORY_THREAD) {
			p->threads[e->sample].cpu_ns += (uint64_t)e->cpu_ns;
			continue;
		}
		s = &p->sets[e->kind].samples[e->sample];
		s->count += (uint64_t)(int64_t)e->count;
		s->cpu_count += (uint64_t)(int64_t)e->cpu_count;
		s->looks += (uint64_t)(int64_t)e->looks;
		s->wall_ns += (uint64_t)e->wall_ns;
		s->cpu_ns += (uint64_t)e->cpu_ns;
		s->exact_ns += (uint64_t)e->exact_ns;
		s->weight_ns += (uint64_t)e->weight_ns;
	}
	for (unsigned int i = 0; i < WP_HISTORY_COUNTERS; i++)
		*counter(&p->counters, i) += mark->counted[i];
}

/* What was taken back may have come before. */
static void not_below_zero(uint64_t *value)
{
	if (*value > INT64_MAX)
		*value = 0;
}

/* Take the deficit that *BASE has from *OF. */
static void take_deficit(uint64_t *of, uint64_t *base)
{
	uint64_t deficit = -*base;

	if (*base <= INT64_MAX || *of > INT64_MAX)
		return;
	if (deficit > *of)
		deficit = *of;
	*of -= deficit;
	*base += deficit;
}

/* A long wait is of nobody until it ends, and all of it moves to who ended it then: what
 * of it was before the view is not who ended it's either. */
static void take_back_woken(struct wp_sample_set *set)
{
	for (uint32_t i = 0; i < set->nsamples; i++) {
		struct wp_profile_sample *s = &set->samples[i], *base;
		struct wp_sample_key key = s->key;
		uint32_t k;

		if (!key.object || wp_block_weight_class_of(key.object))
			continue;
		key.object = 0;
		k = wp_sample_find(set, &key);
		if (k == WP_INDEX_NONE)
			continue;
		base = &set->samples[k];
		take_deficit(&s->count, &base->count);
		take_deficit(&s->wall_ns, &base->wall_ns);
	}
}

static void mend(struct wp_profile *p, uint64_t from_ns, uint64_t to_ns)
{
	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		for (uint32_t i = 0; i < p->sets[kind].nsamples; i++) {
			struct wp_profile_sample *s = &p->sets[kind].samples[i];

			not_below_zero(&s->count);
			not_below_zero(&s->cpu_count);
			not_below_zero(&s->looks);
			not_below_zero(&s->wall_ns);
			not_below_zero(&s->cpu_ns);
			not_below_zero(&s->exact_ns);
			not_below_zero(&s->weight_ns);
			if (s->exact_ns > s->wall_ns)
				s->exact_ns = s->wall_ns;
		}
	for (uint32_t i = 0; i < p->nthreads; i++) {
		struct wp_profile_thread *t = &p->threads[i];

		not_below_zero(&t->cpu_ns);
		if (t->first_ns < from_ns)
			t->first_ns = from_ns;
		if (t->last_ns > to_ns)
			t->last_ns = to_ns;
		if (t->last_ns < t->first_ns)
			t->last_ns = t->first_ns;
	}
}

static uint64_t middle_of(uint64_t begin_ns, uint64_t end_ns)
{
	return begin_ns + (end_ns - begin_ns) / 2;
}

/* The first mark whose middle is between FROM_NS and TO_NS; if there is none, as marks
 * come late where CPUs are busy, the one that holds the middle of this; else H->n. */
static uint32_t first_mark(const struct wp_history *h, uint64_t from_ns,
			   uint64_t to_ns)
{
	uint64_t at_ns = middle_of(from_ns, to_ns);
	uint32_t holds = h->n;

	for (uint32_t i = 0; i < h->n; i++) {
		const struct wp_history_mark *mark = h->marks[i];
		uint64_t middle = middle_of(mark->begin_ns, mark->end_ns);

		if (middle >= from_ns && middle <= to_ns)
			return i;
		if (mark->begin_ns <= at_ns && at_ns < mark->end_ns)
			holds = i;
	}
	return holds;
}

int wp_history_view(const struct wp_history *h, struct wp_profile *p,
		    uint64_t *from_ns, uint64_t *to_ns)
{
	uint64_t begin = 0, end = 0;
	int rc = 0;

	set_to_nothing(p);
	for (uint32_t i = first_mark(h, *from_ns, *to_ns); i < h->n; i++) {
		const struct wp_history_mark *mark = h->marks[i];

		if (end && middle_of(mark->begin_ns, mark->end_ns) > *to_ns)
			break;
		if (!end)
			begin = mark->begin_ns;
		end = mark->end_ns;
		add_mark(p, mark);
	}
	if (!end)
		return -ENOENT;
	*from_ns = begin;
	*to_ns = end;
	take_back_woken(&p->sets[WP_PROFILE_BLOCK]);
	if (p->timeline.max)
		rc = wp_history_cut_timeline(p, begin, end);
	mend(p, begin, end);
	return rc;
}
