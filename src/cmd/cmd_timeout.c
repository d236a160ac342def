/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_timeout.c - see cmd_timeout.h.
 *
 * This process holds the deadline, so it does nothing that may block: its worker
 * (timeout_worker.h) is the command's parent and looks at it, others write.
 */
#include "cmd_timeout.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "descendants.h"
#include "exit_status.h"
#include "messages.h"
#include "signals.h"
#include "slow_writer.h"
#include "timeout_worker.h"
#include "worker.h"
#include "wallprof/clock.h"
#include "wallprof/io.h"
#include "wallprof/procfs.h"
#include "wallprof/utf8.h"

/* A process that lives so long after SIGKILL is stuck in the kernel, or wallprof
 * may not kill it. */
#define KILL_NS (5 * WP_NS_PER_S)
/* What is still to be written when all has ended has so long, and the removal of a
 * file: past the time for the dump wallprof is to end within half a second. */
#define WRITER_NS (300 * WP_NS_PER_MS)
#define REMOVAL_NS (100 * WP_NS_PER_MS)
/* Between two looks at what is to end. */
#define LOOK_NS (20 * WP_NS_PER_MS)
/* Between two looks at whether the command has ended, of which the worker knows at
 * once unless it is stuck; and one that is known to have ended for so long has no
 * status. */
#define END_LOOK_NS (WP_NS_PER_S / 2)
#define REAPED_NS WP_NS_PER_S

/* Descriptors that a dump takes at the least. */
enum { DUMP_FILES = 16 };
static const char no_room[] =
	"wallprof: no dump, and no look for deadlocks: it may not have 16 more "
	"files open: raise the limit (ulimit -n)\n";

struct timed {
	const struct wp_options *options;
	struct wp_worker worker;
	/* Too few descriptors for a worker: the command is a child of this process. */
	bool is_alone;
	/* This process has, or may get, children that it did not start. */
	bool has_others;
	/* The command; 0: not started, or it has ended. */
	pid_t child;
	/* Status by waitpid(2), valid if ENDED. */
	int status;
	bool ended;
	/* A look has found it ended, and the worker has not told. */
	bool seen_ended;
	uint64_t start_ns;
	/* Once its time is up: when the dump, and what is written, ends. */
	uint64_t until_ns;
	/* For sigtimedwait(2). */
	sigset_t signals;
	/* What the worker says, and its dump where that is for no file. */
	int text_fd;
	/* Its unfinished file for the dump; "": none. */
	char temporary[PATH_MAX];
	bool dumped;
	/* The user wants it ended at once. */
	bool interrupted;
	/* The command had not ended when SIGKILL was sent to it. */
	bool killed;
	/* What writes to standard error; 0: nothing. */
	pid_t writer;
	/* Why the command is to be ended; "": it is not. */
	char why[700];
};

/* Block all signals but those of a terminal's Ctrl-Z, which the worker inherits: the
 * command may send any to its parent.  List those that are waited for.  *RET_OLD is the
 * mask before. */
static void block_signals(struct timed *t, sigset_t *ret_old)
{
	static const int stopping[] = { SIGTSTP, SIGTTIN, SIGTTOU };
	sigset_t all;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof(stopping) / sizeof(*stopping); i++)
		sigdelset(&all, stopping[i]);
	sigprocmask(SIG_BLOCK, &all, ret_old);
	sigemptyset(&t->signals);
	sigaddset(&t->signals, SIGCHLD);
	for (size_t i = 0; i < WP_TIMEOUT_NSIGNALS; i++)
		sigaddset(&t->signals, wp_timeout_signals[i]);
}

static void note_end(struct timed *t, int status)
{
	t->ended = true;
	t->status = status;
	t->child = 0;
}

/* Of a worker that was killed, the command becomes a child of this process. */
static void reap(struct timed *t)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		/* It may hold a thread. */
		if (WIFSTOPPED(status)) {
			if (pid == t->worker.pid)
				kill(pid, SIGCONT);
		} else if (pid == t->worker.pid) {
			t->worker.pid = 0;
		} else if (pid == t->child) {
			note_end(t, status);
			t->seen_ended = true;
		} else if (pid == t->writer) {
			t->writer = 0;
		}
	}
}

