/* SPDX-License-Identifier: Apache-2.0 */
/* fde.h - find the frame description of a function in an ELF image.
 *
 * Layer: unwind.  Private to unwind/.
 */
#ifndef WP_FDE_H
#define WP_FDE_H

#include <stdbool.h>
#include <stdint.h>

#include "wallprof/elf_image.h"

/* Indexes made of images that came without one. */
struct wp_fde_cache;

/* NULL when there is no memory. */
struct wp_fde_cache *wp_fde_cache_new(void);

/* Accepts NULL. */
void wp_fde_cache_free(struct wp_fde_cache *cache);

/* The last FDE that starts at or below SVMA, which may end below it too: by
 * the search table of .eh_frame_hdr or, where that is absent, by an index of
 * .eh_frame that is made once and kept in CACHE for as long as IMAGE lives.
 */
bool wp_fde_find(struct wp_fde_cache *cache, struct wp_elf_image *image,
		 uint64_t svma, uint64_t *ret_fde_svma);

#endif
