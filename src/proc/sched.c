/* SPDX-License-Identifier: Apache-2.0 */
/* sched.c - see wallprof/sched.h. */
#include "wallprof/sched.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text_scan.h"
#include "wallprof/clock.h"
#include "wallprof/io.h"
#include "wallprof/vec.h"

enum {
	/* More CPUs than Linux has (NR_CPUS). */
	CPUS_MAX = 8192,
};

#define READ_AGAIN_NS WP_NS_PER_S
/* A reading with no greater error is not repeated. */
#define GOOD_NS (50 * WP_NS_PER_US)
/* Readings go on for as long as this, where others want the CPU as well. */
#define READINGS_NS (20 * WP_NS_PER_MS)
/* What a wait of any length may be short by. */
#define MOST_ERROR_NS (100 * WP_NS_PER_US)

/* "   :   8766490.882386", milliseconds (kernel/sched/debug.c, SPLIT_NS). */
static int parse_ms(uint64_t *ret_ns, const char *p, const char *end)
{
	struct wp_text_scan c = { p, end, false };
	const char *point;
	uint64_t ms, ns;

	while (c.p < end && *c.p == ' ')
		c.p++;
	if (c.p == end || *c.p++ != ':')
		return -EBADMSG;
	while (c.p < end && *c.p == ' ')
		c.p++;
	ms = wp_text_scan_number(&c, 10);
	if (c.bad || c.p == end || *c.p != '.' ||
	    ms > UINT64_MAX / WP_NS_PER_MS - 1)
		return -EBADMSG;
	point = c.p++;
	ns = wp_text_scan_number(&c, 10);
	if (c.bad || c.p - point != 7 || c.p == end || *c.p != '\n')
		return -EBADMSG;
	*ret_ns = ms * WP_NS_PER_MS + ns;
	return 0;
}

int wp_proc_sched_parse(uint64_t *ret_ns, const char *text, size_t len)
{
	static const char key[] = "se.exec_start";
	const size_t n = sizeof(key) - 1;
	const char *p = text, *end = text + len;

	/* The first line has the thread's name as it is, which may hold a
	 * newline: a line with the key and no number may be that. */
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		uint64_t ns;

		if ((size_t)(end - p) > n && !memcmp(p, key, n) &&
		    !parse_ms(&ns, p + n, nl ? nl + 1 : end)) {
			if (!ns)
				return -EBADMSG;
			*ret_ns = ns;
			return 0;
		}
		p = nl ? nl + 1 : end;
	}
	return -EBADMSG;
}

/* se.exec_start of the calling thread is as old as the last tick.  The kernel brings it up
 * to date to tell the thread's CPU time (kernel/sched/core.c, task_sched_runtime). */
static void read_here(int fd, struct wp_sched_cpu *ret)
{
	uint64_t until_ns = wp_clock_ns() + READINGS_NS, before = 0;
	char text[4096];

	while (before < until_ns) {
		uint64_t after, own;
		ssize_t n;

		before = wp_clock_ns();
		(void)wp_clock_cpu_ns();
		n = wp_io_pread(fd, text, sizeof(text));
		after = wp_clock_ns();
		if (n < 0 || wp_proc_sched_parse(&own, text, (size_t)n))
			return;
		if (ret->known && after - before >= ret->error_ns)
			continue;
		ret->known = true;
		ret->offset_ns = after - own;
		ret->error_ns = after - before;
		if (ret->error_ns <= GOOD_NS)
			break;
	}
}

static void read_there(struct wp_sched_cpu *ret)
{
	const size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
	cpu_set_t *old = CPU_ALLOC(CPUS_MAX), *one = CPU_ALLOC(CPUS_MAX);
	int fd = open("/proc/thread-self/sched", O_RDONLY | O_CLOEXEC);

	if (!old || !one || fd < 0 || ret->cpu < 0 || ret->cpu >= CPUS_MAX)
		goto out;
	/* Isolated CPUs are not in the affinity unless the user wants them, and
	 * are not disturbed. */
	if (sched_getaffinity(0, size, old) ||
	    !CPU_ISSET_S((size_t)ret->cpu, size, old))
		goto out;
	CPU_ZERO_S(size, one);
	CPU_SET_S((size_t)ret->cpu, size, one);
	if (sched_setaffinity(0, size, one))
		goto out;
	read_here(fd, ret);
	/* Fails if a cpuset has changed meanwhile; then the kernel has moved
	 * this thread itself. */
	if (sched_setaffinity(0, size, old))
		ret->known = false;
out:
	if (fd >= 0)
		close(fd);
	if (old)
		CPU_FREE(old);
	if (one)
		CPU_FREE(one);
}

const struct wp_sched_cpu *wp_sched_clock_find(struct wp_sched_clock *clock,
					       int cpu)
{
	struct wp_sched_cpu *c = NULL;

	for (size_t i = 0; i < clock->len && !c; i++)
		if (clock->v[i].cpu == cpu)
			c = &clock->v[i];
	if (!c) {
		if (WP_VEC_ROOM(clock->v, clock->len, clock->cap, 1))
			return NULL;
		c = &clock->v[clock->len++];
		*c = (struct wp_sched_cpu){ .cpu = cpu };
	}
	if (!c->read_ns || wp_clock_ns() - c->read_ns >= READ_AGAIN_NS) {
		c->known = false;
		read_there(c);
		c->read_ns = wp_clock_ns();
	}
	return c->known ? c : NULL;
}

uint64_t wp_sched_wait_ns(const struct wp_sched_cpu *cpu,
			  uint64_t exec_start_ns, uint64_t now_ns)
{
	uint64_t wait = now_ns - cpu->offset_ns - exec_start_ns;

	if (wait > UINT64_MAX / 2)
		wait = 0;
	return cpu->error_ns > MOST_ERROR_NS && cpu->error_ns > wait / 16 ?
		       UINT64_MAX :
		       wait;
}

void wp_sched_clock_clear(struct wp_sched_clock *clock)
{
	free(clock->v);
	*clock = (struct wp_sched_clock)WP_SCHED_CLOCK_INIT;
}
