/* SPDX-License-Identifier: Apache-2.0 */
/* output_file.c - see output_file.h. */
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "own_descriptor.h"
#include "worker.h"
#include "wallprof/base_name.h"

/* Open the directory that PATH is in: a descriptor, or -1. */
static int open_directory(const char *path)
{
	size_t n = (size_t)(wp_base_name(path) - path);
	char dir[PATH_MAX];

	if (n >= sizeof(dir))
		return -1;
	snprintf(dir, sizeof(dir), "%.*s", (int)(n ? n : 1), n ? path : ".");
	return open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* What is behind /proc/PID/root and cwd is no part of /proc. */
static bool is_in_proc(const char *path)
{
	int fd = open_directory(path);
	struct statfs fs;
	bool yes = fd >= 0 && !fstatfs(fd, &fs) &&
		   fs.f_type == PROC_SUPER_MAGIC;

	if (fd >= 0)
		close(fd);
	return yes;
}

/* PATH is in /dev, or below it where root alone makes files: /dev/shm is everybody's. */
static bool is_in_dev(const char *path)
{
	int fd = open_directory(path);
	struct stat dir, dev, root;
	bool yes = fd >= 0 && !fstat(fd, &dir) && !stat("/dev", &dev) &&
		   !stat("/", &root) && dir.st_dev == dev.st_dev &&
		   !dir.st_uid && !(dir.st_mode & (S_IWGRP | S_IWOTH));

	if (fd >= 0)
		close(fd);
	/* A /dev of the root's file system has nothing below it that tells. */
	return yes && (dir.st_ino == dev.st_ino || dev.st_dev != root.st_dev);
}

/* Links there are the system's; any other may be somebody else's trap. */
static bool is_systems(const char *path)
{
	return is_in_proc(path) || is_in_dev(path);
}

bool wp_output_file_is_stdout(const char *path)
{
	return !path || !strcmp(path, "-") ||
	       wp_own_descriptor_find(path) == STDOUT_FILENO;
}

bool wp_output_file_is_stream(const char *path)
{
	return wp_output_file_is_stdout(path) || is_systems(path) ||
	       wp_own_descriptor_find(path) >= 0;
}

/* The file system's root is at PATH: a file that is mounted there, as into a
 * container, which no rename(2) replaces. */
static bool is_mounted(const char *path)
{
	struct statx st;

	return !statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, 0, &st) &&
	       (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* No file can be renamed to a device, fifo, what is mounted, or a link or file of the
 * system's own. */
static bool is_special(const char *path)
{
	struct stat st;

	if (lstat(path, &st) || S_ISDIR(st.st_mode))
		return false;
	if (S_ISLNK(st.st_mode))
		return is_systems(path);
	return !S_ISREG(st.st_mode) || is_mounted(path) || is_in_proc(path);
}

static int stream_of(struct wp_output_file *out, int fd, struct wp_err *err)
{
	int rc = fd < 0 ? -errno : 0;

	if (!rc)
		out->stream = fdopen(fd, "w");
	if (!rc && !out->stream) {
		/* EINVAL: it is not open for writing. */
		rc = errno == EINVAL ? -EBADF : -errno;
		close(fd);
	}
	return rc ? wp_err_set(err, rc, "cannot write %s: %s", out->path,
			       strerror(-rc)) :
		    0;
}

/* A descriptor that wallprof was not started with is one of its own files. */
static int open_descriptor(struct wp_output_file *out, int fd,
			   struct wp_err *err)
{
	int flags = fcntl(fd, F_GETFD);

	if (flags >= 0 && (flags & FD_CLOEXEC)) {
		errno = EBADF;
		fd = -1;
	}
	return stream_of(out, fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3), err);
}

static int open_special(struct wp_output_file *out, struct wp_err *err)
{
	struct stat st;
	int fd = open(out->path,
		      O_WRONLY | O_CLOEXEC | O_NOCTTY |
			      (is_systems(out->path) ? 0 : O_NOFOLLOW));

	out->is_cut = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode);
	return stream_of(out, fd, err);
}

