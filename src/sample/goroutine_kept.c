/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_kept.c - see goroutine_kept.h. */
#include "goroutine_kept.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sampler_loop.h"
#include "stack_walk.h"
#include "target.h"
#include "threads.h"
#include "wallprof/budget.h"
#include "wallprof/clock.h"

enum {
	/* Goroutines with an entry of their own, where threads have no limit. */
	OWN_MAX = 30000,
	/* Bytes of such an entry's name, with labels. */
	NAME_MAX_BYTES = 256,
};
/* A program whose runtime has not begun is tried at each tick for so long, and then
 * once in so much time. */
#define BEGIN_NS (2 * WP_NS_PER_S)
#define RETRY_NS WP_NS_PER_S

/* Why goroutines are not recorded. */
static void give_up(struct wp_target *target, const char *why)
{
	struct wp_profile *profile = target->profile;
	char text[sizeof(((struct wp_err *)0)->msg) + 32];

	snprintf(text, sizeof(text), "threads, not goroutines: %s", why);
	profile->meta.source[WP_PROFILE_WALL] = wp_intern_add_str(
		&profile->strings, text);
}

/* Is the program itself Go's?  A library that Go has built has threads beside its
 * own. */
static bool is_go(struct wp_target *target)
{
	const struct wp_unwind_modules *view = &target->space.view;
	const struct wp_unwind_module *first =
		view->len ? wp_unwind_find_module(view, view->v[0].start_avma) :
			    NULL;

	return first && first->image && first->image->go_table.size;
}

static int open_times(struct wp_goroutine_times *times, struct wp_err *err)
{
	struct wp_target *target = times->target;
	int32_t pids[WP_PID_LEVELS];
	int rc = wp_go_target_open(&times->go, err);
	int n;

	if (!rc)
		rc = wp_goroutine_looks_new(&times->looks, times->go.program);
	if (rc)
		return rc;
	n = wp_proc_nspid_read(pids, target->process->proc_fd, "status");
	times->level = n > 0 ? n - 1 : 0;
	times->begin_ns = times->last_ns = times->since_ns =
		target->loop->tick_ns;
	times->cached_look = UINT32_MAX;
	times->first_entry = target->profile->nthreads;
	target->profile->meta.is_of_goroutines = !target->loop->options.many;
	target->profile->meta.has_goroutine_ids =
		target->loop->options.goroutine_ids;
	return 0;
}

int wp_goroutine_kept_open(struct wp_target *target)
{
	uint64_t now = target->loop->tick_ns;
	struct wp_err err = WP_ERR_INIT;
	struct wp_goroutine_times *times;
	int rc;

	if (!target->loop->options.goroutines || target->goroutines ||
	    now < target->go_retry_ns ||
	    (target->go_is_none && target->go_execs == target->space.nexecs))
		return 0;
	target->go_execs = target->space.nexecs;
	target->go_is_none = !is_go(target);
	if (target->go_is_none)
		return 0;
	times = calloc(1, sizeof(*times));
	if (!times)
		return -ENOMEM;
	times->target = times->go.target = target;
	target->goroutines = times;
	rc = open_times(times, &err);
	if (!rc)
		return 0;
	wp_goroutine_times_close(target);
	if (rc == -ENOMEM)
		return rc;
	target->go_is_none = rc == -ENOTSUP;
	if (now - target->start_ns > BEGIN_NS)
		target->go_retry_ns = now + RETRY_NS;
	give_up(target, err.msg);
	return 0;
}

void wp_goroutine_times_close(struct wp_target *target)
{
	struct wp_goroutine_times *times = target->goroutines;

	if (!times)
		return;
	target->goroutines = NULL;
	wp_goroutine_looks_free(times->looks);
	wp_go_target_close(&times->go);
	wp_budget_give(WP_BUDGET_GO, times->taken);
	wp_goroutine_entries_clear(&times->entries);
	wp_goroutines_clear(&times->read);
	free(times->slots);
	free(times->changed);
	free(times->runners);
	free(times);
}

/* Read the labels at LABELS_AVMA into LABELS; their number, or -ENOMEM. */
static int read_labels(struct wp_goroutine_times *times, uint64_t labels_avma,
		       struct wp_profile_label *labels)
{
	uint32_t first, n = 0;
	int rc;

