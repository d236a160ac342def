/* SPDX-License-Identifier: Apache-2.0 */
/* cycles.c - cycles and waiters of a graph: see graph_priv.h. */
#include "graph_priv.h"

#include <string.h>

#include "wallprof/vec.h"

enum {
	/* Edges that all counts by walks may follow, and one count at least. */
	STEPS = 1 << 25,
	MIN_STEPS = 1024,
};

/* Strongly connected components by Tarjan's algorithm, not recursive: a chain may
 * have as many nodes as there are threads. */
struct components {
	const struct wp_graph *graph;
	bool spread;
	/* comp[N]: the component of node N.  A component has a higher number
	 * than those that it leads to. */
	uint32_t *comp;
	uint32_t n;
	/* order[0..nordered): the nodes that have a component, by rising one. */
	uint32_t *order;
	uint32_t nordered;
	/* Per node: its number in order of first visit (0: none), the lowest
	 * number that it reaches, the position of its next successor, the node
	 * that it was reached from.  open[0..nopen): visited nodes that have no
	 * component yet. */
	uint32_t *num, *low, *pos, *up, *open;
	uint32_t nseen, nopen;
};

static void components_clear(struct components *c)
{
	free(c->comp);
	free(c->order);
	free(c->num);
	free(c->low);
	free(c->pos);
	free(c->up);
	free(c->open);
}

static int components_init(struct components *c, const struct wp_graph *graph,
			   bool spread)
{
	uint32_t **const all[] = { &c->comp, &c->order, &c->num, &c->low,
				   &c->pos,  &c->up,	&c->open };
	size_t nnodes = (size_t)graph->outside + 1;

	*c = (struct components){ .graph = graph, .spread = spread };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		*all[i] = calloc(nnodes, sizeof(**all[i]));
		if (!*all[i])
			return -ENOMEM;
	}
	memset(c->comp, 0xff, nnodes * sizeof(*c->comp));
	return 0;
}

static void enter(struct components *c, uint32_t node, uint32_t up)
{
	c->num[node] = c->low[node] = ++c->nseen;
	c->up[node] = up;
	c->open[c->nopen++] = node;
}

static void close_component(struct components *c, uint32_t node)
{
	uint32_t last;

	do {
		last = c->open[--c->nopen];
		c->comp[last] = c->n;
		c->order[c->nordered++] = last;
	} while (last != node);
	c->n++;
}

static void visit(struct components *c, uint32_t node)
{
	enter(c, node, WP_NO_NODE);
	while (node != WP_NO_NODE) {
		uint32_t next = wp_graph_next(c->graph, node, &c->pos[node],
					      c->spread);
		uint32_t up = c->up[node];

		if (next == WP_NO_NODE) {
			if (c->low[node] == c->num[node])
				close_component(c, node);
			if (up != WP_NO_NODE && c->low[node] < c->low[up])
				c->low[up] = c->low[node];
			node = up;
		} else if (!c->num[next]) {
			enter(c, next, node);
			node = next;
		} else if (c->comp[next] == WP_NO_NODE &&
			   c->num[next] < c->low[node]) {
			c->low[node] = c->num[next];
		}
	}
}

/* 0 or -ENOMEM; the caller clears C in both cases. */
static int components_find(struct components *c, const struct wp_graph *graph,
			   bool spread)
{
	int rc = components_init(c, graph, spread);

	for (uint32_t i = 0; !rc && i <= graph->outside; i++)
		if (!c->num[i])
			visit(c, i);
	return rc;
}

/* A breadth-first walk from one thread through its component. */
struct walk {
	const struct components *comps;
	uint32_t start;
	/* seen[N]: N was reached.  Never reset: a node is in one component. */
	bool *seen;
	/* via[T]: the edge by which thread T was reached. */
	uint32_t *via;
	uint32_t *queue;
	uint32_t done, n;
};

/* EDGE leads to thread T; true if that is the start. */
static bool reach(struct walk *w, uint32_t t, uint32_t edge)
{
	if (t == w->start)
		return true;
	/* A thread that has ended may be part of a process that is stuck. */
	if (!w->seen[t] && w->comps->graph->dump->threads[t].stuck &&
	    w->comps->comp[t] == w->comps->comp[w->start]) {
		w->seen[t] = true;
		w->via[t] = edge;
		w->queue[w->n++] = t;
	}
	return false;
}

