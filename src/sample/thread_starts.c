/* SPDX-License-Identifier: Apache-2.0 */
/* thread_starts.c - threads, by the stack that created them: see thread_starts.h.
 *
 * Perf records tell the start of a thread, its creator and its end.  A sample of the
 * creator, which the tracepoint task:task_newtask takes right after the record of
 * the start, holds the stack.  Where the tracepoint is not permitted, threads are
 * counted without a stack; where perf events are not, ticks compare their lists of
 * threads.
 */
#include "thread_starts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler_loop.h"
#include "start_events.h"
#include "stack_walk.h"
#include "target.h"
#include "threads.h"
#include "wallprof/clock.h"
#include "wallprof/lower_bound.h"
#include "wallprof/vec.h"

enum {
	/* Records are handed out in order of time when they are this old. */
	SETTLE_NS = 2000000,
	/* Starts among which the one that a sample is about is searched. */
	RECENT = 64,
};

/* A thread that has not ended. */
struct thread_start {
	pid_t tid;
	/* Tid of the thread that started it; 0: not known. */
	pid_t creator;
	/* From then on its life is not counted yet. */
	uint64_t begin_ns;
	/* It was counted, with KEY: its creator's sample came, or none is
	 * expected. */
	bool counted;
	struct wp_sample_key key;
	/* The thread's serial, if a list of threads told the start. */
	uint64_t serial;
};

struct wp_thread_starts {
	/* The common's. */
	struct wp_start_events *all;
	/* Threads that started before are not counted. */
	uint64_t since_ns;
	/* Records known to be lost at the last tick. */
	uint64_t lost;
	/* Up to this tick lists of threads may tell starts and ends whose record
	 * was lost. */
	uint64_t suspect_tick;
	/* Threads that live: v[0..n) by tid; owned. */
	struct thread_start *v;
	size_t n, cap;
	/* Tids of the last starts: a circular array. */
	pid_t recent[RECENT];
	size_t nrecent;
};

int wp_thread_starts_open(struct wp_target *target)
{
	struct wp_thread_starts *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	target->thread_starts = b;
	b->all = wp_start_events_find_or_add(target);
	if (!b->all)
		return -ENOMEM;
	b->lost = wp_perf_source_lost(&b->all->events);
	/* The recording begins now: threads that started before live already. */
	b->since_ns = wp_clock_ns();
	return 0;
}

void wp_thread_starts_begin(struct wp_target *target, uint64_t since_ns)
{
	if (target->thread_starts)
		target->thread_starts->since_ns = since_ns;
}

/* The index of TID's start, or where it would be inserted. */
static size_t start_index(const struct wp_thread_starts *b, pid_t tid)
{
	return WP_LOWER_BOUND(b->n, i, b->v[i].tid < tid);
}

static struct thread_start *find_start(struct wp_thread_starts *b, pid_t tid)
{
	size_t i = start_index(b, tid);

	return i < b->n && b->v[i].tid == tid ? &b->v[i] : NULL;
}

static void remove_start(struct wp_thread_starts *b, struct thread_start *start)
{
	size_t i = (size_t)(start - b->v);

	memmove(start, start + 1, (--b->n - i) * sizeof(*b->v));
}

static int add_weight(struct wp_target *target, const struct wp_sample_key *key,
		      uint64_t count, uint64_t ns)
{
	return wp_profile_add_sample(target->profile, WP_PROFILE_THREADCREATE,
				     key, count, ns);
}

/* Count START, which STACK of thread INDEX made. */
static int count_start(struct wp_target *target, struct thread_start *start,
		       uint32_t stack, uint32_t index)
{
	struct wp_thread_starts *b = target->thread_starts;

	if (stack == UINT32_MAX)
		return -ENOMEM;
	b->all->created++;
	b->all->without_stack += target->profile->stacks[stack].end ==
				 WP_END_NO_RECORD;
	start->key = (struct wp_sample_key){ .stack = stack, .thread = index };
	start->counted = true;
	return add_weight(target, &start->key, 1, 0);
}

/* Count START without a stack, unless -t leaves its creator out. */
static int count_without_stack(struct wp_target *target,
			       struct thread_start *start)
{
	struct wp_thread *t = wp_threads_find_or_add(target, start->creator);

	if (!t)
		return -ENOMEM;
	return t->watched ? count_start(target, start,
					wp_stack_walk_intern_none(
						target, WP_END_NO_RECORD),
					t->index) :
			    0;
}

/* Count the life of START's thread until NOW, if the thread is counted. */
static int add_life(struct wp_target *target, struct thread_start *start,
		    uint64_t now)
{
	uint64_t from_ns = start->begin_ns;

	if (!start->counted || now <= from_ns)
		return 0;
	start->begin_ns = now;
	return add_weight(target, &start->key, 0, now - from_ns);
}

