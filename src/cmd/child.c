/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - see child.h. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Execute ARGV, or write the errno to the pipe FD, which closes when execvp(3)
 * succeeds.  Does not return. */
static void exec_or_report(char **argv, const sigset_t *mask, int fd)
{
	int error;

	if (mask)
		sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	error = errno;
	if (write(fd, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

int wp_child_start(pid_t *ret_pid, char **argv, const sigset_t *mask,
		   struct wp_err *err)
{
	int fds[2], error = 0, rc;
	ssize_t n;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC)) {
		rc = -errno;
		return wp_err_set(err, rc, "pipe: %s", strerror(-rc));
	}
	pid = fork();
	if (pid == 0)
		exec_or_report(argv, mask, fds[1]);
	rc = pid < 0 ? -errno : 0;
	close(fds[1]);
	if (rc) {
		close(fds[0]);
		return wp_err_set(err, rc, "fork: %s", strerror(-rc));
	}
	do
		n = read(fds[0], &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	close(fds[0]);
	if (n == sizeof(error)) {
		waitpid(pid, NULL, 0);
		return wp_err_set(err, -error, "cannot run %s: %s", argv[0],
				  strerror(error));
	}
	*ret_pid = pid;
	return 0;
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
