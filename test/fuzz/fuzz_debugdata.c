/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_debugdata.c - .gnu_debugdata: the input is the section, xz-compressed.
 * The checksums of its headers are put right, or nothing else would be read.
 *
 * Layer: symbols.
 */
#include "../../symbols/debugfile.h"
#include "../../symbols/symtab.h"
#include "../unit/make_elf.h"
#include "fuzz_elf.h"

enum { BLOCK = 12, UNPACKED_MAX = 64 << 20 };

static void put_crc(uint8_t *at, const uint8_t *data, size_t len)
{
	uint32_t crc = wp_debug_crc32(0, data, len);

	memcpy(at, &crc, sizeof(crc));
}

/* The .xz File Format, 2.1.1.3 and 3.1.7. */
static void fix_checksums(uint8_t *xz, size_t size)
{
	size_t len;

	if (size < BLOCK + 1)
		return;
	put_crc(xz + 8, xz + 6, 2);
	len = ((size_t)xz[BLOCK] + 1) * 4;
	if (xz[BLOCK] && len <= size - BLOCK)
		put_crc(xz + BLOCK + len - 4, xz + BLOCK, len - 4);
}

static void unpack(const struct wp_elf_file *file)
{
	struct wp_symtab tab = WP_SYMTAB_INIT;
	uint8_t *bytes = NULL;
	size_t len;
	struct fuzz_elf inner;

	if (wp_debugfile_unpack(&bytes, &len, file)) {
		FUZZ_CHECK(!bytes);
		return;
	}
	FUZZ_CHECK(len <= UNPACKED_MAX);
	if (fuzz_elf_open(&inner, bytes, len)) {
		(void)!wp_symtab_add(&tab, &inner.file, SHT_SYMTAB, 0);
		wp_symtab_finish(&tab);
		wp_symtab_clear(&tab);
		fuzz_elf_close(&inner);
	}
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *xz = malloc(size ? size : 1), *bytes;
	struct make_section section = { .name = ".gnu_debugdata",
					.type = SHT_PROGBITS };
	struct fuzz_elf e;
	size_t len;

	if (!xz)
		return 0;
	memcpy(xz, data, size);
	fix_checksums(xz, size);
	section.data = xz;
	section.size = size;
	bytes = make_elf(&section, 1, &len);
	FUZZ_CHECK(fuzz_elf_open(&e, bytes, len));
	unpack(&e.file);
	fuzz_elf_close(&e);
	free(bytes);
	free(xz);
	return 0;
}
