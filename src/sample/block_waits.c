/* SPDX-License-Identifier: Apache-2.0 */
/* block_waits.c - waits, by the stack that waited: see block_waits.h.
 *
 * Ticks record long waits: they find the thread waiting, with its stack.  Perf
 * events record shorter waits: records of each context switch tell from when until
 * when a thread was off its CPU, and samples at every Nth switch hold the stack.
 * Where switches are too many for a record of each, they are recorded in windows of
 * time (switch_budget.h).  wallprof/block_weight.h has the weights.
 */
#include "block_waits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block_records.h"
#include "sampler_loop.h"
#include "target.h"
#include "thread.h"
#include "wakes.h"
#include "wallprof/clock.h"

enum {
	RING_BYTES = 2 << 20,
	/* Records are handed out in order of time when they are this old. */
	SETTLE_NS = 1000000,
	/* Sampling intervals until rates of switches are told first. */
	FIRST_INTERVALS = 2,
};

/* NULL: of all processes. */
static const struct wp_process *process_of(const struct wp_block_waits *b)
{
	return b->only ? b->only->process : NULL;
}

void wp_block_waits_filter(struct wp_block_waits *b)
{
	if (b && b->only)
		wp_wakers_filter(&b->wakers, b->only, b->events.perf);
}

static int open_events(struct wp_block_waits *b, struct wp_err *err)
{
	struct wp_perf_source *events = &b->events;
	const struct wp_perf_options options = {
		.scope = b->only ? WP_PERF_AUTO : WP_PERF_CPU,
		.switches = true,
		.wakes = true,
		.switch_sample_every = b->every,
		.wake_sample_every = b->wants_wakes ? b->wake_every : 0,
		.stack_bytes = events->options.stack_bytes ?
				       events->options.stack_bytes :
				       WP_PERF_SOURCE_FIRST_STACK,
		.user_regs = true,
		.ring_bytes = RING_BYTES,
	};
	int rc = wp_perf_source_open(events, process_of(b), &options, err);

	if (rc)
		return rc;
	b->wake_rc = wp_perf_facts(events->perf)->wake_rc;
	b->wakers.perf = NULL;
	wp_block_waits_filter(b);
	if (wp_perf_facts(events->perf)->switch_samples)
		return 0;
	wp_perf_source_close(events);
	return wp_err_set(err, -EPERM,
			  "the kernel shows no stacks at context switches to "
			  "this user");
}

static void begin_recording(struct wp_block_waits *b)
{
	wp_perf_source_enable(&b->events);
	b->on_ns = b->valid_ns = wp_clock_ns();
	b->samples = b->wake_samples = 0;
}

static void end_recording(struct wp_block_waits *b)
{
	uint64_t lost = wp_perf_source_lost(&b->events);

	b->off_ns = wp_clock_ns();
	wp_perf_source_disable(&b->events);
	b->lost += wp_perf_source_lost(&b->events) - lost;
	b->recorded_ns += b->off_ns - b->on_ns;
}

static int open_waits(struct wp_block_waits *b)
{
	struct wp_err err = WP_ERR_INIT;
	char text[sizeof(err.msg) + 128];
	struct wp_profile_meta *meta = &b->profile->meta;
	struct wp_intern *strings = &b->profile->strings;

	b->waits = calloc(WP_BLOCK_RECORDS_WAITS, sizeof(*b->waits));
	if (!b->waits)
		return -ENOMEM;
	b->every = b->every_before = b->loop->options.block_rate.every ?
					     b->loop->options.block_rate.every :
					     WP_SWITCH_BUDGET_FIRST_EVERY;
	b->wake_every = b->wake_every_before =
		b->loop->options.block_rate.every ?
			b->loop->options.block_rate.every :
			WP_WAKES_FIRST_EVERY;
	b->start_ns = wp_clock_ns();
	if (!open_events(b, &err)) {
		begin_recording(b);
		return 0;
	}
	b->no_events = true;
	snprintf(text, sizeof(text),
		 "an estimate from wall-clock samples, in "
		 "which waits shorter than the interval count too little; %s",
		 err.msg);
	if (b->wants_waits)
		meta->source[WP_PROFILE_BLOCK] = wp_intern_add_str(strings,
								   text);
	snprintf(text, sizeof(text), "not recorded: %s", err.msg);
	if (b->wants_wakes)
		meta->source[WP_PROFILE_WAKE] = wp_intern_add_str(strings,
								  text);
	return 0;
}

