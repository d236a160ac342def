/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - see pairs.h. */
#include "pairs.h"

#include <stdbool.h>
#include <stdlib.h>

#include "wallprof/hash.h"
#include "wallprof/vec.h"

static uint32_t *find(const struct wp_pairs *pairs, uint64_t a, uint64_t b)
{
	uint32_t mask = pairs->nslots - 1;
	uint32_t i = (uint32_t)wp_hash_u64(wp_hash_u64(a) ^ b) & mask;

	for (;; i = (i + 1) & mask) {
		uint32_t *slot = &pairs->slot[i];

		if (!*slot ||
		    (pairs->v[*slot - 1].a == a && pairs->v[*slot - 1].b == b))
			return slot;
	}
}

static bool grow(struct wp_pairs *pairs)
{
	struct wp_pairs new = *pairs;

	if (pairs->len < pairs->nslots / 2)
		return true;
	new.nslots = pairs->nslots ? 2 * pairs->nslots : 64;
	new.slot = new.nslots ? calloc(new.nslots, sizeof(*new.slot)) : NULL;
	if (!new.slot)
		return false;
	for (uint32_t i = 0; i < pairs->len; i++)
		*find(&new, pairs->v[i].a, pairs->v[i].b) = i + 1;
	free(pairs->slot);
	pairs->slot = new.slot;
	pairs->nslots = new.nslots;
	return true;
}

uint32_t wp_pairs_add(struct wp_pairs *pairs, uint64_t a, uint64_t b)
{
	uint32_t *slot;

	if (!grow(pairs) || WP_VEC_ROOM(pairs->v, pairs->len, pairs->cap, 1))
		return UINT32_MAX;
	slot = find(pairs, a, b);
	if (!*slot) {
		pairs->v[pairs->len] = (struct wp_pair){
			.a = a,
			.b = b,
		};
		*slot = ++pairs->len;
	}
	return *slot - 1;
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
	free(pairs->slot);
	*pairs = (struct wp_pairs)WP_PAIRS_INIT;
}
