/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_serve.c - see cmd_serve.h.
 *
 * This process looks at none, and reads nothing from clients: one child parses HTTP
 * (wallprof/serve.h), one for each served process records it (recorder.h), and this
 * one passes packets between them.
 */
#include "cmd_serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exit_status.h"
#include "messages.h"
#include "served.h"
#include "wallprof/clock.h"
#include "wallprof/io.h"
#include "wallprof/packet.h"

enum {
	TOKEN_MIN = 16,
	TOKEN_SIZE = 256,
	/* The server is started again, but not more often than so. */
	RESTART_S = 1,
	/* Time for recorders to make what is still to be pushed; and to end by
	 * themselves. */
	LAST_S = 2,
	END_S = 3,
};
/* Time between two searches for processes by their names. */
#define SEARCH_NS (2 * WP_NS_PER_S)

/* Numbers of questions that one process that parses HTTP has for itself. */
enum { ASKS_EACH = 1 << 16 };

struct serve {
	const struct wp_options *options;
	struct wp_serve_socket sockets[WP_SERVE_LISTEN_MAX];
	size_t nsockets;
	char token[TOKEN_SIZE];
	pid_t http;
	uint64_t http_ns;
	/* How many processes that parse HTTP have been started. */
	uint32_t nhttp;
	/* It is said that one cannot be started, and that a search failed. */
	bool http_is_said;
	bool search_is_said;
	/* All that it has started is to end. */
	bool ends;
	struct wp_served served;
	struct wp_pusher pusher;
};

static volatile sig_atomic_t ending;

static void on_ending(int sig)
{
	ending = sig;
}

static volatile sig_atomic_t searches;

static void on_search(int sig)
{
	searches = sig;
}

static void on_child(int sig)
{
	(void)sig;
}

static const struct {
	int sig;
	void (*handler)(int sig);
} caught[] = {
	{ SIGINT, on_ending },
	{ SIGTERM, on_ending },
	{ SIGHUP, on_search },
	{ SIGCHLD, on_child },
};

/* They come in ppoll(2) only. */
static void catch_signals(sigset_t *ret_mask)
{
	struct sigaction act = { 0 };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(caught) / sizeof(*caught); i++) {
		act.sa_handler = caught[i].handler;
		sigaction(caught[i].sig, &act, NULL);
		sigaddset(&set, caught[i].sig);
	}
	sigprocmask(SIG_BLOCK, &set, ret_mask);
	for (size_t i = 0; i < sizeof(caught) / sizeof(*caught); i++)
		sigdelset(ret_mask, caught[i].sig);
	signal(SIGPIPE, SIG_IGN);
}

/* Read the first line of PATH, of OPTION, which others must not be able to read, into
 * LINE of SIZE bytes; it has LEAST characters at least.  PATH NULL: do nothing. */
static int read_secret(const char *option, const char *path, size_t least,
		       char *line, size_t size, struct wp_err *err)
{
	struct stat st = { 0 };
	int fd;
	ssize_t n;

	if (!path)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 || fstat(fd, &st) ? -errno : wp_io_take(fd, line, size);
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return wp_err_set(err, -EINVAL, "%s %s: %s", option, path,
				  strerror((int)-n));
	if (st.st_mode & 077)
		return wp_err_set(err, -EPERM,
				  "%s %s: others may read it: chmod 600 it",
				  option, path);
	line[strcspn(line, "\r\n")] = '\0';
	if (strlen(line) < least || strlen(line) == size - 1)
		return wp_err_set(err, -EINVAL,
				  "%s %s: its line has %zu to %zu characters",
				  option, path, least, size - 2);
	return 0;
}

static int read_secrets(struct serve *s, struct wp_err *err)
{
	int rc = read_secret("--token-file", s->options->token_file, TOKEN_MIN,
			     s->token, sizeof(s->token), err);

	return rc ? rc :
		    read_secret("--push-auth", s->options->push_auth, 1,
				s->pusher.auth, sizeof(s->pusher.auth), err);
}

