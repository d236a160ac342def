/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - see wallprof/index.h. */
#include "wallprof/index.h"

#include <errno.h>
#include <stdlib.h>

enum { CAP_MIN = 64 };

static void put(struct wp_index *index, struct wp_index_slot slot)
{
	uint32_t at = slot.hash;

	while (index->v[at & (index->cap - 1)].element)
		at++;
	index->v[at & (index->cap - 1)] = slot;
}

static int double_slots(struct wp_index *index)
{
	struct wp_index bigger = {
		.len = index->len,
		.cap = index->cap ? 2 * index->cap : CAP_MIN,
	};

	/* Twice 2^31 is 0. */
	bigger.v = bigger.cap ? calloc(bigger.cap, sizeof(*bigger.v)) : NULL;
	if (!bigger.v)
		return -ENOMEM;
	for (uint32_t at = 0; at < index->cap; at++)
		if (index->v[at].element)
			put(&bigger, index->v[at]);
	free(index->v);
	*index = bigger;
	return 0;
}

int wp_index_add(struct wp_index *index, uint64_t hash, uint32_t i)
{
	if (index->len >= index->cap / 2 && double_slots(index))
		return -ENOMEM;
	put(index, (struct wp_index_slot){ (uint32_t)hash, i + 1 });
	index->len++;
	return 0;
}

int wp_index_reserve(struct wp_index *index, uint32_t n)
{
	uint64_t cap = CAP_MIN;

	while (cap / 2 <= n)
		cap *= 2;
	index->v = cap <= UINT32_MAX ? calloc(cap, sizeof(*index->v)) : NULL;
	if (!index->v)
		return -ENOMEM;
	index->cap = (uint32_t)cap;
	return 0;
}

void wp_index_clear(struct wp_index *index)
{
	free(index->v);
	*index = (struct wp_index)WP_INDEX_INIT;
}
