/* SPDX-License-Identifier: Apache-2.0 */
/* ids.h - ids in the order of first use, dense from 1. */
#ifndef WP_IDS_H
#define WP_IDS_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "wallprof/err.h"

/* Ids of the used elements of an array. */
struct wp_ids {
	/* id[index]; 0: not used.  Owned. */
	uint32_t *id;
	/* index[id - 1], [0..n); owned. */
	uint32_t *index;
	uint32_t n;
};

/* For N elements.  0 or -ENOMEM. */
WP_MUST_CHECK
static inline int wp_ids_init(struct wp_ids *ids, uint32_t n)
{
	ids->id = calloc((size_t)n + 1, sizeof(*ids->id));
	ids->index = calloc((size_t)n + 1, sizeof(*ids->index));
	return ids->id && ids->index ? 0 : -ENOMEM;
}

static inline void wp_ids_clear(struct wp_ids *ids)
{
	free(ids->id);
	free(ids->index);
}

/* The id of element INDEX, given now if it has none. */
static inline uint32_t wp_ids_of(struct wp_ids *ids, uint32_t index)
{
	if (!ids->id[index]) {
		ids->index[ids->n++] = index;
		ids->id[index] = ids->n;
	}
	return ids->id[index];
}

#endif
