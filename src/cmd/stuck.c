/* SPDX-License-Identifier: Apache-2.0 */
/* stuck.c - see stuck.h. */
#include "stuck.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wallprof/io.h"
#include "wallprof/procfs.h"

void wp_stuck_look(struct wp_stuck *stuck, pid_t pid)
{
	struct wp_schedstat times;
	struct wp_proc_stat stat;
	char path[32], text[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	n = wp_io_read_at(-1, path, text, sizeof(text));
	if (n <= 0 || wp_schedstat_parse(&times, text, (size_t)n) ||
	    wp_proc_stat_read(&stat, pid))
		return;
	if (times.slices == stuck->slices &&
	    (stat.state_char == 'S' || stat.state_char == 'D'))
		stuck->nstill++;
	else
		stuck->nstill = 0;
	stuck->slices = times.slices;
	stuck->state_char = stat.state_char;
}

/* The function of the kernel in which PID waits (proc_pid_wchan(5)); "": not known. */
static void read_place(pid_t pid, char *place, size_t size)
{
	char path[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/wchan", pid);
	n = wp_io_read_at(-1, path, place, size - 1);
	place[n > 0 && place[0] != '0' ? n : 0] = 0;
}

/* Who puts a probe in place or takes one away visits each process that has the file, and
 * nobody can fork(2) meanwhile (kernel/events/uprobes.c, dup_mmap_sem); then it waits for
 * each CPU.  That takes seconds on a busy machine, but it ends. */
static bool is_kernels_work(const char *place)
{
	return strstr(place, "uprobe") || strstr(place, "rcu") ||
	       !strcmp(place, "register_for_each_vma") ||
	       !strcmp(place, "percpu_rwsem_wait") ||
	       !strcmp(place, "dup_mmap");
}

bool wp_stuck_is_in_kernels_work(const struct wp_stuck *stuck, pid_t pid)
{
	char place[64];

	if (stuck->state_char != 'D')
		return false;
	read_place(pid, place, sizeof(place));
	return is_kernels_work(place);
}

/* The process of whose directory descriptor FD of PID is, or a file there. */
static pid_t find_owner(pid_t pid, int fd)
{
	char path[48], link[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return 0;
	link[n] = '\0';
	return strncmp(link, "/proc/", 6) ? 0 :
					    (pid_t)strtol(link + 6, NULL, 10);
}

pid_t wp_stuck_find_target(pid_t pid)
{
	struct wp_proc_syscall call;
	char path[32], text[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	n = wp_io_read_at(-1, path, text, sizeof(text));
	if (n <= 0 || wp_proc_syscall_parse(&call, text, (size_t)n))
		return 0;
	switch (call.running ? -1 : call.nr) {
	case SYS_process_vm_readv:
		return (pid_t)call.args[0];
	case SYS_read:
	case SYS_pread64:
	case SYS_openat:
	case SYS_readlinkat:
	case SYS_newfstatat:
	case SYS_statx:
		return find_owner(pid, (int)call.args[0]);
	default:
		return 0;
	}
}

void wp_stuck_describe(pid_t pid, char text[WP_STUCK_TEXT])
{
	const pid_t target = wp_stuck_find_target(pid);
	char place[64], of[32] = "what is looked at";
	size_t n;

	read_place(pid, place, sizeof(place));
	if (target)
		snprintf(of, sizeof(of), "process %d", target);
	n = (size_t)snprintf(
		text, WP_STUCK_TEXT,
		"process %d of wallprof does not come back from the kernel (%s)",
		pid, place[0] ? place : "place not known");
	if (is_kernels_work(place))
		return;
	snprintf(
		text + n, WP_STUCK_TEXT - n,
		"; a file or memory of %s cannot be had, most likely because %s "
		"does not answer",
		of,
		strstr(place, "userfault") ? "whoever serves its page faults" :
					     "its file server");
}

bool wp_stuck_is_heard(void)
{
	struct pollfd fd = { STDERR_FILENO, POLLOUT, 0 };

	return poll(&fd, 1, 0) > 0;
}
