/* SPDX-License-Identifier: Apache-2.0 */
/* graph_priv.h - the edges of a dump as a graph.
 *
 * Nodes are the dump's threads[0..nthreads), then its processes[0..nprocesses),
 * then one more, OUTSIDE, for all that is not in the dump.
 */
#ifndef WP_GRAPH_PRIV_H
#define WP_GRAPH_PRIV_H

#include "wallprof/graph.h"

enum { WP_NO_NODE = UINT32_MAX };

struct wp_graph {
	/* Borrowed; its threads, processes and edges may not change. */
	const struct wp_dump *dump;
	/* The number of the last node. */
	uint32_t outside;
	/* sampled[P]: process P has its threads in the dump.  Owned, as are all
	 * arrays here. */
	bool *sampled;
	/* target[E]: the node that edges[E] leads to; WP_NO_NODE: the thread
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

/* Make the graph of DUMP, in which indices out of range lead OUTSIDE.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_graph_open(struct wp_graph *ret_graph, const struct wp_dump *dump);
void wp_graph_close(struct wp_graph *graph);

/* The next node that NODE leads to, after *POS (0 at first) and without OUTSIDE;
 * WP_NO_NODE: there is no more.  A process leads to each of its threads if
 * SPREAD, else to its thread if it has only one, as it is not known which of
 * several ends the wait. */
uint32_t wp_graph_next(const struct wp_graph *graph, uint32_t node,
		       uint32_t *pos, bool spread);
/* The next node that leads to NODE, in the same way. */
uint32_t wp_graph_prev(const struct wp_graph *graph, uint32_t node,
		       uint32_t *pos, bool spread);

/* A thread waits for NODE, or for its process if it is the only thread of that, and for
 * nobody who could do the same. */
bool wp_graph_is_wanted(const struct wp_graph *graph, uint32_t node);

/* Another process may have the futex that T waits for as well (PTHREAD_PROCESS_SHARED),
 * and end the wait: of one that has not, the call says so (futex(2)), unless it has all
 * of the memory. */
bool wp_graph_is_shared(const struct wp_dump *dump,
			const struct wp_dump_thread *t);
/* T waits for what only its own process can give it, and for no thread that is known: a
 * condition, a barrier, a semaphore or a lock of Python's, which a signal handler in
 * Python may release as well (that of SIGINT is the interpreter's own). */
bool wp_graph_waits_for_own(const struct wp_dump *dump,
			    const struct wp_dump_thread *t);

/* Set DUMP's cycles; which threads are stuck is set.  BY_TID[0..nthreads) are
 * indices of threads by rising tid.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_graph_find_cycles(const struct wp_graph *graph, struct wp_dump *dump,
			 const uint32_t *by_tid);
/* Set the waiters of DUMP's threads: how many other threads wait for each,
 * directly or through others, in whatever wait.  Exact where each thread waits
 * for one other, and elsewhere if the graph is not too large; else a lower
 * bound.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_graph_count_waiters(const struct wp_graph *graph, struct wp_dump *dump);

#endif
