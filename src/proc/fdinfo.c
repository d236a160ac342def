/* SPDX-License-Identifier: Apache-2.0 */
/* fdinfo.c - see wallprof/fdinfo.h.  The tables of sockets: sockets.c. */
#include "wallprof/fdinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "wallprof/clock.h"

enum {
	NET_FILE_MAX = 32 << 20,
	/* The tables are read again after so many times what that took; for a socket
	 * that they had not, after as many of these times. */
	REST = 20,
	MISSED_RESTS = 10,
};

#define REREAD_NS (200 * WP_NS_PER_MS)

const char *wp_fd_kind_name(enum wp_fd_kind kind)
{
	static const char *const name[] = {
#define X(id, text) [WP_FD_##id] = text,
		WP_FD_KINDS(X)
#undef X
	};

	return (unsigned int)kind < WP_NFD_KINDS ? name[kind] : "";
}

enum wp_fd_kind wp_fdinfo_classify(const char *link)
{
	/* fs/proc/fd.c shows d_path: "TYPE:[INODE]", "anon_inode:NAME", or a
	 * path. */
	static const struct {
		const char *prefix;
		enum wp_fd_kind kind;
	} rows[] = {
		{ "pipe:[", WP_FD_PIPE },
		{ "socket:[", WP_FD_SOCKET },
		{ "anon_inode:[eventpoll]", WP_FD_EPOLL },
		{ "anon_inode:[eventfd", WP_FD_EVENTFD },
		{ "anon_inode:[timerfd]", WP_FD_TIMERFD },
		{ "anon_inode:[signalfd]", WP_FD_SIGNALFD },
		{ "anon_inode:inotify", WP_FD_INOTIFY },
		{ "anon_inode:[fanotify]", WP_FD_FANOTIFY },
		{ "anon_inode:[pidfd]", WP_FD_PIDFD },
		{ "anon_inode:[io_uring]", WP_FD_IO_URING },
		{ "anon_inode:", WP_FD_OTHER },
		{ "pidfd:[", WP_FD_PIDFD },
		{ "/dev/pts/", WP_FD_TTY },
		{ "/dev/tty", WP_FD_TTY },
		{ "/dev/console", WP_FD_TTY },
		{ "/", WP_FD_FILE },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!strncmp(link, rows[i].prefix, strlen(rows[i].prefix)))
			return rows[i].kind;
	return WP_FD_OTHER;
}

/* A path does not tell the kind of file: a fifo has one too. */
static enum wp_fd_kind kind_of_path(const struct wp_fdinfo *fi,
				    const char *name)
{
	struct stat st;

	if (wp_io_stat_open(fi->proc_fd, name, &st))
		return WP_FD_FILE;
	switch (st.st_mode & S_IFMT) {
	case S_IFIFO:
		return WP_FD_PIPE;
	case S_IFSOCK:
		return WP_FD_SOCKET;
	case S_IFDIR:
		return WP_FD_DIRECTORY;
	case S_IFCHR:
	case S_IFBLK:
		return WP_FD_DEVICE;
	default:
		return WP_FD_FILE;
	}
}

/* Append the printable form of S. */
static void put(struct wp_fd_desc *desc, const char *s)
{
	size_t n = strlen(desc->text);

	for (; *s && n + 5 < sizeof(desc->text); s++) {
		unsigned char c = (unsigned char)*s;

		if (c < 0x20 || c == 0x7f)
			n += (size_t)snprintf(desc->text + n,
					      sizeof(desc->text) - n, "\\x%02x",
					      c);
		else
			desc->text[n++] = *s;
	}
	desc->text[n] = '\0';
}

static int read_tables(struct wp_fdinfo *fi, uint64_t now_ns)
{
	static const char *const names[] = { "tcp",  "tcp6",	"udp",
					     "udp6", "unix",	"raw",
					     "raw6", "netlink", "packet" };
	uint64_t cpu_ns = wp_clock_cpu_ns();
	char path[32];
	int rc = 0;

	fi->nsockets = 0;
	fi->texts_len = 0;
	memset(fi->checked, 0, sizeof(fi->checked));
	fi->read_ns = now_ns;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !rc; i++) {
		snprintf(path, sizeof(path), "net/%s", names[i]);
		/* Sockets of a table that is missing or too long have no text.
		 */
		if (!wp_text_read(&fi->file, fi->proc_fd, path, NET_FILE_MAX))
			rc = wp_fdinfo_parse_net(fi, names[i], fi->file.data,
						 fi->file.len);
	}
	fi->cost_ns = wp_clock_cpu_ns() - cpu_ns;
	return rc;
}

/* Did the tables lack INO when they were read for it?  A vsock is in none of them, nor is a
 * TCP socket before it has an address. */
static bool was_missed(const struct wp_fdinfo *fi, uint64_t ino)
{
	for (size_t i = 0; i < WP_FDINFO_MISSED; i++)
		if (fi->missed[i] == ino)
			return true;
	return false;
}

