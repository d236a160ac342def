/* SPDX-License-Identifier: Apache-2.0 */
/* fd_holders.c - see wallprof/fd_holders.h. */
#include "wallprof/fd_holders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wallprof/clock.h"
#include "wallprof/io.h"
#include "wallprof/kcmp.h"
#include "wallprof/procfs.h"
#include "wallprof/vec.h"

/* /proc/PID/fdinfo/FD has a line for each lock. */
enum { FDINFO_MAX = 16384 };

struct job {
	struct wp_fd_holders *holders;
	const struct wp_fd_object *objects;
	size_t n;
	size_t max;
	uint64_t deadline_ns;
};

int wp_fd_holders_parse_flags(bool *ret_reads, bool *ret_writes,
			      const char *text, size_t len)
{
	uint64_t flags;

	if (wp_proc_status_parse(&flags, text, len, "flags", 8))
		return -EBADMSG;
	/* A descriptor of O_PATH keeps no end open (open(2)). */
	*ret_reads = !(flags & O_PATH) && (flags & O_ACCMODE) != O_WRONLY;
	*ret_writes = !(flags & O_PATH) && (flags & O_ACCMODE) != O_RDONLY;
	return 0;
}

/* Whether NAME in directory FD_DIR, whose link reads as OBJECT->link, is
 * OBJECT. */
static bool is_same(const struct wp_fd_object *object, int fd_dir,
		    const char *name)
{
	struct stat st;

	if (object->link[0] != '/')
		return true;
	return !wp_io_stat_open(fd_dir, name, &st) &&
	       st.st_dev == object->dev && st.st_ino == object->ino;
}

static int add_holder(struct job *job, size_t object, pid_t pid, int proc_fd,
		      const char *name)
{
	struct wp_fd_holders *holders = job->holders;
	const struct wp_file_want *want = job->objects[object].want;
	struct wp_fd_holder holder = { (uint32_t)object,
				       pid,
				       (int)strtol(name, NULL, 10),
				       true,
				       true,
				       false };
	char path[64], text[FDINFO_MAX];
	ssize_t n;

	if (strncmp(job->objects[object].link, "socket:", 7)) {
		snprintf(path, sizeof(path), "fdinfo/%d", holder.fd);
		n = wp_io_read_at(proc_fd, path, text, sizeof(text));
		/* It has been closed. */
		if (n < 0 ||
		    wp_fd_holders_parse_flags(&holder.reads, &holder.writes,
					      text, (size_t)n))
			return 0;
		holder.blocks = want &&
				wp_file_lock_blocks(want, text, (size_t)n);
	}
	if (WP_VEC_ROOM(holders->v, holders->len, holders->cap, 1))
		return -ENOMEM;
	holders->v[holders->len++] = holder;
	return 0;
}

/* What process PID at PROC_FD, or -1: one that is hidden, has open is not known; or, if it
 * RECEIVES, what it will have. */
static int deny(struct wp_fd_holders *holders, pid_t pid, int proc_fd,
		bool receives)
{
	struct wp_fd_denied denied = { .start_time = UINT64_MAX };
	struct wp_proc_stat stat;
	char text[4096];
	ssize_t n;

	/* It may have many sockets that descriptors were sent to. */
	if (pid && holders->ndenied &&
	    holders->denied[holders->ndenied - 1].pid == pid)
		return 0;
	n = proc_fd < 0 ? -1 :
			  wp_io_read_at(proc_fd, "stat", text, sizeof(text));
	if (n > 0 && !wp_proc_stat_parse(&stat, text, (size_t)n)) {
		if (stat.kernel_thread)
			return 0;
		denied = (struct wp_fd_denied){ pid, stat.ppid, stat.start_time,
						receives };
	}
	if (WP_VEC_ROOM(holders->denied, holders->ndenied, holders->cap_denied,
			1))
		return -ENOMEM;
	holders->denied[holders->ndenied++] = denied;
	return 0;
}

/* Has the receive queue of socket NAME of the process at PROC_FD descriptors in it
 * (SCM_RIGHTS; fdinfo since Linux 5.6)? */
static bool has_sent_fds(int proc_fd, const char *name)
{
	char path[64], text[4096];
	uint64_t nsent;
	ssize_t n;

	snprintf(path, sizeof(path), "fdinfo/%s", name);
	n = wp_io_read_at(proc_fd, path, text, sizeof(text));
	return n > 0 &&
	       !wp_proc_status_parse(&nsent, text, (size_t)n, "scm_fds", 10) &&
	       nsent;
}

/* What process PID has besides its descriptors, by its descriptor NAME, which reads
 * LINK. */
static int check_hidden(struct job *job, pid_t pid, int proc_fd,
			const char *link, const char *name)
{
	struct wp_fd_holders *holders = job->holders;
	struct wp_tids *rings = &holders->rings;

	if (!strncmp(link, "socket:", 7) && has_sent_fds(proc_fd, name))
		return deny(holders, pid, proc_fd, true);
	if (strcmp(link, "anon_inode:[io_uring]") != 0 ||
	    (rings->len && rings->v[rings->len - 1] == pid))
		return 0;
	if (WP_VEC_ROOM(rings->v, rings->len, rings->cap, 1))
		return -ENOMEM;
	rings->v[rings->len++] = pid;
	return 0;
}

