/* namer.c - see namer.h: the parent's part. */
#include "namer.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "namer_wire.h"
#include "wallprof/clock.h"

enum {
	/* Seconds without an answer, and in all, after which it is ended. */
	QUIET_MAX_S = 20,
	TOTAL_MAX_S = 600,
	/* Children, each after the failure of the one before. */
	CHILDREN_MAX = 4,
	READ_BYTES = 1 << 16,
	/* Messages that are no answers, for each module and in all. */
	NOISE_PER_MODULE = 32,
	NOISE_MIN = 64,
};
#define RECEIVED_MAX (UINT64_C(512) << 20)

enum how {
	RUNNING,
	DONE,
	NO_MEMORY,
	NO_SANDBOX,
	/* The socket was closed. */
	DIED,
	SILENT,
	TOO_LONG,
	NONSENSE,
	HURRIED,
};

/* One child. */
struct session {
	const struct wp_namer *namer;
	pid_t pid;
	int sock;
	/* What was received and not parsed yet: buf[0..len), owned. */
	uint8_t *buf;
	size_t len;
	size_t cap;
	/* The address that the next answer is for. */
	uint32_t next;
	uint64_t received;
	uint32_t noise;
	unsigned int quiet_s;
	uint64_t end_ns;
	/* The debug file that was opened last, and for which module. */
	uint32_t debug_module;
	char debug_path[PATH_MAX];
	struct wp_wire_message message;
	enum how how;
	/* As waitpid(2) gives it; -1 where it could not be had. */
	int status;
	/* With NO_SANDBOX: an errno.  Else 0, or what ANSWER returned. */
	int error;
	int rc;
};

