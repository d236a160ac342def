/* SPDX-License-Identifier: Apache-2.0 */
/* wakes.c - see wakes.h. */
#include "wakes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sampler_loop.h"
#include "stack_walk.h"
#include "target.h"
#include "thread.h"
#include "threads.h"
#include "wallprof/block_weight.h"
#include "wallprof/wake_weight.h"

/* The thread that made RECORD's wake; NULL: it is not recorded, or had no part in it. */
static struct wp_thread *find_waker(struct wp_block_waits *b,
				    const struct wp_perf_record *record)
{
	struct wp_target *target = b->only;

	if (record->hard_interrupt || !record->waker_tid)
		return NULL;
	if (!target)
		target = wp_sampler_find_last(b->loop, record->waker_pid);
	return target ? wp_threads_find(target, record->waker_tid) : NULL;
}

int wp_wakes_note(struct wp_block_waits *b, struct wp_thread *t,
		  const struct wp_perf_record *record)
{
	struct wp_thread *waker;
	struct wp_sample_key key = { .stack = WP_WAKE_ALL,
				     .thread = t->index,
				     .state = WP_STATE_WAITING,
				     .object = t->index };

	if (!b->wants_wakes)
		return 0;
	waker = find_waker(b, record);
	if (waker)
		key.thread = waker->index;
	else
		key.stack = wp_wakers_stack(&b->wakers, t->target, record);
	if (!waker && key.stack == UINT32_MAX)
		return -ENOMEM;
	t->waits.wake = key;
	t->waits.waker_tid = waker ? waker->tid : 0;
	t->waits.wake_every = 0;
	return 0;
}

/* The stack of RECORD's waker, TARGET's: what a software interrupt does while its CPU's
 * thread is in a system call is by that call, as when it sends a packet over the
 * loopback device; else the thread has no part in it. */
static uint32_t waker_stack(struct wp_block_waits *b, struct wp_target *target,
			    const struct wp_perf_record *record)
{
	struct wp_stack_walk walk;
	struct wp_stack *stack = &walk.stack;

	if (record->soft_interrupt &&
	    wp_switch_sample_call(&b->calls, target,
				  record->regs.v[WP_REG_PC]) == -1)
		return wp_wakers_stack(&b->wakers, target, record);
	walk = wp_stack_walk_sample(target, &b->events, record);
	if (record->soft_interrupt) {
		stack->frames--;
		stack->cfa_avma--;
		stack->depth++;
		stack->frames[0] = wp_stack_walk_text_frame(target->profile,
							    WP_WAKERS_SOFT);
		stack->cfa_avma[0] = 0;
	}
	return wp_stack_walk_intern(target, &walk);
}

int wp_wakes_sample(struct wp_block_waits *b, struct wp_thread *t,
		    const struct wp_perf_record *record)
{
	struct wp_thread_waits *w = &t->waits;
	struct wp_thread *waker;

	/* The wake that is noted is another one, or has its stack. */
	if (!b->wants_wakes || w->wake_every ||
	    w->waker_tid != record->waker_tid ||
	    !wp_reg_known(&record->regs, WP_REG_PC))
		return 0;
	waker = find_waker(b, record);
	if (!waker)
		return 0;
	w->wake.stack = waker_stack(b, waker->target, record);
	w->wake_every = record->time_ns < b->wake_changed_ns ?
				b->wake_every_before :
				b->wake_every;
	return w->wake.stack == UINT32_MAX ? -ENOMEM : 0;
}

/* T ran again, and it is not known who woke it. */
static int note_unknown(struct wp_block_waits *b, struct wp_thread *t)
{
	t->waits.wake = (struct wp_sample_key){
		.stack = wp_wakers_stack(&b->wakers, t->target, NULL),
		.thread = t->index,
		.state = WP_STATE_WAITING,
		.object = t->index,
	};
	t->waits.wake_every = 0;
	return t->waits.wake.stack == UINT32_MAX ? -ENOMEM : 0;
}

