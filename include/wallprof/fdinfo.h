/* SPDX-License-Identifier: Apache-2.0 */
/* fdinfo.h - the file, pipe or socket that a descriptor of a process refers to.
 *
 * Layer: proc.  Reads links and tables of /proc only: opens no file of the
 * target and touches none of its sockets.
 */
#ifndef WP_FDINFO_H
#define WP_FDINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/io.h"

#define WP_FD_KINDS(X)                                                         \
	X(UNKNOWN, "")                                                         \
	X(FILE, "file")                                                        \
	X(DIRECTORY, "directory")                                              \
	X(PIPE, "pipe")                                                        \
	X(SOCKET, "socket")                                                    \
	X(TTY, "tty")                                                          \
	X(DEVICE, "device")                                                    \
	X(EPOLL, "epoll")                                                      \
	X(EVENTFD, "eventfd")                                                  \
	X(TIMERFD, "timerfd")                                                  \
	X(SIGNALFD, "signalfd")                                                \
	X(INOTIFY, "inotify")                                                  \
	X(FANOTIFY, "fanotify")                                                \
	X(PIDFD, "pidfd")                                                      \
	X(IO_URING, "io_uring")                                                \
	X(OTHER, "other")

enum wp_fd_kind {
#define X(name, text) WP_FD_##name,
	WP_FD_KINDS(X)
#undef X
		WP_NFD_KINDS
};

const char *wp_fd_kind_name(enum wp_fd_kind kind);

enum { WP_FD_TEXT_MAX = 512 };

struct wp_fd_desc {
	enum wp_fd_kind kind;
	/* Text to show: "tcp 127.0.0.1:41234 -> 127.0.0.1:5432", "tcp listen
	 * 0.0.0.0:6379", "unix /run/x.sock", "pipe:[1234]", "file /a/b".  No
	 * control characters. */
	char text[WP_FD_TEXT_MAX];
};

/* A socket of the target's network namespace. */
struct wp_socket {
	uint64_t ino;
	/* Offset of its description in wp_fdinfo.texts. */
	size_t text;
};

enum { WP_FDINFO_MISSED = 64, WP_FDINFO_CHECKED = 256 };

struct wp_fdinfo {
	/* Directory /proc/PID, borrowed. */
	int proc_fd;
	/* sockets[0..nsockets), by inode if IS_SORTED, and their NUL-terminated
	 * descriptions texts[0..texts_len); owned. */
	struct wp_socket *sockets;
	size_t nsockets, cap_sockets;
	bool is_sorted;
	char *texts;
	size_t texts_len, texts_cap;
	/* Buffer for the tables of /proc/PID/net. */
	struct wp_text file;
	/* CLOCK_MONOTONIC when the tables were last read; 0: never. */
	uint64_t read_ns;
	/* The CPU time that it took. */
	uint64_t cost_ns;
	/* The last inodes for which tables were read that had them not; missed[NMISSED
	 * modulo its size] is the oldest. */
	uint64_t missed[WP_FDINFO_MISSED];
	size_t nmissed;
	/* checked[INO modulo its size] is INO: since the tables were read, the kernel has
	 * said that it is a unix socket. */
	uint64_t checked[WP_FDINFO_CHECKED];
};

enum { WP_FD_PATH_MAX = 48 };

/* The path below /proc/PID of descriptor FD in DIR, "fd" or "fdinfo", as thread TID has
 * it: its table may be its own (unshare(2), CLONE_FILES).  TID 0: the first thread. */
const char *wp_fdinfo_path(char buf[WP_FD_PATH_MAX], const char *dir, pid_t tid,
			   int fd);

/* PROC_FD is borrowed. */
void wp_fdinfo_init(struct wp_fdinfo *fi, int proc_fd);
void wp_fdinfo_clear(struct wp_fdinfo *fi);

/* Describe descriptor FD of thread TID (0: of the first) at NOW_NS (CLOCK_MONOTONIC).
 * Costs one readlink(2), and of a path one statx(2).
 * For a socket that is in no table read so far, the tables of /proc/PID/net are
 * read again, at most five times a second; until then it reads "socket:[INO]".
 *
 * Returns 0; -ENOENT: there is no such descriptor; -EPERM, -ESRCH, -ENOMEM.
 */
WP_MUST_CHECK
int wp_fdinfo_describe(struct wp_fdinfo *fi, pid_t tid, int fd, uint64_t now_ns,
		       struct wp_fd_desc *ret);

/* The kind of descriptor FD of thread TID, as above, by its link alone: FILE for any path.
 * UNKNOWN if it cannot be read. */
enum wp_fd_kind wp_fdinfo_kind(const struct wp_fdinfo *fi, pid_t tid, int fd);

/* The kind of descriptor by LINK, the target of its link in /proc/PID/fd; FILE
 * for any path, which only stat(2) tells apart. */
enum wp_fd_kind wp_fdinfo_classify(const char *link);

/* Add the sockets listed in TEXT[0..len), the file /proc/PID/net/NAME: "tcp",
 * "tcp6", "udp", "udp6", "raw", "raw6" (proc(5)), "unix", "netlink", "packet".
 * Lines that do not parse are passed over.  0 or -ENOMEM.
 */
WP_MUST_CHECK
int wp_fdinfo_parse_net(struct wp_fdinfo *fi, const char *name,
			const char *text, size_t len);

/* The description of socket INO; NULL if it has none, or several that differ.  Valid until
 * the tables are read again. */
const char *wp_fdinfo_find_socket(struct wp_fdinfo *fi, uint64_t ino);

#endif
