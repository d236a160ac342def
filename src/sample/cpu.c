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

static int open_events(struct wp_sampler *s, struct wp_perf **ret,
		       uint32_t stack_bytes, struct wp_err *err)
{
	struct wp_perf_options options = {
		.scope = s->perf_scope,
		.period_ns = s->options.interval_ns,
		.stack_bytes = stack_bytes,
		.user_regs = true,
		.kernel_chain = s->options.kernel,
	};
	int rc = wp_perf_open(ret, s->process, &options, err);

	/* An event per thread takes descriptors by the thousand. */
	if (rc == -EMFILE) {
		options.scope = s->perf_scope = WP_PERF_CPU;
		rc = wp_perf_open(ret, s->process, &options, err);
	}
	if (!rc)
		wp_perf_enable(*ret, WP_PERF_PART_ALL);
	return rc;
}

/* WHY there are no events, if there are none. */
static void say_how(struct wp_sampler *s, const char *why)
{
	char text[sizeof(((struct wp_err *)0)->msg) + 128];

	if (!s->perf)
		snprintf(text, sizeof(text),
			 "the scheduler's time of each "
			 "thread, divided over its running samples (%s)",
			 why);
	else
		snprintf(text, sizeof(text),
			 "perf events of each %s%s, scaled "
			 "to the scheduler's time of each thread",
			 wp_perf_facts(s->perf)->main_scope == WP_PERF_CPU ?
				 "CPU" :
				 "thread",
			 wp_perf_facts(s->perf)->user_only ?
				 ", user code only" :
				 "");
	s->profile->meta.cpu_source = wp_intern_add_str(&s->profile->strings,
							text);
}

/* Events of threads are one for each on each CPU. */
static bool are_too_many(const struct wp_sampler *s)
{
	long threads = wp_process_count_threads(s->process);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return threads > 0 && cpus > 0 && threads > EVENTS_MAX / cpus;
}

void wp_cpu_open(struct wp_sampler *s, struct wp_err *err)
{
	int rc = -EPERM;

	s->perf_stack_bytes = WP_CPU_FIRST_STACK;
	s->perf_scope = are_too_many(s) ? WP_PERF_CPU : WP_PERF_AUTO;
	if (s->perf_scope == WP_PERF_CPU)
		rc = open_events(s, &s->perf, s->perf_stack_bytes, err);
	/* Those of CPUs want rights that not everybody has. */
	if (rc == -EPERM) {
		s->perf_scope = WP_PERF_AUTO;
		rc = open_events(s, &s->perf, s->perf_stack_bytes, err);
	}
	if (rc)
		s->perf = NULL;
	say_how(s, err->msg);
}

/* The kernel's frames of a sample go before the user's. */
static void add_kernel(struct wp_sampler *s,
		       const struct wp_perf_record *record)
{
	uint32_t n = 0;

	for (size_t i = 0; i < record->kernel_len; i++) {
		/* Return addresses but the first. */
		uint64_t avma = record->kernel_chain[i] - (i > 0);
		const char *name = wp_kallsyms_find(&s->kallsyms, avma);
		char number[KERNEL_NAME_MAX];
		uint32_t id;

		if (!name) {
			snprintf(number, sizeof(number), "0x%llx",
				 (unsigned long long)avma);
			name = number;
		}
		id = wp_intern_add_str(&s->profile->strings, name);
		if (id == UINT32_MAX || n == WP_KERNEL_FRAMES_MAX)
			break;
		s->kernel_room[n++] = (struct wp_frame){ id, WP_MAPPING_KERNEL,
							 WP_FRAME_KERNEL };
	}
	s->stack.frames -= n;
	s->stack.cfa_avma -= n;
	s->stack.depth += n;
	memcpy(s->stack.frames, s->kernel_room, n * sizeof(*s->kernel_room));
	memset(s->stack.cfa_avma, 0, n * sizeof(*s->stack.cfa_avma));
}

void wp_cpu_walk(struct wp_sampler *s, const struct wp_perf_record *record)
{
	uint64_t sp = record->regs.v[WP_REG_SP];

	wp_stack_copy_set(&s->copy, sp,
			  wp_address_space_stack_end(&s->space, sp),
			  record->stack, record->stack_len);
	wp_look_walk(s, &record->regs, WP_UNWIND_THOROUGH);
}

