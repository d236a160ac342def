/* SPDX-License-Identifier: Apache-2.0 */
/* counters.h - what a recording did, and what it lost.
 *
 * Layer: profile.
 */
#ifndef WP_COUNTERS_H
#define WP_COUNTERS_H

#include <stdint.h>

/* Counters of what was done and what was lost. */
struct wp_counters {
	/* Sampling ticks. */
	uint64_t ticks;
	/* Ticks that came too late and were left out. */
	uint64_t missed_ticks;
	/* Ticks left out so as to use no more than max_cpu. */
	uint64_t spared_ticks;
	/* Ticks at which all threads were asked by one BPF scan. */
	uint64_t scans;
	/* Samples of threads that had not run since the last. */
	uint64_t unchanged;
	/* Samples of waiting threads read without a stop. */
	uint64_t no_stop;
	/* Samples completed from the wait-site cache. */
	uint64_t cached_site;
	/* Samples taken in a stop window. */
	uint64_t stopped;
	/* Samples whose stack may be incomplete, thread not stopped. */
	uint64_t partial;
	/* Samples without the kernel's frames, as these may not be read. */
	uint64_t kernel_denied;
	/* Samples without a stack. */
	uint64_t no_stack;
	/* Samples of running threads with the stack of a CPU sample. */
	uint64_t sampled;
	/* Records of perf events lost. */
	uint64_t cpu_lost;
	/* Allocations sampled, and those of them that no record tells or that are
	 * not known to be in use; probes that the process has written over. */
	uint64_t heap_samples;
	uint64_t heap_lost;
	uint64_t heap_overwritten;
	/* Those of C++'s operator new that are not known to be in use. */
	uint64_t heap_throwing;
	/* The heap profile ended before the recording; too much of the heap was not
	 * read (--heap-census). */
	uint64_t heap_ended;
	uint64_t heap_unread;
	/* Stops made, more than one for some stacks. */
	uint64_t stops;
	/* Stops that did not happen in time. */
	uint64_t stops_given_up;
	/* Stops that the kernel refused. */
	uint64_t stops_refused;
	/* Times that a stack was dropped, executable mappings left out, for want
	 * of memory (--max-memory). */
	uint64_t stacks_dropped;
	uint64_t mappings_dropped;
	/* ELF files of which --max-memory left out parts. */
	uint64_t files_dropped;
	/* Times that what a thread waited for, or who woke it, was left out, as there
	 * were too many different ones. */
	uint64_t objects_dropped;
	/* Times that a thread or process took a name that was left out, as there were
	 * too many. */
	uint64_t names_dropped;
	/* Executable mappings of files whose server does not answer; of ELF files
	 * that could not be opened, or have changed since, so without names. */
	uint64_t files_lost;
	uint64_t files_unopened;
	/* Mapped files whose debug info was not read, or not all of it. */
	uint64_t files_lineless;
	/* Bytes at the beginning of the longest perf map that were not read. */
	uint64_t perf_map_cut;
	/* Stops of running threads left out as a system call might be made
	 * twice. */
	uint64_t stops_left_out;
	/* Stops left out to keep within --max-stopped. */
	uint64_t stops_over_budget;
	/* System calls restarted after a stop. */
	uint64_t eintr_repaired;
	/* And those that ended by EINTR because of one, in all processes. */
	uint64_t eintrs_left;
	/* Programs executed again, as a stop would have cost them the rights of their files,
	 * and those that went on without, in all processes. */
	uint64_t execs_again;
	uint64_t rights_lost;
	/* Reads thrown away because the thread moved. */
	uint64_t inconsistent;
	/* Threads watched. */
	uint64_t threads_seen;
	/* Threads that ended before a first sample. */
	uint64_t threads_lost;
	/* Threads that are told by name only, being too many. */
	uint64_t threads_shared;
	/* GOROUTINE: goroutines that were not read, being too many or ended. */
	uint64_t goroutines_lost;
	/* Samples that could not be taken. */
	uint64_t samples_lost;
	/* Addresses left without a name by a failure. */
	uint64_t unnamed;
	/* Times the memory map was read. */
	uint64_t map_reloads;
	/* Times the target called exec. */
	uint64_t execs;
	/* Processes that ended before they could be looked at, and those that may
	 * not be looked at. */
	uint64_t processes_lost;
	uint64_t processes_denied;
	/* Durations of stop windows: quantiles, longest, sum. */
	uint64_t pause_p50_ns;
	uint64_t pause_p99_ns;
	uint64_t pause_max_ns;
	uint64_t pause_total_ns;
};

/* Number of stacks, mappings and files that --max-memory left out. */
static inline uint64_t wp_counters_dropped(const struct wp_counters *c)
{
	return c->stacks_dropped + c->mappings_dropped + c->files_dropped;
}

#endif
