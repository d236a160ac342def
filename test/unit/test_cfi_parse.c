/* SPDX-License-Identifier: Apache-2.0 */
/* CIEs and FDEs.  Layer: unwind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "cfi_bytes.h"

/* A CIE of AUGMENTATION with the bytes AUG behind the return address column,
 * and an FDE with the bytes BODY; .eh_frame at 0x8000. */
static int parse(const char *augmentation, const void *aug, size_t aug_len,
		 const void *body, size_t body_len, struct wp_cfi_fde *ret)
{
	struct bytes b = { .len = 0 };
	struct wp_elf_image image;
	struct wp_cfi_section section;
	size_t cie, fde;
	int rc;

	cie = begin_entry(&b);
	put(&b, 0, 4);
	put(&b, 1, 1);
	put_bytes(&b, augmentation, strlen(augmentation) + 1);
	put_bytes(&b, "\x01\x78\x10", 3);
	put_bytes(&b, aug, aug_len);
	end_entry(&b);
	fde = begin_entry(&b);
	put(&b, b.len - cie, 4);
	put_bytes(&b, body, body_len);
	end_entry(&b);
	image = image_of(b.v, b.len, 0x8000);
	section = section_of(&image, false);
	rc = wp_cfi_parse_fde(&section, fde, ret);
	/* The readers would dangle. */
	ret->section = NULL;
	image_free(&image);
	return rc;
}

static void cie_of_gcc(void **state)
{
	struct bytes b = { .len = 0 };
	struct wp_elf_image image;
	struct wp_cfi_section section;
	struct wp_cfi_cie cie;

	(void)state;
	put_cie(&b, LIT("\x0c\x07\x08\x90\x01"));
	image = image_of(b.v, b.len, 0x8000);
	section = section_of(&image, false);
	assert_int_equal(wp_cfi_parse_cie(&section, 0, &cie), 0);
	assert_int_equal(cie.code_align, 1);
	assert_int_equal(cie.data_align, -8);
	assert_int_equal(cie.ra_reg, 16);
	assert_int_equal(cie.fde_enc, 4);
	assert_true(cie.has_aug_data);
	assert_false(cie.is_signal);
	assert_int_equal(wp_reader_left(&cie.insns), 5);
	assert_int_equal(cie.insns.pos[0], 0x0c);
	image_free(&image);
}