int wp_thread_starts_settle(struct wp_target *target)
{
	struct wp_thread_starts *b = target->thread_starts;
	int rc = 0;

	for (size_t i = 0; b && i < b->n && !rc; i++)
		rc = add_life(target, &b->v[i], target->loop->tick_ns);
	return rc;
}

/* START's thread ended at END_NS: count its life and remove START. */
static int end_start(struct wp_target *target, struct thread_start *start,
		     uint64_t end_ns)
{
	int rc = 0;

	if (!start->counted && start->creator)
		rc = count_without_stack(target, start);
	if (!rc)
		rc = add_life(target, start, end_ns);
	remove_start(target->thread_starts, start);
	return rc;
}

/* Thread TID starts at BEGIN_NS.  0 and *RET, valid until the next call, or
 * -ENOMEM. */
static int add_start(struct wp_target *target, pid_t tid, uint64_t begin_ns,
		     struct thread_start **ret)
{
	struct wp_thread_starts *b = target->thread_starts;
	struct thread_start *old = find_start(b, tid);
	int rc = old ? end_start(target, old, begin_ns) : 0;
	size_t i = start_index(b, tid);

	if (!rc && WP_VEC_ROOM(b->v, b->n, b->cap, 1))
		rc = -ENOMEM;
	if (rc)
		return rc;
	memmove(&b->v[i + 1], &b->v[i], (b->n++ - i) * sizeof(*b->v));
	b->v[i] = (struct thread_start){ .tid = tid, .begin_ns = begin_ns };
	*ret = &b->v[i];
	return 0;
}

static int add_forked(struct wp_target *target,
		      const struct wp_perf_record *record)
{
	struct wp_thread_starts *b = target->thread_starts;
	struct thread_start *start;
	int rc;

	if (record->tid == record->pid || record->time_ns < b->since_ns)
		return 0;
	rc = add_start(target, record->tid, record->time_ns, &start);
	if (rc)
		return rc;
	start->creator = record->parent_tid;
	b->recent[b->nrecent++ % RECENT] = record->tid;
	return 0;
}

/* The last start by CREATOR, if its sample, which comes right after its record, has
 * not come yet.  NULL: CREATOR started a process. */
static struct thread_start *find_created(struct wp_thread_starts *b,
					 pid_t creator)
{
	for (size_t i = 1; i <= RECENT && i <= b->nrecent; i++) {
		pid_t tid = b->recent[(b->nrecent - i) % RECENT];
		struct thread_start *start = find_start(b, tid);

		if (start && start->creator == creator)
			return start->counted ? NULL : start;
	}
	return NULL;
}

static int add_stack(struct wp_target *target,
		     const struct wp_perf_record *record)
{
	struct wp_thread_starts *b = target->thread_starts;
	struct thread_start *start = find_created(b, record->tid);
	struct wp_thread *t;
	struct wp_stack_walk walk;

	if (!start || !wp_reg_known(&record->regs, WP_REG_PC))
		return 0;
	t = wp_threads_find_or_add(target, record->tid);
	if (!t)
		return -ENOMEM;
	if (!t->watched)
		return 0;
	walk = wp_stack_walk_sample(target, &b->all->events, record);
	return count_start(target, start, wp_stack_walk_intern(target, &walk),
			   t->index);
}

static int add_record(struct wp_target *target,
		      const struct wp_perf_record *record)
{
	struct wp_thread_starts *b = target->thread_starts;
	struct thread_start *ended;

	switch (record->type) {
	case WP_PERF_FORK:
		return add_forked(target, record);
	case WP_PERF_EXIT:
		ended = find_start(b, record->tid);
		return ended ? end_start(target, ended, record->time_ns) : 0;
	case WP_PERF_SAMPLE_THREAD_START:
		return add_stack(target, record);
	default:
		return 0;
	}
}

/* Read the records of before UNTIL_NS.  Of several processes those that started before
 * the tick at hand are known. */
static int read_records(struct wp_start_events *all, struct wp_sampler *loop,
			uint64_t until_ns)
{
	struct wp_perf_record record;
	int rc = 0;

	if (!all->only && until_ns > loop->tick_ns)
		until_ns = loop->tick_ns;
	while (!rc && wp_perf_source_next(&all->events, until_ns, &record)) {
		struct wp_target *target = all->only ?
						   all->only :
						   wp_sampler_find_last(
							   loop, record.pid);

		rc = target ? add_record(target, &record) : 0;
	}
	return rc;
}

/* Thread TID lives now: the list of threads may be older than the records. */
static bool is_alive(struct wp_target *target, pid_t tid)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", tid);
	return !faccessat(target->process->task_fd, name, F_OK, 0);
}

