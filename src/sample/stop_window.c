/* SPDX-License-Identifier: Apache-2.0 */
/* stop_window.c - see stop_window.h. */
#include "stop_window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aside.h"
#include "books.h"
#include "kernel_frames.h"
#include "record.h"
#include "sampler_loop.h"
#include "stack_walk.h"
#include "stop_move.h"
#include "stop_together.h"
#include "target.h"
#include "threads.h"
#include "unsampled.h"
#include "unstopped.h"
#include "wallprof/clock.h"

/* How long the sampler waits for one stop before it requests the next; a later
 * stop is taken when it comes. */
#define WAIT_NS (60 * WP_NS_PER_US)
/* A stop seen this long after it was requested was waiting for a CPU: until then
 * the thread was held up by others, not by us. */
#define LATE_NS (200 * WP_NS_PER_US)
/* What PTRACE_DETACH takes until the thread is awake, as measured. */
#define DETACH_NS (2 * WP_NS_PER_US)

/* Is there budget for a stop besides NCOMING? */
static bool may_stop_with(struct wp_target *target, size_t ncoming)
{
	uint64_t now_ns = wp_clock_ns();

	return wp_pauses_allow(&target->pauses, ncoming, now_ns) &&
	       wp_pauses_allow(&target->common->pauses, ncoming, now_ns);
}

static bool may_stop(struct wp_target *target)
{
	return may_stop_with(target, target->loop->tracer->len);
}

uint64_t wp_stop_window_credit(struct wp_target *target, uint64_t now_ns)
{
	uint64_t own = wp_pauses_credit(&target->pauses, now_ns);
	uint64_t all = wp_pauses_credit(&target->common->pauses, now_ns);

	return own < all ? own : all;
}

static void release(struct wp_target *target, struct wp_tracee *tracee)
{
	uint64_t asked_ns = tracee->asked_ns, stopped_ns = tracee->stopped_ns;
	uint64_t from_ns = stopped_ns - asked_ns < LATE_NS ? asked_ns :
							     stopped_ns;

	/* The detach sets the thread going, often on this very CPU in our
	 * place: a clock read after it would count time in which it runs. */
	stopped_ns = wp_clock_ns() + DETACH_NS - from_ns;
	wp_pauses_add(&target->pauses, stopped_ns);
	wp_pauses_add(&target->common->pauses, stopped_ns);
	target->profile->counters.stops++;
	wp_stop_window_thread(tracee)->nstops++;
	wp_tracer_release(target->loop->tracer, tracee);
}

/* Make room for deeper stacks, and note whether one copy can hold this one.  True
 * if WALK was cut where the next will not be. */
static bool learn_from(struct wp_thread *t, const struct wp_stack_walk *walk)
{
	bool is_on_other = walk->stack.end == WP_END_OTHER_STACK;
	/* The pieces of the other stack were too short. */
	bool was_short = is_on_other && t->walk_in_stop;
	bool grows = (walk->is_beyond_copy || was_short) &&
		     t->copy_len_running <
			     (was_short ? WP_PIECE_MAX : WP_COPY_MAX);

	if (grows)
		t->copy_len_running *= 4;
	t->walk_in_stop = walk->is_on_two_stacks || t->aside.has_two_stacks;
	if (is_on_other)
		t->other_stack_avma = t->target->loop->copy.missing_avma;
	else if (!walk->is_on_two_stacks)
		t->other_stack_avma = 0;
	return (grows && walk->stack.end == WP_END_BEYOND_COPY) ||
	       (is_on_other && (grows || !was_short));
}

/* Waiting T was stopped for its registers, and had not moved: its stack at this
 * place is known from now on.  0 or -ENOMEM. */
static int remember_site(struct wp_thread *t, const struct wp_stack *stack)
{
	if (stack->end == WP_END_BEYOND_COPY ||
	    stack->end == WP_END_OTHER_STACK)
		return 0;
	if (!t->sites)
		t->sites = calloc(1, sizeof(*t->sites));
	if (!t->sites)
		return -ENOMEM;
	return wp_site_cache_add(t->sites, t->stop.sp_avma,
				 t->target->space.view.generation, stack);
}

