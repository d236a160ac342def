/* SPDX-License-Identifier: Apache-2.0 */
/* elf_headers.h - the headers of an ELF image; private. */
#ifndef WP_ELF_HEADERS_H
#define WP_ELF_HEADERS_H

#include "wallprof/elf_image.h"

/* Fill in what IMAGE's headers tell; of section headers only if HAS_SECTIONS.
 * 0, -ENOTSUP, -EBADMSG: see wp_elf_image_open. */
WP_MUST_CHECK
int wp_elf_headers_read(struct wp_elf_image *image, bool has_sections,
			struct wp_err *err);

#endif
