/* SPDX-License-Identifier: Apache-2.0 */
/* pages.h - large arrays of zeros of which little may be used.
 *
 * Layer: base.
 *
 * A page of one takes memory, and time, when it is first touched.  calloc(3)
 * writes zeros over all of a block that it has had before, which mebibytes are
 * once one of them was freed (mallopt(3), M_MMAP_THRESHOLD).
 */
#ifndef WP_PAGES_H
#define WP_PAGES_H

#include <stddef.h>

/* LEN bytes from the start of a page on; NULL: no memory. */
void *wp_pages_new(size_t len);

/* Safe on NULL.  LEN as in wp_pages_new. */
void wp_pages_free(void *pages, size_t len);

#endif
