/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the FDE of an address.  Layer: unwind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "../../unwind/cfi_table.h"
#include "cfi_bytes.h"

enum { SMALL_SIZE = sizeof(small_hdr) + sizeof(small_eh_frame) };

/* svma, and the function there: 0 is none.  See small_hdr. */
static const struct {
	uint64_t svma;
	uint64_t start;
	uint64_t end;
} functions[] = {
	{ 0x0fff, 0, 0 },
	{ 0x1000, 0x1000, 0x1020 },
	{ 0x101f, 0x1000, 0x1020 },
	{ 0x1020, 0x1020, 0x104f },
	{ 0x104e, 0x1020, 0x104f },
	/* Between functions. */
	{ 0x104f, 0, 0 },
	{ 0x1050, 0x1050, 0x106c },
	{ 0x106c, 0, 0 },
	{ 0x1070, 0x1070, 0x10be },
	{ 0x10bd, 0x1070, 0x10be },
	{ 0x10be, 0, 0 },
	{ 0, 0, 0 },
	{ UINT64_MAX, 0, 0 },
};

/* The last function that starts at SVMA or before starts at START. */
static void assert_last(struct wp_cfi_table *table, uint64_t svma,
			uint64_t start)
{
	struct wp_cfi_fde fde;
	uint64_t fde_svma;

	assert_int_equal(wp_cfi_table_find_last(table, svma, true, &fde_svma),
			 0);
	assert_int_equal(wp_cfi_parse_fde(&table->eh_frame,
					  fde_svma - table->eh_frame.range.svma,
					  &fde),
			 0);
	assert_int_equal(fde.start_svma, start);
}

static void assert_functions(struct wp_cfi_table *table)
{
	uint64_t fde_svma;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		struct wp_cfi_fde fde;
		int rc = wp_cfi_table_find(table, functions[i].svma, true,
					   &fde);

		if (rc != (functions[i].start ? 0 : -ENOENT))
			print_error("at %#lx: %d\n",
				    (unsigned long)functions[i].svma, rc);
		assert_int_equal(rc, functions[i].start ? 0 : -ENOENT);
		if (rc)
			continue;
		assert_int_equal(fde.start_svma, functions[i].start);
		assert_int_equal(fde.end_svma, functions[i].end);
		assert_last(table, functions[i].svma, functions[i].start);
	}
	/* Between functions, before the first, behind the last. */
	assert_last(table, 0x104f, 0x1020);
	assert_last(table, 0x10be, 0x1070);
	assert_int_equal(wp_cfi_table_find_last(table, 0xfff, true, &fde_svma),
			 -ENOENT);
}

static void by_the_search_table(void **state)
{
	struct wp_elf_image image = small_image(SMALL_SIZE);
	struct wp_cfi_table table;

	(void)state;
	wp_cfi_table_init(&table, &image);
	assert_int_equal(table.table_len, 4);
	assert_functions(&table);
	assert_false(table.eh_index.is_made);
	wp_cfi_table_clear(&table);
	image_free(&image);
}

/* A vDSO has no section headers: the header tells where .eh_frame starts. */
static void without_section_headers(void **state)
{
	struct wp_elf_image image = small_image(SMALL_SIZE);
	struct wp_cfi_table table;

	(void)state;
	image.eh_frame.size = 0;
	wp_cfi_table_init(&table, &image);
	assert_int_equal(table.table_len, 4);
	assert_int_equal(table.eh_frame.range.svma, 0x2030);
	assert_functions(&table);
	wp_cfi_table_clear(&table);
	image_free(&image);
}

/* A static musl program has .eh_frame alone.  The image's code must lie at or
 * above its first segment. */
