/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - see wallprof/graph.h and graph_priv.h. */
#include "graph_priv.h"

#include <stdio.h>
#include <string.h>

#include "wallprof/vec.h"

/* Whether process P has its threads, and no other's, in the dump. */
static bool is_sampled(const struct wp_dump *dump, uint32_t p)
{
	const struct wp_dump_process *proc = &dump->processes[p];

	if (proc->error || !proc->nthreads ||
	    proc->first_thread > dump->nthreads ||
	    proc->nthreads > dump->nthreads - proc->first_thread)
		return false;
	for (uint32_t i = 0; i < proc->nthreads; i++)
		if (dump->threads[proc->first_thread + i].process != p)
			return false;
	return true;
}

static uint32_t find_target(const struct wp_graph *g, const struct wp_edge *e)
{
	const struct wp_dump *dump = g->dump;

	if (e->from >= dump->nthreads)
		return WP_NO_NODE;
	if (e->to < dump->nthreads)
		return e->to;
	if (e->to == UINT32_MAX && e->to_process < dump->nprocesses &&
	    g->sampled[e->to_process])
		return dump->nthreads + e->to_process;
	return g->outside;
}

static uint32_t key_of(const struct wp_graph *g, uint32_t e, bool by_target)
{
	if (by_target || g->target[e] == WP_NO_NODE)
		return g->target[e];
	return g->dump->edges[e].from;
}

/* List the edges by key, N keys in all. */
static int group_edges(struct wp_graph *g, bool by_target, uint32_t n,
		       uint32_t **ret_first, uint32_t **ret_list)
{
	uint32_t nedges = g->dump->nedges;
	uint32_t *first = calloc((size_t)n + 2, sizeof(*first));
	uint32_t *list = calloc((size_t)nedges + 1, sizeof(*list));

	/* wp_graph_close frees them, also after an error. */
	*ret_first = first;
	*ret_list = list;
	if (!first || !list)
		return -ENOMEM;
	for (uint32_t e = 0; e < nedges; e++)
		if (key_of(g, e, by_target) != WP_NO_NODE)
			first[key_of(g, e, by_target) + 2]++;
	for (uint32_t k = 2; k < n + 2; k++)
		first[k] += first[k - 1];
	for (uint32_t e = 0; e < nedges; e++)
		if (key_of(g, e, by_target) != WP_NO_NODE)
			list[first[key_of(g, e, by_target) + 1]++] = e;
	return 0;
}

int wp_graph_open(struct wp_graph *ret_graph, const struct wp_dump *dump)
{
	uint64_t nnodes = (uint64_t)dump->nthreads + dump->nprocesses + 1;
	struct wp_graph g = WP_GRAPH_INIT;

	g.dump = dump;
	/* group_edges makes arrays of two more. */
	if (nnodes > UINT32_MAX - 2)
		return -ENOMEM;
	g.outside = (uint32_t)nnodes - 1;
	g.sampled = calloc((size_t)dump->nprocesses + 1, sizeof(*g.sampled));
	g.target = calloc((size_t)dump->nedges + 1, sizeof(*g.target));
	if (!g.sampled || !g.target)
		goto out;
	for (uint32_t p = 0; p < dump->nprocesses; p++)
		g.sampled[p] = is_sampled(dump, p);
	for (uint32_t e = 0; e < dump->nedges; e++)
		g.target[e] = find_target(&g, &dump->edges[e]);
	if (group_edges(&g, false, dump->nthreads, &g.out_first, &g.out) ||
	    group_edges(&g, true, (uint32_t)nnodes, &g.in_first, &g.in))
		goto out;
	*ret_graph = g;
	return 0;
out:
	wp_graph_close(&g);
	return -ENOMEM;
}

void wp_graph_close(struct wp_graph *graph)
{
	free(graph->sampled);
	free(graph->target);
	free(graph->out_first);
	free(graph->out);
	free(graph->in_first);
	free(graph->in);
	*graph = (struct wp_graph)WP_GRAPH_INIT;
}

static bool leads_on(const struct wp_graph *g, uint32_t p, bool spread)
{
	return p < g->dump->nprocesses && g->sampled[p] &&
	       (spread || g->dump->processes[p].nthreads == 1);
}

uint32_t wp_graph_next(const struct wp_graph *graph, uint32_t node,
		       uint32_t *pos, bool spread)
{
	const struct wp_dump *dump = graph->dump;

	if (node >= dump->nthreads) {
		uint32_t p = node - dump->nthreads;

		if (!leads_on(graph, p, spread) ||
		    *pos >= dump->processes[p].nthreads)
			return WP_NO_NODE;
		return dump->processes[p].first_thread + (*pos)++;
	}
	while (*pos < graph->out_first[node + 1] - graph->out_first[node]) {
		uint32_t e = graph->out[graph->out_first[node] + (*pos)++];

		if (graph->target[e] != graph->outside)
			return graph->target[e];
	}
	return WP_NO_NODE;
}

