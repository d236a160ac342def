/* SPDX-License-Identifier: Apache-2.0 */
/* io.h - reads files of /proc; repeats reads after EINTR.
 *
 * Layer: base.
 */
#ifndef WP_IO_H
#define WP_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "wallprof/err.h"

/* The bytes of a file, in memory that is used again for the next file. */
struct wp_text {
	/* data[0..len), then a NUL; owned; NULL before the first read. */
	char *data;
	size_t len;
	size_t cap;
};

#define WP_TEXT_INIT                                                           \
	{                                                                      \
		0                                                              \
	}

/* Replace TEXT by the file PATH relative to DIRFD, read to its end.
 *
 * Returns 0; -EOVERFLOW when it is longer than MAX: TEXT has its beginning, more
 * than MAX bytes of it; -ENOMEM, or the -errno of open or read: TEXT is empty.
 */
WP_MUST_CHECK
int wp_text_read(struct wp_text *text, int dirfd, const char *path, size_t max);
/* The same for the open file FD, from its start. */
WP_MUST_CHECK
int wp_text_pread(struct wp_text *text, int fd, size_t max);
/* The same for a file that the user names, which may be a pipe: it is waited for.  "-"
 * is standard input. */
WP_MUST_CHECK
int wp_text_take(struct wp_text *text, const char *path, size_t max);
void wp_text_clear(struct wp_text *text);

/* pread(2), repeated after EINTR: the number of bytes, 0 at the end, or -errno.
 */
ssize_t wp_io_pread_at(int fd, void *buf, size_t len, uint64_t off);

/* Read the beginning of a file, from offset 0, into BUF[0..size) and end it
 * with a NUL: the number of bytes before the NUL or -errno. */
ssize_t wp_io_pread(int fd, char *buf, size_t size);
/* Read FD, which may be a pipe, from where it is until BUF is full or FD at its end; the
 * same result. */
ssize_t wp_io_take(int fd, char *buf, size_t size);
/* Open the file PATH relative to DIRFD, read its beginning, and close it. */
ssize_t wp_io_read_at(int dirfd, const char *path, char *buf, size_t size);

/* fstat(2): 0 or -errno.  glibc's makes newfstatat(2) of it since 2.33, which
 * takes a path, and the sandbox of the symboliser allows no call that does. */
int wp_io_fstat(int fd, struct stat *ret);

/* Fill in st_dev, st_ino, st_mode, st_size and st_mtim of the file behind PATH, a link
 * of /proc such as PID/fd/3, or of DIRFD itself if PATH is empty, without asking a file
 * server, which may be what the process hangs on (statx(2), AT_STATX_DONT_SYNC).  0 or
 * -errno. */
int wp_io_stat_open(int dirfd, const char *path, struct stat *ret);

/* Find PATH below the directory DIRFD and open it with O_PATH, which touches neither
 * fifo nor device; symbolic links do not lead out of DIRFD.  A descriptor that the
 * caller owns, or -errno. */
int wp_io_find_beneath(int dirfd, const char *path);

/* Open for reading what PATH_FD, a descriptor of O_PATH, stands for, if it is a
 * regular file.  PATH_FD is closed.  A descriptor that the caller owns, or -errno;
 * -EINVAL: it is no regular file. */
int wp_io_reopen_regular(int path_fd);

#endif
