/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.c - the loop over targets: see wallprof/sampler.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "block_waits.h"
#include "heap_samples.h"
#include "host_events.h"
#include "sampler_loop.h"
#include "stop_window.h"
#include "target.h"
#include "thread.h"
#include "thread_starts.h"
#include "wallprof/clock.h"
#include "wallprof/enum_name.h"
#include "wallprof/vec.h"

/* Late stops are waited for as long as this at the end of a recording. */
#define LAST_STOPS_NS (30 * WP_NS_PER_MS)
/* In a single sample, which has no next one, as long as this those of threads that
 * have had a CPU, and this those of threads that wait for one. */
#define ONLY_STOP_NS WP_NS_PER_S
#define ONLY_STOPS_NS (5 * WP_NS_PER_S)

/* However little CPU time may be used, ticks come about so often. */
#define LONGEST_NS WP_NS_PER_S

/* Perf rings are emptied as often as this, however rare ticks are. */
#define DRAIN_NS (20 * WP_NS_PER_MS)
/* The same while a target is being loaded. */
#define HURRY_NS WP_NS_PER_MS

const char *wp_stop_mode_name(enum wp_stop_mode mode)
{
	return WP_ENUM_NAME(WP_STOP_MODES, mode);
}

/* A kernel without CONFIG_SCHED_INFO shows zeros. */
static bool schedstat_works(void)
{
	struct wp_schedstat own;
	char text[96];
	ssize_t n = wp_io_read_at(-1, "/proc/self/schedstat", text,
				  sizeof(text));

	return n > 0 && !wp_schedstat_parse(&own, text, (size_t)n) &&
	       own.slices;
}

static int open_rooms(struct wp_sampler *loop)
{
	size_t room = (size_t)loop->options.max_depth + WP_KERNEL_FRAMES_MAX;
	int rc = wp_unwinder_new(&loop->unwinder, loop->options.backend);

	if (!rc)
		rc = wp_stack_copy_init(&loop->copy);
	if (!rc)
		rc = wp_copies_ahead_init(&loop->ahead);
	if (rc)
		return rc;
	loop->frame_room = calloc(room, sizeof(*loop->frame_room));
	loop->cfa_room = calloc(room, sizeof(*loop->cfa_room));
	return loop->frame_room && loop->cfa_room ? 0 : -ENOMEM;
}

int wp_sampler_new(struct wp_sampler **ret,
		   const struct wp_sampler_options *options,
		   struct wp_tracer *tracer, struct wp_err *err)
{
	struct wp_sampler *loop = calloc(1, sizeof(*loop));
	struct rlimit limit;
	int rc = -ENOMEM;

	if (!loop)
		goto out;
	loop->options = *options;
	loop->tracer = tracer;
	tracer->on_late = wp_stop_window_note_late;
	tracer->late_ctx = loop;
	loop->schedstat_works = schedstat_works();
	wp_own_cpu_open(&loop->own_cpu);
	loop->fd_limit = getrlimit(RLIMIT_NOFILE, &limit) ? 1024 :
							    limit.rlim_cur;
	loop->images.fd_limit = loop->fd_limit;
	rc = open_rooms(loop);
	if (rc)
		goto out;
	loop->start_ns = loop->tick_ns = wp_clock_ns();
	loop->random.state = wp_random_mix(loop->start_ns);
	wp_host_events_open(loop, err);
	*ret = loop;
	return 0;
out:
	wp_sampler_free(loop);
	return wp_err_set(err, rc, "no memory for sampling");
}

static int add_target(struct wp_sampler *loop, struct wp_process *process,
		      struct wp_profile *profile, bool held,
		      struct wp_target **ret, struct wp_err *err)
{
	int rc = WP_VEC_ROOM(loop->targets, loop->ntargets, loop->cap_targets,
			     1);

	if (!rc)
		rc = wp_target_new(ret, loop, process, profile, held);
	if (rc)
		return wp_err_set(err, rc, "no memory for sampling");
	loop->targets[loop->ntargets++] = *ret;
	return 0;
}

void wp_sampler_prepare(struct wp_sampler *loop, size_t nthreads)
{
	wp_bpf_scan_prepare(loop, nthreads);
}

int wp_sampler_begin(struct wp_target *target, struct wp_err *err)
{
	int rc = wp_target_begin(target, err);

	/* The first tick is due when there is something to sample. */
	if (!target->loop->opened)
		target->loop->start_ns = wp_clock_ns();
	return rc;
}