static void take_packets(struct timed *t)
{
	struct wp_timeout_packet packet;
	ssize_t n;

	while ((n = recv(t->worker.sock, &packet, sizeof(packet),
			 MSG_DONTWAIT)) > 0) {
		/* Of one byte: see enum wp_worker_says. */
		if (n != sizeof(packet))
			continue;
		switch (packet.what) {
		case WP_TIMEOUT_STARTED:
			t->child = packet.value;
			memcpy(t->temporary, packet.text, sizeof(t->temporary));
			break;
		case WP_TIMEOUT_ENDED:
			note_end(t, packet.value);
			break;
		case WP_TIMEOUT_DEADLOCKED:
			memcpy(t->why, packet.text, sizeof(t->why) - 1);
			break;
		case WP_TIMEOUT_DUMPED:
			t->dumped = true;
			break;
		}
	}
}

/* Send SIG to the command and all that it started: how many have not ended. */
static size_t signal_all(const struct timed *t, int sig)
{
	size_t n = 0;

	if (t->worker.pid)
		return wp_descendants_signal(t->worker.pid, 0, sig);
	/* Orphans are this process's children (PR_SET_CHILD_SUBREAPER). */
	if (!t->has_others)
		n = wp_descendants_signal(getpid(), t->writer, sig);
	/* With few descriptors nothing can be listed. */
	return n || !t->child ? n : wp_descendants_signal_with(t->child, sig);
}

/* Has any process of the command not ended?  A process whose parent ends while all are
 * listed is in no list, and in the next list among its new parent's children. */
static bool is_any_left(const struct timed *t)
{
	return signal_all(t, 0) || signal_all(t, 0);
}

/* Sleep until UNTIL_NS, news of the worker, or a signal, which the command and what
 * it started get too. */
static void wait_until(struct timed *t, uint64_t until_ns)
{
	siginfo_t info;
	int sig = wp_signals_wait(&t->signals, until_ns, &info);

	if (sig > 0 && sig != SIGCHLD) {
		t->interrupted |= sig != SIGUSR1 && sig != SIGUSR2;
		/* The terminal (SI_KERNEL) signals the others itself. */
		if (info.si_code != SI_KERNEL)
			signal_all(t, sig);
		else if (t->worker.pid)
			wp_descendants_signal_others(t->worker.pid, sig);
	}
	reap(t);
	take_packets(t);
}

/* Where the worker is stuck in a check, it does not reap the command, which two looks then
 * find ended.  If its status is not told, the worker is killed, and the command becomes a
 * child of this process. */
static void look_for_end(struct timed *t)
{
	int status, rc = wp_descendants_status(t->child, &status);

	if (rc == -EBUSY)
		return;
	if (!t->seen_ended)
		t->seen_ended = true;
	else if (!rc)
		note_end(t, status);
	else if (t->worker.pid)
		kill(t->worker.pid, SIGKILL);
}

/* Wait until the command ends or is to be ended. */
static void await_end(struct timed *t)
{
	uint64_t timeout_ns = t->options->timeout_ns;
	uint64_t end_ns = timeout_ns ? t->start_ns + timeout_ns : UINT64_MAX;

	while (!t->ended && !t->why[0] && (t->child || t->worker.pid)) {
		uint64_t look_ns = wp_clock_ns() + END_LOOK_NS;

		wait_until(t, end_ns < look_ns ? end_ns : look_ns);
		if (t->ended || t->why[0])
			break;
		if (wp_clock_ns() >= end_ns)
			snprintf(t->why, sizeof(t->why),
				 "time is up after %.*f s",
				 timeout_ns % WP_NS_PER_S ? 3 : 0,
				 (double)timeout_ns / 1e9);
		else if (wp_clock_ns() >= look_ns)
			look_for_end(t);
	}
}

/* When what writes to standard error is given up at the earliest. */
static uint64_t writers_end(const struct timed *t)
{
	uint64_t least_ns = wp_clock_ns() + WRITER_NS;

	return t->until_ns > least_ns ? t->until_ns : least_ns;
}

/* Wait for what writes to standard error, not past UNTIL_NS. */
static void await_writer(struct timed *t, uint64_t until_ns)
{
	while (t->writer && wp_clock_ns() < until_ns)
		wait_until(t, until_ns);
	if (t->writer > 0)
		kill(t->writer, SIGKILL);
	t->writer = 0;
}

