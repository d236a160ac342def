/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - see wallprof/process.h. */
#include "wallprof/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "process_priv.h"
#include "wallprof/access.h"
#include "wallprof/procfs.h"

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
	rc = wp_process_error(errno);
	/* With hidepid=2 /proc has no directory of a process that others than
	 * root are not to look at. */
	if (rc == -ESRCH && geteuid() && wp_access_exists(p->pid))
		rc = -EPERM;
	if (rc == -ESRCH)
		return wp_err_set(err, rc,
				  "no process with pid %d (already gone?)",
				  p->pid);
	return wp_err_set(err, rc, "open %s: %s", path, strerror(-rc));
}

static void open_pidfd(struct wp_process *p)
{
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
}

/* FILE of P cannot be read, by RC.  -ESRCH: it has gone, which leaves no whole line; else
 * there is no memory or descriptor, and ERR says so. */
static int say_unread(const struct wp_process *p, const char *file, int rc,
		      struct wp_err *err)
{
	rc = rc == -EBADMSG ? -ESRCH : wp_process_error(-rc);
	return rc == -ESRCH ? rc :
			      wp_err_set(err, rc, "read /proc/%d/%s: %s",
					 p->pid, file, strerror(-rc));
}

/* PID may be a tid: switch to its thread group leader. */
static int find_leader(struct wp_process *p, struct wp_err *err)
{
	uint64_t tgid;
	int rc;

	/* Only a leader has one (pidfd_open(2)). */
	open_pidfd(p);
	if (p->pidfd >= 0)
		return 0;
	rc = wp_proc_status_read_at(&tgid, p->proc_fd, "status", "Tgid", 10);
	if (rc)
		rc = say_unread(p, "status", rc, err);
	if (rc == -ESRCH)
		return wp_err_set(err, rc,
				  "no process with pid %d (already gone?)",
				  p->pid);
	if (rc)
		return rc;
	if ((pid_t)tgid == p->pid)
		return 0;
	close(p->proc_fd);
	p->pid = (pid_t)tgid;
	open_pidfd(p);
	return open_proc(p, err);
}

/* Where the leader has exited and other threads live: read P through the
 * /proc directory of one of them. */
static int open_through_living(struct wp_process *p, struct wp_err *err)
{
	pid_t pid = p->pid, tid = wp_process_find_living(p);
	int rc;

	if (!tid)
		return 0;
	close(p->proc_fd);
	p->pid = p->reader_tid = tid;
	rc = open_proc(p, err);
	p->pid = pid;
	return rc;
}

static void read_owner(struct wp_process *p)
{
	struct stat st;

	if (!fstat(p->proc_fd, &st))
		p->uid = st.st_uid;
}

static int check_kind(struct wp_process *p, struct wp_err *err)
{
	struct wp_proc_stat stat;
	char text[1024];
	ssize_t n = wp_io_read_at(p->proc_fd, "stat", text, sizeof(text));
	int rc = n < 0 ? say_unread(p, "stat", (int)n, err) : 0;

	if (rc && rc != -ESRCH)
		return rc;
	if (rc || wp_proc_stat_parse(&stat, text, (size_t)n))
		return wp_err_set(err, -ESRCH, "process %d has gone", p->pid);
	if (stat.kernel_thread)
		return wp_err_set(err, -ENOTSUP,
				  "%d is a kernel thread: it has no user stack "
				  "to sample",
				  p->pid);
	if (wp_access_traces_us(p->pid))
		return wp_err_set(err, -EDEADLK,
				  "process %d traces wallprof (strace, a "
				  "debugger), which could not go on while that "
				  "is stopped: end that first",
				  p->pid);
	p->start_time = stat.start_time;
	read_owner(p);
	if (stat.state_char != 'Z' && stat.state_char != 'X')
		return 0;
	/* A zombie leader whose threads live on is a live process. */
	if (wp_process_count_threads(p) <= 1)
		return wp_err_set(err, -ESRCH,
				  "process %d is a zombie: it has ended and "
				  "waits for its parent %d",
				  p->pid, stat.ppid);
	return open_through_living(p, err);
}

/* What registers and addresses of a program are like. */
enum width {
	WIDTH_64,
	/* i386's. */
	WIDTH_32,
	/* x32's, or 32-bit Arm's. */
	WIDTH_OTHER,
};

static enum width read_width(const struct wp_process *process)
{
	/* One more than is needed, for the NUL. */
	char entry[sizeof(uint64_t) + 1];
	uint64_t type;
	ssize_t n = wp_io_read_at(process->proc_fd, "auxv", entry,
				  sizeof(entry));