int wp_sampler_add_target(struct wp_sampler *loop, struct wp_process *process,
			  struct wp_profile *profile, struct wp_target **ret,
			  struct wp_err *err)
{
	struct wp_target *target;
	int rc = add_target(loop, process, profile, false, &target, err);

	if (rc)
		return rc;
	rc = wp_sampler_begin(target, err);
	if (rc)
		wp_target_free(loop->targets[--loop->ntargets]);
	else
		*ret = target;
	return rc;
}

int wp_sampler_add_born_target(struct wp_sampler *loop,
			       struct wp_process *process,
			       struct wp_profile *profile, uint64_t since_ns,
			       struct wp_err *err)
{
	struct wp_target *target;
	int rc = wp_sampler_add_target(loop, process, profile, &target, err);

	if (!rc)
		wp_target_begin_born(target, since_ns);
	return rc;
}

int wp_sampler_add_held_target(struct wp_sampler *loop,
			       struct wp_process *process,
			       struct wp_profile *profile,
			       struct wp_target **ret, struct wp_err *err)
{
	return add_target(loop, process, profile, true, ret, err);
}

/* Count the ticks whose whole interval is over: they cannot be made good. */
static void count_missed(struct wp_sampler *loop, uint64_t now_ns)
{
	uint64_t passed = (now_ns - loop->start_ns) / loop->options.interval_ns;

	if (passed <= loop->next_index)
		return;
	for (size_t i = 0; i < loop->ncommons; i++)
		loop->commons[i]->profile->counters.missed_ticks +=
			passed - loop->next_index;
	loop->next_index = passed;
}

/* Does the tick that is due come late if it comes at NOW_NS? */
static bool is_late(const struct wp_sampler *loop, uint64_t now_ns)
{
	return now_ns > loop->due_ns + WP_OWN_CPU_IN_TIME_NS;
}

uint64_t wp_sampler_next_tick(struct wp_sampler *loop, uint64_t now_ns)
{
	uint64_t interval = loop->options.interval_ns;
	uint64_t begin_ns, stride;

	if (!loop->opened) {
		loop->opened = true;
		return loop->start_ns;
	}
	count_missed(loop, now_ns);
	stride = wp_pace_stride(&loop->pace, now_ns, wp_clock_cpu_ns(),
				loop->options.max_cpu,
				1 + LONGEST_NS / interval);
	for (size_t i = 0; i < loop->ncommons; i++)
		loop->commons[i]->profile->counters.spared_ticks += stride - 1;
	/* Any time in the interval is as likely, whatever the other ticks were:
	 * a target with a period of its own cannot hide between them. */
	begin_ns = loop->start_ns + loop->next_index * interval;
	loop->next_index += stride;
	loop->region_end_ns = begin_ns + stride * interval;
	loop->due_ns = begin_ns +
		       wp_random_next(&loop->random) % (stride * interval);
	loop->is_overdue = !loop->is_overdue && is_late(loop, now_ns);
	return loop->due_ns;
}

static int for_each_target(struct wp_sampler *loop,
			   int (*each)(struct wp_target *target))
{
	int rc = 0;

	for (size_t i = 0; i < loop->ntargets && !rc; i++)
		rc = each(loop->targets[i]);
	return rc;
}

int wp_sampler_sleep(struct wp_sampler *loop, uint64_t until_ns)
{
	uint64_t drain_ns = wp_clock_ns() + DRAIN_NS;
	struct wp_tracee *tracee;
	int rc = 0;

	for (size_t i = 0; i < loop->ntargets; i++)
		if (wp_heap_samples_hurry(loop->targets[i]))
			drain_ns = wp_clock_ns() + HURRY_NS;
	if ((loop->options.thread_starts || loop->options.heap) &&
	    until_ns > drain_ns)
		until_ns = drain_ns;
	/* What has come while we had no CPU ourselves is in time. */
	while (!rc && (tracee = wp_tracer_sleep(loop->tracer, until_ns)))
		rc = wp_target_take_stop(tracee);
	for (size_t i = 0; i < loop->ncommons && !rc; i++)
		rc = wp_thread_starts_read(loop->commons[i], loop);
	return rc ? rc : for_each_target(loop, wp_heap_samples_tick);
}

/* One step of a tick for every target that has threads left.  0, -ESRCH when
 * none has, -ENOMEM. */
