/* SPDX-License-Identifier: Apache-2.0 */
/* tracer.c - see wallprof/tracer.h. */
#include "wallprof/tracer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "let_go.h"
#include "regs.h"
#include "wallprof/access.h"
#include "wallprof/clock.h"
#include "wallprof/procfs.h"
#include "wallprof/vec.h"

/* How long the last stops are waited for, and those of threads that wait for a CPU:
 * a call that is interrupted and not repaired may fail with EINTR, or kill. */
#define CLEAR_NS (100 * WP_NS_PER_MS)
#define CLEAR_STARVED_NS (30 * WP_NS_PER_S)
/* Time between two looks for tracees that are lost. */
#define LOST_NS WP_NS_PER_S
/* Waits without polling after polling was in vain. */
enum { SPINS_LEFT_OUT = 32 };

volatile sig_atomic_t wp_tracer_nheld;
void (*wp_tracer_on_release)(void);

/* Tracees that had not stopped when their tracer was cleared: see leave_behind. */
static struct wp_tracer left;

/* N tracees fewer. */
static void count_released(size_t n)
{
	if (!n)
		return;
	wp_tracer_nheld -= (sig_atomic_t)n;
	if (!wp_tracer_nheld && wp_tracer_on_release)
		wp_tracer_on_release();
}

static const sigset_t *sigchld(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	return set;
}

void wp_tracer_init(struct wp_tracer *tracer)
{
	sigset_t set;

	*tracer = (struct wp_tracer)WP_TRACER_INIT;
	sigprocmask(SIG_BLOCK, sigchld(&set), NULL);
}

static struct wp_tracee *find_tid(struct wp_tracer *tracer, pid_t tid)
{
	for (size_t i = 0; i < tracer->len; i++)
		if (tracer->v[i].tid == tid)
			return &tracer->v[i];
	return NULL;
}

struct wp_tracee *wp_tracer_find(struct wp_tracer *tracer, uint64_t cookie)
{
	for (size_t i = 0; i < tracer->len; i++)
		if (tracer->v[i].cookie == cookie && !tracer->v[i].unwanted)
			return &tracer->v[i];
	return NULL;
}

/* Count what the stop of TRACEE has cost. */
static void count_harm(struct wp_tracer *tracer, const struct wp_tracee *tracee)
{
	tracer->eintrs_left += tracee->restart.lost;
	tracer->execs_again += tracee->executes_again;
	tracer->rights_lost += tracee->lost_rights;
}

static void drop(struct wp_tracer *tracer, struct wp_tracee *tracee)
{
	count_harm(tracer, tracee);
	*tracee = tracer->v[--tracer->len];
	count_released(1);
}

/* Is TRACEE, which has not stopped, traced no more?  Where a thread executes a program,
 * the kernel ends the others and gives it the first one's number, without a status of the
 * first one or of its own number. */
static bool is_lost(const struct wp_tracee *tracee)
{
	return !tracee->stopped && !wp_access_tracer(tracee->tid) &&
	       ptrace(PTRACE_INTERRUPT, tracee->tid, 0, 0) && errno == ESRCH;
}

static void drop_lost(struct wp_tracer *tracer)
{
	for (size_t i = tracer->len; i-- > 0;)
		if (is_lost(&tracer->v[i]))
			drop(tracer, &tracer->v[i]);
}

/* TRACEE is interrupted once more.  One that was given up has its stop still before
 * it, but for a call that it is to make again. */
static int want_again(struct wp_tracee *tracee, uint64_t cookie)
{
	if (!tracee->unwanted || tracee->restart.pending)
		return -EALREADY;
	tracee->unwanted = false;
	tracee->cookie = cookie;
	tracee->asked_ns = wp_clock_ns();
	return 0;
}

int wp_tracer_interrupt(struct wp_tracer *tracer, pid_t tid, uint64_t cookie)
{
	struct wp_tracee *tracee = find_tid(tracer, tid);
	int rc;

	if (tracee && !is_lost(tracee))
		return want_again(tracee, cookie);
	if (tracee)
		drop(tracer, tracee);
	if (WP_VEC_ROOM(tracer->v, tracer->len, tracer->cap, 1))
		return -ENOMEM;
	/* First, for a signal may come at any moment. */
	wp_tracer_nheld++;
	/* This process may lose its CPU before it asks for the stop, and an execve(2) of TID
	 * come to its end: see exec_again.h. */
	if (ptrace(PTRACE_SEIZE, tid, 0,
		   PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC)) {
		/* A thread on its way out gives EPERM as a foreign one does;
		 * the caller learns from /proc which it is. */
		rc = errno == EPERM || errno == EACCES ? -EPERM : -ESRCH;
		count_released(1);
		return rc;
	}
	tracee = &tracer->v[tracer->len++];
	*tracee = (struct wp_tracee){ .tid = tid,
				      .cookie = cookie,
				      .restart.argument = &tracer->argument };
	/* As late as can be: what a call was called with that the thread makes from now
	 * on may not be known. */
	wp_regs_note_call(tid, &tracee->restart.before);
	tracee->asked_ns = wp_clock_ns();
	/* It can only fail by ESRCH, and then the end is reported by wait. */
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	return 0;
}

