/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_timeout.c - see cmd_timeout.h.
 *
 * wallprof is made the reaper of orphans, so that whatever the command started
 * is still found below it when the time is up.
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
	/* Descendants that are dumped, and signalled. */
	DUMPED_MAX = 256,
	DESCENDANTS_MAX = 65536,
	/* Looks for a deadlock take at most this part of the time. */
	LOOK_SHARE = 50,
};
#define WATCH_NS WP_NS_PER_S
/* A process that SIGKILL does not end in this time is stuck in the kernel, or
 * not ours to kill. */
#define KILL_NS (5 * WP_NS_PER_S)

struct seen {
	pid_t tid;
	uint64_t slices;
};

struct job {
	const struct wp_options *options;
	/* 0 once reaped. */
	pid_t child;
	/* As waitpid(2) gives it. */
	int status;
	uint64_t start_ns;
	/* What is waited for with sigtimedwait(2). */
	sigset_t signals;
	struct wp_output_file out;
	/* Why the command is to be ended; "" while it is not. */
	char why[600];
	/* Of the watch for deadlocks: the threads a second ago, by tid; which
	 * of them had not run when they were looked at last, as a hash; and
	 * when they may be looked at again. */
	struct seen *seen;
	size_t nseen;
	uint64_t looked_hash;
	uint64_t next_look_ns;
};

static const int forwarded[] = { SIGINT, SIGQUIT, SIGTERM,
				 SIGHUP, SIGUSR1, SIGUSR2 };

/* From here on signals are waited for, not taken; *RET_OLD is the mask that the
 * command is to have. */
static void block_signals(struct job *job, sigset_t *ret_old)
{
	sigemptyset(&job->signals);
	sigaddset(&job->signals, SIGCHLD);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(*forwarded); i++)
		sigaddset(&job->signals, forwarded[i]);
	sigprocmask(SIG_BLOCK, &job->signals, ret_old);
}

/* The command, and orphans of its, which nobody else would reap. */
static void reap(struct job *job)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != job->child)
			continue;
		job->child = 0;
		job->status = status;
	}
}

static void list_descendants(struct wp_tids *pids)
{
	if (wp_children_list_all(pids, getpid(), DESCENDANTS_MAX))
		pids->len = 0;
}

/* Signal SIG to all below us; how many there are. */
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

/* Sleep until UNTIL_NS, the end of a child, or a signal, which is handed on. */
static void wait_until(struct job *job, uint64_t until_ns)
{
	uint64_t now = wp_clock_ns();
	uint64_t ns = until_ns > now ? until_ns - now : 0;
	const struct timespec ts = { (time_t)(ns / WP_NS_PER_S),
				     (long)(ns % WP_NS_PER_S) };
	siginfo_t info;
	int sig = sigtimedwait(&job->signals, &info, &ts);

	/* What the terminal sends (SI_KERNEL) they have got themselves. */
	if (sig > 0 && sig != SIGCHLD && info.si_code != SI_KERNEL)
		signal_all(sig);
	reap(job);
}

static int by_tid(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int see_process(struct seen **v, size_t *len, size_t *cap, pid_t pid)
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
			(*v)[(*len)++] = (struct seen){ tids.v[i], now.slices };
	}
out:
	wp_tids_clear(&tids);
	wp_process_clear(&process);
	return rc;
}

