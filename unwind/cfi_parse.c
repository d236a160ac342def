/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_parse.c - CIEs and FDEs.  See cfi.h. */
#include "cfi.h"

#include <errno.h>
#include <string.h>

enum {
	/* These bound the time for a new pc, for which both programs are run at
	 * a few ns for each byte.  The longest FDE in 744 libraries and programs
	 * has 61 kB (libcufft), CIEs have under 100 bytes. */
	ENTRY_MAX = 1 << 17,
	CIE_MAX = 1 << 12,
	/* Letters of a CIE's augmentation: compilers write six at most.  A CIE is
	 * read again for each FDE that is not of the same one as the last. */
	LETTERS_MAX = 16,
};

/* LSB 5.0, 10.5.1. */
enum {
	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SIGNED = 0x08,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT = 0x0f,

	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
	PE_ALIGNED = 0x50,
	PE_APPLICATION = 0x70,

	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

const uint8_t *wp_cfi_section_at(const struct wp_cfi_section *section,
				 uint64_t off, uint64_t len)
{
	if (off > section->range.size || len > section->range.size - off)
		return NULL;
	return wp_elf_image_at(section->image, section->range.off + off, len);
}

static uint64_t reader_svma(const struct wp_cfi_section *section,
			    const struct wp_reader *r)
{
	uint64_t file_off = (uint64_t)(r->pos - section->image->data);

	return section->range.svma + (file_off - section->range.off);
}

/* Bytes of an address in SECTION's file. */
static unsigned int word_of(const struct wp_cfi_section *section)
{
	return wp_elf_image_is_32bit(section->image) ? 4 : 8;
}

static uint64_t read_format(const struct wp_cfi_section *section,
			    struct wp_reader *r, uint8_t format)
{
	switch (format) {
	case PE_ABSPTR:
		return word_of(section) == 4 ? wp_read_u32(r) : wp_read_u64(r);
	case PE_SIGNED:
		return word_of(section) == 4 ?
			       (uint64_t)(int32_t)wp_read_u32(r) :
			       wp_read_u64(r);
	case PE_UDATA8:
	case PE_SDATA8:
		return wp_read_u64(r);
	case PE_ULEB128:
		return wp_read_uleb(r);
	case PE_SLEB128:
		return (uint64_t)wp_read_sleb(r);
	case PE_UDATA2:
		return wp_read_u16(r);
	case PE_SDATA2:
		return (uint64_t)(int16_t)wp_read_u16(r);
	case PE_UDATA4:
		return wp_read_u32(r);
	case PE_SDATA4:
		return (uint64_t)(int32_t)wp_read_u32(r);
	default:
		r->failed = true;
		return 0;
	}
}

bool wp_cfi_read_pointer(const struct wp_cfi_section *section,
			 struct wp_reader *r, uint8_t enc,
			 uint64_t datarel_svma, uint64_t *ret)
{
	uint64_t base = 0;

	switch (enc & PE_APPLICATION) {
	case 0:
		break;
	case PE_PCREL:
		base = reader_svma(section, r);
		break;
	case PE_DATAREL:
		base = datarel_svma;
		if (!base)
			r->failed = true;
		break;
	case PE_ALIGNED:
		wp_read_skip(r,
			     -reader_svma(section, r) & (word_of(section) - 1));
		break;
	default:
		r->failed = true;
	}
	/* An indirect pointer's value is in the process, not in the file. */
	if (enc & PE_INDIRECT)
		r->failed = true;
	*ret = base + read_format(section, r, enc & PE_FORMAT);
	if (word_of(section) == 4)
		*ret = (uint32_t)*ret;
	return !r->failed;
}

/* Read the length at the start of an entry (DWARF 5, 7.2.2), and its own size. */
static int read_length(const struct wp_cfi_section *section, uint64_t off,
		       uint64_t *ret_len, unsigned int *ret_size)
{
	const uint8_t *bytes = wp_cfi_section_at(section, off, 4);
	struct wp_reader r = wp_reader_of(bytes, 4);

	*ret_size = 4;
	*ret_len = wp_read_u32(&r);
	if (!r.failed && *ret_len == UINT32_MAX) {
		*ret_size = 12;
		r = wp_reader_of(wp_cfi_section_at(section, off + 4, 8), 8);
		*ret_len = wp_read_u64(&r);
	}
	if (r.failed)
		return -EBADMSG;
	return *ret_len > ENTRY_MAX ? -EBADMSG : 0;
}

/* OFF, or the end of the zero lengths there that end a list of entries, if
 * another list may follow. */
static uint64_t skip_terminators(const struct wp_cfi_section *section,
				 uint64_t off)
{
	static const uint8_t zero[4];
	const uint8_t *bytes;

	while (section->is_exact &&
	       (bytes = wp_cfi_section_at(section, off, 4)) &&
	       !memcmp(bytes, zero, 4))
		off += 4;
	return off;
}

int wp_cfi_next_entry(const struct wp_cfi_section *section, uint64_t off,
		      struct wp_cfi_entry *ret)
{
	return wp_cfi_read_entry(section, skip_terminators(section, off), ret);
}

int wp_cfi_read_entry(const struct wp_cfi_section *section, uint64_t off,
		      struct wp_cfi_entry *ret)
{
	struct wp_cfi_entry entry = { 0 };
	unsigned int length_size;
	uint64_t len, id, id_off;
	bool is_wide;
	int rc;

