/* SPDX-License-Identifier: Apache-2.0 */
/* links_denied.c - who may have the other end of a wait though it is not seen.
 *
 * A process whose descriptors may not be read is taken to have a pipe, socket or
 * file by fork(2) from where the waiting process has it, as a child of sudo(8)
 * does.  Then it is no older than the process that made it, which is taken to be
 *  - of the session of the waiting process, and
 *  - the first of its ancestors that has nothing of it open (a shell has closed
 *    the pipe between its children), or below that one.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "links.h"
#include "wallprof/procfs.h"

enum {
	/* Ancestors that are asked: a shell in a script in a job of a CI has ten. */
	ANCESTORS_MAX = 64,
};

/* What DIR, a /proc/PID/fd, has: 0 none, 1 one that is OWN or OTHER, -1 not known,
 * as of a process that has ended. */
static int has_any(DIR *dir, const char *own, const char *other)
{
	const struct dirent *entry;
	char link[PATH_MAX];
	int found = -1;

	while (found < 1 && (entry = readdir(dir))) {
		ssize_t n;

		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		n = readlinkat(dirfd(dir), entry->d_name, link,
			       sizeof(link) - 1);
		if (n <= 0)
			return -1;
		link[n] = '\0';
		found = !strcmp(link, own) || !strcmp(link, other);
	}
	return found;
}

/* Has process PID neither OWN nor OTHER open, for all that is known? */
static bool lacks(pid_t pid, const char *own, const char *other)
{
	char path[32];
	bool lacking;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return false;
	lacking = has_any(dir, own, other) == 0;
	closedir(dir);
	return lacking;
}

/* Start of the first ancestor of PID that has neither OWN nor OTHER open; 0: none is
 * known. */
static uint64_t start_of_who_lacks(pid_t pid, const char *own,
				   const char *other)
{
	struct wp_proc_stat stat;

	if (wp_proc_stat_read(&stat, pid))
		return 0;
	for (int i = 0; i < ANCESTORS_MAX; i++) {
		pid = stat.ppid;
		if (pid <= 0 || wp_proc_stat_read(&stat, pid))
			return 0;
		if (lacks(pid, own, other))
			return stat.start_time;
	}
	return 0;
}

bool wp_links_may_be_denied(const struct wp_links *links,
			    const struct wp_links_wait *wait,
			    const struct wp_fd_holders *holders)
{
	const struct wp_snapshot_process *p = wp_links_process(links,
							       wait->thread);
	const char *other = links->objects[wait->object].link;
	struct wp_proc_stat leader;
	uint64_t start = 0;
	char own[PATH_MAX];
	struct stat st;

	if (!holders->denied)
		return false;
	/* Its leader may have ended, or be of another PID namespace. */
	if (!wp_proc_stat_read(&leader, getsid(p->process.pid)))
		start = leader.start_time;
	/* A file may have been opened by its name, by anybody in the session. */
	if ((!start || other[0] != '/') &&
	    wp_links_read_fd(p, wait->fd, own, sizeof(own), &st)) {
		uint64_t below = start_of_who_lacks(p->process.pid, own, other);

		if (below > start)
			start = below;
	}
	return !start || holders->last_denied >= start;
}
