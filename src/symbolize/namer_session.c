/* SPDX-License-Identifier: Apache-2.0 */
/* namer_session.c - see namer_session.h. */
#include "namer_session.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "debuginfod.h"
#include "wallprof/clock.h"
#include "wallprof/lower_bound.h"
#include "wallprof/packet.h"
#include "wallprof/vec.h"

enum {
	READ_BYTES = 1 << 16,
	/* Limit on messages that are not answers: for each module, and beside
	 * that. */
	NOISE_PER_MODULE = 32,
	NOISE_MIN = 64,
	/* A signal that comes just before poll(2) does not end it. */
	SLICE_MS = 100,
	QUIET_MAX = WP_NAMER_QUIET_MAX_S * 1000 / SLICE_MS,
};
/* The number of the candidate that servers give: no place has it. */
#define ASKED UINT32_MAX

const struct wp_namer_module *wp_namer_find(const struct wp_namer *namer,
					    uint32_t id)
{
	uint32_t i = WP_LOWER_BOUND(namer->nmodules, k,
				    namer->modules[k].id < id);

	return i < namer->nmodules && namer->modules[i].id == id ?
		       &namer->modules[i] :
		       NULL;
}

/* Raise the child's limit on address space by the size of file FD, which it
 * maps. */
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
	/* If denied, the child cannot map the file: fewer names. */
	prlimit(pid, RLIMIT_AS, &limit, NULL);
}

static int reply(struct wp_namer_session *s, uint32_t nth, int fd)
{
	struct wp_protocol_reply answer = { nth, fd >= 0 };
	int rc = wp_packet_send(s->sock, &answer, sizeof(answer), &fd, fd >= 0);

	/* A child that does not read its answers is ended; one that has died
	 * closes its socket. */
	return !rc || rc == -EPIPE || rc == -ECONNRESET ? 0 : -EBADMSG;
}

/* Ask the servers for what QUERY wants, if they are to be asked, once: *NTH is
 * ASKED then. */
static int ask_servers(struct wp_namer_session *s,
		       const struct wp_debug_query *query, uint32_t *nth)
{
	struct wp_debuginfod *servers = s->namer->servers;

	if (!servers || query->kind != WP_DEBUG_BY_ID || *nth == ASKED)
		return -ENOENT;
	*nth = ASKED;
	return wp_debuginfod_find(servers, query->id, query->id_len);
}

static int serve_open(struct wp_namer_session *s)
{
	const struct wp_debug_query *query = &s->message.open.query;
	const struct wp_namer_module *m = wp_namer_find(s->namer,
							query->module);
	uint32_t nth = s->message.open.nth;
	char path[PATH_MAX];
	int fd, rc;

	if (!m || (query->of_debug && s->debug_module != query->module))
		return -EBADMSG;
	fd = m->is_lost ?
		     -1 :
		     wp_debug_open(
			     query,
			     query->of_debug ? s->debug_path : m->module.path,
			     s->namer->roots, s->namer->nroots, &nth, path);
	if (fd < 0 && !m->is_lost) {
		path[0] = '\0';
		fd = ask_servers(s, query, &nth);
	}
	if (fd >= 0) {
		if (s->namer->opened)
			s->namer->opened(s->namer->ctx, query->module, fd,
					 path);
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

static int accept_answer(struct wp_namer_session *s)
{
	if (s->next >= s->namer->naddresses)
		return -EBADMSG;
	s->rc = s->namer->answer(s->namer->ctx, s->next,
				 s->message.answer.lines, s->message.answer.n);
	s->next++;
	return s->rc;
}

static void accept_has(struct wp_namer_session *s)
{
	/* Id 0: addresses in no module. */
	if (wp_namer_find(s->namer, s->message.has.module))
		s->namer->has(s->namer->ctx, s->message.has.module,
			      &s->message.has.has);
}

static int accept_end(struct wp_namer_session *s)
{
	static const enum wp_namer_how hows[] = {
		[WP_PROTOCOL_DONE] = WP_NAMER_DONE,
		[WP_PROTOCOL_NO_MEMORY] = WP_NAMER_NO_MEMORY,
		[WP_PROTOCOL_NO_SANDBOX] = WP_NAMER_NO_SANDBOX,
	};

	s->how = hows[s->message.end.how];
	s->error = s->message.end.error;
	return s->how == WP_NAMER_DONE && s->next < s->namer->naddresses ?
		       -EBADMSG :
		       0;
}

static int accept_message(struct wp_namer_session *s)
{
	if (s->message.kind != WP_PROTOCOL_ANSWER &&
	    ++s->noise > NOISE_MIN + NOISE_PER_MODULE * s->namer->nmodules)
		return -EBADMSG;
	switch (s->message.kind) {
	case WP_PROTOCOL_ANSWER:
		return accept_answer(s);
	case WP_PROTOCOL_HAS:
		accept_has(s);
		return 0;
	case WP_PROTOCOL_OPEN:
		return serve_open(s);
	case WP_PROTOCOL_END:
		return accept_end(s);
	}
	return -EBADMSG;
}

static void accept_messages(struct wp_namer_session *s)
{
	size_t at = 0;

	while (s->how == WP_NAMER_RUNNING) {
		ssize_t n = wp_protocol_parse(&s->message, s->buf + at,
					      s->len - at);

		if (!n)
			break;
		if (n < 0 || accept_message(s)) {
			s->how = WP_NAMER_NONSENSE;
			break;
		}
		s->nquiet = 0;
		at += (size_t)n;
	}
	s->len -= at;
	memmove(s->buf, s->buf + at, s->len);
}

static void receive(struct wp_namer_session *s)
{
	ssize_t n;

	s->rc = WP_VEC_ROOM(s->buf, s->len, s->cap, READ_BYTES);
	if (s->rc) {
		s->how = WP_NAMER_NONSENSE;
		return;
	}
	n = recv(s->sock, s->buf + s->len, s->cap - s->len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		s->how = WP_NAMER_DIED;
		return;
	}
	s->len += (size_t)n;
	accept_messages(s);
}

/* Slices of silence are counted one by one, not by the clock: time in which
 * this process was stopped, too, must not count against the child. */
void wp_namer_session_run(struct wp_namer_session *s)
{
	struct pollfd pfd = { s->sock, POLLIN, 0 };

	while (s->how == WP_NAMER_RUNNING) {
		int n = poll(&pfd, 1, SLICE_MS);

		if (*s->namer->interrupts > 1)
			s->how = WP_NAMER_INTERRUPTED;
		else if (n > 0)
			receive(s);
		else if (++s->nquiet >= QUIET_MAX)
			s->how = WP_NAMER_SILENT;
		if (s->how == WP_NAMER_RUNNING && wp_clock_ns() > s->end_ns)
			s->how = WP_NAMER_TOO_LONG;
	}
}
