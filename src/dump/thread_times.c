/* SPDX-License-Identifier: Apache-2.0 */
/* thread_times.c - see thread_times.h. */
#include "thread_times.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wallprof/clock.h"
#include "wallprof/procfs.h"
#include "wallprof/state.h"

/* For a thread that was stopped, to go back to its wait. */
#define BACK_IN_WAIT_NS (20 * WP_NS_PER_MS)

ssize_t wp_thread_times_file(const struct wp_process *process, pid_t tid,
			     const char *name, char *buf, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/%s", tid, name);
	return wp_io_read_at(process->task_fd, path, buf, size);
}

bool wp_thread_times_stat(struct wp_proc_stat *ret,
			  const struct wp_process *process, pid_t tid)
{
	char text[1024];
	ssize_t n = wp_thread_times_file(process, tid, "stat", text,
					 sizeof(text));

	return n > 0 && !wp_proc_stat_parse(ret, text, (size_t)n);
}

/* What wp_thread_times_file reads, by FD, which is open on the file, unless that is
 * negative. */
static ssize_t read_kept(const struct wp_process *process, pid_t tid, int fd,
			 const char *name, char *buf, size_t size)
{
	return fd >= 0 ? wp_io_pread(fd, buf, size) :
			 wp_thread_times_file(process, tid, name, buf, size);
}

static bool read_schedstat(struct wp_schedstat *ret,
			   const struct wp_process *process, pid_t tid, int fd)
{
	char text[256];
	ssize_t n = read_kept(process, tid, fd, "schedstat", text,
			      sizeof(text));

	return n > 0 && !wp_schedstat_parse(ret, text, (size_t)n);
}

static uint64_t read_slices(const struct wp_process *process, pid_t tid, int fd)
{
	struct wp_schedstat now;

	return read_schedstat(&now, process, tid, fd) ? now.slices : UINT64_MAX;
}

uint64_t wp_thread_times_slices(const struct wp_process *process, pid_t tid)
{
	return read_slices(process, tid, -1);
}

static void read_thread(struct wp_thread_time *ret,
			const struct wp_process *process, pid_t tid)
{
	struct wp_schedstat now;

	*ret = (struct wp_thread_time){ .tid = tid, .slices = UINT64_MAX };
	if (read_schedstat(&now, process, tid, -1)) {
		ret->run_ns = now.run_ns;
		ret->slices = now.slices;
	}
}

