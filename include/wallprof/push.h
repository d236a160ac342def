/* SPDX-License-Identifier: Apache-2.0 */
/* push.h - profiles sent to a collector by HTTP, in a process of its own.
 *
 * Layer: serve.
 *
 * The collector is one that has Pyroscope's POST /ingest (grafana.com/docs/pyroscope,
 * server HTTP API): a form with the field "profile", what it is of in the URL.
 */
#ifndef WP_PUSH_H
#define WP_PUSH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/serve.h"

/* A profile to send; comes with the descriptor of a file of pprof. */
struct wp_push_item {
	char name[WP_SERVE_NAME_SIZE];
	int32_t pid;
	/* Its time, in seconds since 1970, UTC. */
	int64_t from_s;
	int64_t until_s;
};

/* What became of those that came. */
struct wp_push_stats {
	uint64_t sent;
	uint64_t sent_bytes;
	/* Sent again, after the collector was away or too busy. */
	uint64_t retries;
	/* Not taken by the collector, and not for want of room; dropped as the
	 * queue was full, the oldest first. */
	uint64_t rejected;
	uint64_t dropped;
	/* In the queue now. */
	uint64_t queued;
	uint64_t queued_bytes;
	/* Why the last was not taken; "": it was; and whether it is kept, to be sent
	 * again. */
	char why[160];
	bool is_kept;
};

/* Can this build push, and is libcurl here?  Loads it. */
bool wp_push_is_there(void);

/* Send the items that come over SOCK (SOCK_SEQPACKET) to the collector at URL, and tell
 * stats there, until it is closed.  AUTH is "USER:PASSWORD", a bearer token, or "": none.
 * This process, whose parent is PARENT, gives up all rights over others before.  -errno if
 * it cannot. */
WP_MUST_CHECK
int wp_push_run(const char *url, const char *auth, int sock, pid_t parent);

#endif
