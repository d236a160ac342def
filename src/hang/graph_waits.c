/* SPDX-License-Identifier: Apache-2.0 */
/* graph_waits.c - who could end a wait that names nobody: see graph_priv.h. */
#include "graph_priv.h"

#include <linux/futex.h>

#include "wallprof/syscall_nr.h"

bool wp_graph_is_shared(const struct wp_dump *dump,
			const struct wp_dump_thread *t)
{
	/* Which words of the later calls are private is not known. */
	if (t->call.nr == SYS_futex_waitv || t->call.nr == SYS_futex_wait)
		return true;
	return t->call.nr == SYS_futex &&
	       (!(t->call.args[1] & FUTEX_PRIVATE_FLAG) ||
		(t->process < dump->nprocesses &&
		 dump->processes[t->process].shares_memory));
}

bool wp_graph_waits_for_own(const struct wp_dump *dump,
			    const struct wp_dump_thread *t)
{
	if (wp_graph_is_shared(dump, t))
		return false;
	switch (t->wait) {
	case WP_WAIT_LOCK:
		return t->lock.kind == WP_LOCK_PYTHON &&
		       !dump->processes[t->process].catches_more;
	case WP_WAIT_CONDVAR:
	case WP_WAIT_BARRIER:
		return true;
	case WP_WAIT_SEMAPHORE:
	case WP_WAIT_FUTEX:
		/* A signal handler may call sem_post, or wake a futex; any
		 * process that has the key may end a semop(2). */
		return !dump->processes[t->process].catches_signals &&
		       t->call.nr == SYS_futex;
	default:
		return false;
	}
}

/* Thread I waits for one alone, or for each of several that have a file locked; what else
 * several could do, as write to a pipe that all children of a server have, any may. */
static bool waits_for_one(const struct wp_graph *g, uint32_t i)
{
	const struct wp_dump *dump = g->dump;
	uint32_t one = WP_NO_NODE;

	for (uint32_t k = g->out_first[i]; k < g->out_first[i + 1]; k++) {
		const struct wp_edge *e = &dump->edges[g->out[k]];
		uint32_t to = g->target[g->out[k]];

		if (e->kind == WP_EDGE_FILE_LOCK)
			return true;
		if (e->to_process == dump->threads[i].process)
			to = dump->nthreads + e->to_process;
		if (one != WP_NO_NODE && to != one)
			return false;
		one = to;
	}
	return true;
}

bool wp_graph_is_wanted(const struct wp_graph *graph, uint32_t node)
{
	uint32_t nthreads = graph->dump->nthreads, pos = 0, prev;

	while ((prev = wp_graph_prev(graph, node, &pos, false)) != WP_NO_NODE)
		if (prev < nthreads ? waits_for_one(graph, prev) :
				      wp_graph_is_wanted(graph, prev))
			return true;
	return false;
}
