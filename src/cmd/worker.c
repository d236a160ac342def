/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - see worker.h. */
#include "worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "signals.h"
#include "wallprof/clock.h"
#include "wallprof/io.h"
#include "wallprof/packet.h"
#include "wallprof/procfs.h"

/* The shortest that Linux grants. */
#define SLICE_NS (100 * WP_NS_PER_US)

/* Of this process, if it is a worker. */
static struct {
	pid_t supervisor;
	/* A socket to it; its standard error's other end; -1: none. */
	int sock;
	int messages;
	/* /proc/SUPERVISOR/stat */
	int stat_fd;
	/* What a command of the user's is to have, if it is kept. */
	sigset_t mask;
	struct rlimit files;
	bool is_kept;
	bool has_terminal;
} self = { .sock = -1, .messages = -1, .stat_fd = -1 };

/* Of the supervisor: nothing is to be written, and nobody may stay stopped. */
static void begin(pid_t supervisor)
{
	char path[32];

	self.supervisor = supervisor;
	self.has_terminal = isatty(STDERR_FILENO);
	prctl(PR_SET_NAME, "wp-worker");
	prctl(PR_SET_PDEATHSIG, WP_SIGNAL_AT_ONCE);
	snprintf(path, sizeof(path), "/proc/%d/stat", supervisor);
	self.stat_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (wp_worker_is_orphan())
		_exit(EXIT_FAILURE);
}

void wp_worker_keep(const sigset_t *old)
{
	self.mask = *old;
	/* There is always one (getrlimit(2)). */
	self.is_kept = wp_limits_raise_files(&self.files);
}

void wp_worker_restore(void)
{
	if (!self.is_kept)
		return;
	sigprocmask(SIG_SETMASK, &self.mask, NULL);
	setrlimit(RLIMIT_NOFILE, &self.files);
}

pid_t wp_worker_fork(struct wp_worker *ret)
{
	pid_t supervisor = getpid(), pid;
	int socks[2], pipes[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		return -1;
	if (pipe2(pipes, O_CLOEXEC)) {
		close(socks[0]);
		close(socks[1]);
		return -1;
	}
	pid = fork();
	close(socks[pid == 0 ? 0 : 1]);
	close(pipes[pid == 0 ? 0 : 1]);
	if (pid == 0) {
		self.sock = socks[1];
		self.messages = pipes[1];
		begin(supervisor);
	} else if (pid > 0) {
		*ret = (struct wp_worker){ pid, socks[0], pipes[0] };
	} else {
		close(socks[0]);
		close(pipes[0]);
	}
	return pid;
}

void wp_worker_give_streams(const struct wp_worker *worker)
{
	static const int fds[] = { STDOUT_FILENO, STDERR_FILENO };

	/* A worker that has ended meanwhile is seen to have. */
	(void)!wp_packet_send(worker->sock, "", 1, fds, 2);
}

void wp_worker_send(const void *packet, size_t len)
{
	/* A supervisor that has ended is known by the signal. */
	if (send(self.sock, packet, len, MSG_NOSIGNAL) < 0)
		return;
}

static void say(enum wp_worker_says what)
{
	char byte = (char)what;

	wp_worker_send(&byte, 1);
}

/* Close what is not wallprof's own, which is closed at exec. */
static void close_inherited(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);
		int flags = fd > STDERR_FILENO ? fcntl(fd, F_GETFD) : -1;

		if (flags >= 0 && !(flags & FD_CLOEXEC))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

/* sched_setattr(2), which C libraries of that time lack. */
struct sched_request {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime;
	uint64_t deadline;
	uint64_t period;
};

/* Ask for a CPU often and for a short time, of the same share: on a busy machine
 * a tick waits less (Linux 6.12, Documentation/scheduler/sched-eevdf.rst; others
 * heed it not). */
static void ask_for_short_slices(void)
{
	struct sched_request request = { 0 };

	if (syscall(SYS_sched_getattr, 0, &request, sizeof(request), 0) ||
	    request.policy != SCHED_OTHER)
		return;
	request.runtime = SLICE_NS;
	/* Denied is as well. */
	syscall(SYS_sched_setattr, 0, &request, 0);
}

/* With a command a group of its own alone would not do: where the command's group
 * has no parent outside of it but this one and holds a stopped process, the kernel
 * sends all of it SIGHUP when the command ends (kill_orphaned_pgrp, kernel/exit.c),
 * unless this is another session.  Elsewhere there is none: to the scheduler a
 * session is a group (autogroup), and while new ones came and went, Linux 6.18 was
 * seen to run none but one of the others for up to a minute, in 8 of 22 runs of two
 * tests; without, in 0 of 20. */
static void leave_group(bool session)
{
	if (session) {
		setsid();
		return;
	}
	setpgid(0, 0);
	/* In the background, where a terminal may stop who writes to it. */
	signal(SIGTTOU, SIG_IGN);
}

void wp_worker_part(bool session)
{
	int null = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (self.sock < 0)
		return;
	leave_group(session);
	ask_for_short_slices();
	close_inherited();
	if (null >= 0) {
		dup2(null, STDOUT_FILENO);
		close(null);
	}
	if (!self.has_terminal)
		dup2(self.messages, STDERR_FILENO);
	say(WP_WORKER_LOOKS);
}

void wp_worker_take_streams(void)
{
	char byte = 0;
	int fds[2];

	if (self.sock < 0)
		return;
	say(WP_WORKER_WRITES);
	if (wp_packet_take(self.sock, &byte, 1, true, fds, 2) == 1 &&
	    fds[1] >= 0) {
		dup2(fds[0], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
	}
	/* Without room for two there is one, or none. */
	for (size_t i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

bool wp_worker_has_terminal(void)
{
	return self.sock < 0 ? isatty(STDERR_FILENO) : self.has_terminal;
}

bool wp_worker_is_suspended(void)
{
	struct wp_proc_stat stat;
	char text[1024];
	ssize_t n;

	if (self.stat_fd < 0)
		return false;
	n = wp_io_pread(self.stat_fd, text, sizeof(text));
	return n > 0 && !wp_proc_stat_parse(&stat, text, (size_t)n) &&
	       stat.state_char == 'T';
}

pid_t wp_worker_first(void)
{
	return self.supervisor ? self.supervisor : getpid();
}

bool wp_worker_is_orphan(void)
{
	return self.sock >= 0 && getppid() != self.supervisor;
}