	if (off >= section->range.size)
		return -ENODATA;
	rc = read_length(section, off, &len, &length_size);
	if (rc)
		return rc;
	if (!len)
		return -ENODATA;
	id_off = off + length_size;
	entry.off = off;
	entry.next_off = id_off + len;
	entry.body = wp_reader_of(wp_cfi_section_at(section, id_off, len), len);
	/* The id is 4 bytes in .eh_frame whatever the length's size: LSB 5.0,
	 * 10.6.1.1.1. */
	is_wide = length_size == 12 && section->is_debug;
	id = is_wide ? wp_read_u64(&entry.body) : wp_read_u32(&entry.body);
	if (entry.body.failed)
		return -EBADMSG;
	if (section->is_debug) {
		entry.is_cie = id == (is_wide ? UINT64_MAX : UINT32_MAX);
		entry.cie_off = id;
	} else {
		entry.is_cie = id == 0;
		entry.cie_off = id_off - id;
	}
	*ret = entry;
	return 0;
}

/* Read the data that LETTER of the augmentation string stands for: false if the
 * letter is not known. */
static bool read_augmentation(const struct wp_cfi_section *section, char letter,
			      struct wp_reader *r, struct wp_cfi_cie *cie)
{
	uint64_t ignored;
	uint8_t enc;

	switch (letter) {
	case 'R':
		cie->fde_enc = wp_read_u8(r);
		return true;
	case 'L':
		wp_read_skip(r, 1);
		return true;
	case 'P':
		enc = wp_read_u8(r);
		/* Skip the personality routine's address. */
		if (enc != PE_OMIT)
			(void)wp_cfi_read_pointer(
				section, r, (uint8_t)(enc & ~PE_INDIRECT),
				section->range.svma, &ignored);
		return true;
	case 'S':
		cie->is_signal = true;
		return true;
	case 'B':
	case 'G':
		/* aarch64: return addresses are signed by key B; memory is
		 * tagged. */
		return true;
	default:
		return false;
	}
}

static int read_augmentations(const struct wp_cfi_section *section,
			      const char *letters, struct wp_reader *r,
			      struct wp_cfi_cie *cie)
{
	struct wp_reader data;
	uint64_t len;

	if (letters[0] != 'z') {
		while (*letters)
			if (!read_augmentation(section, *letters++, r, cie))
				return -ENOTSUP;
		return 0;
	}
	len = wp_read_uleb(r);
	data = *r;
	wp_read_skip(r, len);
	if (r->failed)
		return -EBADMSG;
	data.end = r->pos;
	cie->has_aug_data = true;
	/* From an unknown letter on the data are skipped. */
	while (*++letters)
		if (!read_augmentation(section, *letters, &data, cie))
			break;
	return data.failed ? -EBADMSG : 0;
}

int wp_cfi_parse_cie(const struct wp_cfi_section *section, uint64_t off,
		     struct wp_cfi_cie *ret)
{
	struct wp_cfi_cie cie = { .off = off, .fde_enc = PE_ABSPTR };
	struct wp_cfi_entry entry;
	const char *letters;
	struct wp_reader *r;
	uint8_t version;
	int rc;

	rc = wp_cfi_read_entry(section, off, &entry);
	if (rc || !entry.is_cie || entry.next_off - off > CIE_MAX)
		return -EBADMSG;
	r = &entry.body;
	version = wp_read_u8(r);
	letters = wp_read_cstr(r);
	if (!letters)
		return -EBADMSG;
	if ((version != 1 && version != 3 && version != 4) ||
	    strnlen(letters, LETTERS_MAX + 1) > LETTERS_MAX)
		return -ENOTSUP;
	if (!strncmp(letters, "eh", 2)) {
		/* gcc 2: a pointer to exception data comes first. */
		wp_read_skip(r, word_of(section));
		letters += 2;
	}
	/* Version 4: address size, segment selector size 0. */
	if (version == 4 && wp_read_u16(r) != word_of(section))
		return -ENOTSUP;
	cie.code_align = wp_read_uleb(r);
	cie.data_align = wp_read_sleb(r);
	cie.ra_reg = version == 1 ? wp_read_u8(r) : wp_read_uleb(r);
	rc = read_augmentations(section, letters, r, &cie);
	if (rc)
		return rc;
	if (r->failed)
		return -EBADMSG;
	cie.insns = *r;
	*ret = cie;
	return 0;
}

int wp_cfi_parse_fde_body(const struct wp_cfi_section *section,
			  const struct wp_cfi_entry *entry,
			  const struct wp_cfi_cie *cie, struct wp_cfi_fde *ret)
{
	struct wp_reader r = entry->body;
	uint64_t start, len;

	if (!wp_cfi_read_pointer(section, &r, cie->fde_enc, 0, &start))
		return -EBADMSG;
	len = read_format(section, &r, cie->fde_enc & PE_FORMAT);
	if (cie->has_aug_data)
		wp_read_skip(&r, wp_read_uleb(&r));
	if (r.failed || len > UINT64_MAX - start)
		return -EBADMSG;
	ret->section = section;
	ret->start_svma = start;
	ret->end_svma = start + len;
	ret->insns = r;
	ret->cie = *cie;
	return 0;
}

int wp_cfi_parse_fde(const struct wp_cfi_section *section, uint64_t off,
		     struct wp_cfi_fde *ret)
{
	struct wp_cfi_entry entry;
	struct wp_cfi_cie cie;
	int rc;

	rc = wp_cfi_read_entry(section, off, &entry);
	if (rc || entry.is_cie)
		return -EBADMSG;
	rc = wp_cfi_parse_cie(section, entry.cie_off, &cie);
	if (rc)
		return rc;
	return wp_cfi_parse_fde_body(section, &entry, &cie, ret);
}