static int step_targets(struct wp_sampler *loop,
			int (*step)(struct wp_target *target))
{
	size_t nleft = 0;

	for (size_t i = 0; i < loop->ntargets; i++) {
		struct wp_target *target = loop->targets[i];
		int rc = target->gone ? 0 : step(target);

		target->gone |= rc == -ESRCH;
		if (rc && rc != -ESRCH)
			return rc;
		nleft += !target->gone;
	}
	return nleft ? 0 : -ESRCH;
}

/* The tick at hand is one of all recordings that have not ended. */
static void count_tick(struct wp_sampler *loop)
{
	loop->ntick++;
	for (size_t i = 0; i < loop->ntargets; i++) {
		struct wp_common *common = loop->targets[i]->common;

		if (loop->targets[i]->gone || common->tick == loop->ntick)
			continue;
		common->tick = loop->ntick;
		common->profile->counters.ticks++;
		common->last_tick_ns = loop->tick_ns;
	}
}

/* Take the perf records of all processes, after the waits that were found before. */
static int read_records(struct wp_sampler *loop)
{
	int rc = for_each_target(loop, wp_target_settle);

	if (!rc)
		rc = wp_host_events_read(loop);
	for (size_t i = 0; i < loop->ncommons && !rc; i++)
		rc = wp_block_waits_tick(loop->commons[i]);
	return rc;
}

static int sample_target(struct wp_target *target)
{
	int rc = wp_target_begin_tick(target);

	return rc ? rc : wp_target_sample(target);
}

/* Begin the tick of all targets, and sample them. */
static int sample_targets(struct wp_sampler *loop)
{
	int rc;

	/* One after the other: their threads stay in the CPU's cache. */
	if (loop->scan.v)
		return step_targets(loop, sample_target);
	rc = step_targets(loop, wp_target_begin_tick);
	if (rc)
		return rc;
	/* The first scan is as large as there are threads. */
	wp_bpf_scan_take(loop);
	return step_targets(loop, wp_target_sample);
}

int wp_sampler_tick(struct wp_sampler *loop)
{
	int rc;

	loop->tick_ns = wp_clock_ns();
	wp_own_cpu_tick(&loop->own_cpu,
			loop->due_ns && is_late(loop, loop->tick_ns));
	if (loop->region_end_ns < loop->tick_ns)
		loop->region_end_ns = loop->tick_ns;
	count_tick(loop);
	/* What it shows need not be read. */
	wp_bpf_scan_forget(loop);
	if (loop->scan.scan)
		wp_bpf_scan_take(loop);
	rc = read_records(loop);
	if (!rc)
		rc = sample_targets(loop);
	for (size_t i = 0; i < loop->ncommons && !rc; i++)
		loop->commons[i]->profile->counters.scans += loop->scan.v !=
							     NULL;
	wp_own_cpu_leave(&loop->own_cpu, loop->tick_ns);
	return rc ? rc : step_targets(loop, wp_target_end_tick);
}

static size_t count_late_stops(const struct wp_sampler *loop)
{
	size_t n = 0;

	for (size_t i = 0; i < loop->ntargets; i++)
		n += wp_stop_window_count(loop->targets[i]);
	return n;
}

static bool stops_may_come(const struct wp_sampler *loop, uint64_t max_age_ns)
{
	const volatile sig_atomic_t *interrupts = loop->options.interrupts;

	if (interrupts && *interrupts)
		return false;
	for (size_t i = 0; i < loop->ntargets; i++)
		if (wp_stop_window_may_come(loop->targets[i], max_age_ns))
			return true;
	return false;
}

/* Take the stops that are still to come for up to STOP_NS, those of threads that
 * wait for a CPU for up to CPU_NS; then hold nothing. */
static int end_stops(struct wp_sampler *loop, uint64_t stop_ns, uint64_t cpu_ns)
{
	uint64_t begin_ns = wp_clock_ns();
	bool over = false;
	int rc = 0;

	while (!rc && !over && count_late_stops(loop)) {
		uint64_t now = wp_clock_ns(), waited_ns = now - begin_ns;

		over = waited_ns >= LAST_STOPS_NS &&
		       (waited_ns >= cpu_ns || !stops_may_come(loop, stop_ns));
		rc = wp_sampler_sleep(loop, over ? now : now + WP_NS_PER_MS);
	}
	return rc ? rc : for_each_target(loop, wp_target_end_stops);
}

