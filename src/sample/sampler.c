/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.c - see wallprof/sampler.h and sampler_priv.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler_priv.h"
#include "wallprof/clock.h"
#include "wallprof/hash.h"

enum {
	/* Numbers below which system calls are; x86-64 has 470 of them. */
	SYSCALLS_MAX = 600,
};

/* A stop that has not come by then is given up. */
#define EXPIRE_NS (200 * WP_NS_PER_MS)
/* At the end of the recording sooner. */
#define LAST_STOPS_NS (30 * WP_NS_PER_MS)

/* Rings are emptied as often as this, however rare ticks are. */
#define DRAIN_NS (20 * WP_NS_PER_MS)

const char *wp_stop_mode_name(enum wp_stop_mode mode)
{
	static const char *const name[] = {
#define X(id, text) [WP_STOP_##id] = text,
		WP_STOP_MODES(X)
#undef X
	};

	return (unsigned int)mode < WP_NSTOP_MODES ? name[mode] : "unknown";
}

uint64_t wp_sampler_random(struct wp_sampler *s)
{
	/* A Weyl sequence through a mixer. */
	s->random += UINT64_C(0x9e3779b97f4a7c15);
	return wp_hash_u64(s->random);
}

/* Names of calls get small ids, so that a sample key holds one in 16 bits. */
static int add_syscall_names(struct wp_profile *profile)
{
	for (long nr = 0; nr < SYSCALLS_MAX; nr++) {
		const struct wp_syscall_info *info = wp_syscall_find(nr);

		if (info && wp_intern_add_str(&profile->strings, info->name) ==
				    UINT32_MAX)
			return -ENOMEM;
	}
	return 0;
}

static bool schedstat_works(void)
{
	struct wp_schedstat own;
	char text[96];
	ssize_t n = wp_io_read_at(-1, "/proc/self/schedstat", text,
				  sizeof(text));

	/* Zeros on a kernel without CONFIG_SCHED_INFO. */
	return n > 0 && !wp_schedstat_parse(&own, text, (size_t)n) &&
	       own.slices;
}

static int open_parts(struct wp_sampler *s)
{
	size_t room = (size_t)s->options.max_depth + WP_KERNEL_FRAMES_MAX;
	int rc = add_syscall_names(s->profile);

	if (!rc)
		rc = wp_unwinder_new(&s->unwinder, s->options.backend);
	if (!rc)
		rc = wp_stack_copy_init(&s->copy, s->process, &s->space.maps);
	if (rc)
		return rc;
	s->frame_room = calloc(room, sizeof(*s->frame_room));
	s->cfa_room = calloc(room, sizeof(*s->cfa_room));
	if (!s->frame_room || !s->cfa_room)
		return -ENOMEM;
	wp_fdinfo_init(&s->fdinfo, s->process->proc_fd);
	return wp_address_space_open(&s->space, s->process, s->profile);
}

int wp_sampler_new(struct wp_sampler **ret, struct wp_process *process,
		   struct wp_profile *profile, struct wp_tracer *tracer,
		   const struct wp_sampler_options *options, struct wp_err *err)
{
	struct wp_sampler *s = calloc(1, sizeof(*s));
	int rc = s ? 0 : -ENOMEM;
	struct rlimit limit;

	if (rc)
		goto out;
	s->options = *options;
	s->process = process;
	s->profile = profile;
	s->tracer = tracer;
	s->space = (struct wp_address_space)WP_ADDRESS_SPACE_INIT;
	s->schedstat_works = schedstat_works();
	s->fd_limit = getrlimit(RLIMIT_NOFILE, &limit) ? 1024 : limit.rlim_cur;
	rc = open_parts(s);
	if (rc)
		goto out;
	s->start_ns = s->tick_ns = s->last_tick_ns = wp_clock_ns();
	s->random = wp_hash_u64(s->start_ns);
	wp_pauses_init(&s->pauses, s->start_ns, options->max_stopped);
	if (options->cpu)
		wp_cpu_open(s, err);
	if (options->block)
		rc = wp_block_open(s);
	if (!rc && options->mutex)
		rc = wp_mutex_open(s);
	if (!rc && options->thread_starts)
		rc = wp_thread_starts_open(s);
	if (rc)
		goto out;
	s->wants_running = options->wall || (options->cpu && !s->perf);
	s->looks_at_all = s->wants_running || options->block || options->mutex;
	profile->meta.has_wall = options->wall;
	profile->meta.has_cpu = options->cpu;
	profile->meta.time_ns = wp_clock_utc_ns();
	profile->meta.period_ns = (int64_t)options->interval_ns;
	*ret = s;
	return 0;
out:
	wp_sampler_free(s);
	if (rc == -ESRCH)
		return wp_err_set(err, rc, "process %d has gone", process->pid);
	return wp_err_set(err, rc, "cannot sample process %d: %s", process->pid,
			  strerror(-rc));
}

