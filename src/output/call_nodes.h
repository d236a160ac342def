/* SPDX-License-Identifier: Apache-2.0 */
/* call_nodes.h - the stacks of a profile as one tree of calls by function. */
#ifndef WP_CALL_NODES_H
#define WP_CALL_NODES_H

#include "pairs.h"
#include "view.h"

/* A function, or an address or a text that stands for one. */
struct wp_call_frame {
	/* A location and level with it; LINE is 0 if its lines differ. */
	uint32_t loc;
	uint32_t level;
	uint32_t line;
};

struct wp_call_node {
	/* Index + 1 of the caller's node, which is a lower one; 0: a root. */
	uint32_t parent;
	/* Index of frames[]. */
	uint32_t frame;
};

struct wp_call_nodes {
	const struct wp_profile *profile;
	/* Owned. */
	struct wp_call_node *v;
	uint32_t n;
	uint32_t cap;
	struct wp_call_frame *frames;
	uint32_t nframes;
	uint32_t cap_frames;
	/* By the profile's stack: index + 1 of the node of its leaf; 0: no
	 * sample has it, or it is empty.  Owned. */
	uint32_t *leaf;
	/* (node's parent, frame) and (view id, 0): their index is the node's and
	 * the frame's. */
	struct wp_pairs edges;
	struct wp_pairs views;
};

/* Make the nodes of the samples of KIND.  0 or -ENOMEM; the caller clears NODES in
 * both cases. */
WP_MUST_CHECK
int wp_call_nodes_init(struct wp_call_nodes *nodes,
		       const struct wp_profile *profile,
		       enum wp_profile_kind kind);
void wp_call_nodes_clear(struct wp_call_nodes *nodes);

/* Set VIEW to that of frame I. */
void wp_call_nodes_view(const struct wp_call_nodes *nodes, uint32_t i,
			struct wp_view *view);

#endif
