/* SPDX-License-Identifier: Apache-2.0 */
/* bpf_scan.h - read the scheduler's counts of all threads at once.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_BPF_SCAN_H
#define WP_BPF_SCAN_H

#include "scan_loader.h"
#include "wallprof/err.h"
#include "wallprof/procfs.h"
#include "wallprof/task_scan.h"

struct wp_sampler;

/* Whether a program at each context switch notes which threads are put on a CPU, so that
 * not all are read at each tick. */
struct wp_switch_notes {
	bool on;
	/* Time that it took to read all threads: the least so far; 0: not known. */
	uint64_t all_ns;
	/* When all are read again, lest a thread be missed; when notes are tried again,
	 * and how long after they are given up. */
	uint64_t next_all_ns;
	uint64_t retry_ns, pause_ns;
	/* What is judged: from when on, the machine's context switches by then, and ticks
	 * since then that did not read all. */
	uint64_t since_ns;
	uint64_t switches;
	uint64_t nspared;
};

struct wp_bpf_scan {
	/* NULL when none is wanted or permitted; owned. */
	struct wp_task_scan *scan;
	/* Why there is none where one was wanted; code 0: it was not, or there
	 * is one. */
	struct wp_err why;
	/* It has been opened, or opening it has failed, or LOADER opens it. */
	bool tried;
	struct wp_scan_loader loader;
	/* Threads for which one with more room was opened last. */
	size_t nwidened;
	/* A stack of a waiting thread lacked a register. */
	bool wants_regs;
	/* This tick's records: v[0..n) by pid and tid, borrowed from SCAN; the
	 * next thread asked for is most likely v[next]. */
	const struct wp_task_record *const *v;
	size_t n, next;
	/* They are of those threads only that may have run since the last tick. */
	bool is_of_moved;
	/* A thread without a record is to have one at the next tick. */
	bool wants_all;
	struct wp_switch_notes notes;
};

/* Before the first tick: load the programs of a scan if NTHREADS are worth it and the
 * options allow it.  That takes longer than a tick. */
void wp_bpf_scan_prepare(struct wp_sampler *loop, size_t nthreads);

/* Scan all threads of all targets, if that is wanted: at the begin of a tick. */
void wp_bpf_scan_take(struct wp_sampler *loop);

/* Process PID is scanned too, if anything is; no longer, unless another target has
 * that pid. */
void wp_bpf_scan_add(struct wp_sampler *loop, pid_t pid);
void wp_bpf_scan_drop(struct wp_sampler *loop, pid_t pid);

/* This tick's record of thread TID of process PID; NULL if there is none. */
const struct wp_task_record *wp_bpf_scan_find(struct wp_sampler *loop,
					      pid_t pid, pid_t tid);

/* This tick's records of process PID: [0..*RET_N) by tid. */
const struct wp_task_record *const *wp_bpf_scan_of(struct wp_sampler *loop,
						   pid_t pid, size_t *ret_n);

/* If thread TID of process PID has no record now, all threads are read at the next tick;
 * one that has a record, and does not move, may have none then. */
void wp_bpf_scan_want(struct wp_sampler *loop, pid_t pid, pid_t tid);

/* Will there be a scan at the next tick, or at one soon? */
bool wp_bpf_scan_is_next(const struct wp_sampler *loop);

/* Drop the records: they are too old for samples from now on. */
void wp_bpf_scan_forget(struct wp_sampler *loop);

void wp_bpf_scan_close(struct wp_sampler *loop);

static inline struct wp_schedstat
wp_bpf_scan_times(const struct wp_task_record *record)
{
	return (struct wp_schedstat){ record->run_ns, record->wait_ns,
				      record->slices };
}

#endif
