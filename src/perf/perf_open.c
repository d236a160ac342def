/* SPDX-License-Identifier: Apache-2.0 */
/* perf_open.c - see wallprof/perf.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "perf_priv.h"
#include "wallprof/clock.h"
#include "wallprof/lower_bound.h"
#include "wallprof/procfs.h"
#include "wallprof/vec.h"

/* Most times that the list of threads is read while threads start. */
enum { ROUNDS_MAX = 16 };

static bool options_make_sense(const struct wp_perf_options *o)
{
	return o->stack_bytes % 8 == 0 && o->stack_bytes <= WP_PERF_STACK_MAX &&
	       o->ring_bytes <= SIZE_MAX / 4 &&
	       (o->period_ns || o->switches || o->switch_sample_every ||
		o->tasks || o->thread_starts || o->bpf_output) &&
	       (o->period_ns > 0) + o->thread_starts + o->bpf_output <= 1;
}

static uint64_t sample_type_of(const struct wp_perf_options *o)
{
	uint64_t type = WP_PERF_SAMPLE_BASE;

	if (o->kernel_chain)
		type |= PERF_SAMPLE_CALLCHAIN;
	if (o->user_regs)
		type |= PERF_SAMPLE_REGS_USER;
	if (o->stack_bytes)
		type |= PERF_SAMPLE_STACK_USER;
	if (o->bpf_output)
		type |= PERF_SAMPLE_RAW;
	return type;
}

size_t wp_perf_thread_index(const struct wp_perf *perf, pid_t tid)
{
	return WP_LOWER_BOUND(perf->nthreads, i, perf->threads[i] < tid);
}

bool wp_perf_has_thread(const struct wp_perf *perf, pid_t tid)
{
	size_t i = wp_perf_thread_index(perf, tid);

	return i < perf->nthreads && perf->threads[i] == tid;
}

static bool is_wanted_in(const struct wp_perf *perf, enum wp_perf_kind kind,
			 enum wp_perf_scope scope)
{
	return wp_perf_kind_wanted(perf, kind) &&
	       wp_perf_kind_scope(perf, kind) == scope;
}

static bool has_task_scope(const struct wp_perf *perf)
{
	return is_wanted_in(perf, WP_PERF_KIND_MAIN, WP_PERF_TASK) ||
	       is_wanted_in(perf, WP_PERF_KIND_SWITCHES, WP_PERF_TASK);
}

/* Open events of every kind that is wanted on thread TID (-1: on no thread), for
 * every CPU; all of them or none. */
static int add_events(struct wp_perf *perf, pid_t tid)
{
	size_t before = perf->nevents;

	for (int kind = 0; kind < WP_PERF_NKINDS; kind++) {
		if (!is_wanted_in(perf, (enum wp_perf_kind)kind,
				  tid < 0 ? WP_PERF_CPU : WP_PERF_TASK))
			continue;
		for (size_t i = 0; i < perf->ncpus; i++) {
			int rc = wp_perf_event_add(perf,
						   (enum wp_perf_kind)kind, tid,
						   &perf->cpus[i]);

			if (rc) {
				wp_perf_events_cut(perf, before);
				return rc;
			}
		}
	}
	return 0;
}

static void for_each_event(struct wp_perf *perf, unsigned long request)
{
	for (size_t i = 0; i < perf->nevents; i++)
		ioctl(perf->events[i].fd, request, 0);
}

static int add_thread(struct wp_perf *perf, pid_t tid)
{
	size_t i = wp_perf_thread_index(perf, tid);
	int rc;

	if (WP_VEC_ROOM(perf->threads, perf->nthreads, perf->cap_threads, 1))
		return -ENOMEM;
	rc = add_events(perf, tid);
	if (rc)
		return rc;
	memmove(&perf->threads[i + 1], &perf->threads[i],
		(perf->nthreads - i) * sizeof(*perf->threads));
	perf->threads[i] = tid;
	perf->nthreads++;
	return 0;
}

/* Open events on those of TIDS that have none.  Their number, or -errno. */
static int add_listed(struct wp_perf *perf, const struct wp_tids *tids)
{
	int n = 0;

	for (size_t i = 0; i < tids->len; i++) {
		int rc;

		if (wp_perf_has_thread(perf, tids->v[i]))
			continue;
		rc = add_thread(perf, tids->v[i]);
		/* It has ended, or is about to, and starts no thread any
		 * more. */
		if (rc == -ESRCH)
			continue;
		if (rc)
			return rc;
		n++;
	}
	return n;
}