int wp_wakes_keep(struct wp_thread *t, uint64_t end_ns, uint64_t now)
{
	struct wp_block_waits *b = t->target->block_waits;
	struct wp_thread_waits *w = &t->waits;
	/* Windows have no part in whether ticks knew the wait: those waits may be
	 * longer than any window. */
	bool by_ticks = wp_block_records_found_waiting(t, now) &&
			w->samples >= WP_BLOCK_TICKS;
	uint64_t tick_ns = t->target->last_tick_ns;
	struct wp_block_wait wake = { .is_wake = true };

	if (!b->wants_wakes)
		return 0;
	if (w->out_ns && w->out_ns >= b->valid_ns)
		wake.delay_ns = end_ns - w->out_ns;
	else if (by_ticks && w->wake_ns >= b->valid_ns)
		wake.delay_ns = w->samples_ns +
				(end_ns > tick_ns ? end_ns - tick_ns : 0);
	else
		return 0;
	if (!w->wake_ns && note_unknown(b, t))
		return -ENOMEM;
	wake.span_ns = now - (by_ticks ? end_ns : w->out_ns);
	wake.key = w->wake;
	wake.every = w->wake_every;
	/* Why it waited. */
	if (w->every || by_ticks) {
		const struct wp_sample_key *why = w->every ? &w->key :
							     &t->wait.key;

		wake.key.wait = why->wait;
		wake.key.syscall = why->syscall;
	}
	wp_block_records_keep(b, &wake);
	return 0;
}

static int add(struct wp_block_waits *b, const struct wp_sample_key *key,
	       uint64_t delay_ns, double weight)
{
	return wp_profile_add_sample(
		b->profile, WP_PROFILE_WAKE, key,
		wp_block_weight_round(weight, wp_random_next(&b->loop->random)),
		wp_block_weight_round(weight * (double)delay_ns,
				      wp_random_next(&b->loop->random)));
}

int wp_wakes_add(struct wp_block_waits *b, const struct wp_block_wait *w,
		 double weight)
{
	const struct wp_sample_key all = wp_wake_weight_all(&w->key);
	int rc;

	/* It needs no sample to be known. */
	if (!w->every && w->key.stack != WP_WAKE_ALL)
		return add(b, &w->key, w->delay_ns, weight);
	rc = add(b, &all, w->delay_ns, weight);
	if (rc || !w->every)
		return rc;
	b->wake_stacks++;
	return add(b, &w->key, w->delay_ns, weight * w->every);
}

const char *wp_wakes_denied(const struct wp_block_waits *b)
{
	return b->wake_rc == -EREMOTE ?
		       "it does in the host's process ids: run wallprof in the "
		       "host's PID namespace" :
		       strerror(-b->wake_rc);
}

static void describe(struct wp_block_waits *b)
{
	char text[512];

	if (b->wake_rc)
		snprintf(text, sizeof(text),
			 "not recorded: the kernel does not tell of wakes (%s)",
			 wp_wakes_denied(b));
	else
		snprintf(text, sizeof(text),
			 "wakes from perf events; %llu stacks of threads that "
			 "woke others, scaled to all wakes that these made; "
			 "%llu of %llu records lost and scaled for; %llu waits "
			 "whose wake the kernel did not tell",
			 (unsigned long long)b->wake_stacks,
			 (unsigned long long)b->all_lost,
			 (unsigned long long)(b->all_records + b->all_lost),
			 (unsigned long long)b->unsplit);
	b->profile->meta.source[WP_PROFILE_WAKE] = wp_intern_add_str(
		&b->profile->strings, text);
}

int wp_wakes_finish(struct wp_block_waits *b, uint32_t no_stack)
{
	if (!b->wants_wakes)
		return 0;
	describe(b);
	return wp_wake_weight_finish(b->profile, no_stack);
}
