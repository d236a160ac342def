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

/* A busy thread makes thousands of calls in a moment. */
#define MOMENT_NS (100 * WP_NS_PER_US)
enum { MOMENTS = 30 };

/* What a thread does. */
struct state {
	/* It sleeps with that stack pointer. */
	bool sleeps;
	uint64_t sp_avma;
	/* How often it has come to a CPU, and left one, and for how long it has run; unless
	 * it sleeps, and if that is known. */
	bool is_known;
	uint64_t arrivals, departures, run_ns;
};

static bool read_sleep(struct state *state, int task_fd, pid_t tid)
{
	struct wp_proc_syscall call;
	char path[48], text[256];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/syscall", tid);
	n = wp_io_read_at(task_fd, path, text, sizeof(text));
	state->sleeps = n > 0 &&
			!wp_proc_syscall_parse(&call, text, (size_t)n) &&
			!call.running;
	state->sp_avma = state->sleeps ? call.sp_avma : 0;
	return state->sleeps;
}

/* Arrivals are read first: who has left a CPU since is on none. */
static bool read_counts(struct state *state, int task_fd, pid_t tid)
{
	struct wp_schedstat times;
	uint64_t slept, preempted;
	char path[48], text[96];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/schedstat", tid);
	n = wp_io_read_at(task_fd, path, text, sizeof(text));
	snprintf(path, sizeof(path), "%d/status", tid);
	if (n <= 0 || wp_schedstat_parse(&times, text, (size_t)n) ||
	    wp_proc_status_read_at(&slept, task_fd, path,
				   "voluntary_ctxt_switches", 10) ||
	    wp_proc_status_read_at(&preempted, task_fd, path,
				   "nonvoluntary_ctxt_switches", 10))
		return false;
	state->arrivals = times.slices;
	state->run_ns = times.run_ns;
	state->departures = slept + preempted;
	return true;
}

static struct state read_state(int task_fd, pid_t tid)
{
	struct state state = { 0 };

	if (!read_sleep(&state, task_fd, tid))
		state.is_known = read_counts(&state, task_fd, tid);
	return state;
}

/* A thread on a CPU has come to one once more than it has left one (kernel/sched/core.c,
 * __schedule: nivcsw and nvcsw; kernel/sched/stats.h, sched_info_arrive: pcount).  Since
 * Linux 6.12 some arrivals are not counted (of who was woken before it was dequeued). */
static bool is_on_cpu(const struct state *state)
{
	return state->arrivals == state->departures + 1;
}

/* Has the thread run for a while between BEFORE and NOW? */
static bool has_run(const struct state *before, const struct state *now)
{
	if (now->departures != before->departures)
		return now->arrivals > before->arrivals;
	/* On a CPU all the time: its run time grows at the kernel's ticks. */
	return now->arrivals == before->arrivals &&
	       (is_on_cpu(now) || now->run_ns > before->run_ns);
}

/* The same that needs no hash: by what the thread does. */
static bool is_one(const struct wp_stack_copy *copy, pid_t tid)
{
	const struct timespec moment = { .tv_nsec = MOMENT_NS };
	const int task_fd = copy->space->process->task_fd;
	struct state before, now = read_state(task_fd, tid);

	for (int i = 0; i < MOMENTS; i++) {
		if (!wp_stack_copy_is_same(copy, copy->end_at, copy->read_len))
			return false;
		/* Who sleeps below the end has all that is above it. */
		if (now.sleeps)
			return now.sp_avma <= copy->start_avma + copy->end_at;
		before = now;
		nanosleep(&moment, NULL);
		now = read_state(task_fd, tid);
		if (now.sleeps || (now.is_known && before.is_known &&
				   !has_run(&before, &now)))
			continue;
		return wp_stack_copy_is_same(copy, copy->end_at,
					     copy->read_len);
	}
	return false;
}

bool wp_stack_join_holds(struct wp_stack_joins *joins,
			 const struct wp_stack_copy *copy, pid_t tid)
{
	uint64_t *known = &joins->hash[(uint32_t)tid % WP_STACK_JOINS];
	uint64_t hash;

	if (copy->read_len <= copy->sample_len)
		return true;
	hash = wp_hash_bytes(copy->start_avma + copy->end_at,
			     copy->buf + copy->end_at,
			     copy->read_len - copy->end_at);
	if (*known == hash)
		return true;
	if (!is_one(copy, tid))
		return false;
	*known = hash;
	return true;
}
