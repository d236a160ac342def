/* SPDX-License-Identifier: Apache-2.0 */
/* serve_http.c - HTTP by libmicrohttpd, in a process that can do nothing else. */
#include "wallprof/serve.h"

#include <errno.h>

#ifndef WP_microhttpd_SONAME

bool wp_serve_is_there(void)
{
	return false;
}

int wp_serve_http_run(const struct wp_serve_http *how)
{
	(void)how;
	return -ENOSYS;
}

#else

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "microhttpd_functions.h"
#include "serve_confine.h"
#include "serve_held.h"
#include "wallprof/clock.h"
#include "wallprof/enum_name.h"
#include "wallprof/io.h"
#include "wallprof/packet.h"
#include "wallprof/utf8.h"

enum {
	CLIENTS_MAX = 128,
	/* Request line and headers of one. */
	HEADERS_MAX = 16384,
	/* Without a byte; for a request; for an answer. */
	IDLE_S = 30,
	REQUEST_S = 20,
	ANSWER_S = 300,
	/* Wrong tokens in a second, past which the right one waits, too. */
	WRONG_TOKENS_MAX = 5,
};

enum state {
	FREE,
	/* Its request comes. */
	READING,
	/* It waits for the answer, which must not be from before. */
	ASKED,
	ANSWERED,
	/* The answer goes out. */
	WRITING,
};

struct client {
	enum state state;
	int fd;
	/* Since when it is in its state. */
	uint64_t since_ns;
	struct MHD_Connection *connection;
	const struct wp_serve_socket *socket;
	/* Of its question: number of those before, above its index. */
	uint32_t id;
	struct wp_serve_ask ask;
	struct wp_serve_answer answer;
	int file;
};

struct server {
	const struct wp_serve_http *how;
	struct MHD_Daemon *daemon;
	struct client clients[CLIENTS_MAX];
	/* What is being written to each. */
	struct wp_serve_held held[CLIENTS_MAX];
	uint32_t nasked;
	unsigned int wrong_tokens;
	uint64_t wrong_since_ns;
};

static struct wp_microhttpd lib;

bool wp_serve_is_there(void)
{
	return WP_LIBRARY_LOAD(WP_microhttpd_SONAME, WP_MICROHTTPD_FUNCTIONS,
			       &lib);
}

static void set_state(struct client *c, enum state state)
{
	c->state = state;
	c->since_ns = wp_clock_ns();
}

static struct client *find_free(struct server *s)
{
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (s->clients[i].state == FREE)
			return &s->clients[i];
	return NULL;
}

static const char *get_argument(void *ctx, const char *key)
{
	return lib.MHD_lookup_connection_value(ctx, MHD_GET_ARGUMENT_KIND, key);
}

static const char *type_of(uint32_t type)
{
	return type < WP_NSERVE_TYPES ?
		       WP_ENUM_NAME(WP_SERVE_TYPES, (enum wp_serve_type)type) :
		       "text/plain";
}

static enum MHD_Result queue(struct client *c, unsigned int status,
			     struct MHD_Response *response)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	lib.MHD_add_response_header(response, "X-Content-Type-Options",
				    "nosniff");
	lib.MHD_add_response_header(response, "Cache-Control", "no-store");
	if (status == 401)
		lib.MHD_add_response_header(response, "WWW-Authenticate",
					    "Bearer");
	if (status == 405)
		lib.MHD_add_response_header(response, "Allow", "GET, HEAD");
	if (status == 503)
		lib.MHD_add_response_header(response, "Retry-After", "1");
	set_state(c, WRITING);
	result = lib.MHD_queue_response(c->connection, status, response);
	lib.MHD_destroy_response(response);
	return result;
}

