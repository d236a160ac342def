/* SPDX-License-Identifier: Apache-2.0 */
/* perf_tracepoint.c - the number of a tracepoint, which tracefs knows. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "perf_priv.h"
#include "wallprof/io.h"

/* A tracefs that is mounted nowhere: gone with its descriptor (Linux 5.2).  The
 * wrappers of the C library are younger. */
static int open_detached(void)
{
	int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int fd = -1, rc;

	if (fs < 0)
		return -errno;
	if (!syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	rc = fd < 0 ? -errno : fd;
	close(fs);
	return rc;
}

static int read_id(int dir, const char *name)
{
	char path[96], text[32];
	ssize_t n;
	long id;

	snprintf(path, sizeof(path), "events/%s/id", name);
	n = wp_io_read_at(dir, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	id = strtol(text, NULL, 10);
	return id > 0 && id <= INT32_MAX ? (int)id : -EBADMSG;
}

int wp_perf_tracepoint_id(const char *name)
{
	static const char *const mounts[] = {
		"/sys/kernel/tracing",
		"/sys/kernel/debug/tracing",
	};
	int dir, id;

	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		dir = open(mounts[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0)
			continue;
		id = read_id(dir, name);
		close(dir);
		if (id > 0)
			return id;
	}
	dir = open_detached();
	if (dir < 0)
		return dir;
	id = read_id(dir, name);
	close(dir);
	return id;
}
