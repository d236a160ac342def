/* SPDX-License-Identifier: Apache-2.0 */
/* perf_priv.h - what the files of perf share.
 *
 * Layer: perf.  Private to src/perf/.
 *
 *   perf_open.c    which events, opened how
 *   perf_events.c  one event and one ring at a time
 *   perf_next.c    the records of all rings in order of time
 *   perf_decode.c, perf_ring.c, perf_regs.c  pure: bytes to records
 *   perf_tracepoint.c  the number of a tracepoint
 *   perf_denied.c  why not, and what to do
 */
#ifndef WP_TRACE_PERF_PRIV_H
#define WP_TRACE_PERF_PRIV_H

#include "perf_decode.h"
#include "perf_ring.h"

enum wp_perf_kind {
	/* Samples by time, or of thread_starts; a dummy that only carries records of
	 * tasks if none are wanted. */
	WP_PERF_KIND_MAIN,
	/* Samples at switches; a dummy that only carries switch records if
	 * none are wanted. */
	WP_PERF_KIND_SWITCHES,
	WP_PERF_NKINDS,
};

struct wp_perf_event {
	uint64_t id;
	int fd;
	/* Opened on this thread; -1: on a CPU. */
	pid_t tid;
	enum wp_perf_kind kind;
};

struct wp_perf_cpu {
	int cpu;
	/* A dummy event on ourselves that owns the ring: it outlives every
	 * thread. */
	int fd;
	/* The kernel's page and the ring behind it; NULL: none. */
	void *map;
	struct wp_perf_ring ring;
};

struct wp_perf {
	const struct wp_process *process;
	/* When its number was its own for certain. */
	uint64_t there_ns;
	/* Since the rings were loaded: what events of CPUs tell of its pid
	 * later is not ours. */
	uint64_t ours_until_ns;
	struct wp_perf_options options;
	struct wp_perf_facts facts;
	struct wp_perf_stats stats;
	/* Of stats.lost, by LOST records. */
	uint64_t lost_told;
	uint64_t sample_type;
	/* The tracepoint of thread_starts; 0: they are not sampled. */
	int birth_id;
	/* attr.inherit_thread works (since Linux 5.13). */
	bool inherit_thread;
	/* We may have such events, if not of this process. */
	bool permitted;

	struct wp_perf_cpu *cpus;
	size_t ncpus, cap_cpus;
	/* By ascending id: the kernel counts them up. */
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
	/* The greatest time handed out. */
	uint64_t last_ns;
};

/* perf_events.c */
/* Of the facts. */
enum wp_perf_scope wp_perf_kind_scope(const struct wp_perf *perf,
				      enum wp_perf_kind kind);
/* What a sample of KIND stands for; 0: none is taken. */
uint64_t wp_perf_kind_period(const struct wp_perf *perf,
			     enum wp_perf_kind kind);
/* Open one event, off.  The descriptor or -errno. */
int wp_perf_event_open(const struct wp_perf *perf, enum wp_perf_kind kind,
		       pid_t tid, int cpu);
/* Does PERF need events of KIND? */
bool wp_perf_kind_wanted(const struct wp_perf *perf, enum wp_perf_kind kind);
/* Open KIND on TID for CPU and lead it to the CPU's ring.  0 or -errno. */
int wp_perf_event_add(struct wp_perf *perf, enum wp_perf_kind kind, pid_t tid,
		      const struct wp_perf_cpu *cpu);
/* Put into the stats what the events say of losses. */
void wp_perf_events_count_lost(struct wp_perf *perf);
/* Close the events after the first N. */
void wp_perf_events_cut(struct wp_perf *perf, size_t n);
/* A ring of at most options.ring_bytes for each CPU that is there.  0 or
 * -errno. */
int wp_perf_rings_open(struct wp_perf *perf);
void wp_perf_rings_close(struct wp_perf *perf);

/* The index of TID in the sorted threads: where it is or would be. */
size_t wp_perf_thread_index(const struct wp_perf *perf, pid_t tid);
bool wp_perf_has_thread(const struct wp_perf *perf, pid_t tid);

/* perf_tracepoint.c */
/* The number of tracepoint NAME, such as "task/task_newtask", or -errno.
 * tracefs need not be mounted, and is not afterwards. */
int wp_perf_tracepoint_id(const char *name);

/* perf_denied.c */
/* Fill ERR with the reason of RC, which opening events of PERF gave.  Returns
 * the code of wp_perf_open. */
int wp_perf_explain(const struct wp_perf *perf, int rc, struct wp_err *err);

#endif
