/* SPDX-License-Identifier: Apache-2.0 */
/* stop.c - stop those that run, copy, let go: see sampler_priv.h. */
#include <errno.h>
#include <stdlib.h>

#include "sampler_priv.h"
#include "wallprof/clock.h"

/* How long the sampler attends to one stop before it asks for the next; later
 * ones are taken when they come. */
#define ATTEND_NS (60 * WP_NS_PER_US)
/* --stop=all holds threads until the last has stopped, but not longer. */
#define ALL_BOUND_NS (20 * WP_NS_PER_MS)
/* A stop seen this long after it was asked for was waiting for a CPU: until
 * then the thread was held up by others, not by us. */
#define LATE_NS (200 * WP_NS_PER_US)
/* What PTRACE_DETACH takes until the thread is awake, as measured. */
#define DETACH_NS (2 * WP_NS_PER_US)

/* No stop, so no stack: what the look found goes in without. */
static int record_without(struct wp_target *target, struct wp_thread *t)
{
	t->asked = false;
	if (t->ask.waiting) {
		target->profile->counters.partial++;
		return wp_record_waiting(target, t, &t->ask.facts,
					 t->ask.partial_stack,
					 t->ask.running_ns);
	}
	return wp_record_unseen(target, t);
}

/* May a thread be stopped now?  At the end of a recording what is owed gets a stack. */
static bool may_stop(const struct wp_target *target)
{
	return target->loop->finishing ||
	       wp_pauses_allow(&target->pauses, wp_clock_ns());
}

/* The time is kept for the next stack of the same kind. */
static int owe(struct wp_target *target, struct wp_thread *t)
{
	if (t->ask.waiting)
		return record_without(target, t);
	t->asked = false;
	t->owed_running_ns += t->ask.running_ns;
	t->owed_runnable_ns += t->ask.runnable_ns;
	t->owed_count++;
	return 0;
}

static int put_off(struct wp_target *target, struct wp_thread *t)
{
	target->profile->counters.stops_over_budget++;
	return owe(target, t);
}

static int refused(struct wp_target *target, struct wp_thread *t, int rc)
{
	struct wp_schedstat now;

	if (rc == -ENOMEM)
		return rc;
	/* A thread on its way out refuses too; it will be missed at the next
	 * look. */
	if (wp_thread_schedstat(target, t, &now))
		return 0;
	if (rc == -EALREADY)
		target->profile->counters.stops_given_up++;
	else
		target->profile->counters.stops_refused++;
	return record_without(target, t);
}

/* Copy the stack while the thread stands still. */
static void copy_stack(struct wp_target *target, const struct wp_thread *t,
		       const struct wp_regs *regs)
{
	uint64_t sp = regs->v[WP_REG_SP];

	wp_stack_copy_take(&target->loop->copy, &target->space, sp,
			   t->copy_len_running);
}

static void release(struct wp_target *target, struct wp_tracee *tracee)
{
	uint64_t asked_ns = tracee->asked_ns, stopped_ns = tracee->stopped_ns;
	uint64_t from_ns = stopped_ns - asked_ns < LATE_NS ? asked_ns :
							     stopped_ns;

	/* The detach sets it going, often on this very CPU in our place, so a
	 * clock read after it would count time in which it runs. */
	wp_pauses_add(&target->pauses, wp_clock_ns() + DETACH_NS - from_ns);
	target->profile->counters.stops++;
	wp_tracer_release(target->loop->tracer, tracee);
}

/* Make room for deeper stacks, and see whether one copy can hold this one.  Was
 * it cut where the next would not be? */
static bool learn(struct wp_target *target, struct wp_thread *t)
{
	bool grows = target->loop->copy.beyond &&
		     t->copy_len_running < WP_COPY_MAX;

	if (grows)
		t->copy_len_running *= 4;
	t->walk_in_stop = target->loop->copy.elsewhere;
	return (grows && target->loop->stack.end == WP_END_BEYOND_COPY) ||
	       target->loop->stack.end == WP_END_OTHER_STACK;
}

/* A waiting thread was stopped for its registers: if it had not moved, its
 * stack is known from now on.
 */
static int record_registers(struct wp_target *target, struct wp_thread *t,
			    const struct wp_regs *regs)
{
	int rc = 0;

	if (regs->v[WP_REG_SP] == t->ask.sp_avma &&
	    target->loop->stack.end != WP_END_BEYOND_COPY &&
	    target->loop->stack.end != WP_END_OTHER_STACK) {
		if (!t->sites)
			t->sites = calloc(1, sizeof(*t->sites));
		if (!t->sites)
			return -ENOMEM;
		rc = wp_site_cache_add(t->sites, t->ask.sp_avma,
				       target->space.view.generation,
				       &target->loop->stack);
	}
	return rc;
}