static void by_an_index(void **state)
{
	struct wp_elf_image image = small_image(SMALL_SIZE);
	struct wp_cfi_table table;

	(void)state;
	image.loads[0].svma = 0x1000;
	image.eh_frame_hdr.size = 0;
	wp_cfi_table_init(&table, &image);
	assert_int_equal(table.table_len, 0);
	assert_functions(&table);
	/* Made once, sorted although the section is not. */
	assert_true(table.eh_index.is_made);
	assert_int_equal(table.eh_index.len, 4);
	wp_cfi_table_clear(&table);
	wp_cfi_table_clear(&table);
	image_free(&image);
}

static void a_section_is_indexed_only_if_it_may_be(void **state)
{
	struct wp_elf_image image = small_image(SMALL_SIZE);
	struct wp_cfi_table table;
	struct wp_cfi_fde fde;
	uint64_t fde_svma;

	(void)state;
	image.loads[0].svma = 0x1000;
	image.eh_frame_hdr.size = 0;
	wp_cfi_table_init(&table, &image);
	assert_int_equal(wp_cfi_table_find(&table, 0x1030, false, &fde),
			 -EAGAIN);
	assert_int_equal(
		wp_cfi_table_find_last(&table, 0x1030, false, &fde_svma),
		-EAGAIN);
	assert_false(table.eh_index.is_made);
	assert_int_equal(wp_cfi_table_find(&table, 0x1030, true, &fde), 0);
	assert_int_equal(wp_cfi_table_find(&table, 0x1030, false, &fde), 0);
	assert_int_equal(wp_cfi_table_find(&table, 0x104f, false, &fde),
			 -ENOENT);
	wp_cfi_table_clear(&table);
	image_free(&image);
}

/* The table of another image is another one, however many there are. */
static void every_image_has_its_table(void **state)
{
	enum { N = 100 };
	static struct wp_elf_image images[N];
	struct wp_cfi_tables tables = { 0 };
	struct wp_cfi_table *first[N];

	(void)state;
	for (size_t i = 0; i < N; i++) {
		first[i] = wp_cfi_tables_find_or_add(&tables, &images[i]);
		assert_ptr_equal(first[i]->eh_frame.image, &images[i]);
	}
	for (size_t i = 0; i < N; i++)
		assert_ptr_equal(wp_cfi_tables_find_or_add(&tables, &images[i]),
				 first[i]);
	wp_cfi_tables_clear(&tables);
	wp_cfi_tables_clear(&tables);
}

/* Table encodings that no linker writes: by the index as well, to where the
 * segment ends. */
static void a_header_without_a_table(void **state)
{
	static const uint8_t encodings[][2] = {
		/* Count omitted, entries not datarel | sdata4. */
		{ 0xff, 0x3b },
		{ 0x03, 0xff },
		{ 0x03, 0x1b },
		{ 0x03, 0x3c },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(encodings) / 2; i++) {
		struct wp_elf_image image = small_image(SMALL_SIZE);
		struct wp_cfi_table table;

		image.data[2] = encodings[i][0];
		image.data[3] = encodings[i][1];
		image.eh_frame.size = 0;
		wp_cfi_table_init(&table, &image);
		assert_int_equal(table.table_len, 0);
		/* The index counts from the first segment, at 0x2000 here:
		 * functions below it are not listed. */
		image.loads[1] = image.loads[0];
		image.loads[0] = (struct wp_elf_load){ .svma = 0x1000 };
		image.nloads = 2;
		assert_functions(&table);
		wp_cfi_table_clear(&table);
		image_free(&image);
	}
}

/* Version 4 CIE, 32-bit DWARF, one function; a tombstone of a dropped one. */
static struct wp_elf_image debug_frame_image(void)
{
	struct bytes b = { .len = 0 };
	struct wp_elf_image image;
	size_t off = 0;

	begin_entry(&b);
	put(&b, UINT32_MAX, 4);
	put_bytes(&b, "\x04\0\x08\0\x01\x78\x10\x0c\x07\x08\x90\x01", 12);
	end_entry(&b);
	for (uint64_t start = 0; start <= 0x1200; start += 0x1200) {
		begin_entry(&b);
		put(&b, off, 4);
		put(&b, start, 8);
		put(&b, 0x20, 8);
		end_entry(&b);
	}
	image = image_of(b.v, b.len, 0x1000);
	image.debug_frame = (struct wp_elf_range){ 0, 0, b.len };
	return image;
}

