/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.c - CPU samples: see sampler_priv.h.
 *
 * A CPU sample is also the stack of a running thread for the wall clock: the
 * time that ticks found it running is owed until its next CPU sample comes, so
 * no thread is stopped for running.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sampler_priv.h"
#include "wallprof/clock.h"

enum {
	KERNEL_NAME_MAX = 32,
	/* Events of threads cost the target near 2 us at each switch to or from
	 * one (2.5 us of CPU time a switch became 4.4): 1 % of a core. */
	SWITCHES_MAX = 5000,
	/* Without events of CPUs instead, these are better than none up to
	 * here: 4 %. */
	SWITCHES_BEAR = 20000,
	SWITCHES_TICKS = 10,
	/* To open an event, turn it on and close it takes 20 us of CPU time,
	 * and longer until the other CPUs have heard of it: so many, 40 ms. */
	EVENTS_MAX = 2000,
};

static int open_events(struct wp_target *target, struct wp_perf **ret,
		       uint32_t stack_bytes, struct wp_err *err)
{
	struct wp_perf_options options = {
		.scope = target->perf_scope,
		.period_ns = target->loop->options.interval_ns,
		.stack_bytes = stack_bytes,
		.user_regs = true,
		.kernel_chain = target->loop->options.kernel,
	};
	int rc = wp_perf_open(ret, target->process, &options, err);

	/* An event per thread takes descriptors by the thousand. */
	if (rc == -EMFILE) {
		options.scope = target->perf_scope = WP_PERF_CPU;
		rc = wp_perf_open(ret, target->process, &options, err);
	}
	if (!rc)
		wp_perf_enable(*ret, WP_PERF_PART_ALL);
	return rc;
}

/* WHY there are no events, if there are none. */
static void say_how(struct wp_target *target, const char *why)
{
	char text[sizeof(((struct wp_err *)0)->msg) + 128];

	if (!target->perf)
		snprintf(text, sizeof(text),
			 "the scheduler's time of each "
			 "thread, divided over its running samples (%s)",
			 why);
	else
		snprintf(text, sizeof(text),
			 "perf events of each %s%s, scaled "
			 "to the scheduler's time of each thread",
			 wp_perf_facts(target->perf)->main_scope ==
					 WP_PERF_CPU ?
				 "CPU" :
				 "thread",
			 wp_perf_facts(target->perf)->user_only ?
				 ", user code only" :
				 "");
	target->profile->meta.cpu_source = wp_intern_add_str(
		&target->profile->strings, text);
}

/* Events of threads are one for each on each CPU. */
static bool are_too_many(const struct wp_target *target)
{
	long threads = wp_process_count_threads(target->process);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return threads > 0 && cpus > 0 && threads > EVENTS_MAX / cpus;
}

void wp_cpu_open(struct wp_target *target, struct wp_err *err)
{
	int rc = -EPERM;

	target->perf_stack_bytes = WP_CPU_FIRST_STACK;
	target->perf_scope = are_too_many(target) ? WP_PERF_CPU : WP_PERF_AUTO;
	if (target->perf_scope == WP_PERF_CPU)
		rc = open_events(target, &target->perf,
				 target->perf_stack_bytes, err);
	/* Those of CPUs want rights that not everybody has. */
	if (rc == -EPERM) {
		target->perf_scope = WP_PERF_AUTO;
		rc = open_events(target, &target->perf,
				 target->perf_stack_bytes, err);
	}
	if (rc)
		target->perf = NULL;
	say_how(target, err->msg);
}