bool wp_cpu_is_cut(const struct wp_sampler *s,
		   const struct wp_perf_record *record)
{
	return s->stack.end == WP_END_BEYOND_COPY && record->stack_full;
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
static bool waits_for_stop(struct wp_sampler *s,
			   const struct wp_perf_record *record)
{
	if (s->stack.end != WP_END_BEYOND_COPY &&
	    s->stack.end != WP_END_OTHER_STACK)
		return false;
	s->perf_wants_more |= s->copy.beyond && record->stack_full;
	return s->options.stop == WP_STOP_AUTO;
}

static int record_sample(struct wp_sampler *s, struct wp_thread *t,
			 const struct wp_perf_record *record)
{
	/* It may be over before a tick sees it. */
	t->looks += !t->looks;
	s->profile->threads[t->index].cpu_ns += record->period;
	t->cpu_ns += record->period;
	t->owed_cpu_count++;
	t->owed_cpu_ns += record->period;
	if (!wp_reg_known(&record->regs, WP_REG_PC))
		return wp_record_cpu(s, t, wp_record_no_stack(s));
	wp_cpu_walk(s, record);
	if (waits_for_stop(s, record))
		return 0;
	if (record->kernel_len)
		add_kernel(s, record);
	return wp_record_cpu(s, t, wp_record_stack(s));
}

/* Record the CPU samples that there are. */
static int record_samples(struct wp_sampler *s)
{
	struct wp_perf_record record;
	int rc = 0;

	while (!rc && wp_perf_next(s->perf, UINT64_MAX, &record)) {
		struct wp_thread *t;

		if (record.type != WP_PERF_SAMPLE_CPU)
			continue;
		t = wp_threads_get(s, record.tid);
		if (!t)
			rc = -ENOMEM;
		else if (t->watched)
			rc = record_sample(s, t, &record);
	}
	return rc;
}

static void replace(struct wp_sampler *s, struct wp_perf *by)
{
	wp_perf_disable(s->perf, WP_PERF_PART_ALL);
	s->perf_lost_before += wp_perf_stats(s->perf)->lost;
	wp_perf_close(s->perf);
	s->perf = by;
}

/* A stack was cut: copy more of each from now on. */
static void grow(struct wp_sampler *s)
{
	uint32_t bytes = wp_cpu_more_stack(s->perf_stack_bytes);
	struct wp_perf *wider;

	s->perf_wants_more = false;
	if (bytes == s->perf_stack_bytes || open_events(s, &wider, bytes, NULL))
		return;
	s->perf_stack_bytes = bytes;
	replace(s, wider);
}

/* The time of each thread is divided over its running samples from now on, and
 * so is that of before. */
static void do_without(struct wp_sampler *s)
{
	struct wp_sample_set *set = &s->profile->sets[WP_PROFILE_WALL];

	for (uint32_t i = 0; i < set->nsamples; i++)
		set->samples[i].cpu_count = set->samples[i].cpu_ns = 0;
	replace(s, NULL);
	s->wants_running = s->looks_at_all = true;
	say_how(s, "its switches are too many for perf events of each thread, "
		   "and those of each CPU want CAP_PERFMON");
}

/* Switches a second since this was last asked. */
static uint64_t switch_rate(struct wp_sampler *s)
{
	uint64_t n = s->switches, ns = s->tick_ns - s->switches_ns;

	s->switches = 0;
	s->switches_ns = s->tick_ns;
	return ns ? (uint64_t)((double)n / (double)ns * WP_NS_PER_S) : 0;
}

/* A target that switches very often is better off with events of CPUs. */
static void relieve(struct wp_sampler *s)
{
	struct wp_perf *cheap;
	uint64_t rate;

	if (wp_perf_facts(s->perf)->main_scope == WP_PERF_CPU ||
	    s->tick % SWITCHES_TICKS)
		return;
	rate = switch_rate(s);
	if (rate < SWITCHES_MAX || s->perf_scope == WP_PERF_CPU)
		return;
	s->perf_scope = WP_PERF_CPU;
	if (!open_events(s, &cheap, s->perf_stack_bytes, NULL)) {
		replace(s, cheap);
		say_how(s, "");
		return;
	}
	s->perf_scope = WP_PERF_AUTO;
	if (rate > SWITCHES_BEAR)
		do_without(s);
}

int wp_cpu_drain(struct wp_sampler *s)
{
	int rc;

	if (!s->perf)
		return 0;
	rc = record_samples(s);
	s->profile->counters.cpu_lost = s->perf_lost_before +
					wp_perf_stats(s->perf)->lost;
	if (s->perf_wants_more && !rc) {
		wp_perf_disable(s->perf, WP_PERF_PART_ALL);
		rc = record_samples(s);
		grow(s);
		wp_perf_enable(s->perf, WP_PERF_PART_ALL);
	}
	if (!rc)
		relieve(s);
	return rc;
}

int wp_cpu_finish(struct wp_sampler *s)
{
	if (s->perf)
		wp_perf_disable(s->perf, WP_PERF_PART_ALL);
	return wp_cpu_drain(s);
}

void wp_cpu_account(struct wp_sampler *s, struct wp_thread *t,
		    const struct wp_schedstat *now)
{
	uint64_t ns;

	/* What a thread has used before the recording is no part of it. */
	if (!t->run_known) {
		t->first_run_ns += s->tick > 1 ? 0 : now->run_ns;
		t->slices = s->tick > 1 ? 0 : now->slices;
	}
	t->run_known = true;
	s->switches += now->slices - t->slices;
	t->slices = now->slices;
	ns = now->run_ns > t->first_run_ns ? now->run_ns - t->first_run_ns : 0;
	/* Samples may have told more. */
	s->profile->threads[t->index].cpu_ns += ns - t->cpu_ns;
	t->cpu_ns = ns;
}

void wp_cpu_close(struct wp_sampler *s)
{
	wp_perf_close(s->perf);
	s->perf = NULL;
	wp_kallsyms_clear(&s->kallsyms);
}
