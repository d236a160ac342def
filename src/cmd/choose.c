/* SPDX-License-Identifier: Apache-2.0 */
/* choose.c - see choose.h. */
#include "choose.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve_writer.h"
#include "wallprof/base_name.h"
#include "wallprof/cgroup.h"
#include "wallprof/io.h"
#include "wallprof/process.h"
#include "wallprof/procfs.h"
#include "wallprof/vec.h"

bool wp_choose_is_asked(const struct wp_options *options)
{
	return options->all || options->globs[0] || options->cgroups[0];
}

int wp_choose_list(struct wp_tids *pids)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	int rc = 0;

	pids->len = 0;
	if (!dir)
		return -errno;
	while (!rc && (entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0)
			continue;
		if (WP_VEC_ROOM(pids->v, pids->len, pids->cap, 1))
			rc = -ENOMEM;
		else
			pids->v[pids->len++] = pid;
	}
	closedir(dir);
	wp_tids_sort(pids);
	return rc;
}

/* Does process PID run this program?  So it is said of one that may not be looked at, as
 * wallprof's own that are confined. */
static bool runs_wallprof(pid_t pid)
{
	struct stat own, its;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return stat(path, &its) || stat("/proc/self/exe", &own) ||
	       (its.st_dev == own.st_dev && its.st_ino == own.st_ino);
}

/* Does PID write an answer of serve?  Its child looks up names. */
static bool is_writer(pid_t pid)
{
	char path[32], comm[sizeof(WP_WRITER_COMM) + 1];
	struct wp_proc_stat stat;
	ssize_t n;

	/* Of most processes one call tells, as a writer has this process's session. */
	if (getsid(pid) != getsid(0) || wp_proc_stat_read(&stat, pid) ||
	    stat.ppid != getpid())
		return false;
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	n = wp_io_read_at(-1, path, comm, sizeof(comm));
	return n == sizeof(WP_WRITER_COMM) &&
	       !memcmp(comm, WP_WRITER_COMM "\n", (size_t)n);
}

/* A process that may be recorded at all.  The first of wallprof may have children that it
 * did not start: of the shell that executed it, and orphans if it is PID 1. */
static bool is_other(pid_t pid)
{
	struct wp_proc_stat stat;

	if (pid == getpid() || pid == getppid())
		return false;
	return !wp_proc_stat_read(&stat, pid) && !stat.kernel_thread &&
	       !wp_proc_stat_has_ended(&stat) && stat.ppid != getpid() &&
	       !is_writer(stat.ppid) &&
	       (stat.ppid != getppid() || !runs_wallprof(pid));
}

static bool fits(const struct wp_options *options, const char *name)
{
	for (size_t i = 0; i < WP_CHOSEN_MAX && options->globs[i]; i++)
		if (!fnmatch(options->globs[i], name, 0))
			return true;
	return false;
}

static bool has_name(const struct wp_options *options, pid_t pid)
{
	char path[32], name[PATH_MAX];
	ssize_t n;

	if (!options->globs[0])
		return false;
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	n = wp_io_read_at(-1, path, name, WP_COMM_MAX);
	name[n > 0 ? n - (name[n - 1] == '\n') : 0] = '\0';
	if (n > 0 && fits(options, name))
		return true;
	wp_process_exe_of(pid, name, sizeof(name));
	return name[0] && fits(options, wp_base_name(name));
}

static bool is_in_group(const struct wp_options *options, pid_t pid)
{
	char text[WP_CGROUP_MAX];

	if (!options->cgroups[0] || wp_cgroup_read(-1, pid, text) <= 0)
		return false;
	for (size_t i = 0; i < WP_CHOSEN_MAX && options->cgroups[i]; i++)
		if (wp_cgroup_is_in(text, options->cgroups[i]))
			return true;
	return false;
}

bool wp_choose_avoids(const struct wp_options *options, pid_t pid)
{
	struct wp_proc_stat stat;

	for (size_t i = 0; i < options->navoided; i++)
		if (options->avoided[i].pid == pid)
			return !wp_proc_stat_read(&stat, pid) &&
			       stat.start_time ==
				       options->avoided[i].start_time;
	return false;
}

bool wp_choose(const struct wp_options *options, pid_t pid)
{
	return is_other(pid) && !wp_choose_avoids(options, pid) &&
	       (options->all || has_name(options, pid) ||
		is_in_group(options, pid));
}

void wp_choose_describe(const struct wp_options *options, char *text,
			size_t size)
{
	size_t n = 0;

	snprintf(text, size, "all processes");
	if (!wp_choose_is_asked(options) && options->npids)
		snprintf(text, size, "process %d%s%s", options->pids[0],
			 options->npids > 1 ? " and others" : "",
			 options->children ? " with its children" : "");
	for (size_t i = 0; !options->all && n < size && i < WP_CHOSEN_MAX &&
			   options->globs[i];
	     i++)
		n += (size_t)snprintf(text + n, size - n, "%s%s",
				      n ? ", " : "processes named ",
				      options->globs[i]);
	for (size_t i = 0; !options->all && n < size && i < WP_CHOSEN_MAX &&
			   options->cgroups[i];
	     i++)
		n += (size_t)snprintf(text + n, size - n, "%scgroup %s",
				      n ? ", " : "processes of ",
				      options->cgroups[i]);
}
