/* SPDX-License-Identifier: Apache-2.0 */
/* slow_writer.c - see slow_writer.h. */
#include "slow_writer.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 1000 };

/* poll(2) promises PIPE_BUF bytes of room in a pipe. */
static void write_all(const char *text, size_t len)
{
	while (len) {
		struct pollfd fd = { STDERR_FILENO, POLLOUT, 0 };
		size_t part = len < PIPE_BUF ? len : PIPE_BUF;
		ssize_t n;

		if (poll(&fd, 1, PATIENCE_MS) <= 0)
			_exit(EXIT_FAILURE);
		n = write(STDERR_FILENO, text, part);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			_exit(EXIT_FAILURE);
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

pid_t wp_slow_writer_start(const char *text, int fd)
{
	char buf[PIPE_BUF];
	off_t at = 0;
	sigset_t set;
	pid_t pid = fork();
	ssize_t n;

	if (pid)
		return pid;
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	write_all(text, strlen(text));
	while (fd >= 0 && (n = pread(fd, buf, sizeof(buf), at)) > 0) {
		write_all(buf, (size_t)n);
		at += n;
	}
	_exit(EXIT_SUCCESS);
}
