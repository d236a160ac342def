/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_timeout.c - see cmd_timeout.h.
 *
 * wallprof is the subreaper of the command's orphans (prctl(2)), so that every
 * process that the command started is a descendant when the time is up.
 */
#include "cmd_timeout.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "output_file.h"
#include "exit_status.h"
#include "messages.h"
#include "signals.h"
#include "cmd_dump.h"
#include "wallprof/children.h"
#include "wallprof/clock.h"
#include "wallprof/graph.h"
#include "wallprof/hash.h"
#include "wallprof/procfs.h"
#include "wallprof/vec.h"

enum {
	/* Most descendants that are dumped; most that are signalled. */
	DUMPED_MAX = 256,
	DESCENDANTS_MAX = 65536,
	/* Checks for a deadlock take at most one part in so many of the time. */
	CHECK_SHARE = 50,
};
#define CHECK_NS WP_NS_PER_S
/* A process that lives so long after SIGKILL is stuck in the kernel, or wallprof
 * may not kill it. */
#define KILL_NS (5 * WP_NS_PER_S)

struct thread_slices {
	pid_t tid;
	uint64_t slices;
};

struct command {
	const struct wp_options *options;
	/* 0 once reaped. */
	pid_t child;
	/* As waitpid(2) gives it. */
	int status;
	uint64_t start_ns;
	/* For sigtimedwait(2). */
	sigset_t signals;
	struct wp_output_file out;
	/* Why the command is to be ended; "": it is not. */
	char why[600];
	/* For deadlock checks: threads[0..nthreads) a second ago, by tid; a
	 * hash of those that had not run at the last check; and the time before
	 * which there is no next check. */
	struct thread_slices *threads;
	size_t nthreads;
	uint64_t checked_hash;
	uint64_t next_check_ns;
};

static const int forwarded[] = { SIGINT, SIGQUIT, SIGTERM,
				 SIGHUP, SIGUSR1, SIGUSR2 };

/* Block the signals that wallprof waits for; *RET_OLD is the mask before. */
static void block_signals(struct command *command, sigset_t *ret_old)
{
	sigemptyset(&command->signals);
	sigaddset(&command->signals, SIGCHLD);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(*forwarded); i++)
		sigaddset(&command->signals, forwarded[i]);
	sigprocmask(SIG_BLOCK, &command->signals, ret_old);
}

/* Reap the command and its orphans. */
static void reap(struct command *command)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != command->child)
			continue;
		command->child = 0;
		command->status = status;
	}
}

static void list_descendants(struct wp_tids *pids)
{
	if (wp_children_list_all(pids, getpid(), DESCENDANTS_MAX))
		pids->len = 0;
}

/* Send SIG to all descendants; returns how many there are. */
static size_t signal_all(int sig)
{
	struct wp_tids pids = WP_TIDS_INIT;
	size_t n;

	list_descendants(&pids);
	for (size_t i = 0; i < pids.len; i++)
		kill(pids.v[i], sig);
	n = pids.len;
	wp_tids_clear(&pids);
	return n;
}

/* Sleep until UNTIL_NS, the end of a child, or a signal, which the descendants
 * get too. */
static void wait_until(struct command *command, uint64_t until_ns)
{
	uint64_t now = wp_clock_ns();
	uint64_t ns = until_ns > now ? until_ns - now : 0;
	const struct timespec ts = { (time_t)(ns / WP_NS_PER_S),
				     (long)(ns % WP_NS_PER_S) };
	siginfo_t info;
	int sig = sigtimedwait(&command->signals, &info, &ts);

	/* The terminal (SI_KERNEL) signals the descendants itself. */
	if (sig > 0 && sig != SIGCHLD && info.si_code != SI_KERNEL)
		signal_all(sig);
	reap(command);
}