/* What a stop with these facts tells of a thread that it found asleep. */
static struct wp_thread_facts facts_of(const struct wp_stop_facts *stop)
{
	struct wp_thread_facts facts = {
		.state_char = 'S',
		.syscall_nr = stop->syscall_nr,
		.has_narrow_time = stop->has_narrow_time,
	};

	for (int i = 0; i < WP_SYSCALL_ARGS; i++)
		facts.args[i] = stop->args[i];
	return facts;
}

/* T was stopped in a system call that it slept in, or for its registers. */
static int queue_wait(struct wp_thread *t, const struct wp_stop_facts *stop,
		      uint32_t stack)
{
	const struct wp_thread_facts facts = facts_of(stop);
	bool of_sample = t->stop.for_registers && !t->stop.moved;
	int rc;

	wp_time_ledger_found_waiting(&t->time);
	/* A wait that began after the look is no chance find: such looks would
	 * favour waits that follow long runs. */
	rc = wp_wait_queue_add(t, of_sample ? &t->stop.facts : &facts, stack,
			       of_sample ? t->stop.weight_ns : 0);

	/* The stop itself made it run: what it does now is not known. */
	wp_wait_state_distrust(&t->wait);
	return rc;
}

/* What waiting T, stopped for its registers, waited for at its sample, it does no
 * more.  Where the next scan has the registers, the time goes to the next wait. */
static int record_moved(struct wp_thread *t)
{
	struct wp_sampler *loop = t->target->loop;

	if (loop->finishing || !wp_bpf_scan_is_next(loop))
		return wp_unstopped_record(t, WP_END_UNKNOWN_REG);
	t->target->profile->counters.inconsistent++;
	wp_bpf_scan_want(loop, t->target->process->pid, t->tid);
	return 0;
}

static int record_stopped(struct wp_thread *t, const struct wp_stop_facts *stop,
			  enum wp_state state, struct wp_stack_walk *walk)
{
	struct wp_target *target = t->target;
	uint32_t stack;

	target->profile->counters.stopped++;
	if (t->stop.for_registers && t->stop.moved && !stop->asleep)
		return record_moved(t);
	if (t->stop.for_registers && !t->stop.moved &&
	    remember_site(t, &walk->stack))
		return -ENOMEM;
	if (t->stop.for_registers && target->loop->options.kernel)
		wp_kernel_frames_add_waiting(t, &walk->stack);
	stack = wp_stack_walk_intern(target, walk);
	if (stack == UINT32_MAX)
		return -ENOMEM;
	if (t->stop.for_registers || stop->asleep)
		return queue_wait(t, stop, stack);
	wp_aside_take(t, walk, stack);
	t->running_stack_holds = true;
	t->nstops_running++;
	t->nstops_at_call += stop->at_call_end;
	wp_unsampled_stop(t, stop->at_call_end);
	return wp_record_running(t, stack, state, t->stop.weight_ns);
}

/* AGAIN: T was stopped just before. */
static int interrupt(struct wp_thread *t, bool again)
{
	uint64_t slices = t->stop.slices;
	struct wp_schedstat now;
	int rc;

	/* Since its sample, or the stop before, it may have slept and woken. */
	if (!wp_thread_files_schedstat(t, &now)) {
		/* The stop before this one made it run, too: of one that waits,
		 * its sleeps tell. */
		t->stop.moved |= !again && now.slices != slices;
		if (!again || !t->stop.for_registers)
			slices = now.slices;
	}
	rc = wp_tracer_interrupt(t->target->loop->tracer, t->tid, (uintptr_t)t);
	if (rc)
		return wp_unstopped_refuse(t, rc);
	wp_stop_request_sent(t, slices);
	/* It slept to stop, and to go back. */
	if (again && t->stop.sleeps != UINT64_MAX)
		t->stop.sleeps += 2;
	return 0;
}

/* T sleeps in the call that FACTS has by its registers: give it the number that
 * it was made with, and copy what its arguments refer to. */
