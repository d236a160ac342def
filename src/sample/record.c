/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - see record.h. */
#include "record.h"

#include <errno.h>

#include "books.h"
#include "goroutine_times.h"
#include "sampler_loop.h"
#include "stack_walk.h"
#include "target.h"
#include "unsampled.h"
#include "wait_child.h"
#include "wait_object.h"

/* Add MORE to the sample of KEY. */
static int add_sample(struct wp_thread *t, const struct wp_sample_key *key,
		      const struct wp_profile_sample *more)
{
	struct wp_profile *profile = t->target->profile;
	struct wp_profile_thread *p = &profile->threads[t->index];
	enum wp_profile_kind kind = t->target->loop->options.wall_kind;
	struct wp_profile_sample *sample;
	int rc;

	/* The time is the goroutines'. */
	if (t->target->goroutines)
		return 0;
	rc = wp_profile_add_unwatched(profile, t->index, t->time.unwatched_ns);
	t->time.unwatched_ns = 0;
	if (p->last_ns < t->time.accounted_ns)
		p->last_ns = t->time.accounted_ns;
	if (!rc)
		rc = wp_profile_add_sample_hinted(profile, kind, key,
						  &t->wait.sample, more->count,
						  more->wall_ns);
	if (rc)
		return rc;
	sample = &profile->sets[kind].samples[t->wait.sample];
	sample->exact_ns += more->exact_ns;
	sample->weight_ns += more->weight_ns;
	sample->looks += more->looks;
	return 0;
}

/* The same to the sample of the wait that a look found. */
static int add_look(struct wp_thread *t, const struct wp_sample_key *key,
		    const struct wp_profile_sample *more)
{
	int rc;

	/* The time is the goroutines'. */
	if (t->target->goroutines)
		return 0;
	rc = add_sample(t, key, more);
	/* CPU samples, which are added to others, may come before the next look. */
	t->wait.look_sample = t->wait.sample;
	t->wait.look_weight_ns = more->weight_ns;
	return rc;
}

int wp_record_wait(const struct wp_queued_wait *wait)
{
	const struct wp_profile_sample more = {
		.count = 1,
		.wall_ns = wait->wall_ns,
		.weight_ns = wait->by_chance ? wait->weight_ns : 0,
		.looks = wait->by_chance,
	};
	struct wp_thread *t = wait->thread;
	struct wp_sample_key key = wait->key;
	int rc = 0;

	wp_lock_holders_note_wait(t, false, wait->weight_ns);
	if (key.state == WP_STATE_WAITING)
		rc = wp_wait_object_describe(t->target, t->tid, &key,
					     &wait->facts);
	if (!rc && key.wait == WP_WAIT_CHILD)
		rc = wp_wait_child_describe(t, &key);
	wp_wait_state_set_key(&t->wait, &key);
	wp_timeline_end_interval(&t->target->profile->timeline, t->index);
	if (!rc)
		rc = wp_block_waits_add(t, &key, 0, wait->weight_ns);
	if (!rc)
		rc = wp_lock_holders_charge(t, &key);
	return rc ? rc : add_look(t, &key, &more);
}

/* The last look, which found a wait, stands for NS less. */
static void lose_weight(struct wp_thread *t, uint64_t ns)
{
	struct wp_sample_set *set =
		&t->target->profile->sets[t->target->loop->options.wall_kind];
	uint32_t i = t->wait.look_sample;

	if (t->target->goroutines)
		return;
	if (ns > t->wait.look_weight_ns)
		ns = t->wait.look_weight_ns;
	t->wait.look_weight_ns -= ns;
	if (i < set->nsamples)
		set->samples[i].weight_ns -= ns;
}

int wp_record_unchanged(struct wp_thread *t, uint64_t nticks, uint64_t tick_ns,
			uint64_t region_end_ns)
{
	struct wp_profile_sample more = { .count = nticks };
	struct wp_sample_key *key = &t->wait.key;
	uint64_t left_ns;
	int rc;

	more.wall_ns = more.exact_ns = wp_time_ledger_pay_same(
		&t->time, tick_ns, region_end_ns, &left_ns, &more.weight_ns);
	/* The wait may go to another sample from here on. */
	lose_weight(t, left_ns);
	rc = wp_block_waits_add(t, key, nticks, t->time.region_ns);
	if (!rc && key->wait == WP_WAIT_CHILD)
		rc = wp_wait_child_confirm(t, key);
	wp_lock_holders_note_wait(t, true, t->time.region_ns);
	t->target->profile->counters.unchanged += nticks;
	return rc ? rc : add_look(t, key, &more);
}

