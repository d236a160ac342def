/* SPDX-License-Identifier: Apache-2.0 */
/* own_cpu.h - the CPU that wallprof samples from.
 *
 * A look from the CPU on which a thread sleeps has to wake that CPU, which takes some
 * 40 us on a virtual machine and may wake the thread with it: the wait is over when it
 * is looked at, and short waits lose the largest part of themselves.  So wallprof
 * leaves a CPU on which it meets threads asleep for one on which it met none.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_OWN_CPU_H
#define WP_OWN_CPU_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "wallprof/clock.h"

/* A tick that waited for a CPU for less than this came in time. */
#define WP_OWN_CPU_IN_TIME_NS (10 * WP_NS_PER_US)

struct wp_own_cpu {
	/* /proc/thread-self/schedstat, -1: not open; and what it said at the last tick
	 * that wallprof has waited for a CPU in all. */
	int schedstat_fd;
	uint64_t queued_ns;
	/* The CPU that wallprof had to wait for at the tick at hand; -1: none.  A
	 * thread that ran there meanwhile is met when it stops running, which is no
	 * chance find. */
	int awaited;
	/* CPUs on which threads slept that were met since MET_NS.  Of a machine with
	 * more CPUs than a set has, none is ever left. */
	cpu_set_t met;
	uint64_t met_ns;
};

void wp_own_cpu_open(struct wp_own_cpu *own);
/* A tick begins, LATE if it was due more than WP_OWN_CPU_IN_TIME_NS ago. */
void wp_own_cpu_tick(struct wp_own_cpu *own, bool late);
/* A thread was met that sleeps on CPU since the tick before; -1: not known. */
void wp_own_cpu_note(struct wp_own_cpu *own, int cpu);
/* Move the calling thread, if threads were met on its CPU, to a CPU of its affinity on
 * which none was met; at most ten times a second, of which NOW_NS is the clock.  The
 * affinity is as before, but for CPUs that are offline meanwhile, which
 * sched_getaffinity(2) does not tell. */
void wp_own_cpu_leave(struct wp_own_cpu *own, uint64_t now_ns);
void wp_own_cpu_close(struct wp_own_cpu *own);

#endif
