/* SPDX-License-Identifier: Apache-2.0 */
/* random.h - pseudo-random numbers, for jitter, rounding and fairness.
 *
 * Layer: base.
 */
#ifndef WP_RANDOM_H
#define WP_RANDOM_H

#include <stdint.h>

struct wp_random {
	/* Any number: where the sequence begins, and then is. */
	uint64_t state;
};

/* Mix X so that every bit of it reaches every bit of the result; no other X has the
 * same. */
static inline uint64_t wp_random_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 32;
}

/* The next number of the sequence: a Weyl sequence through a mixer. */
static inline uint64_t wp_random_next(struct wp_random *random)
{
	random->state += UINT64_C(0x9e3779b97f4a7c15);
	return wp_random_mix(random->state);
}

#endif
