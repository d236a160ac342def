/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - the hash functions of all tables.
 *
 * Layer: base.
 *
 * What is hashed is mostly the target's: names, addresses, build-ids.  Whoever knows
 * the function could choose them so that all fall on one place of a table, and a table
 * of n would take n^2 steps.  So each process has a key of its own.
 */
#ifndef WP_HASH_H
#define WP_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Numbers of 128 bits, low half first. */
struct wp_hash_key {
	uint64_t factor[2];
	uint64_t summand[2];
};

/* That of this process: the same in all of them until wp_hash_draw_key. */
extern struct wp_hash_key wp_hash_key;

/* Draw the key from the kernel's random numbers: at the start of a program, before
 * anything is hashed. */
void wp_hash_draw_key(void);

/* Mix X so that every bit of it reaches every bit of the result.  Of two X that were
 * chosen without the key, low halves of the results are the same as often as of random
 * numbers: multiply-shift, (factor X + summand) / 2^64 mod 2^64, is strongly universal
 * (Dietzfelbinger 1996); the steps behind it can be undone. */
static inline uint64_t wp_hash_u64_by(const struct wp_hash_key *key, uint64_t x)
{
	unsigned __int128 summand = (unsigned __int128)key->summand[1] << 64 |
				    key->summand[0];
	unsigned __int128 sum = (unsigned __int128)key->factor[0] * x + summand;

	x = (uint64_t)(sum >> 64) + key->factor[1] * x;
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 32;
}

static inline uint64_t wp_hash_u64(uint64_t x)
{
	return wp_hash_u64_by(&wp_hash_key, x);
}

/* Hash LEN bytes, going on from SEED. */
uint64_t wp_hash_bytes(uint64_t seed, const void *data, size_t len);

/* The same in every process, for names of files that outlive it; not for tables. */
uint64_t wp_hash_lasting(uint64_t seed, const void *data, size_t len);

#endif
