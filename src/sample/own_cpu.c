/* SPDX-License-Identifier: Apache-2.0 */
/* own_cpu.c - see own_cpu.h. */
#include "own_cpu.h"

#include <fcntl.h>
#include <unistd.h>

#include "wallprof/io.h"
#include "wallprof/procfs.h"

/* It is decided so often whether to move. */
#define DECIDE_NS (100 * WP_NS_PER_MS)

void wp_own_cpu_open(struct wp_own_cpu *own)
{
	*own = (struct wp_own_cpu){
		.schedstat_fd = open("/proc/thread-self/schedstat",
				     O_RDONLY | O_CLOEXEC),
		.awaited = -1,
	};
}

void wp_own_cpu_tick(struct wp_own_cpu *own, bool late)
{
	struct wp_schedstat stat;
	char text[96];
	ssize_t n = wp_io_pread(own->schedstat_fd, text, sizeof(text));
	uint64_t queued_ns;

	own->awaited = -1;
	if (n <= 0 || wp_schedstat_parse(&stat, text, (size_t)n))
		return;
	queued_ns = stat.wait_ns - own->queued_ns;
	own->queued_ns = stat.wait_ns;
	if (late && queued_ns > WP_OWN_CPU_IN_TIME_NS)
		own->awaited = sched_getcpu();
}

void wp_own_cpu_note(struct wp_own_cpu *own, int cpu)
{
	if (cpu >= 0 && cpu < CPU_SETSIZE)
		CPU_SET((size_t)cpu, &own->met);
}

/* The first CPU of MINE behind HERE on which no thread was met; -1: there is none. */
static int find_free(const struct wp_own_cpu *own, const cpu_set_t *mine,
		     int here)
{
	for (int i = 1; i < CPU_SETSIZE; i++) {
		size_t cpu = (size_t)(here + i) % CPU_SETSIZE;

		if (CPU_ISSET(cpu, mine) && !CPU_ISSET(cpu, &own->met))
			return (int)cpu;
	}
	return -1;
}

static void leave(const struct wp_own_cpu *own, int here)
{
	cpu_set_t mine, one;
	int cpu;

	if (sched_getaffinity(0, sizeof(mine), &mine))
		return;
	cpu = find_free(own, &mine, here);
	if (cpu < 0)
		return;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	/* The second fails if a cpuset has changed meanwhile; then the kernel has
	 * moved this thread itself. */
	if (!sched_setaffinity(0, sizeof(one), &one))
		(void)!sched_setaffinity(0, sizeof(mine), &mine);
}

void wp_own_cpu_leave(struct wp_own_cpu *own, uint64_t now_ns)
{
	int here;

	if (now_ns - own->met_ns < DECIDE_NS)
		return;
	here = sched_getcpu();
	if (here >= 0 && here < CPU_SETSIZE &&
	    CPU_ISSET((size_t)here, &own->met))
		leave(own, here);
	CPU_ZERO(&own->met);
	own->met_ns = now_ns;
}

void wp_own_cpu_close(struct wp_own_cpu *own)
{
	if (own->schedstat_fd >= 0)
		close(own->schedstat_fd);
}
