/* SPDX-License-Identifier: Apache-2.0 */
/* call_nodes.c - see call_nodes.h. */
#include "call_nodes.h"

#include <errno.h>
#include <stdlib.h>

#include "wallprof/vec.h"

/* A stack that is being added, from its root to its leaf. */
struct descent {
	struct wp_call_nodes *nodes;
	/* Index + 1 of the node so far. */
	uint32_t at;
	int rc;
};

/* The index of VIEW's frame, made if new; UINT32_MAX: no memory. */
static uint32_t frame_of(struct wp_call_nodes *nodes,
			 const struct wp_view *view)
{
	uint32_t i = wp_pairs_add(&nodes->views, view->id, 0);

	if (i == UINT32_MAX ||
	    WP_VEC_ROOM(nodes->frames, nodes->nframes, nodes->cap_frames, 1))
		return UINT32_MAX;
	if (i == nodes->nframes)
		nodes->frames[nodes->nframes++] = (struct wp_call_frame){
			.loc = view->loc,
			.level = view->level,
			.line = view->line,
		};
	if (nodes->frames[i].line != view->line)
		nodes->frames[i].line = 0;
	return i;
}

static bool descend(void *ctx, const struct wp_view *view)
{
	struct descent *d = ctx;
	struct wp_call_nodes *nodes = d->nodes;
	uint32_t frame = frame_of(nodes, view);
	uint32_t i = frame == UINT32_MAX ?
			     frame :
			     wp_pairs_add(&nodes->edges, d->at, frame);

	if (i == UINT32_MAX || WP_VEC_ROOM(nodes->v, nodes->n, nodes->cap, 1)) {
		d->rc = -ENOMEM;
		return false;
	}
	if (i == nodes->n)
		nodes->v[nodes->n++] = (struct wp_call_node){
			.parent = d->at,
			.frame = frame,
		};
	d->at = i + 1;
	return true;
}

int wp_call_nodes_init(struct wp_call_nodes *nodes,
		       const struct wp_profile *profile,
		       enum wp_profile_kind kind)
{
	const struct wp_sample_set *set = &profile->sets[kind];
	struct descent d = { .nodes = nodes };

	*nodes = (struct wp_call_nodes){
		.profile = profile,
		.leaf = calloc((size_t)profile->nstacks + 1,
			       sizeof(*nodes->leaf)),
		.edges = WP_PAIRS_INIT,
		.views = WP_PAIRS_INIT,
	};
	if (!nodes->leaf)
		return -ENOMEM;
	for (uint32_t i = 0; i < set->nsamples && !d.rc; i++) {
		uint32_t stack = set->samples[i].key.stack;

		if (nodes->leaf[stack])
			continue;
		d.at = 0;
		wp_view_walk(profile, stack, true, descend, &d);
		nodes->leaf[stack] = d.at;
	}
	return d.rc;
}

void wp_call_nodes_clear(struct wp_call_nodes *nodes)
{
	free(nodes->v);
	free(nodes->frames);
	free(nodes->leaf);
	wp_pairs_clear(&nodes->edges);
	wp_pairs_clear(&nodes->views);
	*nodes = (struct wp_call_nodes){ 0 };
}

void wp_call_nodes_view(const struct wp_call_nodes *nodes, uint32_t i,
			struct wp_view *view)
{
	wp_view_set(nodes->profile, nodes->frames[i].loc,
		    nodes->frames[i].level, view);
	view->line = nodes->frames[i].line;
}
