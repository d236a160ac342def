/* SPDX-License-Identifier: Apache-2.0 */
/* served.c - see served.h. */
#include "served.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "choose.h"
#include "find_process.h"
#include "messages.h"
#include "wallprof/clock.h"
#include "wallprof/packet.h"

#define RETRY_NS (60 * WP_NS_PER_S)

/* The exit status of a recorder whose process has another name than those that are
 * served. */
enum { MISTAKEN = 32 };

static void answer(struct wp_served *s, const struct wp_serve_answer *a,
		   int file)
{
	s->asks[a->id % WP_SERVED_ASKS_MAX].is_open = false;
	/* A server that has ended has no clients. */
	(void)!wp_packet_send(s->answers, a, sizeof(*a), &file, file >= 0);
}

WP_PRINTF(4, 5)
static void refuse(struct wp_served *s, uint32_t id, uint32_t status,
		   const char *fmt, ...)
{
	struct wp_serve_answer a = { .id = id, .status = status };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(a.text, sizeof(a.text), fmt, ap);
	va_end(ap);
	answer(s, &a, -1);
}

static bool is_served(const struct wp_served *s, pid_t pid)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].pid == pid && !s->v[i].status.has_ended)
			return true;
	return false;
}

/* Would its recorder fail again? */
static bool has_failed(const struct wp_served *s, pid_t pid)
{
	uint64_t now = wp_clock_ns();

	for (size_t i = 0; i < WP_SERVED_FAILED_MAX; i++)
		if (s->failed[i].ns && s->failed[i].pid == pid &&
		    now - s->failed[i].ns < RETRY_NS)
			return true;
	return false;
}

/* Has PID one of the names that are served, or its number?  The command line, which has
 * all of a script's name, is the recorder's to read: it may block. */
static bool is_meant(const struct wp_options *o, pid_t pid)
{
	bool yes = o->sampler.many;

	for (size_t i = 0; i < o->npids && !yes; i++)
		yes = o->pids[i] == pid;
	for (size_t i = 0; i < o->nserved && !yes; i++)
		yes = wp_find_is_called(pid, o->served[i]);
	return yes;
}

/* In the recorder: what belongs to this process only. */
static void become_recorder(struct wp_served *s, pid_t pid, int sock)
{
	static struct wp_options options;
	sigset_t none;

	options = *s->options;
	memcpy(options.avoided, s->avoided, sizeof(s->avoided));
	options.navoided = s->navoided < WP_AVOIDED_MAX ? s->navoided :
							  WP_AVOIDED_MAX;
	/* The recorder before had them all. */
	options.pids_may_end = s->searched_ns != 0;

	/* Whoever is stopped holds what it stopped: what a terminal or kill(2) does to
	 * the group is for the first process alone (worker.h). */
	setpgid(0, 0);
	signal(SIGTSTP, SIG_IGN);
	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	for (size_t i = 0; i < s->n; i++)
		close(s->v[i].sock);
	if (s->answers >= 0)
		close(s->answers);
	wp_pusher_leave(s->pusher);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!is_meant(s->options, pid))
		_exit(MISTAKEN);
	exit(wp_recorder_run(&options, pid, sock, s->parts));
}

/* Does A's recorder go before B's?  Those first of which all is pushed. */
static bool goes_before(const struct wp_served *s,
			const struct wp_served_one *a,
			const struct wp_served_one *b)
{
	bool a_lacks = wp_pusher_lacks(s->pusher, a);

	return a_lacks == wp_pusher_lacks(s->pusher, b) ?
		       a->ended_ns < b->ended_ns :
		       !a_lacks;
}

/* Have the recorder end whose process ended longest ago.  False: all of them live. */
static bool make_room(struct wp_served *s)
{
	struct wp_served_one *oldest = NULL;

	for (size_t i = 0; i < s->n; i++) {
		struct wp_served_one *one = &s->v[i];

		if (one->sock >= 0 && one->ended_ns &&
		    (!oldest || goes_before(s, one, oldest)))
			oldest = one;
	}
	if (!oldest)
		return false;
	close(oldest->sock);
	oldest->sock = -1;
	return true;
}

/* PID waits for the next search, by which there may be room. */
static void leave_out(struct wp_served *s, pid_t pid)
{
	if (make_room(s))
		return;
	s->nleft_out++;
	if (!s->full_is_said)
		wp_say("wallprof: %d processes are recorded, and no more can "
		       "be: %d is left out, and whatever comes until one of "
		       "them ends",
		       WP_SERVED_MAX, pid);
	s->full_is_said = true;
}