static int by_tid(const void *a, const void *b)
{
	const struct thread_slices *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int read_slices(struct thread_slices **v, size_t *len, size_t *cap,
		       pid_t pid)
{
	struct wp_tids tids = WP_TIDS_INIT;
	struct wp_process process = WP_PROCESS_INIT;
	struct wp_schedstat now;
	char path[64], text[256];
	int rc = 0;

	if (wp_process_open(&process, pid, NULL) ||
	    wp_process_list_threads(&process, &tids))
		goto out;
	rc = WP_VEC_ROOM(*v, *len, *cap, tids.len);
	for (size_t i = 0; i < tids.len && !rc; i++) {
		ssize_t n;

		snprintf(path, sizeof(path), "%d/schedstat", tids.v[i]);
		n = wp_io_read_at(process.task_fd, path, text, sizeof(text));
		if (n > 0 && !wp_schedstat_parse(&now, text, (size_t)n))
			(*v)[(*len)++] = (struct thread_slices){ tids.v[i],
								 now.slices };
	}
out:
	wp_tids_clear(&tids);
	wp_process_clear(&process);
	return rc;
}

/* A hash of the threads that have not run since the last call; 0: none. */
static uint64_t hash_still_threads(struct command *command)
{
	struct wp_tids pids = WP_TIDS_INIT;
	struct thread_slices *v = NULL;
	size_t len = 0, cap = 0;
	uint64_t hash = 0;

	list_descendants(&pids);
	for (size_t i = 0; i < pids.len; i++)
		if (read_slices(&v, &len, &cap, pids.v[i]))
			break;
	if (len)
		qsort(v, len, sizeof(*v), by_tid);
	for (size_t i = 0; i < len; i++) {
		const struct thread_slices *was =
			command->nthreads ?
				bsearch(&v[i], command->threads,
					command->nthreads, sizeof(*v), by_tid) :
				NULL;

		if (was && was->slices == v[i].slices)
			hash = wp_hash_bytes(hash + 1, &v[i], sizeof(v[i]));
	}
	free(command->threads);
	command->threads = v;
	command->nthreads = len;
	wp_tids_clear(&pids);
	return hash;
}

/* Sample all descendants into SNAPSHOT, and build its graph.  0; -ESRCH when
 * none could be sampled; -ENOMEM. */
static int sample_descendants(struct wp_snapshot *snapshot)
{
	struct wp_tids pids = WP_TIDS_INIT;
	size_t n = 0;
	int rc = 0;

	snapshot->dump.time_ns = wp_clock_utc_ns();
	list_descendants(&pids);
	for (size_t i = 0; i < pids.len && i < DUMPED_MAX && rc != -ENOMEM;
	     i++) {
		struct wp_err err = WP_ERR_INIT;

		rc = wp_snapshot_add(snapshot, pids.v[i], false, &err);
		n += rc == 0;
	}
	if (pids.len > DUMPED_MAX)
		wp_say("wallprof: %zu processes; the dump has the first %d",
		       pids.len, DUMPED_MAX);
	wp_tids_clear(&pids);
	if (rc != -ENOMEM)
		rc = n ? wp_snapshot_follow(snapshot) : -ESRCH;
	if (!rc) {
		wp_snapshot_finish(snapshot);
		rc = wp_graph_build(&snapshot->dump);
	}
	wp_say_unnamed(snapshot->nunnamed, snapshot->unnamed_why);
	return rc;
}

static bool is_deadlocked(struct command *command, char *why, size_t size)
{
	struct wp_snapshot snapshot = wp_cmd_dump_snapshot(command->options);
	struct wp_sampler_options options = command->options->sampler;
	enum wp_verdict verdict;
	bool yes;

	/* Threads in a deadlock wait, and those need no stop. */
	options.stop = WP_STOP_NEVER;
	snapshot.options = &options;
	snapshot.stop_peers = false;
	yes = !sample_descendants(&snapshot) &&
	      !wp_verdict_find(&snapshot.dump, &verdict, why, size) &&
	      verdict == WP_VERDICT_DEADLOCK;
	wp_snapshot_clear(&snapshot);
	return yes;
}

/* Called once a second, and costs one read per thread.  The command is sampled
 * only when threads stand still that did not at the last check. */
static void check_deadlock(struct command *command)
{
	uint64_t hash = hash_still_threads(command), now = wp_clock_ns();
	char why[512];

	if (!hash || hash == command->checked_hash ||
	    now < command->next_check_ns)
		return;
	command->checked_hash = hash;
	if (is_deadlocked(command, why, sizeof(why)))
		snprintf(command->why, sizeof(command->why),
			 "deadlock after %.0f s: "
			 "%s",
			 (double)(now - command->start_ns) / 1e9, why);
	command->next_check_ns = wp_clock_ns() +
				 CHECK_SHARE * (wp_clock_ns() - now);
}

/* Wait until the command ends or is to be ended. */
static void await_end(struct command *command)
{
	uint64_t timeout_ns = command->options->timeout_ns,
		 now = command->start_ns;
	uint64_t end_ns = timeout_ns ? now + timeout_ns : UINT64_MAX;
	uint64_t check_ns = command->options->exit_on_deadlock ?
				    now + CHECK_NS :
				    UINT64_MAX;

	reap(command);
	while (command->child && !command->why[0]) {
		uint64_t next_ns = end_ns < check_ns ? end_ns : check_ns;

		/* sigtimedwait(2) refuses UINT64_MAX. */
		if (next_ns > now + 3600 * WP_NS_PER_S)
			next_ns = now + 3600 * WP_NS_PER_S;
		wait_until(command, next_ns);
		now = wp_clock_ns();
		if (command->child && now >= end_ns)
			snprintf(command->why, sizeof(command->why),
				 "time is up after %.*f s",
				 timeout_ns % WP_NS_PER_S ? 3 : 0,
				 (double)timeout_ns / 1e9);
		else if (command->child && now >= check_ns) {
			check_deadlock(command);
			check_ns = wp_clock_ns() + CHECK_NS;
		}
	}
}

static void write_dump(struct command *command)
{
	struct wp_snapshot snapshot = wp_cmd_dump_snapshot(command->options);
	struct wp_err err = WP_ERR_INIT;
	int rc;

	rc = sample_descendants(&snapshot);
	if (rc == -ESRCH)
		wp_err_set(&err, rc,
			   "nothing to dump: the command has just "
			   "ended or may not be looked at");
	else if (rc)
		wp_err_set(&err, rc, "no dump: %s", strerror(-rc));
	else if (command->out.stream)
		rc = wp_output_file_commit(
			&command->out,
			wp_cmd_dump_write(&snapshot, command->options,
					  command->out.stream),
			&err);
	else
		rc = wp_cmd_dump_write(&snapshot, command->options, stderr);
	if (rc)
		wp_say("wallprof: %s", err.msg[0] ? err.msg : strerror(-rc));
	wp_snapshot_clear(&snapshot);
}

/* Send SIGTERM to all descendants and, after some time, SIGKILL. */
static void end_all(struct command *command)
{
	uint64_t until_ns = wp_clock_ns() + command->options->kill_after_ns;

	signal_all(SIGTERM);
	/* A stopped process acts on SIGTERM when it continues. */
	signal_all(SIGCONT);
	while (signal_all(0) && wp_clock_ns() < until_ns)
		wait_until(command, wp_clock_ns() + 20 * WP_NS_PER_MS);
	until_ns = wp_clock_ns() + KILL_NS;
	while (signal_all(SIGKILL) && wp_clock_ns() < until_ns)
		wait_until(command, wp_clock_ns() + 20 * WP_NS_PER_MS);
	if (signal_all(0))
		wp_say("wallprof: %zu processes do not end", signal_all(0));
}

static int start_command(struct command *command, struct wp_err *err)
{
	const struct wp_options *o = command->options;
	int rc = o->output ?
			 wp_output_file_open(&command->out, o->output, err) :
			 0;
	struct wp_child child = WP_CHILD_INIT;
	sigset_t mask;

	if (rc)
		return WP_EXIT_NOTHING;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	block_signals(command, &mask);
	rc = wp_child_hold(&child, o->command, &mask, err);
	if (!rc)
		rc = wp_child_exec(&child, err);
	command->child = child.pid;
	signal(SIGPIPE, SIG_IGN);
	command->start_ns = wp_clock_ns();
	if (!rc)
		return WP_EXIT_WHOLE;
	return rc == -ENOENT ? WP_EXIT_NOT_FOUND : WP_EXIT_CANNOT_RUN;
}

int wp_cmd_timeout(const struct wp_options *options)
{
	struct command command = { .options = options,
				   .out = WP_OUTPUT_FILE_INIT };
	struct wp_err err = WP_ERR_INIT;
	int status = start_command(&command, &err);

	if (status) {
		wp_say("wallprof: %s", err.msg);
		wp_output_file_discard(&command.out);
		return status;
	}
	await_end(&command);
	if (command.why[0]) {
		wp_say("wallprof: %s: %s", options->command[0], command.why);
		wp_limits_raise();
		write_dump(&command);
		end_all(&command);
		status = WP_EXIT_TIMEOUT;
	} else {
		status = WIFSIGNALED(command.status) ?
				 128 + WTERMSIG(command.status) :
				 WEXITSTATUS(command.status);
	}
	wp_output_file_discard(&command.out);
	free(command.threads);
	return status;
}