uint32_t wp_graph_prev(const struct wp_graph *graph, uint32_t node,
		       uint32_t *pos, bool spread)
{
	const struct wp_dump *dump = graph->dump;
	uint32_t n = graph->in_first[node + 1] - graph->in_first[node];

	if (*pos < n) {
		uint32_t e = graph->in[graph->in_first[node] + (*pos)++];

		return dump->edges[e].from;
	}
	if (*pos == n && node < dump->nthreads &&
	    leads_on(graph, dump->threads[node].process, spread)) {
		(*pos)++;
		return dump->nthreads + dump->threads[node].process;
	}
	return WP_NO_NODE;
}

/* The kind of edge that T's lock makes; WP_NEDGE_KINDS: none. */
static enum wp_edge_kind lock_edge_kind(const struct wp_dump_thread *t)
{
	if (t->state != WP_STATE_WAITING || t->lock.owner_tid <= 0 || t->moved)
		return WP_NEDGE_KINDS;
	switch (t->lock.kind) {
	case WP_LOCK_MUTEX:
	case WP_LOCK_RWLOCK_READ:
	case WP_LOCK_RWLOCK_WRITE:
	case WP_LOCK_FUTEX:
	case WP_LOCK_GIL:
		if (t->lock.holder == WP_HOLDER_THREAD)
			return WP_EDGE_LOCK;
		return WP_NEDGE_KINDS;
	case WP_LOCK_JOIN:
		if (t->lock.holder != WP_HOLDER_GONE)
			return WP_EDGE_JOIN;
		return WP_NEDGE_KINDS;
	default:
		return WP_NEDGE_KINDS;
	}
}

static int add_lock_edge(struct wp_dump *dump, uint32_t from, uint32_t to,
			 enum wp_edge_kind kind)
{
	const struct wp_lock *lock = &dump->threads[from].lock;
	uint32_t p = dump->threads[to].process, what;
	struct wp_edge *e;
	char text[64];

	if (kind == WP_EDGE_JOIN)
		snprintf(text, sizeof(text), "thread %d", lock->owner_tid);
	else
		snprintf(text, sizeof(text), "%s 0x%llx",
			 wp_lock_kind_name(lock->kind),
			 (unsigned long long)lock->avma);
	what = wp_intern_add_str(&dump->strings, text);
	e = what != UINT32_MAX ? wp_dump_add_edge(dump) : NULL;
	if (!e)
		return -ENOMEM;
	e->kind = kind;
	e->from = from;
	e->to = to;
	e->to_process = p;
	e->to_pid = p < dump->nprocesses ? dump->processes[p].pid : 0;
	e->what = what;
	return 0;
}

/* Add an edge for each held lock and joined thread, unless the thread has one. */
static int add_lock_edges(struct wp_dump *dump, const uint32_t *by_tid)
{
	bool *has = calloc((size_t)dump->nthreads + 1, sizeof(*has));
	int rc = has ? 0 : -ENOMEM;

	for (uint32_t e = 0; !rc && e < dump->nedges; e++)
		if (dump->edges[e].from < dump->nthreads &&
		    (dump->edges[e].kind == WP_EDGE_LOCK ||
		     dump->edges[e].kind == WP_EDGE_JOIN))
			has[dump->edges[e].from] = true;
	for (uint32_t t = 0; !rc && t < dump->nthreads; t++) {
		enum wp_edge_kind kind = lock_edge_kind(&dump->threads[t]);
		uint32_t to;

		if (kind == WP_NEDGE_KINDS || has[t])
			continue;
		to = wp_dump_find_tid(dump, by_tid,
				      dump->threads[t].lock.owner_tid);
		/* What a thread that moved waits for, it may have begun to wait
		 * for after it released the lock. */
		if (to != UINT32_MAX &&
		    (!dump->threads[to].moved ||
		     dump->threads[to].state != WP_STATE_WAITING))
			rc = add_lock_edge(dump, t, to, kind);
	}
	free(has);
	return rc;
}

/* No thread is left that could release T's lock. */
static bool lock_is_lost(const struct wp_dump_thread *t)
{
	return t->lock.holder == WP_HOLDER_GONE &&
	       (t->lock.kind == WP_LOCK_MUTEX ||
		t->lock.kind == WP_LOCK_RWLOCK_READ ||
		t->lock.kind == WP_LOCK_RWLOCK_WRITE);
}