/* Have TEXT and the file FD (-1: none) written behind what was before. */
static void start_writer(struct timed *t, const char *text, int fd)
{
	pid_t pid;

	await_writer(t, t->until_ns);
	pid = wp_slow_writer_start(text, fd);
	t->writer = pid > 0 ? pid : 0;
}

/* Have a line of a message written; one that nobody reads is lost. */
static void say(struct timed *t, const char *text)
{
	char line[1024];

	snprintf(line, sizeof(line) - 1, "wallprof: %s", text);
	wp_utf8_tame(line);
	line[strlen(line) + 1] = '\0';
	line[strlen(line)] = '\n';
	start_writer(t, line, -1);
}

/* Have the worker dump, for as long as it may take, and stay; why the dump is not
 * whole, or "". */
static const char *dump(struct timed *t, uint64_t until_ns)
{
	t->interrupted = false;
	if (t->worker.pid)
		kill(t->worker.pid, WP_TIMEOUT_ORDER);
	while (!t->dumped && !t->interrupted && t->worker.pid &&
	       wp_clock_ns() < until_ns)
		wait_until(t, until_ns);
	if (t->dumped || !t->options->dump_time_ns)
		return "";
	if (t->is_alone)
		return no_room;
	if (t->interrupted)
		return "wallprof: the dump was cut: interrupted\n";
	if (t->worker.pid)
		return "wallprof: the dump was cut: its time is up "
		       "(--dump-time)\n";
	return "wallprof: the dump was cut: what made it was killed\n";
}

/* Send SIGTERM to the command and what it started and, after some time, SIGKILL. */
static void end_all(struct timed *t)
{
	uint64_t until_ns = wp_clock_ns() + t->options->kill_after_ns;
	char text[64];
	size_t n;

	signal_all(t, SIGTERM);
	/* A stopped process acts on SIGTERM when it continues. */
	signal_all(t, SIGCONT);
	while (is_any_left(t) && wp_clock_ns() < until_ns)
		wait_until(t, wp_clock_ns() + LOOK_NS);
	t->killed = !t->ended && !wp_descendants_has_ended(t->child) &&
		    !kill(t->child, SIGKILL);
	until_ns = wp_clock_ns() + KILL_NS;
	while ((signal_all(t, SIGKILL) || is_any_left(t)) &&
	       wp_clock_ns() < until_ns)
		wait_until(t, wp_clock_ns() + LOOK_NS);
	n = signal_all(t, 0);
	snprintf(text, sizeof(text),
		 "processes that do not end, or may not be signalled: %zu", n);
	if (n)
		say(t, text);
}

/* Wait for the command's status, which the worker, unless it is stuck, tells soon. */
static void await_status(struct timed *t)
{
	uint64_t until_ns = wp_clock_ns() + REAPED_NS;

	while (!t->killed && !t->ended && t->child &&
	       wp_clock_ns() < until_ns) {
		look_for_end(t);
		wait_until(t, wp_clock_ns() + LOOK_NS);
	}
}

/* End the worker, which is nobody's parent any more, and remove its file. */
static void end_worker(struct timed *t)
{
	uint64_t until_ns;
	pid_t pid;

	if (t->worker.pid)
		kill(t->worker.pid, SIGKILL);
	if (t->dumped || !t->temporary[0])
		return;
	/* Its file server may not answer, either. */
	pid = fork();
	if (pid == 0) {
		close_range(0, ~0U, 0);
		unlink(t->temporary);
		_exit(EXIT_SUCCESS);
	}
	t->writer = pid > 0 ? pid : 0;
	until_ns = wp_clock_ns() + REMOVAL_NS;
	while (t->writer && wp_clock_ns() < until_ns)
		wait_until(t, until_ns);
}

/* The job dies first; then there is time to write what was found out. */
static void time_out(struct timed *t)
{
	const char *cut;
	char text[1000];

	t->until_ns = wp_clock_ns() + t->options->dump_time_ns;
	snprintf(text, sizeof(text), "%s: %s", t->options->command[0], t->why);
	say(t, text);
	cut = dump(t, t->until_ns);
	end_all(t);
	await_status(t);
	t->until_ns = writers_end(t);
	if (*cut || lseek(t->text_fd, 0, SEEK_END) > 0)
		start_writer(t, cut, t->text_fd);
	await_writer(t, t->until_ns);
	end_worker(t);
}

