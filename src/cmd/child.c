/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - see child.h. */
#include "child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exit_status.h"
#include "messages.h"
#include "worker.h"

static ssize_t receive(int fd, void *buf, size_t size)
{
	ssize_t n;

	do
		n = recv(fd, buf, size, 0);
	while (n < 0 && errno == EINTR);
	return n;
}

/* In the child: wait for a byte from the socket FD, then execute ARGV, which closes
 * FD, or send the errno.  Does not return. */
static void exec_or_report(char **argv, int fd)
{
	char byte;
	int error;

	/* A program that has capabilities from its file is not dumpable, and only
	 * with CAP_SYS_PTRACE could this process be looked at (prctl(2)). */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (receive(fd, &byte, 1) != 1)
		_exit(127);
	wp_worker_restore();
	execvp(argv[0], argv);
	error = errno;
	send(fd, &error, sizeof(error), MSG_NOSIGNAL);
	_exit(127);
}

int wp_child_hold(struct wp_child *ret, char **argv, struct wp_err *err)
{
	int fds[2], rc;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) {
		rc = -errno;
		return wp_err_set(err, rc, "socketpair: %s", strerror(-rc));
	}
	pid = fork();
	rc = pid < 0 ? -errno : 0;
	if (pid == 0) {
		close(fds[0]);
		exec_or_report(argv, fds[1]);
	}
	close(fds[1]);
	if (rc) {
		close(fds[0]);
		return wp_err_set(err, rc, "fork: %s", strerror(-rc));
	}
	*ret = (struct wp_child){ pid, argv[0], fds[0] };
	return 0;
}

pid_t wp_child_start(char **argv)
{
	pid_t pid = fork();
	int error;

	if (pid)
		return pid;
	signal(SIGTERM, SIG_DFL);
	wp_worker_restore();
	execvp(argv[0], argv);
	error = errno;
	wp_say("wallprof: cannot run %s: %s", argv[0], strerror(error));
	_exit(error == ENOENT ? WP_EXIT_NOT_FOUND : WP_EXIT_CANNOT_RUN);
}

/* CHILD is held no longer; if it was not told to go on, it ends. */
static void release(struct wp_child *child)
{
	close(child->fd);
	child->fd = -1;
}

int wp_child_exec(struct wp_child *child, struct wp_err *err)
{
	int error = 0;
	ssize_t n = 0;

	/* If it was killed, its end will say so. */
	if (send(child->fd, "", 1, MSG_NOSIGNAL) == 1)
		n = receive(child->fd, &error, sizeof(error));
	release(child);
	if (n != sizeof(error))
		return 0;
	waitpid(child->pid, NULL, 0);
	child->pid = 0;
	return wp_err_set(err, -error, "cannot run %s: %s", child->name,
			  strerror(error));
}

void wp_child_discard(struct wp_child *child)
{
	if (child->fd < 0)
		return;
	release(child);
	waitpid(child->pid, NULL, 0);
	child->pid = 0;
}

void wp_child_describe(int status, char *buf, size_t size)
{
	if (WIFEXITED(status))
		snprintf(buf, size, "exited with status %d",
			 WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		snprintf(buf, size, "was killed by signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(buf, size, "ended");
}