uint64_t wp_sampler_next_tick(struct wp_sampler *s, uint64_t now_ns)
{
	uint64_t interval = s->options.interval_ns;
	uint64_t passed = (now_ns - s->start_ns) / interval;

	/* Those whose whole interval is over cannot be made good. */
	if (passed > s->next_index) {
		s->profile->counters.missed_ticks += passed - s->next_index;
		s->next_index = passed;
	}
	/* Jitter of up to half an interval: a target with a period of its own
	 * cannot hide between the ticks. */
	return s->start_ns + s->next_index++ * interval +
	       wp_sampler_random(s) % (interval / 2 + 1);
}

int wp_sampler_sleep(struct wp_sampler *s, uint64_t until_ns)
{
	uint64_t drain_ns = wp_clock_ns() + DRAIN_NS;
	struct wp_tracee *tracee;
	int rc = 0;

	if (s->thread_starts && until_ns > drain_ns)
		until_ns = drain_ns;
	while (!rc && wp_clock_ns() < until_ns) {
		tracee = wp_tracer_sleep(s->tracer, until_ns);
		if (!tracee)
			break;
		rc = wp_stop_arrived(s, tracee);
	}
	return rc ? rc : wp_thread_starts_drain(s);
}

/* One that is not watched is looked at for its name only. */
static int look_at(struct wp_sampler *s, struct wp_thread *t)
{
	if (t->watched)
		return wp_look(s, t);
	wp_threads_name(s, t, wp_bpf_scan_find(s, t->tid));
	return 0;
}

static int look_at_all(struct wp_sampler *s, bool later)
{
	for (size_t i = 0; i < s->nthreads;) {
		struct wp_thread *t = s->threads[i];
		int rc = !later || t->later ? look_at(s, t) : 0;

		if (rc == -ENOMEM)
			return rc;
		if (rc == -ESRCH || rc == -ENOENT) {
			wp_threads_drop(s, i);
			continue;
		}
		/* Its time stays owed to the next look that can be had. */
		s->profile->counters.samples_lost += rc != 0;
		i++;
	}
	return 0;
}

/* A scan of all threads is 0.1 us each, to read one 12 us. */
enum { SCAN_PAYS = 100 };

static void scan_again(struct wp_sampler *s)
{
	size_t nlater = 0;

	for (size_t i = 0; i < s->nthreads; i++)
		nlater += s->threads[i]->later;
	if (nlater > s->nthreads / SCAN_PAYS)
		wp_bpf_scan_take(s);
	else
		wp_bpf_scan_forget(s);
}

/* --stop=all: those that run are brought to a halt first. */
static int look_at_instant(struct wp_sampler *s)
{
	int rc;

	s->wait_for_runners = true;
	rc = look_at_all(s, false);
	s->wait_for_runners = false;
	if (!rc)
		rc = wp_stop_ask(s);
	if (rc)
		return rc;
	scan_again(s);
	return look_at_all(s, true);
}

/* The keys of those that were found waiting are made with their samples. */
static int mutex_tick(struct wp_sampler *s)
{
	int rc = s->mutex ? wp_record_deferred(s) : 0;

	return rc ? rc : wp_mutex_tick(s);
}

int wp_sampler_tick(struct wp_sampler *s)
{
	int rc;

	s->tick++;
	s->tick_ns = wp_clock_ns();
	s->profile->counters.ticks++;
	rc = wp_stop_expire(s, EXPIRE_NS);
	/* Before threads can go that it is about. */
	if (!rc)
		rc = wp_record_deferred(s);
	/* A zombie that nobody reaps keeps its directory in /proc. */
	if (!rc && !wp_process_is_alive(s->process))
		rc = -ESRCH;
	if (!rc)
		rc = wp_threads_update(s);
	if (!rc)
		rc = wp_cpu_drain(s);
	if (!rc)
		rc = wp_thread_starts_tick(s);
	if (!rc)
		rc = wp_block_tick(s);
	if (!rc) {
		wp_bpf_scan_take(s);
		s->profile->counters.scans += s->scan.v != NULL;
	}
	if (!rc)
		rc = s->options.stop == WP_STOP_ALL ? look_at_instant(s) :
						      look_at_all(s, false);
	if (!rc)
		rc = mutex_tick(s);
	if (!rc)
		rc = wp_stop_askers(s);
	if (!rc || rc == -ESRCH) {
		int late = wp_record_deferred(s);

		rc = rc ? rc : late;
	}
	s->last_tick_ns = s->tick_ns;
	return rc;
}

