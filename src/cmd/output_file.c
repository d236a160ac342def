/* SPDX-License-Identifier: Apache-2.0 */
/* output_file.c - see output_file.h. */
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* /dev/stdout and /dev/fd/9 are links that the user asks for; any other link may
 * be somebody else's trap. */
static bool may_be_link(const char *path)
{
	return !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6);
}

/* No file can be renamed to a device or fifo. */
static bool is_special(const char *path)
{
	struct stat st;

	return !(may_be_link(path) ? stat(path, &st) : lstat(path, &st)) &&
	       !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) &&
	       !S_ISLNK(st.st_mode);
}

static int open_special(struct wp_output_file *out, struct wp_err *err)
{
	int fd = open(out->path,
		      O_WRONLY | O_CLOEXEC | O_NOCTTY |
			      (may_be_link(out->path) ? 0 : O_NOFOLLOW));
	int rc = fd < 0 ? -errno : 0;

	if (rc)
		return wp_err_set(err, rc, "cannot write %s: %s", out->path,
				  strerror(-rc));
	out->stream = fdopen(fd, "w");
	if (!out->stream)
		close(fd);
	return out->stream ? 0 : -ENOMEM;
}

static int open_temporary(struct wp_output_file *out, struct wp_err *err)
{
	int n = snprintf(out->temporary, sizeof(out->temporary), "%s.XXXXXX",
			 out->path);
	struct stat st;
	int fd, rc;

	if (n < 0 || (size_t)n >= sizeof(out->temporary)) {
		out->temporary[0] = '\0';
		return wp_err_set(err, -ENAMETOOLONG, "name too long");
	}
	if (!stat(out->path, &st) && S_ISDIR(st.st_mode)) {
		out->temporary[0] = '\0';
		return wp_err_set(err, -EISDIR,
				  "cannot write %s: it is a directory",
				  out->path);
	}
	/* mkostemp makes it 0600: a profile holds command lines and paths. */
	fd = mkostemp(out->temporary, O_CLOEXEC);
	if (fd < 0) {
		rc = -errno;
		out->temporary[0] = '\0';
		return wp_err_set(err, rc,
				  "cannot write %s: %s (the file is "
				  "made beside it and renamed)",
				  out->path, strerror(-rc));
	}
	out->stream = fdopen(fd, "w");
	if (out->stream)
		return 0;
	close(fd);
	return wp_err_set(err, -ENOMEM, "no memory");
}

int wp_output_file_open(struct wp_output_file *ret, const char *path,
			struct wp_err *err)
{
	struct wp_output_file out = WP_OUTPUT_FILE_INIT;
	int rc = 0;

	if (wp_output_file_is_stdout(path)) {
		out.stream = stdout;
	} else if (is_special(path)) {
		out.path = path;
		rc = open_special(&out, err);
	} else {
		out.path = path;
		rc = open_temporary(&out, err);
	}
	if (rc)
		wp_output_file_discard(&out);
	else
		*ret = out;
	return rc;
}

static int close_stream(struct wp_output_file *out)
{
	int rc = 0;

	/* Standard output may have failed long before its last byte. */
	if (fflush(out->stream) || ferror(out->stream))
		rc = errno ? -errno : -EIO;
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

void wp_output_file_discard(struct wp_output_file *out)
{
	if (out->stream && out->path)
		fclose(out->stream);
	out->stream = NULL;
	if (out->temporary[0])
		unlink(out->temporary);
	out->temporary[0] = '\0';
}
