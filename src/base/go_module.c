/* SPDX-License-Identifier: Apache-2.0 */
/* go_module.c - see wallprof/go_module.h. */
#include "wallprof/go_module.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "wallprof/reader.h"

enum {
	WORD = 8,
	/* debug/buildinfo: the magic, pointer size and flags; where the version
	 * is if the flags say that it is there. */
	MAGIC = 14,
	BUILDINFO_FLAGS = 15,
	BUILDINFO_INLINE = 2,
	BUILDINFO_VERSION = 32,
	/* "go1.18" to "go1.30-devel_0123456789 X:nocoverageredesign". */
	VERSION_MIN = 6,
	MINOR_MIN = 18,
	MINOR_MAX = 999,
	/* Bytes of a section that are looked through at a time, and at most. */
	PIECE = 1 << 16,
	SECTION_MAX = 256 << 20,
	/* Words of moduledata. */
	NOPTRDATA = 24,
	DATA = 26,
	BSS = 28,
	NOPTRBSS = 30,
	/* gofunc: up to Go 1.19, 1.26, later. */
	GOFUNC_119 = 38,
	GOFUNC_126 = 40,
	GOFUNC_127 = 43,
};

/* Take TEXT[0..len) for the version if there is one in it: "go1.22.3", "devel
 * go1.23-abc". */
static bool set_version(struct wp_go_module *module, const uint8_t *text,
			size_t len)
{
	const uint8_t *at = memmem(text, len, "go1.", 4);
	size_t n = at ? len - (size_t)(at - text) : 0;
	uint32_t minor = 0, digits = 4;

	for (; digits < n && at[digits] >= '0' && at[digits] <= '9' &&
	       minor <= MINOR_MAX;
	     digits++)
		minor = minor * 10 + (at[digits] - '0');
	if (digits == 4 || !at || minor > MINOR_MAX)
		return false;
	if (n >= sizeof(module->version))
		n = sizeof(module->version) - 1;
	for (size_t i = 0; i < n; i++)
		module->version[i] = (char)(at[i] >= ' ' && at[i] < 0x7f ?
						    at[i] :
						    '?');
	module->version[n] = '\0';
	module->minor = minor;
	return true;
}

static bool read_buildinfo(struct wp_go_module *module,
			   struct wp_elf_image *image)
{
	static const char magic[MAGIC + 1] = "\xff Go buildinf:";
	const struct wp_elf_range *range = &image->go_buildinfo;
	const uint8_t *bytes = range->size > BUILDINFO_VERSION &&
					       range->size <= PIECE ?
				       wp_elf_image_at(image, range->off,
						       range->size) :
				       NULL;
	struct wp_reader r;
	uint64_t len;

	if (!bytes || memcmp(bytes, magic, MAGIC) ||
	    !(bytes[BUILDINFO_FLAGS] & BUILDINFO_INLINE))
		return false;
	r = wp_reader_of(bytes + BUILDINFO_VERSION,
			 range->size - BUILDINFO_VERSION);
	len = wp_read_uleb(&r);
	return len <= wp_reader_left(&r) &&
	       set_version(module, r.pos, (size_t)len);
}

/* What a scan of a section looks for at each of its words: BYTES[0..left), of
 * which two words at least are there, at offset OFF of the file and at SVMA.
 * True ends the scan. */
typedef bool (*found_fn)(void *ctx, const uint8_t *bytes, uint64_t off,
			 uint64_t svma);

static bool scan(struct wp_elf_image *image, const struct wp_elf_range *range,
		 found_fn is_found, void *ctx)
{
	uint64_t size = range->size < SECTION_MAX ? range->size : SECTION_MAX;

	for (uint64_t at = 0; at + 2 * WORD <= size; at += PIECE) {
		uint64_t len = size - at < PIECE + WORD ? size - at :
							  PIECE + WORD;
		const uint8_t *bytes = wp_elf_image_at(image, range->off + at,
						       len);

		if (!bytes)
			return false;
		for (uint64_t i = 0; i + 2 * WORD <= len; i += WORD)
			if (is_found(ctx, bytes + i, range->off + at + i,
				     range->svma + at + i))
				return true;
	}
	return false;
}

struct version_scan {
	struct wp_go_module *module;
	struct wp_elf_image *image;
};

