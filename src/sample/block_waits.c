/* SPDX-License-Identifier: Apache-2.0 */
/* block_waits.c - waits, by the stack that waited: see block_waits.h.
 *
 * Long waits are told by the looks of each tick, which find the thread asleep
 * with its stack.  Shorter ones are told by the kernel: records of each switch
 * say from when until when a thread was off its CPU, and a sample at every Nth
 * switch brings the stack.  Where switches are too many for a record of each,
 * they are recorded in windows of time.  wallprof/block_weight.h has the weights.
 */
#include "block_waits.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "sampler_loop.h"
#include "stack_walk.h"
#include "target.h"
#include "threads.h"
#include "wait_object.h"
#include "wallprof/clock.h"
#include "wallprof/hash.h"

enum {
	RING_BYTES = 2 << 20,
	/* Waits that are kept until a window is over. */
	WAITS_MAX = 1 << 16,
	/* Stacks a second that are cheap: a sample costs the target 1 to 2 us,
	 * and us as much. */
	STACKS_PER_S = 2000,
	/* Records a second and CPU that are cheap, at 0.6 us each; more are
	 * taken in windows, of this many intervals each. */
	RECORDS_PER_S = 10000,
	WINDOW_INTERVALS = 10,
	/* Beyond that even events that are off slow each switch down, while
	 * they are open and for a second after (kernel/events/core.c,
	 * perf_sched_work): they are closed for so long, on average. */
	RECORDS_CLOSE_PER_S = 100000,
	CLOSED_S = 4,
	/* Shorter, when that many are enough; but longer than waits that looks
	 * do not tell. */
	LEAST_INTERVALS = WP_BLOCK_TICKS + 2,
	/* Records are handed out in order of time when they are this old. */
	SETTLE_NS = 1000000,
	/* Until their number is known. */
	FIRST_EVERY = 101,
	CALLS_CACHED = 256,
};

struct wait {
	struct wp_sample_key key;
	uint64_t delay_ns;
	/* Its stack was taken as one of so many; 0: it was not. */
	uint32_t every;
};

/* The call that the code before PC makes. */
struct call {
	uint64_t pc_avma;
	uint64_t generation;
	long nr;
};

struct wp_block_waits {
	/* No events are open in a long gap. */
	struct wp_perf_source events;
	/* There are no perf events: looks tell all. */
	bool no_events;
	/* A sample at every EVERYth switch, before CHANGED_NS at every
	 * EVERY_BEFOREth. */
	uint32_t every, every_before;
	uint64_t changed_ns;
	/* The window, and the gap between two of them, in which EVENTS are
	 * disabled; CLOSES: the next gap is a long one. */
	bool closes;
	uint64_t on_ns, off_ns, turn_ns;
	/* What came before that is not known: records were lost. */
	uint64_t valid_ns;
	/* Of this window, and of the part since the last drain. */
	uint64_t records, lost, samples;
	uint64_t all_records, all_lost;
	/* Records a second of the windows before; 0: there was none. */
	double rate;
	/* Time recorded, and in all. */
	uint64_t recorded_ns, start_ns;
	/* Samples made. */
	uint64_t stacks;
	struct wait *waits;
	uint32_t nwaits, dropped;
	struct call calls[CALLS_CACHED];
};

static int open_events(struct wp_target *target, struct wp_err *err)
{
	struct wp_perf_source *events = &target->block_waits->events;
	const struct wp_perf_options options = {
		.switches = true,
		.switch_sample_every = target->block_waits->every,
		.stack_bytes = events->options.stack_bytes ?
				       events->options.stack_bytes :
				       WP_PERF_SOURCE_FIRST_STACK,
		.user_regs = true,
		.ring_bytes = RING_BYTES,
	};
	int rc = wp_perf_source_open(events, target->process, &options, err);

	if (rc || wp_perf_facts(events->perf)->switch_samples)
		return rc;
	wp_perf_source_close(events);
	return wp_err_set(err, -EPERM,
			  "the kernel shows no stacks at context switches to "
			  "this user");
}

static void begin_recording(struct wp_block_waits *b)
{
	wp_perf_source_enable(&b->events);
	b->on_ns = b->valid_ns = wp_clock_ns();
}

