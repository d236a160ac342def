/* SPDX-License-Identifier: Apache-2.0 */
/* code.c - the target's machine code: see arch.h. */
#include "arch.h"

#include <errno.h>
#include <string.h>

int wp_code_read(const struct wp_unwind_module *module,
		 const struct wp_mem *mem, uint64_t avma, void *buf, size_t len)
{
	const uint8_t *bytes;
	uint64_t off;

	if (!module || !module->image)
		return mem->read(mem->ctx, avma, buf, len) ? -EFAULT : 0;
	if (!wp_elf_image_offset(module->image, avma - module->bias, &off))
		return -EFAULT;
	bytes = wp_elf_image_at(module->image, off, len);
	if (!bytes)
		return -EFAULT;
	memcpy(buf, bytes, len);
	return 0;
}
