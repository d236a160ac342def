/* SPDX-License-Identifier: Apache-2.0 */
/* graph_priv.h - who leads where, made from the edges of a dump.
 *
 * Nodes are the threads[0..nthreads), then the processes[0..nprocesses), then
 * one more, OUTSIDE, for whatever was not looked at.
 */
#ifndef WP_GRAPH_PRIV_H
#define WP_GRAPH_PRIV_H

#include "wallprof/graph.h"

enum { WP_NO_NODE = UINT32_MAX };

struct wp_graph {
	/* Borrowed; its threads, processes and edges stay as they are. */
	const struct wp_dump *dump;
	/* The last node. */
	uint32_t outside;
	/* looked[P]: process P was read and its threads are in the dump. */
	bool *looked;
	/* target[E]: the node where edges[E] leads; WP_NO_NODE when the thread
	 * that it starts from is not in the dump. */
	uint32_t *target;
	/* Edges from thread T: out[out_first[T]..out_first[T + 1]), and to node
	 * N: in[in_first[N]..in_first[N + 1]); in the order of edges[]. */
	uint32_t *out_first;
	uint32_t *out;
	uint32_t *in_first;
	uint32_t *in;
};

#define WP_GRAPH_INIT                                                          \
	{                                                                      \
		0                                                              \
	}

/* 0 or -ENOMEM.  Indices out of range lead OUTSIDE. */
WP_MUST_CHECK
int wp_graph_open(struct wp_graph *ret_graph, const struct wp_dump *dump);
void wp_graph_close(struct wp_graph *graph);

/* The next node where NODE leads, from *POS on (0 at first), but for OUTSIDE;
 * WP_NO_NODE: no more.  A process leads to each of its threads if SPREAD, else
 * to its thread when it has one only: nobody knows which of several it is. */
uint32_t wp_graph_next(const struct wp_graph *graph, uint32_t node,
		       uint32_t *pos, bool spread);
/* The same backwards: the nodes that lead to NODE. */
uint32_t wp_graph_prev(const struct wp_graph *graph, uint32_t node,
		       uint32_t *pos, bool spread);

/* Set DUMP's cycles; its threads' stuck is set.  BY_TID[0..nthreads): indices
 * of threads by rising tid.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_graph_find_cycles(const struct wp_graph *graph, struct wp_dump *dump,
			 const uint32_t *by_tid);
/* Set the waiters of DUMP's threads: the number of other threads that wait for
 * it, directly or through others, whatever the wait.  Exact where each thread
 * waits for one other, and elsewhere unless the graph is too large for that:
 * then at least so many.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_graph_count_waiters(const struct wp_graph *graph, struct wp_dump *dump);

#endif
