/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - see wallprof/hash.h. */
#include "wallprof/hash.h"

#include <string.h>

enum {
	/* Words that are hashed beside each other: a multiplication takes
	 * longer to finish than the next takes to begin. */
	LANES = 4,
	BLOCK = LANES * sizeof(uint64_t),
};

/* Odd, without pattern: the golden ratio of 2^64. */
#define MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

/* Low bits come to matter in the high half of a product, high bits in both. */
static uint64_t add_word(uint64_t lane, uint64_t word)
{
	unsigned __int128 product = (unsigned __int128)(lane ^ word) *
				    MULTIPLIER;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_blocks(uint64_t hash, const char *p, size_t nblocks)
{
	uint64_t lane[LANES], word[LANES];

	for (unsigned int i = 0; i < LANES; i++)
		lane[i] = hash + i;
	for (; nblocks; nblocks--, p += BLOCK) {
		memcpy(word, p, BLOCK);
		for (unsigned int i = 0; i < LANES; i++)
			lane[i] = add_word(lane[i], word[i]);
	}
	for (unsigned int i = 0; i < LANES; i++)
		hash = wp_hash_u64(hash ^ lane[i]);
	return hash;
}

uint64_t wp_hash_bytes(uint64_t seed, const void *data, size_t len)
{
	const char *p = data;
	uint64_t hash = seed ^ len, word;

	if (len >= 2 * BLOCK) {
		hash = hash_blocks(hash, p, len / BLOCK);
		p += len / BLOCK * BLOCK;
		len %= BLOCK;
	}
	for (; len >= sizeof(word); len -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		hash = wp_hash_u64(hash ^ word);
	}
	word = 0;
	if (len)
		memcpy(&word, p, len);
	return wp_hash_u64(hash ^ word);
}
