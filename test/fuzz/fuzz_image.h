/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_image.h - ELF images made of bytes, and memory, for the unwinder. */
#ifndef WP_FUZZ_IMAGE_H
#define WP_FUZZ_IMAGE_H

#include <errno.h>

#include "fuzz.h"
#include "wallprof/elf_image.h"
#include "wallprof/types.h"

/* An image whose file is DATA[0..len), borrowed: one segment at SVMA.  False
 * without memory. */
static inline bool fuzz_image_make(struct wp_elf_image *ret,
				   const uint8_t *data, size_t len,
				   uint64_t svma)
{
	size_t blocks = (len >> WP_ELF_BLOCK_BITS) + 1;

	*ret = (struct wp_elf_image)WP_ELF_IMAGE_INIT;
	ret->loaded = malloc(blocks);
	if (!ret->loaded)
		return false;
	memset(ret->loaded, 1, blocks);
	/* Only ever read: every block says that it is loaded. */
	ret->data = (uint8_t *)(uintptr_t)data;
	ret->size = len;
	ret->loads[0] = (struct wp_elf_load){ svma, 0, len, len, 4 | 1 };
	ret->nloads = 1;
	return true;
}

static inline void fuzz_image_free(struct wp_elf_image *image)
{
	free(image->loaded);
}

/* Memory in which a word's value follows from its address, with holes. */
struct fuzz_memory {
	unsigned int nreads;
};

static inline enum wp_mem_result fuzz_memory_read(void *ctx, uint64_t avma,
						  void *buf, size_t len)
{
	struct fuzz_memory *m = ctx;
	uint8_t *bytes = buf;

	m->nreads++;
	if (avma & 0x10000 || avma + len < avma)
		return WP_MEM_UNREADABLE;
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)((avma + i) >> 3);
	return WP_MEM_OK;
}

/* Every register known that has its bit in MASK. */
static inline struct wp_regs fuzz_regs(uint64_t mask)
{
	struct wp_regs regs = { .known = 0 };

	for (unsigned int i = 0; i < WP_NREGS; i++)
		if (mask >> i & 1)
			wp_reg_set(&regs, i, 0x7000 + 64 * i);
	return regs;
}

#endif
