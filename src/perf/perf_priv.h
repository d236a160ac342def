/* SPDX-License-Identifier: Apache-2.0 */
/* perf_priv.h - what the files of perf share.
 *
 * Layer: perf.  Private to src/perf/.
 *
 *   perf_open.c    chooses scopes, opens the events of all threads
 *   perf_events.c  opens one event, one ring buffer
 *   perf_filter.c  chooses whose wakes are recorded
 *   perf_next.c    hands out the records of all ring buffers in order of time
 *   perf_decode.c, perf_ring.c, perf_regs.c  bytes to records; no system calls
 *   perf_tracepoint.c  reads the number of a tracepoint from tracefs
 *   perf_denied.c  explains why events cannot be opened
 */
#ifndef WP_PERF_PRIV_H
#define WP_PERF_PRIV_H

#include "perf_decode.h"
#include "perf_ring.h"
#include "wallprof/random.h"

enum wp_perf_kind {
	/* Takes CPU samples or samples of thread starts; if neither is wanted, a
	 * dummy event that only carries records of threads. */
	WP_PERF_KIND_MAIN,
	/* Takes samples at context switches; if none are wanted, a dummy event
	 * that only carries records of switches. */
	WP_PERF_KIND_SWITCHES,
	/* Takes a sample of each wake. */
	WP_PERF_KIND_WAKES,
	/* Takes a sample, with the stack of who wakes, at every Nth wake. */
	WP_PERF_KIND_WAKE_STACKS,
	WP_PERF_NKINDS,
};

/* A filter of wakes: those that a thread makes, not a hardware interrupt on its CPU
 * (linux/trace_events.h, TRACE_FLAG_HARDIRQ). */
#define WP_PERF_BY_THREADS "common_pid > 0 && !(common_flags & 8)"

struct wp_perf_event {
	uint64_t id;
	/* -1: another event has its place; its records may still be in the ring
	 * buffer. */
	int fd;
	/* It writes to the ring buffer of cpus[CPU]. */
	uint32_t cpu;
	/* It has a filter. */
	bool is_filtered;
	/* The thread it was opened on; -1: an event of a CPU. */
	pid_t tid;
	enum wp_perf_kind kind;
	/* Its period; of samples of before CHANGED_NS it was PERIOD_BEFORE.
	 * CHANGED_NS is 0 for the first period. */
	uint64_t period, period_before;
	uint64_t changed_ns;
	/* CPU samples that it took in this period, foreign ones included. */
	uint32_t nsamples;
};

struct wp_perf_cpu {
	int cpu;
	/* A dummy event on wallprof that owns the ring buffer, so that it
	 * outlives every thread of the process. */
	int fd;
	/* The mapping: the kernel's page, then the ring buffer; NULL: none. */
	void *map;
	struct wp_perf_ring ring;
};

struct wp_perf {
	/* NULL: all processes. */
	const struct wp_process *process;
	/* Last time that PROCESS was known to be alive, so that its pid was its
	 * own. */
	uint64_t there_ns;
	/* Records with PROCESS's pid by events of CPUs are its own up to this
	 * time; set when the rings are loaded. */
	uint64_t ours_until_ns;
	struct wp_perf_options options;
	struct wp_perf_facts facts;
	struct wp_perf_stats stats;
	/* The part of stats.lost that LOST records told, and that events counted
	 * which are closed. */
	uint64_t lost_told, lost_closed;
	uint64_t sample_type;
	/* For periods. */
	struct wp_random random;
	/* Number of tracepoint task:task_newtask; 0: thread starts are not
	 * sampled. */
	int newtask_id;
	/* The same of sched:sched_waking. */
	int waking_id;
	/* The kernel knows attr.inherit_thread (since Linux 5.13). */
	bool inherit_thread;
	bool is_enabled;
	/* wallprof may open such events on itself, though perhaps not on this
	 * process. */
	bool permitted;