/* Better now than when a process hangs. */
static int check_directory(const struct wp_options *o, struct wp_err *err)
{
	int fd = -1, rc = 0;

	if (!o->on_hang)
		return 0;
	fd = open(o->on_hang, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || faccessat(fd, ".", W_OK | X_OK, AT_EACCESS))
		rc = wp_err_set(err, -errno, "--on-hang %s: %s", o->on_hang,
				strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

static int default_socket(char *text, size_t size, struct wp_err *err)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");

	if (!geteuid())
		dir = "/run";
	if (!dir || !*dir)
		return wp_err_set(err, -EINVAL,
				  "no XDG_RUNTIME_DIR for the socket: give "
				  "--listen unix:PATH");
	snprintf(text, size, "unix:%s/wallprof.sock", dir);
	return 0;
}

static int listen_all(struct serve *s, struct wp_err *err)
{
	const struct wp_options *o = s->options;
	char text[256];
	const char *where = text;
	int rc = o->nlisten ? 0 : default_socket(text, sizeof(text), err);

	for (size_t i = 0; i < (o->nlisten ? o->nlisten : 1) && !rc; i++) {
		if (o->nlisten)
			where = o->listen[i];
		rc = wp_serve_listen(&s->sockets[i], where,
				     o->token_file != NULL, err);
		s->nsockets += !rc;
		if (!rc && !o->quiet)
			wp_say("wallprof: serving on %s", where);
	}
	return rc;
}

static void become_http(struct serve *s, int sock, pid_t parent)
{
	const struct wp_serve_http how = {
		.sockets = s->sockets,
		.nsockets = s->nsockets,
		.token = s->options->token_file ? s->token : NULL,
		.ask = sock,
		.nasked = s->nhttp * ASKS_EACH,
		.parent = parent,
	};
	int rc;

	wp_pusher_leave(&s->pusher);
	rc = wp_serve_http_run(&how);
	_exit(rc ? WP_EXIT_NOTHING : WP_EXIT_WHOLE);
}

static int start_http(struct serve *s, struct wp_err *err)
{
	pid_t parent = getpid();
	int socks[2];

	if (s->served.answers >= 0)
		close(s->served.answers);
	s->served.answers = -1;
	s->http_ns = wp_clock_ns();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		return wp_err_set(err, -errno, "socketpair: %s",
				  strerror(errno));
	s->nhttp++;
	s->http = fork();
	if (!s->http)
		become_http(s, socks[1], parent);
	close(socks[1]);
	s->served.answers = socks[0];
	if (s->http > 0)
		return 0;
	s->http = 0;
	return wp_err_set(err, -EAGAIN, "fork: %s", strerror(errno));
}

static void reap(struct serve *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		/* A recorder may hold a thread of its target. */
		if (WIFSTOPPED(status)) {
			if (pid != s->pusher.pid && pid != s->http)
				kill(pid, SIGCONT);
			continue;
		}
		if (pid == s->pusher.pid)
			wp_pusher_reap(&s->pusher, status);
		else if (pid != s->http)
			wp_served_reap(&s->served, pid, status);
		if (pid != s->http)
			continue;
		s->http = 0;
		wp_served_cancel_all(&s->served);
		if (WIFSIGNALED(status))
			wp_say("wallprof: what parses HTTP was ended by signal "
			       "%d: started again",
			       WTERMSIG(status));
		else if (!s->ends)
			wp_say("wallprof: what parses HTTP ended with status "
			       "%d: started again",
			       WEXITSTATUS(status));
	}
}

/* What parses HTTP may have been taken over: it can ask for no more than clients. */
static bool is_sound(const struct wp_serve_ask *ask)
{
	return (ask->endpoint < WP_SERVE_PUSH ||
		ask->endpoint == WP_SERVE_CANCEL) &&
	       ask->debug <= 2 && !(ask->id & WP_PUSHER_ID) && !ask->from_ns &&
	       !ask->to_ns && ask->seconds <= WP_SERVE_AGO_MAX &&
	       ask->ago <= WP_SERVE_AGO_MAX;
}

