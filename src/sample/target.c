/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - one process that is sampled: the order of one tick's steps. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler_priv.h"
#include "wallprof/clock.h"

/* A stop that has not come by then is given up. */
#define EXPIRE_NS (200 * WP_NS_PER_MS)

/* Names of calls get small ids, so that a sample key holds one in 16 bits. */
static int add_syscall_names(struct wp_profile *profile)
{
	for (long nr = 0; nr < WP_SYSCALLS_MAX; nr++) {
		const struct wp_syscall_info *info = wp_syscall_find(nr);

		if (info && wp_intern_add_str(&profile->strings, info->name) ==
				    UINT32_MAX)
			return -ENOMEM;
	}
	return 0;
}

static int open_kinds(struct wp_target *target, struct wp_err *err)
{
	const struct wp_sampler_options *options = &target->loop->options;
	int rc = 0;

	if (options->cpu)
		wp_cpu_open(target, err);
	if (options->block)
		rc = wp_block_open(target);
	if (!rc && options->mutex)
		rc = wp_mutex_open(target);
	if (!rc && options->thread_starts)
		rc = wp_thread_starts_open(target);
	return rc;
}

static void describe_recording(struct wp_target *target)
{
	const struct wp_sampler_options *options = &target->loop->options;
	struct wp_profile_meta *meta = &target->profile->meta;

	meta->has_wall = options->wall;
	meta->has_cpu = options->cpu;
	meta->time_ns = wp_clock_utc_ns();
	meta->period_ns = (int64_t)options->interval_ns;
}

int wp_target_new(struct wp_target **ret, struct wp_sampler *loop,
		  struct wp_process *process, struct wp_profile *profile,
		  struct wp_err *err)
{
	struct wp_target *target = calloc(1, sizeof(*target));
	int rc = target ? add_syscall_names(profile) : -ENOMEM;

	if (rc)
		goto out;
	target->loop = loop;
	target->process = process;
	target->profile = profile;
	wp_fdinfo_init(&target->fdinfo, process->proc_fd);
	target->start_ns = target->last_tick_ns = wp_clock_ns();
	wp_pauses_init(&target->pauses, target->start_ns,
		       loop->options.max_stopped);
	rc = wp_address_space_open(&target->space, process, profile,
				   &loop->generations);
	if (!rc)
		rc = open_kinds(target, err);
	if (rc)
		goto out;
	target->wants_running = loop->options.wall ||
				(loop->options.cpu && !target->cpu_events.perf);
	target->looks_at_all = target->wants_running || loop->options.block ||
			       loop->options.mutex;
	describe_recording(target);
	*ret = target;
	return 0;
out:
	wp_target_free(target);
	if (rc == -ESRCH)
		return wp_err_set(err, rc, "process %d has gone", process->pid);
	return wp_err_set(err, rc, "cannot sample process %d: %s", process->pid,
			  strerror(-rc));
}

void wp_target_free(struct wp_target *target)
{
	if (!target)
		return;
	wp_cpu_close(target);
	wp_block_close(target);
	wp_mutex_close(target);
	wp_thread_starts_close(target);
	wp_threads_clear(target);
	wp_fdinfo_clear(&target->fdinfo);
	wp_address_space_close(&target->space);
	free(target);
}

/* Threads that are not watched are read for their names only. */
static int look_at(struct wp_target *target, struct wp_thread *t)
{
	if (t->watched)
		return wp_look(target, t);
	wp_threads_name(target, t, wp_bpf_scan_find(target->loop, t->tid));
	return 0;
}

static int look_at_all(struct wp_target *target, bool later)
{
	for (size_t i = 0; i < target->nthreads;) {
		struct wp_thread *t = target->threads[i];
		int rc = !later || t->later ? look_at(target, t) : 0;

		if (rc == -ENOMEM)
			return rc;
		if (rc == -ESRCH || rc == -ENOENT) {
			wp_threads_drop(target, i);
			continue;
		}
		/* Its time stays owed to the next look that can be had. */
		target->profile->counters.samples_lost += rc != 0;
		i++;
	}
	return 0;
}

/* A scan of all threads takes 0.1 us per thread, to read one thread 12 us. */
enum { SCAN_PAYS = 100 };

static void scan_again(struct wp_target *target)
{
	size_t nlater = 0;

	for (size_t i = 0; i < target->nthreads; i++)
		nlater += target->threads[i]->later;
	if (nlater > target->nthreads / SCAN_PAYS)
		wp_bpf_scan_take(target->loop);
	else
		wp_bpf_scan_forget(target->loop);
}

