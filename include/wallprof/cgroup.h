/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - the control group of a process, and what runs in it.
 *
 * Layer: proc.  Source: cgroups(7), "/proc/pid/cgroup"; names of containers are those
 * that docker, podman, containerd and CRI-O give.
 */
#ifndef WP_CGROUP_H
#define WP_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { WP_CGROUP_MAX = 4096 };

/* What /proc/PID/cgroup tells, with NULs; "": nothing. */
struct wp_cgroup {
	/* That of its paths which tells of a container, or a unit, else the longest:
	 * "/system.slice/nginx.service". */
	char path[512];
	/* Twelve hexadecimal digits of a container's id. */
	char container[13];
	/* The innermost unit of systemd, "nginx.service". */
	char unit[128];
};

/* Put /proc/PID/cgroup, PROC_FD being its directory or PID a process if that is -1,
 * into BUF: its length, or -errno. */
ssize_t wp_cgroup_read(int proc_fd, pid_t pid, char buf[WP_CGROUP_MAX]);

/* TEXT is what was read. */
void wp_cgroup_parse(struct wp_cgroup *ret, const char *text);

/* Is a process with TEXT in the group that WANTED says: a path as there or below
 * /sys/fs/cgroup (with a controller's name, version 1), which stands for all below it,
 * too; a unit's name, with or without ".service"; or eight or more digits of a
 * container's id? */
bool wp_cgroup_is_in(const char *text, const char *wanted);

/* Put the path of the group that TEXT gives for CONTROLLER of version 1, or "" for version
 * 2, into PATH[0..size).  False: there is none, it is too long, or it is outside of this
 * process's cgroup namespace and has no path here. */
bool wp_cgroup_path(const char *text, const char *controller, char *path,
		    size_t size);

/* Is a group that TEXT tells of frozen, of version 1 or 2, by its files below ROOT,
 * "/sys/fs/cgroup"?  False where these cannot be read: a group that is outside of this
 * process's cgroup namespace has no path here. */
bool wp_cgroup_is_frozen(const char *text, const char *root);

#endif