static void read_call(struct wp_thread *t, const struct wp_regs *regs,
		      struct wp_stop_facts *facts)
{
	struct wp_proc_syscall call = {
		.nr = facts->syscall_nr,
		.sp_avma = regs->v[WP_REG_SP],
		.pc_avma = regs->v[WP_REG_PC],
	};
	struct wp_thread_facts copied;

	t->at_instant = false;
	facts->syscall_nr = wp_wait_state_call(&t->wait, t->target->process,
					       facts->is_32bit, &call);
	copied = facts_of(facts);
	if (t->memory)
		wp_call_memory_take(t->memory, t->target->process, &copied,
				    call.sp_avma);
}

/* Was T on a CPU when it was interrupted?  Then it has not been put on one again
 * by the time it stands still. */
static enum wp_state state_when_interrupted(const struct wp_thread *t,
					    const struct wp_stop_window *window)
{
	return window->times.slices == t->stop.slices ? WP_STATE_RUNNING :
							WP_STATE_RUNNABLE;
}

/* How much of T's stack is copied in a stop.  One that sleeps misses nothing while all
 * of it is copied, and a second stop would tell less. */
static size_t copy_len(const struct wp_thread *t,
		       const struct wp_stop_facts *facts)
{
	return t->stop.for_registers && facts->asleep &&
			       t->copy_len_running < WP_FOLLOW_MAX ?
		       WP_FOLLOW_MAX :
		       t->copy_len_running;
}

/* The window proper: nothing slow may run in here.  False: T died in it. */
static bool read_window(struct wp_thread *t, struct wp_tracee *tracee,
			struct wp_stop_window *ret)
{
	struct wp_target *target = t->target;
	struct wp_stack_copy *copy = &target->loop->copy;

	if (wp_tracer_read_regs(tracee, &ret->regs, &ret->facts) ||
	    wp_thread_files_schedstat(t, &ret->times)) {
		wp_tracer_release(target->loop->tracer, tracee);
		return false;
	}
	/* So far it was read by number, which another thread may have had. */
	ret->name[0] = '\0';
	if (!t->nstops)
		wp_threads_read_name(target, t->tid, ret->name);
	wp_wait_state_settle_stop(target->process, target->space.is_32bit,
				  &ret->regs, &ret->facts);
	wp_stack_copy_take(copy, &target->space, ret->regs.v[WP_REG_SP],
			   copy_len(t, &ret->facts));
	/* Before it goes on: it may have to wait for a CPU then. */
	copy->time_ns = ret->time_ns = wp_clock_ns();
	wp_stop_move_settle(t, &ret->times, &ret->regs, &ret->facts);
	if (ret->facts.asleep && (t->stop.moved || !t->stop.for_registers))
		read_call(t, &ret->regs, &ret->facts);
	copy->live = t->walk_in_stop;
	if (t->other_stack_avma)
		wp_stack_copy_keep(copy, t->other_stack_avma);
	if (t->walk_in_stop)
		ret->walk = wp_stack_walk(target, &ret->regs,
					  WP_UNWIND_IN_STOP);
	release(target, tracee);
	return true;
}

/* T's stack was cut in a stop as STOP says.  A thread that slept is not made to
 * start over twice. */
static bool may_stop_again(struct wp_thread *t,
			   const struct wp_stop_facts *stop)
{
	struct wp_thread_facts facts = facts_of(stop);

	if (!may_stop(t->target) || t->guard.has_filter)
		return false;
	return !stop->asleep || wp_stop_guard_lets_waiting(t, &facts);
}

/* Did WALK leave out what takes too long for a stop window? */
static bool is_partial(const struct wp_stack_walk *walk)
{
	return walk->stack.end == WP_END_TOO_SLOW || walk->map_is_stale;
}

bool wp_stop_window_is_walked(const struct wp_thread *t,
			      const struct wp_stop_window *window)
{
	return t->walk_in_stop && !is_partial(&window->walk);
}

