/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - see wallprof/clock.h. */
#include "wallprof/clock.h"

#include <sys/resource.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec ts;

	/* None of these clocks can fail on Linux with a valid pointer. */
	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * (int64_t)WP_NS_PER_S + ts.tv_nsec;
}

uint64_t wp_clock_ns(void)
{
	return (uint64_t)read_clock(CLOCK_MONOTONIC);
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