int wp_block_waits_open(struct wp_target *target)
{
	struct wp_common *common = target->common;
	struct wp_block_waits *b = common->block_waits;

	if (!b) {
		b = common->block_waits = calloc(1, sizeof(*b));
		if (!b)
			return -ENOMEM;
		b->loop = target->loop;
		b->profile = target->profile;
		b->wants_waits = target->loop->options.block;
		b->wants_wakes = target->loop->options.wake;
		b->only = target->loop->options.many ? NULL : target;
		if (open_waits(b))
			return -ENOMEM;
	}
	target->block_waits = b;
	/* What was not recorded may be it. */
	memset(b->tids, 0, sizeof(b->tids));
	return 0;
}

static uint64_t interval_of(const struct wp_block_waits *b)
{
	uint64_t ticks = b->profile->counters.ticks;

	return ticks > 10 ? (b->loop->tick_ns - b->start_ns) / (ticks - 1) :
			    b->loop->options.interval_ns;
}

/* Add the share of W that ticks miss to the sample of KEY, WEIGHT times. */
static int add_missed_by_ticks(struct wp_block_waits *b,
			       const struct wp_block_wait *w,
			       const struct wp_sample_key *key, double weight)
{
	/* Ticks tell no waits for a CPU, and those are no waits of their own. */
	struct wp_block_parts missed = { 0, 1 };
	double ns;

	if (key->state == WP_STATE_WAITING)
		missed = wp_block_weight_missed_by_ticks(w->delay_ns,
							 interval_of(b));
	ns = missed.time * (double)w->delay_ns;
	return wp_profile_add_sample(
		b->profile, WP_PROFILE_BLOCK, key,
		wp_block_weight_round(weight * missed.count,
				      wp_random_next(&b->loop->random)),
		wp_block_weight_round(weight * ns,
				      wp_random_next(&b->loop->random)));
}

static int add_wait(struct wp_block_waits *b, const struct wp_block_wait *w,
		    double weight)
{
	uint32_t class = wp_block_weight_class(w->delay_ns);
	struct wp_sample_key key = { .stack = WP_BLOCK_ALL,
				     .thread = w->key.thread,
				     .state = w->key.state,
				     .object = wp_block_weight_object(0,
								      class) };
	int rc = add_missed_by_ticks(b, w, &key, weight);

	if (rc || !w->every)
		return rc;
	weight *= w->every *
		  wp_block_weight_keep(b->loop->options.block_rate.ns,
				       w->delay_ns,
				       wp_random_next(&b->loop->random));
	if (weight <= 0)
		return 0;
	b->stacks += w->key.state == WP_STATE_WAITING;
	key = w->key;
	key.object = wp_block_weight_object(w->key.object, class);
	return add_missed_by_ticks(b, w, &key, weight);
}

/* Add the waits of the window to the profile.  CYCLE_NS: length of the window and
 * the gap after it; 0: there is no gap. */
static int record_waits(struct wp_block_waits *b, uint64_t cycle_ns)
{
	uint64_t window_ns = b->off_ns - b->on_ns;
	double lost = 1;
	int rc = 0;

	/* Lost waits were like the others. */
	if (b->records)
		lost += (double)b->lost / (double)b->records;
	if (b->nwaits)
		lost *= 1 + (double)b->dropped / (double)b->nwaits;
	for (uint32_t i = 0; i < b->nwaits && !rc; i++) {
		const struct wp_block_wait *w = &b->waits[i];
		double weight = lost;

		if (cycle_ns)
			weight *= wp_block_weight_in_window(
				w->span_ns, window_ns, cycle_ns);
		rc = w->is_wake ? wp_wakes_add(b, w, weight) :
				  add_wait(b, w, weight);
	}
	b->all_records += b->records;
	b->all_lost += b->lost + b->dropped;
	b->nwaits = b->dropped = 0;
	b->records = b->lost = 0;
	return rc;
}