static void fill_counters(struct wp_sampler *s)
{
	struct wp_counters *c = &s->profile->counters;
	double seconds;

	c->pause_p50_ns = wp_pauses_quantile(&s->pauses, 0.5);
	c->pause_p99_ns = wp_pauses_quantile(&s->pauses, 0.99);
	c->pause_max_ns = s->pauses.max_ns;
	c->pause_total_ns = s->pauses.total_ns;
	s->profile->meta.duration_ns = (int64_t)(s->last_tick_ns - s->start_ns);
	seconds = (double)s->profile->meta.duration_ns / (double)WP_NS_PER_S;
	/* The first tick is at the start: N ticks are N - 1 intervals. */
	s->profile->meta.achieved_hz = c->ticks > 2 && seconds > 0 ?
					       (double)(c->ticks - 1) /
						       seconds :
					       0;
}

static int wait_for_late_stops(struct wp_sampler *s)
{
	uint64_t until_ns = wp_clock_ns() + LAST_STOPS_NS;
	int rc = 0;

	while (!rc && wp_stop_count_asked(s) && wp_clock_ns() < until_ns)
		rc = wp_sampler_sleep(s, wp_clock_ns() + WP_NS_PER_MS);
	return rc;
}

/* Take the stops that are still to come, then hold nothing. */
static int settle_stops(struct wp_sampler *s)
{
	int rc = wait_for_late_stops(s);

	if (!rc)
		rc = wp_stop_expire(s, 0);
	return rc ? rc : wp_record_deferred(s);
}

int wp_sampler_look(struct wp_sampler *s)
{
	int rc;

	s->finishing = true;
	rc = wp_sampler_tick(s);
	if (!rc)
		rc = settle_stops(s);
	wp_tracer_clear(s->tracer);
	fill_counters(s);
	return rc;
}

void wp_sampler_each_thread(const struct wp_sampler *s,
			    void (*each)(void *ctx,
					 const struct wp_thread_view *view),
			    void *ctx)
{
	for (size_t i = 0; i < s->nthreads; i++) {
		const struct wp_thread *t = s->threads[i];
		bool asked = t->ask.tick_ns == s->tick_ns;
		struct wp_thread_view view = { t->tid,
					       t->index,
					       t->facts.syscall_nr,
					       { 0 },
					       asked ? t->ask.slices :
						       t->base.slices };

		memcpy(view.args, t->facts.args, sizeof(view.args));
		if (t->watched)
			each(ctx, &view);
	}
}

/* A thread that waited for a CPU, and so for its stop, was not looked at in the
 * last ticks. */
static void owe_rest(const struct wp_sampler *s, struct wp_thread *t)
{
	if (!t->watched || t->asleep || t->last_ns >= s->last_tick_ns)
		return;
	t->owed_runnable_ns += s->last_tick_ns - t->last_ns;
	t->last_ns = s->last_tick_ns;
}

int wp_sampler_finish(struct wp_sampler *s)
{
	int rc = 0;

	s->finishing = true;
	if (wp_process_is_alive(s->process))
		rc = wp_sampler_tick(s);
	if (!rc || rc == -ESRCH)
		rc = wp_thread_starts_finish(s);
	if (!rc)
		rc = settle_stops(s);
	if (!rc)
		rc = wp_cpu_finish(s);
	if (!rc)
		rc = wp_block_finish(s);
	if (!rc)
		rc = wp_mutex_finish(s);
	for (size_t i = 0; i < s->nthreads && !rc; i++) {
		owe_rest(s, s->threads[i]);
		rc = wp_record_owed(s, s->threads[i]);
	}
	wp_tracer_clear(s->tracer);
	if (s->options.cpu)
		wp_profile_finish_cpu(s->profile);
	fill_counters(s);
	return rc;
}

size_t wp_sampler_count_threads(const struct wp_sampler *s)
{
	return s->nwatched;
}

void wp_sampler_free(struct wp_sampler *s)
{
	if (!s)
		return;
	wp_cpu_close(s);
	wp_block_close(s);
	wp_mutex_close(s);
	wp_thread_starts_close(s);
	wp_bpf_scan_close(s);
	wp_threads_clear(s);
	wp_fdinfo_clear(&s->fdinfo);
	wp_address_space_close(&s->space);
	wp_unwinder_free(s->unwinder);
	wp_stack_copy_clear(&s->copy);
	free(s->frame_room);
	free(s->cfa_room);
	free(s);
}