/* Read and release T, which has stopped as TRACEE.  False: it died in the stop. */
static bool read_stop(struct wp_thread *t, struct wp_tracee *tracee,
		      struct wp_stop_window *ret)
{
	if (!read_window(t, tracee, ret)) {
		wp_unstopped_end(t);
		return false;
	}
	wp_stop_request_done(t);
	t->waits.stop_end_ns = wp_clock_ns();
	return true;
}

int wp_stop_window_finish(struct wp_thread *t, struct wp_stop_window *window)
{
	struct wp_target *target = t->target;
	int rc;

	if (window->name[0])
		wp_threads_rename(t, window->name);
	if (!t->watched)
		return 0;
	if (!wp_stop_window_is_walked(t, window)) {
		target->loop->copy.live = false;
		window->walk = wp_stack_walk(target, &window->regs,
					     WP_UNWIND_THOROUGH);
	}
	target->profile->counters.eintr_repaired +=
		window->facts.eintr_repaired;
	if (learn_from(t, &window->walk) && may_stop_again(t, &window->facts)) {
		/* Of one that waits its sleeps tell whether it goes back. */
		t->at_instant &= t->stop.for_registers;
		return interrupt(t, true);
	}
	wp_books_read(t, &window->times, window->time_ns);
	rc = record_stopped(t, &window->facts,
			    state_when_interrupted(t, window), &window->walk);
	/* What the walk had no time for is found out now, for the next one: what
	 * code says of a frame holds whatever else is on a stack by now. */
	if (is_partial(&window->walk)) {
		target->loop->copy.live = true;
		wp_stack_walk(target, &window->regs, WP_UNWIND_THOROUGH);
	}
	return rc;
}

int wp_stop_window_take(struct wp_thread *t, struct wp_tracee *tracee)
{
	struct wp_stop_window window;

	return read_stop(t, tracee, &window) ?
		       wp_stop_window_finish(t, &window) :
		       0;
}

int wp_stop_window_read_held(struct wp_tracee *tracee,
			     struct wp_stop_window *ret)
{
	struct wp_thread *t = wp_stop_window_thread(tracee);
	struct wp_target *target = t->target;

	if (may_stop_with(target, target->loop->tracer->len - 1))
		return read_stop(t, tracee, ret);
	release(target, tracee);
	/* Not a wait of its own. */
	t->waits.stop_end_ns = wp_clock_ns();
	return wp_unstopped_put_off(t);
}

static int begin_stop(struct wp_thread *t)
{
	if (!wp_stop_guard_lets_running(t)) {
		t->target->profile->counters.stops_left_out++;
		return wp_unstopped_owe(t);
	}
	t->waits.stop_begin_ns = wp_clock_ns();
	return interrupt(t, false);
}

int wp_stop_window_begin_any(struct wp_target *target, struct wp_thread **ret,
			     bool may_rest)
{
	struct wp_stop_requests *list = &target->stop_requests;

	*ret = wp_stop_requests_take(
		list, wp_random_next(&target->loop->random) % list->n);
	if (may_rest && wp_stop_guard_wants_rest(*ret))
		wp_stop_guard_rest();
	return may_stop(target) ? begin_stop(*ret) : wp_unstopped_put_off(*ret);
}

static int stop_each(struct wp_target *target)
{
	while (target->stop_requests.n) {
		struct wp_thread *t;
		int rc = wp_stop_window_begin_any(target, &t, true);
		uint64_t until_ns = wp_clock_ns() + WAIT_NS;
		struct wp_tracee *tracee;

		while (!rc && t->stop.pending &&
		       (tracee = wp_tracer_wait(target->loop->tracer,
						until_ns)))
			rc = wp_stop_window_take(wp_stop_window_thread(tracee),
						 tracee);
		if (rc)
			return rc;
	}
	return 0;
}

int wp_stop_window_make(struct wp_target *target)
{
	switch (target->loop->options.stop) {
	case WP_STOP_NEVER:
		return wp_unstopped_record_all(target);
	case WP_STOP_ALL:
		return wp_stop_together_make(target);
	default:
		return stop_each(target);
	}
}