/* TID, of no tracer, has stopped with STATUS: it was left behind, or an exec has moved a
 * traced thread to the leader's number.  TRACER counts what that has cost. */
static void let_other_go(struct wp_tracer *tracer, pid_t tid, int status)
{
	struct wp_tracee moved = { .tid = tid };
	struct wp_tracee *tracee = find_tid(&left, tid);

	if (!wp_let_unwanted_go(tracee ? tracee : &moved, status))
		return;
	count_harm(tracer, tracee ? tracee : &moved);
	if (tracee)
		*tracee = left.v[--left.len];
}

/* TRACEE, which is unwanted, has stopped with STATUS: let it go. */
static void end_late(struct wp_tracer *tracer, struct wp_tracee *tracee,
		     int status)
{
	pid_t tid = tracee->tid;
	uint64_t stopped_ns;

	/* A call that it makes again takes several stops. */
	if (!tracee->stopped_ns)
		tracee->stopped_ns = wp_clock_ns();
	stopped_ns = tracee->stopped_ns;
	if (wp_let_unwanted_go(tracee, status))
		drop(tracer, tracee);
	if (tracer->on_late)
		tracer->on_late(tracer->late_ctx, tid, stopped_ns);
}

/* Make STATUS of TID known; returns the tracee that stopped, if it is one that
 * somebody still waits for.
 */
static struct wp_tracee *take_status(struct wp_tracer *tracer, pid_t tid,
				     int status)
{
	struct wp_tracee *tracee = find_tid(tracer, tid);

	if (!WIFSTOPPED(status)) {
		if (tracee)
			drop(tracer, tracee);
		if (tid == tracer->child) {
			tracer->child_ended = true;
			tracer->child_status = status;
		}
		return NULL;
	}
	if (wp_let_go_to_entry(tid, status))
		return NULL;
	if (!tracee) {
		let_other_go(tracer, tid, status);
		return NULL;
	}
	if (tracee->unwanted) {
		end_late(tracer, tracee, status);
		return NULL;
	}
	tracee->stopped = true;
	tracee->stopped_ns = wp_clock_ns();
	tracee->signal = wp_signal_of_stop(status);
	return tracee;
}

/* Take what has happened until something is for the caller or nothing is left.
 */
static struct wp_tracee *poll_stops(struct wp_tracer *tracer)
{
	for (;;) {
		struct wp_tracee *tracee;
		int status;
		pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);

		if (tid <= 0)
			return NULL;
		tracee = take_status(tracer, tid, status);
		if (tracee)
			return tracee;
	}
}

/* Wait for SIGCHLD until UNTIL_NS: true if it came, or another signal did. */
static bool wait_sigchld(uint64_t until_ns)
{
	uint64_t now = wp_clock_ns();
	uint64_t ns = until_ns > now ? until_ns - now : 0;
	struct timespec ts = { (time_t)(ns / WP_NS_PER_S),
			       (long)(ns % WP_NS_PER_S) };
	sigset_t set;

	return sigtimedwait(sigchld(&set), NULL, &ts) == SIGCHLD ||
	       errno == EINTR;
}

static size_t count_interrupting(const struct wp_tracer *tracer)
{
	size_t n = 0;

	for (size_t i = 0; i < tracer->len; i++)
		n += !tracer->v[i].stopped && !tracer->v[i].unwanted;
	return n;
}

struct wp_tracee *wp_tracer_wait(struct wp_tracer *tracer, uint64_t until_ns)
{
	uint64_t spin_until = wp_clock_ns() + WP_SPIN_NS;

	if (tracer->spins_left_out) {
		tracer->spins_left_out--;
		spin_until = 0;
	}
	for (;;) {
		struct wp_tracee *tracee = poll_stops(tracer);
		uint64_t now;

		if (tracee || tracer->child_ended ||
		    !count_interrupting(tracer))
			return tracee;
		now = wp_clock_ns();
		/* What has come while we had no CPU ourselves is in time. */
		if (now >= until_ns)
			return poll_stops(tracer);
		if (now < spin_until)
			continue;
		/* What is to stop may want this very CPU. */
		if (spin_until)
			tracer->spins_left_out = SPINS_LEFT_OUT;
		spin_until = 0;
		if (!wait_sigchld(until_ns))
			return poll_stops(tracer);
	}
}

struct wp_tracee *wp_tracer_sleep(struct wp_tracer *tracer, uint64_t until_ns)
{
	struct wp_tracee *tracee = poll_stops(tracer);
	uint64_t now_ns = wp_clock_ns();

	if (!tracee && tracer->len && now_ns >= tracer->lost_ns) {
		drop_lost(tracer);
		tracer->lost_ns = now_ns + LOST_NS;
	}
	if (!tracee && wp_clock_ns() < until_ns && wait_sigchld(until_ns))
		tracee = poll_stops(tracer);
	return tracee;
}

