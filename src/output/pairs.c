/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - see pairs.h. */
#include "pairs.h"

#include <stdlib.h>

#include "wallprof/hash.h"
#include "wallprof/vec.h"

uint32_t wp_pairs_add(struct wp_pairs *pairs, uint64_t a, uint64_t b)
{
	uint64_t hash = wp_hash_u64(wp_hash_u64(a) ^ b);
	uint32_t at = WP_INDEX_FIND(&pairs->index, hash, i,
				    pairs->v[i].a == a && pairs->v[i].b == b);

	if (at != WP_INDEX_NONE)
		return at;
	if (WP_VEC_ROOM(pairs->v, pairs->len, pairs->cap, 1) ||
	    wp_index_add(&pairs->index, hash, pairs->len))
		return UINT32_MAX;
	pairs->v[pairs->len] = (struct wp_pair){ .a = a, .b = b };
	return pairs->len++;
}

static int larger_first(const void *pa, const void *pb)
{
	const struct wp_pair *a = pa, *b = pb;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	if (a->a != b->a)
		return a->a < b->a ? -1 : 1;
	return (a->b > b->b) - (a->b < b->b);
}

void wp_pairs_sort(struct wp_pairs *pairs)
{
	if (pairs->len)
		qsort(pairs->v, pairs->len, sizeof(*pairs->v), larger_first);
}

void wp_pairs_clear(struct wp_pairs *pairs)
{
	free(pairs->v);
	wp_index_clear(&pairs->index);
	*pairs = (struct wp_pairs)WP_PAIRS_INIT;
}
