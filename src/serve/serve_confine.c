/* SPDX-License-Identifier: Apache-2.0 */
/* serve_confine.c - see serve_confine.h. */
#include "serve_confine.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wallprof/sandbox.h"

/* Descriptors before the first client. */
enum { KEPT_MAX = 64 };
#define MEMORY_MAX (UINT64_C(256) << 20)

int wp_serve_confine(const struct wp_serve_http *how)
{
	/* Calls on sockets that are there. */
	static const int more[] = {
		SYS_write,    SYS_writev,      SYS_recvfrom,	SYS_sendto,
		SYS_accept4,  SYS_epoll_ctl,   SYS_epoll_pwait, SYS_ppoll,
		SYS_shutdown, SYS_setsockopt,  SYS_getsockopt,	SYS_sendfile,
		SYS_fcntl,    SYS_getpeername, SYS_geteuid,
#ifdef SYS_poll
		SYS_poll,     SYS_epoll_wait,
#endif
	};
	int keep[KEPT_MAX + 1 + WP_SERVE_LISTEN_MAX];
	struct wp_sandbox sandbox = {
		.keep = keep,
		.parent = how->parent,
#ifdef __SANITIZE_ADDRESS__
		.memory = UINT64_MAX,
#else
		.memory = MEMORY_MAX,
#endif
		.cpu_s = INT64_MAX,
		.more = more,
		.nmore = sizeof(more) / sizeof(*more),
	};

	/* All that are open are those of close_others, and the library's. */
	while (sandbox.nkeep < KEPT_MAX) {
		keep[sandbox.nkeep] = (int)sandbox.nkeep;
		sandbox.nkeep++;
	}
	/* Where many are served and HTTP is started again, these have higher numbers. */
	if (how->ask >= KEPT_MAX)
		keep[sandbox.nkeep++] = how->ask;
	for (size_t i = 0; i < how->nsockets; i++)
		if (how->sockets[i].fd >= KEPT_MAX)
			keep[sandbox.nkeep++] = how->sockets[i].fd;
	return wp_sandbox_enter(&sandbox);
}

static bool is_wanted(const struct wp_serve_http *how, int fd)
{
	bool wanted = fd == how->ask || fd == STDERR_FILENO;

	for (size_t i = 0; i < how->nsockets; i++)
		wanted |= fd == how->sockets[i].fd;
	return wanted;
}

void wp_serve_close_others(const struct wp_serve_http *how)
{
	struct rlimit limit;
	int max = 65536;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < 65536)
		max = (int)limit.rlim_cur;
	for (int fd = 0; fd < max; fd++)
		if (!is_wanted(how, fd))
			close(fd);
}
