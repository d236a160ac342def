/* SPDX-License-Identifier: Apache-2.0 */
/* thread_files.c - see thread_files.h. */
#include "thread_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "sampler_loop.h"
#include "target.h"
#include "thread.h"
#include "wallprof/io.h"
#include "wallprof/sched.h"

/* Descriptors left for ELF files, the map and one-time reads. */
enum { SPARE_FDS = 256 };

/* Values of a descriptor that is not open.  An open file holds a page of the
 * kernel's: a file that is read once only is not kept, except schedstat, which
 * tells this thread from a later one with its tid, and with --stop=all syscall, which
 * a tick reads more than once. */
enum {
	NOT_READ = -1,
	READ_ONCE = -2,
	NOT_KEPT = -3,
};

static const char *const file_name[] = {
	[WP_THREAD_SCHEDSTAT] = "schedstat",
	[WP_THREAD_SYSCALL] = "syscall",
	[WP_THREAD_STAT] = "stat",
};

void wp_thread_files_init(struct wp_thread_files *files)
{
	for (int i = 0; i < WP_NTHREAD_FILES; i++)
		files->fds[i] = NOT_READ;
}

void wp_thread_files_close(struct wp_thread_files *files)
{
	for (int i = 0; i < WP_NTHREAD_FILES; i++)
		if (files->fds[i] >= 0)
			close(files->fds[i]);
	wp_thread_files_init(files);
}

ssize_t wp_thread_files_read_once(const struct wp_target *target, pid_t tid,
				  const char *name, char *buf, size_t size)
{
	char path[48];

	snprintf(path, sizeof(path), "%d/%s", tid, name);
	return wp_io_read_at(target->process->task_fd, path, buf, size);
}

/* A descriptor to keep, unless that would leave too few for other things. */
static int open_file(const struct wp_thread *t, const char *name)
{
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "%d/%s", t->tid, name);
	fd = openat(t->target->process->task_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && (rlim_t)fd + SPARE_FDS > t->target->loop->fd_limit) {
		close(fd);
		return NOT_KEPT;
	}
	return fd < 0 ? NOT_KEPT : fd;
}

ssize_t wp_thread_files_read(struct wp_thread *t, enum wp_thread_file file,
			     char *buf, size_t size)
{
	int *fd = &t->files.fds[file];

	if (*fd == READ_ONCE ||
	    (*fd == NOT_READ &&
	     (file == WP_THREAD_SCHEDSTAT ||
	      (file == WP_THREAD_SYSCALL &&
	       t->target->loop->options.stop == WP_STOP_ALL))))
		*fd = open_file(t, file_name[file]);
	if (*fd >= 0)
		return wp_io_pread(*fd, buf, size);
	if (*fd == NOT_READ)
		*fd = READ_ONCE;
	return wp_thread_files_read_once(t->target, t->tid, file_name[file],
					 buf, size);
}

int wp_thread_files_status(uint64_t *ret, const struct wp_thread *t,
			   const char *name)
{
	char path[48];

	snprintf(path, sizeof(path), "%d/status", t->tid);
	return wp_proc_status_read_at(ret, t->target->process->task_fd, path,
				      name, 10);
}

uint64_t wp_thread_files_sleeps(const struct wp_thread *t)
{
	uint64_t sleeps;

	return wp_thread_files_status(&sleeps, t, "voluntary_ctxt_switches") ?
		       UINT64_MAX :
		       sleeps;
}

uint64_t wp_thread_files_exec_start(const struct wp_thread *t)
{
	char text[4096];
	uint64_t ns;
	ssize_t n = wp_thread_files_read_once(t->target, t->tid, "sched", text,
					      sizeof(text));

	return n <= 0 || wp_proc_sched_parse(&ns, text, (size_t)n) ? 0 : ns;
}

int wp_thread_files_schedstat(struct wp_thread *t, struct wp_schedstat *ret)
{
	char text[96];
	ssize_t n = wp_thread_files_read(t, WP_THREAD_SCHEDSTAT, text,
					 sizeof(text));

	/* Without CONFIG_SCHED_INFO there is no such file. */
	if (n == -ENOENT && !t->target->loop->schedstat_works) {
		*ret = (struct wp_schedstat){ 0 };
		return wp_thread_files_read(t, WP_THREAD_STAT, text,
					    sizeof(text)) < 0 ?
			       -ESRCH :
			       0;
	}
	if (n < 0)
		return (int)n;
	return wp_schedstat_parse(ret, text, (size_t)n);
}

bool wp_thread_files_call(struct wp_thread *t, struct wp_proc_syscall *ret)
{
	char text[256];
	ssize_t n = wp_thread_files_read(t, WP_THREAD_SYSCALL, text,
					 sizeof(text));

	return n > 0 && !wp_proc_syscall_parse(ret, text, (size_t)n) &&
	       !ret->running;
}

bool wp_thread_files_waits(struct wp_thread *t)
{
	struct wp_proc_syscall call;

	return wp_thread_files_call(t, &call);
}

int32_t wp_thread_files_cpu(struct wp_thread *t)
{
	struct wp_proc_stat stat;
	char text[1024];
	ssize_t n = wp_thread_files_read(t, WP_THREAD_STAT, text, sizeof(text));

	return n > 0 && !wp_proc_stat_parse(&stat, text, (size_t)n) ? stat.cpu :
								      -1;
}

bool wp_thread_files_answer(struct wp_thread *t)
{
	struct wp_schedstat now;

	return t->files.fds[WP_THREAD_SCHEDSTAT] < 0 ||
	       !wp_thread_files_schedstat(t, &now);
}