	/* Its file may be on a server that does not answer.  An entry of getauxval(3)
	 * is of two words: where those are of 32 bits, the value, which is not 0 in
	 * the first, is where the other half of the type would be. */
	if (n != sizeof(type))
		return WIDTH_64;
	memcpy(&type, entry, sizeof(type));
	if (type <= UINT32_MAX)
		return WIDTH_64;
#if defined(__x86_64__)
	/* i386's first is AT_SYSINFO, before the vDSO's address, with which x32's
	 * begin (arch/x86/include/asm/elf.h, ARCH_DLINFO_IA32, ARCH_DLINFO_X32). */
	if ((uint32_t)type != AT_SYSINFO_EHDR)
		return WIDTH_32;
#endif
	return WIDTH_OTHER;
}

static int check_bits(const struct wp_process *p, struct wp_err *err)
{
	switch (read_width(p)) {
	case WIDTH_64:
	case WIDTH_32:
		return 0;
	case WIDTH_OTHER:
		break;
	}
	return wp_err_set(err, -ENOTSUP,
			  "process %d runs a 32-bit program of a kind that "
			  "wallprof does not know (it knows i386's)",
			  p->pid);
}

static bool is_denied(const struct wp_process *p, const char *name)
{
	/* "maps" is checked when it is opened, "syscall" when it is read: a byte
	 * of it tells as much as all. */
	char text[2];
	ssize_t n = wp_io_read_at(p->proc_fd, name, text, sizeof(text));

	return n < 0 && wp_process_error((int)-n) == -EPERM;
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

int wp_process_check_program(struct wp_process *p, struct wp_err *err)
{
	int rc = check_bits(p, err);

	read_owner(p);
	return rc ? rc : check_access(p, err);
}

int wp_process_recheck(const struct wp_process *p, struct wp_err *err)
{
	/* Without AT_SECURE the kernel checks each access by the same rules. */
	if (!getauxval(AT_SECURE) || !check_access(p, NULL))
		return 0;
	return wp_err_set(err, -EPERM,
			  "process %d may not be looked at any "
			  "more (it has executed a set-user-ID program?): what "
			  "was recorded of it is thrown away",
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
		rc = wp_process_error(errno);
		wp_err_set(err, rc, "open /proc/%d/task: %s", p.pid,
			   strerror(errno));
		goto out;
	}
	p.reader_tid = p.pid;
	rc = check_kind(&p, err);
	if (!rc)
		rc = wp_process_check_program(&p, err);
	if (rc)
		goto out;
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
	int rc;

	/* A pidfd is readable when the whole thread group has ended.  A signal that
	 * comes now ends a poll(2) without a wait, too (fs/select.c, do_poll). */
	if (process->pidfd >= 0) {
		do
			rc = poll(&pfd, 1, 0);
		while (rc < 0 && errno == EINTR);
		return rc <= 0;
	}
	n = wp_io_read_at(process->proc_fd, "stat", text, sizeof(text));
	/* For want of a descriptor nothing is known. */
	if (n < 0 && wp_process_error((int)-n) != -ESRCH)
		return true;
	return n > 0 && !wp_proc_stat_parse(&stat, text, (size_t)n) &&
	       (stat.state_char != 'Z' ||
		wp_process_count_threads(process) > 1);
}

bool wp_process_is_32bit(const struct wp_process *process)
{
	return read_width(process) == WIDTH_32;
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

void wp_process_name(const struct wp_process *process, char *buf, size_t size)
{
	ssize_t n = wp_io_read_at(process->proc_fd, "comm", buf, size);

	buf[n > 0 ? n - (buf[n - 1] == '\n') : 0] = '\0';
}

static void read_exe(int dirfd, const char *path, char *buf, size_t size)
{
	ssize_t n = readlinkat(dirfd, path, buf, size - 1);

	buf[n > 0 ? wp_maps_path_len(buf, (size_t)n) : 0] = '\0';
}

void wp_process_exe(const struct wp_process *process, char *buf, size_t size)
{
	read_exe(process->proc_fd, "exe", buf, size);
}

void wp_process_exe_of(pid_t pid, char *buf, size_t size)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	read_exe(AT_FDCWD, path, buf, size);
}

uint64_t wp_process_cpu_ns(const struct wp_process *process)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(process->pid, &clock) ||
	    clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}