/* A thread inherits events from the thread that starts it.  So the list of threads
 * is read until it has no thread without events: from then on every thread has
 * events to pass on. */
static int add_threads(struct wp_perf *perf)
{
	struct wp_tids tids = WP_TIDS_INIT;
	int n = 1;

	for (int i = 0; n > 0 && i < ROUNDS_MAX; i++) {
		n = wp_process_list_threads(perf->process, &tids);
		if (!n)
			n = add_listed(perf, &tids);
	}
	wp_tids_clear(&tids);
	if (n < 0)
		return n;
	return perf->nthreads ? 0 : -ESRCH;
}

/* Try one event of each kind on wallprof itself, or on a CPU: the process may
 * forbid more, but its first thread may have ended. */
static int probe(struct wp_perf *perf)
{
	for (int kind = 0; kind < WP_PERF_NKINDS; kind++) {
		enum wp_perf_kind k = (enum wp_perf_kind)kind;
		bool cpu = wp_perf_kind_scope(perf, k) == WP_PERF_CPU;
		int fd;

		if (!wp_perf_kind_wanted(perf, k))
			continue;
		fd = wp_perf_event_open(perf, k, wp_perf_kind_period(perf, k),
					cpu ? -1 : 0, perf->cpus[0].cpu);
		if (fd < 0)
			return fd;
		close(fd);
	}
	return 0;
}

static bool is_denied(int rc)
{
	return rc == -EACCES || rc == -EPERM;
}

static int probe_scopes(struct wp_perf *perf, enum wp_perf_scope main_scope,
			enum wp_perf_scope switch_scope)
{
	int rc;

	perf->facts.main_scope = main_scope;
	perf->facts.switch_scope = switch_scope;
	rc = probe(perf);
	if (rc == -EINVAL && perf->facts.counts_lost) {
		perf->facts.counts_lost = false;
		rc = probe(perf);
	}
	if (rc == -EINVAL && perf->inherit_thread) {
		perf->inherit_thread = false;
		rc = probe(perf);
	}
	return rc;
}

static int probe_tasks(struct wp_perf *perf)
{
	int rc = probe_scopes(perf, WP_PERF_TASK, WP_PERF_TASK);

	if (is_denied(rc)) {
		perf->facts.user_only = true;
		/* A thread starts in the kernel. */
		if (perf->newtask_id)
			perf->facts.thread_start_rc = rc;
		perf->newtask_id = 0;
		rc = probe(perf);
	}
	return rc;
}

/* Choose the best scopes that are permitted. */
static int choose_scopes(struct wp_perf *perf)
{
	enum wp_perf_scope scope = perf->options.scope;
	bool mixed = scope == WP_PERF_AUTO && perf->options.period_ns;
	int rc = -EACCES;

	perf->facts.counts_lost = perf->inherit_thread = true;
	if (scope != WP_PERF_TASK)
		rc = probe_scopes(perf, mixed ? WP_PERF_TASK : WP_PERF_CPU,
				  WP_PERF_CPU);
	if (scope == WP_PERF_TASK || (scope == WP_PERF_AUTO && is_denied(rc)))
		rc = probe_tasks(perf);
	perf->facts.switch_samples = wp_perf_kind_period(
					     perf, WP_PERF_KIND_SWITCHES) > 0;
	return rc;
}

/* The number of tracepoint NAME if it is WANTED, else 0; *RET_RC: 0, or why it is not
 * to be had. */
static int find_tracepoint(const char *name, bool wanted, int *ret_rc)
{
	int id = wanted ? wp_perf_tracepoint_id(name) : 0;

	*ret_rc = id < 0 ? id : 0;
	return id > 0 ? id : 0;
}

/* The same with tracepoints that are wanted, or without where they are not to be
 * had. */
static int choose_with_tracepoints(struct wp_perf *perf)
{
	struct wp_perf_facts *facts = &perf->facts;
	int rc;

	perf->newtask_id = find_tracepoint("task/task_newtask",
					   perf->options.thread_starts,
					   &facts->thread_start_rc);
	perf->waking_id = find_tracepoint("sched/sched_waking",
					  perf->options.wakes, &facts->wake_rc);
	/* Tracepoints tell the numbers that processes have in the first
	 * PID namespace. */
	if (perf->waking_id && wp_proc_is_in_first_pid_namespace() == 0) {
		perf->waking_id = 0;
		facts->wake_rc = -EREMOTE;
	}
	rc = choose_scopes(perf);
	if (!rc || (!perf->newtask_id && !perf->waking_id))
		return rc;
	if (perf->newtask_id)
		facts->thread_start_rc = rc;
	if (perf->waking_id)
		facts->wake_rc = rc;
	perf->newtask_id = perf->waking_id = 0;
	facts->user_only = false;
	return choose_scopes(perf);
}