static int check_fd(struct job *job, pid_t pid, int proc_fd, int fd_dir,
		    const char *name)
{
	char link[PATH_MAX];
	ssize_t len = readlinkat(fd_dir, name, link, sizeof(link) - 1);
	int rc = 0;

	if (len <= 0)
		return 0;
	link[len] = '\0';
	rc = check_hidden(job, pid, proc_fd, link, name);
	for (size_t i = 0; i < job->n && !rc; i++)
		if (!strcmp(link, job->objects[i].link) &&
		    is_same(&job->objects[i], fd_dir, name))
			rc = add_holder(job, i, pid, proc_fd, name);
	return rc;
}

static bool is_over(struct job *job)
{
	struct wp_fd_holders *holders = job->holders;

	if (holders->len >= job->max || wp_clock_ns() >= job->deadline_ns)
		holders->cut = true;
	return holders->cut;
}

static bool is_denial(int error)
{
	return error == EACCES || error == EPERM;
}

/* *RET_N is how many there are. */
static int scan_fds(struct job *job, pid_t pid, int proc_fd, size_t *ret_n)
{
	int fd = openat(proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	bool denied = false;
	int rc = 0;

	*ret_n = 0;
	if (!dir) {
		if (is_denial(errno))
			rc = deny(job->holders, pid, proc_fd, false);
		if (fd >= 0)
			close(fd);
		return rc;
	}
	errno = 0;
	while (!rc && !is_over(job) && (entry = readdir(dir))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		rc = check_fd(job, pid, proc_fd, fd, entry->d_name);
		++*ret_n;
		denied |= is_denial(errno);
	}
	/* Some kernels deny the reading of the directory, not its opening; who
	 * may open all files, but not trace, is denied what is in it. */
	if (!rc && (denied || is_denial(errno)))
		rc = deny(job->holders, pid, proc_fd, false);
	closedir(dir);
	return rc;
}

/* A thread may have descriptors of its own (unshare(2), CLONE_FILES): read those of the
 * threads of process PID that has another table than FIRST, which was read.  A leader
 * that has exited has none any more, its threads go on to have them: with FIRST 0, the
 * first that has any is the one to compare with. */
static int scan_threads(struct job *job, pid_t pid, int proc_fd, pid_t first)
{
	int fd = openat(proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	size_t n = 0;
	int rc = 0;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && !rc && !is_over(job) && (entry = readdir(dir))) {
		int tid = (int)strtol(entry->d_name, NULL, 10), task;

		if (tid <= 0 || tid == pid ||
		    (first && !wp_kcmp_files_differ(first, tid)))
			continue;
		task = openat(fd, entry->d_name,
			      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (task < 0)
			continue;
		rc = scan_fds(job, pid, task, &n);
		close(task);
		if (n && !first)
			first = tid;
	}
	if (dir)
		closedir(dir);
	return rc;
}

static int scan_process(struct job *job, pid_t pid, int proc_fd)
{
	size_t denied = job->holders->ndenied;
	size_t n;
	int rc = scan_fds(job, pid, proc_fd, &n);

	return rc || (!n && job->holders->ndenied != denied) ?
		       rc :
		       scan_threads(job, pid, proc_fd, n ? pid : 0);
}

int wp_fd_holders_find(struct wp_fd_holders *holders,
		       const struct wp_fd_object *objects, size_t n, size_t max,
		       uint64_t deadline_ns)
{
	struct job job = { holders, objects, n, max, deadline_ns };
	struct dirent *entry;
	DIR *dir;
	int rc = 0;

	holders->len = 0;
	holders->ndenied = 0;
	holders->rings.len = 0;
	holders->cut = false;
	if (!n)
		return 0;
	dir = opendir("/proc");
	if (!dir)
		return errno == ENOMEM ? -ENOMEM : -ENOTSUP;
	/* With hidepid=2 those of others are not even listed, the first of all
	 * among them. */
	if (access("/proc/1", F_OK))
		rc = deny(holders, 0, -1, false);
	while (!rc && !is_over(&job) && (entry = readdir(dir))) {
		int fd;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		fd = openat(dirfd(dir), entry->d_name,
			    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* The process has ended, or there is hidepid=1. */
		if (fd < 0) {
			if (is_denial(errno))
				rc = deny(holders, 0, -1, false);
			continue;
		}
		rc = scan_process(&job, (pid_t)strtol(entry->d_name, NULL, 10),
				  fd);
		close(fd);
	}
	closedir(dir);
	return rc;
}

void wp_fd_holders_clear(struct wp_fd_holders *holders)
{
	free(holders->v);
	free(holders->denied);
	wp_tids_clear(&holders->rings);
	*holders = (struct wp_fd_holders)WP_FD_HOLDERS_INIT;
}
