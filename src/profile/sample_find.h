/* SPDX-License-Identifier: Apache-2.0 */
/* sample_find.h - finds a sample of a set by its key.
 *
 * Layer: profile.  Private to src/profile/.
 */
#ifndef WP_SAMPLE_FIND_H
#define WP_SAMPLE_FIND_H

#include <string.h>

#include "wallprof/hash.h"
#include "wallprof/profile.h"

/* The hash by which a sample with KEY is in the index of its set. */
static inline uint64_t wp_sample_hash(const struct wp_sample_key *key)
{
	return wp_hash_bytes(0, key, sizeof(*key));
}

/* The index of KEY's sample in SET; WP_INDEX_NONE: there is none. */
static inline uint32_t wp_sample_find(const struct wp_sample_set *set,
				      const struct wp_sample_key *key)
{
	return WP_INDEX_FIND(&set->index, wp_sample_hash(key), i,
			     !memcmp(&set->samples[i].key, key, sizeof(*key)));
}

#endif