/* A hash of the threads that have not run since the last call; 0: none. */
static uint64_t hash_still(struct job *job)
{
	struct wp_tids pids = WP_TIDS_INIT;
	struct seen *v = NULL;
	size_t len = 0, cap = 0;
	uint64_t hash = 0;

	list_descendants(&pids);
	for (size_t i = 0; i < pids.len; i++)
		if (see_process(&v, &len, &cap, pids.v[i]))
			break;
	if (len)
		qsort(v, len, sizeof(*v), by_tid);
	for (size_t i = 0; i < len; i++) {
		const struct seen *was = job->nseen ?
						 bsearch(&v[i], job->seen,
							 job->nseen, sizeof(*v),
							 by_tid) :
						 NULL;

		if (was && was->slices == v[i].slices)
			hash = wp_hash_bytes(hash + 1, &v[i], sizeof(v[i]));
	}
	free(job->seen);
	job->seen = v;
	job->nseen = len;
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

static bool is_deadlocked(struct job *job, char *why, size_t size)
{
	struct wp_snapshot snapshot = wp_cmd_dump_snapshot(job->options);
	struct wp_sampler_options options = job->options->sampler;
	enum wp_verdict verdict;
	bool yes;

	/* A deadlock is among those that wait. */
	options.stop = WP_STOP_NEVER;
	snapshot.options = &options;
	snapshot.stop_peers = false;
	yes = !sample_descendants(&snapshot) &&
	      !wp_verdict_find(&snapshot.dump, &verdict, why, size) &&
	      verdict == WP_VERDICT_DEADLOCK;
	wp_snapshot_clear(&snapshot);
	return yes;
}

/* Once a second.  It costs a read per thread; a look is taken only when
 * threads stand still that did not when it was looked at last. */
static void watch(struct job *job)
{
	uint64_t hash = hash_still(job), now = wp_clock_ns();
	char why[512];

	if (!hash || hash == job->looked_hash || now < job->next_look_ns)
		return;
	job->looked_hash = hash;
	if (is_deadlocked(job, why, sizeof(why)))
		snprintf(job->why, sizeof(job->why),
			 "deadlock after %.0f s: "
			 "%s",
			 (double)(now - job->start_ns) / 1e9, why);
	job->next_look_ns = wp_clock_ns() + LOOK_SHARE * (wp_clock_ns() - now);
}

/* Until the command ends or is to be ended. */
static void run(struct job *job)
{
	uint64_t timeout_ns = job->options->timeout_ns, now = job->start_ns;
	uint64_t end_ns = timeout_ns ? now + timeout_ns : UINT64_MAX;
	uint64_t watch_ns = job->options->exit_on_deadlock ? now + WATCH_NS :
							     UINT64_MAX;

	reap(job);
	while (job->child && !job->why[0]) {
		uint64_t next_ns = end_ns < watch_ns ? end_ns : watch_ns;

		/* sigtimedwait wants a time that is not for ever. */
		if (next_ns > now + 3600 * WP_NS_PER_S)
			next_ns = now + 3600 * WP_NS_PER_S;
		wait_until(job, next_ns);
		now = wp_clock_ns();
		if (job->child && now >= end_ns)
			snprintf(job->why, sizeof(job->why),
				 "time is up after %.*f s",
				 timeout_ns % WP_NS_PER_S ? 3 : 0,
				 (double)timeout_ns / 1e9);
		else if (job->child && now >= watch_ns) {
			watch(job);
			watch_ns = wp_clock_ns() + WATCH_NS;
		}
	}
}

static void dump(struct job *job)
{
	struct wp_snapshot snapshot = wp_cmd_dump_snapshot(job->options);
	struct wp_err err = WP_ERR_INIT;
	int rc;

	rc = sample_descendants(&snapshot);
	if (rc == -ESRCH)
		wp_err_set(&err, rc,
			   "nothing to dump: the command has just "
			   "ended or may not be looked at");
	else if (rc)
		wp_err_set(&err, rc, "no dump: %s", strerror(-rc));
	else if (job->out.stream)
		rc = wp_output_file_commit(&job->out,
					   wp_cmd_dump_write(&snapshot,
							     job->options,
							     job->out.stream),
					   &err);
	else
		rc = wp_cmd_dump_write(&snapshot, job->options, stderr);
	if (rc)
		wp_say("wallprof: %s", err.msg[0] ? err.msg : strerror(-rc));
	wp_snapshot_clear(&snapshot);
}

/* SIGTERM, some time, SIGKILL. */
static void end_all(struct job *job)
{
	uint64_t until_ns = wp_clock_ns() + job->options->kill_after_ns;

	signal_all(SIGTERM);
	/* One that is stopped takes it when it goes on. */
	signal_all(SIGCONT);
	while (signal_all(0) && wp_clock_ns() < until_ns)
		wait_until(job, wp_clock_ns() + 20 * WP_NS_PER_MS);
	until_ns = wp_clock_ns() + KILL_NS;
	while (signal_all(SIGKILL) && wp_clock_ns() < until_ns)
		wait_until(job, wp_clock_ns() + 20 * WP_NS_PER_MS);
	if (signal_all(0))
		wp_say("wallprof: %zu processes do not end", signal_all(0));
}

static int start(struct job *job, struct wp_err *err)
{
	const struct wp_options *o = job->options;
	int rc = o->output ? wp_output_file_open(&job->out, o->output, err) : 0;
	sigset_t mask;

	if (rc)
		return WP_EXIT_NOTHING;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	block_signals(job, &mask);
	rc = wp_child_start(&job->child, o->command, &mask, err);
	signal(SIGPIPE, SIG_IGN);
	job->start_ns = wp_clock_ns();
	if (!rc)
		return WP_EXIT_WHOLE;
	return rc == -ENOENT ? WP_EXIT_NOT_FOUND : WP_EXIT_CANNOT_RUN;
}

int wp_cmd_timeout(const struct wp_options *options)
{
	struct job job = { .options = options, .out = WP_OUTPUT_FILE_INIT };
	struct wp_err err = WP_ERR_INIT;
	int status = start(&job, &err);

	if (status) {
		wp_say("wallprof: %s", err.msg);
		wp_output_file_discard(&job.out);
		return status;
	}
	run(&job);
	if (job.why[0]) {
		wp_say("wallprof: %s: %s", options->command[0], job.why);
		wp_limits_raise();
		dump(&job);
		end_all(&job);
		status = WP_EXIT_TIMEOUT;
	} else {
		status = WIFSIGNALED(job.status) ? 128 + WTERMSIG(job.status) :
						   WEXITSTATUS(job.status);
	}
	wp_output_file_discard(&job.out);
	free(job.seen);
	return status;
}
