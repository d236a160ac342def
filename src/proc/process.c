/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - see wallprof/process.h. */
#include "wallprof/process.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "wallprof/procfs.h"

enum { MAPS_TEXT_MAX = 256 << 20 };

/* /proc says ENOENT for a process that is not there when a file of it is
 * opened, ESRCH once it has gone, EACCES where ptrace(2) would say EPERM.
 */
static int proc_error(int error)
{
	switch (error) {
	case ENOENT:
	case ESRCH:
		return -ESRCH;
	case EACCES:
	case EPERM:
		return -EPERM;
	default:
		return -error;
	}
}

static int open_proc(struct wp_process *p, struct wp_err *err)
{
	char path[32];
	int rc;

	snprintf(path, sizeof(path), "/proc/%d", p->pid);
	p->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->proc_fd >= 0)
		return 0;
	if (errno == ENOENT && access("/proc/self", F_OK))
		return wp_err_set(err, -ENOTSUP,
				  "/proc is not mounted; wallprof needs it");
	rc = proc_error(errno);
	if (rc == -ESRCH)
		return wp_err_set(err, rc,
				  "no process with pid %d (already gone?)",
				  p->pid);
	return wp_err_set(err, rc, "open %s: %s", path, strerror(-rc));
}

/* A number of a thread other than the first leads to its process. */
static int find_leader(struct wp_process *p, struct wp_err *err)
{
	char text[4096];
	ssize_t n = wp_io_read_at(p->proc_fd, "status", text, sizeof(text));
	uint64_t tgid;

	if (n < 0 || wp_proc_status_parse(&tgid, text, (size_t)n, "Tgid", 10))
		return wp_err_set(err, -ESRCH,
				  "no process with pid %d (already gone?)",
				  p->pid);
	if ((pid_t)tgid == p->pid)
		return 0;
	close(p->proc_fd);
	p->pid = (pid_t)tgid;
	return open_proc(p, err);
}

