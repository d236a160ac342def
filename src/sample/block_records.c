/* SPDX-License-Identifier: Apache-2.0 */
/* block_records.c - see block_records.h.
 *
 * A wait begins when the thread leaves its CPU, and ends when another one, or an
 * interrupt, wakes it; then it waits for a CPU until it enters one.
 */
#include "block_records.h"

#include <errno.h>

#include "sampler_loop.h"
#include "target.h"
#include "thread.h"
#include "threads.h"
#include "wakes.h"
#include "wallprof/block_weight.h"

enum {
	/* Most time from the wake of a thread that is leaving its CPU until it has
	 * left. */
	LEAVING_NS = 50000,
};

/* RECORD is a sample of T as it leaves its CPU: keep its stack for the wait. */
static int note_stack(struct wp_thread *t, const struct wp_perf_record *record)
{
	struct wp_block_waits *b = t->target->block_waits;
	int rc = 0;

	t->waits.every = 0;
	if (!wp_reg_known(&record->regs, WP_REG_PC) &&
	    !wp_switch_sample_is_worker(t, &record->regs))
		return 0;
	if (b->wants_waits)
		rc = wp_switch_sample_key(&b->calls, t, &b->events, record,
					  &t->waits.key);
	else
		wp_switch_sample_wait(&b->calls, t, &record->regs, 0,
				      &t->waits.key);
	if (!rc)
		t->waits.every = record->time_ns < b->changed_ns ?
					 b->every_before :
					 b->every;
	return rc;
}

bool wp_block_records_found_waiting(const struct wp_thread *t, uint64_t now)
{
	uint64_t tick_ns = t->target->last_tick_ns;

	/* Ticks may follow each other so fast that a wait from before the last
	 * one is told of after it. */
	return t->wait.waiting && t->wait.key.state == WP_STATE_WAITING &&
	       t->locks.tick_ns == tick_ns && t->waits.out_ns < tick_ns &&
	       t->waits.in_ns < tick_ns && now > tick_ns;
}

void wp_block_records_keep(struct wp_block_waits *b,
			   const struct wp_block_wait *w)
{
	if (b->nwaits == WP_BLOCK_RECORDS_WAITS)
		b->dropped++;
	else
		b->waits[b->nwaits++] = *w;
}

/* Keep the part in STATE, DELAY_NS long, of a wait of T until NOW. */
static void keep_wait(struct wp_thread *t, enum wp_state state,
		      uint64_t delay_ns, uint64_t now)
{
	struct wp_block_waits *b = t->target->block_waits;
	struct wp_block_wait w = {
		.key = { .stack = WP_BLOCK_ALL, .thread = t->index },
		.delay_ns = delay_ns,
		.span_ns = delay_ns,
		.every = t->waits.every,
	};

	if (!b->wants_waits)
		return;
	/* A long wait is told by ticks, but its end is not. */
	if (state == WP_STATE_RUNNABLE &&
	    wp_block_records_found_waiting(t, now)) {
		w.key = t->wait.key;
		w.every = 1;
	} else if (w.every) {
		w.key = t->waits.key;
	}
	w.key.state = (uint8_t)state;
	if (state == WP_STATE_RUNNABLE)
		w.key.wait = WP_WAIT_NONE;
	w.key.object = t->waits.waker;
	wp_block_records_keep(b, &w);
}

/* T waited until NOW, for so long that ticks told it: they did not know who would
 * wake it. */
static int tell_waker(struct wp_thread *t, uint64_t now)
{
	struct wp_profile *profile = t->target->profile;
	struct wp_sample_key key = t->wait.key;
	int rc;

	if (t->waits.samples < WP_BLOCK_TICKS || !t->waits.waker ||
	    !t->target->block_waits->wants_waits ||
	    !wp_block_records_found_waiting(t, now))
		return 0;
	key.object = 0;
	rc = wp_profile_add_sample(profile, WP_PROFILE_BLOCK, &key,
				   -UINT64_C(1), -t->waits.samples_ns);
	key.object = wp_block_weight_object(t->waits.waker, 0);
	return rc ? rc :
		    wp_profile_add_sample(profile, WP_PROFILE_BLOCK, &key, 1,
					  t->waits.samples_ns);
}

/* T enters a CPU at NOW: keep the wait that is over. */
static int end_wait(struct wp_thread *t, uint64_t now)
{
	struct wp_block_waits *b = t->target->block_waits;
	struct wp_thread_waits *w = &t->waits;
	uint64_t out_ns = w->out_ns;
	uint64_t end_ns = w->wake_ns ? w->wake_ns : now;
	uint64_t begin_ns = out_ns ? out_ns : w->wake_ns;

	/* A stop by wallprof is no wait of T. */
	if (!begin_ns ||
	    (begin_ns <= w->stop_end_ns && now >= w->stop_begin_ns))
		return 0;
	/* It was woken while it was leaving. */
	if (end_ns < out_ns)
		end_ns = out_ns;
	if (out_ns >= b->valid_ns && now >= out_ns) {
		keep_wait(t, WP_STATE_WAITING, end_ns - out_ns, now);
		b->unsplit += !w->wake_ns;
	}
	if (w->wake_ns >= b->valid_ns && now > end_ns)
		keep_wait(t, WP_STATE_RUNNABLE, now - end_ns, now);
	return wp_wakes_keep(t, end_ns, now) ? -ENOMEM : tell_waker(t, now);
}

