/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - one process that is sampled: the order of one tick's steps. */
#include "target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "block_waits.h"
#include "books.h"
#include "cpu_samples.h"
#include "goroutine_kept.h"
#include "heap_samples.h"
#include "instant.h"
#include "lock_holders.h"
#include "record.h"
#include "sampler_loop.h"
#include "stop_window.h"
#include "target_looks.h"
#include "thread_starts.h"
#include "threads.h"
#include "wallprof/cgroup.h"
#include "wallprof/clock.h"
#include "wallprof/profile_processes.h"

/* A stop that has not come by then is given up. */
#define EXPIRE_NS (200 * WP_NS_PER_MS)

static int open_kinds(struct wp_target *target, struct wp_err *err)
{
	const struct wp_sampler_options *options = &target->loop->options;
	int rc = 0;

	if (options->cpu)
		wp_cpu_samples_open(target, err);
	if (options->block || options->wake)
		rc = wp_block_waits_open(target);
	if (!rc && (options->mutex || options->note_holders))
		rc = wp_lock_holders_open(target);
	return rc;
}

/* Note in the profile's entry INDEX, the process's own, which group it is in. */
static void note_group(const struct wp_target *target, uint32_t index)
{
	struct wp_intern *strings = &target->profile->strings;
	struct wp_profile_process *p = &target->profile->processes[index];
	char text[WP_CGROUP_MAX];
	struct wp_cgroup c;

	if (!target->loop->options.many ||
	    wp_cgroup_read(target->process->proc_fd, 0, text) <= 0)
		return;
	wp_cgroup_parse(&c, text);
	p->cgroup = wp_intern_add_str(strings, c.path);
	p->container = wp_intern_add_str(strings, c.container);
	p->unit = wp_intern_add_str(strings, c.unit);
}

/* The profile's entry of the process; UINT32_MAX without memory. */
static uint32_t add_process(const struct wp_target *target)
{
	uint32_t most = target->loop->options.own_threads, index;
	char name[WP_COMM_MAX];

	wp_process_name(target->process, name, sizeof(name));
	index = wp_profile_share_process(target->profile, target->process->pid,
					 name, most);
	if (index != UINT32_MAX && !target->profile->processes[index].is_shared)
		note_group(target, index);
	return index;
}

int wp_target_new(struct wp_target **ret, struct wp_sampler *loop,
		  struct wp_process *process, struct wp_profile *profile,
		  bool held)
{
	struct wp_target *target = calloc(1, sizeof(*target));
	int rc = -ENOMEM;

	if (!target)
		return rc;
	target->loop = loop;
	target->cpu_events = &target->own_events;
	target->process = process;
	target->profile = profile;
	target->held = held;
	target->space = (struct wp_address_space)WP_ADDRESS_SPACE_INIT;
	wp_fdinfo_init(&target->fdinfo, process->proc_fd);
	target->common = wp_common_find_or_add(loop, profile);
	if (!target->common)
		goto out;
	target->index = add_process(target);
	if (target->index == UINT32_MAX)
		goto out;
	rc = 0;
	if (loop->options.thread_starts)
		rc = wp_thread_starts_open(target);
	if (rc)
		goto out;
	*ret = target;
	return 0;
out:
	wp_target_free(target);
	return rc;
}

int wp_target_begin(struct wp_target *target, struct wp_err *err)
{
	const struct wp_sampler_options *options = &target->loop->options;
	const struct wp_process *process = target->process;
	/* It may wait for a file server. */
	int rc = wp_address_space_open(&target->space, process,
				       &target->common->modules, target->index);

	target->start_ns = target->last_tick_ns = target->region_end_ns =
		wp_clock_ns();
	wp_pauses_init(&target->pauses, target->start_ns, options->max_stopped);
	wp_common_begin(target->common, target->loop, target->start_ns);
	/* Its events were opened before: to read its map may take long. */
	if (!target->held)
		wp_thread_starts_begin(target, target->start_ns);
	if (!rc)
		rc = open_kinds(target, err);
	if (rc == -ESRCH)
		return wp_err_set(err, rc, "process %d has gone", process->pid);
	if (rc)
		return wp_err_set(err, rc, "cannot sample process %d: %s",
				  process->pid, strerror(-rc));
	target->wants_running = options->wall ||
				(options->cpu && !target->cpu_events->perf);
	target->samples_threads = target->wants_running || options->block ||
				  options->wake || options->mutex;
	target->common->wants_running |= target->wants_running;
	wp_bpf_scan_add(target->loop, process->pid);
	return options->heap ? wp_heap_samples_open(target, err) : 0;
}

void wp_target_rename(struct wp_target *target, const char *name)
{
	struct wp_profile *profile = target->profile;
	uint32_t most = target->loop->options.own_threads;
	struct wp_profile_process *p = &profile->processes[target->index];
	uint32_t id;

	if (!strcmp(wp_profile_str(profile, p->name), name))
		return;
	if (!p->is_shared) {
		p->name = wp_common_rename(target->common, p->name, name);
		return;
	}
	id = wp_profile_share_process(profile, p->pid, name, most);
	if (id == UINT32_MAX)
		return;
	p = &profile->processes[target->index];
	if (p->nmore)
		p->nmore--;
	target->index = id;
}

void wp_target_begin_born(struct wp_target *target, uint64_t since_ns)
{
	target->start_ns = target->last_tick_ns = target->region_end_ns =
		since_ns;
	target->tick = 1;
	wp_thread_starts_begin(target, since_ns);
}

