/* SPDX-License-Identifier: Apache-2.0 */
/* pid_namespace.c - see pid_namespace.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "pid_namespace.h"
#include "wallprof/children.h"
#include "wallprof/clock.h"
#include "wallprof/io.h"
#include "wallprof/procfs.h"

/* The threads of a process are listed anew for so long: lock words of a hostile
 * program name any number of threads that there are not. */
#define RELIST_NS (100 * WP_NS_PER_MS)

/* The pid, LEVEL namespaces below ours, that file PATH of DIRFD, a "status",
 * gives; 0 when there is none. */
static pid_t read_own_pid(int dirfd, const char *path, int level)
{
	int32_t pids[WP_PID_LEVELS];
	int n = wp_proc_nspid_read(pids, dirfd, path);

	return level < n ? pids[level] : 0;
}

void wp_pid_namespace_find(struct wp_snapshot_process *process)
{
	int32_t pids[WP_PID_LEVELS];
	int n = wp_proc_nspid_read(pids, process->process.proc_fd, "status");

	process->level = n > 0 ? n - 1 : 0;
}

void wp_pid_namespace_clear(struct wp_snapshot_process *process)
{
	free(process->threads.v);
	free(process->children.v);
	process->threads = process->children = (struct wp_ns_tids){ 0 };
}

static int by_own(const void *a, const void *b)
{
	const struct wp_ns_tid *x = a, *y = b;

	return (x->own > y->own) - (x->own < y->own);
}

static pid_t find_own(const struct wp_ns_tids *list, pid_t own)
{
	const struct wp_ns_tid key = { .own = own }, *found = NULL;

	if (list->len)
		found = bsearch(&key, list->v, list->len, sizeof(key), by_own);
	return found ? found->tid : 0;
}

/* Let LIST, which is empty, be of TIDS; PREFIX and a tid is a directory of DIRFD
 * with its "status".  0 or -ENOMEM. */
static int fill_list(struct wp_ns_tids *list, const struct wp_tids *tids,
		     int level, int dirfd, const char *prefix)
{
	list->v = calloc(tids->len + 1, sizeof(*list->v));
	if (!list->v)
		return -ENOMEM;
	for (size_t i = 0; i < tids->len; i++) {
		pid_t tid = tids->v[i], own = tid;
		char path[64];

		snprintf(path, sizeof(path), "%s%d/status", prefix, tid);
		if (level)
			own = read_own_pid(dirfd, path, level);
		list->v[list->len++] = (struct wp_ns_tid){ .own = own,
							   .tid = tid };
	}
	qsort(list->v, list->len, sizeof(*list->v), by_own);
	return 0;
}

/* Begin LIST anew. */
static void begin_list(struct wp_ns_tids *list)
{
	free(list->v);
	*list = (struct wp_ns_tids){ .time_ns = wp_clock_ns() };
}

static void list_threads(struct wp_snapshot_process *process)
{
	struct wp_tids tids = WP_TIDS_INIT;

	begin_list(&process->threads);
	/* Without memory none is known. */
	if (!wp_process_list_threads(&process->process, &tids))
		(void)fill_list(&process->threads, &tids, process->level,
				process->process.task_fd, "");
	wp_tids_clear(&tids);
}

pid_t wp_pid_namespace_thread(struct wp_snapshot_process *process, pid_t own,
			      uint64_t since_ns)
{
	struct wp_ns_tids *list = &process->threads;
	pid_t tid;

	if (own <= 0)
		return 0;
	if (!process->level)
		return own;
	if (!list->time_ns)
		list_threads(process);
	tid = find_own(list, own);
	if (tid || list->time_ns >= since_ns)
		return tid;
	if (process->relisted_ns >= RELIST_NS)
		return -EAGAIN;
	list_threads(process);
	process->relisted_ns += wp_clock_ns() - list->time_ns;
	return find_own(list, own);
}

int wp_pid_namespace_children(struct wp_snapshot_process *process,
			      uint64_t since_ns)
{
	struct wp_ns_tids *list = &process->children;
	struct wp_tids tids = WP_TIDS_INIT;
	int rc;

	if (list->time_ns && list->time_ns >= since_ns)
		return 0;
	begin_list(list);
	rc = wp_children_list(&tids, process->process.pid);
	if (!rc)
		rc = fill_list(list, &tids, process->level, -1, "/proc/");
	wp_tids_clear(&tids);
	return rc == -ENOMEM ? rc : 0;
}

pid_t wp_pid_namespace_child(struct wp_snapshot_process *process, pid_t own,
			     uint64_t since_ns)
{
	if (own <= 0 || wp_pid_namespace_children(process, since_ns))
		return 0;
	return find_own(&process->children, own);
}

pid_t wp_pid_namespace_pidfd(const struct wp_snapshot_process *process,
			     pid_t tid, int fd)
{
	char path[WP_FD_PATH_MAX], text[512];
	uint64_t pid;
	ssize_t n;

	wp_fdinfo_path(path, "fdinfo", tid, fd);
	n = wp_io_read_at(process->process.proc_fd, path, text, sizeof(text));
	/* "Pid:" is -1 of one that has gone (kernel/fork.c,
	 * pidfd_show_fdinfo). */
	return n > 0 && !wp_proc_status_parse(&pid, text, (size_t)n, "Pid",
					      10) ?
		       (pid_t)pid :
		       0;
}
