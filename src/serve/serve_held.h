/* SPDX-License-Identifier: Apache-2.0 */
/* serve_held.h - answers that clients have not taken yet, which are memory.
 *
 * Layer: serve.  Private to src/serve/.
 */
#ifndef WP_SERVE_HELD_H
#define WP_SERVE_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most of all together. */
#define WP_SERVE_HELD_BYTES (UINT64_C(512) << 20)

/* Of one client; BYTES 0: nothing is held for it. */
struct wp_serve_held {
	/* Several clients may have the same. */
	uint64_t inode;
	uint64_t bytes;
};

/* Note that HELD[I], of N, gets a file of INODE and BYTES.  False: with those of the
 * others that is too much, and it gets none. */
bool wp_serve_held_add(struct wp_serve_held *held, size_t n, size_t i,
		       uint64_t inode, uint64_t bytes);

#endif
