/* SPDX-License-Identifier: Apache-2.0 */
/* stack_join.c - see stack_join.h. */
#include "stack_join.h"

#include <stdio.h>
#include <time.h>

#include "address_space.h"
#include "wallprof/clock.h"
#include "wallprof/hash.h"
#include "wallprof/io.h"
#include "wallprof/procfs.h"

/* A busy thread makes thousands of calls in a moment.  MOMENTS of them are longer than
 * the time between two ticks of the kernel (4 ms as Debian builds it): each sleep is some
 * 50 us late. */
#define MOMENT_NS (100 * WP_NS_PER_US)
enum { MOMENTS = 30 };

/* What a thread does at one time. */
struct doing {
	bool has_ended;
	/* It sleeps with that stack pointer. */
	bool sleeps;
	uint64_t sp_avma;
	/* If it does not sleep: how often it has come to a CPU, and left one, and for how
	 * long it has run.  0, 0, 0: the kernel does not count. */
	uint64_t arrivals, departures, run_ns;
};

static bool read_sleep(struct doing *ret, int task_fd, pid_t tid)
{
	struct wp_proc_syscall call;
	char path[48], text[256];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/syscall", tid);
	n = wp_io_read_at(task_fd, path, text, sizeof(text));
	ret->sleeps = n > 0 && !wp_proc_syscall_parse(&call, text, (size_t)n) &&
		      !call.running;
	ret->sp_avma = ret->sleeps ? call.sp_avma : 0;
	return ret->sleeps;
}

/* Arrivals are read first: who has left a CPU since is on none. */
static void read_counts(struct doing *ret, int task_fd, pid_t tid)
{
	struct wp_schedstat times = { 0 };
	uint64_t slept, preempted;
	char path[48], text[96];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/schedstat", tid);
	n = wp_io_read_at(task_fd, path, text, sizeof(text));
	if (n > 0 && wp_schedstat_parse(&times, text, (size_t)n))
		times = (struct wp_schedstat){ 0 };
	snprintf(path, sizeof(path), "%d/status", tid);
	ret->has_ended = wp_proc_status_read_at(&slept, task_fd, path,
						"voluntary_ctxt_switches",
						10) ||
			 wp_proc_status_read_at(&preempted, task_fd, path,
						"nonvoluntary_ctxt_switches",
						10);
	if (ret->has_ended || !times.slices)
		return;
	ret->arrivals = times.slices;
	ret->run_ns = times.run_ns;
	ret->departures = slept + preempted;
}

static struct doing look_at(int task_fd, pid_t tid)
{
	struct doing ret = { 0 };

	if (!read_sleep(&ret, task_fd, tid))
		read_counts(&ret, task_fd, tid);
	return ret;
}

/* A thread on a CPU has come to one once more than it has left one (kernel/sched/core.c,
 * __schedule: nivcsw and nvcsw; kernel/sched/stats.h, sched_info_arrive: pcount).  Since
 * Linux 6.12 some arrivals are not counted (of who was woken before it was dequeued):
 * from then on such a thread is never found on a CPU in this way. */
static bool is_on_cpu(const struct doing *doing)
{
	return doing->arrivals == doing->departures + 1;
}

/* Has the thread had a CPU for a while between BEFORE and NOW? */
static bool had_cpu(const struct doing *before, const struct doing *now)
{
	if (!now->arrivals || !before->arrivals)
		return !now->arrivals && !before->arrivals;
	if (now->departures != before->departures)
		return now->arrivals > before->arrivals;
	/* It has had one all the time: its run time grows at the kernel's ticks. */
	return now->arrivals == before->arrivals &&
	       (is_on_cpu(now) || now->run_ns > before->run_ns);
}

/* Who sleeps below the end, on the same stack, has all that is above it. */
static bool sleeps_below_end(const struct wp_stack_copy *copy,
			     const struct doing *doing)
{
	const struct wp_map *map = wp_maps_find(&copy->space->maps,
						doing->sp_avma);

	return doing->sp_avma <= copy->start_avma + copy->end_at && map &&
	       map->end_avma == copy->region_end_avma;
}

/* Are the end and what is above it of one stack, by what the thread does? */
static bool is_one_stack(struct wp_stack_joins *joins,
			 const struct wp_stack_copy *copy, pid_t tid)
{
	const struct timespec moment = { .tv_nsec = MOMENT_NS };
	const int task_fd = copy->space->process->task_fd;
	struct doing before, now = look_at(task_fd, tid);

	while (wp_stack_copy_is_same(copy, copy->end_at, copy->read_len) &&
	       !now.has_ended) {
		if (now.sleeps)
			return sleeps_below_end(copy, &now);
		if (joins->nmoments++ >= MOMENTS)
			return false;
		before = now;
		nanosleep(&moment, NULL);
		now = look_at(task_fd, tid);
		if (!now.sleeps && !now.has_ended && had_cpu(&before, &now))
			return wp_stack_copy_is_same(copy, copy->end_at,
						     copy->read_len);
	}
	return false;
}

bool wp_stack_join_holds(struct wp_stack_joins *joins,
			 const struct wp_stack_copy *copy, pid_t tid,
			 uint64_t ntick)
{
	uint64_t *known = &joins->hash[(uint32_t)tid % WP_STACK_JOINS];
	uint64_t hash;

	if (copy->read_len <= copy->sample_len)
		return true;
	if (joins->ntick != ntick)
		joins->nmoments = 0;
	joins->ntick = ntick;
	hash = wp_hash_u64((uint32_t)tid) ^ (copy->start_avma + copy->end_at);
	hash = wp_hash_bytes(hash, copy->buf + copy->end_at,
			     copy->read_len - copy->end_at);
	if (*known == hash)
		return true;
	if (!is_one_stack(joins, copy, tid))
		return false;
	*known = hash;
	return true;
}
