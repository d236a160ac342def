/* SPDX-License-Identifier: Apache-2.0 */
/* serve.h - HTTP for recordings that go on: what is asked for, and its process.
 *
 * Layer: serve.
 *
 * The process that parses HTTP has no rights over other processes: it can only ask, by
 * packets of fixed size over a socket, and answer with the file that comes back.
 */
#ifndef WP_SERVE_H
#define WP_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"

/* What can be asked for: id, path. */
#define WP_SERVE_ENDPOINTS(X)                                                  \
	X(PAGE, "/")                                                           \
	X(METRICS, "/metrics")                                                 \
	X(CHECK, "/check")                                                     \
	X(TIMELINE, "/timeline.html")                                          \
	X(INDEX, "/debug/pprof/")                                              \
	X(PROFILE, "/debug/pprof/profile")                                     \
	X(WALL, "/debug/pprof/wall")                                           \
	X(FGPROF, "/debug/fgprof")                                             \
	X(BLOCK, "/debug/pprof/block")                                         \
	X(MUTEX, "/debug/pprof/mutex")                                         \
	X(THREADCREATE, "/debug/pprof/threadcreate")                           \
	X(GOROUTINE, "/debug/pprof/goroutine")                                 \
	X(CMDLINE, "/debug/pprof/cmdline")                                     \
	X(HEAP, "/debug/pprof/heap")                                           \
	X(ALLOCS, "/debug/pprof/allocs")                                       \
	X(DELTA_BLOCK, "/debug/pprof/delta_block")                             \
	X(DELTA_MUTEX, "/debug/pprof/delta_mutex")                             \
	/* No client can ask for these: to push, of a hang, to give up. */     \
	X(PUSH, "push/")                                                       \
	X(KEEP, "keep/")                                                       \
	X(CANCEL, "cancel/")

enum wp_serve_endpoint {
#define X(name, path) WP_SERVE_##name,
	WP_SERVE_ENDPOINTS(X)
#undef X
		WP_NSERVE_ENDPOINTS
};

/* The path of ENDPOINT, and the last part of that: "profile". */
const char *wp_serve_path(enum wp_serve_endpoint endpoint);
const char *wp_serve_name(enum wp_serve_endpoint endpoint);

enum {
	WP_SERVE_NAME_SIZE = 64,
	WP_SERVE_TEXT_SIZE = 512,
	/* Most seconds of one request, and back in time. */
	WP_SERVE_SECONDS_MAX = 3600,
	WP_SERVE_AGO_MAX = 86400,
};

/* One request. */
struct wp_serve_ask {
	/* The asker's, which the answer has. */
	uint32_t id;
	/* enum wp_serve_endpoint */
	uint32_t endpoint;
	/* 0: of no number; "": of no name. */
	int32_t pid;
	char name[WP_SERVE_NAME_SIZE];
	/* 0: not of a time but of all, or of now. */
	uint32_t seconds;
	/* Its time begins so many seconds before now; 0: now. */
	uint32_t ago;
	uint32_t debug;
	/* Of no client: a time by CLOCK_MONOTONIC, instead of SECONDS; TO_NS 0:
	 * none. */
	uint64_t from_ns;
	uint64_t to_ns;
};

#define WP_SERVE_TYPES(X)                                                      \
	X(TEXT, "text/plain; charset=utf-8")                                   \
	X(HTML, "text/html; charset=utf-8")                                    \
	X(PPROF, "application/octet-stream")                                   \
	X(METRICS, "text/plain; version=0.0.4; charset=utf-8")

enum wp_serve_type {
#define X(name, text) WP_SERVE_TYPE_##name,
	WP_SERVE_TYPES(X)
#undef X
		WP_NSERVE_TYPES
};

/* What comes back, with the descriptor of a file if STATUS is 200. */
struct wp_serve_answer {
	uint32_t id;
	/* As of HTTP. */
	uint32_t status;
	/* enum wp_serve_type */
	uint32_t type;
	/* Of a command that answers: its exit status. */
	uint32_t exit_status;
	/* Unless STATUS is 200: a line that says why. */
	char text[WP_SERVE_TEXT_SIZE];
};

/* A request, as its URL has it. */
struct wp_serve_query {
	const char *path;
	/* The value of parameter KEY; NULL: it has none of that name. */
	const char *(*get)(void *ctx, const char *key);
	void *ctx;
	/* Nothing but the headers of the answer is wanted. */
	bool is_head;
};

/* Set *RET to what QUERY asks for.  0, or the status of HTTP with why in TEXT. */
WP_MUST_CHECK
unsigned int wp_serve_parse(struct wp_serve_ask *ret,
			    const struct wp_serve_query *query,
			    char text[WP_SERVE_TEXT_SIZE]);

/* May a client whose Host header is HOST (NULL: none) ask a server that listens on
 * LISTENED, its host without port?  A name that anybody may let point here is no
 * host of ours. */
bool wp_serve_host_is_ours(const char *host, const char *listened);

/* May a request with the headers Sec-Fetch-Site, -Mode and -Dest (NULL: it has none;
 * www.w3.org/TR/fetch-metadata) ask?  Pages of other sites may link here, but not have
 * a browser ask without its user seeing it. */
bool wp_serve_site_is_ours(const char *site, const char *mode,
			   const char *dest);

/* Does AUTHORIZATION, a header or NULL, have TOKEN?  Takes the same time wherever they
 * differ. */
bool wp_serve_token_is_right(const char *authorization, const char *token);

enum { WP_SERVE_LISTEN_MAX = 4 };

/* A socket that listens. */
struct wp_serve_socket {
	int fd;
	bool is_unix;
	/* Host that was given, without port; "" for unix. */
	char host[256];
};

/* Listen where TEXT says: "unix:PATH", which only this user can connect to, or
 * "HOST:PORT".  REMOTE: HOST may be other than this machine's own.  0 or -errno with
 * ERR. */
WP_MUST_CHECK
int wp_serve_listen(struct wp_serve_socket *ret, const char *text, bool remote,
		    struct wp_err *err);

/* May who has connected FD to SOCKET ask?  On a unix socket only root and who runs
 * this process may. */
bool wp_serve_may_connect(const struct wp_serve_socket *socket, int fd);

/* Answer STATUS, a line and headers of HTTP, to FD and close it. */
void wp_serve_turn_away(int fd, const char *status);

struct wp_serve_http {
	/* [0..nsockets) */
	const struct wp_serve_socket *sockets;
	size_t nsockets;
	/* NULL: none is asked for. */
	const char *token;
	/* Questions go there, answers come from there (SOCK_SEQPACKET). */
	int ask;
	/* The first question's number: answers to questions of an earlier process may still
	 * come. */
	uint32_t nasked;
	/* Of the process that made this one. */
	pid_t parent;
};

/* Can this build serve, and is libmicrohttpd here?  Loads it. */
bool wp_serve_is_there(void);

/* Serve in this process, which gives up all other rights before it reads a byte,
 * until ASK is closed.  -errno if it cannot. */
WP_MUST_CHECK
int wp_serve_http_run(const struct wp_serve_http *how);

#endif
