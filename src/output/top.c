/* SPDX-License-Identifier: Apache-2.0 */
/* top.c - see wallprof/top.h: what came since the last look, by thread. */
#include "wallprof/top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/enum_name.h"
#include "wallprof/vec.h"

const char *wp_top_sort_name(enum wp_top_sort sort)
{
	return WP_ENUM_NAME(WP_TOP_SORTS, sort);
}

/* Make room for all samples and threads of PROFILE; new ones are zero. */
static int make_room(struct wp_top *top, const struct wp_profile *profile)
{
	const struct wp_sample_set *src = &profile->sets[WP_PROFILE_WALL];

	if (WP_VEC_ROOM(top->set.samples, 0, top->set.cap_samples,
			src->nsamples) ||
	    WP_VEC_ROOM(top->before_ns, 0, top->cap_before, src->nsamples) ||
	    WP_VEC_ROOM(top->known, 0, top->cap_known, profile->nthreads) ||
	    WP_VEC_ROOM(top->v, 0, top->cap, profile->nthreads))
		return -ENOMEM;
	while (top->nbefore < src->nsamples)
		top->before_ns[top->nbefore++] = 0;
	while (top->nknown < profile->nthreads)
		top->known[top->nknown++] = (struct wp_top_known){
			.sample = UINT32_MAX
		};
	return 0;
}

int wp_top_look(struct wp_top *top, const struct wp_profile *profile,
		uint64_t now_ns)
{
	const struct wp_sample_set *src = &profile->sets[WP_PROFILE_WALL];
	int rc = make_room(top, profile);

	if (rc)
		return rc;
	top->set.nsamples = src->nsamples;
	for (uint32_t i = 0; i < src->nsamples; i++) {
		struct wp_profile_sample *s = &top->set.samples[i];
		uint64_t before_ns = top->before_ns[i];

		*s = src->samples[i];
		top->before_ns[i] = s->wall_ns;
		/* What was taken back may have been shown before. */
		s->wall_ns -= before_ns < s->wall_ns ? before_ns : s->wall_ns;
	}
	if (!top->first_ns)
		top->first_ns = now_ns;
	top->look_ns = now_ns;
	return 0;
}

static uint64_t ready_ns(const struct wp_top_thread *v)
{
	return v->ns[WP_STATE_RUNNING] + v->ns[WP_STATE_RUNNABLE];
}

/* Since when has V been where it is?  It has not, if it ran, however short: its stack gets
 * that time later. */
static void note_since(struct wp_top *top, const struct wp_profile *profile,
		       struct wp_top_thread *v)
{
	struct wp_top_known *known = &top->known[v->thread];
	bool is_new = known->sample == UINT32_MAX;
	uint64_t cpu_ns = profile->threads[v->thread].cpu_ns;
	bool ran = !is_new && cpu_ns > known->cpu_ns;

	known->cpu_ns = cpu_ns;
	if (ready_ns(v) || ran) {
		known->since_ns = 0;
	} else if (is_new || known->sample != v->sample || !known->since_ns) {
		known->since_ns = top->look_ns - v->all_ns;
		known->from_begin = is_new && known->since_ns <= top->first_ns;
	}
	known->sample = v->sample;
	v->since_ns = known->since_ns ? top->look_ns - known->since_ns : 0;
	v->from_begin = known->from_begin;
}

static bool holds(const char *text, const char *word)
{
	return strcasestr(text, word);
}

static bool is_wanted(const struct wp_top *top,
		      const struct wp_profile *profile,
		      const struct wp_top_thread *v)
{
	const struct wp_sample_key *key = &top->set.samples[v->sample].key;
	const struct wp_profile_thread *t = &profile->threads[v->thread];
	char tid[16];

	snprintf(tid, sizeof(tid), "%d", t->tid);
	return !top->filter[0] ||
	       holds(wp_profile_str(profile, t->name), top->filter) ||
	       holds(tid, top->filter) ||
	       holds(wp_types_state_name((enum wp_state)key->state),
		     top->filter) ||
	       (key->state == WP_STATE_WAITING &&
		holds(wp_wait_name((enum wp_wait)key->wait), top->filter)) ||
	       holds(wp_profile_str(profile, key->object), top->filter);
}

/* What an order is made of. */
struct order {
	const struct wp_profile *profile;
	enum wp_top_sort sort;
};

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a < b) - (a > b);
}

static int compare(const void *a, const void *b, void *ctx)
{
	const struct wp_top_thread *x = a, *y = b;
	const struct order *o = ctx;
	const struct wp_profile_thread *threads = o->profile->threads;
	int order = 0;

	switch (o->sort) {
	case WP_TOP_RUNNING:
		order = compare_numbers(x->ns[WP_STATE_RUNNING],
					y->ns[WP_STATE_RUNNING]);
		break;
	case WP_TOP_RUNNABLE:
		order = compare_numbers(x->ns[WP_STATE_RUNNABLE],
					y->ns[WP_STATE_RUNNABLE]);
		break;
	case WP_TOP_WAITING:
		order = compare_numbers(x->ns[WP_STATE_WAITING],
					y->ns[WP_STATE_WAITING]);
		break;
	case WP_TOP_SINCE:
		order = compare_numbers(x->since_ns, y->since_ns);
		break;
	case WP_TOP_NAME:
		order = strcmp(
			wp_profile_str(o->profile, threads[x->thread].name),
			wp_profile_str(o->profile, threads[y->thread].name));
		break;
	default:
		break;
	}
	return order ? order :
		       (threads[x->thread].tid > threads[y->thread].tid) -
			       (threads[x->thread].tid <
				threads[y->thread].tid);
}

/* The sums of each thread; v[i] is of thread i. */
static void add_up(struct wp_top *top, uint32_t nthreads)
{
	for (uint32_t i = 0; i < nthreads; i++)
		top->v[i] = (struct wp_top_thread){ .thread = i,
						    .sample = UINT32_MAX };
	for (uint32_t i = 0; i < top->set.nsamples; i++) {
		const struct wp_profile_sample *s = &top->set.samples[i];
		struct wp_top_thread *v = &top->v[s->key.thread];

		if (!s->wall_ns)
			continue;
		v->ns[s->key.state] += s->wall_ns;
		v->all_ns += s->wall_ns;
		if (v->sample == UINT32_MAX ||
		    s->wall_ns > top->set.samples[v->sample].wall_ns)
			v->sample = i;
	}
}

int wp_top_list(struct wp_top *top, const struct wp_profile *profile)
{
	struct order order = { profile, top->sort };
	uint32_t nthreads = top->nknown, n = 0, all = 0;
	uint64_t all_ns = 0;

	add_up(top, nthreads);
	for (uint32_t i = 0; i < nthreads; i++) {
		/* It has ended. */
		if (top->v[i].sample == UINT32_MAX)
			continue;
		note_since(top, profile, &top->v[i]);
		all_ns += top->v[i].all_ns;
		all++;
		if (is_wanted(top, profile, &top->v[i]))
			top->v[n++] = top->v[i];
	}
	top->n = n;
	top->nall = all;
	top->mean_ns = all ? all_ns / all : 0;
	qsort_r(top->v, n, sizeof(*top->v), compare, &order);
	return 0;
}

void wp_top_clear(struct wp_top *top)
{
	free(top->v);
	free(top->known);
	free(top->set.samples);
	free(top->before_ns);
	*top = (struct wp_top)WP_TOP_INIT;
}
