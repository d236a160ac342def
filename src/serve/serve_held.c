/* SPDX-License-Identifier: Apache-2.0 */
/* serve_held.c - see serve_held.h. */
#include "serve_held.h"

/* Is HELD[I]'s the file of one before it? */
static bool is_shared(const struct wp_serve_held *held, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (held[k].bytes && held[k].inode == held[i].inode)
			return true;
	return false;
}

bool wp_serve_held_add(struct wp_serve_held *held, size_t n, size_t i,
		       uint64_t inode, uint64_t bytes)
{
	uint64_t sum = 0;

	held[i] = (struct wp_serve_held){ inode, bytes };
	for (size_t k = 0; k < n; k++)
		if (held[k].bytes && !is_shared(held, k))
			sum += held[k].bytes;
	if (sum <= WP_SERVE_HELD_BYTES)
		return true;
	held[i].bytes = 0;
	return false;
}
