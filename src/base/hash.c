/* hash.c - see wallprof/hash.h. */
#include "wallprof/hash.h"

#include <string.h>

uint64_t wp_hash_bytes(uint64_t seed, const void *data, size_t len)
{
	const char *p = data;
	uint64_t hash = seed ^ len, word;

	for (; len >= sizeof(word); len -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		hash = wp_hash_u64(hash ^ word);
	}
	word = 0;
	if (len)
		memcpy(&word, p, len);
	return wp_hash_u64(hash ^ word);
}