static void take_asks(struct serve *s)
{
	struct wp_serve_ask ask = { 0 };
	ssize_t n = 1;
	int fd;

	/* Recorders have their turn, however many come. */
	for (int i = 0; i < WP_SERVED_ASKS_MAX && n > 0; i++) {
		n = wp_packet_take(s->served.answers, &ask, sizeof(ask), false,
				   &fd, 1);
		if (fd >= 0)
			close(fd);
		ask.name[sizeof(ask.name) - 1] = '\0';
		if (n == sizeof(ask) && is_sound(&ask))
			wp_served_ask(&s->served, &ask);
	}
	if (n > 0 || n == -EAGAIN)
		return;
	close(s->served.answers);
	s->served.answers = -1;
}

/* Say once that what is tried again and again fails, RC with ERR; 0: it no longer does. */
static void say_once(bool *is_said, int rc, const struct wp_err *err)
{
	if (rc && !*is_said)
		wp_say("wallprof: %s: it is tried again", err->msg);
	*is_said = rc != 0;
}

static int search(struct serve *s)
{
	struct wp_err err = WP_ERR_INIT;
	int rc = wp_served_find(&s->served, &err);

	say_once(&s->search_is_said, rc, &err);
	return rc;
}

/* SIGHUP has asked for it. */
static void search_again(struct serve *s)
{
	size_t n = s->served.n;

	searches = 0;
	s->search_is_said = s->served.full_is_said = false;
	memset(s->served.failed, 0, sizeof(s->served.failed));
	if (!search(s))
		wp_say("wallprof: searched again; processes served: %zu, new "
		       "ones: %zu",
		       s->served.n, s->served.n - n);
}

/* What is due without anybody having asked. */
static int look_after(struct serve *s, struct wp_err *err)
{
	uint64_t now = wp_clock_ns();
	struct wp_err why = WP_ERR_INIT;

	if (!s->http && now - s->http_ns > RESTART_S * WP_NS_PER_S)
		say_once(&s->http_is_said, start_http(s, &why), &why);
	if (now - s->served.searched_ns > SEARCH_NS)
		(void)!search(s);
	wp_served_look(&s->served);
	wp_pusher_step(&s->pusher, &s->served);
	return wp_served_is_over(&s->served) ?
		       wp_err_set(err, -ESRCH, "no process is left to serve") :
		       0;
}

/* Take what comes within NS. */
static void take_packets(struct serve *s, uint64_t ns, const sigset_t *mask)
{
	enum { FIRST = 2 };
	struct pollfd fds[FIRST + WP_SERVED_MAX] = {
		{ .fd = s->served.answers, .events = POLLIN },
		{ .fd = s->pusher.sock, .events = POLLIN },
	};
	const struct timespec ts = { .tv_nsec = (long)ns };
	size_t n = s->served.n;

	for (size_t i = 0; i < n; i++)
		fds[FIRST + i] = (struct pollfd){ s->served.v[i].sock, POLLIN,
						  0 };
	if (ppoll(fds, FIRST + n, &ts, mask) > 0) {
		for (size_t i = 0; i < n; i++)
			if (fds[FIRST + i].revents)
				wp_served_take(&s->served, &s->served.v[i]);
		if (fds[1].revents)
			wp_pusher_take(&s->pusher);
		if (fds[0].revents)
			take_asks(s);
	}
	reap(s);
}

static int step(struct serve *s, const sigset_t *mask, struct wp_err *err)
{
	take_packets(s, 500 * WP_NS_PER_MS, mask);
	if (searches)
		search_again(s);
	return look_after(s, err);
}

/* Only paths that this process made: another may serve on one that it could not
 * have. */