static void fill_counters(struct wp_sampler *loop)
{
	for (size_t i = 0; i < loop->ncommons; i++)
		wp_common_fill_counters(loop->commons[i], loop);
}

int wp_sampler_sample_once(struct wp_sampler *loop)
{
	int rc;

	loop->finishing = true;
	rc = wp_sampler_tick(loop);
	if (!rc)
		rc = end_stops(loop, ONLY_STOP_NS, ONLY_STOPS_NS);
	wp_tracer_clear(loop->tracer);
	fill_counters(loop);
	return rc;
}

int wp_sampler_finish(struct wp_sampler *loop)
{
	int rc;

	count_missed(loop, wp_clock_ns());
	loop->finishing = true;
	for (size_t i = 0; i < loop->ntargets; i++)
		loop->targets[i]->gone |= !wp_process_is_alive(
			loop->targets[i]->process);
	rc = wp_sampler_tick(loop);
	if (rc == -ESRCH)
		rc = 0;
	if (!rc)
		rc = end_stops(loop, LAST_STOPS_NS, 0);
	if (!rc)
		rc = wp_host_events_finish(loop);
	if (!rc)
		rc = for_each_target(loop, wp_target_finish);
	/* What each thread waited is known now. */
	for (size_t i = 0; i < loop->ncommons && !rc; i++)
		rc = wp_block_waits_finish(loop->commons[i]);
	for (size_t i = 0; i < loop->ncommons && !rc; i++)
		rc = wp_heap_sums_describe(loop->commons[i], loop);
	for (size_t i = 0; i < loop->ncommons; i++)
		wp_common_finish(loop->commons[i], loop);
	wp_tracer_clear(loop->tracer);
	/* Without memory samples are left that have no stack yet. */
	if (!rc)
		fill_counters(loop);
	return rc;
}

void wp_sampler_each_thread(const struct wp_target *target,
			    void (*each)(void *ctx,
					 const struct wp_thread_view *view),
			    void *ctx)
{
	for (size_t i = 0; i < target->nthreads; i++) {
		const struct wp_thread *t = target->threads[i];
		const struct wp_thread_facts *facts = &t->wait.facts;
		bool by_stop = t->stop.tick_ns == target->loop->tick_ns;
		struct wp_thread_view view = {
			.tid = t->tid,
			.index = t->index,
			.syscall_nr = facts->syscall_nr,
			.look = t->look,
			.times = t->time.base,
			.sleeps = UINT64_MAX,
			.schedstat_fd = t->files.fds[WP_THREAD_SCHEDSTAT],
			.syscall_fd = t->files.fds[WP_THREAD_SYSCALL],
			.memory = t->memory,
			.at_instant = t->at_instant,
			.waits_again = t->waits_again,
		};

		if (by_stop) {
			view.times = (struct wp_schedstat){
				.run_ns = UINT64_MAX,
				.slices = t->stop.slices,
			};
			view.sleeps = t->stop.sleeps;
		}
		memcpy(view.args, facts->args, sizeof(view.args));
		if (t->watched)
			each(ctx, &view);
	}
}

bool wp_sampler_sees_tasks(const struct wp_sampler *loop)
{
	return loop->host_events.perf != NULL;
}

uint64_t wp_sampler_lost_tasks(const struct wp_sampler *loop)
{
	return wp_perf_source_lost(&loop->host_events);
}

void wp_sampler_free(struct wp_sampler *loop)
{
	if (!loop)
		return;
	loop->tracer->on_late = NULL;
	for (size_t i = 0; i < loop->ntargets; i++)
		wp_target_free(loop->targets[i]);
	free(loop->targets);
	wp_own_cpu_close(&loop->own_cpu);
	wp_host_events_close(loop);
	wp_bpf_scan_close(loop);
	wp_kallsyms_clear(&loop->kallsyms);
	wp_unwinder_free(loop->unwinder);
	for (size_t i = 0; i < loop->ncommons; i++)
		wp_common_free(loop->commons[i]);
	free(loop->commons);
	wp_image_cache_clear(&loop->images);
	wp_stack_copy_clear(&loop->copy);
	wp_copies_ahead_clear(&loop->ahead);
	wp_stops_held_clear(&loop->held);
	free(loop->frame_room);
	free(loop->cfa_room);
	free(loop);
}

const struct wp_maps *wp_sampler_maps(const struct wp_target *target)
{
	return &target->space.maps;
}
