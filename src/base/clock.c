/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - see wallprof/clock.h. */
#include "wallprof/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "wallprof/io.h"

/* Wallprof's own; set before main: a process that is confined later cannot read it. */
static int64_t own_ahead_ns;

/* PATH, below DIRFD, is a process's timens_offsets. */
static int64_t read_ahead(int dirfd, const char *path)
{
	char text[256];
	int64_t s, ns;
	ssize_t n = wp_io_read_at(dirfd, path, text, sizeof(text) - 1);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return sscanf(text, "monotonic %" SCNd64 " %" SCNd64, &s, &ns) == 2 ?
		       s * (int64_t)WP_NS_PER_S + ns :
		       0;
}

__attribute__((constructor)) static void find_own_ahead(void)
{
	own_ahead_ns = read_ahead(AT_FDCWD, "/proc/self/timens_offsets");
}

int64_t wp_clock_ahead_ns(int proc_fd)
{
	return read_ahead(proc_fd, "timens_offsets");
}

static int64_t read_clock(clockid_t id)
{
	struct timespec ts;

	/* None of these clocks can fail on Linux with a valid pointer. */
	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * (int64_t)WP_NS_PER_S + ts.tv_nsec;
}

uint64_t wp_clock_ns(void)
{
	return (uint64_t)(read_clock(CLOCK_MONOTONIC) - own_ahead_ns);
}

uint64_t wp_clock_cpu_ns(void)
{
	return (uint64_t)read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t wp_clock_used_ns(int who)
{
	struct rusage use;

	getrusage(who, &use);
	return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) *
		       WP_NS_PER_S +
	       (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000;
}

int64_t wp_clock_utc_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}