	if (!labels_avma)
		return 0;
	times->read.nlabels = 0;
	rc = wp_goroutine_labels_read(times->go.program, labels_avma,
				      &times->target->profile->strings,
				      &times->read, &first, &n);
	if (rc)
		return rc;
	if (n > WP_GOROUTINE_LABELS_MAX)
		n = WP_GOROUTINE_LABELS_MAX;
	for (uint32_t i = 0; i < n; i++)
		labels[i] = (struct wp_profile_label){
			times->read.labels[first + i].key,
			times->read.labels[first + i].value
		};
	return (int)n;
}

/* Is a goroutine that has no entry yet to have one of its own? */
static bool has_own(const struct wp_goroutine_times *times)
{
	const struct wp_sampler_options *o = &times->target->loop->options;
	uint32_t most = o->own_threads ? o->own_threads : OWN_MAX;

	return (o->goroutine_ids || o->note_holders) &&
	       times->entries.nown < most;
}

static struct wp_goroutine_entry
begin_entry(const struct wp_goroutine_times *times, enum wp_goroutine_part part)
{
	return (struct wp_goroutine_entry){
		.part = part,
		.process = times->target->index,
		.first_ns = times->since_ns,
	};
}

/* The name of a goroutine's own entry: the function that it began with and, LABELLED,
 * the labels that it was met with. */
static uint32_t name_own(struct wp_goroutine_times *times,
			 const struct wp_goroutine_more *more, bool labelled,
			 const struct wp_profile_label *labels, uint32_t n)
{
	struct wp_profile *profile = times->target->profile;
	const char *function = wp_go_program_function(times->go.program,
						      more->start_avma);
	char name[NAME_MAX_BYTES];
	size_t at = (size_t)snprintf(name, sizeof(name), "%s",
				     function ? function : "goroutine");

	for (uint32_t i = 0; labelled && i < n && at < sizeof(name); i++)
		at += (size_t)snprintf(
			name + at, sizeof(name) - at, "%s%s=%s", i ? ", " : " ",
			wp_profile_str(profile, labels[i].key),
			wp_profile_str(profile, labels[i].value));
	return wp_intern_add_str(&profile->strings, name);
}

/* The entry of goroutine ID's own, made if new, with WHAT's part. */
static uint32_t own_entry(struct wp_goroutine_times *times, uint64_t id,
			  const struct wp_goroutine_more *more,
			  struct wp_goroutine_entry what)
{
	bool timed = times->target->loop->options.note_holders;
	struct wp_profile_label labels[WP_GOROUTINE_LABELS_MAX];
	int n = read_labels(times, more->labels_avma, labels);

	if (n < 0)
		return UINT32_MAX;
	what.goroutine = id;
	what.name = name_own(times, more, timed, labels, (uint32_t)n);
	if (what.name == UINT32_MAX)
		return UINT32_MAX;
	what.labels = labels;
	what.nlabels = timed ? 0 : (uint32_t)n;
	return wp_goroutine_entries_find_or_add(&times->entries,
						times->target->profile, &what);
}

/* The entry of all goroutines with the labels of one, made if new, with WHAT's
 * part. */
static uint32_t shared_entry(struct wp_goroutine_times *times,
			     const struct wp_goroutine_more *more,
			     struct wp_goroutine_entry what)
{
	struct wp_profile_label labels[WP_GOROUTINE_LABELS_MAX];
	int n = 0;

	if (times->cached_look == times->look &&
	    times->cached_labels_avma == more->labels_avma)
		return times->cached_entry;
	if (!times->target->loop->options.note_holders)
		n = read_labels(times, more->labels_avma, labels);
	if (n < 0)
		return UINT32_MAX;
	what.labels = labels;
	what.nlabels = (uint32_t)n;
	times->cached_look = times->look;
	times->cached_labels_avma = more->labels_avma;
	times->cached_entry = wp_goroutine_entries_find_or_add(
		&times->entries, times->target->profile, &what);
	return times->cached_entry;
}

/* A timeline is one goroutine's from its begin to its end, whatever labels it
 * gets. */
