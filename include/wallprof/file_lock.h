/* SPDX-License-Identifier: Apache-2.0 */
/* file_lock.h - who holds the file lock that a process waits for.
 *
 * Layer: proc.
 */
#ifndef WP_FILE_LOCK_H
#define WP_FILE_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"

/* Kinds of file locks, by the call that waits.  A request of flock(2) conflicts
 * with locks of flock(2); one of fcntl(2) F_SETLKW with those of open file
 * descriptions (and with the process-owned ones, whose owners /proc/locks names);
 * one of F_OFD_SETLKW with both. */
enum wp_file_want_kind {
	WP_FILE_WANT_FLOCK,
	WP_FILE_WANT_POSIX,
	WP_FILE_WANT_OFD,
};

/* The lock that a thread waits for: bytes FIRST to LAST, LAST included. */
struct wp_file_want {
	enum wp_file_want_kind kind;
	/* An exclusive lock, else a shared one. */
	bool write;
	uint64_t first;
	uint64_t last;
};

/* A lock that is held and that a process waits for. */
struct wp_file_lock {
	/* As /proc/locks names it: "POSIX", "FLOCK", "OFDLCK", "LEASE", ... */
	char type[12];
	/* The pid of the holder; -1 for a lock of an open file description
	 * (F_OFD_SETLK), whose holders wp_fd_holders_find finds. */
	pid_t holder;
	/* The lock is exclusive. */
	bool write;
};

/* Who waits for a lock, by /proc/locks. */
struct wp_file_waiter {
	pid_t pid;
	/* The file's, as by stat(2); DEV in makedev(3) form. */
	dev_t dev;
	ino_t ino;
	/* The bytes of a lock of fcntl(2): several threads of a process may wait for
	 * several locks of one file.  Borrowed; NULL: not known. */
	const struct wp_file_want *want;
	/* It waits in flock(2), not in fcntl(2): a thread of its process may wait in the
	 * other for the same file. */
	bool is_flock;
};

/* Find in TEXT[0..len), from /proc/locks (proc(5)), the lock that WAITER waits for.
 * A file system may show stat(2) another device than /proc/locks: when no line has
 * DEV, the inode number decides.  Where no line has WANT's bytes, any is taken.
 *
 * Returns 0, or -ENOENT when WAITER waits for none.
 */
WP_MUST_CHECK
int wp_file_lock_find(struct wp_file_lock *ret, const char *text, size_t len,
		      const struct wp_file_waiter *waiter);

/* Whether TEXT[0..len), from /proc/PID/fdinfo/FD (proc(5), lines "lock:", since
 * Linux 4.1), shows a lock of that open file description that conflicts with
 * WANT. */
bool wp_file_lock_blocks(const struct wp_file_want *want, const char *text,
			 size_t len);

#endif
