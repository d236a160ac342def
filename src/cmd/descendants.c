/* SPDX-License-Identifier: Apache-2.0 */
/* descendants.c - see descendants.h. */
#include "descendants.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wallprof/children.h"
#include "wallprof/io.h"
#include "wallprof/procfs.h"

enum { DESCENDANTS_MAX = 65536 };

void wp_descendants_list(struct wp_tids *pids, pid_t root)
{
	if (wp_children_list_all(pids, root, DESCENDANTS_MAX))
		pids->len = 0;
}

bool wp_descendants_has_ended(pid_t pid)
{
	struct wp_proc_stat stat;

	return wp_proc_stat_read(&stat, pid) || wp_proc_stat_has_ended(&stat);
}

int wp_descendants_status(pid_t pid, int *ret)
{
	char path[32], text[1024];
	struct wp_proc_stat stat;
	const char *last;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	n = wp_io_read_at(-1, path, text, sizeof(text));
	last = n > 0 ? strrchr(text, ' ') : NULL;
	if (!last || wp_proc_stat_parse(&stat, text, (size_t)n) ||
	    !wp_proc_stat_has_ended(&stat))
		return -EBUSY;
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	/* Of a zombie that may be looked at: ENOENT (fs/proc/base.c,
	 * proc_exe_link); else exit_code, the last number (proc(5)), is 0. */
	if (readlink(path, text, sizeof(text)) >= 0 || errno == EACCES)
		return -EACCES;
	*ret = (int)strtol(last, NULL, 10);
	return 0;
}

/* Send SIG to PID; true: that has not ended. */
static bool send_to(pid_t pid, int sig)
{
	return (!kill(pid, sig) || errno == EPERM) &&
	       !wp_descendants_has_ended(pid);
}

size_t wp_descendants_signal(pid_t root, pid_t spared, int sig)
{
	struct wp_tids pids = WP_TIDS_INIT;
	size_t n = 0;

	wp_descendants_list(&pids, root);
	for (size_t i = 0; i < pids.len; i++)
		n += pids.v[i] != spared && send_to(pids.v[i], sig);
	wp_tids_clear(&pids);
	return n;
}

size_t wp_descendants_signal_with(pid_t pid, int sig)
{
	return wp_descendants_signal(pid, 0, sig) + send_to(pid, sig);
}

bool wp_descendants_has_any(pid_t pid)
{
	struct wp_tids pids = WP_TIDS_INIT;
	bool any;

	wp_descendants_list(&pids, pid);
	any = pids.len;
	wp_tids_clear(&pids);
	return any;
}

void wp_descendants_signal_others(pid_t root, int sig)
{
	struct wp_tids pids = WP_TIDS_INIT;
	pid_t own = getsid(0);

	wp_descendants_list(&pids, root);
	for (size_t i = 0; i < pids.len; i++)
		if (getsid(pids.v[i]) != own)
			kill(pids.v[i], sig);
	wp_tids_clear(&pids);
}
