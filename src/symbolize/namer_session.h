/* SPDX-License-Identifier: Apache-2.0 */
/* namer_session.h - a child that names addresses, as its parent sees it.
 *
 * Layer: symbolize.
 */
#ifndef WP_NAMER_SERVE_H
#define WP_NAMER_SERVE_H

#include <limits.h>

#include "namer.h"
#include "namer_protocol.h"

enum {
	/* Seconds without an answer, and in all, after which it is ended. */
	WP_NAMER_QUIET_MAX_S = 60,
	WP_NAMER_TOTAL_MAX_S = 600,
};

enum wp_namer_how {
	WP_NAMER_RUNNING,
	WP_NAMER_DONE,
	WP_NAMER_NO_MEMORY,
	WP_NAMER_NO_SANDBOX,
	/* The socket was closed. */
	WP_NAMER_DIED,
	WP_NAMER_SILENT,
	WP_NAMER_TOO_LONG,
	WP_NAMER_NONSENSE,
	WP_NAMER_INTERRUPTED,
};

struct wp_namer_session {
	const struct wp_namer *namer;
	/* The child, and what it is spoken with through. */
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
	struct wp_protocol_message message;
	enum wp_namer_how how;
	/* As waitpid(2) gives it; -1 where it could not be had. */
	int status;
	/* With NO_SANDBOX: an errno. */
	int error;
	/* 0, or what ANSWER returned, or -ENOMEM. */
	int rc;
};

/* Take answers and open debug files until S->how says why that is over. */
void wp_namer_session_run(struct wp_namer_session *s);

/* NULL for none. */
const struct wp_namer_module *wp_namer_find(const struct wp_namer *namer,
					    uint32_t id);

#endif