/* T may have started before the recording: it is in the first list. */
static bool is_old(const struct wp_target *target, const struct wp_thread *t)
{
	return t->first_ns <= target->start_ns &&
	       (!target->held || t->tid == target->process->pid);
}

/* The record of T's start was lost.  T must be in the list for the second time: at
 * its first, the record of its end may just have been read. */
static bool was_missed(struct wp_target *target, const struct wp_thread *t)
{
	return !is_old(target, t) && t->first_ns < target->last_tick_ns &&
	       is_alive(target, t->tid);
}

/* T is in the list of threads. */
static int compare_thread(struct wp_target *target, const struct wp_thread *t,
			  uint64_t between_ns)
{
	struct thread_start *start = find_start(target->thread_starts, t->tid);
	int rc = 0;

	if (start && (start->serial == t->serial || start->creator))
		return 0;
	if (target->thread_starts->all->events.perf && !was_missed(target, t))
		return 0;
	rc = add_start(target, t->tid,
		       target->thread_starts->all->events.perf ? t->first_ns :
								 between_ns,
		       &start);
	if (rc)
		return rc;
	start->serial = t->serial;
	return is_old(target, t) || !t->watched ?
		       0 :
		       count_start(target, start,
				   wp_stack_walk_intern_none(target,
							     WP_END_NO_RECORD),
				   t->index);
}

/* Compare the list of threads with the starts: a new thread started, and a missing
 * one ended, half-way since the last tick. */
static int compare_list(struct wp_target *target)
{
	struct wp_thread_starts *b = target->thread_starts;
	uint64_t between_ns = target->last_tick_ns +
			      (target->loop->tick_ns - target->last_tick_ns) /
				      2;
	int rc = 0;

	for (size_t i = 0; i < target->nthreads && !rc; i++)
		rc = compare_thread(target, target->threads[i], between_ns);
	for (size_t i = b->n; i-- > 0 && !rc;)
		if (!wp_threads_find(target, b->v[i].tid) &&
		    !is_alive(target, b->v[i].tid))
			rc = end_start(target, &b->v[i], between_ns);
	return rc;
}

/* Read the records of before UNTIL_NS; if records were lost, compare with the list of
 * threads. */
static int read_and_compare(struct wp_target *target, uint64_t until_ns)
{
	struct wp_thread_starts *b = target->thread_starts;
	uint64_t lost;
	int rc = read_records(b->all, target->loop, until_ns);

	lost = wp_perf_source_lost(&b->all->events);
	if (lost != b->lost)
		b->suspect_tick = target->tick + 2;
	b->lost = lost;
	if (target->tick > b->suspect_tick || rc)
		return rc;
	/* Now no record of a thread in the list is still to be read. */
	rc = read_records(b->all, target->loop, UINT64_MAX);
	return rc ? rc : compare_list(target);
}

int wp_thread_starts_read(struct wp_common *common, struct wp_sampler *loop)
{
	struct wp_start_events *all = common->start_events;

	return all && all->events.perf ?
		       read_records(all, loop, wp_clock_ns() - SETTLE_NS) :
		       0;
}

int wp_thread_starts_tick(struct wp_target *target)
{
	struct wp_thread_starts *b = target->thread_starts;
	int rc;

	if (!b)
		return 0;
	if (!b->all->events.perf)
		return compare_list(target);
	rc = read_and_compare(target, target->loop->tick_ns - SETTLE_NS);
	if (!rc)
		wp_perf_source_grow(&b->all->events,
				    wp_start_events_process(b->all));
	return rc;
}

int wp_thread_starts_finish(struct wp_target *target)
{
	struct wp_thread_starts *b = target->thread_starts;
	/* Where the recording ends; the last stops took some time since. */
	uint64_t end_ns = target->last_tick_ns;
	int rc = 0;

	if (!b)
		return 0;
	if (b->all->events.perf) {
		if (b->all->only)
			wp_perf_source_disable(&b->all->events);
		rc = read_and_compare(target, end_ns);
	}
	while (b->n && !rc)
		rc = end_start(target, &b->v[b->n - 1], end_ns);
	return rc;
}

void wp_thread_starts_renumber(struct wp_target *target, struct wp_renumber *r)
{
	struct wp_thread_starts *b = target->thread_starts;

	for (size_t i = 0; b && i < b->n; i++)
		if (b->v[i].counted)
			wp_renumber_key(r, WP_PROFILE_THREADCREATE,
					&b->v[i].key);
}

void wp_thread_starts_close(struct wp_target *target)
{
	if (!target->thread_starts)
		return;
	free(target->thread_starts->v);
	free(target->thread_starts);
	target->thread_starts = NULL;
}