static int start(struct wp_served *s, pid_t pid)
{
	struct wp_served_one *one = &s->v[s->n];
	int socks[2];
	pid_t child;

	if (s->n == WP_SERVED_MAX) {
		leave_out(s, pid);
		return 0;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		return -errno;
	child = fork();
	if (!child) {
		close(socks[0]);
		become_recorder(s, pid, socks[1]);
	}
	close(socks[1]);
	if (child < 0) {
		close(socks[0]);
		return -EAGAIN;
	}
	*one = (struct wp_served_one){ .pid = pid,
				       .recorder = child,
				       .sock = socks[0],
				       .stuck = WP_STUCK_INIT };
	s->n++;
	return 0;
}

static int find_word(struct wp_served *s, size_t word)
{
	const char *name = s->options->served[word];
	struct wp_tids pids = WP_TIDS_INIT;
	int rc = wp_find_processes(&pids, name);

	for (size_t i = 0; i < pids.len && !rc; i++)
		if (!is_served(s, pids.v[i]) && !has_failed(s, pids.v[i]))
			rc = start(s, pids.v[i]);
	wp_tids_clear(&pids);
	return rc;
}

/* Has one of several processes ended their recorder, which another follows? */
static bool was_held_up(const struct wp_served *s)
{
	return s->navoided != s->navoided_before;
}

/* Have what was chosen recorded, as it may come to be any time. */
static int find_many(struct wp_served *s)
{
	const size_t size = sizeof(*s->parts);
	void *parts;
	int rc;

	if (s->n || has_failed(s, 0) ||
	    (s->searched_ns && !wp_choose_is_asked(s->options) &&
	     !was_held_up(s)))
		return 0;
	parts = s->parts ? s->parts :
			   mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (parts == MAP_FAILED)
		return -ENOMEM;
	s->parts = parts;
	rc = start(s, 0);
	if (!rc)
		s->navoided_before = s->navoided;
	return rc;
}

static int find_all(struct wp_served *s)
{
	const struct wp_options *o = s->options;
	int rc = 0;

	if (o->sampler.many)
		return find_many(s);
	for (size_t i = 0; i < o->npids && !s->searched_ns && !rc; i++)
		rc = start(s, o->pids[i]);
	for (size_t i = 0; i < o->nserved && !rc; i++)
		rc = find_word(s, i);
	return rc;
}

int wp_served_find(struct wp_served *s, struct wp_err *err)
{
	int rc = find_all(s);

	s->searched_ns = wp_clock_ns();
	return rc ? wp_err_set(err, rc, "cannot start a recorder: %s",
			       strerror(-rc)) :
		    0;
}

/* What came is an answer or a status, which differ in size. */
static void take_packet(struct wp_served *s, struct wp_served_one *one,
			const void *packet, ssize_t n, int file)
{
	struct wp_serve_answer a = { 0 };

	if (n == sizeof(one->status)) {
		memcpy(&one->status, packet, sizeof(one->status));
		one->status.name[sizeof(one->status.name) - 1] = '\0';
		if (one->status.has_ended && !one->ended_ns)
			one->ended_ns = wp_clock_ns();
	} else if (n == sizeof(a)) {
		memcpy(&a, packet, sizeof(a));
		if (a.id & WP_PUSHER_ID)
			wp_pusher_pass(s->pusher, one, &a, file);
		else if (s->asks[a.id % WP_SERVED_ASKS_MAX].is_open &&
			 s->asks[a.id % WP_SERVED_ASKS_MAX].id == a.id)
			answer(s, &a, file);
	}
}

void wp_served_take(struct wp_served *s, struct wp_served_one *one)
{
	union {
		struct wp_serve_answer answer;
		struct wp_recorder_status status;
	} packet = { .answer = { 0 } };
	ssize_t n;
	int file;

	while ((n = wp_packet_take(one->sock, &packet, sizeof(packet), false,
				   &file, 1)) > 0) {
		take_packet(s, one, &packet, n, file);
		if (file >= 0)
			close(file);
	}
	if (n != -EAGAIN) {
		close(one->sock);
		one->sock = -1;
	}
}

/* Nobody else will answer what it was asked. */
static void answer_for(struct wp_served *s, pid_t recorder)
{
	for (size_t i = 0; i < WP_SERVED_ASKS_MAX; i++)
		if (s->asks[i].is_open && s->asks[i].recorder == recorder)
			refuse(s, s->asks[i].id, 503,
			       "the recording has ended");
}

static void note_failure(struct wp_served *s, pid_t pid, bool would_again)
{
	size_t i = s->nfailed++ % WP_SERVED_FAILED_MAX;

	s->failed[i].pid = pid;
	s->failed[i].ns = would_again ? wp_clock_ns() : 0;
}

void wp_served_reap(struct wp_served *s, pid_t pid, int status)
{
	for (size_t i = 0; i < s->n; i++) {
		struct wp_served_one *one = &s->v[i];

		if (one->recorder != pid)
			continue;
		if (one->sock >= 0)
			wp_served_take(s, one);
		if (one->sock >= 0)
			close(one->sock);
		answer_for(s, pid);
		wp_pusher_lose(s->pusher, one);
		if (WIFSIGNALED(status))
			wp_say("wallprof: the recorder of %s (%d) was ended by "
			       "signal %d",
			       one->status.name, one->pid, WTERMSIG(status));
		s->was_ended |= WIFSIGNALED(status) &&
				WTERMSIG(status) == SIGTERM;
		/* That of several begins again at once if a signal ended it, as where
		 * one of them held it up. */
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			note_failure(s, one->pid,
				     one->pid || WIFEXITED(status));
		s->nmistaken += WIFEXITED(status) &&
				WEXITSTATUS(status) == MISTAKEN;
		s->v[i] = s->v[--s->n];
		return;
	}
}

static bool is_chosen(const struct wp_served_one *one,
		      const struct wp_serve_ask *ask)
{
	/* Its recorder knows them. */
	if (!one->pid)
		return true;
	if (ask->pid && ask->pid != one->pid)
		return false;
	return !ask->name[0] || !strcmp(ask->name, one->status.name);
}

/* "4711 (redis-server), 4712 (nginx)" */
static void list(const struct wp_served *s, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < s->n && len < size; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%d (%s)",
					i ? ", " : "", s->v[i].pid,
					s->v[i].status.name);
}

