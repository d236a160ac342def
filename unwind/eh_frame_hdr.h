/* SPDX-License-Identifier: Apache-2.0 */
/* eh_frame_hdr.h - find the FDE of an address in one image.
 *
 * Layer: unwind.  Private to unwind/.
 */
#ifndef WP_EH_FRAME_HDR_H
#define WP_EH_FRAME_HDR_H

#include "cfi.h"

/* FDEs sorted by address, made where the file has no table. */
struct wp_cfi_index {
	/* Owned: v[0..len). */
	struct wp_cfi_index_entry *v;
	size_t len;
	/* It was made, or cannot be. */
	bool is_made;
};

struct wp_cfi_table {
	/* Range size 0: absent. */
	struct wp_cfi_section eh_frame;
	struct wp_cfi_section debug_frame;
	/* The search table: file offset, entries, what these count from. */
	uint64_t table_off;
	uint64_t table_len;
	uint64_t hdr_svma;
	struct wp_cfi_index eh_index;
	struct wp_cfi_index debug_index;
};

/* IMAGE is borrowed.  Looks at the header only. */
void wp_cfi_table_init(struct wp_cfi_table *table, struct wp_elf_image *image);

/* Safe on zeros. */
void wp_cfi_table_clear(struct wp_cfi_table *table);

/* The FDE whose range holds SVMA: .eh_frame first, then .debug_frame.
 *
 * Allocates only to make an index, once, for sections without a table.
 * Returns 0; -ENOENT if there is none; -EBADMSG or -ENOTSUP if the one that
 * seems to be it is not usable; -ENOMEM.
 */
WP_MUST_CHECK
int wp_cfi_table_find(struct wp_cfi_table *table, uint64_t svma,
		      struct wp_cfi_fde *ret);

#endif
