/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - see wallprof/hash.h. */
#include "wallprof/hash.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

enum {
	/* Words that are hashed beside each other: a multiplication takes
	 * longer to finish than the next takes to begin. */
	LANES = 4,
	BLOCK = LANES * sizeof(uint64_t),
};

/* Of bits without pattern: the digits of pi. */
#define LASTING_KEY                                                            \
	{                                                                      \
		{ UINT64_C(0x243f6a8885a308d3),                                \
		  UINT64_C(0x13198a2e03707344) },                              \
			{ UINT64_C(0xa4093822299f31d0),                        \
			  UINT64_C(0x082efa98ec4e6c89) },                      \
	}

static const struct wp_hash_key lasting_key = LASTING_KEY;

struct wp_hash_key wp_hash_key = LASTING_KEY;

/* As the kernel gave each program 16 random bytes when it started (getauxval(3)). */
static void draw_from_start(struct wp_hash_key *key)
{
	const void *start = (const void *)getauxval(AT_RANDOM);
	uint64_t half[2] = { 0, 0 };

	if (start)
		memcpy(half, start, sizeof(half));
	for (unsigned int i = 0; i < 2; i++) {
		key->factor[i] = wp_hash_u64_by(&lasting_key, half[0] + i);
		key->summand[i] = wp_hash_u64_by(&lasting_key, half[1] + i);
	}
}

void wp_hash_draw_key(void)
{
	struct wp_hash_key key;

	/* It has none for a program that starts with the machine. */
	if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != (ssize_t)sizeof(key))
		draw_from_start(&key);
	wp_hash_key = key;
}

/* Low bits come to matter in the high half of a product, high bits in both. */
static uint64_t add_word(uint64_t lane, uint64_t word, uint64_t factor)
{
	unsigned __int128 product = (unsigned __int128)(lane ^ word) * factor;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_blocks(const struct wp_hash_key *key, uint64_t hash,
			    const char *p, size_t nblocks)
{
	/* Odd: a factor of 0 would forget all words. */
	const uint64_t factor = key->factor[1] | 1;
	uint64_t lane[LANES], word[LANES];

	for (unsigned int i = 0; i < LANES; i++)
		lane[i] = wp_hash_u64_by(key, hash + i);
	for (; nblocks; nblocks--, p += BLOCK) {
		memcpy(word, p, BLOCK);
		for (unsigned int i = 0; i < LANES; i++)
			lane[i] = add_word(lane[i], word[i], factor);
	}
	for (unsigned int i = 0; i < LANES; i++)
		hash = wp_hash_u64_by(key, hash ^ lane[i]);
	return hash;
}

static uint64_t hash_bytes(const struct wp_hash_key *key, uint64_t seed,
			   const void *data, size_t len)
{
	const char *p = data;
	uint64_t hash = seed ^ len, word;

	if (len >= 2 * BLOCK) {
		hash = hash_blocks(key, hash, p, len / BLOCK);
		p += len / BLOCK * BLOCK;
		len %= BLOCK;
	}
	for (; len >= sizeof(word); len -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		hash = wp_hash_u64_by(key, hash ^ word);
	}
	word = 0;
	if (len)
		memcpy(&word, p, len);
	return wp_hash_u64_by(key, hash ^ word);
}

uint64_t wp_hash_bytes(uint64_t seed, const void *data, size_t len)
{
	return hash_bytes(&wp_hash_key, seed, data, len);
}

uint64_t wp_hash_lasting(uint64_t seed, const void *data, size_t len)
{
	return hash_bytes(&lasting_key, seed, data, len);
}
