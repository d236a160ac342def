/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - see wallprof/timeline.h. */
#include "wallprof/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "wallprof/budget.h"
#include "wallprof/hash.h"
#include "wallprof/index.h"
#include "wallprof/vec.h"

/* Of a full log, one part in PARTS is merged at a time, which bounds how long the
 * recording waits for it; a part must become shorter by one part in LEAST. */
enum { PARTS = 8, LEAST = 4 };

#define FIRST_WINDOW_NS (UINT64_C(1) << 26)
#define LAST_WINDOW_NS (UINT64_C(1) << 62)

void wp_timeline_start(struct wp_timeline *timeline, size_t size)
{
	/* An array that grows doubles, and is there twice while it is copied. */
	uint64_t share = wp_budget_share(WP_BUDGET_TIMELINE) / 2;
	size_t max = (size < share ? size : share) / sizeof(*timeline->v);

	timeline->max = max < 1		 ? 1 :
			max > UINT32_MAX ? UINT32_MAX :
					   (uint32_t)max;
}

void wp_timeline_clear(struct wp_timeline *timeline)
{
	free(timeline->v);
	free(timeline->threads);
	*timeline = (struct wp_timeline){ 0 };
}

/* What the intervals of one thread and one window have in common. */
struct merge {
	/* v[begin..end) is read, and what becomes of it is written to
	 * v[begin..out). */
	uint32_t out;
	/* By sample, holder and window. */
	struct wp_index index;
	/* window[i - begin]: the window of v[i], for v[begin..out); owned. */
	uint64_t *window;
	/* Per thread the time of its intervals so far; owned. */
	uint64_t *time;
};

/* Returns the index of the interval that ONE, of WINDOW, is part of then. */
static uint32_t merge_one(struct wp_timeline *timeline, struct merge *m,
			  uint32_t begin, struct wp_timeline_interval one,
			  uint64_t window, int *rc)
{
	uint64_t hash = wp_hash_u64((uint64_t)one.sample << 32 | one.holder) ^
			wp_hash_u64(window << 20 | one.thread);
	uint32_t found = WP_INDEX_FIND(
		&m->index, hash, i,
		m->window[i - begin] == window &&
			timeline->v[i].sample == one.sample &&
			timeline->v[i].holder == one.holder &&
			timeline->v[i].thread == one.thread);

	if (found != WP_INDEX_NONE) {
		timeline->v[found].ns += one.ns;
		return found;
	}
	/* Without memory it stays by itself. */
	*rc = *rc ? *rc : wp_index_add(&m->index, hash, m->out);
	m->window[m->out - begin] = window;
	timeline->v[m->out] = one;
	return m->out++;
}

/* Take the intervals v[out..end) away; those that follow move down. */
static void close_gap(struct wp_timeline *timeline, uint32_t out, uint32_t end)
{
	memmove(timeline->v + out, timeline->v + end,
		(timeline->n - end) * sizeof(*timeline->v));
	for (uint32_t i = 0; i < timeline->nthreads; i++)
		if (timeline->threads[i].last > end)
			timeline->threads[i].last -= end - out;
	timeline->n -= end - out;
	timeline->nlost += end - out;
}

/* Merge v[begin..*END) by windows, and lower *END to where it ends then. */
static int merge_part(struct wp_timeline *timeline, uint32_t begin,
		      uint32_t *end)
{
	struct merge m = { .out = begin, .index = WP_INDEX_INIT };
	int rc = 0;

	m.window = calloc(*end - begin, sizeof(*m.window));
	m.time = calloc(timeline->nthreads, sizeof(*m.time));
	if (!m.window || !m.time)
		rc = -ENOMEM;
	for (uint32_t i = 0; i < *end && !rc; i++) {
		struct wp_timeline_interval one = timeline->v[i];
		struct wp_timeline_thread *t = &timeline->threads[one.thread];
		uint64_t window = m.time[one.thread] / timeline->window_ns;
		bool is_last = t->last == i + 1;
		uint32_t to;

		m.time[one.thread] += one.ns;
		if (i < begin)
			continue;
		/* One that goes on is merged with none. */
		to = merge_one(timeline, &m, begin, one,
			       is_last && t->is_open ? UINT64_MAX : window,
			       &rc);
		if (is_last)
			t->last = to + 1;
	}
	if (!rc) {
		close_gap(timeline, m.out, *end);
		*end = m.out;
	}
	wp_index_clear(&m.index);
	free(m.window);
	free(m.time);
	return rc;
}

static void drop_oldest(struct wp_timeline *timeline, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct wp_timeline_interval *one = &timeline->v[i];
		struct wp_timeline_thread *t = &timeline->threads[one->thread];

		t->dropped_ns += one->ns;
		if (t->last == i + 1)
			t->last = 0;
	}
	close_gap(timeline, 0, n);
	timeline->nmerged -= timeline->nmerged < n ? timeline->nmerged : n;
}

