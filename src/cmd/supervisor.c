/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.c - see supervisor.h. */
#include "supervisor.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exit_status.h"
#include "messages.h"
#include "screen.h"
#include "signals.h"
#include "stuck.h"
#include "worker.h"
#include "wallprof/clock.h"

enum {
	/* A worker that slept through so many looks is stuck: each of its own
	 * waits is over in a second. */
	STUCK_LOOKS = 5,
	STUCK_LOOKS_INTERRUPTED = 15,
	/* In a wait that no signal ends, after one was sent. */
	STUCK_LOOKS_DEAF = 3,
	/* In a wait for the kernel's own work. */
	STUCK_LOOKS_KERNEL = 100,
	/* Signals after which the worker is not asked any more. */
	INTERRUPTS_MAX = 4,
};
#define LOOK_NS WP_NS_PER_S
#define LOOK_NS_INTERRUPTED (100 * WP_NS_PER_MS)

struct supervisor {
	struct wp_worker worker;
	/* For ppoll(2): the signals below are blocked but there. */
	sigset_t mask;
	/* As waitpid(2) gives it, once WORKER.pid is 0. */
	int status;
	/* From WP_WORKER_LOOKS to WP_WORKER_WRITES. */
	bool looks;
	bool is_stuck;
	/* It waits for standard output and error. */
	bool wants_streams;
	unsigned int interrupts;
	/* Looks at it, and the time of the next. */
	struct wp_stuck stuck;
	uint64_t next_look_ns;
	/* What of its messages is still to be written. */
	char text[PIPE_BUF];
	size_t len;
};

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
static const int stopping[] = { SIGTSTP, SIGTTIN, SIGTTOU };
static volatile sig_atomic_t seen[_NSIG];

static void on_signal(int sig)
{
	seen[sig]++;
}

static void catch (int sig, sigset_t *set)
{
	struct sigaction act = { .sa_handler = on_signal }, old;

	/* As under nohup(1). */
	if (sigaction(sig, NULL, &old) || old.sa_handler == SIG_IGN)
		return;
	sigaction(sig, &act, NULL);
	sigaddset(set, sig);
}

#define COUNT(v) (sizeof(v) / sizeof(*(v)))

/* Block the signals, which the worker must find blocked; *RET_OLD is the mask
 * before. */
static void block_signals(sigset_t *ret_old)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < COUNT(ending); i++)
		sigaddset(&set, ending[i]);
	for (size_t i = 0; i < COUNT(stopping); i++)
		sigaddset(&set, stopping[i]);
	sigprocmask(SIG_BLOCK, &set, ret_old);
}

static void catch_signals(struct supervisor *s, const sigset_t *old)
{
	sigset_t caught;

	sigemptyset(&caught);
	for (size_t i = 0; i < COUNT(ending); i++)
		catch (ending[i], &caught);
	for (size_t i = 0; i < COUNT(stopping); i++)
		catch (stopping[i], &caught);
	catch (SIGCHLD, &caught);
	s->mask = *old;
	for (int sig = 1; sig < _NSIG; sig++)
		if (sigismember(&caught, sig) == 1)
			sigdelset(&s->mask, sig);
	signal(SIGPIPE, SIG_IGN);
}

static void reap(struct supervisor *s)
{
	int status;

	while (s->worker.pid && waitpid(s->worker.pid, &status,
					WNOHANG | WUNTRACED) == s->worker.pid) {
		/* It may hold a thread of the target. */
		if (WIFSTOPPED(status)) {
			kill(s->worker.pid, SIGCONT);
			continue;
		}
		s->worker.pid = 0;
		s->status = status;
	}
}

static void hand_on(struct supervisor *s, int sig)
{
	s->interrupts++;
	s->stuck.nstill = 0;
	s->next_look_ns = 0;
	/* Two of one signal that are pending are one. */
	if (s->interrupts > 1)
		sig = s->interrupts < INTERRUPTS_MAX ? WP_SIGNAL_AT_ONCE :
						       SIGKILL;
	if (s->worker.pid)
		kill(s->worker.pid, sig);
}

/* Stop as SIG does, which is blocked: not at all in a process group whose parents have
 * gone, where nobody could set it going again (setpgid(2)). */
static void stop_by(int sig)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };
	struct sigaction act;
	sigset_t set;

	sigaction(sig, &by_default, &act);
	raise(sig);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigaction(sig, &act, NULL);
}

static void take_signals(struct supervisor *s)
{
	for (size_t i = 0; i < COUNT(ending); i++)
		for (; seen[ending[i]]; seen[ending[i]]--)
			hand_on(s, ending[i]);
	for (size_t i = 0; i < COUNT(stopping); i++) {
		if (!seen[stopping[i]])
			continue;
		seen[stopping[i]] = 0;
		/* The worker sees it, and pauses. */
		stop_by(stopping[i]);
	}
	reap(s);
}

static unsigned int looks_until_stuck(const struct supervisor *s)
{
	if (wp_stuck_is_in_kernels_work(&s->stuck, s->worker.pid))
		return STUCK_LOOKS_KERNEL;
	if (!s->interrupts)
		return STUCK_LOOKS;
	return s->stuck.state_char == 'D' ? STUCK_LOOKS_DEAF :
					    STUCK_LOOKS_INTERRUPTED;
}