static void debug_frame_alone(void **state)
{
	struct wp_elf_image image = debug_frame_image();
	struct wp_cfi_table table;
	struct wp_cfi_fde fde;

	(void)state;
	wp_cfi_table_init(&table, &image);
	assert_int_equal(wp_cfi_table_find(&table, 0x121f, true, &fde), 0);
	assert_int_equal(fde.start_svma, 0x1200);
	assert_true(fde.section->is_debug);
	assert_int_equal(wp_cfi_table_find(&table, 0x1220, true, &fde),
			 -ENOENT);
	assert_int_equal(wp_cfi_table_find(&table, 0x10, true, &fde), -ENOENT);
	assert_int_equal(table.debug_index.len, 1);
	wp_cfi_table_clear(&table);
	image_free(&image);
}

static void debug_frame_after_eh_frame(void **state)
{
	struct wp_elf_image debug = debug_frame_image(), image;
	uint8_t both[SMALL_SIZE + 256];
	struct wp_elf_image small = small_image(SMALL_SIZE);
	struct wp_cfi_table table;
	struct wp_cfi_fde fde;

	(void)state;
	memcpy(both, small.data, SMALL_SIZE);
	memcpy(both + SMALL_SIZE, debug.data, debug.size);
	image = image_of(both, SMALL_SIZE + debug.size, SMALL_SVMA);
	image.eh_frame_hdr = small.eh_frame_hdr;
	image.eh_frame = small.eh_frame;
	image.debug_frame = (struct wp_elf_range){ 0, SMALL_SIZE, debug.size };
	image.loads[0].svma = 0x1000;
	wp_cfi_table_init(&table, &image);
	assert_int_equal(wp_cfi_table_find(&table, 0x1030, true, &fde), 0);
	assert_false(fde.section->is_debug);
	assert_false(table.debug_index.is_made);
	assert_int_equal(wp_cfi_table_find(&table, 0x1210, true, &fde), 0);
	assert_true(fde.section->is_debug);
	assert_int_equal(wp_cfi_table_find(&table, 0x1230, true, &fde),
			 -ENOENT);
	wp_cfi_table_clear(&table);
	image_free(&image);
	image_free(&debug);
	image_free(&small);
}

/* The tables of empty functions: the one that is not empty is meant. */
static void functions_that_share_a_start(void **state)
{
	struct bytes b = { .len = 0 };
	struct wp_elf_image image;
	struct wp_cfi_table table;
	struct wp_cfi_fde fde;
	size_t cie, full, empty;

	(void)state;
	/* Header at 0x8000: .eh_frame at its end, two entries. */
	put_bytes(&b, "\x01\x1b\x03\x3b", 4);
	put(&b, 28 - 4, 4);
	put(&b, 2, 4);
	put(&b, 0, 8);
	put(&b, 0, 8);
	cie = put_cie(&b, LIT("\x0c\x07\x08\x90\x01"));
	full = put_fde(&b, cie, 0x8800, 0x10, LIT(""));
	empty = put_fde(&b, cie, 0x8800, 0, LIT(""));
	b.v[12] = b.v[20] = 0x00;
	b.v[13] = b.v[21] = 0x08;
	b.v[16] = (uint8_t)full;
	b.v[24] = (uint8_t)empty;
	image = image_of(b.v, b.len, 0x8000);
	image.eh_frame_hdr = (struct wp_elf_range){ 0x8000, 0, 28 };
	image.eh_frame = (struct wp_elf_range){ 0x8000 + 28, 28, b.len - 28 };
	wp_cfi_table_init(&table, &image);
	assert_int_equal(wp_cfi_table_find(&table, 0x880f, true, &fde), 0);
	assert_int_equal(fde.start_svma, 0x8800);
	wp_cfi_table_clear(&table);
	image_free(&image);
}

