/* SPDX-License-Identifier: Apache-2.0 */
/* io.c - see wallprof/io.h. */
#include "wallprof/io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "wallprof/vec.h"

/* Files of /proc are read in few calls. */
enum { STEP = 16384 };

ssize_t wp_io_pread_at(int fd, void *buf, size_t len, uint64_t off)
{
	ssize_t n;

	do
		n = pread(fd, buf, len, (off_t)off);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Make room for one byte more and a NUL. */
static int make_room(struct wp_text *text, size_t max)
{
	if (text->len > max)
		return -EOVERFLOW;
	if (text->len + 1 < text->cap)
		return 0;
	return WP_VEC_ROOM(text->data, text->len, text->cap, STEP);
}

ssize_t wp_io_take(int fd, char *buf, size_t size)
{
	size_t len = 0;
	ssize_t n;

	do {
		n = read(fd, buf + len, size - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	} while (len < size - 1 && (n > 0 || (n < 0 && errno == EINTR)));
	buf[len] = '\0';
	return n < 0 ? -errno : (ssize_t)len;
}

/* Read FD to its end: from its start, or from where it is. */
static int read_all(struct wp_text *text, int fd, size_t max, bool from_start)
{
	int rc;

	text->len = 0;
	for (;;) {
		ssize_t n;

		rc = make_room(text, max);
		if (rc)
			break;
		if (from_start)
			n = wp_io_pread_at(fd, text->data + text->len,
					   text->cap - text->len - 1,
					   text->len);
		else
			n = wp_io_take(fd, text->data + text->len,
				       text->cap - text->len);
		if (n <= 0) {
			rc = (int)n;
			break;
		}
		text->len += (size_t)n;
	}
	if (rc && rc != -EOVERFLOW)
		text->len = 0;
	if (text->data)
		text->data[text->len] = '\0';
	return rc;
}

int wp_text_pread(struct wp_text *text, int fd, size_t max)
{
	return read_all(text, fd, max, true);
}

int wp_text_take(struct wp_text *text, const char *path, size_t max)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	int rc;

	text->len = 0;
	if (fd < 0)
		return -errno;
	rc = read_all(text, fd, max, false);
	if (!is_stdin)
		close(fd);
	return rc;
}

int wp_text_read(struct wp_text *text, int dirfd, const char *path, size_t max)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int rc;

	text->len = 0;
	if (fd < 0)
		return -errno;
	rc = wp_text_pread(text, fd, max);
	close(fd);
	return rc;
}

void wp_text_clear(struct wp_text *text)
{
	free(text->data);
	*text = (struct wp_text)WP_TEXT_INIT;
}

ssize_t wp_io_pread(int fd, char *buf, size_t size)
{
	ssize_t n = wp_io_pread_at(fd, buf, size - 1, 0);

	if (n >= 0)
		buf[n] = '\0';
	return n;
}

ssize_t wp_io_read_at(int dirfd, const char *path, char *buf, size_t size)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = wp_io_pread(fd, buf, size);
	close(fd);
	return n;
}

int wp_io_fstat(int fd, struct stat *ret)
{
	return syscall(SYS_fstat, fd, ret) ? -errno : 0;
}

int wp_io_stat_open(int dirfd, const char *path, struct stat *ret)
{
	struct statx stx;

	if (statx(dirfd, path,
		  AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT | AT_EMPTY_PATH,
		  STATX_TYPE | STATX_INO | STATX_SIZE | STATX_MTIME, &stx))
		return -errno;
	*ret = (struct stat){
		.st_dev = makedev(stx.stx_dev_major, stx.stx_dev_minor),
		.st_ino = stx.stx_ino,
		.st_mode = stx.stx_mode,
		.st_size = (off_t)stx.stx_size,
		.st_mtim = { .tv_sec = stx.stx_mtime.tv_sec,
			     .tv_nsec = stx.stx_mtime.tv_nsec },
	};
	return 0;
}

int wp_io_find_beneath(int dirfd, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	/* Linux before 5.6, or a container's filter. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(dirfd, path + strspn(path, "/"),
			    O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int wp_io_reopen_regular(int path_fd)
{
	char self[32];
	struct statx stx;
	int fd = -EINVAL;

	if (statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE,
		  &stx)) {
		fd = -errno;
	} else if (S_ISREG(stx.stx_mode)) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
		fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		fd = fd < 0 ? -errno : fd;
	}
	close(path_fd);
	return fd;
}