static int record_stopped(struct wp_target *target, struct wp_thread *t,
			  const struct wp_regs *regs,
			  const struct wp_stop_facts *stop, enum wp_state state)
{
	struct wp_thread_facts facts = { .letter = 'S',
					 .syscall_nr = stop->syscall_nr };
	uint64_t ns = t->ask.running_ns + t->ask.runnable_ns;
	uint32_t stack;
	int rc = 0;

	if (t->ask.waiting)
		rc = record_registers(target, t, regs);
	if (target->loop->options.kernel && t->ask.waiting)
		wp_waiting_add_kernel(target, t);
	target->profile->counters.stopped++;
	stack = wp_record_stack(target);
	if (rc || stack == UINT32_MAX)
		return -ENOMEM;
	if (t->ask.waiting) {
		facts = t->ask.facts;
	} else if (!stop->asleep) {
		t->stack_holds = true;
		return wp_record_running(target, t, stack, state);
	} else {
		for (int i = 0; i < WP_SYSCALL_ARGS; i++)
			facts.args[i] = stop->args[i];
	}
	rc = wp_record_waiting(target, t, &facts, stack, ns);
	/* The stop itself made it run: what it does now is not known. */
	t->asleep = false;
	return rc;
}

/* Was T on a CPU when it was asked to stop?  Then it has not been put on one
 * again by the time it stands still. */
static enum wp_state state_when_asked(struct wp_target *target,
				      struct wp_thread *t)
{
	struct wp_schedstat at_stop;

	return wp_thread_schedstat(target, t, &at_stop) ||
			       at_stop.slices == t->ask.slices ?
		       WP_STATE_RUNNING :
		       WP_STATE_RUNNABLE;
}

static int interrupt(struct wp_target *target, struct wp_thread *t)
{
	struct wp_schedstat now;
	int rc;

	/* Since the look, or the stop before, it may have slept and woken. */
	if (!wp_thread_schedstat(target, t, &now))
		t->ask.slices = now.slices;
	rc = wp_tracer_interrupt(target->loop->tracer, t->tid, (uintptr_t)t);
	if (rc)
		return refused(target, t, rc);
	t->asked = true;
	return 0;
}

/* TRACEE has stopped: the window proper. */
static int take(struct wp_target *target, struct wp_thread *t,
		struct wp_tracee *tracee)
{
	struct wp_stop_facts facts;
	struct wp_regs regs;
	enum wp_state state;
	bool too_slow;
	int rc = wp_tracer_read_regs(tracee, &regs, &facts);

	t->asked = false;
	if (rc) {
		wp_tracer_release(target->loop->tracer, tracee);
		return 0;
	}
	copy_stack(target, t, &regs);
	state = state_when_asked(target, t);
	target->loop->copy.live = t->walk_in_stop;
	if (t->walk_in_stop)
		wp_look_walk(target, &regs, WP_UNWIND_IN_STOP);
	release(target, tracee);
	t->block.stop_end_ns = wp_clock_ns();
	if (!t->walk_in_stop)
		wp_look_walk(target, &regs, WP_UNWIND_THOROUGH);
	if (facts.eintr_repaired)
		target->profile->counters.eintr_repaired++;
	if (learn(target, t) && may_stop(target))
		return interrupt(target, t);
	if (wp_thread_schedstat(target, t, &t->base))
		return 0;
	t->base_ns = wp_clock_ns();
	too_slow = target->loop->stack.end == WP_END_TOO_SLOW;
	rc = record_stopped(target, t, &regs, &facts, state);
	/* What the walk had no time for is found out now, for the next one. */
	if (too_slow)
		wp_look_walk(target, &regs, WP_UNWIND_THOROUGH);
	return rc;
}

int wp_stop_arrived(struct wp_target *target, struct wp_tracee *tracee)
{
	return take(target, (void *)(uintptr_t)tracee->cookie, tracee);
}

static int ask(struct wp_target *target, struct wp_thread *t)
{
	t->block.stop_begin_ns = wp_clock_ns();
	return interrupt(target, t);
}

