/* SPDX-License-Identifier: Apache-2.0 */
/* load_bias.h - how far from its own addresses a file is loaded.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * The svma of a byte is its address as the file's program headers have it, by the
 * segment (PT_LOAD) that is mapped.  Segments may share a page of the file, more than
 * one of them may be executable, and any may come first: a mapping alone does not tell
 * which segment it shows, all mappings of the file together do.
 */
#ifndef WP_LOAD_BIAS_H
#define WP_LOAD_BIAS_H

#include "wallprof/elf_image.h"
#include "wallprof/maps.h"

/* Find the bias (avma - svma) of MAP, a region of MAPS that shows IMAGE: the one by which
 * most segments are mapped where they should be; of several that of a segment with the
 * rights of MAP, or with code if MAP has, or of the last.  False if MAP shows no
 * segment. */
bool wp_load_bias_find(const struct wp_elf_image *image,
		       const struct wp_maps *maps, const struct wp_map *map,
		       uint64_t *ret_bias);

#endif
