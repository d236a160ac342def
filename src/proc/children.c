/* SPDX-License-Identifier: Apache-2.0 */
/* children.c - see wallprof/children.h. */
#include "wallprof/children.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "text_scan.h"
#include "wallprof/hash.h"
#include "wallprof/index.h"
#include "wallprof/procfs.h"
#include "wallprof/vec.h"

enum { CHILDREN_TEXT_MAX = 64 << 20 };

static int add(struct wp_tids *pids, pid_t pid)
{
	if (WP_VEC_ROOM(pids->v, pids->len, pids->cap, 1))
		return -ENOMEM;
	pids->v[pids->len++] = pid;
	return 0;
}

int wp_children_parse(struct wp_tids *pids, const char *text, size_t len)
{
	struct wp_text_scan c = { text, text + len, false };
	int rc = 0;

	while (!rc && c.p < c.end) {
		uint64_t pid = wp_text_scan_number(&c, 10);

		/* A blank follows each number. */
		if (c.bad || !pid || pid > INT32_MAX || c.p == c.end ||
		    *c.p++ != ' ')
			return -EBADMSG;
		rc = add(pids, (pid_t)pid);
	}
	return rc;
}

static bool is_number(const char *name)
{
	return name[0] >= '1' && name[0] <= '9';
}

/* Add the children by /proc/PID/task/TID/children; -ENOTSUP in a kernel without
 * CONFIG_PROC_CHILDREN. */
static int add_by_threads(struct wp_tids *pids, DIR *task)
{
	struct wp_text text = WP_TEXT_INIT;
	struct dirent *entry;
	bool seen = false;
	int rc = 0;

	while (!rc && (entry = readdir(task))) {
		char path[300];

		if (!is_number(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/children", entry->d_name);
		rc = wp_text_read(&text, dirfd(task), path, CHILDREN_TEXT_MAX);
		if (!rc) {
			seen = true;
			rc = wp_children_parse(pids, text.data, text.len);
		} else if (rc != -ENOMEM) {
			/* The thread has gone, or the file is not there. */
			rc = 0;
		}
	}
	wp_text_clear(&text);
	return rc || seen ? rc : -ENOTSUP;
}

/* Add the children by the parent of every process. */
static int add_by_parents(struct wp_tids *pids, pid_t pid)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int rc = 0;

	if (!dir)
		return -ENOMEM;
	while (!rc && (entry = readdir(dir))) {
		struct wp_proc_stat stat;
		char path[300];

		if (!is_number(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/stat", entry->d_name);
		if (!wp_proc_stat_read_at(&stat, dirfd(dir), path) &&
		    stat.ppid == pid)
			rc = add(pids, (pid_t)strtol(entry->d_name, NULL, 10));
	}
	closedir(dir);
	return rc;
}

static int add_children(struct wp_tids *pids, pid_t pid)
{
	const size_t len = pids->len;
	char path[32];
	DIR *task;
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	task = opendir(path);
	if (!task)
		return errno == ENOMEM ? -ENOMEM : -ESRCH;
	rc = add_by_threads(pids, task);
	closedir(task);
	if (!rc || rc == -ENOMEM)
		return rc;
	pids->len = len;
	return add_by_parents(pids, pid);
}

int wp_children_list(struct wp_tids *pids, pid_t pid)
{
	pids->len = 0;
	return add_children(pids, pid);
}

/* A pid may have been given to another process meanwhile: drop from
 * v[FROM..len) what is there twice, and what is beyond MAX.  SEEN has v[0..FROM). */
static int drop_seen(struct wp_tids *pids, size_t from, size_t max,
		     struct wp_index *seen)
{
	size_t len = from;
	int rc = 0;

	for (size_t i = from; !rc && i < pids->len && len < max; i++) {
		pid_t pid = pids->v[i];
		uint64_t hash = wp_hash_u64((uint64_t)pid);

		if (WP_INDEX_FIND(seen, hash, k, pids->v[k] == pid) !=
		    WP_INDEX_NONE)
			continue;
		rc = wp_index_add(seen, hash, (uint32_t)len);
		pids->v[len++] = pid;
	}
	pids->len = len;
	return rc;
}

int wp_children_list_all(struct wp_tids *pids, pid_t pid, size_t max)
{
	struct wp_index seen = WP_INDEX_INIT;
	int rc = wp_children_list(pids, pid);

	if (!rc)
		rc = drop_seen(pids, 0, max, &seen);
	for (size_t i = 0; !rc && i < pids->len && pids->len < max; i++) {
		const size_t len = pids->len;

		rc = add_children(pids, pids->v[i]);
		if (!rc || rc == -ESRCH)
			rc = drop_seen(pids, len, max, &seen);
	}
	wp_index_clear(&seen);
	return rc;
}
