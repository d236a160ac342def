/* SPDX-License-Identifier: Apache-2.0 */
/* timeout_worker.c - see timeout_worker.h.
 *
 * The worker is the subreaper of the command's orphans (prctl(2)), so that every
 * process that the command started is its descendant when the time is up.
 */
#include "timeout_worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

#include "child.h"
#include "cmd_dump.h"
#include "descendants.h"
#include "exit_status.h"
#include "messages.h"
#include "output_file.h"
#include "signals.h"
#include "worker.h"
#include "wallprof/clock.h"
#include "wallprof/graph.h"
#include "wallprof/hash.h"
#include "wallprof/procfs.h"
#include "wallprof/tracer.h"
#include "wallprof/vec.h"

enum {
	/* Most descendants that are dumped. */
	DUMPED_MAX = 256,
	/* Checks for a deadlock take at most one part in so many of the time. */
	CHECK_SHARE = 50,
	/* While the same threads stand still, each check comes after twice the time of
	 * the one before, doubled so often. */
	CHECK_DOUBLINGS = 4,
	/* Percent of the time for a dump after which functions are not named any
	 * more, and after which no more processes are looked at. */
	NAMED_SHARE = 60,
	LOOKED_SHARE = 80,
};
#define CHECK_NS WP_NS_PER_S

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
	/* A dump was ordered; no more processes are looked at from END_NS on. */
	bool ordered;
	uint64_t end_ns;
	/* The supervisor knows of a deadlock. */
	bool deadlocked;
	/* For deadlock checks: threads[0..nthreads) a second ago, by tid; a
	 * hash of those that had not run at the last check; how many checks before
	 * that had the same; and the time before which there is no next check, and
	 * none with the same hash. */
	struct thread_slices *threads;
	size_t nthreads;
	uint64_t checked_hash;
	unsigned int nchecked;
	uint64_t next_check_ns;
	uint64_t same_check_ns;
};

const int wp_timeout_signals[] = { SIGINT, SIGQUIT, SIGTERM,
				   SIGHUP, SIGUSR1, SIGUSR2 };

static void list_signals(struct command *command)
{
	sigemptyset(&command->signals);
	sigaddset(&command->signals, SIGCHLD);
	sigaddset(&command->signals, WP_TIMEOUT_ORDER);
	for (size_t i = 0; i < WP_TIMEOUT_NSIGNALS; i++)
		sigaddset(&command->signals, wp_timeout_signals[i]);
}

static void tell(int what, int value, const char *text)
{
	struct wp_timeout_packet packet = { .value = value };

	packet.what = what;
	snprintf(packet.text, sizeof(packet.text), "%s", text);
	wp_worker_send(&packet, sizeof(packet));
	kill(getppid(), SIGCHLD);
}

/* Reap the command and its orphans; a thread that stops only now for the dump that was
 * made goes on. */
static void reap(struct command *command)
{
	struct wp_tracer tracer = WP_TRACER_INIT;

	tracer.child = command->child;
	wp_tracer_wait(&tracer, 0);
	if (!tracer.child_ended)
		return;
	command->child = 0;
	command->status = tracer.child_status;
	/* Else it is told when nothing is left to be done. */
	if (command->ordered)
		tell(WP_TIMEOUT_ENDED, command->status, "");
}

/* Sleep until UNTIL_NS, the end of a child, an order, or a signal that the command
 * sent its parent, which the descendants get. */
