/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_samples.c - CPU samples: see cpu_samples.h.
 *
 * A CPU sample also supplies the stack for a thread's running wall time: that time
 * is owed until the thread's next CPU sample, so no running thread is stopped.
 */
#include "cpu_samples.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "aside.h"
#include "books.h"
#include "goroutine_times.h"
#include "kernel_frames.h"
#include "record.h"
#include "sampler_loop.h"
#include "stack_walk.h"
#include "target.h"
#include "threads.h"
#include "unsampled.h"
#include "wallprof/clock.h"

enum {
	/* Switches per second at which events of threads cost the target 1 % of
	 * a core, at 2 us per switch (2.5 us of CPU time became 4.4). */
	SWITCHES_MAX = 5000,
	/* The same for 4 %: up to here they are better than no events, where
	 * events of CPUs are not permitted. */
	SWITCHES_BEAR = 20000,
	/* Ticks between two checks of the rate. */
	SWITCHES_TICKS = 10,
	/* Most events of threads: to open, enable and close one takes 20 us of
	 * CPU time. */
	EVENTS_MAX = 2000,
	/* A part of stops that shares of functions can be wrong by. */
	CALLS_PART = 50,
};

static int open_events(struct wp_target *target, enum wp_perf_scope scope,
		       struct wp_err *err)
{
	const struct wp_perf_source *source = target->cpu_events;
	const struct wp_perf_options options = {
		.scope = scope,
		.period_ns = target->loop->options.interval_ns,
		.seed = wp_random_next(&target->loop->random),
		.stack_bytes = source->perf ? source->options.stack_bytes :
					      WP_PERF_SOURCE_FIRST_STACK,
		.user_regs = true,
		.kernel_chain = target->loop->options.kernel,
	};

	return wp_perf_source_open(target->cpu_events, target->process,
				   &options, err);
}

/* Tell in the profile where CPU time is from; WHY there are no events, if there
 * are none. */
static void describe_source(struct wp_target *target, const char *why)
{
	const struct wp_perf *perf = target->cpu_events->perf;
	char text[sizeof(((struct wp_err *)0)->msg) + 128];

	if (!perf)
		snprintf(text, sizeof(text),
			 "the scheduler's time of each "
			 "thread, divided over its running samples (%s)",
			 why);
	else
		snprintf(text, sizeof(text),
			 "perf events of each %s%s, scaled "
			 "to the scheduler's time of each thread",
			 wp_perf_facts(perf)->main_scope == WP_PERF_CPU ?
				 "CPU" :
				 "thread",
			 wp_perf_facts(perf)->user_only ? ", user code only" :
							  "");
	target->profile->meta.cpu_source = wp_intern_add_str(
		&target->profile->strings, text);
}

/* Events of threads, one per thread and CPU, would be too many. */
static bool are_too_many(const struct wp_target *target)
{
	long threads = wp_process_count_threads(target->process);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return threads * cpus > EVENTS_MAX;
}

void wp_cpu_samples_open(struct wp_target *target, struct wp_err *err)
{
	struct wp_perf_source *host = &target->loop->host_events;

	if (host->perf) {
		target->cpu_events = host;
		describe_source(target, "");
		return;
	}
	wp_perf_source_enable(target->cpu_events);
	/* Events of CPUs may not be permitted. */
	if (!are_too_many(target) ||
	    open_events(target, WP_PERF_CPU, err) == -EPERM)
		(void)!open_events(target, WP_PERF_AUTO, err);
	describe_source(target, err->msg);
}

/* Do stops find T at the end of a system call more often than shares may be wrong?  A
 * thread that calls every few microseconds is stopped nowhere else. */
static bool is_stopped_at_calls(const struct wp_thread *t)
{
	return t->nstops_at_call * CALLS_PART > t->nstops_running;
}

/* The stack goes on past the copy in its sample: a ptrace stop, which copies
 * all, will supply a stack of that kind for what T is owed.  Where the rest is
 * on another stack (the thread is in a signal handler, or Go's runtime has one
 * of its own), a longer copy would not help.  Where T has left that stack by
 * now, and stops find it where it was not, the part that is known stands. */
static bool waits_for_stop(const struct wp_thread *t,
			   const struct wp_stack_walk *walk)
{
	const struct wp_sampler *loop = t->target->loop;

	if (loop->options.stop != WP_STOP_AUTO)
		return false;
	return walk->stack.end == WP_END_OTHER_STACK ||
	       (walk->stack.end == WP_END_BEYOND_COPY &&
		!(loop->copy.has_left && is_stopped_at_calls(t)));
}

static int record_sample(struct wp_target *target, struct wp_thread *t,
			 const struct wp_perf_record *record)
{
	struct wp_stack_walk walk;
	int rc;

	/* The thread may end before a tick samples it. */
	t->nsamples += !t->nsamples;
	/* After the last look nothing more is counted. */
	if (!target->loop->finishing || target->gone)
		wp_books_add_sample(t, record->time_ns, record->period);
	rc = wp_unsampled_record(t, false);
	if (rc)
		return rc;
	wp_time_ledger_owe_cpu(&t->time, record->period);
	/* The kernel hands out the registers of a worker as 0, or not at all. */
	if (!record->regs.v[WP_REG_PC] && wp_stop_guard_is_worker(t)) {
		walk = wp_stack_walk_none(target, WP_END_WORKER);
		if (record->kernel_len)
			wp_kernel_frames_add_chain(target, record, &walk.stack);
		return wp_record_cpu(t, wp_stack_walk_intern(target, &walk));
	}
	if (!wp_reg_known(&record->regs, WP_REG_PC))
		return wp_record_cpu(
			t, wp_stack_walk_intern_none(target, WP_END_EMPTY));
	walk = wp_stack_walk_sample(target, target->cpu_events, record);
	wp_goroutine_times_note(t, &record->regs, &walk.stack);
	if (waits_for_stop(t, &walk))
		return wp_aside_put(t, &walk);
	if (record->kernel_len)
		wp_kernel_frames_add_chain(target, record, &walk.stack);
	return wp_record_cpu(t, wp_stack_walk_intern(target, &walk));
}

