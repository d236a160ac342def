/* SPDX-License-Identifier: Apache-2.0 */
/* fd_holders.h - which processes have a pipe, socket or file open.
 *
 * Layer: proc.  Reads all of /proc/PID/fd, within a bound on time and on the
 * number of results; opens nothing that belongs to another process.
 */
#ifndef WP_FD_HOLDERS_H
#define WP_FD_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/file_lock.h"
#include "wallprof/process.h"

/* An open file whose holders are looked for. */
struct wp_fd_object {
	/* Target of its link in /proc/PID/fd: "pipe:[123]", "socket:[456]", or
	 * the path of a fifo or file; borrowed. */
	const char *link;
	/* st_dev and st_ino, compared where LINK is a path, as another file may
	 * have that path in another mount namespace. */
	dev_t dev;
	ino_t ino;
	/* The lock on the file that a thread waits for; borrowed, NULL: none. */
	const struct wp_file_want *want;
};

/* A descriptor of a process that refers to an object. */
struct wp_fd_holder {
	/* Index into the objects asked for. */
	uint32_t object;
	pid_t pid;
	int fd;
	/* Access mode of the open file description; both for a socket. */
	bool reads;
	bool writes;
	/* Its open file description has a lock that conflicts with WANT. */
	bool blocks;
};

/* A process, no kernel thread, of which it is not known what it has: /proc/PID/fd may not
 * be read, or descriptors were sent to a socket of it and are not received yet. */
struct wp_fd_denied {
	/* 0: one or more that /proc hides. */
	pid_t pid;
	pid_t ppid;
	/* In clock ticks after boot; UINT64_MAX: not known. */
	uint64_t start_time;
	/* Its descriptors were read: it may receive more. */
	bool receives;
};

struct wp_fd_holders {
	/* v[0..len), by process, in the order of /proc; owned. */
	struct wp_fd_holder *v;
	size_t len;
	size_t cap;
	/* denied[0..ndenied), in the order of /proc; owned. */
	struct wp_fd_denied *denied;
	size_t ndenied;
	size_t cap_denied;
	/* The processes that have an io_uring, which may write for them to what they
	 * have open, in the order of /proc; owned. */
	struct wp_tids rings;
	/* The search ended at the deadline or at MAX results. */
	bool cut;
};

#define WP_FD_HOLDERS_INIT                                                     \
	{                                                                      \
		0                                                              \
	}

/* Replace HOLDERS by the descriptors of all processes that refer to any of
 * OBJECTS[0..n), at most MAX, searching until DEADLINE_NS of CLOCK_MONOTONIC at
 * the latest.  Costs about 5 us for each descriptor of the machine, and 1 us for
 * each thread, which may have descriptors of its own (unshare(2), CLONE_FILES).
 *
 * Returns 0 or -ENOMEM; -ENOTSUP when there is no /proc.
 */
WP_MUST_CHECK
int wp_fd_holders_find(struct wp_fd_holders *holders,
		       const struct wp_fd_object *objects, size_t n, size_t max,
		       uint64_t deadline_ns);
void wp_fd_holders_clear(struct wp_fd_holders *holders);

/* Parse the access mode from the line "flags:" (octal) of TEXT[0..len), which
 * is /proc/PID/fdinfo/FD (proc(5)).  0 or -EBADMSG. */
WP_MUST_CHECK
int wp_fd_holders_parse_flags(bool *ret_reads, bool *ret_writes,
			      const char *text, size_t len);

#endif