/* Errors look as Go's: `go tool pprof` shows what X-Go-Pprof marks. */
static enum MHD_Result queue_text(struct client *c, unsigned int status,
				  const char *text)
{
	char body[WP_SERVE_TEXT_SIZE + 1];
	size_t n = strnlen(text, WP_SERVE_TEXT_SIZE - 1);
	struct MHD_Response *response;

	/* It may have names of processes, and go to a terminal. */
	memcpy(body, text, n);
	body[n] = '\0';
	wp_utf8_tame(body);
	body[n] = '\n';
	response = lib.MHD_create_response_from_buffer(n + 1, body,
						       MHD_RESPMEM_MUST_COPY);
	if (response) {
		lib.MHD_add_response_header(response, "Content-Type",
					    type_of(WP_SERVE_TYPE_TEXT));
		lib.MHD_add_response_header(response, "X-Go-Pprof", "1");
	}
	return queue(c, status, response);
}

static enum MHD_Result queue_file(struct server *s, struct client *c)
{
	struct MHD_Response *response = NULL;
	char attachment[96];
	struct stat st;

	if (c->file < 0 || wp_io_fstat(c->file, &st))
		return queue_text(c, 500, "the answer has no file");
	if (!wp_serve_held_add(s->held, CLIENTS_MAX, (size_t)(c - s->clients),
			       st.st_ino, (uint64_t)st.st_size))
		return queue_text(c, 503,
				  "503 answers that others have not taken yet "
				  "fill the memory: try again");
	response = lib.MHD_create_response_from_fd((uint64_t)st.st_size,
						   c->file);
	if (!response)
		return MHD_NO;
	c->file = -1;
	lib.MHD_add_response_header(response, "Content-Type",
				    type_of(c->answer.type));
	if (c->answer.type == WP_SERVE_TYPE_PPROF) {
		snprintf(
			attachment, sizeof(attachment),
			"attachment; filename=\"%s\"",
			wp_serve_name((enum wp_serve_endpoint)c->ask.endpoint));
		lib.MHD_add_response_header(response, "Content-Disposition",
					    attachment);
	}
	if (c->answer.type == WP_SERVE_TYPE_HTML)
		lib.MHD_add_response_header(
			response, "Content-Security-Policy",
			"default-src 'none'; script-src 'unsafe-inline' "
			"'wasm-unsafe-eval'; style-src 'unsafe-inline'; "
			"img-src data: blob:; worker-src blob:; "
			"frame-ancestors 'none'; form-action 'none'; "
			"base-uri 'none'");
	return queue(c, 200, response);
}

static const char *get_header(const struct client *c, const char *name)
{
	return lib.MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND,
					       name);
}

/* 0, or the status of the refusal with why in TEXT. */
static unsigned int check_client(struct server *s, struct client *c,
				 const char *method, const char **text)
{
	const char *host = get_header(c, "Host");
	uint64_t now = wp_clock_ns();

	if (strcmp(method, "GET") && strcmp(method, "HEAD")) {
		*text = "405 method not allowed: only GET and HEAD are";
		return 405;
	}
	if (!c->socket->is_unix &&
	    !wp_serve_host_is_ours(host, c->socket->host)) {
		*text = "403 forbidden: the Host header names another host "
			"than this server listens on";
		return 403;
	}
	if (!wp_serve_site_is_ours(get_header(c, "Sec-Fetch-Site"),
				   get_header(c, "Sec-Fetch-Mode"),
				   get_header(c, "Sec-Fetch-Dest"))) {
		*text = "403 forbidden: a page of another site has asked";
		return 403;
	}
	if (!s->how->token)
		return 0;
	if (now - s->wrong_since_ns > WP_NS_PER_S)
		s->wrong_tokens = 0;
	if (s->wrong_tokens >= WRONG_TOKENS_MAX) {
		*text = "429 too many wrong tokens: try again in a second";
		return 429;
	}
	if (wp_serve_token_is_right(get_header(c, "Authorization"),
				    s->how->token))
		return 0;
	if (!s->wrong_tokens++)
		s->wrong_since_ns = now;
	*text = "401 unauthorized: Authorization: Bearer TOKEN is wanted";
	return 401;
}