static bool follow(struct walk *w, uint32_t edge)
{
	const struct wp_graph *g = w->comps->graph;
	uint32_t node = g->target[edge], pos = 0, t;

	if (node < g->dump->nthreads)
		return reach(w, node, edge);
	if (w->seen[node] || w->comps->comp[node] != w->comps->comp[w->start])
		return false;
	w->seen[node] = true;
	while ((t = wp_graph_next(g, node, &pos, true)) != WP_NO_NODE)
		if (reach(w, t, edge))
			return true;
	return false;
}

/* The last edge of the shortest cycle through thread START; WP_NO_NODE: there is
 * no cycle. */
static uint32_t find_way_back(struct walk *w, uint32_t start)
{
	const struct wp_graph *g = w->comps->graph;

	w->start = start;
	w->done = 0;
	w->n = 0;
	w->queue[w->n++] = start;
	while (w->done < w->n) {
		uint32_t t = w->queue[w->done++];

		for (uint32_t k = g->out_first[t]; k < g->out_first[t + 1]; k++)
			if (follow(w, g->out[k]))
				return g->out[k];
	}
	return WP_NO_NODE;
}

/* Append the cycle that ends with EDGE. */
static int add_cycle(const struct walk *w, struct wp_dump *dump, uint32_t edge)
{
	uint32_t first = dump->ncycle_edges, *cycle;

	for (;;) {
		if (WP_VEC_ROOM(dump->cycle_edges, dump->ncycle_edges,
				dump->cap_cycle_edges, 1))
			return -ENOMEM;
		dump->cycle_edges[dump->ncycle_edges++] = edge;
		if (dump->edges[edge].from == w->start)
			break;
		edge = w->via[dump->edges[edge].from];
	}
	/* The edges were found from the last to the first. */
	cycle = dump->cycle_edges;
	for (uint32_t i = first, j = dump->ncycle_edges - 1; i < j; i++, j--) {
		uint32_t e = cycle[i];

		cycle[i] = cycle[j];
		cycle[j] = e;
	}
	if (WP_VEC_ROOM(dump->cycle_first, dump->ncycles + 1, dump->cap_cycles,
			1))
		return -ENOMEM;
	dump->cycle_first[++dump->ncycles] = dump->ncycle_edges;
	return 0;
}

/* Add a cycle per component, through its thread with the lowest tid.  All that a
 * stuck thread leads to is stuck, so all threads of its component are. */
static int add_cycles(struct walk *w, struct wp_dump *dump,
		      const uint32_t *by_tid, bool *met)
{
	int rc = WP_VEC_ROOM(dump->cycle_first, 0, dump->cap_cycles, 1);

	if (!rc)
		dump->cycle_first[0] = 0;
	for (uint32_t i = 0; !rc && i < dump->nthreads; i++) {
		uint32_t t = by_tid[i], comp = w->comps->comp[t], edge;

		if (!dump->threads[t].stuck || met[comp])
			continue;
		met[comp] = true;
		edge = find_way_back(w, t);
		if (edge != WP_NO_NODE)
			rc = add_cycle(w, dump, edge);
	}
	return rc;
}

int wp_graph_find_cycles(const struct wp_graph *graph, struct wp_dump *dump,
			 const uint32_t *by_tid)
{
	size_t nnodes = (size_t)graph->outside + 1;
	struct components comps;
	struct walk w = {
		.comps = &comps,
		.seen = calloc(nnodes, sizeof(*w.seen)),
		.via = calloc(nnodes, sizeof(*w.via)),
		.queue = calloc(nnodes, sizeof(*w.queue)),
	};
	bool *met = calloc(nnodes, sizeof(*met));
	int rc = components_find(&comps, graph, true);

	if (!w.seen || !w.via || !w.queue || !met)
		rc = -ENOMEM;
	if (!rc)
		rc = add_cycles(&w, dump, by_tid, met);
	components_clear(&comps);
	free(w.seen);
	free(w.via);
	free(w.queue);
	free(met);
	return rc;
}

/* Threads per component: its own and all that lead to it. */
struct count {
	const struct components *comps;
	/* total[C] of component C; wrong if SEVERAL[C]: a thread may lead to it
	 * by more than one way. */
	uint32_t *total;
	bool *several;
	/* mark[N]: the component that was counted when node N was last met, plus
	 * 1. */
	uint32_t *mark;
	uint32_t *queue;
};