/* The kernel's frames of a sample go before the user's. */
static void add_kernel(struct wp_target *target,
		       const struct wp_perf_record *record)
{
	uint32_t n = 0;

	for (size_t i = 0; i < record->kernel_len; i++) {
		/* Return addresses but the first. */
		uint64_t avma = record->kernel_chain[i] - (i > 0);
		const char *name = wp_kallsyms_find(&target->loop->kallsyms,
						    avma);
		char number[KERNEL_NAME_MAX];
		uint32_t id;

		if (!name) {
			snprintf(number, sizeof(number), "0x%llx",
				 (unsigned long long)avma);
			name = number;
		}
		id = wp_intern_add_str(&target->profile->strings, name);
		if (id == UINT32_MAX || n == WP_KERNEL_FRAMES_MAX)
			break;
		target->loop->kernel_room[n++] = (struct wp_frame){
			id, WP_MAPPING_KERNEL, WP_FRAME_KERNEL
		};
	}
	target->loop->stack.frames -= n;
	target->loop->stack.cfa_avma -= n;
	target->loop->stack.depth += n;
	memcpy(target->loop->stack.frames, target->loop->kernel_room,
	       n * sizeof(*target->loop->kernel_room));
	memset(target->loop->stack.cfa_avma, 0,
	       n * sizeof(*target->loop->stack.cfa_avma));
}

void wp_cpu_walk(struct wp_target *target, const struct wp_perf_record *record)
{
	uint64_t sp = record->regs.v[WP_REG_SP];

	wp_stack_copy_set(&target->loop->copy, &target->space, sp,
			  record->stack, record->stack_len);
	wp_look_walk(target, &record->regs, WP_UNWIND_THOROUGH);
}

bool wp_cpu_is_cut(const struct wp_target *target,
		   const struct wp_perf_record *record)
{
	return target->loop->stack.end == WP_END_BEYOND_COPY &&
	       record->stack_full;
}

uint32_t wp_cpu_more_stack(uint32_t bytes)
{
	return bytes * 4 < WP_PERF_STACK_MAX ? bytes * 4 : WP_PERF_STACK_MAX;
}

/* T's stack goes on past the copy in its sample: a stop, which copies all, gives
 * the one for what T is owed.  Where the copy was too short, more is copied from
 * now on; where it ended at a page that T has never touched, which the kernel
 * does not bring in for a sample, or the rest is on another stack (T is in a
 * signal handler, or Go's runtime has one of its own), more would not help. */
static bool waits_for_stop(struct wp_target *target,
			   const struct wp_perf_record *record)
{
	if (target->loop->stack.end != WP_END_BEYOND_COPY &&
	    target->loop->stack.end != WP_END_OTHER_STACK)
		return false;
	target->perf_wants_more |= target->loop->copy.beyond &&
				   record->stack_full;
	return target->loop->options.stop == WP_STOP_AUTO;
}

static int record_sample(struct wp_target *target, struct wp_thread *t,
			 const struct wp_perf_record *record)
{
	/* It may be over before a tick sees it. */
	t->looks += !t->looks;
	target->profile->threads[t->index].cpu_ns += record->period;
	t->cpu_ns += record->period;
	t->owed_cpu_count++;
	t->owed_cpu_ns += record->period;
	if (!wp_reg_known(&record->regs, WP_REG_PC))
		return wp_record_cpu(target, t, wp_record_no_stack(target));
	wp_cpu_walk(target, record);
	if (waits_for_stop(target, record))
		return 0;
	if (record->kernel_len)
		add_kernel(target, record);
	return wp_record_cpu(target, t, wp_record_stack(target));
}

/* Record the CPU samples that there are. */
static int record_samples(struct wp_target *target)
{
	struct wp_perf_record record;
	int rc = 0;

	while (!rc && wp_perf_next(target->perf, UINT64_MAX, &record)) {
		struct wp_thread *t;

		if (record.type != WP_PERF_SAMPLE_CPU)
			continue;
		t = wp_threads_get(target, record.tid);
		if (!t)
			rc = -ENOMEM;
		else if (t->watched)
			rc = record_sample(target, t, &record);
	}
	return rc;
}

static void replace(struct wp_target *target, struct wp_perf *by)
{
	wp_perf_disable(target->perf, WP_PERF_PART_ALL);
	target->perf_lost_before += wp_perf_stats(target->perf)->lost;
	wp_perf_close(target->perf);
	target->perf = by;
}

