/* SPDX-License-Identifier: Apache-2.0 */
/* heap_children.h - what a target has forked, with copies of the breakpoints of its probes.
 *
 * Layer: sample.  Private to src/sample/heap_*.c.
 *
 * The kernel's breakpoints are in the memory that a child has a copy of.  Each call there
 * takes the traps, but the BPF program does not run, so nothing counts it: a malloc and its
 * free took 4 us instead of 22 ns.  They are removed at the next tick; where children come
 * faster than that can be done, all CPU time of those that wait for it is taken for the
 * probes'.  An exec leaves them behind.
 */
#ifndef WP_HEAP_CHILDREN_H
#define WP_HEAP_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct wp_heap_probe;
struct wp_perf_record;

/* Of those beyond the time is not counted. */
enum { WP_HEAP_CHILDREN_MAX = 64 };

struct wp_heap_children {
	/* v[0..n) have probes and were forked before NEXT_NS: their CPU time so far, and
	 * when it was read. */
	struct wp_heap_child {
		pid_t pid;
		uint64_t run_ns;
		uint64_t read_ns;
	} v[WP_HEAP_CHILDREN_MAX];
	uint32_t n;
	/* Some may have probes, which are removed at NEXT_NS or later. */
	bool is_due;
	uint64_t next_ns;
	/* CPU time of V while they had them. */
	uint64_t spent_ns;
};

/* RECORD may be one of a child of process PID. */
void wp_heap_children_note(struct wp_heap_children *children, pid_t pid,
			   const struct wp_perf_record *record);

/* Read what the children have run, and have PROBE removed from them if it is time. */
void wp_heap_children_spare(struct wp_heap_children *children,
			    struct wp_heap_probe *probe, uint64_t now);

#endif
