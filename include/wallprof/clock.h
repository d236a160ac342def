/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - time in nanoseconds, from one clock.
 *
 * Layer: base.
 */
#ifndef WP_CLOCK_H
#define WP_CLOCK_H

#include <stdint.h>

#define WP_NS_PER_S UINT64_C(1000000000)
#define WP_NS_PER_MS UINT64_C(1000000)
#define WP_NS_PER_US UINT64_C(1000)

/* The kernel's CLOCK_MONOTONIC, the clock of ticks and weights: that of perf events and
 * BPF programs, also where wallprof is in a time namespace (time_namespaces(7)). */
uint64_t wp_clock_ns(void);
/* AGO_NS before NOW_NS; 1, as 0 is no time, if the machine has not been up so long. */
static inline uint64_t wp_clock_before(uint64_t now_ns, uint64_t ago_ns)
{
	return now_ns > ago_ns ? now_ns - ago_ns : 1;
}
/* By how much CLOCK_MONOTONIC, as the process with /proc directory PROC_FD reads it, is
 * ahead of wp_clock_ns; 0 where that cannot be read. */
int64_t wp_clock_ahead_ns(int proc_fd);
/* The CPU time of the calling thread: what work costs on a machine that is busy,
 * too. */
uint64_t wp_clock_cpu_ns(void);
/* The CPU time that WHO has had: RUSAGE_SELF or RUSAGE_CHILDREN (getrusage(2)). */
uint64_t wp_clock_used_ns(int who);
/* CLOCK_REALTIME, for the time stamp of a profile. */
int64_t wp_clock_utc_ns(void);

#endif