/* Did the command end by SIGKILL, be it another's? */
static bool was_killed(const struct timed *t)
{
	return t->killed || (t->ended && WIFSIGNALED(t->status) &&
			     WTERMSIG(t->status) == SIGKILL);
}

/* The worker's first packet is there: 1; it has ended without one: 0; else -1. */
static int has_started(const struct timed *t)
{
	struct wp_timeout_packet packet;
	ssize_t n;

	/* One byte: see enum wp_worker_says. */
	while ((n = recv(t->worker.sock, &packet, sizeof(packet),
			 MSG_PEEK | MSG_DONTWAIT)) == 1)
		(void)!recv(t->worker.sock, &packet, 1, 0);
	return n == sizeof(packet) ? 1 : n == 0 ? 0 : -1;
}

/* Wait until the command has been started, or its output file is not to be had.  0, or
 * a signal that ends wallprof: one that the command sends comes later. */
static int await_start(struct timed *t)
{
	sigset_t ending = t->signals;
	struct pollfd fds[2] = { { t->worker.sock, POLLIN, 0 } };
	int sig = 0;

	sigdelset(&ending, SIGCHLD);
	fds[1] = (struct pollfd){ signalfd(-1, &ending, SFD_CLOEXEC), POLLIN,
				  0 };
	while (!sig && has_started(t) < 0) {
		poll(fds, 2, -1);
		if (fds[1].revents && has_started(t) < 0)
			sig = wp_signals_wait(&ending, 0, &(siginfo_t){ 0 });
	}
	if (fds[1].fd >= 0)
		close(fds[1].fd);
	return sig > 0 ? sig : 0;
}

/* The command is worth more than its dump.  0, or an exit status. */
static int begin_alone(struct timed *t)
{
	t->is_alone = true;
	t->worker.sock = t->text_fd = -1;
	if (t->options->exit_on_deadlock)
		(void)!write(STDERR_FILENO, no_room, sizeof(no_room) - 1);
	t->start_ns = wp_clock_ns();
	t->child = wp_child_start(t->options->command);
	if (t->child > 0)
		return 0;
	wp_say("wallprof: fork: %s", strerror(errno));
	return WP_EXIT_OWN_FAILURE;
}

/* Start the worker, and it the command.  0, or an exit status. */
static int begin(struct timed *t)
{
	int status, sig;
	sigset_t old;

	block_signals(t, &old);
	wp_worker_keep(&old);
	/* Should the worker be killed. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	t->has_others = getpid() == 1 || wp_descendants_has_any(getpid());
	if (!wp_limits_leave(DUMP_FILES))
		return begin_alone(t);
	t->text_fd = memfd_create("wallprof", MFD_CLOEXEC);
	t->worker.pid = t->text_fd < 0 ? -1 : wp_worker_fork(&t->worker);
	if (t->worker.pid == 0)
		exit(wp_timeout_work(t->options, t->text_fd));
	if (t->worker.pid < 0) {
		wp_say("wallprof: cannot start a worker: %s", strerror(errno));
		return WP_EXIT_OWN_FAILURE;
	}
	/* Its end is the end of the socket. */
	close(t->worker.messages);
	sig = await_start(t);
	if (sig) {
		/* It may be stuck in the kernel: it is not waited for. */
		kill(t->worker.pid, SIGKILL);
		return 128 + sig;
	}
	t->start_ns = wp_clock_ns();
	if (has_started(t) > 0)
		return 0;
	if (waitpid(t->worker.pid, &status, 0) < 0 || !WIFEXITED(status))
		return WP_EXIT_OWN_FAILURE;
	return WEXITSTATUS(status);
}

int wp_cmd_timeout(const struct wp_options *options)
{
	struct timed t = { .options = options };
	int status = begin(&t);

	if (status)
		return status;
	take_packets(&t);
	await_end(&t);
	if (t.why[0]) {
		time_out(&t);
		return was_killed(&t) ? 128 + SIGKILL : WP_EXIT_TIMEOUT;
	}
	/* The worker removes its file no more. */
	if (t.seen_ended && !t.is_alone)
		end_worker(&t);
	if (!t.ended)
		return WP_EXIT_OWN_FAILURE;
	return WIFSIGNALED(t.status) ? 128 + WTERMSIG(t.status) :
				       WEXITSTATUS(t.status);
}
