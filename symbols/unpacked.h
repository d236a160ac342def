/* SPDX-License-Identifier: Apache-2.0 */
/* unpacked.h - the debug sections of an ELF file whose sections are compressed.
 *
 * Layer: symbols.
 *
 * libelf unpacks with zlib, which takes two and a half times as long as libdeflate, and
 * most of the time of a first dump was that.  So an ELF file of the unpacked sections
 * alone is made in memory, for libdw.
 */
#ifndef WP_UNPACKED_H
#define WP_UNPACKED_H

#include "elf_file.h"

struct wp_unpacked {
	/* NULL while closed; owned. */
	Elf *elf;
	/* What it reads; owned. */
	uint8_t *bytes;
};

/* Unpack the sections .debug_* of FILE, which is open, but those of type SHT_NOBITS.
 * 0; -ENOTSUP: they are not compressed, or not by zlib, or broken, or more than
 * MAX_BYTES, and libelf may try; -ENOMEM. */
WP_MUST_CHECK
int wp_unpacked_open(struct wp_unpacked *ret, const struct wp_elf_file *file,
		     uint64_t max_bytes);
void wp_unpacked_close(struct wp_unpacked *unpacked);

#endif