/* Make room in a full log. */
static int make_room(struct wp_timeline *timeline)
{
	uint32_t part = timeline->n / PARTS ? timeline->n / PARTS : timeline->n;
	uint32_t begin = timeline->nmerged, end;

	if (!timeline->window_ns)
		timeline->window_ns = FIRST_WINDOW_NS;
	if (begin + part > timeline->n) {
		begin = 0;
		if (timeline->window_ns < LAST_WINDOW_NS)
			timeline->window_ns *= 2;
	}
	end = begin + part;
	for (;;) {
		int rc = merge_part(timeline, begin, &end);

		if (rc)
			return rc;
		if (part - (end - begin) > part / LEAST)
			break;
		if (timeline->window_ns >= LAST_WINDOW_NS) {
			drop_oldest(timeline, end - begin);
			return 0;
		}
		timeline->window_ns *= 2;
	}
	timeline->nmerged = end;
	return 0;
}

static struct wp_timeline_thread *thread_of(struct wp_timeline *timeline,
					    uint32_t thread)
{
	if (thread >= timeline->nthreads) {
		uint32_t more = thread + 1 - timeline->nthreads;

		if (WP_VEC_ROOM(timeline->threads, timeline->nthreads,
				timeline->cap_threads, more))
			return NULL;
		memset(timeline->threads + timeline->nthreads, 0,
		       more * sizeof(*timeline->threads));
		timeline->nthreads = thread + 1;
	}
	return &timeline->threads[thread];
}

int wp_timeline_add(struct wp_timeline *timeline, uint32_t thread,
		    uint32_t sample, uint64_t ns)
{
	struct wp_timeline_thread *t;
	struct wp_timeline_interval *open;
	uint64_t back;
	int rc;

	if (!timeline->max || !ns)
		return 0;
	t = thread_of(timeline, thread);
	if (!t)
		return -ENOMEM;
	back = ns < t->owed_ns ? ns : t->owed_ns;
	t->owed_ns -= back;
	ns -= back;
	if (!ns)
		return 0;
	open = t->is_open && t->last ? &timeline->v[t->last - 1] : NULL;
	if (open && open->sample == sample) {
		open->ns += ns;
		return 0;
	}
	t->is_open = false;
	rc = timeline->n < timeline->max ? 0 : make_room(timeline);
	if (!rc)
		rc = WP_VEC_ROOM(timeline->v, timeline->n, timeline->cap, 1);
	if (rc)
		return rc;
	timeline->v[timeline->n++] = (struct wp_timeline_interval){
		.ns = ns,
		.thread = thread,
		.sample = sample,
	};
	t->last = timeline->n;
	t->is_open = true;
	return 0;
}

void wp_timeline_take_back(struct wp_timeline *timeline, uint32_t thread,
			   uint32_t sample, uint64_t ns)
{
	/* The wait may be several intervals, where the lock changed hands. */
	enum { FAR = 4096 };
	struct wp_timeline_thread *t;
	uint64_t part;

	if (thread >= timeline->nthreads)
		return;
	t = &timeline->threads[thread];
	for (uint32_t i = t->last, n = 0; i-- && n < FAR && ns; n++) {
		struct wp_timeline_interval *one = &timeline->v[i];

		if (one->thread != thread || one->sample != sample)
			continue;
		part = ns < one->ns ? ns : one->ns;
		one->ns -= part;
		ns -= part;
	}
	part = ns < t->dropped_ns ? ns : t->dropped_ns;
	t->dropped_ns -= part;
	t->owed_ns += ns - part;
}

void wp_timeline_end_interval(struct wp_timeline *timeline, uint32_t thread)
{
	if (thread < timeline->nthreads)
		timeline->threads[thread].is_open = false;
}

void wp_timeline_set_holder(struct wp_timeline *timeline, uint32_t thread,
			    uint32_t holder)
{
	struct wp_timeline_thread *t;
	struct wp_timeline_interval *open;

	if (thread >= timeline->nthreads)
		return;
	t = &timeline->threads[thread];
	if (!t->last || !t->is_open)
		return;
	open = &timeline->v[t->last - 1];
	if (!open->holder)
		open->holder = holder + 1;
	else if (open->holder != holder + 1)
		t->is_open = false;
}

void wp_timeline_divide(struct wp_timeline *timeline, const uint64_t *before,
			const uint64_t *after, uint32_t n)
{
	uint64_t *seen = calloc((size_t)n + 1, sizeof(*seen));

	/* Without memory the intervals stay as they were. */
	for (uint32_t i = 0; seen && i < timeline->n; i++) {
		struct wp_timeline_interval *one = &timeline->v[i];
		uint64_t given, until;
		uint32_t s = one->sample;

		if (s >= n || !before[s])
			continue;
		given = (uint64_t)((__uint128_t)after[s] * seen[s] / before[s]);
		seen[s] += one->ns;
		until = (uint64_t)((__uint128_t)after[s] * seen[s] / before[s]);
		one->ns = until - given;
	}
	free(seen);
}

uint64_t wp_timeline_dropped_ns(const struct wp_timeline *timeline,
				uint32_t thread)
{
	return thread < timeline->nthreads ?
		       timeline->threads[thread].dropped_ns :
		       0;
}