/* linux_dirent64 of getdents64(2); glibc has no name for it before 2.30. */
struct dirent_rec {
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

static bool is_living(const struct wp_process *p, pid_t tid)
{
	struct wp_proc_stat stat;
	char path[32], text[1024];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/stat", tid);
	n = wp_io_read_at(p->task_fd, path, text, sizeof(text));
	return n > 0 && !wp_proc_stat_parse(&stat, text, (size_t)n) &&
	       stat.letter != 'Z' && stat.letter != 'X';
}

/* A thread that has not exited, 0 if none: the address space, the files and the
 * root of a process cannot be seen through a thread that has, not even the
 * first.
 */
static pid_t find_living(const struct wp_process *p)
{
	char buf[2048] __attribute__((aligned(8)));
	long n;

	if (lseek(p->task_fd, 0, SEEK_SET) < 0)
		return 0;
	while ((n = syscall(SYS_getdents64, p->task_fd, buf, sizeof(buf))) >
	       0) {
		for (long at = 0; at < n;) {
			const struct dirent_rec *d = (void *)(buf + at);
			long tid = strtol(d->name, NULL, 10);

			at += d->reclen;
			if (tid > 0 && is_living(p, (pid_t)tid))
				return (pid_t)tid;
		}
	}
	return 0;
}

/* The first thread has exited and others live: see it through one of them. */
static int see_through_living(struct wp_process *p, struct wp_err *err)
{
	pid_t pid = p->pid, tid = find_living(p);
	int rc;

	if (!tid)
		return 0;
	close(p->proc_fd);
	p->pid = p->reader_tid = tid;
	rc = open_proc(p, err);
	p->pid = pid;
	return rc;
}

static int check_kind(struct wp_process *p, struct wp_err *err)
{
	struct wp_proc_stat stat;
	struct stat st;
	char text[1024];
	ssize_t n = wp_io_read_at(p->proc_fd, "stat", text, sizeof(text));

	if (n < 0 || wp_proc_stat_parse(&stat, text, (size_t)n))
		return wp_err_set(err, -ESRCH, "process %d has gone", p->pid);
	if (stat.kernel_thread)
		return wp_err_set(err, -ENOTSUP,
				  "%d is a kernel thread: it has no user stack "
				  "to sample",
				  p->pid);
	p->start_time = stat.start_time;
	if (!fstat(p->proc_fd, &st))
		p->uid = st.st_uid;
	if (stat.letter != 'Z' && stat.letter != 'X')
		return 0;
	/* A zombie leader whose threads live on is a live process. */
	if (wp_process_count_threads(p) <= 1)
		return wp_err_set(err, -ESRCH,
				  "process %d is a zombie: it has ended and "
				  "waits for its parent %d",
				  p->pid, stat.ppid);
	return see_through_living(p, err);
}

static int check_bits(const struct wp_process *p, struct wp_err *err)
{
	if (wp_process_is_32bit(p))
		return wp_err_set(err, -ENOTSUP,
				  "process %d runs a 32-bit program; wallprof "
				  "knows 64-bit ones only",
				  p->pid);
	return 0;
}

static bool is_denied(const struct wp_process *p, const char *name)
{
	char text[512];
	ssize_t n = wp_io_read_at(p->proc_fd, name, text, sizeof(text));

	return n < 0 && proc_error((int)-n) == -EPERM;
}

/* Both kinds of access that sampling needs: the map (PTRACE_MODE_READ) and the
 * registers (PTRACE_MODE_ATTACH).  "syscall" is its owner's alone to read, and
 * root's if the program is set-user-ID, so that CAP_SYS_PTRACE does not reach
 * further than the user does.
 */
static int check_access(const struct wp_process *p, struct wp_err *err)
{
	/* A zombie leader has neither, which is no refusal. */
	if (!is_denied(p, "maps") && !is_denied(p, "syscall"))
		return 0;
	return wp_err_set(err, -EPERM, "not allowed to look at process %d",
			  p->pid);
}

int wp_process_recheck(const struct wp_process *p, struct wp_err *err)
{
	/* Without, the kernel asks at each access. */
	if (!getauxval(AT_SECURE) || !check_access(p, NULL))
		return 0;
	return wp_err_set(err, -EPERM,
			  "process %d may not be looked at any "
			  "more (it has executed a set-user-ID program?): what "
			  "was recorded is thrown away",
			  p->pid);
}

int wp_process_open(struct wp_process *ret, pid_t pid, struct wp_err *err)
{
	struct wp_process p = WP_PROCESS_INIT;
	int rc;

	p.pid = pid;
	rc = open_proc(&p, err);
	if (!rc)
		rc = find_leader(&p, err);
	if (rc)
		goto out;
	p.task_fd = openat(p.proc_fd, "task",
			   O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p.task_fd < 0) {
		rc = proc_error(errno);
		wp_err_set(err, rc, "open /proc/%d/task: %s", p.pid,
			   strerror(errno));
		goto out;
	}
	p.reader_tid = p.pid;
	rc = check_kind(&p, err);
	if (!rc)
		rc = check_bits(&p, err);
	if (!rc)
		rc = check_access(&p, err);
	if (rc)
		goto out;
	p.pidfd = (int)syscall(SYS_pidfd_open, p.pid, 0);
	p.root_fd = openat(p.proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	*ret = p;
	return 0;
out:
	wp_process_clear(&p);
	return rc;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void wp_process_clear(struct wp_process *process)
{
	close_fd(&process->pidfd);
	close_fd(&process->root_fd);
	close_fd(&process->task_fd);
	close_fd(&process->proc_fd);
}

bool wp_process_is_alive(const struct wp_process *process)
{
	struct pollfd pfd = { process->pidfd, POLLIN, 0 };
	struct wp_proc_stat stat;
	char text[1024];
	ssize_t n;

	/* A pidfd is readable when the whole thread group has ended. */
	if (process->pidfd >= 0)
		return poll(&pfd, 1, 0) == 0;
	n = wp_io_read_at(process->proc_fd, "stat", text, sizeof(text));
	return n > 0 && !wp_proc_stat_parse(&stat, text, (size_t)n) &&
	       (stat.letter != 'Z' || wp_process_count_threads(process) > 1);
}

bool wp_process_is_32bit(const struct wp_process *process)
{
	/* e_ident of elf(5) and a byte for the end. */
	char ident[EI_NIDENT + 1];
	ssize_t n = wp_io_read_at(process->proc_fd, "exe", ident,
				  sizeof(ident));

	return n == EI_NIDENT && !memcmp(ident, ELFMAG, SELFMAG) &&
	       ident[EI_CLASS] == ELFCLASS32;
}

long wp_process_count_threads(const struct wp_process *process)
{
	struct stat st;

	if (fstat(process->task_fd, &st))
		return proc_error(errno);
	return st.st_nlink < 2 ? 0 : (long)st.st_nlink - 2;
}

static int add_tid(struct wp_tids *tids, pid_t tid)
{
	if (tids->len == tids->cap) {
		size_t cap = tids->cap ? 2 * tids->cap : 64;
		pid_t *v = reallocarray(tids->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		tids->v = v;
		tids->cap = cap;
	}
	tids->v[tids->len++] = tid;
	return 0;
}

int wp_process_list_threads(const struct wp_process *process,
			    struct wp_tids *tids)
{
	/* Not readdir: a directory stream allocates. */
	char buf[32768] __attribute__((aligned(8)));
	long n;

	tids->len = 0;
	if (lseek(process->task_fd, 0, SEEK_SET) < 0)
		return proc_error(errno);
	while ((n = syscall(SYS_getdents64, process->task_fd, buf,
			    sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			const struct dirent_rec *d = (void *)(buf + at);
			long tid = strtol(d->name, NULL, 10);

			at += d->reclen;
			if (tid > 0 && add_tid(tids, (pid_t)tid))
				return -ENOMEM;
		}
	}
	return n < 0 ? proc_error(errno) : 0;
}

void wp_tids_clear(struct wp_tids *tids)
{
	free(tids->v);
	*tids = (struct wp_tids)WP_TIDS_INIT;
}

ssize_t wp_process_read(const struct wp_process *process, uint64_t avma,
			void *buf, size_t len)
{
	struct iovec local = { buf, len };
	struct iovec remote = { (void *)(uintptr_t)avma, len };
	ssize_t n = process_vm_readv(process->reader_tid, &local, 1, &remote, 1,
				     0);
	pid_t tid;

	/* That thread may have exited without the others. */
	if (n < 0 && errno == ESRCH) {
		tid = find_living(process);
		if (!tid)
			return -ESRCH;
		n = process_vm_readv(tid, &local, 1, &remote, 1, 0);
	}
	if (n >= 0)
		return n;
	return errno == EFAULT ? 0 : -errno;
}

int wp_process_open_maps(const struct wp_process *process)
{
	int fd = openat(process->proc_fd, "maps", O_RDONLY | O_CLOEXEC);
	char path[32], byte[2];
	pid_t tid;

	if (fd >= 0 && wp_io_pread(fd, byte, sizeof(byte)) > 0)
		return fd;
	tid = find_living(process);
	if (!tid)
		return fd;
	if (fd >= 0)
		close(fd);
	snprintf(path, sizeof(path), "%d/maps", tid);
	return openat(process->task_fd, path, O_RDONLY | O_CLOEXEC);
}

int wp_process_read_maps(const struct wp_process *process, struct wp_text *text,
			 struct wp_maps *maps)
{
	int rc = wp_text_read(text, process->proc_fd, "maps", MAPS_TEXT_MAX);
	char path[32];
	pid_t tid;

	if ((rc == -ESRCH || rc == -ENOENT || (!rc && !text->len)) &&
	    (tid = find_living(process))) {
		snprintf(path, sizeof(path), "%d/maps", tid);
		rc = wp_text_read(text, process->task_fd, path, MAPS_TEXT_MAX);
	}
	if (rc)
		return proc_error(-rc);
	return wp_maps_parse(maps, text->data, text->len);
}

static int open_by_path(const struct wp_process *process,
			const struct wp_maps *maps, const struct wp_map *map)
{
	const char *path = wp_maps_path(maps, map);
	struct stat st;
	int fd;

	if (path[0] != '/' || process->root_fd < 0 || map->deleted)
		return -ENOENT;
	fd = openat(process->root_fd, path + 1,
		    O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	/* The device may differ between the map and stat(2) on overlay file
	 * systems, so it is the inode that must agree. */
	if (fstat(fd, &st) || st.st_ino != map->ino || !S_ISREG(st.st_mode)) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

int wp_process_open_map(const struct wp_process *process,
			const struct wp_maps *maps, const struct wp_map *map)
{
	char name[64];
	struct stat st;
	int fd;

	/* Opening a device that the target has mapped could have effects. */
	if (!map->ino || !strncmp(wp_maps_path(maps, map), "/dev/", 5))
		return -ENOENT;
	snprintf(name, sizeof(name), "map_files/%lx-%lx",
		 (unsigned long)map->start_avma, (unsigned long)map->end_avma);
	if (!wp_io_stat_open(process->proc_fd, name, &st) &&
	    !S_ISREG(st.st_mode))
		return -ENOENT;
	fd = openat(process->proc_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd >= 0 ? fd : open_by_path(process, maps, map);
}

/* include/uapi/linux/fs.h of Linux 6.11; not in older headers. */
struct procmap_query {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start;
	uint64_t vma_end;
	uint64_t vma_flags;
	uint64_t vma_page_size;
	uint64_t vma_offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t vma_name_size;
	uint32_t build_id_size;
	uint64_t vma_name_addr;
	uint64_t build_id_addr;
};

/* Only a region that may be executed. */
enum { QUERY_EXECUTABLE = 0x04 };

#define PROCMAP_QUERY_IOCTL _IOWR('f', 17, struct procmap_query)

int wp_process_check_map(int maps_fd, uint64_t avma, uint64_t start_avma,
			 uint64_t off, uint64_t ino)
{
	struct procmap_query q = { .size = sizeof(q), .query_addr = avma };

	if (ioctl(maps_fd, PROCMAP_QUERY_IOCTL, &q))
		return errno == ENOTTY || errno == EINVAL ? -ENOTSUP : 0;
	return q.vma_start == start_avma && q.vma_offset == off &&
	       q.inode == ino;
}

int wp_process_check_code(int maps_fd, uint64_t avma)
{
	struct procmap_query q = { .size = sizeof(q),
				   .query_addr = avma,
				   .query_flags = QUERY_EXECUTABLE };

	if (!ioctl(maps_fd, PROCMAP_QUERY_IOCTL, &q))
		return 1;
	if (errno == ENOTTY || errno == EINVAL)
		return -ENOTSUP;
	return errno != ENOENT;
}

void wp_process_command_line(const struct wp_process *process, char *buf,
			     size_t size)
{
	ssize_t n = wp_io_read_at(process->proc_fd, "cmdline", buf, size);

	while (n > 0 && (!buf[n - 1] || buf[n - 1] == ' '))
		n--;
	for (ssize_t i = 0; i < n; i++)
		if (!buf[i])
			buf[i] = ' ';
	if (n > 0) {
		buf[n] = '\0';
		return;
	}
	buf[0] = '[';
	n = size > 3 ?
		    wp_io_read_at(process->proc_fd, "comm", buf + 1, size - 2) :
		    -1;
	n = n > 0 && buf[n] == '\n' ? n : (n > 0 ? n + 1 : 1);
	buf[n] = ']';
	buf[n + 1] = '\0';
}

void wp_process_exe(const struct wp_process *process, char *buf, size_t size)
{
	static const char deleted[] = " (deleted)";
	const size_t tail = sizeof(deleted) - 1;
	ssize_t n = readlinkat(process->proc_fd, "exe", buf, size - 1);

	if (n < 0)
		n = 0;
	buf[n] = '\0';
	if ((size_t)n > tail && !strcmp(buf + (size_t)n - tail, deleted))
		buf[(size_t)n - tail] = '\0';
}