/* A signal handler of the thread's own process may write to the pipe that the
 * thread reads (the self-pipe trick); one for SIGALRM or the signal of a timer, without
 * SA_RESTART, ends any call (signal(7)) but those that the C library makes anew, for
 * locks and joins.  Other signals have to come from somebody. */
static bool handler_may_end(const struct wp_dump *dump, const struct wp_edge *e)
{
	uint32_t own = dump->threads[e->from].process;
	uint32_t to = e->to < dump->nthreads ? dump->threads[e->to].process :
					       e->to_process;

	if (own < dump->nprocesses && dump->processes[own].catches_alarm &&
	    e->kind != WP_EDGE_LOCK && e->kind != WP_EDGE_JOIN)
		return true;
	return (e->kind == WP_EDGE_PIPE || e->kind == WP_EDGE_SOCKET) &&
	       to == own && own < dump->nprocesses &&
	       dump->processes[own].catches_signals;
}

/* Thread I waits for what any thread of its process may do, as one of a pool does that
 * has no work. */
static bool waits_for_any(const struct wp_graph *g, uint32_t i)
{
	const struct wp_dump_thread *t = &g->dump->threads[i];

	return t->process < g->dump->nprocesses && !t->moved &&
	       g->out_first[i] == g->out_first[i + 1] &&
	       wp_graph_waits_for_own(g->dump, t);
}

static bool thread_may_be_stuck(const struct wp_graph *g, uint32_t i)
{
	const struct wp_dump_thread *t = &g->dump->threads[i];

	if (t->state != WP_STATE_WAITING || t->call.timed || t->open_ended)
		return false;
	for (uint32_t k = g->out_first[i]; k < g->out_first[i + 1]; k++)
		if (handler_may_end(g->dump, &g->dump->edges[g->out[k]]))
			return false;
	return g->out_first[i] < g->out_first[i + 1] || lock_is_lost(t) ||
	       waits_for_any(g, i);
}

/* Thread I waits for another process. */
static bool leads_out(const struct wp_graph *g, uint32_t i)
{
	for (uint32_t k = g->out_first[i]; k < g->out_first[i + 1]; k++) {
		enum wp_edge_kind kind = g->dump->edges[g->out[k]].kind;

		if (kind != WP_EDGE_LOCK && kind != WP_EDGE_JOIN)
			return true;
	}
	return false;
}

/* Threads that have ended (a main thread after pthread_exit) do nothing more;
 * threads that were not read may do anything.  What a pool waits for may be on its way
 * in the process, but for one that another process holds up: two looks tell. */
static bool process_may_be_stuck(const struct wp_graph *g, uint32_t p)
{
	const struct wp_dump_process *proc = &g->dump->processes[p];
	bool any = false, pool = false, out = false;

	if (!g->sampled[p] || proc->nlost || proc->nunchosen)
		return false;
	for (uint32_t i = proc->first_thread;
	     i < proc->first_thread + proc->nthreads; i++) {
		if (g->dump->threads[i].state == WP_STATE_EXITING)
			continue;
		any = true;
		pool |= waits_for_any(g, i);
		out |= leads_out(g, i);
	}
	return any && (out || !pool);
}

/* The nodes that are not stuck: queue[0..n), of which the waiters of
 * queue[0..done) are in it too. */
struct free_nodes {
	bool *is_free;
	uint32_t *queue;
	uint32_t done;
	uint32_t n;
};

static void set_free(struct free_nodes *f, uint32_t node)
{
	if (!f->is_free[node]) {
		f->is_free[node] = true;
		f->queue[f->n++] = node;
	}
}

static void add_free_nodes(const struct wp_graph *g, struct free_nodes *f)
{
	uint32_t nthreads = g->dump->nthreads;

	for (uint32_t i = 0; i < nthreads; i++)
		if (!thread_may_be_stuck(g, i))
			set_free(f, i);
	for (uint32_t p = 0; p < g->dump->nprocesses; p++)
		if (!process_may_be_stuck(g, p))
			set_free(f, nthreads + p);
	set_free(f, g->outside);
}

/* Process P is free: so are its threads that wait for any other. */
static void add_pool_of_free(const struct wp_graph *g, struct free_nodes *f,
			     uint32_t p)
{
	const struct wp_dump_process *proc = &g->dump->processes[p];

	for (uint32_t i = proc->first_thread;
	     g->sampled[p] && i < proc->first_thread + proc->nthreads; i++)
		if (waits_for_any(g, i))
			set_free(f, i);
}