static void wait_until(struct command *command, uint64_t until_ns)
{
	siginfo_t info;
	int sig = wp_signals_wait(&command->signals, until_ns, &info);

	if (sig == WP_TIMEOUT_ORDER)
		command->ordered |= info.si_pid == getppid();
	else if (sig > 0 && sig != SIGCHLD && info.si_code != SI_KERNEL)
		wp_descendants_signal(getpid(), 0, sig);
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

	wp_descendants_list(&pids, getpid());
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

/* Sample all descendants into SNAPSHOT, and build its graph.  0; -ENOMEM; when none
 * could be sampled: -EPERM when some may not be, with the first's reason in ERR, or
 * -ESRCH. */
static int sample_descendants(struct command *command,
			      struct wp_snapshot *snapshot, struct wp_err *err)
{
	struct wp_tids pids = WP_TIDS_INIT;
	size_t n = 0, i = 0;
	int rc = 0;

	snapshot->dump.time_ns = wp_clock_utc_ns();
	wp_descendants_list(&pids, getpid());
	for (; i < pids.len && i < DUMPED_MAX && rc != -ENOMEM &&
	       wp_clock_ns() < command->end_ns;
	     i++) {
		struct wp_err why = WP_ERR_INIT;

		rc = wp_snapshot_add(snapshot, pids.v[i], false, &why);
		n += rc == 0;
		if (rc == -EPERM && !err->code)
			*err = why;
	}
	if (i < pids.len && rc != -ENOMEM && command->ordered)
		wp_say("wallprof: %zu processes; the dump has the first %zu%s",
		       pids.len, i, i < DUMPED_MAX ? " (--dump-time)" : "");
	wp_tids_clear(&pids);
	if (rc != -ENOMEM)
		rc = n	       ? wp_snapshot_follow(snapshot) :
		     err->code ? err->code :
				 -ESRCH;
	if (!rc) {
		wp_snapshot_finish(snapshot);
		rc = wp_graph_build(&snapshot->dump);
	}
	return rc;
}

/* 1 with WHY, 0, or -errno: it could not be found out. */
static int is_deadlocked(struct command *command, char *why, size_t size)
{
	struct wp_snapshot snapshot = wp_cmd_dump_snapshot(command->options);
	struct wp_sampler_options options = command->options->sampler;
	struct wp_err err = WP_ERR_INIT;
	enum wp_verdict verdict;
	int rc;

	/* Threads in a deadlock wait, and those need no stop. */
	options.stop = WP_STOP_NEVER;
	snapshot.options = &options;
	snapshot.stop_peers = false;
	rc = sample_descendants(command, &snapshot, &err);
	if (!rc)
		rc = wp_verdict_find(&snapshot.dump, &verdict, why, size);
	wp_snapshot_clear(&snapshot);
	return rc ? rc : verdict == WP_VERDICT_DEADLOCK;
}

/* The threads of HASH were checked at NOW. */
static void note_check(struct command *command, uint64_t hash, uint64_t now)
{
	if (hash != command->checked_hash)
		command->nchecked = 0;
	command->checked_hash = hash;
	command->same_check_ns = now + (CHECK_NS << command->nchecked);
	if (command->nchecked < CHECK_DOUBLINGS)
		command->nchecked++;
}

/* Called once a second, and costs one read per thread.  The command is sampled
 * when threads stand still that did not at the last check; and less and less often
 * while the same do: a thread that signals wake never stands still, and may get into
 * a deadlock with one that has been still for long. */
static void check_deadlock(struct command *command)
{
	uint64_t hash = hash_still_threads(command), now = wp_clock_ns();
	char why[512], text[600];
	int rc;

	if (!hash || now < command->next_check_ns ||
	    (hash == command->checked_hash && now < command->same_check_ns))
		return;
	rc = is_deadlocked(command, why, sizeof(why));
	if (rc >= 0)
		note_check(command, hash, now);
	if (rc > 0) {
		command->deadlocked = true;
		snprintf(text, sizeof(text), "deadlock after %.0f s: %s",
			 (double)(now - command->start_ns) / 1e9, why);
		tell(WP_TIMEOUT_DEADLOCKED, 0, text);
	}
	command->next_check_ns = wp_clock_ns() +
				 CHECK_SHARE * (wp_clock_ns() - now);
}

/* The order came before the command's end, which may be seen first. */
static bool is_ordered(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, WP_TIMEOUT_ORDER);
}

/* Wait until the command ends or a dump is ordered. */
static void await_order(struct command *command)
{
	uint64_t check_ns = command->options->exit_on_deadlock ?
				    command->start_ns + CHECK_NS :
				    UINT64_MAX;

	reap(command);
	while ((command->child || is_ordered()) && !command->ordered) {
		uint64_t now = wp_clock_ns();
		uint64_t next_ns = now + 3600 * WP_NS_PER_S;

		/* sigtimedwait(2) refuses UINT64_MAX. */
		wait_until(command, check_ns < next_ns ? check_ns : next_ns);
		if (!command->child || command->deadlocked ||
		    wp_clock_ns() < check_ns)
			continue;
		check_deadlock(command);
		check_ns = wp_clock_ns() + CHECK_NS;
	}
}

static void on_time(int sig)
{
	(void)sig;
	wp_interrupts += 2;
}