	struct wp_perf_cpu *cpus;
	size_t ncpus, cap_cpus;
	/* By ascending id, as the kernel numbers them. */
	struct wp_perf_event *events;
	size_t nevents, cap_events;
	/* Scope TASK: tids of the threads that have events of their own, sorted.
	 */
	pid_t *threads;
	size_t nthreads, cap_threads;

	/* State of wp_perf_next: heap[0..nheap) are indices of CPUS whose rings
	 * hold a record, the earliest first (a binary heap; room for NCPUS);
	 * kept from one call to the next while LOADED.  HANDED_OUT: the caller
	 * has the earliest record. */
	uint32_t *heap;
	size_t nheap;
	bool loaded;
	bool handed_out;
	/* Room for a record that lies around the end of its ring. */
	void *bounce;
	/* Latest time of a record that was handed out. */
	uint64_t last_ns;
};

/* What a CPU sample by an event whose PERIOD was drawn stands for: that, and its part of
 * what the thread runs unsampled while the next is drawn. */
uint64_t wp_perf_drawn_covers(const struct wp_perf *perf, uint64_t period);

/* perf_events.c */
/* The scope of events of KIND, by PERF's facts. */
enum wp_perf_scope wp_perf_kind_scope(const struct wp_perf *perf,
				      enum wp_perf_kind kind);
/* The period of samples of KIND, on average; 0: none are taken. */
uint64_t wp_perf_kind_period(const struct wp_perf *perf,
			     enum wp_perf_kind kind);
/* Open one event of PERIOD, disabled.  Its descriptor or -errno. */
int wp_perf_event_open(const struct wp_perf *perf, enum wp_perf_kind kind,
		       uint64_t period, pid_t tid, int cpu);
/* Does PERF need events of KIND? */
bool wp_perf_kind_wanted(const struct wp_perf *perf, enum wp_perf_kind kind);
/* Open an event of KIND on TID for CPU that writes to the CPU's ring buffer, and
 * add it to PERF's events.  0 or -errno. */
int wp_perf_event_add(struct wp_perf *perf, enum wp_perf_kind kind, pid_t tid,
		      const struct wp_perf_cpu *cpu);
/* Read from the events how many records were lost, into PERF's stats. */
void wp_perf_events_count_lost(struct wp_perf *perf);
/* Close EVENT, which keeps its entry: records of its may still be in its ring. */
void wp_perf_event_end(struct wp_perf *perf, struct wp_perf_event *event);
/* Close PERF's events but the first N. */
void wp_perf_events_cut(struct wp_perf *perf, size_t n);
/* Open a ring buffer for each CPU that is online, of options.ring_bytes or the
 * most that may be locked.  0 or -errno. */
int wp_perf_rings_open(struct wp_perf *perf);
void wp_perf_rings_close(struct wp_perf *perf);

/* The index of TID among PERF's threads, or where it would be inserted. */
size_t wp_perf_thread_index(const struct wp_perf *perf, pid_t tid);
bool wp_perf_has_thread(const struct wp_perf *perf, pid_t tid);

/* perf_tracepoint.c */
/* Read the number of tracepoint NAME, such as "task/task_newtask": it or -errno.
 * tracefs need not be mounted, and is not mounted afterwards. */
int wp_perf_tracepoint_id(const char *name);

/* perf_denied.c */
/* Fill ERR with the reason why opening events of PERF gave RC.  Returns what
 * wp_perf_open is to return. */
int wp_perf_explain(const struct wp_perf *perf, int rc, struct wp_err *err);

/* The part of it that kernel.perf_event_paranoid, PARANOID, has: who has capabilities
 * CAPS in the initial user namespace wants at most LIMIT.  -EPERM, or 0 when that is
 * not why.  Debian's kernels ask for CAP_SYS_ADMIN at 3 and more (their patch to
 * kernel/events/core.c). */
int wp_perf_explain_paranoid(uint64_t caps, long paranoid, long limit,
			     struct wp_err *err);

#endif
