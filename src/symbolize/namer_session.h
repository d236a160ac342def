/* SPDX-License-Identifier: Apache-2.0 */
/* namer_session.h - the parent's side of one child that names addresses.
 *
 * Layer: symbolize.
 */
#ifndef WP_NAMER_SESSION_H
#define WP_NAMER_SESSION_H

#include <limits.h>

#include "namer.h"
#include "namer_protocol.h"

enum {
	/* Limits on the child, in seconds: without a message; in all. */
	WP_NAMER_QUIET_MAX_S = 60,
	WP_NAMER_TOTAL_MAX_S = 600,
};

/* How a session ended. */
enum wp_namer_how {
	WP_NAMER_RUNNING,
	WP_NAMER_DONE,
	WP_NAMER_NO_MEMORY,
	WP_NAMER_NO_SANDBOX,
	/* The child closed its socket. */
	WP_NAMER_DIED,
	WP_NAMER_SILENT,
	WP_NAMER_TOO_LONG,
	WP_NAMER_NONSENSE,
	WP_NAMER_INTERRUPTED,
};

struct wp_namer_session {
	const struct wp_namer *namer;
	/* The child, and the parent's end of its socket. */
	pid_t pid;
	int sock;
	/* Bytes received and not parsed yet: buf[0..len), owned. */
	uint8_t *buf;
	size_t len;
	size_t cap;
	/* Index of the address that the next answer is for. */
	uint32_t next;
	/* Messages so far that were not answers. */
	uint32_t noise;
	/* Tenths of a second since the last message. */
	unsigned int nquiet;
	/* CLOCK_MONOTONIC when the naming ends at the latest. */
	uint64_t end_ns;
	/* The path of the debug file that was opened last, and its module. */
	uint32_t debug_module;
	char debug_path[PATH_MAX];
	struct wp_protocol_message message;
	enum wp_namer_how how;
	/* The child's status of waitpid(2); -1: not known. */
	int status;
	/* The errno of WP_NAMER_NO_SANDBOX. */
	int error;
	/* 0, or what ANSWER returned, or -ENOMEM. */
	int rc;
};

/* Receive answers and open debug files until S->how is other than RUNNING. */
void wp_namer_session_run(struct wp_namer_session *s);

/* The module ID, or NULL. */
const struct wp_namer_module *wp_namer_find(const struct wp_namer *namer,
					    uint32_t id);

#endif