/* A stack was cut: copy more of each from now on. */
static void grow(struct wp_target *target)
{
	uint32_t bytes = wp_cpu_more_stack(target->perf_stack_bytes);
	struct wp_perf *wider;

	target->perf_wants_more = false;
	if (bytes == target->perf_stack_bytes ||
	    open_events(target, &wider, bytes, NULL))
		return;
	target->perf_stack_bytes = bytes;
	replace(target, wider);
}

/* The time of each thread is divided over its running samples from now on, and
 * so is that of before. */
static void do_without(struct wp_target *target)
{
	struct wp_sample_set *set = &target->profile->sets[WP_PROFILE_WALL];

	for (uint32_t i = 0; i < set->nsamples; i++)
		set->samples[i].cpu_count = set->samples[i].cpu_ns = 0;
	replace(target, NULL);
	target->wants_running = target->looks_at_all = true;
	say_how(target,
		"its switches are too many for perf events of each thread, "
		"and those of each CPU want CAP_PERFMON");
}

/* Switches a second since this was last asked. */
static uint64_t switch_rate(struct wp_target *target)
{
	uint64_t n = target->switches,
		 ns = target->loop->tick_ns - target->switches_ns;

	target->switches = 0;
	target->switches_ns = target->loop->tick_ns;
	return ns ? (uint64_t)((double)n / (double)ns * WP_NS_PER_S) : 0;
}

/* A target that switches very often is better off with events of CPUs. */
static void relieve(struct wp_target *target)
{
	struct wp_perf *cheap;
	uint64_t rate;

	if (wp_perf_facts(target->perf)->main_scope == WP_PERF_CPU ||
	    target->tick % SWITCHES_TICKS)
		return;
	rate = switch_rate(target);
	if (rate < SWITCHES_MAX || target->perf_scope == WP_PERF_CPU)
		return;
	target->perf_scope = WP_PERF_CPU;
	if (!open_events(target, &cheap, target->perf_stack_bytes, NULL)) {
		replace(target, cheap);
		say_how(target, "");
		return;
	}
	target->perf_scope = WP_PERF_AUTO;
	if (rate > SWITCHES_BEAR)
		do_without(target);
}

int wp_cpu_drain(struct wp_target *target)
{
	int rc;

	if (!target->perf)
		return 0;
	rc = record_samples(target);
	target->profile->counters.cpu_lost = target->perf_lost_before +
					     wp_perf_stats(target->perf)->lost;
	if (target->perf_wants_more && !rc) {
		wp_perf_disable(target->perf, WP_PERF_PART_ALL);
		rc = record_samples(target);
		grow(target);
		wp_perf_enable(target->perf, WP_PERF_PART_ALL);
	}
	if (!rc)
		relieve(target);
	return rc;
}

int wp_cpu_finish(struct wp_target *target)
{
	if (target->perf)
		wp_perf_disable(target->perf, WP_PERF_PART_ALL);
	return wp_cpu_drain(target);
}

void wp_cpu_account(struct wp_target *target, struct wp_thread *t,
		    const struct wp_schedstat *now)
{
	uint64_t ns;

	/* What a thread has used before the recording is no part of it. */
	if (!t->run_known) {
		t->first_run_ns += target->tick > 1 ? 0 : now->run_ns;
		t->slices = target->tick > 1 ? 0 : now->slices;
	}
	t->run_known = true;
	target->switches += now->slices - t->slices;
	t->slices = now->slices;
	ns = now->run_ns > t->first_run_ns ? now->run_ns - t->first_run_ns : 0;
	/* Samples may have told more. */
	target->profile->threads[t->index].cpu_ns += ns - t->cpu_ns;
	t->cpu_ns = ns;
}

void wp_cpu_close(struct wp_target *target)
{
	wp_perf_close(target->perf);
	target->perf = NULL;
}