/* Add MORE, if it is anything, to T's sample with STACK in STATE. */
static int add_ready(struct wp_thread *t, uint32_t stack, enum wp_state state,
		     const struct wp_profile_sample *more)
{
	const struct wp_sample_key key = { .stack = stack,
					   .thread = t->index,
					   .state = (uint8_t)state };

	return more->count || more->wall_ns ? add_sample(t, &key, more) : 0;
}

/* Pay what is owed as running, but KEEP_NS of it and what only a stop can tell of. */
static uint64_t pay_running(struct wp_thread *t, uint64_t keep_ns)
{
	uint64_t kept_ns = wp_unsampled_kept(t);

	if (kept_ns >= t->time.running_ns)
		return 0;
	return wp_time_ledger_pay_running(
		&t->time, kept_ns > keep_ns ? kept_ns : keep_ns);
}

/* Pay what is owed as running and runnable to STACK, with LOOK, what a look found in
 * STATE, and the looks that lack a stack; KEEP_NS of running time stays owed. */
static int pay_ready(struct wp_thread *t, uint32_t stack, enum wp_state state,
		     struct wp_profile_sample look, uint64_t keep_ns)
{
	enum wp_state other = state == WP_STATE_RUNNING ? WP_STATE_RUNNABLE :
							  WP_STATE_RUNNING;
	const struct wp_sample_key key = { .stack = stack,
					   .thread = t->index,
					   .state = (uint8_t)state };
	struct wp_profile_sample rest = { 0 };
	uint64_t running_ns = pay_running(t, keep_ns);
	uint64_t runnable_ns = wp_time_ledger_pay_runnable(&t->time);
	struct wp_payment owed = wp_time_ledger_pay_looks(&t->time);
	int rc = wp_lock_holders_charge(t, &key);

	look.count += owed.count;
	look.weight_ns += owed.ns;
	if (rc || !t->target->wants_running)
		return rc;
	/* Where it waited for a CPU it had run, or was to. */
	if (state != WP_STATE_RUNNING) {
		rest.weight_ns = look.weight_ns;
		look.weight_ns = 0;
	}
	look.wall_ns = state == WP_STATE_RUNNING ? running_ns : runnable_ns;
	rest.wall_ns = running_ns + runnable_ns - look.wall_ns;
	/* Each thread once. */
	if (t->target->loop->options.wall_kind != WP_PROFILE_WALL) {
		look.wall_ns += rest.wall_ns;
		rest.wall_ns = 0;
	}
	rc = add_ready(t, stack, state, &look);
	return rc ? rc : add_ready(t, stack, other, &rest);
}

/* The profile's entry of T's CPU samples. */
static uint32_t cpu_entry(const struct wp_thread *t)
{
	return t->target->goroutines ? wp_goroutine_times_entry(t) : t->index;
}

static int pay_cpu(struct wp_thread *t, uint32_t stack)
{
	struct wp_payment payment = wp_time_ledger_pay_cpu(&t->time);
	const struct wp_sample_key key = { .stack = stack,
					   .thread = cpu_entry(t),
					   .state = WP_STATE_RUNNING };

	if (key.thread == UINT32_MAX)
		return -ENOMEM;
	return payment.count ? wp_profile_add_cpu(t->target->profile, &key,
						  payment.count, payment.ns) :
			       0;
}

int wp_record_running(struct wp_thread *t, uint32_t stack, enum wp_state state,
		      uint64_t weight_ns)
{
	const struct wp_profile_sample look = { .count = 1,
						.weight_ns = weight_ns,
						.looks = 1 };
	int rc;

	if (stack == UINT32_MAX)
		return -ENOMEM;
	t->last_running_stack = stack;
	wp_wait_state_distrust(&t->wait);
	rc = pay_cpu(t, stack);
	return rc ? rc : pay_ready(t, stack, state, look, 0);
}

int wp_record_cpu(struct wp_thread *t, uint32_t stack)
{
	static const struct wp_profile_sample none;
	/* Without wall-clock samples, CPU samples are all there is. */
	uint64_t count = t->target->wants_running ? t->time.count :
						    t->time.cpu_count;
	int rc = stack == UINT32_MAX ? -ENOMEM : pay_cpu(t, stack);

	if (rc)
		return rc;
	t->last_running_stack = stack;
	t->target->profile->counters.sampled += count;
	/* Each of several samples that come together gets a part. */
	return pay_ready(t, stack, WP_STATE_RUNNING, none, 1);
}

int wp_record_without_stack(struct wp_thread *t, enum wp_stack_end why,
			    uint64_t weight_ns)
{
	const struct wp_profile_sample look = { .count = 1,
						.weight_ns = weight_ns,
						.looks = 1 };
	uint32_t stack = wp_stack_walk_intern_none(t->target, why);

	if (stack == UINT32_MAX)
		return -ENOMEM;
	t->target->profile->counters.no_stack++;
	wp_wait_state_distrust(&t->wait);
	return pay_ready(t, stack, WP_STATE_RUNNING, look, 0);
}