void wp_target_free(struct wp_target *target)
{
	if (!target)
		return;
	wp_goroutine_times_close(target);
	wp_cpu_samples_close(target);
	wp_lock_holders_close(target);
	wp_thread_starts_close(target);
	wp_heap_samples_close(target);
	wp_threads_clear(target);
	wp_fdinfo_clear(&target->fdinfo);
	wp_address_space_close(&target->space);
	free(target);
}

/* Describe and record the waits that are queued. */
static int record_queued(struct wp_target *target)
{
	struct wp_wait_queue *queue = &target->wait_queue;
	int rc = 0;

	for (size_t i = 0; i < queue->n && !rc; i++)
		rc = wp_record_wait(&queue->v[i]);
	queue->n = 0;
	return rc;
}

/* Pay the time of the threads that have ended, then free them: the last CPU samples of
 * their target's own events have been read. */
static int pay_ended(struct wp_target *target)
{
	int rc = record_queued(target);

	for (size_t i = 0; i < target->nended && !rc; i++)
		rc = wp_record_end(target->ended[i], true);
	wp_threads_free_ended(target);
	return rc;
}

int wp_target_settle(struct wp_target *target)
{
	int rc = wp_stop_window_expire(target, EXPIRE_NS);

	return rc ? rc : record_queued(target);
}

static int update_threads(struct wp_target *target)
{
	/* A zombie that nobody reaps keeps its directory in /proc. */
	return wp_process_is_alive(target->process) ?
		       wp_threads_update(target) :
		       -ESRCH;
}

int wp_target_begin_tick(struct wp_target *target)
{
	int rc;

	target->tick++;
	/* Before threads that it is about are freed. */
	rc = wp_target_settle(target);
	if (!rc && !wp_threads_are_as_scanned(target))
		rc = update_threads(target);
	if (!rc)
		rc = wp_thread_starts_tick(target);
	if (!rc)
		rc = wp_heap_samples_tick(target);
	wp_block_waits_filter(target->block_waits);
	if (rc == -ESRCH)
		target->last_tick_ns = target->loop->tick_ns;
	return rc;
}

/* Are threads of TARGET held, which need not be until all are of one moment? */
static bool is_held(const struct wp_target *target)
{
	const struct wp_sampler_options *options = &target->loop->options;

	return options->stop == WP_STOP_ALL && !options->call_memory;
}

int wp_target_sample(struct wp_target *target)
{
	int rc = wp_goroutine_kept_open(target);

	if (!rc)
		rc = wp_target_looks(target);
	/* The holders of locks are found by what the samples wait for; to describe that
	 * takes too long while others stand still. */
	if (!rc && target->lock_holders && is_held(target))
		rc = wp_stop_window_make(target);
	if (!rc && target->lock_holders)
		rc = record_queued(target);
	if (!rc)
		rc = wp_lock_holders_tick(target);
	/* --stop=all takes it while all are stopped. */
	if (!rc && target->loop->options.call_memory &&
	    target->loop->options.stop != WP_STOP_ALL)
		wp_instant_take(target);
	if (!rc)
		rc = wp_stop_window_make(target);
	if (!rc)
		rc = record_queued(target);
	if (!rc)
		rc = wp_goroutine_times_tick(target);
	target->last_tick_ns = target->loop->tick_ns;
	target->region_end_ns = target->loop->region_end_ns;
	target->over = (struct wp_tick_over){ target->tick,
					      target->last_tick_ns,
					      target->region_end_ns };
	return target->no_memory ? -ENOMEM : rc;
}

int wp_target_end_tick(struct wp_target *target)
{
	int rc = wp_target_settle(target);

	if (!rc)
		rc = wp_cpu_samples_read(target);
	return rc ? rc : pay_ended(target);
}

int wp_target_take_stop(struct wp_tracee *tracee)
{
	struct wp_thread *t = wp_stop_window_thread(tracee);
	int rc = wp_stop_window_take(t, tracee);

	return rc ? rc : record_queued(t->target);
}

int wp_target_end_stops(struct wp_target *target)
{
	int rc = wp_stop_window_expire(target, 0);

	return rc ? rc : record_queued(target);
}

/* Pay T's time up to the last tick. */
static int finish_thread(struct wp_thread *t)
{
	struct wp_schedstat now;

	wp_threads_settle(t);
	/* A thread that waits for a CPU, and so for its stop, was not looked at
	 * in the last ticks. */
	if (t->watched && t->target->samples_threads &&
	    t->time.accounted_ns < t->target->last_tick_ns) {
		if (wp_thread_files_schedstat(t, &now))
			now = t->time.base;
		if (t->time.ready)
			wp_books_look(t, &now, t->target->last_tick_ns, true);
		else
			wp_books_read(t, &now, t->target->last_tick_ns);
	}
	return wp_record_end(t, t->target->gone);
}

int wp_target_finish(struct wp_target *target)
{
	int rc = wp_thread_starts_finish(target);

	if (!rc)
		rc = wp_heap_samples_finish(target);
	if (!rc)
		rc = wp_cpu_samples_finish(target);
	if (!rc)
		rc = pay_ended(target);
	if (!rc)
		rc = wp_lock_holders_finish(target);
	for (size_t i = 0; i < target->nthreads && !rc; i++)
		rc = finish_thread(target->threads[i]);
	if (!rc)
		rc = wp_goroutine_times_finish(target);
	if (!target->forgotten)
		return rc;
	wp_block_waits_forget(target->common, target->index);
	wp_profile_forget_process(target->profile, target->index);
	return rc;
}
