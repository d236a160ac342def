/* SPDX-License-Identifier: Apache-2.0 */
/* stop_guard.c - see stop_guard.h. */
#include "stop_guard.h"

#include <time.h>

#include "target.h"
#include "thread.h"
#include "wallprof/clock.h"

#define AWAKE_NS WP_NS_PER_MS

bool wp_stop_guard_is_worker(struct wp_thread *t)
{
	struct wp_proc_stat stat;
	char text[1024];
	ssize_t n;

	if (t->guard.worker_is_known)
		return t->guard.is_worker;
	n = wp_thread_files_read_once(t->target, t->tid, "stat", text,
				      sizeof(text));
	if (n < 0 || wp_proc_stat_parse(&stat, text, (size_t)n))
		return false;
	t->guard.worker_is_known = true;
	t->guard.is_worker = stat.user_worker;
	return stat.user_worker;
}

bool wp_stop_guard_has_filter(struct wp_thread *t)
{
	if (!t->guard.has_filter)
		t->guard.has_filter = wp_tracer_has_filter(t->tid);
	return t->guard.has_filter;
}

bool wp_stop_guard_lets_waiting(struct wp_thread *t,
				struct wp_thread_facts *facts)
{
	const struct wp_syscall_info *info = wp_syscall_find(facts->syscall_nr);

	if (info && info->restart == WP_RESTART_BY_FD)
		facts->fd_kind = wp_fdinfo_kind(&t->target->fdinfo, t->tid,
						(int)facts->args[info->fd_arg]);
	return wp_state_may_stop(facts, wp_stop_guard_has_filter(t));
}

void wp_stop_guard_see_running(struct wp_thread *t,
			       const struct wp_schedstat *now)
{
	uint64_t sleeps;

	if (!wp_stop_guard_has_filter(t))
		return;
	sleeps = wp_thread_files_sleeps(t);
	if (sleeps == t->guard.sleeps)
		return;
	t->guard.sleeps = sleeps;
	t->guard.run_ns = now->run_ns;
}

/* Is T in no system call, or at least not blocked in one? */
static bool is_running(struct wp_thread *t)
{
	struct wp_proc_syscall call;
	char text[256];
	ssize_t n = wp_thread_files_read(t, WP_THREAD_SYSCALL, text,
					 sizeof(text));

	return n > 0 && !wp_proc_syscall_parse(&call, text, (size_t)n) &&
	       call.running;
}

/* Has T run for long enough since it was seen?  That it has not slept is for the
 * caller to tell. */
static bool has_run(struct wp_thread *t)
{
	struct wp_schedstat now;

	return !wp_thread_files_schedstat(t, &now) &&
	       now.run_ns - t->guard.run_ns >= AWAKE_NS;
}

/* One that waits, and is stopped for its registers, has been asked about. */
static bool is_guarded(const struct wp_thread *t)
{
	return t->guard.has_filter && !t->stop.for_registers;
}

bool wp_stop_guard_wants_rest(struct wp_thread *t)
{
	return is_guarded(t) && !has_run(t);
}

void wp_stop_guard_rest(void)
{
	const struct timespec rest = { .tv_nsec = AWAKE_NS };

	nanosleep(&rest, NULL);
}

bool wp_stop_guard_lets_running(struct wp_thread *t)
{
	if (wp_stop_guard_is_worker(t))
		return false;
	return !is_guarded(t) ||
	       (has_run(t) && t->guard.sleeps != UINT64_MAX &&
		wp_thread_files_sleeps(t) == t->guard.sleeps && is_running(t));
}
