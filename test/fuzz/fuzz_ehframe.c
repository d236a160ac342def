/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_ehframe.c - .eh_frame_hdr, its table, and sections without a table.
 *
 * Two bytes say how long .eh_frame_hdr is, two where .eh_frame begins, two
 * where .debug_frame does (and .eh_frame ends, at its end if 0); then the file.
 *
 * Layer: unwind.
 */
#include "../../unwind/cfi_table.h"
#include "fuzz_image.h"

enum { SVMA = 0x2000, LOOKUPS = 24 };

static struct wp_elf_range range_of(uint64_t from, uint64_t to, uint64_t svma)
{
	return to > from ?
		       (struct wp_elf_range){ svma + from, from, to - from } :
		       (struct wp_elf_range){ 0 };
}

static void look_up(struct wp_cfi_table *table, uint64_t svma)
{
	struct wp_cfi_fde fde;
	struct wp_cfi_row row;
	uint64_t fde_svma;

	if (!wp_cfi_table_find(table, svma, true, &fde)) {
		FUZZ_CHECK(svma >= fde.start_svma && svma < fde.end_svma);
		(void)!wp_cfi_eval(&fde, svma, &row);
	}
	(void)!wp_cfi_table_find_last(table, svma, true, &fde_svma);
}

/* Ask for addresses that may be those of functions: words of the file, as they
 * are and as differences from where they stand. */
static void look_up_all(struct wp_cfi_table *table, struct wp_elf_image *image)
{
	uint64_t step = image->size / LOOKUPS / 4 * 4 + 4;

	for (uint64_t off = 0; off + 4 <= image->size; off += step) {
		int32_t word;

		memcpy(&word, image->data + off, sizeof(word));
		look_up(table, (uint64_t)(int64_t)word);
		look_up(table, SVMA + (uint64_t)(int64_t)word);
		look_up(table, SVMA + off + (uint64_t)(int64_t)word);
	}
	for (uint64_t svma = 0x1000; svma < 0x1100; svma += 0x20)
		look_up(table, svma);
	look_up(table, 0);
	look_up(table, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wp_reader r = wp_reader_of(data, size);
	struct wp_cfi_table table;
	struct wp_elf_image image;
	uint64_t hdr, eh, debug;

	hdr = wp_read_u16(&r);
	eh = wp_read_u16(&r);
	debug = wp_read_u16(&r);
	if (r.failed ||
	    !fuzz_image_make(&image, r.pos, wp_reader_left(&r), SVMA))
		return 0;
	image.eh_frame_hdr = range_of(0, hdr, SVMA);
	image.eh_frame = range_of(eh, debug ? debug : image.size, SVMA);
	if (debug)
		image.debug_frame = range_of(debug, image.size, -debug);
	wp_cfi_table_init(&table, &image);
	look_up_all(&table, &image);
	wp_cfi_table_clear(&table);
	/* The same without section headers. */
	image.eh_frame = (struct wp_elf_range){ 0 };
	wp_cfi_table_init(&table, &image);
	look_up_all(&table, &image);
	wp_cfi_table_clear(&table);
	fuzz_image_free(&image);
	return 0;
}