/* Some of the time for a dump is for names, the rest to look and to write. */
static void limit_dump(struct command *command)
{
	/* A write that waits for its reader goes on. */
	struct sigaction act = { .sa_handler = on_time,
				 .sa_flags = SA_RESTART };
	uint64_t ns = command->options->dump_time_ns;
	uint64_t us = ns / WP_NS_PER_US / 100 * NAMED_SHARE + 1;
	const struct itimerval timer = { .it_value = { (time_t)(us / 1000000),
						       (long)(us % 1000000) } };
	sigset_t set;

	command->end_ns = wp_clock_ns() + ns / 100 * LOOKED_SHARE;
	sigaction(SIGALRM, &act, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void write_dump(struct command *command)
{
	struct wp_snapshot snapshot = wp_cmd_dump_snapshot(command->options);
	struct wp_err err = WP_ERR_INIT, why = WP_ERR_INIT;
	/* The time for names ran out before the dump was written, which may take long. */
	bool were_names_cut;
	int rc;

	rc = sample_descendants(command, &snapshot, &why);
	wp_cmd_dump_say_losses(&snapshot);
	were_names_cut = wp_interrupts;
	if (rc == -ESRCH)
		wp_err_set(&err, rc,
			   "nothing to dump: the command has just ended");
	else if (rc == -EPERM)
		wp_err_set(&err, rc, "nothing to dump: %s", why.msg);
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
	/* There may be nothing to write in it. */
	wp_output_file_discard(&command->out);
	if (were_names_cut)
		wp_say("wallprof: the dump was to be made in %.3g s "
		       "(--dump-time): some addresses have no better name than "
		       "module and offset",
		       (double)command->options->dump_time_ns / 1e9);
	wp_snapshot_clear(&snapshot);
}

static int start_command(struct command *command, struct wp_err *err)
{
	const struct wp_options *o = command->options;
	struct wp_child child = WP_CHILD_INIT;
	int rc;

	/* A command that has started goes on, whatever becomes of wallprof; no other is
	 * started that nobody would end. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (wp_worker_is_orphan())
		_exit(WP_EXIT_OWN_FAILURE);
	/* May wait for a pipe's reader, or a file server. */
	if (o->output && wp_output_file_open(&command->out, o->output, err))
		return WP_EXIT_OWN_FAILURE;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* The command is to end by it, as under timeout(1), whoever ignores it. */
	signal(SIGTERM, SIG_DFL);
	rc = wp_child_hold(&child, o->command, err);
	if (rc)
		return WP_EXIT_OWN_FAILURE;
	/* Its first act may be to kill its parent. */
	tell(WP_TIMEOUT_STARTED, child.pid, command->out.temporary);
	rc = wp_child_exec(&child, err);
	command->child = child.pid;
	command->start_ns = wp_clock_ns();
	if (!rc)
		return WP_EXIT_WHOLE;
	return rc == -ENOENT ? WP_EXIT_NOT_FOUND : WP_EXIT_CANNOT_RUN;
}

int wp_timeout_work(const struct wp_options *options, int text_fd)
{
	struct command command = { .options = options,
				   .end_ns = UINT64_MAX,
				   .out = WP_OUTPUT_FILE_INIT };
	struct wp_err err = WP_ERR_INIT;
	int status = start_command(&command, &err);

	if (status) {
		wp_say("wallprof: %s", err.msg);
		wp_output_file_discard(&command.out);
		/* As waitpid(2) would give it. */
		tell(WP_TIMEOUT_ENDED, status << 8, "");
		return status;
	}
	wp_worker_part(true);
	dup2(text_fd, STDERR_FILENO);
	signal(SIGPIPE, SIG_IGN);
	list_signals(&command);
	await_order(&command);
	if (command.ordered) {
		if (options->dump_time_ns) {
			limit_dump(&command);
			wp_limits_raise();
			write_dump(&command);
			tell(WP_TIMEOUT_DUMPED, 0, "");
		}
		/* See wp_tracer_clear. */
		sigprocmask(SIG_BLOCK, &command.signals, NULL);
		reap(&command);
		/* Until it is ended, too. */
		sigdelset(&command.signals, WP_TIMEOUT_ORDER);
		for (;;)
			wait_until(&command,
				   wp_clock_ns() + 3600 * WP_NS_PER_S);
	}
	wp_output_file_discard(&command.out);
	free(command.threads);
	tell(WP_TIMEOUT_ENDED, command.status, "");
	return WP_EXIT_WHOLE;
}
