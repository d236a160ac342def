/* SPDX-License-Identifier: Apache-2.0 */
/* own_descriptor.c - see own_descriptor.h. */
#include "own_descriptor.h"

#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "worker.h"
#include "wallprof/base_name.h"

/* As many as the kernel follows (path_resolution(7)). */
enum { LINKS_MAX = 40 };

/* DIR, which has no links in it, is a directory of the descriptors of process PID:
 * PROC/PID/fd or PROC/PID/task/PID/fd. */
static bool is_fd_directory_of(const char *dir, int pid)
{
	size_t len = strlen(dir), n;
	char tail[64];

	n = (size_t)snprintf(tail, sizeof(tail), "/%d/fd", pid);
	if (len >= n && !strcmp(dir + len - n, tail))
		return true;
	n = (size_t)snprintf(tail, sizeof(tail), "/%d/task/%d/fd", pid, pid);
	return len >= n && !strcmp(dir + len - n, tail);
}

/* A worker has what the process had that was started as wallprof, whose number a
 * shell knows ($$, after exec). */
static bool is_fd_directory(const char *dir)
{
	struct statfs fs;

	return !statfs(dir, &fs) && fs.f_type == PROC_SUPER_MAGIC &&
	       (is_fd_directory_of(dir, (int)getpid()) ||
		is_fd_directory_of(dir, (int)wp_worker_first()));
}

/* Put the directory of PATH into DIR, as the kernel finds it: 0 or -1. */
static int resolve_directory(char dir[PATH_MAX], const char *path)
{
	size_t n = (size_t)(wp_base_name(path) - path);
	char name[PATH_MAX];

	if (n >= sizeof(name))
		return -1;
	memcpy(name, path, n);
	name[n] = '\0';
	return realpath(n ? name : ".", dir) ? 0 : -1;
}

/* Replace PATH, whose directory is DIR, by what the link PATH shows: 0 or -1. */
static int follow(char path[PATH_MAX], const char *dir)
{
	char link[PATH_MAX];
	ssize_t n = readlink(path, link, sizeof(link) - 1);
	int len;

	if (n < 0)
		return -1;
	link[n] = '\0';
	len = snprintf(path, PATH_MAX, "%s%s%s", link[0] == '/' ? "" : dir,
		       link[0] == '/' ? "" : "/", link);
	return len < PATH_MAX ? 0 : -1;
}

int wp_own_descriptor_find(const char *path)
{
	char at[PATH_MAX], dir[PATH_MAX], *end;
	size_t n = strlen(path);

	if (n >= sizeof(at))
		return -1;
	memcpy(at, path, n + 1);
	for (int i = 0; i < LINKS_MAX; i++) {
		const char *name = wp_base_name(at);
		long fd = strtol(name, &end, 10);

		if (resolve_directory(dir, at))
			return -1;
		if (*name >= '0' && *name <= '9' && !*end && fd <= INT_MAX &&
		    is_fd_directory(dir))
			return (int)fd;
		if (follow(at, dir))
			return -1;
	}
	return -1;
}