/* Has T, which no look found waiting, been held up for NS that are not in the
 * scheduler's books: by stops, the host of a virtual machine, interrupts, or in a
 * queue of which the kernel has not told yet? */
static bool was_held_up(const struct wp_thread *t, uint64_t ns)
{
	uint64_t sleeps = t->sleeps_before == UINT64_MAX ?
				  UINT64_MAX :
				  wp_thread_files_sleeps(t);

	if (sleeps != UINT64_MAX && sleeps - t->sleeps_before <= t->nstops)
		return true;
	return wp_time_ledger_was_held_up(
		&t->time, ns, t->target->pauses.total_ns, t->nslipped);
}

/* Pay what is owed as waiting: to T's last wait; where none was seen to the stack
 * that it was held up at, or to no stack. */
static int pay_waiting(struct wp_thread *t)
{
	const struct wp_profile_sample rest = {
		.wall_ns = wp_time_ledger_pay_wait(&t->time),
	};
	struct wp_sample_key key = t->wait.key;

	if (!rest.wall_ns)
		return 0;
	if (key.state == WP_STATE_RUNNING) {
		bool held_up = t->last_running_stack != UINT32_MAX &&
			       was_held_up(t, rest.wall_ns);

		key = (struct wp_sample_key){
			.stack = held_up ? t->last_running_stack :
					   wp_stack_walk_intern_none(
						   t->target, WP_END_NOT_SEEN),
			.state = held_up ? WP_STATE_RUNNABLE : WP_STATE_WAITING,
		};
	}
	key.thread = t->index;
	return key.stack == UINT32_MAX ? -ENOMEM : add_sample(t, &key, &rest);
}

/* No look found T running: pay what is owed as runnable to its last wait, where it was
 * woken and still was until it got a CPU. */
static int pay_woken(struct wp_thread *t)
{
	if (!t->target->wants_running || t->time.count ||
	    t->wait.key.state != WP_STATE_WAITING)
		return 0;
	return add_ready(
		t, t->wait.key.stack, WP_STATE_RUNNABLE,
		&(struct wp_profile_sample){
			.wall_ns = wp_time_ledger_pay_runnable(&t->time) });
}

/* Pay what is owed as running and runnable, and all CPU samples, to STACK; to no stack
 * if that is UINT32_MAX. */
static int pay_rest(struct wp_thread *t, uint32_t stack)
{
	static const struct wp_profile_sample none;
	int rc;

	if (stack == UINT32_MAX)
		stack = wp_stack_walk_intern_none(
			t->target,
			t->time.count ? WP_END_EMPTY : WP_END_NOT_SEEN);
	if (stack == UINT32_MAX)
		return -ENOMEM;
	rc = pay_cpu(t, stack);
	return rc ? rc : pay_ready(t, stack, WP_STATE_RUNNING, none, 0);
}

/* T's CPU samples ended before it did: the CPU time since is none of theirs. */
static int add_unsampled(struct wp_thread *t)
{
	const struct wp_sample_key key = {
		.stack = wp_stack_walk_intern_none(t->target, WP_END_EMPTY),
		.thread = cpu_entry(t),
		.state = WP_STATE_RUNNING,
	};

	return key.stack == UINT32_MAX || key.thread == UINT32_MAX ?
		       -ENOMEM :
		       wp_profile_add_cpu(t->target->profile, &key, 0,
					  t->time.running_ns);
}

int wp_record_end(struct wp_thread *t, bool ended)
{
	uint32_t stack = t->last_running_stack;
	int rc;

	wp_books_close(t, ended);
	rc = wp_unsampled_record(t, true);
	if (rc)
		return rc;
	/* Without CPU events looks lack a stack as stops were left out, and T ran on. */
	if (t->target->cpu_events->perf &&
	    wp_time_ledger_lost_event(&t->time,
				      t->target->loop->options.interval_ns)) {
		stack = UINT32_MAX;
		rc = add_unsampled(t);
	} else if (stack == UINT32_MAX) {
		rc = pay_woken(t);
	}
	if (!rc && wp_time_ledger_owes(&t->time))
		rc = pay_rest(t, stack);
	for (int kind = 0; kind < WP_NASIDES && !rc; kind++) {
		wp_time_ledger_take_aside(&t->time, (enum wp_aside_kind)kind);
		if (wp_time_ledger_owes(&t->time))
			rc = pay_rest(t, t->aside.stacks[kind]);
	}
	return rc || !t->target->wants_running ? rc : pay_waiting(t);
}