static void add_waiters_of_free(const struct wp_graph *g, struct free_nodes *f)
{
	const struct wp_dump *dump = g->dump;

	while (f->done < f->n) {
		uint32_t node = f->queue[f->done++];

		for (uint32_t k = g->in_first[node]; k < g->in_first[node + 1];
		     k++)
			set_free(f, dump->edges[g->in[k]].from);
		if (node < dump->nthreads &&
		    dump->threads[node].state != WP_STATE_EXITING &&
		    dump->threads[node].process < dump->nprocesses)
			set_free(f,
				 dump->nthreads + dump->threads[node].process);
		if (node >= dump->nthreads && node != g->outside)
			add_pool_of_free(g, f, node - dump->nthreads);
	}
}

/* Find the largest set of threads each of which waits only for others of the
 * set: start with all, take away those that are free, then those that wait for
 * a free one, and so on. */
static int find_stuck(const struct wp_graph *g, struct wp_dump *dump)
{
	size_t nnodes = (size_t)g->outside + 1;
	struct free_nodes f = {
		.is_free = calloc(nnodes, sizeof(*f.is_free)),
		.queue = calloc(nnodes, sizeof(*f.queue)),
	};
	int rc = f.is_free && f.queue ? 0 : -ENOMEM;

	if (!rc) {
		add_free_nodes(g, &f);
		add_waiters_of_free(g, &f);
		for (uint32_t i = 0; i < dump->nthreads; i++)
			dump->threads[i].stuck = !f.is_free[i];
		for (uint32_t p = 0; p < dump->nprocesses; p++)
			dump->processes[p].stuck =
				!f.is_free[dump->nthreads + p];
	}
	free(f.is_free);
	free(f.queue);
	return rc;
}

/* Thread I has waiters of its own and waits for no known thread.  A stuck thread is a root
 * only if its lock is lost: else a cycle tells more. */
static bool is_root(const struct wp_graph *g, uint32_t i)
{
	const struct wp_dump_thread *t = &g->dump->threads[i];
	uint32_t pos = 0, node;

	if (t->waiters < 2 || !wp_graph_is_wanted(g, i) ||
	    (t->stuck && g->out_first[i] < g->out_first[i + 1]))
		return false;
	while ((node = wp_graph_next(g, i, &pos, false)) != WP_NO_NODE) {
		uint32_t first = 0;

		if (node < g->dump->nthreads ||
		    wp_graph_next(g, node, &first, false) != WP_NO_NODE)
			return false;
	}
	return true;
}

static int compare_roots(const void *a, const void *b, void *ctx)
{
	const struct wp_dump *dump = ctx;
	uint32_t x = dump->threads[*(const uint32_t *)a].waiters;
	uint32_t y = dump->threads[*(const uint32_t *)b].waiters;

	return x != y ? (x < y) - (x > y) : wp_dump_compare_tids(a, b, ctx);
}

static int find_roots(const struct wp_graph *g, struct wp_dump *dump)
{
	for (uint32_t i = 0; i < dump->nthreads; i++) {
		if (!is_root(g, i))
			continue;
		if (WP_VEC_ROOM(dump->roots, dump->nroots, dump->cap_roots, 1))
			return -ENOMEM;
		dump->roots[dump->nroots++] = i;
	}
	if (dump->nroots)
		qsort_r(dump->roots, dump->nroots, sizeof(*dump->roots),
			compare_roots, dump);
	return 0;
}

static void clear_results(struct wp_dump *dump)
{
	for (uint32_t i = 0; i < dump->nthreads; i++) {
		dump->threads[i].stuck = false;
		dump->threads[i].waiters = 0;
	}
	for (uint32_t p = 0; p < dump->nprocesses; p++)
		dump->processes[p].stuck = false;
	dump->ncycle_edges = 0;
	dump->ncycles = 0;
	dump->nroots = 0;
}

int wp_graph_build(struct wp_dump *dump)
{
	struct wp_graph g = WP_GRAPH_INIT;
	uint32_t *by_tid = wp_dump_sort_tids(dump);
	int rc = by_tid ? 0 : -ENOMEM;

	clear_results(dump);
	if (!rc)
		rc = add_lock_edges(dump, by_tid);
	if (!rc)
		rc = wp_graph_open(&g, dump);
	if (!rc)
		rc = find_stuck(&g, dump);
	if (!rc)
		rc = wp_graph_find_cycles(&g, dump, by_tid);
	if (!rc)
		rc = wp_graph_count_waiters(&g, dump);
	if (!rc)
		rc = find_roots(&g, dump);
	/* A part of the results would be taken for the whole. */
	if (rc)
		clear_results(dump);
	wp_graph_close(&g);
	free(by_tid);
	return rc;
}