static enum MHD_Result ask(struct server *s, struct client *c,
			   const struct wp_serve_query *query)
{
	char text[WP_SERVE_TEXT_SIZE];
	unsigned int status = wp_serve_parse(&c->ask, query, text);
	int rc;

	if (status)
		return queue_text(c, status, text);
	c->ask.id = c->id = ((s->how->nasked + s->nasked++) * CLIENTS_MAX +
			     (uint32_t)(c - s->clients)) &
			    INT32_MAX;
	rc = wp_packet_send(s->how->ask, &c->ask, sizeof(c->ask), NULL, 0);
	if (rc)
		return queue_text(c, 503,
				  "503 too many questions at once: try again");
	set_state(c, ASKED);
	lib.MHD_suspend_connection(c->connection);
	return MHD_YES;
}

static enum MHD_Result heed(void *ctx, struct MHD_Connection *connection,
			    const char *url, const char *method,
			    const char *version, const char *upload,
			    size_t *upload_size, void **con_cls)
{
	struct server *s = ctx;
	const union MHD_ConnectionInfo *info = lib.MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct client *c = info ? info->socket_context : NULL;
	const struct wp_serve_query query = { url, get_argument, connection,
					      !strcmp(method, "HEAD") };
	unsigned int status;
	const char *text = "";

	(void)version;
	(void)upload;
	if (!c)
		return MHD_NO;
	if (!*con_cls) {
		*con_cls = c;
		return MHD_YES;
	}
	if (*upload_size) {
		*upload_size = 0;
		return MHD_YES;
	}
	if (c->state == ANSWERED)
		return c->answer.status == 200 ?
			       queue_file(s, c) :
			       queue_text(c, c->answer.status, c->answer.text);
	status = check_client(s, c, method, &text);
	return status ? queue_text(c, status, text) : ask(s, c, &query);
}

static void forget_file(struct server *s, struct client *c)
{
	s->held[c - s->clients].bytes = 0;
	if (c->file >= 0)
		close(c->file);
	c->file = -1;
}

static void on_connection(void *ctx, struct MHD_Connection *connection,
			  void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct server *s = ctx;
	const union MHD_ConnectionInfo *info;
	struct client *c = *socket_context;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED && c) {
		forget_file(s, c);
		c->state = FREE;
	}
	if (code == MHD_CONNECTION_NOTIFY_CLOSED)
		return;
	info = lib.MHD_get_connection_info(connection,
					   MHD_CONNECTION_INFO_CONNECTION_FD);
	for (size_t i = 0; info && i < CLIENTS_MAX; i++)
		if (s->clients[i].state != FREE &&
		    s->clients[i].fd == info->connect_fd) {
			s->clients[i].connection = connection;
			*socket_context = &s->clients[i];
		}
}

static void on_completed(void *ctx, struct MHD_Connection *connection,
			 void **con_cls, enum MHD_RequestTerminationCode why)
{
	struct client *c = *con_cls;
	struct server *s = ctx;

	(void)connection;
	(void)why;
	if (c) {
		forget_file(s, c);
		set_state(c, READING);
	}
}

static void accept_one(struct server *s, const struct wp_serve_socket *socket)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	int fd = accept4(socket->fd, (struct sockaddr *)&address, &size,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c;

	if (fd < 0)
		return;
	c = find_free(s);
	if (!wp_serve_may_connect(socket, fd)) {
		wp_serve_turn_away(fd, "HTTP/1.1 403 Forbidden");
	} else if (!c) {
		wp_serve_turn_away(
			fd,
			"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1");
	} else {
		*c = (struct client){ .fd = fd, .socket = socket, .file = -1 };
		set_state(c, READING);
		if (lib.MHD_add_connection(s->daemon, fd,
					   (struct sockaddr *)&address,
					   size) != MHD_YES)
			c->state = FREE;
	}
}

