/* SPDX-License-Identifier: Apache-2.0 */
/* extent.h - where functions begin and end that no symbol's size tells.
 *
 * Layer: symbols.
 */
#ifndef WP_EXTENT_H
#define WP_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "wallprof/elf_image.h"

/* Find the function that holds SVMA by IMAGE's unwind info (LSB 5.0, 10.6.2):
 * *RET_START <= SVMA.  False where there is none. */
bool wp_extent_start(struct wp_elf_image *image, uint64_t svma,
		     uint64_t *ret_start);

/* Can the function at START of IMAGE, of unknown size, reach to SVMA?  Not where
 * unwind info has another function between the two, nor past a system call that
 * follows a return: what follows memset of musl is code without symbols. */
bool wp_extent_reaches(struct wp_elf_image *image, uint64_t start,
		       uint64_t svma);

#endif
