/* SPDX-License-Identifier: Apache-2.0 */
/* stop_guard.c - see stop_guard.h. */
#include "stop_guard.h"

#include <time.h>

#include "target.h"
#include "thread.h"
#include "wallprof/clock.h"

#define AWAKE_NS WP_NS_PER_MS

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
		facts->fd_kind = wp_fdinfo_kind(&t->target->fdinfo,
						(int)facts->args[info->fd_arg]);
	return wp_state_may_stop(facts, wp_stop_guard_has_filter(t));
}

void wp_stop_guard_see_running(struct wp_thread *t)
{
	if (!wp_stop_guard_has_filter(t))
		return;
	t->guard.sleeps = wp_thread_files_sleeps(t);
	t->guard.seen_ns = wp_clock_ns();
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

bool wp_stop_guard_lets_running(struct wp_thread *t)
{
	uint64_t awake_ns = wp_clock_ns() - t->guard.seen_ns;
	const struct timespec rest = {
		.tv_nsec = awake_ns < AWAKE_NS ? (long)(AWAKE_NS - awake_ns) :
						 0,
	};

	if (!t->guard.has_filter)
		return true;
	nanosleep(&rest, NULL);
	return t->guard.sleeps != UINT64_MAX &&
	       wp_thread_files_sleeps(t) == t->guard.sleeps && is_running(t);
}