static void every_pointer_encoding(void **state)
{
	/* The FDE's first address is at 0x8000 + FIELD: a CIE of 4 + 4 + 9,
	 * then length and CIE pointer. */
	enum { FIELD = 17 + 8, SELF = 0x8000 + FIELD };
	static const struct {
		uint8_t enc;
		const char *body;
		size_t len;
		int want;
		uint64_t start, end;
	} cases[] = {
		/* absptr, signed, udata8, sdata8: 8 bytes each. */
		{ 0x00, LIT("\x10\x20\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0"), 0,
		  0x2010, 0x2015 },
		{ 0x08, LIT("\x10\x20\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0"), 0,
		  0x2010, 0x2015 },
		{ 0x04, LIT("\x10\x20\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0"), 0,
		  0x2010, 0x2015 },
		{ 0x0c, LIT("\x10\x20\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0"), 0,
		  0x2010, 0x2015 },
		/* uleb128, sleb128. */
		{ 0x01, LIT("\x90\x40\x05\0"), 0, 0x2010, 0x2015 },
		{ 0x09, LIT("\x90\xc0\x00\x05\0"), 0, 0x2010, 0x2015 },
		/* udata2, sdata2, udata4, sdata4. */
		{ 0x02, LIT("\x10\xf0\x05\0\0"), 0, 0xf010, 0xf015 },
		{ 0x0a, LIT("\x10\x20\x05\0\0"), 0, 0x2010, 0x2015 },
		{ 0x03, LIT("\x10\0\0\xf0\x05\0\0\0\0"), 0, 0xf0000010,
		  0xf0000015 },
		{ 0x0b, LIT("\x10\x20\0\0\x05\0\0\0\0"), 0, 0x2010, 0x2015 },
		/* pcrel: forwards, backwards; the length is never relative. */
		{ 0x1b, LIT("\x10\0\0\0\x05\0\0\0\0"), 0, SELF + 0x10,
		  SELF + 0x15 },
		{ 0x1b, LIT("\xf0\xff\xff\xff\x05\0\0\0\0"), 0, SELF - 0x10,
		  SELF - 0xb },
		{ 0x1a, LIT("\xf0\xff\x05\0\0"), 0, SELF - 0x10, SELF - 0xb },
		/* aligned: to 0x8020, then 8 bytes; the length stays plain. */
		{ 0x50, LIT("pad-pad\x10\x20\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0"),
		  0, 0x2010, 0x2015 },
		/* textrel, datarel, funcrel have no base here. */
		{ 0x2b, LIT("\x10\x20\0\0\x05\0\0\0\0"), -EBADMSG, 0, 0 },
		{ 0x3b, LIT("\x10\x20\0\0\x05\0\0\0\0"), -EBADMSG, 0, 0 },
		{ 0x4b, LIT("\x10\x20\0\0\x05\0\0\0\0"), -EBADMSG, 0, 0 },
		/* indirect; formats that are none. */
		{ 0x9b, LIT("\x10\x20\0\0\x05\0\0\0\0"), -EBADMSG, 0, 0 },
		{ 0x05, LIT("\x10\x20\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0"),
		  -EBADMSG, 0, 0 },
		{ 0x0f, LIT("\x10\x20\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0"),
		  -EBADMSG, 0, 0 },
		/* An end past the last address. */
		{ 0x04,
		  LIT("\xff\xff\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\0\0"
		      "\0\0"),
		  -EBADMSG, 0, 0 },
		/* A LEB128 number of more than 10 bytes. */
		{ 0x01,
		  LIT("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x05"
		      "\0"),
		  -EBADMSG, 0, 0 },
		/* Augmentation data longer than the entry. */
		{ 0x0b, LIT("\x10\x20\0\0\x05\0\0\0\x7f"), -EBADMSG, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint8_t aug[] = { 1, cases[i].enc };
		struct wp_cfi_fde fde;
		int rc = parse("zR", aug, 2, cases[i].body, cases[i].len, &fde);

		if (rc != cases[i].want)
			print_error("encoding %#x, case %zu\n", cases[i].enc,
				    i);
		assert_int_equal(rc, cases[i].want);
		if (rc)
			continue;
		assert_int_equal(fde.start_svma, cases[i].start);
		assert_int_equal(fde.end_svma, cases[i].end);
	}
}

static void every_augmentation(void **state)
{
	static const struct {
		const char *letters;
		const char *aug;
		size_t len;
		int want;
		bool is_signal;
		uint8_t enc;
	} cases[] = {
		{ "", LIT(""), 0, false, 0x00 },
		{ "zR", LIT("\x01\x04"), 0, false, 0x04 },
		{ "zRS", LIT("\x01\x04"), 0, true, 0x04 },
		{ "zRB", LIT("\x01\x04"), 0, false, 0x04 },
		/* Personality as sdata4 | pcrel | indirect, LSDA encoding. */
		{ "zPLR", LIT("\x07\x9b\xaa\xaa\xaa\xaa\x1b\x04"), 0, false,
		  0x04 },
		/* Personality as absptr; as uleb128; omitted. */
		{ "zPR", LIT("\x0a\x00\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\x04"), 0,
		  false, 0x04 },
		{ "zPR", LIT("\x04\x01\xaa\x2a\x04"), 0, false, 0x04 },
		{ "zPR", LIT("\x02\xff\x04"), 0, false, 0x04 },
		/* After an unknown letter nothing is read, only skipped. */
		{ "zR?P", LIT("\x05\x04\x01\x02\x03\x04"), 0, false, 0x04 },
		/* 16 letters; 17, which are not read. */
		{ "zRBBBBBBBBBBBBBB", LIT("\x01\x04"), 0, false, 0x04 },
		{ "zRBBBBBBBBBBBBBBB", LIT("\x01\x04"), -ENOTSUP, false, 0 },
		/* Without 'z' nobody knows how much to skip. */
		{ "?", LIT(""), -ENOTSUP, false, 0 },
		{ "R", LIT("\x04"), 0, false, 0x04 },
		/* gcc 2. */
		{ "eh", LIT("\x11\x22\x33\x44\x55\x66\x77\x88"), 0, false, 0 },
		/* Longer than the CIE; shorter than its letters need. */
		{ "zR", LIT("\x7f\x04"), -EBADMSG, false, 0 },
		{ "zPR", LIT("\x03\x04\xaa\xaa"), -EBADMSG, false, 0 },
		{ "zR", LIT("\x00"), -EBADMSG, false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wp_cfi_fde fde;
		/* Good for absptr and udata8, with and without 'z'. */
		int rc = parse(cases[i].letters, cases[i].aug, cases[i].len,
			       LIT("\x10\x20\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0"),
			       &fde);

		/* "eh" has its pointer before the factors: not by parse(). */
		if (!strcmp(cases[i].letters, "eh"))
			continue;
		if (rc != cases[i].want)
			print_error("augmentation %s, case %zu\n",
				    cases[i].letters, i);
		assert_int_equal(rc, cases[i].want);
		if (rc)
			continue;
		assert_int_equal(fde.start_svma, 0x2010);
		assert_int_equal(fde.cie.is_signal, cases[i].is_signal);
		assert_int_equal(fde.cie.fde_enc, cases[i].enc);
	}
}

static int parse_cie_bytes(const void *bytes, size_t len, bool is_debug,
			   struct wp_cfi_cie *ret)
{
	struct wp_elf_image image = image_of(bytes, len, 0x8000);
	struct wp_cfi_section section = section_of(&image, is_debug);
	int rc = wp_cfi_parse_cie(&section, 0, ret);

	image_free(&image);
	return rc;
}

static void every_version(void **state)
{
	struct wp_cfi_cie cie;

	(void)state;
	/* length, id, version, "", code 1, data -8, column 16. */
	assert_int_equal(parse_cie_bytes(LIT("\x09\0\0\0\0\0\0\0\x01\0"
					     "\x01\x78\x10"),
					 false, &cie),
			 0);
	assert_int_equal(cie.ra_reg, 16);
	/* Version 1 has the column in a byte, later ones as uleb128. */
	assert_int_equal(parse_cie_bytes(LIT("\x0a\0\0\0\0\0\0\0\x01\0"
					     "\x01\x78\x90\x01"),
					 false, &cie),
			 0);
	assert_int_equal(cie.ra_reg, 0x90);
	assert_int_equal(parse_cie_bytes(LIT("\x0a\0\0\0\xff\xff\xff\xff\x03\0"
					     "\x01\x78\x90\x01"),
					 true, &cie),
			 0);
	assert_int_equal(cie.ra_reg, 0x90);
	/* Version 4: address size, segment selector size. */
	assert_int_equal(parse_cie_bytes(LIT("\x0b\0\0\0\xff\xff\xff\xff\x04\0"
					     "\x08\0\x01\x78\x10"),
					 true, &cie),
			 0);
	assert_int_equal(parse_cie_bytes(LIT("\x0b\0\0\0\xff\xff\xff\xff\x04\0"
					     "\x04\0\x01\x78\x10"),
					 true, &cie),
			 -ENOTSUP);
	assert_int_equal(parse_cie_bytes(LIT("\x0b\0\0\0\xff\xff\xff\xff\x04\0"
					     "\x08\x02\x01\x78\x10"),
					 true, &cie),
			 -ENOTSUP);
	assert_int_equal(parse_cie_bytes(LIT("\x09\0\0\0\xff\xff\xff\xff\x02\0"
					     "\x01\x78\x10"),
					 true, &cie),
			 -ENOTSUP);
	/* gcc 2's "eh" pointer comes before the factors. */
	assert_int_equal(parse_cie_bytes(LIT("\x13\0\0\0\0\0\0\0\x01"
					     "eh\0"
					     "\1\2\3\4\5\6\7\x08\x01\x78\x10"),
					 false, &cie),
			 0);
	assert_int_equal(cie.data_align, -8);
}

static void debug_frame_of_64_bit_dwarf(void **state)
{
	struct bytes b = { .len = 0 };
	struct wp_elf_image image;
	struct wp_cfi_section section;
	struct wp_cfi_fde fde;
	size_t start;

	(void)state;
	/* An FDE of 32-bit DWARF first: both kinds can stand together. */
	begin_entry(&b);
	put(&b, UINT32_MAX, 4);
	put_bytes(&b, "\x03\0\x01\x78\x10", 5);
	end_entry(&b);
	start = b.len;
	put(&b, UINT32_MAX, 4);
	put(&b, 8 + 5, 8);
	put(&b, UINT64_MAX, 8);
	put_bytes(&b, "\x03\0\x04\x7c\x10", 5);
	put(&b, UINT32_MAX, 4);
	put(&b, 8 + 8 + 8, 8);
	/* A CIE pointer counts from the section's start. */
	put(&b, start, 8);
	put(&b, 0x401000, 8);
	put(&b, 0x20, 8);
	image = image_of(b.v, b.len, 0x8000);
	section = section_of(&image, true);
	assert_int_equal(wp_cfi_parse_fde(&section, start + 12 + 8 + 5, &fde),
			 0);
	assert_int_equal(fde.start_svma, 0x401000);
	assert_int_equal(fde.end_svma, 0x401020);
	assert_int_equal(fde.cie.code_align, 4);
	assert_int_equal(fde.cie.data_align, -4);
	image_free(&image);
}

/* The 64-bit form in .eh_frame keeps ids of 4 bytes: LSB 5.0, 10.6.1. */
static void eh_frame_with_extended_length(void **state)
{
	struct bytes b = { .len = 0 };
	struct wp_elf_image image;
	struct wp_cfi_section section;
	struct wp_cfi_fde fde;
	size_t fde_off;

	(void)state;
	put(&b, UINT32_MAX, 4);
	put(&b, 4 + 5, 8);
	put(&b, 0, 4);
	put_bytes(&b, "\x01\0\x01\x78\x10", 5);
	fde_off = b.len;
	put(&b, UINT32_MAX, 4);
	put(&b, 4 + 16, 8);
	put(&b, b.len, 4);
	put(&b, 0x401000, 8);
	put(&b, 0x20, 8);
	image = image_of(b.v, b.len, 0x8000);
	section = section_of(&image, false);
	assert_int_equal(wp_cfi_parse_fde(&section, fde_off, &fde), 0);
	assert_int_equal(fde.start_svma, 0x401000);
	image_free(&image);
}

static void hostile_entries_are_refused(void **state)
{
	struct bytes b = { .len = 0 };
	struct wp_elf_image image;
	struct wp_cfi_section section;
	struct wp_cfi_entry entry;
	struct wp_cfi_fde fde;
	struct wp_cfi_cie cie;
	size_t self, other, past;

	(void)state;
	/* Its own CIE. */
	self = begin_entry(&b);
	put(&b, 4, 4);
	put_bytes(&b, "1234567812345678", 16);
	end_entry(&b);
	/* An FDE as CIE. */
	other = begin_entry(&b);
	put(&b, b.len - self, 4);
	put_bytes(&b, "1234567812345678", 16);
	end_entry(&b);
	/* A CIE before the section. */
	past = begin_entry(&b);
	put(&b, 0x7fffffff, 4);
	put_bytes(&b, "1234567812345678", 16);
	end_entry(&b);
	image = image_of(b.v, b.len, 0x8000);
	section = section_of(&image, false);
	assert_int_equal(wp_cfi_parse_fde(&section, self, &fde), -EBADMSG);
	assert_int_equal(wp_cfi_parse_fde(&section, other, &fde), -EBADMSG);
	assert_int_equal(wp_cfi_parse_fde(&section, past, &fde), -EBADMSG);
	assert_int_equal(wp_cfi_parse_cie(&section, self, &cie), -EBADMSG);
	/* Offsets that are in no section. */
	assert_int_equal(wp_cfi_parse_fde(&section, b.len, &fde), -EBADMSG);
	assert_int_equal(wp_cfi_parse_fde(&section, UINT64_MAX, &fde),
			 -EBADMSG);
	assert_int_equal(wp_cfi_parse_fde(&section, UINT64_MAX - 3, &fde),
			 -EBADMSG);
	/* A length past the end, in both forms. */
	memcpy(image.data, "\xff\xff\xff\x7f", 4);
	assert_int_equal(wp_cfi_read_entry(&section, 0, &entry), -EBADMSG);
	memcpy(image.data, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	       12);
	assert_int_equal(wp_cfi_read_entry(&section, 0, &entry), -EBADMSG);
	/* Too short for an id. */
	memcpy(image.data, "\x03\0\0\0", 4);
	assert_int_equal(wp_cfi_read_entry(&section, 0, &entry), -EBADMSG);
	image_free(&image);
}

static void a_list_may_follow_a_terminator(void **state)
{
	struct bytes b = { .len = 0 };
	struct wp_elf_image image;
	struct wp_cfi_section section;
	struct wp_cfi_entry entry;
	size_t second;

	(void)state;
	put_cie(&b, LIT(""));
	put(&b, 0, 8);
	second = put_cie(&b, LIT("\x0c\x07\x08"));
	image = image_of(b.v, b.len, 0x8000);
	section = section_of(&image, false);
	assert_int_equal(wp_cfi_next_entry(&section, 0, &entry), 0);
	assert_int_equal(wp_cfi_next_entry(&section, entry.next_off, &entry),
			 0);
	assert_int_equal(entry.off, second);
	assert_true(entry.is_cie);
	assert_int_equal(wp_cfi_next_entry(&section, entry.next_off, &entry),
			 -ENODATA);
	/* Where the section's end is not known the terminator is the end. */
	section.is_exact = false;
	assert_int_equal(wp_cfi_next_entry(&section, second - 8, &entry),
			 -ENODATA);
	/* As an entry of its own a terminator is none. */
	assert_int_equal(wp_cfi_read_entry(&section, second - 8, &entry),
			 -ENODATA);
	image_free(&image);
}

/* Parse all that can be found in IMAGE; only safety is looked at. */
static void parse_all(struct wp_elf_image *image)
{
	struct wp_cfi_section section = section_of(image, false);
	struct wp_cfi_entry entry;
	struct wp_cfi_cie cie;
	struct wp_cfi_fde fde;

	for (uint64_t off = 0; off <= image->size; off++) {
		(void)!wp_cfi_parse_cie(&section, off, &cie);
		(void)!wp_cfi_parse_fde(&section, off, &fde);
		(void)!wp_cfi_next_entry(&section, off, &entry);
	}
	section.is_debug = true;
	for (uint64_t off = 0; off <= image->size; off++) {
		(void)!wp_cfi_parse_cie(&section, off, &cie);
		(void)!wp_cfi_parse_fde(&section, off, &fde);
	}
}

static void every_prefix_is_safe(void **state)
{
	(void)state;
	for (size_t n = 0; n <= sizeof(small_eh_frame); n++) {
		struct wp_elf_image image = image_of(small_eh_frame, n, 0x8000);

		parse_all(&image);
		image_free(&image);
	}
}

static void every_flipped_byte_is_safe(void **state)
{
	static const uint8_t flips[] = { 0x01, 0x80, 0xff };

	(void)state;
	for (size_t n = 0; n < sizeof(small_eh_frame) * sizeof(flips); n++) {
		struct wp_elf_image image = image_of(
			small_eh_frame, sizeof(small_eh_frame), 0x8000);

		image.data[n / sizeof(flips)] ^= flips[n % sizeof(flips)];
		parse_all(&image);
		image_free(&image);
	}
}

/* A CIE of CIE_LEN bytes after its length and an FDE of FDE_LEN, with programs
 * of DW_CFA_nop: what parsing the FDE returns. */
static int parse_long(uint32_t cie_len, uint32_t fde_len)
{
	static const char aug[] = "\x01zR\0\x01\x78\x10\x01\x04";
	uint32_t fde_off = 4 + cie_len, cie_ptr = fde_off + 4;
	size_t size = (size_t)fde_off + 4 + fde_len;
	uint8_t *bytes = calloc(1, size);
	struct wp_cfi_section section;
	struct wp_elf_image image;
	struct wp_cfi_fde fde;
	int rc;

	memcpy(bytes, &cie_len, 4);
	memcpy(bytes + 8, aug, sizeof(aug) - 1);
	memcpy(bytes + fde_off, &fde_len, 4);
	memcpy(bytes + fde_off + 4, &cie_ptr, 4);
	image = image_of(bytes, size, 0x8000);
	section = section_of(&image, false);
	rc = wp_cfi_parse_fde(&section, fde_off, &fde);
	image_free(&image);
	free(bytes);
	return rc;
}

/* Or a hostile file would make each step cost milliseconds. */
static void entries_far_longer_than_real_ones_are_refused(void **state)
{
	(void)state;
	assert_int_equal(parse_long(100, 100), 0);
	assert_int_equal(parse_long(100, 61000), 0);
	assert_int_equal(parse_long(4092, 100), 0);
	assert_int_equal(parse_long(4093, 100), -EBADMSG);
	assert_int_equal(parse_long(100, 1 << 17), 0);
	assert_int_equal(parse_long(100, (1 << 17) + 1), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cie_of_gcc),
		cmocka_unit_test(every_pointer_encoding),
		cmocka_unit_test(every_augmentation),
		cmocka_unit_test(every_version),
		cmocka_unit_test(debug_frame_of_64_bit_dwarf),
		cmocka_unit_test(eh_frame_with_extended_length),
		cmocka_unit_test(hostile_entries_are_refused),
		cmocka_unit_test(a_list_may_follow_a_terminator),
		cmocka_unit_test(every_prefix_is_safe),
		cmocka_unit_test(every_flipped_byte_is_safe),
		cmocka_unit_test(entries_far_longer_than_real_ones_are_refused),
	};
	return cmocka_run_group_tests_name("cfi_parse", tests, NULL, NULL);
}