bool wp_tracer_has_filter(pid_t tid)
{
	uint64_t mode;
	int rc = wp_proc_status_read(&mode, tid, "Seccomp", 10);

	/* A thread that has ended, and a kernel without filters, have no such line. */
	if (rc == -ENOENT || rc == -ESRCH || rc == -EBADMSG)
		return false;
	return rc || mode == 2;
}

void wp_tracer_release(struct wp_tracer *tracer, struct wp_tracee *tracee)
{
	if (!tracee->stopped) {
		tracee->unwanted = true;
		tracee->cookie = 0;
		return;
	}
	if (wp_let_go(tracee))
		drop(tracer, tracee);
}

bool wp_tracer_end_late(struct wp_tracer *tracer, pid_t tid)
{
	const struct wp_tracee *tracee = find_tid(tracer, tid);
	int status;

	if (!tracee || !tracee->unwanted)
		return false;
	if (waitpid(tid, &status, __WALL | WNOHANG) == tid)
		(void)!take_status(tracer, tid, status);
	return true;
}

/* Is a thread that was interrupted ready to run, so that its stop comes as soon as it
 * gets a CPU, or has it come just now? */
static bool some_will_stop(const struct wp_tracer *tracer)
{
	struct wp_proc_stat stat;

	for (size_t i = 0; i < tracer->len; i++)
		if (!wp_proc_stat_read(&stat, tracer->v[i].tid) &&
		    (stat.state_char == 'R' || stat.state_char == 't'))
			return true;
	return false;
}

/* Is TID a child of this process's, whose end somebody else waits for? */
static bool is_own_child(pid_t tid)
{
	uint64_t tgid, ppid;

	return !wp_proc_status_read(&tgid, tid, "Tgid", 10) &&
	       !wp_proc_status_read(&ppid, tid, "PPid", 10) &&
	       (pid_t)tgid == tid && (pid_t)ppid == getpid();
}

/* Has TID, which was left behind, ended, or been taken by another wait?  The kernel tells
 * its parent of its end when its tracer has taken note of it. */
static bool has_ended(pid_t tid)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, (id_t)tid, &info,
		   WEXITED | WNOHANG | WNOWAIT | __WALL))
		return true;
	if (info.si_pid && !is_own_child(tid))
		waitpid(tid, NULL, __WALL | WNOHANG);
	return info.si_pid;
}

/* Let go who has stopped of those that were left behind, and forget who has ended. */
static void poll_left(void)
{
	siginfo_t info = { 0 };

	while (!waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG | __WALL) &&
	       info.si_pid) {
		/* As of waitpid(2). */
		int status = info.si_status << 8 | 0x7f;

		if (info.si_code == CLD_TRAPPED &&
		    !wp_let_go_to_entry(info.si_pid, status))
			let_other_go(&left, info.si_pid, status);
		info.si_pid = 0;
	}
	for (size_t i = left.len; i-- > 0;)
		if (has_ended(left.v[i].tid))
			left.v[i] = left.v[--left.len];
}

static void on_sigchld(int sig)
{
	int saved = errno;

	(void)sig;
	poll_left();
	errno = saved;
}

/* A tracee of TRACER may stop at any time from now on, and no thread but this one, which
 * is about to do other things, can let it go: a handler does. */
static void leave_behind(struct wp_tracer *tracer)
{
	struct sigaction act = { .sa_handler = on_sigchld,
				 .sa_flags = SA_RESTART };
	sigset_t set;

	sigprocmask(SIG_BLOCK, sigchld(&set), NULL);
	if (!WP_VEC_ROOM(left.v, left.len, left.cap, tracer->len))
		for (size_t i = 0; i < tracer->len; i++) {
			tracer->v[i].restart.argument = NULL;
			left.v[left.len++] = tracer->v[i];
		}
	poll_left();
	if (!left.len)
		return;
	sigaction(SIGCHLD, &act, NULL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void wp_tracer_clear(struct wp_tracer *tracer)
{
	uint64_t now_ns = wp_clock_ns();
	uint64_t until_ns = now_ns + CLEAR_NS;
	uint64_t at_most_ns = now_ns + CLEAR_STARVED_NS;
	size_t nleft;

	for (size_t i = tracer->len; i-- > 0;)
		wp_tracer_release(tracer, &tracer->v[i]);
	drop_lost(tracer);
	while (tracer->len && (now_ns < until_ns || (now_ns < at_most_ns &&
						     some_will_stop(tracer)))) {
		poll_stops(tracer);
		if (tracer->len)
			wait_sigchld(wp_clock_ns() + 5 * WP_NS_PER_MS);
		now_ns = wp_clock_ns();
	}
	leave_behind(tracer);
	nleft = tracer->len;
	free(tracer->v);
	tracer->v = NULL;
	tracer->len = tracer->cap = 0;
	count_released(nleft);
	wp_call_argument_close(&tracer->argument);
}