static int add_all(struct wp_perf *perf)
{
	int rc = add_events(perf, -1);

	return rc || !has_task_scope(perf) ? rc : add_threads(perf);
}

static int open_all(struct wp_perf *perf)
{
	int rc;

	rc = wp_perf_rings_open(perf);
	if (rc)
		return rc;
	perf->heap = calloc(perf->ncpus, sizeof(*perf->heap));
	perf->bounce = malloc(WP_PERF_RECORD_MAX);
	if (!perf->heap || !perf->bounce)
		return -ENOMEM;
	rc = choose_with_tracepoints(perf);
	perf->permitted = !rc;
	if (!rc)
		rc = add_all(perf);
	/* Events are opened by tid: if PROCESS is alive here, they are on its
	 * threads. */
	perf->there_ns = wp_clock_ns();
	return !perf->process || wp_process_is_alive(perf->process) ? rc :
								      -ESRCH;
}

int wp_perf_open(struct wp_perf **ret, const struct wp_process *process,
		 const struct wp_perf_options *options, struct wp_err *err)
{
	struct wp_perf *perf;
	int rc;

	if (!options_make_sense(options) ||
	    (!process && options->scope != WP_PERF_CPU))
		return wp_err_set(err, -EINVAL,
				  "perf events: %u bytes of stack, or nothing "
				  "to record",
				  options->stack_bytes);
	perf = calloc(1, sizeof(*perf));
	if (!perf)
		return wp_err_set(err, -ENOMEM, "out of memory");
	perf->process = process;
	perf->options = *options;
	perf->random.state = options->seed;
	perf->sample_type = sample_type_of(options);
	rc = open_all(perf);
	if (rc) {
		rc = wp_perf_explain(perf, rc, err);
		wp_perf_close(perf);
		return rc;
	}
	*ret = perf;
	return 0;
}

void wp_perf_enable(struct wp_perf *perf)
{
	perf->is_enabled = true;
	for_each_event(perf, PERF_EVENT_IOC_ENABLE);
}

void wp_perf_disable(struct wp_perf *perf)
{
	perf->is_enabled = false;
	for_each_event(perf, PERF_EVENT_IOC_DISABLE);
	wp_perf_events_count_lost(perf);
}

static void set_periods(struct wp_perf *perf, enum wp_perf_kind kind,
			uint64_t period)
{
	for (size_t i = 0; i < perf->nevents; i++)
		if (perf->events[i].kind == kind)
			ioctl(perf->events[i].fd, PERF_EVENT_IOC_PERIOD,
			      &period);
}

void wp_perf_set_switch_samples(struct wp_perf *perf, uint64_t every)
{
	if (!perf->facts.switch_samples || !every)
		return;
	perf->options.switch_sample_every = every;
	set_periods(perf, WP_PERF_KIND_SWITCHES, every);
}

void wp_perf_set_wake_samples(struct wp_perf *perf, uint64_t every)
{
	if (!perf->options.wake_sample_every || !every)
		return;
	perf->options.wake_sample_every = every;
	set_periods(perf, WP_PERF_KIND_WAKE_STACKS, every);
}

int wp_perf_each_output(const struct wp_perf *perf,
			int (*each)(void *ctx, int cpu, int fd), void *ctx)
{
	int rc = 0;

	/* One of each CPU, in their order. */
	for (size_t i = 0; i < perf->nevents && !rc; i++)
		if (perf->events[i].kind == WP_PERF_KIND_MAIN)
			rc = each(ctx, perf->cpus[i].cpu, perf->events[i].fd);
	return rc;
}

const struct wp_perf_facts *wp_perf_facts(const struct wp_perf *perf)
{
	return &perf->facts;
}

const struct wp_perf_stats *wp_perf_stats(const struct wp_perf *perf)
{
	return &perf->stats;
}

void wp_perf_close(struct wp_perf *perf)
{
	if (!perf)
		return;
	wp_perf_events_cut(perf, 0);
	wp_perf_rings_close(perf);
	free(perf->events);
	free(perf->cpus);
	free(perf->threads);
	free(perf->heap);
	free(perf->bounce);
	free(perf);
}