static void end_recording(struct wp_block_waits *b)
{
	uint64_t lost = wp_perf_source_lost(&b->events);

	b->off_ns = wp_clock_ns();
	wp_perf_source_disable(&b->events);
	b->lost += wp_perf_source_lost(&b->events) - lost;
	b->recorded_ns += b->off_ns - b->on_ns;
}

int wp_block_waits_open(struct wp_target *target)
{
	struct wp_err err = WP_ERR_INIT;
	struct wp_block_waits *b = calloc(1, sizeof(*b));
	char text[sizeof(err.msg) + 128];

	if (!b)
		return -ENOMEM;
	target->block_waits = b;
	b->waits = calloc(WAITS_MAX, sizeof(*b->waits));
	if (!b->waits)
		return -ENOMEM;
	b->every = b->every_before =
		target->loop->options.block_rate.every ?
			target->loop->options.block_rate.every :
			FIRST_EVERY;
	b->start_ns = wp_clock_ns();
	if (!open_events(target, &err)) {
		begin_recording(b);
		return 0;
	}
	b->no_events = true;
	snprintf(text, sizeof(text),
		 "an estimate from wall-clock samples, in "
		 "which waits shorter than the interval count too little; %s",
		 err.msg);
	target->profile->meta.source[WP_PROFILE_BLOCK] = wp_intern_add_str(
		&target->profile->strings, text);
	return 0;
}

static uint64_t interval_of(const struct wp_target *target)
{
	uint64_t ticks = target->profile->counters.ticks;

	return ticks > 10 ? (target->loop->tick_ns - target->start_ns) /
				    (ticks - 1) :
			    target->loop->options.interval_ns;
}

/* The call that the instruction before PC makes; -1: it makes none. */
static long call_before(struct wp_target *target, uint64_t pc_avma)
{
	struct call *call = &target->block_waits->calls[wp_hash_u64(pc_avma) %
							CALLS_CACHED];

	if (call->pc_avma != pc_avma ||
	    call->generation != target->space.view.generation)
		*call = (struct call){ pc_avma, target->space.view.generation,
				       wp_wait_state_call_before(
					       target->process, pc_avma) };
	return call->nr;
}

/* Perf events do not tell the number of a call.  Where the code does not either
 * (syscall(2)), the last look may, or the arguments: an operation of futex(2)
 * on a private word looks like no other call's. */
static long call_of(struct wp_target *target, const struct wp_thread *t,
		    const struct wp_regs *regs, const uint64_t *args)
{
	uint64_t pc_avma = regs->v[WP_REG_PC];
	long nr = call_before(target, pc_avma);

	if (nr != wp_syscall_restart)
		return nr;
	if (t->wait.call_pc_avma == pc_avma && t->wait.call_nr >= 0)
		return t->wait.call_nr;
	switch (args[1]) {
	case FUTEX_WAIT_PRIVATE:
	case FUTEX_LOCK_PI_PRIVATE:
	case FUTEX_WAIT_BITSET_PRIVATE:
	case FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME:
		return SYS_futex;
	default:
		return nr;
	}
}

/* What T with these registers waits for, as far as they tell. */
static int classify_wait(struct wp_target *target, const struct wp_thread *t,
			 const struct wp_regs *regs, struct wp_sample_key *key)
{
	struct wp_thread_facts facts = { .state_char = 'S' };
	struct wp_thread_state state;
	int rc;

	for (int i = 0; i < WP_SYSCALL_ARGS; i++)
		facts.args[i] = regs->v[wp_syscall_arg_regs[i]];
	facts.syscall_nr = call_of(target, t, regs, facts.args);
	if (facts.syscall_nr < 0)
		facts.state_char = 'D';
	state = wp_state_classify(&facts);
	key->state = WP_STATE_WAITING;
	key->wait = (uint8_t)state.wait;
	rc = wp_wait_object_describe(target, key, &facts);
	key->object = 0;
	return rc;
}