/* The name of a file that is to be: 0 or -errno with ERR. */
static int check_name(const char *path, struct wp_err *err)
{
	struct stat st;
	int rc = 0;

	if ((!stat(path, &st) && S_ISDIR(st.st_mode)) ||
	    (*path && path[strlen(path) - 1] == '/'))
		return wp_err_set(err, -EISDIR,
				  "cannot write %s: it is a directory", path);
	/* Longer than the file system allows. */
	if (lstat(path, &st) && errno == ENAMETOOLONG)
		rc = -ENAMETOOLONG;
	return rc ? wp_err_set(err, rc, "cannot write %s: %s", path,
			       strerror(-rc)) :
		    0;
}

static int open_temporary(struct wp_output_file *out, struct wp_err *err)
{
	int dir = (int)(wp_base_name(out->path) - out->path), n, fd, rc;

	rc = check_name(out->path, err);
	if (rc)
		return rc;
	/* Not PATH with an ending: a name may be as long as is allowed. */
	n = snprintf(out->temporary, sizeof(out->temporary),
		     "%.*s.wallprof.XXXXXX", dir, out->path);
	/* mkostemp makes it 0600: a profile holds command lines and paths. */
	errno = ENAMETOOLONG;
	fd = n < (int)sizeof(out->temporary) ?
		     mkostemp(out->temporary, O_CLOEXEC) :
		     -1;
	if (fd < 0) {
		rc = -errno;
		out->temporary[0] = '\0';
		return wp_err_set(err, rc,
				  "cannot write %s: %s (the file is "
				  "made beside it and renamed)",
				  out->path, strerror(-rc));
	}
	return stream_of(out, fd, err);
}

int wp_output_file_open(struct wp_output_file *ret, const char *path,
			struct wp_err *err)
{
	bool is_stdout = wp_output_file_is_stdout(path);
	int rc = 0,
	    fd = is_stdout ? STDOUT_FILENO : wp_own_descriptor_find(path);

	*ret = (struct wp_output_file)WP_OUTPUT_FILE_INIT;
	ret->path = is_stdout ? NULL : path;
	if (is_stdout)
		ret->stream = stdout;
	else if (fd >= 0)
		rc = open_descriptor(ret, fd, err);
	else if (is_special(path))
		rc = open_special(ret, err);
	else
		rc = open_temporary(ret, err);
	if (rc)
		wp_output_file_discard(ret);
	return rc;
}

bool wp_output_file_is_kept(const struct wp_output_file *out)
{
	return out->temporary[0] || out->is_cut;
}

static int close_stream(struct wp_output_file *out)
{
	int rc = 0;

	/* Standard output may have failed long before its last byte. */
	if (fflush(out->stream) || ferror(out->stream))
		rc = errno ? -errno : -EIO;
	/* What a mounted file had before, behind what it has now. */
	if (!rc && out->is_cut &&
	    ftruncate(fileno(out->stream), ftello(out->stream)))
		rc = -errno;
	if (out->path && fclose(out->stream) && !rc)
		rc = -errno;
	out->stream = NULL;
	return rc;
}

int wp_output_file_commit(struct wp_output_file *out, int rc,
			  struct wp_err *err)
{
	const char *name = out->path ? out->path : "standard output";
	int closed = close_stream(out);

	rc = rc ? rc : closed;
	/* Who was to answer for it has been killed. */
	if (!rc && wp_worker_is_orphan())
		rc = -ECANCELED;
	if (!rc && out->temporary[0] && rename(out->temporary, out->path))
		rc = -errno;
	if (rc) {
		wp_err_set(err, rc, "cannot write %s: %s", name, strerror(-rc));
		wp_output_file_discard(out);
		return rc;
	}
	out->temporary[0] = '\0';
	return 0;
}

void wp_output_file_remove(const struct wp_output_file *out)
{
	if (out->temporary[0])
		unlink(out->temporary);
}

void wp_output_file_discard(struct wp_output_file *out)
{
	if (out->stream && out->path)
		fclose(out->stream);
	out->stream = NULL;
	wp_output_file_remove(out);
	out->temporary[0] = '\0';
}

struct wp_report_options wp_output_file_style(const char *path, bool full)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	struct wp_report_options style = { .full = full };
	struct winsize size;

	if (!wp_output_file_is_stdout(path) || !isatty(STDOUT_FILENO))
		return style;
	style.width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col ?
			      80 :
			      size.ws_col;
	style.colour = !(no && *no) && term && *term && strcmp(term, "dumb");
	return style;
}