/* Count the threads that lead to NODE, and NODE itself, by a walk. */
static uint32_t count_back(struct count *count, uint32_t node)
{
	const struct components *c = count->comps;
	const struct wp_graph *g = c->graph;
	uint32_t steps = STEPS / (g->outside + 1), threads = 0, done = 0, n = 0;
	uint32_t mark = c->comp[node] + 1;

	if (steps < MIN_STEPS)
		steps = MIN_STEPS;
	count->mark[node] = mark;
	count->queue[n++] = node;
	while (done < n) {
		uint32_t at = count->queue[done++], pos = 0, prev;

		threads += at < g->dump->nthreads;
		for (; steps; steps--) {
			prev = wp_graph_prev(g, at, &pos, c->spread);
			if (prev == WP_NO_NODE)
				break;
			if (count->mark[prev] == mark)
				continue;
			count->mark[prev] = mark;
			count->queue[n++] = prev;
		}
	}
	return threads;
}

/* Set *RET_COMP to the only other component that order[first..end) leads to,
 * WP_NO_NODE if there is none; false if there are several. */
static bool leads_to_one(const struct components *c, uint32_t first,
			 uint32_t end, uint32_t *ret_comp)
{
	uint32_t own = c->comp[c->order[first]];

	*ret_comp = WP_NO_NODE;
	for (uint32_t i = first; i < end; i++) {
		uint32_t pos = 0, next;

		while ((next = wp_graph_next(c->graph, c->order[i], &pos,
					     c->spread)) != WP_NO_NODE) {
			uint32_t to = c->comp[next];

			if (to == own || to == *ret_comp)
				continue;
			if (*ret_comp != WP_NO_NODE)
				return false;
			*ret_comp = to;
		}
	}
	return true;
}

static void add_to_next(struct count *count, uint32_t first, uint32_t end)
{
	const struct components *c = count->comps;
	uint32_t own = c->comp[c->order[first]], to;

	if (leads_to_one(c, first, end, &to)) {
		if (to == WP_NO_NODE)
			return;
		/* No thread leads to TO by this way and by another. */
		count->total[to] += count->total[own];
		count->several[to] |= count->several[own];
		return;
	}
	for (uint32_t i = first; i < end; i++) {
		uint32_t pos = 0, next;

		while ((next = wp_graph_next(c->graph, c->order[i], &pos,
					     c->spread)) != WP_NO_NODE)
			count->several[c->comp[next]] = true;
	}
}

/* Count the waiters of component order[first..end); all that lead to it are
 * counted. */
static void count_component(struct count *count, struct wp_dump *dump,
			    uint32_t first, uint32_t end)
{
	const struct components *c = count->comps;
	uint32_t own = c->comp[c->order[first]];

	for (uint32_t i = first; i < end; i++)
		count->total[own] += c->order[i] < dump->nthreads;
	if (count->several[own])
		count->total[own] = count_back(count, c->order[first]);
	for (uint32_t i = first; i < end; i++)
		if (c->order[i] < dump->nthreads)
			dump->threads[c->order[i]].waiters = count->total[own] -
							     1;
	add_to_next(count, first, end);
}

int wp_graph_count_waiters(const struct wp_graph *graph, struct wp_dump *dump)
{
	size_t nnodes = (size_t)graph->outside + 1;
	struct components c;
	struct count count = {
		.comps = &c,
		.total = calloc(nnodes, sizeof(*count.total)),
		.several = calloc(nnodes, sizeof(*count.several)),
		.mark = calloc(nnodes, sizeof(*count.mark)),
		.queue = calloc(nnodes, sizeof(*count.queue)),
	};
	int rc = components_find(&c, graph, false);

	if (!count.total || !count.several || !count.mark || !count.queue)
		rc = -ENOMEM;
	for (uint32_t end = rc ? 0 : c.nordered, first; end; end = first) {
		uint32_t comp = c.comp[c.order[end - 1]];

		for (first = end; first && c.comp[c.order[first - 1]] == comp;)
			first--;
		count_component(&count, dump, first, end);
	}
	components_clear(&c);
	free(count.total);
	free(count.several);
	free(count.mark);
	free(count.queue);
	return rc;
}
