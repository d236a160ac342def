/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - see tree.h. */
#include "tree.h"

#include <errno.h>
#include <stdlib.h>

#include "report.h"
#include "wallprof/vec.h"

/* A sample whose stack is being added, from the root to the leaf. */
struct descent {
	struct wp_tree *tree;
	uint64_t ns;
	uint32_t at;
	/* View id of node AT, and how often in a row it was met. */
	uint64_t id;
	uint32_t repeat;
	int rc;
};

int wp_tree_init(struct wp_tree *tree, const struct wp_profile *profile,
		 bool fold_recursion)
{
	*tree = (struct wp_tree){
		.profile = profile,
		.fold_recursion = fold_recursion,
		.edges = WP_PAIRS_INIT,
		.states = WP_PAIRS_INIT,
	};
	if (WP_VEC_ROOM(tree->nodes, tree->nnodes, tree->cap, 1))
		return -ENOMEM;
	tree->nodes[tree->nnodes++] = (struct wp_tree_node){ 0 };
	return 0;
}

void wp_tree_clear(struct wp_tree *tree)
{
	free(tree->nodes);
	wp_pairs_clear(&tree->edges);
	wp_pairs_clear(&tree->states);
	*tree = (struct wp_tree){ 0 };
}

static int new_node(struct wp_tree *tree, uint32_t parent,
		    const struct wp_view *view)
{
	if (WP_VEC_ROOM(tree->nodes, tree->nnodes, tree->cap, 1))
		return -ENOMEM;
	tree->nodes[tree->nnodes++] = (struct wp_tree_node){
		.parent = parent,
		.depth = tree->nodes[parent].depth + 1,
		.loc = view->loc,
		.level = view->level,
		.line = view->line,
	};
	return 0;
}

/* PARENT's child for VIEW, made if new; 0: no memory. */
static uint32_t child_of(struct wp_tree *tree, uint32_t parent,
			 const struct wp_view *view)
{
	uint32_t edge = wp_pairs_add(&tree->edges, parent, view->id);

	if (edge == UINT32_MAX)
		return 0;
	if (edge + 1 == tree->nnodes && new_node(tree, parent, view))
		return 0;
	return edge + 1;
}

static bool descend(void *ctx, const struct wp_view *view)
{
	struct descent *d = ctx;
	struct wp_tree *tree = d->tree;
	struct wp_tree_node *node;

	if (!tree->fold_recursion || !d->at || view->id != d->id) {
		d->at = child_of(tree, d->at, view);
		if (!d->at) {
			d->rc = -ENOMEM;
			return false;
		}
		d->id = view->id;
		d->repeat = 0;
		tree->nodes[d->at].total_ns += d->ns;
	}
	node = &tree->nodes[d->at];
	if (++d->repeat > node->repeat)
		node->repeat = d->repeat;
	if (node->line != view->line)
		node->line = 0;
	if (view->guessed)
		node->guessed = true;
	return true;
}

int wp_tree_add(struct wp_tree *tree, const struct wp_profile_sample *sample,
		uint64_t ns)
{
	struct descent d = { .tree = tree, .ns = ns };
	uint32_t i;

	if (!ns)
		return 0;
	wp_view_walk(tree->profile, sample->key.stack, true, descend, &d);
	if (d.rc)
		return d.rc;
	i = wp_pairs_add(&tree->states, d.at,
			 wp_report_reason(&sample->key) << 8 |
				 sample->key.state);
	if (i == UINT32_MAX)
		return -ENOMEM;
	tree->states.v[i].self += ns;
	tree->nodes[d.at].self_ns += ns;
	tree->nodes[0].total_ns += ns;
	return 0;
}

static int smaller_first(const void *pa, const void *pb, void *ctx)
{
	const struct wp_tree_node *nodes = ctx;
	uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb;
	uint64_t a = nodes[ia].total_ns, b = nodes[ib].total_ns;

	if (a != b)
		return a < b ? -1 : 1;
	return (ia < ib) - (ia > ib);
}

static void link_node(struct wp_tree *tree, uint32_t i, uint64_t least_ns)
{
	struct wp_tree_node *node = &tree->nodes[i];
	struct wp_tree_node *parent = &tree->nodes[node->parent];

	if (node->total_ns >= least_ns) {
		node->next = parent->first;
		parent->first = i;
	} else if (!node->parent || parent->total_ns >= least_ns) {
		/* The top of a hidden subtree. */
		tree->nhidden++;
		tree->hidden_ns += node->total_ns;
	}
}

static int by_node(const void *pa, const void *pb)
{
	const struct wp_pair *a = pa, *b = pb;

	if (a->a != b->a)
		return a->a < b->a ? -1 : 1;
	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	return (a->b > b->b) - (a->b < b->b);
}

static void link_states(struct wp_tree *tree)
{
	struct wp_pairs *states = &tree->states;

	if (states->len)
		qsort(states->v, states->len, sizeof(*states->v), by_node);
	for (uint32_t i = states->len; i-- > 0;)
		tree->nodes[states->v[i].a].state = i + 1;
}

int wp_tree_link(struct wp_tree *tree, uint64_t least_ns)
{
	uint32_t n = tree->nnodes - 1;
	uint32_t *order = calloc((size_t)n + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		order[i] = i + 1;
	qsort_r(order, n, sizeof(*order), smaller_first, tree->nodes);
	for (uint32_t i = 0; i < n; i++)
		link_node(tree, order[i], least_ns);
	free(order);
	link_states(tree);
	return 0;
}
