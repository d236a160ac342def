/* SPDX-License-Identifier: Apache-2.0 */
/* sched.h - how long a thread has not run.
 *
 * Layer: proc.
 *
 * /proc/TID/sched has se.exec_start, the scheduler's time when the thread last
 * was on a CPU: for a thread that sleeps, when it went to sleep.  That time is
 * rq_clock_task (kernel/sched/core.c, update_rq_clock_task) of the CPU it ran
 * on: it leaves out interrupts and time stolen from a virtual machine, each
 * CPU for itself.  Two CPUs of one machine were seen 183 ms apart after 2.4
 * hours, so it compares with no clock of user space and with no other CPU's.
 * What it is now on a CPU is read from a thread that runs there: our own, moved
 * there for some 50 us.
 *
 * A wait is so never told longer than it is, and shorter by at most the error
 * of that reading (some 20 us; it is told) and what the CPU has given to
 * interrupts and to other machines since the wait began.
 */
#ifndef WP_SCHED_H
#define WP_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"

/* se.exec_start in nanoseconds, from /proc/TID/sched (TEXT[0..len)).  0, or
 * -EBADMSG when it is not there or 0 (has not run since it moved to another
 * CPU); *RET_NS is set on success only. */
WP_MUST_CHECK
int wp_proc_sched_parse(uint64_t *ret_ns, const char *text, size_t len);

/* One CPU's clock against CLOCK_MONOTONIC. */
struct wp_sched_cpu {
	int cpu;
	/* CLOCK_MONOTONIC when it was read, or could not be; 0 never. */
	uint64_t read_ns;
	/* What follows is set. */
	bool known;
	/* CLOCK_MONOTONIC minus the CPU's time, modulo 2^64. */
	uint64_t offset_ns;
	/* By how much OFFSET may be too great. */
	uint64_t error_ns;
};

struct wp_sched_clock {
	/* Array of LEN, one for each CPU asked for; owned. */
	struct wp_sched_cpu *v;
	size_t len;
	size_t cap;
};

#define WP_SCHED_CLOCK_INIT                                                    \
	{                                                                      \
		0                                                              \
	}

/* The clock of CPU, read anew when older than a second.  Moves the calling
 * thread to CPU and back, so not for use while anything is stopped.  Valid
 * until CLOCK next changes.  NULL when the calling thread's affinity leaves
 * that CPU out, the kernel has no /proc/PID/sched (before Linux 6.15 without
 * CONFIG_SCHED_DEBUG), or there is no memory. */
const struct wp_sched_cpu *wp_sched_clock_find(struct wp_sched_clock *clock,
					       int cpu);

/* How long a thread with EXEC_START_NS has not run, at NOW_NS of
 * CLOCK_MONOTONIC; 0 when the clock's error is all there is.  Right only while
 * it has not run since, and last ran on the clock's CPU (field 39 of
 * /proc/TID/stat). */
uint64_t wp_sched_wait_ns(const struct wp_sched_cpu *cpu,
			  uint64_t exec_start_ns, uint64_t now_ns);

void wp_sched_clock_clear(struct wp_sched_clock *clock);

#endif