/* One in as many as are cheap, where SAMPLES of one in EVERY were taken in NS. */
static uint32_t cheap_every(struct wp_block_waits *b, uint64_t samples,
			    uint32_t every, uint64_t ns)
{
	return wp_switch_budget_every((double)samples * WP_NS_PER_S /
					      (double)ns,
				      every, wp_random_next(&b->loop->random));
}

/* Sample one switch, and one wake, in as many as are cheap, by the samples since the
 * window began or since that was told last. */
static void adapt_samples(struct wp_block_waits *b)
{
	uint64_t from_ns = b->on_ns > b->changed_ns ? b->on_ns : b->changed_ns;
	uint64_t ns = wp_clock_ns() - from_ns;

	/* In one tick the first samples may be told, and the window end. */
	if (b->loop->options.block_rate.every ||
	    ns < b->loop->options.interval_ns)
		return;
	b->every_before = b->every;
	b->every = cheap_every(b, b->samples, b->every, ns);
	b->changed_ns = wp_clock_ns();
	wp_perf_set_switch_samples(b->events.perf, b->every);
	if (b->wants_wakes) {
		b->wake_every_before = b->wake_every;
		b->wake_every = cheap_every(b, b->wake_samples, b->wake_every,
					    ns);
		b->wake_changed_ns = wp_clock_ns();
		wp_perf_set_wake_samples(b->events.perf, b->wake_every);
	}
	b->samples = b->wake_samples = 0;
}

/* A short recording of a busy machine may have but one window, and few samples in it
 * if one in as many as at first are taken to its end. */
static void adapt_first_samples(struct wp_block_waits *b)
{
	if (!b->changed_ns &&
	    wp_clock_ns() - b->on_ns >=
		    FIRST_INTERVALS * b->loop->options.interval_ns)
		adapt_samples(b);
}

/* End the window if it is long enough: begin a gap, or go on without one. */
static int end_window(struct wp_block_waits *b)
{
	uint64_t window_ns = wp_clock_ns() - b->on_ns, gap;
	int rc;

	if (window_ns < wp_switch_budget_window_ns(
				b->records, b->loop->options.interval_ns))
		return 0;
	gap = wp_switch_budget_gap(&b->budget, window_ns, b->records + b->lost,
				   wp_perf_facts(b->events.perf)->nrings,
				   wp_random_next(&b->loop->random));
	adapt_samples(b);
	if (!gap && !b->events.stack_was_cut) {
		b->recorded_ns += window_ns;
		b->on_ns += window_ns;
		return record_waits(b, 0);
	}
	end_recording(b);
	rc = wp_block_records_read(b, UINT64_MAX);
	b->turn_ns = b->off_ns + gap;
	wp_perf_source_grow(&b->events, process_of(b));
	if (b->budget.closes)
		wp_perf_source_close(&b->events);
	return rc;
}

/* Begin a window after a gap. */
static int begin_window(struct wp_block_waits *b)
{
	int rc;

	if (!b->events.perf && open_events(b, NULL)) {
		/* A descriptor may be free later. */
		b->turn_ns = b->loop->tick_ns +
			     WP_SWITCH_BUDGET_CLOSED_S * WP_NS_PER_S;
		return 0;
	}
	wp_perf_set_switch_samples(b->events.perf, b->every);
	wp_perf_set_wake_samples(b->events.perf, b->wake_every);
	rc = record_waits(b, wp_clock_ns() - b->on_ns);
	begin_recording(b);
	return rc;
}

int wp_block_waits_tick(struct wp_common *common)
{
	struct wp_block_waits *b = common->block_waits;
	int rc = 0;

	if (!b || b->no_events)
		return 0;
	if (b->events.enabled) {
		rc = wp_block_records_read(b, b->loop->tick_ns - SETTLE_NS);
		if (!rc) {
			adapt_first_samples(b);
			rc = end_window(b);
		}
	} else if (b->loop->tick_ns >= b->turn_ns) {
		rc = begin_window(b);
	}
	return rc;
}