static int compare_tids(const void *a, const void *b)
{
	const struct wp_thread_time *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

int wp_thread_times_read(struct wp_thread_times *ret_times,
			 const struct wp_process *process)
{
	struct wp_tids tids = WP_TIDS_INIT;
	struct wp_thread_time *v = NULL;
	int rc = wp_process_list_threads(process, &tids);

	if (!rc) {
		v = calloc(tids.len + 1, sizeof(*v));
		rc = v ? 0 : -ENOMEM;
	}
	if (!rc) {
		for (size_t i = 0; i < tids.len; i++)
			read_thread(&v[i], process, tids.v[i]);
		qsort(v, tids.len, sizeof(*v), compare_tids);
		*ret_times = (struct wp_thread_times){ v, tids.len };
	}
	wp_tids_clear(&tids);
	return rc;
}

const struct wp_thread_time *
wp_thread_times_find(const struct wp_thread_times *times, pid_t tid)
{
	struct wp_thread_time key = { .tid = tid };

	return times->len ? bsearch(&key, times->v, times->len, sizeof(key),
				    compare_tids) :
			    NULL;
}

void wp_thread_times_clear(struct wp_thread_times *times)
{
	free(times->v);
	*times = (struct wp_thread_times)WP_THREAD_TIMES_INIT;
}

/* The CPU that thread TID last ran on; -1: not known. */
static int32_t read_cpu(const struct wp_process *process, pid_t tid)
{
	struct wp_proc_stat stat;

	return wp_thread_times_stat(&stat, process, tid) ? stat.cpu : -1;
}

static void await_wait(const struct wp_process *process, pid_t tid)
{
	uint64_t until_ns = wp_clock_ns() + BACK_IN_WAIT_NS;
	struct wp_proc_syscall call;
	char text[256];

	while (wp_clock_ns() < until_ns) {
		ssize_t n = wp_thread_times_file(process, tid, "syscall", text,
						 sizeof(text));

		if (n <= 0 || wp_proc_syscall_parse(&call, text, (size_t)n) ||
		    !call.running)
			break;
		nanosleep(&(struct timespec){ 0, 200000 }, NULL);
	}
}

/* Has the thread that VIEW is of not run between its look and its sample? */
static bool looked_at_sample(const struct wp_thread_view *view)
{
	const struct wp_schedstat *look = &view->look.times;

	return look->slices != UINT64_MAX &&
	       look->slices == view->times.slices &&
	       (look->run_ns == view->times.run_ns ||
		view->times.run_ns == UINT64_MAX);
}

void wp_thread_times_set(struct wp_dump_thread *t,
			 const struct wp_thread_view *view,
			 const struct wp_process *process,
			 struct wp_sched_clock *clock)
{
	const struct wp_thread_look *look = &view->look;
	const struct wp_sched_cpu *cpu;

	t->times.slices = UINT64_MAX;
	t->times.slices_at = view->times.slices;
	t->times.sleeps_at = view->sleeps;
	t->times.was_stopped = view->times.run_ns == UINT64_MAX;
	if (t->state == WP_STATE_WAITING && t->times.was_stopped)
		await_wait(process, t->tid);
	t->times.slices_after = read_slices(process, t->tid,
					    view->schedstat_fd);
	t->times.run_ns = look->times.run_ns;
	t->times.cpu = look->cpu >= 0 ? look->cpu : read_cpu(process, t->tid);
	if (!looked_at_sample(view))
		return;
	t->times.slices = look->times.slices;
	if (wp_types_state_is_ready(t->state) || !look->exec_start_ns ||
	    !view->memory || !view->memory->time_ns)
		return;
	cpu = look->cpu >= 0 ? wp_sched_clock_find(clock, look->cpu) : NULL;
	if (cpu)
		t->times.waited_ns = wp_sched_wait_ns(cpu, look->exec_start_ns,
						      view->memory->time_ns);
}

/* A stop puts a sleeping thread on a CPU twice, and lets it sleep as often: to stop,
 * and to go back. */
enum { RUNS_OF_STOP = 2 };

/* Has T, by its timeslices NOW, slept on but for a stop?  Other threads may have
 * taken its CPU meanwhile, which gives it more timeslices, but no sleeps. */
static bool sleeps_on(const struct wp_dump_thread *t,
		      const struct wp_process *process, uint64_t now)
{
	uint64_t sleeps;
	char path[64];

	if (!t->times.was_stopped)
		return now <= t->times.slices_at;
	if (now <= t->times.slices_at + RUNS_OF_STOP)
		return true;
	if (t->times.sleeps_at == UINT64_MAX)
		return false;
	snprintf(path, sizeof(path), "%d/status", t->tid);
	return !wp_proc_status_read_at(&sleeps, process->task_fd, path,
				       "voluntary_ctxt_switches", 10) &&
	       sleeps <= t->times.sleeps_at + RUNS_OF_STOP;
}

bool wp_thread_times_same_wait(const struct wp_dump_thread *t,
			       const struct wp_thread_view *view,
			       const struct wp_process *process)
{
	struct wp_proc_syscall call;
	struct wp_schedstat now;
	char text[256];
	ssize_t n = read_kept(process, t->tid, view->syscall_fd, "syscall",
			      text, sizeof(text));

	if (n <= 0 || wp_proc_syscall_parse(&call, text, (size_t)n) ||
	    call.running)
		return false;
	/* Of the call of an i386 program T has the native one. */
	if (call.nr != t->call.nr && wp_process_is_32bit(process))
		(void)wp_call_memory_make_native(process, &call.nr, call.args);
	return (call.nr == t->call.nr || call.nr == wp_syscall_restart) &&
	       !memcmp(call.args, t->call.args, 3 * sizeof(*t->call.args)) &&
	       read_schedstat(&now, process, t->tid, view->schedstat_fd) &&
	       sleeps_on(t, process, now.slices);
}
