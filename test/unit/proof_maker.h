/* SPDX-License-Identifier: Apache-2.0 */
/* proof_maker.h - a frame of a file without unwind info, for tests: code in an image,
 * a stack that is an array.
 */
#ifndef WP_TEST_PROOF_MAKER_H
#define WP_TEST_PROOF_MAKER_H

#include "../../unwind/proof_call.h"
#include "fake_elf.h"

enum {
	/* Of the text: the caller's call, the function, another one, a slot. */
	CALLER = 0x40,
	FUNC = 0x200,
	OTHER = 0x600,
	SLOT = 0x800,
	NWORDS = 32,
	READS = 8,
	BUDGET = 48000,
};

#define BIAS UINT64_C(0x400000)
#define TEXT (BIAS + FAKE_TEXT)
/* At a call the stack is aligned: the return address is in an odd word. */
#define STACK UINT64_C(0x7ffc00000000)

static struct proof_fixture {
	struct fake_elf elf;
	struct wp_elf_image image;
	struct wp_unwind_module module;
	struct wp_unwind_modules modules;
	struct wp_mem mem;
	struct wp_regs regs;
	struct wp_step step;
	struct wp_flow flow;
	uint64_t stack[NWORDS];
	struct wp_proof proof;
} f;

static inline enum wp_mem_result proof_read(void *ctx, uint64_t avma, void *buf,
					    size_t len)
{
	(void)ctx;
	if (avma >= STACK && len <= sizeof(f.stack) &&
	    avma - STACK <= sizeof(f.stack) - len) {
		memcpy(buf, (uint8_t *)f.stack + (avma - STACK), len);
		return WP_MEM_OK;
	}
	/* Words of the file, which slots are among. */
	if (avma >= BIAS && avma - BIAS <= FAKE_SIZE - len) {
		memcpy(buf, f.elf.bytes + (avma - BIAS), len);
		return WP_MEM_OK;
	}
	return WP_MEM_UNREADABLE;
}

/* Text of bytes that are no instruction. */
static inline void proof_text(void)
{
	memset(&f, 0, sizeof(f));
	memset(f.elf.bytes + FAKE_TEXT, 0x06, FAKE_HDR - FAKE_TEXT);
}

static inline void proof_put(size_t at, const void *code, size_t len)
{
	memcpy(f.elf.bytes + FAKE_TEXT + at, code, len);
}

/* Put a call of what is at TARGET in front of AT, where it returns to. */
static inline uint64_t proof_call(size_t at, size_t target)
{
	int32_t disp = (int32_t)target - (int32_t)at;

	proof_put(at - 5, "\xe8", 1);
	proof_put(at - 4, &disp, 4);
	return TEXT + at;
}

/* Let the text be a file's, and the frame's pc at AT and its sp at word SP of the
 * stack. */
static inline void proof_open(size_t at, unsigned int sp, bool is_return)
{
	assert_int_equal(fake_open(&f.elf, &f.image, FAKE_SIZE), 0);
	f.module = (struct wp_unwind_module){ .start_avma = TEXT,
					      .end_avma = BIAS + FAKE_HDR,
					      .bias = BIAS,
					      .image = &f.image };
	f.modules = (struct wp_unwind_modules){ .v = &f.module, .len = 1 };
	f.mem.read = proof_read;
	wp_reg_set(&f.regs, WP_REG_PC, TEXT + at);
	wp_reg_set(&f.regs, WP_REG_SP, STACK + 8 * sp);
	f.step = (struct wp_step){ .module = &f.module,
				   .regs = &f.regs,
				   .mem = &f.mem,
				   .is_return = is_return };
	f.proof = (struct wp_proof){ .flow = &f.flow,
				     .step = &f.step,
				     .modules = &f.modules,
				     .pc_avma = TEXT + at,
				     .sp_avma = STACK + 8 * sp,
				     .words = f.stack + sp,
				     .nwords = NWORDS - sp,
				     .budget = BUDGET };
	wp_flow_open(&f.flow, &f.modules, &f.mem, READS);
}

static inline void proof_set_fp(uint64_t fp_avma)
{
	f.proof.fp_avma = fp_avma;
	f.proof.has_fp = true;
}

static inline void proof_close(void)
{
	fake_close(&f.elf, &f.image);
}

#endif
