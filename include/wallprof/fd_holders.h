/* SPDX-License-Identifier: Apache-2.0 */
/* fd_holders.h - the other processes that a wait leads to.
 *
 * Layer: proc.  Reads /proc and asks the kernel's socket tables; opens nothing
 * that belongs to another process.  Whatever walks all of /proc is bounded in
 * time and number, and tells when the bound or a permission cut it short: then
 * somebody may be missing from the answer.
 */
#ifndef WP_FD_HOLDERS_H
#define WP_FD_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/process.h"

/* Whose locks keep a file lock from being granted: of flock(2); of an open file
 * description (F_OFD_SETLK), which is in the way of F_SETLK too; and for one of
 * a description also a process's own (F_SETLK). */
enum wp_file_want_kind {
	WP_FILE_WANT_FLOCK,
	WP_FILE_WANT_POSIX,
	WP_FILE_WANT_OFD,
};

/* A file lock that somebody waits for: bytes FIRST to LAST, LAST included. */
struct wp_file_want {
	enum wp_file_want_kind kind;
	bool write;
	uint64_t first;
	uint64_t last;
};

/* What others may have open as well. */
struct wp_fd_object {
	/* As the link in /proc/PID/fd reads: "pipe:[123]", "socket:[456]", or
	 * the path of a fifo or file; borrowed. */
	const char *link;
	/* Of a path, by which the same one in another mount namespace is told
	 * apart; unused for the others. */
	dev_t dev;
	ino_t ino;
	/* The lock on it that is waited for; borrowed, NULL: none. */
	const struct wp_file_want *want;
};

/* One descriptor of one process that is one of the objects. */
struct wp_fd_holder {
	/* Index of the object asked for. */
	uint32_t object;
	pid_t pid;
	int fd;
	/* Ends of the pipe or fifo; both for a socket. */
	bool reads;
	bool writes;
	/* It has a lock that is in the way of the object's WANT. */
	bool blocks;
};

struct wp_fd_holders {
	/* Array of LEN in the order of /proc, by process; owned. */
	struct wp_fd_holder *v;
	size_t len;
	size_t cap;
	/* Processes whose descriptors might not be read. */
	uint32_t denied;
	/* The deadline or MAX ended it before the last process. */
	bool cut;
};

#define WP_FD_HOLDERS_INIT                                                     \
	{                                                                      \
		0                                                              \
	}

/* Replace PEERS by who has any of OBJECTS[0..n) open, at most MAX descriptors
 * of them, looking no longer than until DEADLINE_NS of CLOCK_MONOTONIC.  About
 * 5 us for each descriptor on the machine.  A thread with a descriptor table of
 * its own (unshare(2), CLONE_FILES) counts as its process's first one.
 *
 * Returns 0 or -ENOMEM; -ENOTSUP when there is no /proc.
 */
WP_MUST_CHECK
int wp_fd_holders_find(struct wp_fd_holders *peers,
		       const struct wp_fd_object *objects, size_t n, size_t max,
		       uint64_t deadline_ns);
void wp_fd_holders_clear(struct wp_fd_holders *peers);

/* The ends that the text of /proc/PID/fdinfo/FD (proc(5)) tells: its line
 * "flags:" in octal.  0 or -EBADMSG. */
WP_MUST_CHECK
int wp_fd_holders_parse_flags(bool *ret_reads, bool *ret_writes,
			      const char *text, size_t len);

/* The inode of the unix socket that socket INO of the process behind PROC_FD
 * (/proc/PID) is connected to (sock_diag(7)).
 *
 * Returns 0; -ENOENT when there is no such socket or it is not connected;
 * -ENOTSUP when the process is in another network namespace, whose tables
 * cannot be seen, or the kernel has none (CONFIG_UNIX_DIAG).
 */
WP_MUST_CHECK
int wp_unix_peer_read(uint64_t *ret_peer_ino, int proc_fd, uint64_t ino);

/* The same from the kernel's answer in BUF[0..len).  0, -ENOENT, -ENOTSUP,
 * -EBADMSG. */
WP_MUST_CHECK
int wp_unix_peer_parse(uint64_t *ret_peer_ino, const void *buf, size_t len,
		       uint64_t ino);

/* A file lock that somebody waits for. */
struct wp_file_lock {
	/* As /proc/locks names it: "POSIX", "FLOCK", "OFDLCK", "LEASE", ... */
	char type[12];
	/* The process that has it; -1 for one that belongs to an open file
	 * description (F_OFD_SETLK), of which wp_fd_holders_find tells more. */
	pid_t holder;
	/* It is held for writing. */
	bool write;
};

/* Find in TEXT[0..len), from /proc/locks (proc(5)), the lock on the file of
 * DEV (makedev(3) form) and INO that process WAITER waits for.  A file system
 * may show stat(2) another device than /proc/locks: when no line has DEV, the
 * inode number decides.
 *
 * Returns 0, or -ENOENT when WAITER waits for none.
 */
WP_MUST_CHECK
int wp_file_lock_find(struct wp_file_lock *ret, const char *text, size_t len,
		      pid_t waiter, uint64_t dev, uint64_t ino);

/* Does TEXT[0..len), from /proc/PID/fdinfo/FD (proc(5), lines "lock:", since
 * Linux 4.1), say that this descriptor's open file has a lock that keeps WANT
 * from being granted? */
bool wp_file_lock_blocks(const struct wp_file_want *want, const char *text,
			 size_t len);

/* Replace PIDS by the children of process PID.  One whose parent thread ended
 * belongs to another thread of the process; one whose parent process ended is
 * no child any more.  0, -ESRCH, -ENOMEM. */
WP_MUST_CHECK
int wp_children_list(struct wp_tids *pids, pid_t pid);

/* The same for all its descendants, parents before their children, at most
 * MAX. */
WP_MUST_CHECK
int wp_children_list_all(struct wp_tids *pids, pid_t pid, size_t max);

/* Add the numbers in TEXT[0..len), as in /proc/TID/children ("12 34 ").
 * 0, -EBADMSG, -ENOMEM. */
WP_MUST_CHECK
int wp_children_parse(struct wp_tids *pids, const char *text, size_t len);

#endif