/* False: there will be no more. */
static bool take_answers(struct server *s)
{
	struct wp_serve_answer answer = { 0 };
	struct client *c;
	int file;
	ssize_t n;

	while ((n = wp_packet_take(s->how->ask, &answer, sizeof(answer), false,
				   &file, 1)) > 0) {
		c = &s->clients[answer.id % CLIENTS_MAX];
		if (n != sizeof(answer) || c->state != ASKED ||
		    c->id != answer.id) {
			if (file >= 0)
				close(file);
			continue;
		}
		answer.text[sizeof(answer.text) - 1] = '\0';
		c->answer = answer;
		c->file = file;
		set_state(c, ANSWERED);
		lib.MHD_resume_connection(c->connection);
	}
	return n == -EAGAIN;
}

/* A client that has gone needs no answer; one that takes too long is in the way. */
static void check_clients(struct server *s)
{
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct client *c = &s->clients[i];
		struct pollfd fd = { c->fd, POLLRDHUP, 0 };
		uint64_t age_s = (wp_clock_ns() - c->since_ns) / WP_NS_PER_S;
		struct wp_serve_ask gone = c->ask;

		if ((c->state == READING && age_s > REQUEST_S) ||
		    (c->state == WRITING && age_s > ANSWER_S))
			shutdown(c->fd, SHUT_RDWR);
		if (c->state != ASKED || poll(&fd, 1, 0) <= 0)
			continue;
		gone.endpoint = WP_SERVE_CANCEL;
		/* There may be room at the next look. */
		if (wp_packet_send(s->how->ask, &gone, sizeof(gone), NULL, 0))
			continue;
		c->answer = (struct wp_serve_answer){ .status = 503 };
		set_state(c, ANSWERED);
		lib.MHD_resume_connection(c->connection);
	}
}

static int loop(struct server *s)
{
	const union MHD_DaemonInfo *info = lib.MHD_get_daemon_info(
		s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd fds[2 + WP_SERVE_LISTEN_MAX] = {
		{ .fd = info ? info->epoll_fd : -1, .events = POLLIN },
		{ .fd = s->how->ask, .events = POLLIN },
	};
	uint64_t checked_ns = 0;

	for (size_t i = 0; i < s->how->nsockets; i++)
		fds[2 + i] = (struct pollfd){ s->how->sockets[i].fd, POLLIN,
					      0 };
	for (;;) {
		MHD_UNSIGNED_LONG_LONG ms = 1000;

		if (lib.MHD_get_timeout(s->daemon, &ms) != MHD_YES || ms > 1000)
			ms = 1000;
		poll(fds, 2 + s->how->nsockets, (int)ms);
		if (fds[1].revents && !take_answers(s))
			return 0;
		for (size_t i = 0; i < s->how->nsockets; i++)
			if (fds[2 + i].revents)
				accept_one(s, &s->how->sockets[i]);
		lib.MHD_run(s->daemon);
		if (wp_clock_ns() - checked_ns > WP_NS_PER_S / 2) {
			check_clients(s);
			checked_ns = wp_clock_ns();
		}
	}
}

/* No NUL ends a path or a parameter before its time. */
static size_t unescape(void *ctx, struct MHD_Connection *connection, char *s)
{
	size_t n = lib.MHD_http_unescape(s);

	(void)ctx;
	(void)connection;
	for (size_t i = 0; i < n; i++)
		if (!s[i])
			s[i] = '?';
	return n;
}

int wp_serve_http_run(const struct wp_serve_http *how)
{
	static struct server server;
	struct server *s = &server;
	int rc;

	tzset();
	s->how = how;
	wp_serve_close_others(how);
	s->daemon = lib.MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET |
			MHD_ALLOW_SUSPEND_RESUME,
		0, NULL, NULL, heed, s, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)CLIENTS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)HEADERS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned int)IDLE_S, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
		MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_END);
	if (!s->daemon)
		return -ENOMEM;
	rc = wp_serve_confine(how);
	return rc ? rc : loop(s);
}

#endif