/* Are the tables to be read at NOW_NS for INO, which they lack? */
static bool is_due(const struct wp_fdinfo *fi, uint64_t ino, uint64_t now_ns)
{
	uint64_t wait_ns = REST * fi->cost_ns;

	if (!fi->read_ns)
		return true;
	if (wait_ns < REREAD_NS)
		wait_ns = REREAD_NS;
	if (was_missed(fi, ino))
		wait_ns *= MISSED_RESTS;
	return now_ns - fi->read_ns >= wait_ns;
}

/* Does the kernel say that NAME, whose link was LINK, is a unix socket?  It is asked by
 * an attribute of sockets alone (net/socket.c, sockfs_xattr_get): what is there by now may
 * be a file whose server never answers. */
static bool is_unix(const struct wp_fdinfo *fi, const char *name,
		    const char *link)
{
	char path[32], now[64], proto[32];
	int fd = openat(fi->proc_fd, name, O_PATH | O_CLOEXEC);
	ssize_t n;
	bool yes;

	if (fd < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, now, sizeof(now));
	yes = n > 0 && (size_t)n == strlen(link) &&
	      !memcmp(now, link, (size_t)n) &&
	      getxattr(path, "system.sockprotoname", proto, sizeof(proto)) >
		      4 &&
	      !memcmp(proto, "UNIX", 4);
	close(fd);
	return yes;
}

/* A line of the table of unix sockets may be forged (see wp_fdinfo_find_socket), also of
 * a socket that is in no table. */
static bool is_forged(struct wp_fdinfo *fi, const char *name, const char *link,
		      uint64_t ino, const char *text)
{
	uint64_t *checked = &fi->checked[ino % WP_FDINFO_CHECKED];

	if (strncmp(text, "unix", 4) != 0 || *checked == ino)
		return false;
	if (!is_unix(fi, name, link))
		return true;
	*checked = ino;
	return false;
}

static int describe_socket(struct wp_fdinfo *fi, const char *name,
			   const char *link, uint64_t now_ns,
			   struct wp_fd_desc *ret)
{
	uint64_t ino = strtoull(link + strlen("socket:["), NULL, 10);
	const char *text = wp_fdinfo_find_socket(fi, ino);

	if (!text && is_due(fi, ino, now_ns)) {
		if (read_tables(fi, now_ns))
			return -ENOMEM;
		text = wp_fdinfo_find_socket(fi, ino);
		if (!text && !was_missed(fi, ino))
			fi->missed[fi->nmissed++ % WP_FDINFO_MISSED] = ino;
	}
	if (text && is_forged(fi, name, link, ino, text))
		text = NULL;
	put(ret, text ? text : link);
	return 0;
}

const char *wp_fdinfo_path(char buf[WP_FD_PATH_MAX], const char *dir, pid_t tid,
			   int fd)
{
	if (tid)
		snprintf(buf, WP_FD_PATH_MAX, "task/%d/%s/%d", tid, dir, fd);
	else
		snprintf(buf, WP_FD_PATH_MAX, "%s/%d", dir, fd);
	return buf;
}

/* Read the link at NAME, below /proc/PID, into LINK.  0 or -errno. */
static int read_link(const struct wp_fdinfo *fi, const char *name,
		     char link[PATH_MAX])
{
	ssize_t n = readlinkat(fi->proc_fd, name, link, PATH_MAX - 1);

	if (n < 0)
		return errno == EACCES ? -EPERM : -errno;
	link[n] = '\0';
	return 0;
}

enum wp_fd_kind wp_fdinfo_kind(const struct wp_fdinfo *fi, pid_t tid, int fd)
{
	char name[WP_FD_PATH_MAX], link[PATH_MAX];

	return read_link(fi, wp_fdinfo_path(name, "fd", tid, fd), link) ?
		       WP_FD_UNKNOWN :
		       wp_fdinfo_classify(link);
}

int wp_fdinfo_describe(struct wp_fdinfo *fi, pid_t tid, int fd, uint64_t now_ns,
		       struct wp_fd_desc *ret)
{
	char name[WP_FD_PATH_MAX], link[PATH_MAX];
	int rc = read_link(fi, wp_fdinfo_path(name, "fd", tid, fd), link);

	if (rc)
		return rc;
	ret->text[0] = '\0';
	ret->kind = wp_fdinfo_classify(link);
	if (!strncmp(link, "socket:[", 8))
		return describe_socket(fi, name, link, now_ns, ret);
	if (ret->kind == WP_FD_FILE)
		ret->kind = kind_of_path(fi, name);
	if (link[0] == '/' || ret->kind == WP_FD_OTHER) {
		put(ret, wp_fd_kind_name(ret->kind));
		put(ret, " ");
		put(ret, link);
	} else if (ret->kind == WP_FD_PIPE) {
		put(ret, link);
	} else {
		put(ret, wp_fd_kind_name(ret->kind));
	}
	return 0;
}

void wp_fdinfo_init(struct wp_fdinfo *fi, int proc_fd)
{
	*fi = (struct wp_fdinfo){ .proc_fd = proc_fd };
}

void wp_fdinfo_clear(struct wp_fdinfo *fi)
{
	free(fi->sockets);
	free(fi->texts);
	wp_text_clear(&fi->file);
	*fi = (struct wp_fdinfo){ .proc_fd = -1 };
}
