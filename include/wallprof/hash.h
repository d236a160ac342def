/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - the hash functions of all tables.
 *
 * Layer: base.
 */
#ifndef WP_HASH_H
#define WP_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Mix X so that every bit of it reaches every bit of the result. */
static inline uint64_t wp_hash_u64(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 32;
}

/* Hash LEN bytes, going on from SEED. */
uint64_t wp_hash_bytes(uint64_t seed, const void *data, size_t len);

#endif