static int stop_each(struct wp_target *target)
{
	/* Begin anywhere, so that a short budget is shared fairly. */
	size_t first = target->naskers ? wp_sampler_random(target->loop) %
						 target->naskers :
					 0;

	for (size_t i = 0; i < target->naskers; i++) {
		struct wp_thread *t =
			target->askers[(first + i) % target->naskers];
		int rc = may_stop(target) ? ask(target, t) : put_off(target, t);
		uint64_t until_ns = wp_clock_ns() + ATTEND_NS;
		struct wp_tracee *tracee;

		while (!rc && t->asked &&
		       (tracee = wp_tracer_wait(target->loop->tracer,
						until_ns)))
			rc = take(target, (void *)(uintptr_t)tracee->cookie,
				  tracee);
		if (rc)
			return rc;
	}
	return 0;
}

int wp_stop_ask(struct wp_target *target)
{
	bool allowed = may_stop(target);
	int rc = 0;

	for (size_t i = 0; i < target->naskers && !rc; i++)
		rc = allowed ? ask(target, target->askers[i]) :
			       put_off(target, target->askers[i]);
	target->naskers = 0;
	return rc;
}

size_t wp_stop_count_asked(const struct wp_target *target)
{
	size_t n = 0;

	for (size_t i = 0; i < target->nthreads; i++)
		n += target->threads[i]->asked;
	return n;
}

static bool is_of_this_tick(const struct wp_target *target,
			    const struct wp_tracee *tracee)
{
	const struct wp_thread *t = (void *)(uintptr_t)tracee->cookie;

	return t && t->ask.tick_ns == target->loop->tick_ns;
}

/* Every thread that runs is stopped before any is let go: one instant.  Those
 * of ticks before come when they get a CPU. */
static int stop_together(struct wp_target *target)
{
	int rc = wp_stop_ask(target);
	/* From then on: asking may take long where others want the CPU. */
	uint64_t until_ns = wp_clock_ns() + ALL_BOUND_NS;
	struct wp_tracee *tracee;
	size_t n = 0;

	for (size_t i = 0; i < target->loop->tracer->len; i++)
		n += !target->loop->tracer->v[i].stopped &&
		     is_of_this_tick(target, &target->loop->tracer->v[i]);
	while (!rc && n &&
	       (tracee = wp_tracer_wait(target->loop->tracer, until_ns)))
		n -= is_of_this_tick(target, tracee);
	for (size_t i = target->loop->tracer->len; i-- > 0 && !rc;) {
		tracee = &target->loop->tracer->v[i];
		if (tracee->stopped)
			rc = take(target, (void *)(uintptr_t)tracee->cookie,
				  tracee);
	}
	return rc;
}

int wp_stop_askers(struct wp_target *target)
{
	int rc = 0;

	if (target->loop->options.stop == WP_STOP_NEVER)
		for (size_t i = 0; i < target->naskers && !rc; i++)
			rc = record_without(target, target->askers[i]);
	else if (target->loop->options.stop == WP_STOP_ALL)
		rc = stop_together(target);
	else
		rc = stop_each(target);
	target->naskers = 0;
	return rc;
}

/* A stop takes effect when the thread is next put on a CPU: T has not been. */
static bool waits_for_cpu(struct wp_target *target, struct wp_thread *t)
{
	struct wp_schedstat now;
	struct wp_proc_stat stat;
	char text[1024];
	ssize_t n;

	if (wp_thread_schedstat(target, t, &now) || now.slices != t->ask.slices)
		return false;
	n = wp_thread_read(target, t, WP_THREAD_STAT, text, sizeof(text));
	return n > 0 && !wp_proc_stat_parse(&stat, text, (size_t)n) &&
	       stat.letter == 'R';
}

static int give_up(struct wp_target *target, struct wp_thread *t, bool owed)
{
	struct wp_tracee *tracee = wp_tracer_find(target->loop->tracer,
						  (uintptr_t)t);

	if (tracee)
		wp_tracer_release(target->loop->tracer, tracee);
	/* Nobody has seen where it went since, for it went nowhere. */
	if (owed && t->last_running_stack != UINT32_MAX)
		return owe(target, t);
	target->profile->counters.stops_given_up++;
	return record_without(target, t);
}

int wp_stop_expire(struct wp_target *target, uint64_t max_age_ns)
{
	int rc = 0;

	for (size_t i = 0; i < target->nthreads && !rc; i++) {
		struct wp_thread *t = target->threads[i];
		bool waits;

		if (!t->asked ||
		    (max_age_ns &&
		     target->loop->tick_ns - t->ask.tick_ns < max_age_ns))
			continue;
		waits = waits_for_cpu(target, t);
		if (!max_age_ns || !waits)
			rc = give_up(target, t, waits);
	}
	return rc;
}
