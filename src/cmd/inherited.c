/* SPDX-License-Identifier: Apache-2.0 */
/* inherited.c - see inherited.h. */
#include "inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* Without a device that may not be there.  open(2), O_PATH: EBADF. */
static void fill(int fd)
{
	int path;

	if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
		return;
	/* The lowest that is free. */
	path = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (path != fd)
		abort();
}

void wp_inherited_mend(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		fill(fd);
	signal(SIGCHLD, SIG_DFL);
}
