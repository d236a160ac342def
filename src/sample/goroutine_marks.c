/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_marks.c - see wallprof/goroutine_marks.h. */
#include "wallprof/goroutine_marks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "go_target.h"
#include "target.h"
#include "wallprof/budget.h"
#include "wallprof/clock.h"
#include "wallprof/vec.h"

/* A group is of so many at least, and has got so many more. */
enum { GROUP_MIN = 10, GROWTH_MIN = 10 };
/* Go statements of which it is noted that goroutines have ended. */
enum { ENDED_MAX = 256 };

/* A mark of the second look beside the same goroutine's of the first. */
struct pair {
	const struct wp_goroutine_mark *after;
	/* It was there, in the same group, and has not run. */
	bool stays;
	/* The first look's, of which nothing is there any more as it was. */
	bool has_left;
};

/* What one goroutine takes at each look. */
enum { MARK_BYTES = sizeof(struct wp_goroutine_mark) + sizeof(struct pair) };

struct marker {
	struct wp_goroutine_marks *marks;
	struct wp_goroutine_looks *looks;
	const struct wp_go_program *program;
	/* For which there was no room. */
	uint32_t nleft;
	int rc;
};

/* By the words of Go's runtime (runtime/runtime2.go, waitReasonStrings). */
static bool is_inside(const char *reason)
{
	static const char *const reasons[] = {
		"chan receive",
		"chan receive (nil chan)",
		"chan send",
		"chan send (nil chan)",
		"select",
		"select (no cases)",
		"semacquire",
		"sync.Cond.Wait",
		"sync.Mutex.Lock",
		"sync.RWMutex.Lock",
		"sync.RWMutex.RLock",
		"sync.WaitGroup.Wait",
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		if (!strcmp(reason, reasons[i]))
			return true;
	return false;
}

/* Does the goroutine wait, be it that the garbage collector has found that nothing can end
 * its wait (Go 1.26, _Gleaked)? */
static bool is_parked(const struct wp_goroutine_words *words)
{
	return words->state == WP_GOROUTINE_WAITING ||
	       words->state == WP_GOROUTINE_LEAKED;
}

/* Does a goroutine of Go's runtime that began with START run what the program gave it, a
 * finalizer or what runtime.AddCleanup was given, unless it waits for REASON? */
static bool runs_given(const char *start,
		       const struct wp_goroutine_words *words,
		       const char *reason)
{
	static const char *const starts[] = {
		"runtime.runfinq",
		"runtime.runFinalizers",
		"runtime.runCleanups",
	};

	if (words->state == WP_GOROUTINE_WAITING &&
	    (!strcmp(reason, "finalizer wait") ||
	     !strcmp(reason, "cleanup wait")))
		return false;
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (!strcmp(start, starts[i]))
			return true;
	return false;
}

struct wp_goroutine_mark
wp_goroutine_marks_make(const struct wp_go_program *program,
			const struct wp_goroutine_words *words,
			const struct wp_goroutine_more *more)
{
	const char *reason = wp_go_program_reason(program, more->reason);
	bool is_runtime = wp_go_program_is_runtime(program, more->start_avma);
	const char *start = wp_go_program_function(program, more->start_avma);

	return (struct wp_goroutine_mark){
		.words = *words,
		.created_avma = more->created_avma,
		.start_avma = more->start_avma,
		.reason = more->reason,
		.waits_inside = is_parked(words) && is_inside(reason),
		.takes_signals = start && !strcmp(start, "os/signal.loop"),
		.is_runtime = is_runtime && !runs_given(start, words, reason),
	};
}

static void mark_one(void *ctx, uint32_t index,
		     const struct wp_goroutine_words *words,
		     const uint8_t *bytes)
{
	struct marker *m = ctx;
	struct wp_goroutine_marks *marks = m->marks;
	struct wp_goroutine_more more;

	(void)index;
	if (m->rc)
		return;
	if (!wp_budget_take(WP_BUDGET_GOROUTINES, MARK_BYTES)) {
		m->nleft++;
		return;
	}
	marks->taken += MARK_BYTES;
	m->rc = WP_VEC_ROOM(marks->v, marks->n, marks->cap, 1);
	if (m->rc)
		return;
	more = wp_goroutine_looks_more(m->looks, bytes);
	marks->v[marks->n++] = wp_goroutine_marks_make(m->program, words,
						       &more);
}

/* Where MARKS have those of CREATED_AVMA and START_AVMA; NULL: none has ended. */
static struct wp_goroutine_ended *
find_ended(const struct wp_goroutine_marks *marks, uint64_t created_avma,
	   uint64_t start_avma)
{
	for (uint32_t i = 0; i < marks->nended; i++)
		if (marks->ended[i].created_avma == created_avma &&
		    marks->ended[i].start_avma == start_avma)
			return &marks->ended[i];
	return NULL;
}

static void note_ended(void *ctx, uint64_t id,
		       const struct wp_goroutine_more *more)
{
	struct marker *m = ctx;
	struct wp_goroutine_marks *marks = m->marks;
	struct wp_goroutine_ended *e = find_ended(marks, more->created_avma,
						  more->start_avma);

	/* No goroutine has had the struct. */
	if (!id)
		return;
	/* Without memory they are not known to have ended. */
	if (!e &&
	    (marks->nended == ENDED_MAX ||
	     WP_VEC_ROOM(marks->ended, marks->nended, marks->cap_ended, 1)))
		return;
	if (!e) {
		e = &marks->ended[marks->nended++];
		*e = (struct wp_goroutine_ended){ more->created_avma,
						  more->start_avma, 0 };
	}
	if (id > e->id)
		e->id = id;
}

static int by_id(const void *a, const void *b)
{
	const struct wp_goroutine_mark *x = a, *y = b;

	return (x->words.id > y->words.id) - (x->words.id < y->words.id);
}

static int look(struct wp_goroutine_marks *marks, struct wp_target *target)
{
	struct wp_go_target go = { .target = target };
	struct marker m = { .marks = marks };
	uint32_t n, nleft;
	int rc = wp_go_target_open(&go, NULL);

	if (rc == -ENOENT || rc == -ENOTSUP || rc == -EAGAIN)
		return 0;
	if (!rc)
		rc = wp_goroutine_looks_new(&m.looks, go.program);
	m.program = go.program;
	if (!rc)
		rc = wp_goroutine_looks_update(m.looks, &n, &nleft);
	marks->time_ns = wp_clock_ns();
	if (!rc)
		wp_goroutine_looks_tell_ended(m.looks, note_ended);
	if (!rc)
		rc = wp_goroutine_looks_make(m.looks, mark_one, &m,
					     &marks->nunread);
	if (!rc)
		marks->nunread += nleft + m.nleft;
	wp_goroutine_looks_free(m.looks);
	wp_go_target_close(&go);
	if (marks->n)
		qsort(marks->v, marks->n, sizeof(*marks->v), by_id);
	return rc ? rc : m.rc;
}

int wp_goroutine_marks_read(struct wp_goroutine_marks *ret,
			    struct wp_process *process)
{
	const struct wp_sampler_options options = {
		.wall = true,
		.stop = WP_STOP_NEVER,
		.scan = WP_SCAN_PROC,
		.max_depth = 1,
		.interval_ns = WP_NS_PER_S,
	};
	struct wp_tracer tracer = WP_TRACER_INIT;
	struct wp_sampler *sampler = NULL;
	struct wp_profile profile;
	struct wp_target *target;
	int rc = wp_profile_init(&profile);

	if (rc)
		return rc;
	wp_tracer_init(&tracer);
	rc = wp_sampler_new(&sampler, &options, &tracer, NULL);
	if (!rc)
		rc = wp_sampler_add_target(sampler, process, &profile, &target,
					   NULL);
	if (!rc)
		rc = look(ret, target);
	/* Who looks at its threads will say why. */
	if (rc && rc != -ENOMEM) {
		wp_goroutine_marks_clear(ret);
		rc = 0;
	}
	wp_sampler_free(sampler);
	wp_tracer_clear(&tracer);
	wp_profile_clear(&profile);
	return rc;
}

void wp_goroutine_marks_clear(struct wp_goroutine_marks *marks)
{
	free(marks->v);
	free(marks->ended);
	wp_budget_give(WP_BUDGET_GOROUTINES, marks->taken);
	*marks = (struct wp_goroutine_marks)WP_GOROUTINE_MARKS_INIT;
}

static bool has_run(const struct wp_goroutine_mark *a,
		    const struct wp_goroutine_mark *b)
{
	/* Each garbage collection may find anew which goroutines have leaked. */
	bool waits = is_parked(&a->words) && is_parked(&b->words);

	return (a->words.status != b->words.status && !waits) ||
	       a->words.seq != b->words.seq ||
	       a->words.sp_avma != b->words.sp_avma ||
	       a->words.pc_avma != b->words.pc_avma || a->reason != b->reason;
}

static int by_group(const void *a, const void *b)
{
	const struct wp_goroutine_mark *x = ((const struct pair *)a)->after;
	const struct wp_goroutine_mark *y = ((const struct pair *)b)->after;
	const uint64_t of_x[] = { x->created_avma, x->start_avma, x->reason };
	const uint64_t of_y[] = { y->created_avma, y->start_avma, y->reason };

	for (size_t i = 0; i < 3; i++)
		if (of_x[i] != of_y[i])
			return of_x[i] > of_y[i] ? 1 : -1;
	return 0;
}

/* Set PAIRS, which has room, of the two looks; their number. */
static size_t make_pairs(const struct wp_goroutine_marks *before,
			 const struct wp_goroutine_marks *after,
			 struct pair *pairs)
{
	uint32_t i = 0, k = 0;
	size_t n = 0;

	while (i < before->n || k < after->n) {
		const struct wp_goroutine_mark *x = i < before->n ?
							    &before->v[i] :
							    NULL;
		const struct wp_goroutine_mark *y = k < after->n ?
							    &after->v[k] :
							    NULL;
		bool same = x && y && x->words.id == y->words.id;

		if (x && (!y || x->words.id < y->words.id)) {
			pairs[n++] = (struct pair){ x, false, true };
			i++;
			continue;
		}
		if (same && has_run(x, y))
			pairs[n++] = (struct pair){ x, false, true };
		pairs[n++] = (struct pair){ y, same && !has_run(x, y), false };
		i += same;
		k++;
	}
	return n;
}

/* Is a group that has got GROWTH more to be told in place of RET's? */
static bool is_worse(bool is_queue, uint32_t growth,
		     const struct wp_goroutine_change *ret)
{
	if (!ret->grown_id || is_queue != ret->is_queue)
		return !ret->grown_id || !is_queue;
	return growth > ret->nafter - ret->nbefore;
}

/* Take over group V[0..N) if it only grows, more than the one before.  Who waits in a
 * queue is overtaken by none that came later; who leaks is, if others do not.  Ids are in
 * the order of creation but for some, as each P has 16 in stock (runtime/proc.go,
 * newproc1). */
static void judge_group(const struct pair *v, size_t n,
			const struct wp_goroutine_ended *ended,
			struct wp_goroutine_change *ret)
{
	uint32_t nbefore = 0, nafter = 0, novertaken = 0;
	bool is_queue;

	for (size_t i = 0; i < n; i++) {
		if (v[i].has_left || !v[i].after->waits_inside ||
		    v[i].after->is_runtime)
			return;
		nbefore += v[i].stays;
		nafter++;
		novertaken += ended && v[i].after->words.id < ended->id;
	}
	is_queue = ended && novertaken < (nafter + 1) / 2;
	if (nbefore < GROUP_MIN || nafter - nbefore < GROWTH_MIN ||
	    !is_worse(is_queue, nafter - nbefore, ret))
		return;
	ret->grown_id = v[0].after->words.id;
	ret->is_queue = is_queue;
	ret->nbefore = nbefore;
	ret->nafter = nafter;
}

int wp_goroutine_marks_compare(const struct wp_goroutine_marks *before,
			       const struct wp_goroutine_marks *after,
			       struct wp_goroutine_change *ret)
{
	struct pair *pairs;
	size_t n, first = 0;

	*ret = (struct wp_goroutine_change){ .all_wait_inside = true };
	if (!before->n || !after->n || before->nunread || after->nunread) {
		ret->all_wait_inside = false;
		return 0;
	}
	pairs = calloc((size_t)before->n + after->n, sizeof(*pairs));
	if (!pairs)
		return -ENOMEM;
	n = make_pairs(before, after, pairs);
	for (size_t i = 0; i < n; i++) {
		const struct wp_goroutine_mark *mark = pairs[i].after;

		if (pairs[i].has_left || mark->is_runtime)
			continue;
		ret->takes_signals |= mark->takes_signals;
		ret->nown += !mark->takes_signals;
		ret->all_wait_inside &= mark->takes_signals ||
					(mark->waits_inside && pairs[i].stays);
	}
	qsort(pairs, n, sizeof(*pairs), by_group);
	for (size_t i = 1; i <= n; i++) {
		if (i < n && !by_group(&pairs[first], &pairs[i]))
			continue;
		judge_group(pairs + first, i - first,
			    find_ended(after, pairs[first].after->created_avma,
				       pairs[first].after->start_avma),
			    ret);
		first = i;
	}
	free(pairs);
	return 0;
}
