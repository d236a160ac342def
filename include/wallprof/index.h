/* SPDX-License-Identifier: Apache-2.0 */
/* index.h - finds the elements of an array by their hashes.
 *
 * Layer: base.
 */
#ifndef WP_INDEX_H
#define WP_INDEX_H

#include <stdint.h>

#include "wallprof/err.h"

/* "Not in the index". */
#define WP_INDEX_NONE UINT32_MAX

struct wp_index_slot {
	/* The low half of the element's hash. */
	uint32_t hash;
	/* The element's position in its array plus 1; 0: the slot is free. */
	uint32_t element;
};

struct wp_index {
	/* Open addressing: v[0..cap), at most half of it used; owned.  CAP is 0
	 * or a power of two. */
	struct wp_index_slot *v;
	uint32_t len;
	uint32_t cap;
};

#define WP_INDEX_INIT                                                          \
	{                                                                      \
		0                                                              \
	}

/* Enter the element at position I, whose hash is HASH.  Returns 0, or -ENOMEM
 * and INDEX is as it was. */
WP_MUST_CHECK
int wp_index_add(struct wp_index *index, uint64_t hash, uint32_t i);
/* Make room for N elements in an empty INDEX: entering them cannot fail.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_index_reserve(struct wp_index *index, uint32_t n);
/* Forget all elements, free all memory. */
void wp_index_clear(struct wp_index *index);

/* The position of an element with hash HASH for which the expression IS_SAME
 * holds, in which I, declared here, is its position; WP_INDEX_NONE if there is
 * none. */
#define WP_INDEX_FIND(index, hash_of_key, i, is_same)                          \
	({                                                                     \
		const struct wp_index *index_ = (index);                       \
		uint32_t index_hash_ = (uint32_t)(hash_of_key);                \
		uint32_t index_at_ = index_hash_,                              \
			 index_found_ = WP_INDEX_NONE;                         \
		while (index_->cap) {                                          \
			struct wp_index_slot index_slot_ =                     \
				index_->v[index_at_++ & (index_->cap - 1)];    \
			uint32_t i = index_slot_.element - 1;                  \
			if (!index_slot_.element)                              \
				break;                                         \
			if (index_slot_.hash == index_hash_ && (is_same)) {    \
				index_found_ = i;                              \
				break;                                         \
			}                                                      \
		}                                                              \
		index_found_;                                                  \
	})

#endif
