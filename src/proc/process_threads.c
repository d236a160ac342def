/* SPDX-License-Identifier: Apache-2.0 */
/* process_threads.c - see wallprof/process.h: the threads of a process. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process_priv.h"
#include "wallprof/procfs.h"
#include "wallprof/vec.h"

int wp_process_error(int error)
{
	switch (error) {
	/* On opening a file of a process that is not there; ESRCH on reading
	 * one that is open. */
	case ENOENT:
	case ESRCH:
		return -ESRCH;
	/* Where ptrace(2) would say EPERM. */
	case EACCES:
	case EPERM:
		return -EPERM;
	default:
		return -error;
	}
}

/* Call VISIT for each thread in the kernel's order until it returns other than
 * 0; returns that, or 0, or -errno.  readdir(3) would allocate. */
static int each_thread(const struct wp_process *process,
		       int (*visit)(void *ctx, pid_t tid), void *ctx)
{
	char buf[32768] __attribute__((aligned(8)));
	ssize_t n;
	int rc = 0;

	if (lseek(process->task_fd, 0, SEEK_SET) < 0)
		return wp_process_error(errno);
	while (!rc && (n = getdents64(process->task_fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n && !rc;) {
			const struct dirent64 *d = (void *)(buf + at);
			long tid = strtol(d->d_name, NULL, 10);

			at += d->d_reclen;
			if (tid > 0)
				rc = visit(ctx, (pid_t)tid);
		}
	return rc || !n ? rc : wp_process_error(errno);
}

static int add_tid(void *ctx, pid_t tid)
{
	struct wp_tids *tids = ctx;

	if (WP_VEC_ROOM(tids->v, tids->len, tids->cap, 1))
		return -ENOMEM;
	tids->v[tids->len++] = tid;
	return 0;
}

int wp_process_list_threads(const struct wp_process *process,
			    struct wp_tids *tids)
{
	tids->len = 0;
	return each_thread(process, add_tid, tids);
}

static int compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

void wp_tids_sort(struct wp_tids *tids)
{
	if (tids->len)
		qsort(tids->v, tids->len, sizeof(*tids->v), compare_tids);
}

void wp_tids_clear(struct wp_tids *tids)
{
	free(tids->v);
	*tids = (struct wp_tids)WP_TIDS_INIT;
}

bool wp_process_has_living(const struct wp_process *process, pid_t tid)
{
	struct wp_proc_stat stat;
	char path[32];

	snprintf(path, sizeof(path), "%d/stat", tid);
	return !wp_proc_stat_read_at(&stat, process->task_fd, path) &&
	       stat.state_char != 'Z' && stat.state_char != 'X';
}

static int tid_if_living(void *ctx, pid_t tid)
{
	return wp_process_has_living(ctx, tid) ? tid : 0;
}

pid_t wp_process_find_living(const struct wp_process *process)
{
	int tid = each_thread(process, tid_if_living, (void *)process);

	return tid > 0 ? tid : 0;
}

long wp_process_count_threads(const struct wp_process *process)
{
	struct stat st;

	if (fstat(process->task_fd, &st))
		return wp_process_error(errno);
	return st.st_nlink < 2 ? 0 : (long)st.st_nlink - 2;
}