static void make_own(struct wp_served *s, const struct wp_serve_ask *ask)
{
	struct wp_serve_answer a = { .id = ask->id, .status = 200 };
	int file = memfd_create("answer", MFD_CLOEXEC);
	FILE *out = file >= 0 ? fdopen(dup(file), "w") : NULL;

	if (out && ask->endpoint == WP_SERVE_METRICS)
		wp_served_write_metrics(s, out);
	else if (out && ask->endpoint == WP_SERVE_INDEX)
		wp_served_write_index(s, ask->debug, out);
	else if (out)
		wp_served_write_page(s, out);
	a.type = ask->endpoint == WP_SERVE_METRICS ? WP_SERVE_TYPE_METRICS :
		 ask->endpoint == WP_SERVE_INDEX && ask->debug ?
						     WP_SERVE_TYPE_TEXT :
						     WP_SERVE_TYPE_HTML;
	if (!out || fclose(out))
		refuse(s, ask->id, 503, "no memory for the answer");
	else
		answer(s, &a, file);
	if (file >= 0)
		close(file);
}

/* One that ASK chooses, of *RET_N.  A service that was started again is the process that
 * lives: those that ended do not count beside a single one. */
static struct wp_served_one *
choose(struct wp_served *s, const struct wp_serve_ask *ask, size_t *ret_n)
{
	struct wp_served_one *any = NULL, *living = NULL;
	size_t n = 0, nliving = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct wp_served_one *one = &s->v[i];

		if (one->sock < 0 || !is_chosen(one, ask))
			continue;
		any = one;
		n++;
		if (one->status.has_ended)
			continue;
		living = one;
		nliving++;
	}
	*ret_n = nliving == 1 ? 1 : n;
	return nliving == 1 ? living : any;
}

static void pass_on(struct wp_served *s, const struct wp_serve_ask *ask)
{
	struct wp_served_one *one;
	char text[256];
	size_t n;

	one = choose(s, ask, &n);
	list(s, text, sizeof(text));
	if (!n)
		refuse(s, ask->id, 404,
		       "no such process is served; there are: %s",
		       s->n ? text : "none");
	else if (n > 1)
		refuse(s, ask->id, 400,
		       "several processes are served, choose one by ?pid= or "
		       "?name=: %s",
		       text);
	else if (wp_packet_send(one->sock, ask, sizeof(*ask), NULL, 0))
		refuse(s, ask->id, 503, "the recorder is busy: try again");
	else
		s->asks[ask->id % WP_SERVED_ASKS_MAX].recorder = one->recorder;
}

/* Close the question of ASK, and have the recorder that was asked leave it. */
static void cancel(struct wp_served *s, const struct wp_serve_ask *ask)
{
	const size_t at = ask->id % WP_SERVED_ASKS_MAX;

	if (!s->asks[at].is_open || s->asks[at].id != ask->id)
		return;
	s->asks[at].is_open = false;
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].sock >= 0 &&
		    s->v[i].recorder == s->asks[at].recorder)
			(void)!wp_packet_send(s->v[i].sock, ask, sizeof(*ask),
					      NULL, 0);
}

void wp_served_ask(struct wp_served *s, const struct wp_serve_ask *ask)
{
	if (ask->endpoint == WP_SERVE_CANCEL) {
		cancel(s, ask);
		return;
	}
	s->asks[ask->id % WP_SERVED_ASKS_MAX].is_open = true;
	s->asks[ask->id % WP_SERVED_ASKS_MAX].id = ask->id;
	s->asks[ask->id % WP_SERVED_ASKS_MAX].recorder = 0;
	if (ask->endpoint == WP_SERVE_METRICS ||
	    ask->endpoint == WP_SERVE_INDEX || ask->endpoint == WP_SERVE_PAGE)
		make_own(s, ask);
	else
		pass_on(s, ask);
}

void wp_served_cancel_all(struct wp_served *s)
{
	for (size_t i = 0; i < WP_SERVED_ASKS_MAX; i++)
		cancel(s, &(struct wp_serve_ask){ .endpoint = WP_SERVE_CANCEL,
						  .id = s->asks[i].id });
}

bool wp_served_is_over(const struct wp_served *s)
{
	return !s->n && !s->options->nserved &&
	       !wp_choose_is_asked(s->options) && !was_held_up(s);
}

void wp_served_end(struct wp_served *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].sock >= 0)
			close(s->v[i].sock);
		s->v[i].sock = -1;
	}
}