static const struct wp_namer_module *find_module(const struct wp_namer *namer,
						 uint32_t id)
{
	uint32_t lo = 0, hi = namer->nmodules;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (namer->modules[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < namer->nmodules && namer->modules[lo].id == id ?
		       &namer->modules[lo] : NULL;
}

/* What is mapped is no memory of its own. */
static void allow_memory(pid_t pid, int fd)
{
	struct rlimit limit;
	struct stat st;

	if (fstat(fd, &st) || prlimit(pid, RLIMIT_AS, NULL, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY)
		return;
	limit.rlim_cur += (rlim_t)st.st_size;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	/* If denied, the file is not mapped: fewer names. */
	prlimit(pid, RLIMIT_AS, &limit, NULL);
}

static int reply(struct session *s, uint32_t nth, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct wp_wire_reply answer = { nth, fd >= 0 };
	struct iovec iov = { &answer, sizeof(answer) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (fd >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	/* Who does not take answers gets no more. */
	return sendmsg(s->sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) ==
		sizeof(answer) ? 0 : -EPIPE;
}

static int serve_open(struct session *s)
{
	const struct wp_debug_query *query = &s->message.open.query;
	const struct wp_namer_module *m = find_module(s->namer, query->module);
	uint32_t nth = s->message.open.nth;
	char path[PATH_MAX];
	int fd, rc;

	if (!m || (query->of_debug && s->debug_module != query->module))
		return -EBADMSG;
	fd = wp_debug_open(query, query->of_debug ? s->debug_path :
			   m->module.path, s->namer->roots, s->namer->nroots,
			   &nth, path);
	if (fd >= 0) {
		allow_memory(s->pid, fd);
		if (!query->of_debug) {
			s->debug_module = query->module;
			memcpy(s->debug_path, path, strlen(path) + 1);
		}
	}
	rc = reply(s, nth, fd);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int take_answer(struct session *s)
{
	if (s->next >= s->namer->naddresses)
		return -EBADMSG;
	s->rc = s->namer->answer(s->namer->ctx, s->next,
				 s->message.answer.lines, s->message.answer.n);
	s->next++;
	return s->rc;
}

static int take_has(struct session *s)
{
	/* 0 stands for addresses outside all modules. */
	if (find_module(s->namer, s->message.has.module))
		s->namer->has(s->namer->ctx, s->message.has.module,
			      &s->message.has.has);
	return 0;
}

static int take_end(struct session *s)
{
	static const enum how hows[] = {
		[WP_WIRE_DONE] = DONE,
		[WP_WIRE_NO_MEMORY] = NO_MEMORY,
		[WP_WIRE_NO_SANDBOX] = NO_SANDBOX,
	};

	s->how = hows[s->message.end.how];
	s->error = s->message.end.error;
	return s->how == DONE && s->next < s->namer->naddresses ? -EBADMSG : 0;
}

static int take_message(struct session *s)
{
	if (s->message.kind != WP_WIRE_ANSWER &&
	    ++s->noise > NOISE_MIN + NOISE_PER_MODULE * s->namer->nmodules)
		return -EBADMSG;
	switch (s->message.kind) {
	case WP_WIRE_ANSWER:
		return take_answer(s);
	case WP_WIRE_HAS:
		return take_has(s);
	case WP_WIRE_OPEN:
		return serve_open(s);
	case WP_WIRE_END:
		return take_end(s);
	}
	return -EBADMSG;
}

static void take_messages(struct session *s)
{
	size_t at = 0;

	while (s->how == RUNNING) {
		ssize_t n = wp_wire_parse(&s->message, s->buf + at,
					  s->len - at);

		if (!n)
			break;
		if (n < 0 || take_message(s)) {
			s->how = NONSENSE;
			break;
		}
		s->quiet_s = 0;
		at += (size_t)n;
	}
	s->len -= at;
	memmove(s->buf, s->buf + at, s->len);
}

static int make_room(struct session *s)
{
	size_t cap = s->cap ? 2 * s->cap : 2 * READ_BYTES;
	uint8_t *buf;

	if (s->cap - s->len >= READ_BYTES)
		return 0;
	buf = realloc(s->buf, cap);
	if (!buf)
		return -ENOMEM;
	s->buf = buf;
	s->cap = cap;
	return 0;
}

static void receive(struct session *s)
{
	ssize_t n;

	s->rc = make_room(s);
	if (s->rc) {
		s->how = NONSENSE;
		return;
	}
	n = recv(s->sock, s->buf + s->len, s->cap - s->len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		s->how = DIED;
		return;
	}
	s->len += (size_t)n;
	s->received += (uint64_t)n;
	if (s->received > RECEIVED_MAX)
		s->how = NONSENSE;
	take_messages(s);
}

/* Seconds are counted by themselves, so that a time in which we were stopped,
 * too, is not held against the child. */
static void serve(struct session *s)
{
	struct pollfd pfd = { s->sock, POLLIN, 0 };

	while (s->how == RUNNING) {
		int n = poll(&pfd, 1, 1000);

		if (*s->namer->hurry > 1)
			s->how = HURRIED;
		else if (n > 0)
			receive(s);
		else if (++s->quiet_s >= QUIET_MAX_S)
			s->how = SILENT;
		if (s->how == RUNNING && wp_clock_ns() > s->end_ns)
			s->how = TOO_LONG;
	}
}

/* One that has ended by itself keeps its status. */
static void reap(struct session *s)
{
	kill(s->pid, SIGKILL);
	while (waitpid(s->pid, &s->status, 0) < 0)
		if (errno != EINTR) {
			s->status = -1;
			return;
		}
}

static int run_child(struct session *s)
{
	pid_t parent = getpid();
	int socks[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks))
		return -errno;
	s->pid = fork();
	if (s->pid == 0)
		s->namer->child(s->namer, s->next, socks[1], parent);
	rc = s->pid < 0 ? -errno : 0;
	close(socks[1]);
	s->sock = socks[0];
	s->how = RUNNING;
	s->len = 0;
	s->debug_module = 0;
	s->quiet_s = 0;
	if (!rc) {
		serve(s);
		reap(s);
	}
	close(s->sock);
	return rc;
}

static void describe(const struct session *s, char *buf, size_t size)
{
	switch (s->how) {
	case NO_MEMORY:
		snprintf(buf, size, "had no memory left");
		break;
	case NO_SANDBOX:
		snprintf(buf, size, "could not give up its rights (%s)",
			 strerror(s->error));
		break;
	case SILENT:
		snprintf(buf, size, "gave no answer for %d s", QUIET_MAX_S);
		break;
	case TOO_LONG:
		snprintf(buf, size, "took over %d s", TOTAL_MAX_S);
		break;
	case NONSENSE:
		snprintf(buf, size, "made no sense");
		break;
	case HURRIED:
		snprintf(buf, size, "was interrupted");
		break;
	default:
		if (s->status != -1 && WIFSIGNALED(s->status))
			snprintf(buf, size, "was killed by signal %d (%s)",
				 WTERMSIG(s->status),
				 strsignal(WTERMSIG(s->status)));
		else
			snprintf(buf, size, "ended too early");
	}
}

/* The file's name, which the target chose, fit to be shown. */
static void put_module(const struct session *s, char *buf, size_t size)
{
	const struct wp_namer_module *m = find_module(
		s->namer, s->namer->addresses[s->next].module);
	const char *slash = m ? strrchr(m->module.path, '/') : NULL;
	int n;

	if (!m || s->how == HURRIED)
		return;
	n = snprintf(buf, size, " at %.100s", slash ? slash + 1 :
						       m->module.path);
	for (int i = 0; i < n && (size_t)i + 1 < size && buf[i]; i++)
		if (!isascii(buf[i]) || !isprint(buf[i]))
			buf[i] = '?';
}

static void explain(const struct session *s, struct wp_namer_end *end)
{
	char *why = end->why;
	size_t size = sizeof(end->why), n;

	end->hurried |= s->how == HURRIED;
	/* The first reason is the one to look into. */
	if (s->next >= s->namer->naddresses || *why)
		return;
	n = (size_t)snprintf(why, size, "the symboliser ");
	describe(s, why + n, size - n);
	n = strlen(why);
	put_module(s, why + n, size - n);
}

/* The rest of the module at which the child failed. */
static void skip_module(struct session *s)
{
	const struct wp_namer *namer = s->namer;
	uint32_t module;

	if (s->next >= namer->naddresses)
		return;
	module = namer->addresses[s->next].module;
	while (s->next < namer->naddresses &&
	       namer->addresses[s->next].module == module)
		s->next++;
}

/* Could another child do better, from the next module on? */
static bool may_go_on(const struct session *s)
{
	return !s->rc && s->next < s->namer->naddresses &&
	       s->how != NO_SANDBOX && s->how != HURRIED && s->how != TOO_LONG;
}

int wp_namer_run(const struct wp_namer *namer, struct wp_namer_end *ret_end)
{
	struct session *s = calloc(1, sizeof(*s));
	int rc = s ? 0 : -ENOMEM;

	*ret_end = (struct wp_namer_end){ "", false };
	if (rc)
		return rc;
	s->namer = namer;
	s->end_ns = wp_clock_ns() + TOTAL_MAX_S * WP_NS_PER_S;
	for (int i = 0; i < CHILDREN_MAX && may_go_on(s); i++) {
		rc = run_child(s);
		if (rc) {
			snprintf(ret_end->why, sizeof(ret_end->why),
				 "no process could be started for the "
				 "symboliser (%s)", strerror(-rc));
			break;
		}
		explain(s, ret_end);
		skip_module(s);
	}
	rc = s->rc;
	free(s->buf);
	free(s);
	return rc;
}