static int note_stack(struct wp_target *target, struct wp_thread *t,
		      const struct wp_perf_record *record)
{
	struct wp_block_waits *b = target->block_waits;
	struct wp_sample_key *key = &t->waits.key;
	struct wp_stack_walk walk;

	t->waits.every = 0;
	if (!wp_reg_known(&record->regs, WP_REG_PC))
		return 0;
	walk = wp_stack_walk_sample(target, &b->events, record);
	*key = (struct wp_sample_key){ .thread = t->index };
	if (classify_wait(target, t, &record->regs, key))
		return -ENOMEM;
	key->stack = wp_stack_walk_intern(target, &walk);
	if (key->stack == UINT32_MAX)
		return -ENOMEM;
	t->waits.every = record->time_ns < b->changed_ns ? b->every_before :
							   b->every;
	return 0;
}

/* T is on a CPU again. */
static void end_wait(struct wp_target *target, struct wp_thread *t,
		     uint64_t now)
{
	struct wp_block_waits *b = target->block_waits;
	uint64_t out_ns = t->waits.out_ns;
	uint32_t every = t->waits.every;

	t->waits.out_ns = 0;
	t->waits.every = 0;
	/* A stop of ours is no wait of its own. */
	if (out_ns < b->valid_ns || !out_ns || now < out_ns ||
	    (out_ns <= t->waits.stop_end_ns && now >= t->waits.stop_begin_ns))
		return;
	if (b->nwaits == WAITS_MAX) {
		b->dropped++;
		return;
	}
	b->waits[b->nwaits++] = (struct wait){
		every ? t->waits.key :
			(struct wp_sample_key){ .stack = WP_BLOCK_ALL,
						.thread = t->index },
		now - out_ns, every
	};
}

static int add_record(struct wp_target *target,
		      const struct wp_perf_record *record)
{
	struct wp_thread *t;

	if (record->type == WP_PERF_LOST) {
		target->block_waits->valid_ns = record->time_ns;
		return 0;
	}
	t = wp_threads_get(target, record->tid);
	if (!t)
		return -ENOMEM;
	if (!t->watched)
		return 0;
	if (record->type == WP_PERF_SAMPLE_SWITCH)
		return note_stack(target, t, record);
	if (record->type == WP_PERF_SWITCH_OUT)
		/* It waits for nothing but a CPU. */
		t->waits.out_ns = record->preempted ? 0 : record->time_ns;
	else if (record->type == WP_PERF_SWITCH_IN)
		end_wait(target, t, record->time_ns);
	return 0;
}

/* Read what is older than UNTIL_NS. */
static int read_records(struct wp_target *target, uint64_t until_ns)
{
	struct wp_block_waits *b = target->block_waits;
	const struct wp_perf_stats *stats = wp_perf_stats(b->events.perf);
	uint64_t records = stats->records + stats->foreign;
	uint64_t lost = stats->lost, samples = stats->switch_samples;
	struct wp_perf_record record;
	int rc = 0;

	while (!rc && wp_perf_source_next(&b->events, until_ns, &record))
		rc = add_record(target, &record);
	b->records += stats->records + stats->foreign - records;
	b->samples += stats->switch_samples - samples;
	b->lost += stats->lost - lost;
	return rc;
}

/* What looks do not tell of W, times WEIGHT. */
static int add_missed_by_ticks(struct wp_target *target, const struct wait *w,
			       const struct wp_sample_key *key, double weight)
{
	struct wp_block_parts missed = wp_block_weight_missed_by_ticks(
		w->delay_ns, interval_of(target));
	double ns = missed.time * (double)w->delay_ns;

	return wp_profile_add_sample(
		target->profile, WP_PROFILE_BLOCK, key,
		wp_block_weight_round(weight * missed.count,
				      wp_random_next(&target->loop->random)),
		wp_block_weight_round(weight * ns,
				      wp_random_next(&target->loop->random)));
}

static int add_wait(struct wp_target *target, const struct wait *w,
		    double weight)
{
	struct wp_sample_key key = { .stack = WP_BLOCK_ALL,
				     .thread = w->key.thread,
				     .object = wp_block_weight_class(
					     w->delay_ns) };
	int rc = add_missed_by_ticks(target, w, &key, weight);

	if (rc || !w->every)
		return rc;
	weight *= w->every *
		  wp_block_weight_keep(target->loop->options.block_rate.ns,
				       w->delay_ns,
				       wp_random_next(&target->loop->random));
	if (weight <= 0)
		return 0;
	target->block_waits->stacks++;
	key = w->key;
	key.object = wp_block_weight_class(w->delay_ns);
	return add_missed_by_ticks(target, w, &key, weight);
}

