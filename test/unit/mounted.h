/* SPDX-License-Identifier: Apache-2.0 */
/* mounted.h - a directory of the system, which is this process's own for a while.
 *
 * It is empty at first, and only this process and its children see it.  Needs
 * CAP_SYS_ADMIN: a test is skipped without it.
 */
#ifndef WP_TEST_MOUNTED_H
#define WP_TEST_MOUNTED_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* The directory; "" where there is none. */
static char mounted_dir[64];

static inline void mounted_begin(const char *dir)
{
	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("test", dir, "tmpfs", 0, "mode=755")) {
		print_message("no mount on %s: %s\n", dir, strerror(errno));
		skip();
	}
	snprintf(mounted_dir, sizeof(mounted_dir), "%s", dir);
}

/* A teardown, too. */
static inline int mounted_end(void **state)
{
	int rc = 0;

	(void)state;
	if (*mounted_dir)
		rc = umount2(mounted_dir, MNT_DETACH);
	*mounted_dir = '\0';
	return rc;
}

/* The path of NAME in the directory, all directories above which are there. */
static inline void mounted_path(char path[256], const char *name)
{
	size_t n = strlen(mounted_dir) + 1;

	snprintf(path, 256, "%s/%s", mounted_dir, name);
	for (char *p = strchr(path + n, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		assert_true(!mkdir(path, 0755) || errno == EEXIST);
		*p = '/';
	}
}

static inline void mounted_put_bytes(const char *name, const void *bytes,
				     size_t len)
{
	char path[256];
	int fd;

	mounted_path(path, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
}

static inline void mounted_put(const char *name, const char *text)
{
	mounted_put_bytes(name, text, strlen(text));
}

static inline void mounted_link(const char *name, const char *target)
{
	char path[256];

	mounted_path(path, name);
	assert_int_equal(symlink(target, path), 0);
}

#endif
