/* SPDX-License-Identifier: Apache-2.0 */
/* tracer.c - see wallprof/tracer.h. */
#include "wallprof/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "regs.h"
#include "wallprof/clock.h"
#include "wallprof/io.h"
#include "wallprof/procfs.h"
#include "wallprof/vec.h"

/* A thread on another CPU stops within some microseconds: for so long polling is
 * cheaper than sleeping.  A thread that must first get a CPU takes longer, and
 * may be waiting for the CPU that polls.
 */
#define SPIN_NS (40 * WP_NS_PER_US)
/* How long the last stops are waited for, and those of threads that wait for a CPU:
 * a call that is interrupted and not repaired may fail with EINTR, or kill. */
#define CLEAR_NS (100 * WP_NS_PER_MS)
#define CLEAR_STARVED_NS (30 * WP_NS_PER_S)
/* Waits without polling after polling was in vain. */
enum { SPINS_LEFT_OUT = 32 };

volatile sig_atomic_t wp_tracer_nheld;
void (*wp_tracer_on_release)(void);

/* N tracees fewer. */
static void count_released(size_t n)
{
	if (!n)
		return;
	wp_tracer_nheld -= (sig_atomic_t)n;
	if (!wp_tracer_nheld && wp_tracer_on_release)
		wp_tracer_on_release();
}

static void block_sigchld(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
}