/* --stop=all: those that run are brought to a halt first. */
static int look_at_instant(struct wp_target *target)
{
	int rc;

	target->loop->wait_for_runners = true;
	rc = look_at_all(target, false);
	target->loop->wait_for_runners = false;
	if (!rc)
		rc = wp_stop_ask(target);
	if (rc)
		return rc;
	scan_again(target);
	return look_at_all(target, true);
}

/* The keys of those that were found waiting are made with their samples. */
static int mutex_tick(struct wp_target *target)
{
	int rc = target->mutex ? wp_record_deferred(target) : 0;

	return rc ? rc : wp_mutex_tick(target);
}

int wp_target_begin_tick(struct wp_target *target)
{
	int rc;

	target->tick++;
	target->profile->counters.ticks++;
	rc = wp_stop_expire(target, EXPIRE_NS);
	/* Before threads can go that it is about. */
	if (!rc)
		rc = wp_record_deferred(target);
	/* A zombie that nobody reaps keeps its directory in /proc. */
	if (!rc && !wp_process_is_alive(target->process))
		rc = -ESRCH;
	if (!rc)
		rc = wp_threads_update(target);
	if (!rc)
		rc = wp_cpu_drain(target);
	if (!rc)
		rc = wp_thread_starts_tick(target);
	if (!rc)
		rc = wp_block_tick(target);
	if (rc == -ESRCH)
		target->last_tick_ns = target->loop->tick_ns;
	return rc;
}

int wp_target_sample(struct wp_target *target)
{
	int rc;

	target->profile->counters.scans += target->loop->scan.v != NULL;
	rc = target->loop->options.stop == WP_STOP_ALL ?
		     look_at_instant(target) :
		     look_at_all(target, false);
	if (!rc)
		rc = mutex_tick(target);
	if (!rc)
		rc = wp_stop_askers(target);
	if (!rc)
		rc = wp_record_deferred(target);
	target->last_tick_ns = target->loop->tick_ns;
	return rc;
}

int wp_target_take_stop(struct wp_tracee *tracee)
{
	struct wp_thread *t = (struct wp_thread *)(uintptr_t)tracee->cookie;
	struct wp_target *target = t->target;
	int rc = wp_stop_arrived(target, tracee);

	return rc ? rc : wp_record_deferred(target);
}

int wp_target_drain(struct wp_target *target)
{
	return wp_thread_starts_drain(target);
}

int wp_target_end_perf(struct wp_target *target)
{
	return wp_thread_starts_finish(target);
}

int wp_target_settle_stops(struct wp_target *target)
{
	int rc = wp_stop_expire(target, 0);

	return rc ? rc : wp_record_deferred(target);
}

/* A thread that waited for a CPU, and so for its stop, was not looked at in the
 * last ticks. */
static void owe_rest(const struct wp_target *target, struct wp_thread *t)
{
	if (!t->watched || t->asleep || t->last_ns >= target->last_tick_ns)
		return;
	t->owed_runnable_ns += target->last_tick_ns - t->last_ns;
	t->last_ns = target->last_tick_ns;
}

int wp_target_finish(struct wp_target *target)
{
	int rc = wp_cpu_finish(target);

	if (!rc)
		rc = wp_block_finish(target);
	if (!rc)
		rc = wp_mutex_finish(target);
	for (size_t i = 0; i < target->nthreads && !rc; i++) {
		owe_rest(target, target->threads[i]);
		rc = wp_record_owed(target, target->threads[i]);
	}
	if (target->loop->options.cpu)
		wp_profile_finish_cpu(target->profile);
	return rc;
}

void wp_target_fill_counters(struct wp_target *target)
{
	const struct wp_err *no_scan = &target->loop->scan.why;
	struct wp_profile_meta *meta = &target->profile->meta;
	struct wp_counters *c = &target->profile->counters;
	double seconds;
	uint32_t id;

	c->pause_p50_ns = wp_pauses_quantile(&target->pauses, 0.5);
	c->pause_p99_ns = wp_pauses_quantile(&target->pauses, 0.99);
	c->pause_max_ns = target->pauses.max_ns;
	c->pause_total_ns = target->pauses.total_ns;
	meta->duration_ns = (int64_t)(target->last_tick_ns - target->start_ns);
	seconds = (double)meta->duration_ns / (double)WP_NS_PER_S;
	/* The first tick is at the start: N ticks are N - 1 intervals. */
	meta->achieved_hz = c->ticks > 2 && seconds > 0 ?
				    (double)(c->ticks - 1) / seconds :
				    0;
	if (!no_scan->code)
		return;
	id = wp_intern_add_str(&target->profile->strings, no_scan->msg);
	if (id != UINT32_MAX)
		meta->no_scan = id;
}
