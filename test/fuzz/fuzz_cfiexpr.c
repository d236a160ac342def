/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_cfiexpr.c - DWARF expressions of CFI.  First byte: bit 0 for a value on
 * the stack at first, bit 1 for i386 code; then four bytes, a bit for each register that is known;
 * then the expression.
 *
 * Layer: unwind.
 */
#include "../../unwind/cfi.h"
#include "fuzz_image.h"

enum { STEPS_MAX = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wp_unwind_module module = { .bias = 0x400000 };
	struct wp_reader r = wp_reader_of(data, size);
	uint8_t flags = wp_read_u8(&r);
	bool has_initial = flags & 1, is_32bit = flags & 2;
	const struct wp_elf_image image = { .machine = is_32bit ? EM_386 : 0 };
	struct wp_regs regs = fuzz_regs(wp_read_u32(&r)), before = regs;
	struct fuzz_memory memory = { 0 };
	struct wp_mem mem = { fuzz_memory_read, &memory };
	struct wp_step step = { .module = &module,
				.regs = &regs,
				.mem = &mem,
				.is_32bit = is_32bit };
	uint64_t initial = 0x7100, val, again, reg;
	enum wp_step_result result;
	int64_t off;

	if (r.failed)
		return 0;
	result = wp_cfi_expr(r, &step, has_initial ? &initial : NULL, &val);
	FUZZ_CHECK(result == WP_STEP_OK || result == WP_STEP_BAD_INFO ||
		   result == WP_STEP_UNKNOWN_REG ||
		   result == WP_STEP_UNREADABLE);
	FUZZ_CHECK(memory.nreads <= STEPS_MAX);
	FUZZ_CHECK(!memcmp(&regs, &before, sizeof(regs)));
	/* What is recognised means what it is evaluated to. */
	if (wp_cfi_expr_shape(r, &image, &reg, &off) == WP_CFI_SHAPE_SUM &&
	    !has_initial && result == WP_STEP_OK)
		FUZZ_CHECK(val ==
			   wp_step_narrow(&step, regs.v[reg] + (uint64_t)off));
	if (result == WP_STEP_OK) {
		FUZZ_CHECK(wp_cfi_expr(r, &step, has_initial ? &initial : NULL,
				       &again) == WP_STEP_OK);
		FUZZ_CHECK(val == again);
	}
	return 0;
}
