/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_gotable.c - .gopclntab, and rows made of it.
 *
 * The input is the section; its first bytes are the program's code as well.
 *
 * Layer: unwind.
 */
#include "../../unwind/go_row.h"
#include "fuzz_image.h"
#include "wallprof/go_module.h"

enum { TEXT = 0x401000, LOOKUPS = 256, FUNCS = 256 };

static void look_up(const struct wp_go_table *table, uint64_t svma)
{
	const uint64_t image_size = table->image->size;
	struct wp_go_func func;
	const char *text;
	int32_t value;
	uint32_t size;

	if (wp_go_table_find(table, svma, &func))
		return;
	FUZZ_CHECK(svma >= func.start_svma && svma < func.end_svma);
	(void)!wp_go_table_frame(table, &func, svma, &size);
	if (!wp_go_table_value(table, &func, func.files_off, svma, &value))
		(void)wp_go_table_file(table, &func, (uint32_t)value);
	(void)!wp_go_table_value(table, &func, func.inlined_off, svma, &value);
	text = wp_go_table_text(table, func.name_off);
	FUZZ_CHECK(!text || strlen(text) < image_size);
}

/* Functions by their numbers, and in their middle. */
static void look_up_all(const struct wp_go_table *table)
{
	for (uint32_t i = 0; i < table->nfuncs && i < FUNCS; i++) {
		struct wp_go_func func;

		if (wp_go_table_func(table, i, &func))
			continue;
		FUZZ_CHECK(func.start_svma < func.end_svma);
		look_up(table, func.start_svma);
		look_up(table, func.start_svma +
				       (func.end_svma - func.start_svma) / 2);
	}
	look_up(table, 0);
	look_up(table, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wp_elf_image image;
	struct wp_go_module module;
	struct wp_go_table table;

	if (!size || !fuzz_image_make(&image, data, size, TEXT))
		return 0;
	image.go_table = (struct wp_elf_range){ TEXT, 0, size };
	image.go_module = (struct wp_elf_range){ TEXT, size / 2, size / 2 };
	image.rela = (struct wp_elf_range){ 0, size / 4, size / 4 };
	image.go_buildinfo = (struct wp_elf_range){ TEXT, 0, size / 2 };
	image.go_data[0] = (struct wp_elf_range){ TEXT, 0, size };
	if (!wp_go_table_open(&table, &image))
		look_up_all(&table);
	if (!wp_go_table_open(&table, &image) &&
	    !wp_go_module_read(&module, &table))
		FUZZ_CHECK(strlen(module.version) < sizeof(module.version));
	for (uint64_t svma = TEXT; svma < TEXT + LOOKUPS; svma += 3) {
		struct wp_cfi_row row;

		if (wp_go_row(&image, svma, &row) == WP_STEP_OK)
			FUZZ_CHECK(row.cfa_off >= 8);
	}
	fuzz_image_free(&image);
	return 0;
}
