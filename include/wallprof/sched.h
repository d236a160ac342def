/* SPDX-License-Identifier: Apache-2.0 */
/* sched.h - how long ago a thread last ran.
 *
 * Layer: proc.
 *
 * /proc/TID/sched has se.exec_start, the scheduler's time when the thread last
 * was on a CPU: for a thread that sleeps, when it went to sleep.  That time is
 * rq_clock_task (kernel/sched/core.c, update_rq_clock_task) of the CPU it ran
 * on, a clock that stands during interrupts and during time stolen from a
 * virtual machine, on each CPU by itself.  Two CPUs of one machine were seen
 * 183 ms apart after 2.4 hours, so it cannot be compared with a clock of user
 * space or with another CPU's.  The present time of a CPU's clock is the
 * se.exec_start of wallprof's own thread, moved there for some 50 us.
 *
 * So a wait is never reported as longer than it is, and as shorter by at most
 * the error of that reading (some 20 us; see ERROR_NS) and the CPU's interrupts
 * and stolen time since the wait began.  A reading that others' use of the CPU
 * made worse tells of long waits only.
 */
#ifndef WP_SCHED_H
#define WP_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"

/* Parse se.exec_start, in nanoseconds, from TEXT[0..len), /proc/TID/sched.  0,
 * or -EBADMSG when it is absent or 0 (the thread has not run since it moved to
 * another CPU); *RET_NS is set on success only. */
WP_MUST_CHECK
int wp_proc_sched_parse(uint64_t *ret_ns, const char *text, size_t len);

/* One CPU's clock against CLOCK_MONOTONIC. */
struct wp_sched_cpu {
	int cpu;
	/* CLOCK_MONOTONIC of the last attempt to read it; 0: never. */
	uint64_t read_ns;
	/* That attempt succeeded: the following is set. */
	bool known;
	/* CLOCK_MONOTONIC minus the CPU's clock, modulo 2^64. */
	uint64_t offset_ns;
	/* Upper bound of the error of OFFSET_NS, which may be too great. */
	uint64_t error_ns;
};

struct wp_sched_clock {
	/* v[0..len), one for each CPU asked for; owned. */
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

/* The time from EXEC_START_NS, of a thread that last ran on CPU (field 39 of
 * /proc/TID/stat) and not since, to NOW_NS of CLOCK_MONOTONIC; UINT64_MAX, not
 * known, if the clock's error is over 100 us and a sixteenth of it. */
uint64_t wp_sched_wait_ns(const struct wp_sched_cpu *cpu,
			  uint64_t exec_start_ns, uint64_t now_ns);

void wp_sched_clock_clear(struct wp_sched_clock *clock);

#endif