void wp_tracer_init(struct wp_tracer *tracer)
{
	sigset_t set;

	*tracer = (struct wp_tracer)WP_TRACER_INIT;
	block_sigchld(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
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

static void drop(struct wp_tracer *tracer, struct wp_tracee *tracee)
{
	tracer->eintrs_left += tracee->restart.lost;
	*tracee = tracer->v[--tracer->len];
	count_released(1);
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

	if (tracee)
		return want_again(tracee, cookie);
	if (WP_VEC_ROOM(tracer->v, tracer->len, tracer->cap, 1))
		return -ENOMEM;
	/* First, for a signal may come at any moment. */
	wp_tracer_nheld++;
	if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD)) {
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

/* The signal with which the thread that stopped with STATUS is to be detached; 0:
 * none. */
static int signal_of_stop(int status)
{
	/* PTRACE_EVENT_STOP: by PTRACE_INTERRUPT, or a group-stop, in which a
	 * detach leaves the thread (ptrace(2), "Group-stop"). */
	if (status >> 16 || WSTOPSIG(status) == (SIGTRAP | 0x80))
		return 0;
	/* Signal-delivery-stop: the tracer passes the signal on. */
	return WSTOPSIG(status);
}

static void detach(pid_t tid, int sig)
{
	ptrace(PTRACE_DETACH, tid, 0, (void *)(intptr_t)sig);
}

/* Has thread TID a handler for SIG?  True also if that cannot be known. */
static bool has_handler(pid_t tid, int sig)
{
	uint64_t caught;

	return wp_proc_status_read(&caught, tid, "SigCgt", 16) ||
	       (caught >> (sig - 1) & 1);
}

/* Is the call that TRACEE stopped in to go on?  Not before a handler: then EINTR is
 * the program's due, and the kernel itself decides between handler and restart. */
static bool is_to_go_on(const struct wp_tracee *tracee)
{
	return !tracee->signal || !has_handler(tracee->tid, tracee->signal);
}

/* Let TRACEE, which has stopped with STATUS on its way through its call, go.  False: it
 * will stop once more. */
static bool end_call(struct wp_tracee *tracee, int status)
{
	int sig = signal_of_stop(status);

	if (sig && !has_handler(tracee->tid, sig) &&
	    !ptrace(PTRACE_SYSEMU, tracee->tid, 0, (void *)(intptr_t)sig))
		return false;
	if (wp_regs_end_restart(tracee->tid, status, &tracee->restart) &&
	    !ptrace(PTRACE_SYSCALL, tracee->tid, 0, 0))
		return false;
	detach(tracee->tid, sig);
	return true;
}

/* TRACEE, which is stopped, has to make its call again: it is let go when it has,
 * or a signal comes first.  True: it has been. */
static bool end_restart(struct wp_tracee *tracee)
{
	uint64_t until_ns = wp_clock_ns() + SPIN_NS;
	int status;
	pid_t tid;

	tracee->stopped = false;
	tracee->unwanted = true;
	tracee->cookie = 0;
	if (ptrace(PTRACE_SYSEMU, tracee->tid, 0,
		   (void *)(intptr_t)tracee->signal))
		return true;
	do {
		tid = waitpid(tracee->tid, &status, __WALL | WNOHANG);
		if (tid == tracee->tid &&
		    (!WIFSTOPPED(status) || end_call(tracee, status)))
			return true;
	} while (tid >= 0 && wp_clock_ns() < until_ns);
	return false;
}

/* Let TRACEE, which is stopped, go.  False: its call has to be made first. */
static bool let_go(struct wp_tracee *tracee)
{
	struct wp_stop_facts facts;
	struct wp_regs regs;

	/* It may have died; then there is nothing to undo. */
	if (!tracee->repaired)
		(void)!wp_regs_read(tracee->tid, is_to_go_on(tracee), &regs,
				    &facts, &tracee->restart);
	tracee->repaired = true;
	if (tracee->restart.pending)
		return end_restart(tracee);
	detach(tracee->tid, tracee->signal);
	return true;
}

/* TRACEE, which nobody waits for, has stopped with STATUS. */
static bool let_unwanted_go(struct wp_tracee *tracee, int status)
{
	tracee->signal = signal_of_stop(status);
	if (!tracee->restart.pending)
		return let_go(tracee);
	return end_call(tracee, status);
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
	if (!tracee) {
		/* An exec moves a traced thread to the leader's number. */
		struct wp_tracee moved = { .tid = tid,
					   .signal = signal_of_stop(status) };

		let_go(&moved);
		return NULL;
	}
	if (tracee->unwanted) {
		if (let_unwanted_go(tracee, status))
			drop(tracer, tracee);
		return NULL;
	}
	tracee->stopped = true;
	tracee->stopped_ns = wp_clock_ns();
	tracee->signal = signal_of_stop(status);
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

/* Wait for SIGCHLD until UNTIL_NS: true if it came. */
static bool wait_sigchld(uint64_t until_ns)
{
	uint64_t now = wp_clock_ns();
	uint64_t left = until_ns > now ? until_ns - now : 0;
	struct timespec ts = { (time_t)(left / WP_NS_PER_S),
			       (long)(left % WP_NS_PER_S) };
	sigset_t set;

	block_sigchld(&set);
	return sigtimedwait(&set, NULL, &ts) == SIGCHLD;
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
	uint64_t spin_until = wp_clock_ns() + SPIN_NS;

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

int wp_tracer_read_regs(struct wp_tracee *tracee, struct wp_regs *ret_regs,
			struct wp_stop_facts *ret_facts)
{
	tracee->repaired = true;
	return wp_regs_read(tracee->tid, is_to_go_on(tracee), ret_regs,
			    ret_facts, &tracee->restart);
}

void wp_tracer_release(struct wp_tracer *tracer, struct wp_tracee *tracee)
{
	if (!tracee->stopped) {
		tracee->unwanted = true;
		tracee->cookie = 0;
		return;
	}
	if (let_go(tracee))
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
	char path[32], text[1024];

	for (size_t i = 0; i < tracer->len; i++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/stat", tracer->v[i].tid);
		n = wp_io_read_at(AT_FDCWD, path, text, sizeof(text));
		if (n > 0 && !wp_proc_stat_parse(&stat, text, (size_t)n) &&
		    (stat.state_char == 'R' || stat.state_char == 't'))
			return true;
	}
	return false;
}

void wp_tracer_clear(struct wp_tracer *tracer)
{
	uint64_t now_ns = wp_clock_ns();
	uint64_t until_ns = now_ns + CLEAR_NS;
	uint64_t at_most_ns = now_ns + CLEAR_STARVED_NS;
	size_t left;

	for (size_t i = tracer->len; i-- > 0;)
		wp_tracer_release(tracer, &tracer->v[i]);
	while (tracer->len && (now_ns < until_ns || (now_ns < at_most_ns &&
						     some_will_stop(tracer)))) {
		poll_stops(tracer);
		if (tracer->len)
			wait_sigchld(wp_clock_ns() + 5 * WP_NS_PER_MS);
		now_ns = wp_clock_ns();
	}
	left = tracer->len;
	free(tracer->v);
	tracer->v = NULL;
	tracer->len = tracer->cap = 0;
	count_released(left);
	wp_call_argument_close(&tracer->argument);
}
