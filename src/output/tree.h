/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - a tree of calls, from samples. */
#ifndef WP_TREE_H
#define WP_TREE_H

#include "pairs.h"
#include "view.h"

struct wp_tree_node {
	/* Indices of nodes; 0: none. */
	uint32_t parent;
	uint32_t first;
	uint32_t next;
	/* Frames from the root, the first being 1. */
	uint32_t depth;
	/* How often in a row the function called itself, at most. */
	uint32_t repeat;
	uint64_t self_ns;
	uint64_t total_ns;
	/* A location and level with this function; LINE is 0 if its lines
	 * differ. */
	uint32_t loc;
	uint32_t level;
	uint32_t line;
	bool guessed;
	/* Index + 1 of its first element of STATES after wp_tree_link. */
	uint32_t state;
	/* For printing: columns of the guides of its children. */
	uint32_t indent;
};

struct wp_tree {
	const struct wp_profile *profile;
	/* Count a function that calls itself as one frame. */
	bool fold_recursion;
	/* nodes[0] is the root of all, [0..nnodes), owned. */
	struct wp_tree_node *nodes;
	uint32_t nnodes;
	uint32_t cap;
	/* (parent, view id), its index + 1 is the node's. */
	struct wp_pairs edges;
	/* (node, reason << 8 | state): SELF is the time; ordered by node, then
	 * largest first, by wp_tree_link. */
	struct wp_pairs states;
	/* Subtrees that wp_tree_link left out, and their time. */
	uint32_t nhidden;
	uint64_t hidden_ns;
};

WP_MUST_CHECK
int wp_tree_init(struct wp_tree *tree, const struct wp_profile *profile,
		 bool fold_recursion);
/* Add SAMPLE's stack with NS.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_tree_add(struct wp_tree *tree, const struct wp_profile_sample *sample,
		uint64_t ns);
/* Link the children of each node, largest first, without those under LEAST_NS.
 * Returns 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_tree_link(struct wp_tree *tree, uint64_t least_ns);
void wp_tree_clear(struct wp_tree *tree);

#endif
