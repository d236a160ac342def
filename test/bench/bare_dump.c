/* SPDX-License-Identifier: Apache-2.0 */
/* bare_dump.c - the least that a dump of all threads takes, with nothing around it.
 *
 * bare_dump PID: of each thread its name, its state, when it last ran, its times and its
 * call, a page of its stack, and its times and its call twice more: whether it has
 * moved by the time it was read, and by the time all were.  Nothing is printed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "wallprof/io.h"
#include "wallprof/procfs.h"

enum { PAGE = 4096, FILES = 1 << 16 };

struct task {
	int schedstat;
	int syscall;
};

static char text[PAGE];

static int open_of(int tasks, const char *tid, const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", tid, name);
	return openat(tasks, path, O_RDONLY | O_CLOEXEC);
}

static void read_once(int tasks, const char *tid, const char *name)
{
	int fd = open_of(tasks, tid, name);

	if (fd < 0)
		return;
	(void)!wp_io_pread(fd, text, sizeof(text));
	close(fd);
}

/* Read the times and the call of TASK: its stack pointer, 0 if it has none. */
static uint64_t look(const struct task *task)
{
	struct wp_proc_syscall call = { .sp_avma = 0 };
	ssize_t n;

	(void)!wp_io_pread(task->schedstat, text, sizeof(text));
	n = wp_io_pread(task->syscall, text, sizeof(text));
	if (n <= 0 || wp_proc_syscall_parse(&call, text, (size_t)n) ||
	    call.running)
		return 0;
	return call.sp_avma;
}

static struct task dump(pid_t pid, int tasks, const char *tid)
{
	struct task task = { open_of(tasks, tid, "schedstat"),
			     open_of(tasks, tid, "syscall") };
	static char stack[PAGE];
	struct iovec local = { stack, sizeof(stack) };
	struct iovec remote;

	read_once(tasks, tid, "comm");
	read_once(tasks, tid, "stat");
	read_once(tasks, tid, "sched");
	remote = (struct iovec){ (void *)(uintptr_t)look(&task), PAGE };
	(void)!process_vm_readv(pid, &local, 1, &remote, 1, 0);
	look(&task);
	return task;
}

int main(int argc, char **argv)
{
	static struct task v[FILES / 2];
	const struct rlimit limit = { FILES, FILES };
	pid_t pid = argc == 2 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
	const struct dirent *entry;
	char path[32];
	size_t n = 0;
	DIR *dir;

	if (pid <= 0)
		return 64;
	setrlimit(RLIMIT_NOFILE, &limit);
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir) {
		perror(path);
		return 1;
	}
	while (n < FILES / 2 && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			v[n++] = dump(pid, dirfd(dir), entry->d_name);
	for (size_t i = 0; i < n; i++)
		look(&v[i]);
	closedir(dir);
	return 0;
}