static void look_in_time(struct supervisor *s)
{
	uint64_t now = wp_clock_ns();

	/* It may be its messages that nobody reads, or its output.  One that was killed
	 * is not waited for in any case. */
	if ((!s->looks || s->len || !wp_stuck_is_heard()) &&
	    s->interrupts < INTERRUPTS_MAX)
		return;
	if (now < s->next_look_ns)
		return;
	wp_stuck_look(&s->stuck, s->worker.pid);
	s->is_stuck = s->stuck.nstill >= looks_until_stuck(s);
	s->next_look_ns = now + (s->interrupts ? LOOK_NS_INTERRUPTED : LOOK_NS);
}

/* Take what the worker has said on standard error; false: nothing. */
static bool take_messages(struct supervisor *s)
{
	ssize_t n = 0;

	if (!s->len && s->worker.messages >= 0) {
		n = read(s->worker.messages, s->text, sizeof(s->text));
		s->len = n > 0 ? (size_t)n : 0;
	}
	if (!n && !s->len && s->worker.messages >= 0) {
		close(s->worker.messages);
		s->worker.messages = -1;
	}
	return s->len;
}

/* Write what was taken; standard error is ready. */
static void write_messages(struct supervisor *s)
{
	ssize_t n = write(STDERR_FILENO, s->text, s->len);

	/* Whoever read it has gone. */
	if (n < 0)
		n = errno == EINTR || errno == EAGAIN ? 0 : (ssize_t)s->len;
	memmove(s->text, s->text + n, s->len - (size_t)n);
	s->len -= (size_t)n;
}

static bool has_messages(const struct supervisor *s)
{
	struct pollfd fd = { s->worker.messages, POLLIN, 0 };

	return s->len ||
	       (fd.fd >= 0 && poll(&fd, 1, 0) > 0 && (fd.revents & POLLIN));
}

static void take_packet(struct supervisor *s)
{
	char byte;
	ssize_t n = recv(s->worker.sock, &byte, 1, MSG_DONTWAIT);

	if (n == 0) {
		close(s->worker.sock);
		s->worker.sock = -1;
	}
	if (n != 1)
		return;
	s->looks = byte == WP_WORKER_LOOKS;
	s->wants_streams = byte == WP_WORKER_WRITES;
}

/* What the worker has said comes before what it writes. */
static void give_streams(struct supervisor *s)
{
	if (!s->wants_streams || has_messages(s))
		return;
	wp_worker_give_streams(&s->worker);
	s->wants_streams = false;
}

/* Wait for what happens next, and do what it asks for. */
static void step(struct supervisor *s)
{
	struct pollfd fds[] = {
		{ s->worker.sock, POLLIN, 0 },
		{ s->len ? -1 : s->worker.messages, POLLIN, 0 },
		{ s->len ? STDERR_FILENO : -1, POLLOUT, 0 },
	};
	uint64_t ns = s->interrupts ? LOOK_NS_INTERRUPTED : LOOK_NS;
	struct timespec ts = { (time_t)(ns / WP_NS_PER_S),
			       (long)(ns % WP_NS_PER_S) };
	int n = ppoll(fds, COUNT(fds), &ts, &s->mask);

	take_signals(s);
	if (n > 0 && fds[0].revents)
		take_packet(s);
	if (n > 0 && fds[1].revents)
		take_messages(s);
	if (n > 0 && fds[2].revents)
		write_messages(s);
	give_streams(s);
	if (s->worker.pid)
		look_in_time(s);
}

/* The exit status, or the signal, that the worker ended with. */
static int end_as_worker(const struct supervisor *s)
{
	static const struct rlimit no_core = { 0, 0 };
	sigset_t set;

	if (WIFEXITED(s->status))
		return WEXITSTATUS(s->status);
	wp_screen_mend();
	setrlimit(RLIMIT_CORE, &no_core);
	signal(WTERMSIG(s->status), SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, WTERMSIG(s->status));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(WTERMSIG(s->status));
	return WP_EXIT_NOTHING;
}

static void say_stuck(const struct supervisor *s)
{
	char text[WP_STUCK_TEXT];

	wp_stuck_describe(s->worker.pid, text);
	wp_say("wallprof: nothing is written: %s", text);
}

int wp_supervise(int (*work)(const struct wp_options *options),
		 const struct wp_options *options)
{
	struct supervisor s = { .stuck = WP_STUCK_INIT };
	sigset_t old;
	pid_t pid;

	wp_screen_note();
	block_signals(&old);
	wp_worker_keep(&old);
	pid = wp_worker_fork(&s.worker);
	if (pid == 0)
		exit(work(options));
	if (pid < 0) {
		wp_say("wallprof: fork: %s", strerror(errno));
		return WP_EXIT_NOTHING;
	}
	catch_signals(&s, &old);
	while ((s.worker.pid && !s.is_stuck) ||
	       (has_messages(&s) && s.interrupts < INTERRUPTS_MAX))
		step(&s);
	if (!s.is_stuck)
		return end_as_worker(&s);
	wp_screen_mend();
	say_stuck(&s);
	kill(s.worker.pid, SIGKILL);
	return WP_EXIT_NOTHING;
}