/* T leaves its CPU. */
static void begin_wait(struct wp_thread *t, const struct wp_perf_record *record)
{
	struct wp_thread_waits *w = &t->waits;

	/* A preempted thread waits for a CPU only. */
	w->out_ns = record->preempted ? 0 : record->time_ns;
	/* It may be woken while it is leaving, but not long before. */
	if (record->preempted || w->wake_ns + LEAVING_NS < record->time_ns)
		w->wake_ns = w->waker = 0;
}

static struct wp_block_tid *find_tid(struct wp_block_waits *b, pid_t tid)
{
	return &b->tids[(size_t)tid % WP_BLOCK_RECORDS_TIDS];
}

/* The target of the thread that RECORD is of, also if it has ended; NULL: its process
 * is not recorded, as most on a busy machine. */
static struct wp_target *find_switched(struct wp_block_waits *b,
				       const struct wp_perf_record *record)
{
	struct wp_block_tid *known = find_tid(b, record->tid);
	struct wp_target *target;

	if (b->only)
		return b->only;
	if (known->tid == record->tid && known->pid == record->pid &&
	    !known->is_recorded)
		return NULL;
	target = wp_sampler_find_last(b->loop, record->pid);
	*known = (struct wp_block_tid){ record->tid, record->pid, target };
	return target;
}

/* The thread that a wake of TID wakes; NULL: it is not recorded, or not met yet. */
static struct wp_thread *find_woken(struct wp_block_waits *b, pid_t tid)
{
	struct wp_block_tid *known = find_tid(b, tid);
	struct wp_sampler *loop = b->loop;
	struct wp_target *target;
	struct wp_thread *t = NULL;

	if (b->only)
		return wp_threads_find(b->only, tid);
	if (known->tid == tid) {
		target = known->is_recorded ?
				 wp_sampler_find_last(loop, known->pid) :
				 NULL;
		return target ? wp_threads_find(target, tid) : NULL;
	}
	for (size_t k = loop->ntargets; k-- > 0 && !t;)
		t = wp_threads_find(loop->targets[k], tid);
	/* One that is not met has no pid: its first switch tells it. */
	*known = (struct wp_block_tid){ tid, t ? t->target->process->pid : 0,
					t };
	return t;
}

static int note_wake(struct wp_block_waits *b,
		     const struct wp_perf_record *record)
{
	/* It may be a thread of another process. */
	struct wp_thread *t = find_woken(b, record->tid);
	uint32_t name = 0;

	if (!t || !t->watched ||
	    (t->waits.wake_ns && t->waits.wake_ns >= t->waits.out_ns))
		return 0;
	if (b->wants_waits)
		name = wp_wakers_name(&b->wakers, t->target, record);
	if (name == UINT32_MAX)
		return -ENOMEM;
	t->waits.wake_ns = record->time_ns;
	t->waits.waker = name;
	return wp_wakes_note(b, t, record);
}

/* RECORD is a sample of who wakes a thread, and tells the wake as well. */
static int note_waker(struct wp_block_waits *b,
		      const struct wp_perf_record *record)
{
	struct wp_thread *t;
	int rc = note_wake(b, record);

	t = rc ? NULL : find_woken(b, record->tid);
	return t && t->waits.wake_ns ? wp_wakes_sample(b, t, record) : rc;
}

static int add_switch(struct wp_thread *t, const struct wp_perf_record *record)
{
	int rc;

	if (record->type == WP_PERF_SWITCH_OUT) {
		begin_wait(t, record);
		return 0;
	}
	rc = end_wait(t, record->time_ns);
	t->waits.out_ns = t->waits.wake_ns = 0;
	t->waits.waker = t->waits.every = 0;
	t->waits.in_ns = record->time_ns;
	return rc;
}

static int add_record(struct wp_block_waits *b,
		      const struct wp_perf_record *record)
{
	struct wp_target *target;
	struct wp_thread *t;

	if (record->type == WP_PERF_LOST) {
		b->valid_ns = record->time_ns;
		return 0;
	}
	if (record->type == WP_PERF_WAKE)
		return note_wake(b, record);
	if (record->type == WP_PERF_SAMPLE_WAKE)
		return note_waker(b, record);
	target = find_switched(b, record);
	if (!target)
		return 0;
	t = wp_threads_find_or_add(target, record->tid);
	if (!t)
		return -ENOMEM;
	if (!t->watched)
		return 0;
	if (record->type == WP_PERF_SAMPLE_SWITCH)
		return note_stack(t, record);
	if (record->type == WP_PERF_SWITCH_OUT ||
	    record->type == WP_PERF_SWITCH_IN)
		return add_switch(t, record);
	return 0;
}

int wp_block_records_read(struct wp_block_waits *b, uint64_t until_ns)
{
	const struct wp_perf_stats *stats = wp_perf_stats(b->events.perf);
	uint64_t records = stats->records + stats->foreign;
	uint64_t lost = stats->lost, samples = stats->switch_samples;
	uint64_t wake_samples = stats->wake_samples;
	struct wp_perf_record record;
	int rc = 0;

	while (!rc && wp_perf_source_next(&b->events, until_ns, &record))
		rc = add_record(b, &record);
	b->records += stats->records + stats->foreign - records;
	b->samples += stats->switch_samples - samples;
	b->wake_samples += stats->wake_samples - wake_samples;
	b->lost += stats->lost - lost;
	return rc;
}