static void hostile_headers(void **state)
{
	static const struct {
		unsigned int at;
		const char *bytes;
		size_t len;
		int want;
	} cases[] = {
		/* Another version: as if it were absent. */
		{ 0, LIT("\x02"), 0 },
		/* More entries than there is room for. */
		{ 8, LIT("\xff\xff\xff\xff"), 0 },
		/* None at all: as if there were no table. */
		{ 8, LIT("\x00\x00\x00\x00"), 0 },
		/* FDEs that are elsewhere, and in the middle of another. */
		{ 24, LIT("\xff\xff\xff\x7f"), -EBADMSG },
		{ 24, LIT("\x00\x00\x00\x80"), -EBADMSG },
		{ 24, LIT("\x4a\x00\x00\x00"), -EBADMSG },
		/* The CIE as FDE. */
		{ 24, LIT("\x30\x00\x00\x00"), -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wp_elf_image image = small_image(SMALL_SIZE);
		struct wp_cfi_table table;
		struct wp_cfi_fde fde;

		image.loads[0].svma = 0x1000;
		memcpy(image.data + cases[i].at, cases[i].bytes, cases[i].len);
		wp_cfi_table_init(&table, &image);
		assert_int_equal(wp_cfi_table_find(&table, 0x1030, true, &fde),
				 cases[i].want);
		wp_cfi_table_clear(&table);
		image_free(&image);
	}
}

static void look_everywhere(struct wp_elf_image *image)
{
	struct wp_cfi_table table;
	struct wp_cfi_fde fde;
	struct wp_cfi_row row;

	wp_cfi_table_init(&table, image);
	for (uint64_t svma = 0xff8; svma < 0x10c8; svma += 7)
		if (!wp_cfi_table_find(&table, svma, true, &fde))
			(void)!wp_cfi_eval(&fde, svma, &row);
	wp_cfi_table_clear(&table);
}

/* By the table, by the index, and as memory without section headers. */
static void look_in_every_way(const struct wp_elf_image *image)
{
	struct wp_elf_image other = *image;

	other.loads[0].svma = 0x1000;
	look_everywhere(&other);
	other.eh_frame.size = 0;
	look_everywhere(&other);
	other = *image;
	other.eh_frame_hdr.size = 0;
	look_everywhere(&other);
	other.debug_frame = other.eh_frame;
	other.debug_frame.svma = 0;
	look_everywhere(&other);
}

static void every_prefix_is_safe(void **state)
{
	(void)state;
	for (size_t n = 0; n <= SMALL_SIZE; n++) {
		struct wp_elf_image image = small_image(n);

		look_in_every_way(&image);
		image_free(&image);
	}
}

static void every_flipped_byte_is_safe(void **state)
{
	static const uint8_t flips[] = { 0x01, 0x80, 0xff };

	(void)state;
	for (size_t n = 0; n < SMALL_SIZE * sizeof(flips); n++) {
		struct wp_elf_image image = small_image(SMALL_SIZE);

		image.data[n / sizeof(flips)] ^= flips[n % sizeof(flips)];
		look_in_every_way(&image);
		image_free(&image);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_the_search_table),
		cmocka_unit_test(without_section_headers),
		cmocka_unit_test(by_an_index),
		cmocka_unit_test(a_section_is_indexed_only_if_it_may_be),
		cmocka_unit_test(every_image_has_its_table),
		cmocka_unit_test(a_header_without_a_table),
		cmocka_unit_test(debug_frame_alone),
		cmocka_unit_test(debug_frame_after_eh_frame),
		cmocka_unit_test(functions_that_share_a_start),
		cmocka_unit_test(hostile_headers),
		cmocka_unit_test(every_prefix_is_safe),
		cmocka_unit_test(every_flipped_byte_is_safe),
	};
	return cmocka_run_group_tests_name("eh_frame_hdr", tests, NULL, NULL);
}