static void close_sockets(struct serve *s)
{
	for (size_t i = 0; i < s->nsockets; i++) {
		struct sockaddr_un address = { .sun_family = AF_UNSPEC };
		socklen_t n = sizeof(address) - 1;

		if (s->sockets[i].is_unix &&
		    !getsockname(s->sockets[i].fd, (void *)&address, &n))
			unlink(address.sun_path);
		/* A recorder that is stuck has it open as well. */
		shutdown(s->sockets[i].fd, SHUT_RDWR);
		close(s->sockets[i].fd);
	}
}

/* Have what is recorded since the last interval pushed. */
static void push_last(struct serve *s, const sigset_t *mask)
{
	uint64_t until_ns = wp_clock_ns() + LAST_S * WP_NS_PER_S;

	while (wp_pusher_finish(&s->pusher, &s->served) &&
	       wp_clock_ns() < until_ns)
		take_packets(s, 100 * WP_NS_PER_MS, mask);
	wp_pusher_shut(&s->pusher);
}

/* Recorders end when their socket is closed; one that is stuck is not waited for. */
static void end_all(struct serve *s, const sigset_t *mask)
{
	uint64_t until_ns;
	const struct timespec ts = { .tv_nsec = 20 * WP_NS_PER_MS };

	s->ends = true;
	if (s->served.answers >= 0)
		close(s->served.answers);
	s->served.answers = -1;
	push_last(s, mask);
	wp_served_end(&s->served);
	until_ns = wp_clock_ns() + END_S * WP_NS_PER_S;
	while ((s->served.n || s->http > 0 || s->pusher.pid) &&
	       wp_clock_ns() < until_ns) {
		reap(s);
		nanosleep(&ts, NULL);
	}
	for (size_t i = 0; i < s->served.n; i++)
		kill(s->served.v[i].recorder, SIGKILL);
	if (s->http > 0)
		kill(s->http, SIGKILL);
	if (s->pusher.pid)
		kill(s->pusher.pid, SIGKILL);
	wp_pusher_say_unsent(&s->pusher);
	close_sockets(s);
}

/* Recorders were ended by SIGTERM: whoever ends all processes of a service ends this one
 * as well, a moment later. */
static bool is_to_end(const struct serve *s, const sigset_t *mask)
{
	uint64_t until_ns = wp_clock_ns() + WP_NS_PER_S;
	const struct timespec ts = { .tv_nsec = 100 * WP_NS_PER_MS };

	while (s->served.was_ended && !ending && wp_clock_ns() < until_ns)
		ppoll(NULL, 0, &ts, mask);
	return ending;
}

int wp_cmd_serve(const struct wp_options *options)
{
	static struct serve serve;
	struct serve *s = &serve;
	struct wp_err err = WP_ERR_INIT;
	sigset_t mask;
	int rc;

	sigemptyset(&mask);
	if (!wp_serve_is_there()) {
		wp_say("wallprof: serve needs libmicrohttpd, which is not here "
		       "or was not when this wallprof was built: install "
		       "libmicrohttpd12, or libmicrohttpd-dev and build again");
		return WP_EXIT_NOTHING;
	}
	s->options = s->served.options = options;
	s->pusher.options = options;
	s->served.pusher = &s->pusher;
	s->served.answers = s->pusher.sock = -1;
	rc = read_secrets(s, &err);
	if (!rc)
		rc = check_directory(options, &err);
	if (!rc)
		rc = listen_all(s, &err);
	if (!rc)
		catch_signals(&mask);
	if (!rc)
		rc = start_http(s, &err);
	if (!rc)
		rc = wp_pusher_start(&s->pusher, &err);
	if (!rc)
		rc = wp_served_find(&s->served, &err);
	while (!rc && !ending)
		rc = step(s, &mask, &err);
	if (rc && is_to_end(s, &mask))
		rc = 0;
	if (rc)
		wp_say("wallprof: %s", err.msg);
	end_all(s, &mask);
	return rc ? WP_EXIT_NOTHING : WP_EXIT_WHOLE;
}