/* Is there the header of a string that is a version? */
static bool is_version(void *ctx, const uint8_t *bytes, uint64_t off,
		       uint64_t svma)
{
	struct version_scan *s = ctx;
	uint64_t text_svma, len, text_off;
	const uint8_t *text;

	(void)off;
	(void)svma;
	memcpy(&text_svma, bytes, WORD);
	memcpy(&len, bytes + WORD, WORD);
	if (len < VERSION_MIN || len >= WP_GO_VERSION_MAX ||
	    !wp_elf_image_offset(s->image, text_svma, &text_off))
		return false;
	text = wp_elf_image_at(s->image, text_off, len);
	return text && !memcmp(text, "go1.", 4) &&
	       set_version(s->module, text, (size_t)len);
}

struct module_scan {
	struct wp_elf_image *image;
	/* The table's address, and that of the names in it, which are the first
	 * words of moduledata. */
	uint64_t table_svma;
	uint64_t names_svma;
	/* Where that is. */
	uint64_t off;
	uint64_t svma;
};

static bool is_module(void *ctx, const uint8_t *bytes, uint64_t off,
		      uint64_t svma)
{
	struct module_scan *s = ctx;

	if (memcmp(bytes, &s->table_svma, WORD) ||
	    memcmp(bytes + WORD, &s->names_svma, WORD))
		return false;
	s->off = off;
	s->svma = svma;
	return true;
}

/* In a file that the dynamic linker moves: both words are relocations. */
static bool find_relocated(struct module_scan *s)
{
	uint64_t n = s->image->rela.size / sizeof(Elf64_Rela);
	struct wp_elf_relative last = { 0, 0 };

	if (n > SECTION_MAX / sizeof(Elf64_Rela))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		struct wp_elf_relative here = wp_elf_image_relative(s->image,
								    i);

		if (here.place_svma == UINT64_MAX)
			break;
		if (last.target_svma == s->table_svma &&
		    here.target_svma == s->names_svma &&
		    here.place_svma == last.place_svma + WORD) {
			s->svma = last.place_svma;
			return wp_elf_image_offset(s->image, s->svma, &s->off);
		}
		last = here;
	}
	return false;
}

static bool find_module(struct module_scan *s)
{
	if (scan(s->image, &s->image->go_module, is_module, s))
		return true;
	for (size_t i = 0; i < WP_ELF_GO_DATA; i++)
		if (scan(s->image, &s->image->go_data[i], is_module, s))
			return true;
	return find_relocated(s);
}

static bool find_version(struct wp_go_module *module,
			 struct wp_elf_image *image)
{
	struct version_scan s = { module, image };

	if (read_buildinfo(module, image))
		return true;
	for (size_t i = 0; i < WP_ELF_GO_DATA; i++)
		if (scan(image, &image->go_data[i], is_version, &s))
			return true;
	return false;
}

static bool read_word(const struct module_scan *s, unsigned int n,
		      uint64_t *ret_svma)
{
	return wp_elf_image_word(s->image, s->off + (uint64_t)n * WORD,
				 s->svma + (uint64_t)n * WORD, ret_svma);
}

static bool read_range(const struct module_scan *s, unsigned int n,
		       struct wp_go_range *ret)
{
	return read_word(s, n, &ret->start_svma) &&
	       read_word(s, n + 1, &ret->end_svma) &&
	       ret->start_svma <= ret->end_svma;
}

static unsigned int gofunc_word(uint32_t minor)
{
	if (minor <= 19)
		return GOFUNC_119;
	return minor <= 26 ? GOFUNC_126 : GOFUNC_127;
}

int wp_go_module_read(struct wp_go_module *ret, const struct wp_go_table *table)
{
	const uint64_t table_svma = table->image->go_table.svma;
	struct module_scan s = {
		.image = table->image,
		.table_svma = table_svma,
		.names_svma = table_svma + table->names_off,
	};
	struct wp_go_module module = { .minor = 0 };

	if (!find_version(&module, table->image))
		return -ENOENT;
	if (module.minor < MINOR_MIN)
		return -ENOTSUP;
	if (!find_module(&s))
		return -ENOENT;
	if (!read_range(&s, NOPTRDATA, &module.noptrdata) ||
	    !read_range(&s, DATA, &module.data) ||
	    !read_range(&s, BSS, &module.bss) ||
	    !read_range(&s, NOPTRBSS, &module.noptrbss) ||
	    !read_word(&s, gofunc_word(module.minor), &module.gofunc_svma))
		return -EBADMSG;
	*ret = module;
	return 0;
}