uint32_t wp_goroutine_kept_entry(struct wp_goroutine_times *times, uint64_t id,
				 const struct wp_goroutine_more *more,
				 bool is_runtime)
{
	struct wp_profile *profile = times->target->profile;
	struct wp_goroutine_entry what = begin_entry(
		times, is_runtime ? WP_GOROUTINE_RUNTIME : WP_GOROUTINE_OWN);
	uint32_t found = UINT32_MAX;

	if (is_runtime)
		return wp_goroutine_entries_find_or_add(&times->entries,
							profile, &what);
	if (times->target->loop->options.note_holders) {
		what.goroutine = id;
		found = wp_goroutine_entries_find(&times->entries, profile,
						  &what);
		what.goroutine = 0;
	}
	if (found != UINT32_MAX)
		return found;
	return has_own(times) ? own_entry(times, id, more, what) :
				shared_entry(times, more, what);
}

static uint32_t part_entry(struct wp_goroutine_times *times,
			   enum wp_goroutine_part part)
{
	const struct wp_goroutine_entry what = begin_entry(times, part);

	return wp_goroutine_entries_find_or_add(&times->entries,
						times->target->profile, &what);
}

uint32_t wp_goroutine_kept_idle(struct wp_goroutine_times *times)
{
	return part_entry(times, WP_GOROUTINE_RUNTIME_IDLE);
}

uint32_t wp_goroutine_kept_scheduler(struct wp_goroutine_times *times)
{
	return part_entry(times, WP_GOROUTINE_SCHEDULER);
}

uint32_t wp_goroutine_kept_unlabelled(struct wp_goroutine_times *times)
{
	return part_entry(times, WP_GOROUTINE_OWN);
}

bool wp_goroutine_kept_owns(const struct wp_goroutine_times *times,
			    const struct wp_profile_sample *s)
{
	const struct wp_profile_thread *t =
		&times->target->profile->threads[s->key.thread];

	return t->part && t->process == times->target->index &&
	       s->key.thread >= times->first_entry;
}

struct wp_thread *wp_goroutine_kept_thread(struct wp_goroutine_times *times,
					   int32_t tid)
{
	struct wp_target *target = times->target;
	int32_t pids[WP_PID_LEVELS];
	char path[32];
	int n;

	if (tid <= 0)
		return NULL;
	if (!times->level)
		return wp_threads_find(target, tid);
	for (size_t i = 0; i < target->nthreads; i++) {
		struct wp_thread *t = target->threads[i];

		if (!t->own_tid) {
			snprintf(path, sizeof(path), "%d/status", t->tid);
			n = wp_proc_nspid_read(pids, target->process->task_fd,
					       path);
			t->own_tid = n > times->level ? pids[times->level] : -1;
		}
		if (t->own_tid == tid)
			return t;
	}
	return NULL;
}

bool wp_goroutine_kept_walk(void *ctx, struct wp_goroutine *g,
			    const struct wp_goroutine_stack *stack, bool last)
{
	struct wp_goroutine_times *times = ctx;
	struct wp_stack_walk walk;

	if (!stack) {
		g->stack = wp_stack_walk_intern_none(times->target,
						     WP_END_EMPTY);
		return true;
	}
	walk = wp_go_target_walk(times->target, g, stack);
	if (!wp_stack_walk_is_whole(walk.stack.end) && !last)
		return false;
	g->stack = wp_stack_walk_intern(times->target, &walk);
	return true;
}

int wp_goroutine_kept_describe(const struct wp_goroutine_times *times)
{
	struct wp_profile *profile = times->target->profile;
	uint64_t ns = times->target->last_tick_ns - times->target->start_ns;
	double seconds = ns ? (double)ns / 1e9 : 1;
	uint32_t nlooks = times->look ? times->look : 1;
	char text[512];
	size_t n = (size_t)snprintf(
		text, sizeof(text),
		"%sgoroutines of %s, looked at %.3g times a second",
		wp_profile_is_of_many(profile) ? "of Go programs the " : "",
		wp_go_program_version(times->go.program),
		(double)times->look / seconds);

	if (times->nput_off)
		n += (size_t)snprintf(
			text + n, sizeof(text) - n,
			" (a look takes %.3g ms of CPU time, and all looks at "
			"most a quarter of a CPU)",
			(double)times->cost_ns / nlooks / 1e6);
	if (times->nunread)
		snprintf(text + n, sizeof(text) - n,
			 "; up to %" PRIu32 " goroutines were not read",
			 times->nunread);
	profile->meta.source[WP_PROFILE_WALL] = wp_intern_add_str(
		&profile->strings, text);
	return profile->meta.source[WP_PROFILE_WALL] == UINT32_MAX ? -ENOMEM :
								     0;
}