/* The waits of the window become samples; it was one in CYCLE_NS, 0: it goes
 * on without a gap. */
static int record_waits(struct wp_target *target, uint64_t cycle_ns)
{
	struct wp_block_waits *b = target->block_waits;
	uint64_t window_ns = b->off_ns - b->on_ns;
	double lost = 1;
	int rc = 0;

	/* Whatever was lost was like what was not. */
	if (b->records)
		lost += (double)b->lost / (double)b->records;
	if (b->nwaits)
		lost *= 1 + (double)b->dropped / (double)b->nwaits;
	for (uint32_t i = 0; i < b->nwaits && !rc; i++) {
		const struct wait *w = &b->waits[i];

		rc = add_wait(target, w,
			      cycle_ns ? lost * wp_block_weight_in_window(
							w->delay_ns, window_ns,
							cycle_ns) :
					 lost);
	}
	b->all_records += b->records;
	b->all_lost += b->lost + b->dropped;
	b->nwaits = b->dropped = 0;
	b->records = b->lost = b->samples = 0;
	return rc;
}

/* As many switches for a stack as make them cheap: a prime, since threads that
 * take turns are in step with any other number sooner, and not always the
 * same. */
static uint32_t choose_every(struct wp_target *target, double samples_per_s)
{
	static const uint32_t primes[] = { 1,	 2,    3,    5,	  7,	11,
					   17,	 29,   43,   67,  101,	151,
					   227,	 347,  521,  787, 1181, 1777,
					   2663, 3989, 5987, 8999 };
	const size_t n = sizeof(primes) / sizeof(*primes);
	double want = samples_per_s * target->block_waits->every / STACKS_PER_S;
	size_t i = 0;

	while (i + 2 < n && primes[i] < want)
		i++;
	/* Every switch, if it is that few. */
	return want <= 1 ?
		       1 :
		       primes[i + wp_random_next(&target->loop->random) % 2];
}

static void adapt_switch_samples(struct wp_target *target, uint64_t window_ns)
{
	struct wp_block_waits *b = target->block_waits;
	uint32_t every;

	if (target->loop->options.block_rate.every || !window_ns)
		return;
	every = choose_every(target, (double)b->samples * WP_NS_PER_S /
					     (double)window_ns);
	b->every_before = b->every;
	b->every = every;
	b->changed_ns = wp_clock_ns();
	wp_perf_set_switch_samples(b->events.perf, every);
}

/* Records a second to be expected: those of the windows before this one.  What
 * it has itself is weighted by the gap after it, so that a gap which went by
 * that would weight windows of many waits more: by the variance of their
 * number, a tenth to a quarter too many on a busy machine. */
static double expect_records(struct wp_block_waits *b, uint64_t window_ns)
{
	double now = (double)(b->records + b->lost + 1) / (double)window_ns *
		     WP_NS_PER_S;
	double before = b->rate > 0 ? b->rate : now;

	b->rate = before + (now - before) / 4;
	return before;
}

/* The gap that leaves as many records as are cheap; 0: none. */
static uint64_t gap_after(struct wp_target *target, uint64_t window_ns)
{
	struct wp_block_waits *b = target->block_waits;
	double cheap = (double)RECORDS_PER_S *
		       (double)wp_perf_facts(b->events.perf)->nrings;
	double records = expect_records(b, window_ns);
	double gap = (double)window_ns * (records / cheap - 1);

	if (cheap / records > 0.8)
		return 0;
	b->closes = records > RECORDS_CLOSE_PER_S;
	if (b->closes && gap < (double)CLOSED_S * WP_NS_PER_S)
		gap = (double)CLOSED_S * WP_NS_PER_S;
	/* From half to one and a half: no program's period is in step. */
	return (uint64_t)gap / 1000 *
	       (500 + wp_random_next(&target->loop->random) % 1000);
}