/* The thread TID, be it the last that has ended in this tick. */
static struct wp_thread *find_or_add(struct wp_target *target, pid_t tid)
{
	struct wp_thread *t = wp_threads_find(target, tid);

	for (size_t i = target->nended; i-- > 0 && !t;)
		if (target->ended[i]->tid == tid)
			t = target->ended[i];
	return t ? t : wp_threads_find_or_add(target, tid);
}

int wp_cpu_samples_take(struct wp_target *target,
			const struct wp_perf_record *record)
{
	struct wp_thread *t = find_or_add(target, record->tid);

	if (!t)
		return -ENOMEM;
	return t->watched ? record_sample(target, t, record) : 0;
}

/* Are TARGET's events those of the loop, which reads them? */
static bool are_hosts(const struct wp_target *target)
{
	return target->cpu_events != &target->own_events;
}

/* Record the CPU samples that there are. */
static int record_samples(struct wp_target *target)
{
	struct wp_perf_record record;
	uint64_t lost;
	int rc = 0;

	while (!rc &&
	       wp_perf_source_next(target->cpu_events, UINT64_MAX, &record))
		if (record.type == WP_PERF_SAMPLE_CPU)
			rc = wp_cpu_samples_take(target, &record);
	lost = wp_perf_source_lost(target->cpu_events);
	target->profile->counters.cpu_lost += lost - target->cpu_lost;
	target->cpu_lost = lost;
	return rc;
}

/* T's CPU samples that lack a stack are no more. */
static void drop_samples(struct wp_thread *t)
{
	(void)wp_time_ledger_pay_cpu(&t->time);
	for (int kind = 0; kind < WP_NASIDES; kind++)
		t->time.aside[kind].cpu_count = t->time.aside[kind].cpu_ns = 0;
}

/* Go on without events: all CPU time of each thread, that of before included, is
 * divided over its running samples.  In a recording without those, the CPU samples so far
 * stand for them. */
static void give_up_events(struct wp_target *target)
{
	struct wp_sample_set *set = &target->profile->sets[WP_PROFILE_WALL];

	for (uint32_t i = 0; i < set->nsamples; i++) {
		struct wp_profile_sample *s = &set->samples[i];

		if (target->profile->threads[s->key.thread].process !=
		    target->index)
			continue;
		if (!target->wants_running) {
			s->count += s->cpu_count;
			s->wall_ns += s->cpu_ns;
		}
		s->cpu_count = s->cpu_ns = 0;
	}
	for (size_t i = 0; i < target->nthreads; i++)
		drop_samples(target->threads[i]);
	for (size_t i = 0; i < target->nended; i++)
		drop_samples(target->ended[i]);
	wp_perf_source_close(target->cpu_events);
	target->wants_running = target->samples_threads = true;
	describe_source(
		target,
		"its switches are too many for perf events of each thread, "
		"and those of each CPU want CAP_PERFMON");
}

/* Context switches per second since the last call. */
static uint64_t switch_rate(struct wp_target *target)
{
	uint64_t n = target->switches,
		 ns = target->loop->tick_ns - target->switches_ns;

	target->switches = 0;
	target->switches_ns = target->loop->tick_ns;
	return ns ? (uint64_t)((double)n / (double)ns * WP_NS_PER_S) : 0;
}

/* Replace events of threads by events of CPUs if the target switches very often. */
static void use_cheaper_events(struct wp_target *target)
{
	uint64_t rate;

	if (wp_perf_facts(target->cpu_events->perf)->main_scope ==
		    WP_PERF_CPU ||
	    target->cpu_events->old || target->tick % SWITCHES_TICKS)
		return;
	rate = switch_rate(target);
	if (rate < SWITCHES_MAX)
		return;
	if (!open_events(target, WP_PERF_CPU, NULL))
		describe_source(target, "");
	else if (rate > SWITCHES_BEAR)
		give_up_events(target);
}

int wp_cpu_samples_read(struct wp_target *target)
{
	int rc = are_hosts(target) ? 0 : record_samples(target);

	if (rc || are_hosts(target) || !target->cpu_events->perf)
		return rc;
	wp_perf_draw_periods(target->cpu_events->perf,
			     wp_sampler_period(target->loop));
	wp_perf_source_grow(target->cpu_events, target->process);
	use_cheaper_events(target);
	return 0;
}

int wp_cpu_samples_finish(struct wp_target *target)
{
	if (are_hosts(target))
		return 0;
	wp_perf_source_disable(target->cpu_events);
	return record_samples(target);
}

void wp_cpu_samples_close(struct wp_target *target)
{
	wp_perf_source_close(&target->own_events);
}
