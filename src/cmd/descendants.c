/* SPDX-License-Identifier: Apache-2.0 */
/* descendants.c - see descendants.h. */
#include "descendants.h"

#include <signal.h>
#include <unistd.h>

#include "wallprof/children.h"
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

size_t wp_descendants_signal(pid_t root, int sig)
{
	struct wp_tids pids = WP_TIDS_INIT;
	size_t n = 0;

	wp_descendants_list(&pids, root);
	for (size_t i = 0; i < pids.len; i++)
		if (!kill(pids.v[i], sig) &&
		    !wp_descendants_has_ended(pids.v[i]))
			n++;
	wp_tids_clear(&pids);
	return n;
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