static void describe_source(struct wp_block_waits *b)
{
	uint64_t all_ns = wp_clock_ns() - b->start_ns;
	char text[512], split[200];

	if (b->wake_rc)
		snprintf(split, sizeof(split),
			 "waits hold the time until the thread ran, as the "
			 "kernel does not tell of wakes (%s)",
			 wp_wakes_denied(b));
	else
		snprintf(split, sizeof(split),
			 "split at the wake, but for %llu waits",
			 (unsigned long long)b->unsplit);
	snprintf(text, sizeof(text),
		 "context switches from perf events, "
		 "recorded %.3g %% of the time; %llu stacks; waits of over %d "
		 "intervals from wall-clock samples; %llu of %llu records "
		 "lost and scaled for; %s",
		 all_ns ? 100 * (double)b->recorded_ns / (double)all_ns : 0.0,
		 (unsigned long long)b->stacks, WP_BLOCK_TICKS,
		 (unsigned long long)b->all_lost,
		 (unsigned long long)(b->all_records + b->all_lost), split);
	b->profile->meta.source[WP_PROFILE_BLOCK] = wp_intern_add_str(
		&b->profile->strings, text);
}

int wp_block_waits_finish(struct wp_common *common)
{
	static const struct wp_stack none = { .end = WP_END_EMPTY };
	struct wp_block_waits *b = common->block_waits;
	uint32_t stack;
	int rc;

	if (!b || b->no_events)
		return 0;
	if (b->events.enabled) {
		end_recording(b);
		rc = wp_block_records_read(b, UINT64_MAX);
		if (!rc)
			rc = record_waits(b, 0);
	} else {
		rc = record_waits(b, wp_clock_ns() - b->on_ns);
	}
	stack = wp_profile_add_stack(b->profile, &none, 0);
	if (!rc && stack == UINT32_MAX)
		rc = -ENOMEM;
	if (!rc && b->wants_waits) {
		describe_source(b);
		rc = wp_block_weight_finish(b->profile, stack);
	}
	return rc ? rc : wp_wakes_finish(b, stack);
}

void wp_block_waits_forget(struct wp_common *common, uint32_t process)
{
	struct wp_block_waits *b = common->block_waits;
	uint32_t n = 0;

	for (uint32_t i = 0; b && i < b->nwaits; i++)
		if (b->profile->threads[b->waits[i].key.thread].process !=
		    process)
			b->waits[n++] = b->waits[i];
	if (b)
		b->nwaits = n;
}

int wp_block_waits_add(struct wp_thread *t, const struct wp_sample_key *key,
		       uint64_t nsame, uint64_t wall_ns)
{
	const struct wp_block_waits *block = t->target->block_waits;
	struct wp_sample_key own = *key;
	uint64_t count = 0, ns = wall_ns, before;

	if (!block || key->state != WP_STATE_WAITING)
		return 0;
	own.object = 0;
	if (!nsame)
		t->waits.samples = t->waits.samples_ns = 0;
	before = t->waits.samples;
	t->waits.samples += nsame ? nsame : 1;
	t->waits.samples_ns += wall_ns;
	if (!block->wants_waits)
		return 0;
	if (!block->no_events) {
		if (t->waits.samples < WP_BLOCK_TICKS)
			return 0;
		if (before < WP_BLOCK_TICKS) {
			count = 1;
			ns = t->waits.samples_ns;
		}
	} else {
		count = !nsame;
	}
	return wp_profile_add_sample(t->target->profile, WP_PROFILE_BLOCK, &own,
				     count, ns);
}

void wp_block_waits_close(struct wp_common *common)
{
	struct wp_block_waits *b = common->block_waits;

	if (!b)
		return;
	wp_perf_source_close(&b->events);
	free(b->waits);
	free(b);
	common->block_waits = NULL;
}
