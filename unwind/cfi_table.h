/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_table.h - find the FDE of an address.
 *
 * Layer: unwind.  Private to unwind/.
 */
#ifndef WP_CFI_TABLE_H
#define WP_CFI_TABLE_H

#include "cfi.h"
#include "wallprof/index.h"

/* FDEs sorted by address, made where the file has no search table. */
struct wp_cfi_index {
	/* Owned: v[0..len). */
	struct wp_cfi_index_entry *v;
	size_t len;
	/* It was made, or cannot be. */
	bool is_made;
};

/* The FDEs of one image. */
struct wp_cfi_table {
	/* Range size 0: absent. */
	struct wp_cfi_section eh_frame;
	struct wp_cfi_section debug_frame;
	/* The search table of .eh_frame_hdr: its file offset, its number of
	 * entries, and the address that entries count from. */
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
 * A section without a search table is read whole, once, and indexed: slow, and
 * only if MAY_INDEX.
 * Returns 0; -ENOENT if there is none; -EBADMSG or -ENOTSUP if the FDE that
 * starts last before SVMA is not usable; -EAGAIN if the section must be indexed
 * first and may not; -ENOMEM.
 */
WP_MUST_CHECK
int wp_cfi_table_find(struct wp_cfi_table *table, uint64_t svma, bool may_index,
		      struct wp_cfi_fde *ret);

/* The address of the FDE in .eh_frame that starts last at or before SVMA; it is
 * not parsed and may end before SVMA.  MAY_INDEX and errors as above.
 */
WP_MUST_CHECK
int wp_cfi_table_find_last(struct wp_cfi_table *table, uint64_t svma,
			   bool may_index, uint64_t *ret_fde_svma);

/* The tables of all images that were asked for; zeros: none yet. */
struct wp_cfi_tables {
	/* v[0..len), each owned. */
	struct wp_cfi_table **v;
	uint32_t len;
	uint32_t cap;
	struct wp_index by_image;
};

/* The table of IMAGE, made when first asked for; NULL: no memory. */
struct wp_cfi_table *wp_cfi_tables_find_or_add(struct wp_cfi_tables *tables,
					       struct wp_elf_image *image);

void wp_cfi_tables_clear(struct wp_cfi_tables *tables);

#endif