static int end_window(struct wp_target *target)
{
	struct wp_block_waits *b = target->block_waits;
	uint64_t window_ns = wp_clock_ns() - b->on_ns, gap;
	int rc;

	if (window_ns <
	    (b->records < RECORDS_PER_S ? WINDOW_INTERVALS : LEAST_INTERVALS) *
		    target->loop->options.interval_ns)
		return 0;
	gap = gap_after(target, window_ns);
	adapt_switch_samples(target, window_ns);
	if (!gap && !b->events.stack_was_cut) {
		b->recorded_ns += window_ns;
		b->on_ns += window_ns;
		return record_waits(target, 0);
	}
	end_recording(b);
	rc = read_records(target, UINT64_MAX);
	b->turn_ns = b->off_ns + gap;
	wp_perf_source_grow(&b->events, target->process);
	if (b->closes)
		wp_perf_source_close(&b->events);
	return rc;
}

/* After a gap. */
static int begin_window(struct wp_target *target)
{
	struct wp_block_waits *b = target->block_waits;
	int rc;

	if (!b->events.perf && open_events(target, NULL)) {
		/* A descriptor may be free later. */
		b->turn_ns = target->loop->tick_ns + CLOSED_S * WP_NS_PER_S;
		return 0;
	}
	wp_perf_set_switch_samples(b->events.perf, b->every);
	rc = record_waits(target, wp_clock_ns() - b->on_ns);
	begin_recording(b);
	return rc;
}

int wp_block_waits_tick(struct wp_target *target)
{
	struct wp_block_waits *b = target->block_waits;
	int rc = 0;

	if (!b || b->no_events)
		return 0;
	if (b->events.enabled) {
		rc = read_records(target, target->loop->tick_ns - SETTLE_NS);
		if (!rc)
			rc = end_window(target);
	} else if (target->loop->tick_ns >= b->turn_ns) {
		rc = begin_window(target);
	}
	return rc;
}

static void describe_source(struct wp_target *target)
{
	struct wp_block_waits *b = target->block_waits;
	uint64_t all_ns = wp_clock_ns() - b->start_ns;
	char text[256];

	snprintf(text, sizeof(text),
		 "context switches from perf events, "
		 "recorded %.3g %% of the time; %llu stacks; waits of over %d "
		 "intervals from wall-clock samples; %llu of %llu records "
		 "lost and scaled for",
		 all_ns ? 100 * (double)b->recorded_ns / (double)all_ns : 0.0,
		 (unsigned long long)b->stacks, WP_BLOCK_TICKS,
		 (unsigned long long)b->all_lost,
		 (unsigned long long)(b->all_records + b->all_lost));
	target->profile->meta.source[WP_PROFILE_BLOCK] = wp_intern_add_str(
		&target->profile->strings, text);
}

int wp_block_waits_finish(struct wp_target *target)
{
	struct wp_block_waits *b = target->block_waits;
	int rc;

	if (!b || b->no_events)
		return 0;
	if (b->events.enabled) {
		end_recording(b);
		rc = read_records(target, UINT64_MAX);
		if (!rc)
			rc = record_waits(target, 0);
	} else {
		rc = record_waits(target, wp_clock_ns() - b->on_ns);
	}
	describe_source(target);
	return rc ? rc :
		    wp_block_weight_finish(
			    target->profile,
			    wp_stack_walk_intern_none(target, WP_END_EMPTY));
}

int wp_block_waits_add(struct wp_thread *t, const struct wp_sample_key *key,
		       bool same, uint64_t wall_ns)
{
	const struct wp_block_waits *block = t->target->block_waits;
	struct wp_sample_key own = *key;
	uint64_t count = 0, ns = wall_ns;

	if (!block || key->state != WP_STATE_WAITING)
		return 0;
	own.object = 0;
	if (!same)
		t->waits.samples = t->waits.samples_ns = 0;
	t->waits.samples++;
	t->waits.samples_ns += wall_ns;
	if (!block->no_events) {
		if (t->waits.samples < WP_BLOCK_TICKS)
			return 0;
		if (t->waits.samples == WP_BLOCK_TICKS) {
			count = 1;
			ns = t->waits.samples_ns;
		}
	} else {
		count = !same;
	}
	return wp_profile_add_sample(t->target->profile, WP_PROFILE_BLOCK, &own,
				     count, ns);
}

void wp_block_waits_close(struct wp_target *target)
{
	if (!target->block_waits)
		return;
	wp_perf_source_close(&target->block_waits->events);
	free(target->block_waits->waits);
	free(target->block_waits);
	target->block_waits = NULL;
}
