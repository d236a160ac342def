/* SPDX-License-Identifier: Apache-2.0 */
/* heap_state.h - what samples of a target's allocations are made with.
 *
 * Layer: sample.  Private to src/sample/heap_*.c.
 */
#ifndef WP_HEAP_STATE_H
#define WP_HEAP_STATE_H

#include "heap_census.h"
#include "heap_children.h"
#include "heap_maps.h"
#include "heap_objects.h"
#include "heap_sites.h"
#include "perf_source.h"
#include "wallprof/err.h"
#include "wallprof/heap_probe.h"

enum wp_heap_state {
	/* No allocator is found so far. */
	WP_HEAP_SEARCHING,
	/* Calls are counted, not sampled. */
	WP_HEAP_COUNTING,
	WP_HEAP_SAMPLING,
	/* Probes cost too much, or may not be made: see WHY. */
	WP_HEAP_STOPPED,
};

struct wp_heap_samples {
	/* The program is Go's, and keeps a heap profile itself. */
	bool is_go;
	/* It is one of those in wp_heap_sums that are probed. */
	bool is_open;
	/* NULL: calls are probed; owned. */
	struct wp_heap_census *census;
	enum wp_heap_state state;
	struct wp_heap_probe *probe;
	/* The thread by which the kernel finds the probes. */
	pid_t probe_tid;
	struct wp_perf_source events;
	struct wp_heap_sites sites;
	struct wp_err why;
	/* When the probes were known to stand last. */
	uint64_t stood_ns;
	/* CPU time that one probe takes. */
	uint64_t cost_ns;
	/* When costs were judged last; what probes had taken, and the target's CPU time,
	 * then. */
	uint64_t counted_ns;
	double spent_ns;
	uint64_t target_cpu_ns;
	uint64_t next_look_ns;
	/* Of the last look, in CPUs: what probes took, and the target's threads ran. */
	double spent, ran;
	/* What probes took of one CPU in the 20 ms and more before RECENT_NS, and all in
	 * all by then. */
	double recent, recent_spent_ns;
	uint64_t recent_ns;
	/* With probes by links. */
	struct wp_heap_children children;
	struct wp_heap_objects objects;
	struct wp_heap_maps maps;
	/* Most probes that the process had written over, and which of its programs
	 * has those that are looked at. */
	size_t noverwritten;
	uint32_t nexecs;
	/* Samples of an allocator that another called, or of less than is wanted. */
	uint64_t ninner;
	/* Samples of functions that may throw: whether their objects are in use is not
	 * known. */
	uint64_t nthrowing;
};

/* Begin to measure what probes on TARGET take. */
void wp_heap_cost_begin(struct wp_target *target, uint64_t now);

/* Measure what probes on TARGET took since the last call, and return the share that all
 * probes take of the time of all threads that have some, or of one CPU if these run for
 * less.  *RET_IS_DEAREST: those on no other target take more. */
double wp_heap_cost_take(struct wp_target *target, uint64_t now,
			 bool *ret_is_dearest);

/* Have probes on TARGET taken more since the last call than they may take in WINDOW_NS,
 * which is not over?  To be asked often. */
bool wp_heap_cost_is_beyond(struct wp_target *target, uint64_t now,
			    uint64_t window_ns);

/* If all probes take more than they may, and those on TARGET most of it, these are
 * removed: -EDQUOT, and ERR says so.  Else 0. */
WP_MUST_CHECK
int wp_heap_cost_judge(struct wp_target *target, uint64_t now,
		       struct wp_err *err);

/* Would the kernel end a thread of TARGET's at the first return from a probed function?
 * Then -ENOTSUP, and ERR says why and what else there is; else 0.  What a thread has for
 * this it may get at any time. */
WP_MUST_CHECK
int wp_heap_refuse(const struct wp_target *target, struct wp_err *err);

/* Are probes to be made by perf events, if no other way is asked for?  A forked child has
 * those that its parent had, and of a kernel that ends threads under seccomp nobody sees
 * one come to that; but one by perf events the kernel removes at the first call of a
 * process that it is not for, before the return is probed (kernel/trace/trace_uprobe.c,
 * uprobe_perf_func; kernel/events/uprobes.c, handler_chain). */
bool wp_heap_refuse_wants_perf(void);

/* Add the records that came before UNTIL_NS to TARGET's profile.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_heap_records_read(struct wp_target *target, uint64_t until_ns);

/* Enter what is in use into TARGET's profile; of leaks, what is older than half of the time
 * for which its probes stood.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_heap_in_use_add(struct wp_target *target);

#endif
