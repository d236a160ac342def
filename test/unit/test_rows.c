/* SPDX-License-Identifier: Apache-2.0 */
/* Steps by our own rows.  Layer: unwind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <malloc.h>

#include "../../unwind/rule.h"
#include "cfi_bytes.h"

#if defined(__x86_64__)
#define GCC_CIE "\x0c\x07\x08\x90\x01"
enum {
	RBX = 3,
	RBP = 6,
	RSP = 7,
	R9 = 9,
	R10 = 10,
	R12 = 12,
	R15 = 15,
	RIP = 16,
	BIAS = 0x400000,
	STACK = 0x70000,
	STACK_WORDS = 64,
};

/* A stack at [STACK, STACK + 8 * STACK_WORDS) whose word I is 0xf000 + I. */
struct memory {
	/* Words that cannot be read, as bits. */
	uint64_t holes;
	unsigned int reads;
};

static enum wp_mem_result read_stack(void *ctx, uint64_t avma, void *buf,
				     size_t len)
{
	struct memory *memory = ctx;
	uint64_t words[STACK_WORDS], at = avma - STACK;

	memory->reads++;
	if (at > sizeof(words) || len > sizeof(words) - at)
		return WP_MEM_UNREADABLE;
	for (uint64_t i = 0; i < STACK_WORDS; i++) {
		words[i] = 0xf000 + i;
		if ((memory->holes >> i & 1) && at < 8 * (i + 1) &&
		    at + len > 8 * i)
			return WP_MEM_UNREADABLE;
	}
	memcpy(buf, (char *)words + at, len);
	return WP_MEM_OK;
}

/* One unwinder over one image, and the registers of one frame. */
struct rig {
	struct wp_elf_image image;
	struct wp_unwind_module module;
	struct wp_unwind_stats stats;
	struct memory memory;
	struct wp_mem mem;
	struct wp_regs regs;
	struct wp_step step;
	void *rows;
};

static void rig_open(struct rig *rig)
{
	rig->module = (struct wp_unwind_module){ .start_avma = 0,
						 .end_avma = UINT64_MAX,
						 .bias = BIAS,
						 .image = &rig->image };
	rig->stats = (struct wp_unwind_stats){ 0 };
	rig->memory = (struct memory){ 0 };
	rig->mem = (struct wp_mem){ read_stack, &rig->memory };
	rig->rows = wp_step_rows.open(&rig->stats);
	assert_non_null(rig->rows);
}

static void rig_close(struct rig *rig)
{
	wp_step_rows.close(rig->rows);
	image_free(&rig->image);
}

/* Functions: A at [0x1000, 0x1010) with INSNS, B right behind it. */
static void rig_functions(struct rig *rig, const void *insns, size_t len)
{
	struct bytes b = { .len = 0 };
	size_t cie = put_cie(&b, LIT(GCC_CIE));

	put_fde(&b, cie, 0x1000, 0x10, insns, len);
	/* B: CFA = rsp + 24. */
	put_fde(&b, cie, 0x1010, 0x10, LIT("\x0e\x18"));
	rig->image = image_of(b.v, b.len, 0x1000);
	rig->image.eh_frame = (struct wp_elf_range){ 0x8000, 0, b.len };
	rig_open(rig);
}

static void rig_small(struct rig *rig)
{
	rig->image = small_image(sizeof(small_hdr) + sizeof(small_eh_frame));
	rig_open(rig);
}

/* Step from SVMA with register N = 0xa00 + N, sp and rbp in the stack. */
static enum wp_step_result step_with_work(struct rig *rig, uint64_t svma,
					  bool in_stop, uint32_t *work)
{
	rig->regs = (struct wp_regs){ 0 };
	for (unsigned int i = 0; i < WP_NREGS; i++)
		wp_reg_set(&rig->regs, i, 0xa00 + i);
	wp_reg_set(&rig->regs, RSP, STACK + 8 * 8);
	wp_reg_set(&rig->regs, RBP, STACK + 8 * 32);
	wp_reg_set(&rig->regs, RIP, BIAS + svma);
	rig->step = (struct wp_step){ .module = &rig->module,
				      .regs = &rig->regs,
				      .mem = &rig->mem,
				      .in_stop = in_stop,
				      .work = work };
	return wp_step_rows.step(rig->rows, &rig->step);
}

static enum wp_step_result step_at_pace(struct rig *rig, uint64_t svma,
					bool in_stop)
{
	return step_with_work(rig, svma, in_stop, NULL);
}

static enum wp_step_result step_at(struct rig *rig, uint64_t svma)
{
	return step_at_pace(rig, svma, false);
}

/* A step for a pc not met before takes of the walk's work what its program is long. */
static void a_long_program_is_work(void **state)
{
	enum { PAIRS = 800, LEN = 2 * PAIRS };
	char insns[LEN];
	uint32_t work = LEN / 16 - 1;
	struct rig rig;

	(void)state;
	/* DW_CFA_remember_state; DW_CFA_restore_state. */
	for (size_t i = 0; i < LEN; i++)
		insns[i] = i % 2 ? 0x0b : 0x0a;
	rig_functions(&rig, insns, LEN);
	for (int in_stop = 0; in_stop < 2; in_stop++)
		assert_int_equal(step_with_work(&rig, 0x1004, in_stop, &work),
				 WP_STEP_TOO_SLOW);
	work = 2 * (LEN / 16);
	assert_int_equal(step_with_work(&rig, 0x1004, true, &work), WP_STEP_OK);
	assert_in_range(work, LEN / 16 - 2, LEN / 16);
	/* It was run for that pc. */
	work = 0;
	assert_int_equal(step_with_work(&rig, 0x1004, true, &work), WP_STEP_OK);
	/* A short one takes next to nothing. */
	work = 1;
	assert_int_equal(step_with_work(&rig, 0x1014, false, &work),
			 WP_STEP_OK);
	rig_close(&rig);
}

static void assert_reg(const struct rig *rig, unsigned int reg, uint64_t want)
{
	assert_true(wp_reg_known(&rig->regs, reg));
	assert_int_equal(rig->regs.v[reg], want);
}

static void assert_unknown(const struct rig *rig, unsigned int reg)
{
	assert_false(wp_reg_known(&rig->regs, reg));
	assert_int_equal(rig->regs.v[reg], 0);
}

static void a_step_finds_the_caller(void **state)
{
	struct rig rig;

	(void)state;
	/* def_cfa_offset 32; rbx at CFA-24, rbp at CFA-16. */
	rig_functions(&rig, LIT("\x0e\x20\x83\x03\x86\x02"));
	assert_int_equal(step_at(&rig, 0x1004), WP_STEP_OK);
	/* CFA: word 8 + 4 of the stack. */
	assert_int_equal(rig.step.cfa_avma, STACK + 8 * 12);
	assert_false(rig.step.is_signal);
	assert_reg(&rig, RSP, STACK + 8 * 12);
	assert_reg(&rig, RIP, 0xf000 + 11);
	assert_reg(&rig, RBP, 0xf000 + 10);
	assert_reg(&rig, RBX, 0xf000 + 9);
	assert_reg(&rig, R12, 0xa00 + R12);
	assert_reg(&rig, R15, 0xa00 + R15);
	/* A call may change the others. */
	for (unsigned int i = 0; i < 12; i++)
		if (i != RBX && i != RBP && i != RSP)
			assert_unknown(&rig, i);
	/* All in one read. */
	assert_int_equal(rig.memory.reads, 1);
	rig_close(&rig);
}

/* A call that is A's last instruction returns to B's first. */
static void a_return_address_belongs_to_the_call(void **state)
{
	struct rig rig;
	struct wp_regs regs;

	(void)state;
	rig_functions(&rig, LIT(""));
	assert_int_equal(step_at(&rig, 0x1010), WP_STEP_OK);
	assert_int_equal(rig.step.cfa_avma, STACK + 8 * 8 + 24);
	regs = (struct wp_regs){ 0 };
	wp_reg_set(&regs, RSP, STACK + 8 * 8);
	wp_reg_set(&regs, RIP, BIAS + 0x1010);
	rig.step.regs = &regs;
	rig.step.is_return = true;
	assert_int_equal(wp_step_rows.step(rig.rows, &rig.step), WP_STEP_OK);
	assert_int_equal(rig.step.cfa_avma, STACK + 8 * 8 + 8);
	rig_close(&rig);
}

static void unknown_registers_stay_unknown(void **state)
{
	struct rig rig;

	(void)state;
	/* rbp at CFA-16 */
	rig_functions(&rig, LIT("\x0e\x20\x86\x02"));
	(void)step_at(&rig, 0x1004);
	/* As the no-stop way starts: sp and pc are all that is known. */
	rig.regs = (struct wp_regs){ 0 };
	wp_reg_set(&rig.regs, RSP, STACK);
	wp_reg_set(&rig.regs, RIP, BIAS + 0x1004);
	assert_int_equal(wp_step_rows.step(rig.rows, &rig.step), WP_STEP_OK);
	assert_reg(&rig, RBP, 0xf000 + 2);
	assert_unknown(&rig, RBX);
	assert_unknown(&rig, R12);
	rig_close(&rig);
}

/* Every result but OK leaves the registers as they were. */
static void assert_no_step(struct rig *rig, uint64_t svma, uint64_t unknown,
			   enum wp_step_result want)
{
	struct wp_regs before;

	(void)step_at(rig, svma);
	rig->regs = (struct wp_regs){ 0 };
	wp_reg_set(&rig->regs, RSP, STACK + 8 * 8);
	wp_reg_set(&rig->regs, RBP, STACK + 8 * 32);
	wp_reg_set(&rig->regs, RIP, BIAS + svma);
	rig->regs.known &= ~unknown;
	before = rig->regs;
	rig->step.regs = &rig->regs;
	assert_int_equal(wp_step_rows.step(rig->rows, &rig->step), want);
	assert_memory_equal(&rig->regs, &before, sizeof(before));
}

static void a_needed_register_that_is_not_known(void **state)
{
	static const struct {
		const char *insns;
		size_t len;
	} cases[] = {
		/* CFA = rbp + 16; *(rbp - 8); by an expression */
		{ LIT("\x0c\x06\x10") },
		{ LIT("\x0f\x03\x76\x78\x06") },
		{ LIT("\x0f\x05\x76\x78\x06\x23\x08") },
		/* The return address in rbp; at rbp */
		{ LIT("\x09\x10\x06") },
		{ LIT("\x10\x10\x02\x76\x00") },
		/* The caller's sp in rbp */
		{ LIT("\x09\x07\x06") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig rig;

		rig_functions(&rig, cases[i].insns, cases[i].len);
		assert_int_not_equal(step_at(&rig, 0x1004),
				     WP_STEP_UNKNOWN_REG);
		assert_no_step(&rig, 0x1004, 1u << RBP, WP_STEP_UNKNOWN_REG);
		rig_close(&rig);
	}
}

static void undefined_return_address_is_the_root(void **state)
{
	struct rig rig;

	(void)state;
	rig_functions(&rig, LIT("\x07\x10"));
	assert_no_step(&rig, 0x1004, 0, WP_STEP_ROOT);
	rig_close(&rig);
}

static void each_failure_has_its_result(void **state)
{
	static const struct {
		const char *insns;
		size_t len;
		enum wp_step_result want;
	} cases[] = {
		/* An unknown opcode; an expression that divides by nothing;
		 * as the CFA, for rbx, for the return address */
		{ LIT("\x17"), WP_STEP_BAD_INFO },
		{ LIT("\x0f\x03\x31\x30\x1b"), WP_STEP_BAD_INFO },
		{ LIT("\x10\x03\x03\x31\x30\x1b"), WP_STEP_BAD_INFO },
		{ LIT("\x16\x10\x03\x31\x30\x1b"), WP_STEP_BAD_INFO },
		/* The return address is the pc itself */
		{ LIT("\x08\x10"), WP_STEP_BAD_INFO },
		/* Offsets that do not fit, registers that are none */
		{ LIT("\x0e\x80\x80\x80\x80\x08"), WP_STEP_BAD_INFO },
		{ LIT("\x83\x80\x80\x80\x80\x08"), WP_STEP_BAD_INFO },
		{ LIT("\x0d\x11"), WP_STEP_BAD_INFO },
		{ LIT("\x09\x03\x11"), WP_STEP_BAD_INFO },
		{ LIT("\x0f\x03\x8f\x00\x06"), WP_STEP_BAD_INFO },
		/* The return address, or what leads to it, not readable */
		{ LIT("\x0e\x80\x20"), WP_STEP_UNREADABLE },
		{ LIT("\x0f\x04\x77\x80\x20\x06"), WP_STEP_UNREADABLE },
		{ LIT("\x10\x10\x01\x30"), WP_STEP_UNREADABLE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig rig;
		enum wp_step_result result;

		rig_functions(&rig, cases[i].insns, cases[i].len);
		result = step_at(&rig, 0x1004);
		if (result != cases[i].want)
			print_error("case %zu\n", i);
		assert_int_equal(result, cases[i].want);
		/* The same from the cache. */
		assert_no_step(&rig, 0x1004, 0, cases[i].want);
		rig_close(&rig);
	}
}

static void code_without_info(void **state)
{
	struct rig rig;

	(void)state;
	rig_functions(&rig, LIT(""));
	assert_no_step(&rig, 0x0fff, 0, WP_STEP_NO_INFO);
	assert_no_step(&rig, 0x1020, 0, WP_STEP_NO_INFO);
	/* Known to be so by now. */
	assert_int_equal(rig.stats.cache_misses, 2);
	assert_int_equal(rig.stats.cache_hits, 2);
	rig_close(&rig);
}

/* rbx at CFA-24 cannot be read: no reason not to find the caller. */
static void an_unreadable_register_is_not_known(void **state)
{
	struct rig rig;

	(void)state;
	rig_functions(&rig, LIT("\x0e\x20\x83\x03\x86\x02"));
	rig.memory.holes = 1u << 9;
	assert_int_equal(step_at(&rig, 0x1004), WP_STEP_OK);
	assert_reg(&rig, RIP, 0xf000 + 11);
	assert_reg(&rig, RBP, 0xf000 + 10);
	assert_unknown(&rig, RBX);
	assert_reg(&rig, R12, 0xa00 + R12);
	rig.memory.holes = 1u << 11;
	assert_int_equal(step_at(&rig, 0x1004), WP_STEP_UNREADABLE);
	rig_close(&rig);
}

/* Each kind of rule for rbx, in a frame with CFA = rsp + 32. */
static void every_kind_of_place(void **state)
{
	static const struct {
		const char *insns;
		size_t len;
		bool is_known;
		uint64_t want;
	} cases[] = {
		{ LIT("\x08\x03"), true, 0xa00 + RBX },
		{ LIT("\x07\x03"), false, 0 },
		/* offset, also not of whole words and far away */
		{ LIT("\x83\x04"), true, 0xf000 + 8 },
		{ LIT("\x11\x03\x6c"), true, 0xf000 + 32 },
		/* val_offset -16; register r9; rbx in r9 which is not known */
		{ LIT("\x14\x03\x02"), true, STACK + 8 * 12 - 16 },
		{ LIT("\x09\x03\x09"), true, 0xa00 + R9 },
		/* expression {breg6 -16}, {breg6 16}, {breg6 -16, nop} */
		{ LIT("\x10\x03\x02\x76\x70"), true, 0xf000 + 30 },
		{ LIT("\x10\x03\x02\x76\x10"), true, 0xf000 + 34 },
		{ LIT("\x10\x03\x03\x76\x70\x96"), true, 0xf000 + 30 },
		/* expression {plus_uconst 8}: the CFA is there first */
		{ LIT("\x10\x03\x02\x23\x08"), true, 0xf000 + 13 },
		/* val_expression {plus_uconst 8} */
		{ LIT("\x16\x03\x02\x23\x08"), true, STACK + 8 * 13 },
		/* expression at an address that cannot be read */
		{ LIT("\x10\x03\x01\x30"), false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes insns = { .len = 0 };
		struct rig rig;

		put_bytes(&insns, "\x0e\x20", 2);
		put_bytes(&insns, cases[i].insns, cases[i].len);
		rig_functions(&rig, insns.v, insns.len);
		assert_int_equal(step_at(&rig, 0x1004), WP_STEP_OK);
		if (wp_reg_known(&rig.regs, RBX) != cases[i].is_known)
			print_error("case %zu\n", i);
		if (cases[i].is_known)
			assert_reg(&rig, RBX, cases[i].want);
		else
			assert_unknown(&rig, RBX);
		assert_reg(&rig, RIP, 0xf000 + 11);
		assert_reg(&rig, R12, 0xa00 + R12);
		rig_close(&rig);
	}
}

/* Registers are the frame's own, whatever else the row restores: r12 has rbx's
 * old value, rbx rbp's (as in longjmp, which keeps them in r8 and r9). */
static void places_mean_the_frames_own_registers(void **state)
{
	struct rig rig;

	(void)state;
	rig_functions(&rig, LIT("\x09\x03\x0f\x09\x0c\x03\x09\x0f\x0c"));
	assert_int_equal(step_at(&rig, 0x1004), WP_STEP_OK);
	assert_reg(&rig, RBX, 0xa00 + R15);
	assert_reg(&rig, R12, 0xa00 + RBX);
	assert_reg(&rig, R15, 0xa00 + R12);
	rig_close(&rig);
}

static void saved_registers_need_not_be_close(void **state)
{
	struct rig rig;

	(void)state;
	/* CFA = rsp + 128, r12 at CFA-16, rbp at CFA-128. */
	rig_functions(&rig, LIT("\x0e\x80\x01\x8c\x02\x86\x10"));
	assert_int_equal(step_at(&rig, 0x1004), WP_STEP_OK);
	assert_reg(&rig, RIP, 0xf000 + 23);
	assert_reg(&rig, R12, 0xf000 + 22);
	assert_reg(&rig, RBP, 0xf000 + 8);
	assert_reg(&rig, RBX, 0xa00 + RBX);
	rig_close(&rig);
}

/* What glibc's __restore_rt says: 'S', CFA = *(rsp + 160), every register at
 * rsp + something, the stack pointer among them. */
static void a_signal_frame(void **state)
{
	static const char insns[] =
		"\x0f\x04\x77\xa0\x01\x06" /* CFA: *(rsp + 160) */
		"\x10\x00\x03\x77\x90\x01" /* rax at rsp + 144 */
		"\x10\x03\x03\x77\x80\x01" /* rbx at rsp + 128 */
		"\x10\x06\x02\x77\x38" /* rbp at rsp + 56 */
		"\x10\x07\x03\x77\xa8\x01" /* rsp at rsp + 168 */
		"\x10\x10\x03\x77\xb0\x01"; /* rip at rsp + 176 */
	struct bytes b = { .len = 0 };
	size_t cie;
	struct rig rig;

	(void)state;
	cie = begin_entry(&b);
	put(&b, 0, 4);
	put_bytes(&b, "\x01zRS\0\x01\x78\x10\x01\x04", 10);
	end_entry(&b);
	put_fde(&b, cie, 0x1000, 0x10, LIT(insns));
	rig.image = image_of(b.v, b.len, 0x1000);
	rig.image.eh_frame = (struct wp_elf_range){ 0x8000, 0, b.len };
	rig_open(&rig);
	assert_int_equal(step_at(&rig, 0x1001), WP_STEP_OK);
	assert_true(rig.step.is_signal);
	/* rsp is word 8. */
	assert_int_equal(rig.step.cfa_avma, 0xf000 + 8 + 20);
	assert_reg(&rig, RSP, 0xf000 + 8 + 21);
	assert_reg(&rig, RIP, 0xf000 + 8 + 22);
	assert_reg(&rig, RBX, 0xf000 + 8 + 16);
	assert_reg(&rig, RBP, 0xf000 + 8 + 7);
	assert_reg(&rig, R12, 0xa00 + R12);
	assert_unknown(&rig, 0);
	rig_close(&rig);
}

/* ld's rule for .plt: the second instruction of an entry pushes a word.  See
 * small_hdr: the expression holds from 0x1010 on. */
static void a_plt_entry(void **state)
{
	struct rig rig;

	(void)state;
	rig_small(&rig);
	assert_int_equal(step_at(&rig, 0x1010), WP_STEP_OK);
	assert_int_equal(rig.step.cfa_avma, STACK + 8 * 8 + 8);
	assert_int_equal(step_at(&rig, 0x101a), WP_STEP_OK);
	assert_int_equal(rig.step.cfa_avma, STACK + 8 * 8 + 8);
	assert_int_equal(step_at(&rig, 0x101b), WP_STEP_OK);
	assert_int_equal(rig.step.cfa_avma, STACK + 8 * 8 + 16);
	assert_reg(&rig, RIP, 0xf000 + 9);
	/* The entry that the others jump to has pushed two. */
	assert_int_equal(step_at(&rig, 0x1006), WP_STEP_OK);
	assert_int_equal(rig.step.cfa_avma, STACK + 8 * 8 + 24);
	rig_close(&rig);
}

/* gcc's function with a realigned stack: CFA = *(rbp - 8), rbp at *rbp, rbx at
 * rbp - 16. */
static void a_realigned_stack(void **state)
{
	struct rig rig;

	(void)state;
	rig_small(&rig);
	/* rbp is word 32: *(rbp - 8) is 0xf01f, where nothing is. */
	assert_int_equal(step_at(&rig, 0x10a0), WP_STEP_UNREADABLE);
	/* In the prologue the CFA is r10, known in the innermost frame only. */
	assert_int_equal(step_at(&rig, 0x1080), WP_STEP_UNREADABLE);
	assert_no_step(&rig, 0x1080, 1u << R10, WP_STEP_UNKNOWN_REG);
	rig_close(&rig);
}

static void rules_of_it_are_recognised(void **state)
{
	struct rig rig;
	struct wp_cfi_section section;
	struct wp_cfi_fde fde;
	struct wp_cfi_row row;
	struct wp_rule rule;

	(void)state;
	rig_small(&rig);
	section = (struct wp_cfi_section){ &rig.image, rig.image.eh_frame,
					   false, true };
	assert_int_equal(wp_cfi_parse_fde(&section, 0x58, &fde), 0);
	assert_int_equal(wp_cfi_eval(&fde, 0x10a0, &row), 0);
	rule = wp_rule_pack(&row, false, &rig.image);
	assert_int_equal(rule.result, WP_STEP_OK);
	assert_int_equal(rule.cfa_kind, WP_CFI_CFA_DEREF);
	assert_int_equal(rule.cfa_reg, RBP);
	assert_int_equal(rule.cfa_off, -8);
	/* rbx: rbp - 16; rbp: rbp + 0 */
	assert_int_equal(wp_rule_place(&rule, 0).kind, WP_CFI_AT);
	assert_int_equal(wp_rule_place(&rule, 0).val, -16 * 64 + RBP);
	assert_int_equal(wp_rule_place(&rule, 1).kind, WP_CFI_AT);
	assert_int_equal(wp_rule_place(&rule, 1).val, RBP);
	assert_int_equal(wp_rule_place(&rule, 7).kind, WP_CFI_OFFSET);
	assert_int_equal(wp_rule_place(&rule, 7).val, -8);
	rig_close(&rig);
}

static void the_cache_is_used(void **state)
{
	struct rig rig;

	(void)state;
	rig_small(&rig);
	for (unsigned int i = 0; i < 3; i++)
		for (uint64_t svma = 0x1020; svma < 0x1040; svma++)
			assert_int_equal(step_at(&rig, svma), WP_STEP_OK);
	assert_int_equal(rig.stats.cache_misses, 0x20);
	assert_int_equal(rig.stats.cache_hits, 0x40);
	/* The module moves: its rules do not. */
	assert_null(wp_step_rows.flush);
	rig.module.bias += 0x7000;
	for (uint64_t svma = 0x1020; svma < 0x1040; svma++)
		assert_int_equal(step_at(&rig, svma + 0x7000), WP_STEP_OK);
	assert_int_equal(rig.stats.cache_misses, 0x20);
	rig_close(&rig);
}

/* The same svma of another image has another rule; more images than the first
 * table of tables holds. */
static void images_are_told_apart(void **state)
{
	enum { IMAGES = 200 };
	struct rig rig, *others = test_malloc(IMAGES * sizeof(*others));

	(void)state;
	rig_functions(&rig, LIT(""));
	for (unsigned int i = 0; i < IMAGES; i++) {
		char insns[] = { 0x0e, (char)(8 + 8 * (i % 4)) };

		rig_functions(&others[i], insns, sizeof(insns));
	}
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < IMAGES; i++) {
			rig.module.image = &others[i].image;
			assert_int_equal(step_at(&rig, 0x1004), WP_STEP_OK);
			assert_int_equal(rig.step.cfa_avma,
					 STACK + 8 * (9 + i % 4));
		}
	}
	assert_int_equal(rig.stats.cache_misses, IMAGES);
	for (unsigned int i = 0; i < IMAGES; i++)
		rig_close(&others[i]);
	test_free(others);
	rig_close(&rig);
}

/* To index a section takes long.  Once it is, its rules are at hand. */
static void nothing_is_indexed_while_the_thread_is_stopped(void **state)
{
	struct rig rig;

	(void)state;
	rig_functions(&rig, LIT("\x0e\x20"));
	assert_int_equal(step_at_pace(&rig, 0x1004, true), WP_STEP_TOO_SLOW);
	assert_int_equal(rig.memory.reads, 0);
	assert_int_equal(step_at(&rig, 0x1014), WP_STEP_OK);
	assert_int_equal(step_at_pace(&rig, 0x1004, true), WP_STEP_OK);
	rig_close(&rig);
}

enum { PCS = 40000 };

/* A function of PCS bytes. */
static void rig_large(struct rig *rig)
{
	static struct bytes b;
	size_t cie;

	b.len = 0;
	cie = put_cie(&b, LIT(GCC_CIE));
	/* advance_loc2 20000; def_cfa_offset 16 */
	put_fde(&b, cie, 0x1000, PCS, LIT("\x03\x20\x4e\x0e\x10"));
	rig->image = image_of(b.v, b.len, 0x1000);
	rig->image.eh_frame = (struct wp_elf_range){ 0x8000, 0, b.len };
	rig_open(rig);
}

/* The cache is small at first, and takes its rules along when it grows. */
static void a_growing_cache_keeps_its_rules(void **state)
{
	/* Some of so many may have been replaced. */
	enum { MANY = 2000, MOST_LOST = MANY / 20 };
	struct rig rig;

	(void)state;
	rig_large(&rig);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(step_at(&rig, 0x1000 + 20 * i), WP_STEP_OK);
	assert_int_equal(rig.stats.cache_misses, MANY);
	for (unsigned int i = 0; i < MANY; i++) {
		assert_int_equal(step_at(&rig, 0x1000 + 20 * i), WP_STEP_OK);
		assert_int_equal(rig.step.cfa_avma,
				 STACK + 8 * (20 * i < 20000 ? 9 : 10));
	}
	assert_in_range(rig.stats.cache_misses, MANY, MANY + MOST_LOST);
	/* Mebibytes are not touched in a stop. */
	rig_close(&rig);
	rig_large(&rig);
	assert_int_equal(step_at(&rig, 0x1000), WP_STEP_OK);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(step_at_pace(&rig, 0x1000 + 20 * i, true),
				 WP_STEP_OK);
	assert_int_equal(rig.stats.cache_misses, MANY);
	rig.stats.cache_misses = 0;
	for (unsigned int i = 0; i < MANY; i++)
		(void)step_at_pace(&rig, 0x1000 + 20 * i, true);
	assert_true(rig.stats.cache_misses > MANY / 2);
	rig_close(&rig);
}

/* More pcs than the cache holds: slower, not wrong. */
static void a_full_cache_just_misses(void **state)
{
	struct rig rig;

	(void)state;
	rig_large(&rig);
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < PCS; i++) {
			assert_int_equal(step_at(&rig, 0x1000 + i), WP_STEP_OK);
			assert_int_equal(rig.step.cfa_avma,
					 STACK + 8 * (i < 20000 ? 9 : 10));
		}
	}
	assert_true(rig.stats.cache_misses > PCS);
	assert_int_equal(rig.stats.cache_hits + rig.stats.cache_misses,
			 2 * PCS);
	rig_close(&rig);
}

static void steady_state_allocates_nothing(void **state)
{
#if defined(__SANITIZE_ADDRESS__)
	/* Its allocator does not count for mallinfo2. */
	(void)state;
	skip();
#else
	struct rig rig;
	struct mallinfo2 before, after;

	(void)state;
	rig_functions(&rig, LIT("\x0e\x20\x83\x03"));
	(void)step_at(&rig, 0x1004);
	before = mallinfo2();
	for (uint64_t i = 0; i < 1000; i++)
		(void)step_at(&rig, 0x1000 + i % 0x30);
	after = mallinfo2();
	assert_int_equal(before.uordblks, after.uordblks);
	assert_int_equal(before.hblkhd, after.hblkhd);
	rig_close(&rig);
#endif
}

static void a_rule_is_small(void **state)
{
	(void)state;
	/* With its key, one cache line. */
	assert_int_equal(sizeof(struct wp_rule), 48);
}

/* Step in IMAGE's functions, twice: rules made and from the cache. */
static void step_everywhere(const struct wp_elf_image *image)
{
	struct rig rig;

	rig.image = *image;
	rig_open(&rig);
	for (unsigned int round = 0; round < 2; round++)
		for (uint64_t svma = 0xffe; svma < 0x10c0; svma += 3)
			(void)step_at(&rig, svma);
	wp_step_rows.close(rig.rows);
}

static void every_prefix_is_safe(void **state)
{
	(void)state;
	for (size_t n = 0; n <= sizeof(small_hdr) + sizeof(small_eh_frame);
	     n++) {
		struct wp_elf_image image = small_image(n);

		step_everywhere(&image);
		image_free(&image);
	}
}

static void every_flipped_byte_is_safe(void **state)
{
	static const uint8_t flips[] = { 0x01, 0xff };
	size_t len = sizeof(small_hdr) + sizeof(small_eh_frame);

	(void)state;
	for (size_t n = 0; n < len * sizeof(flips); n++) {
		struct wp_elf_image image = small_image(len);

		image.data[n / sizeof(flips)] ^= flips[n % sizeof(flips)];
		step_everywhere(&image);
		image_free(&image);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_finds_the_caller),
		cmocka_unit_test(a_return_address_belongs_to_the_call),
		cmocka_unit_test(unknown_registers_stay_unknown),
		cmocka_unit_test(a_needed_register_that_is_not_known),
		cmocka_unit_test(undefined_return_address_is_the_root),
		cmocka_unit_test(each_failure_has_its_result),
		cmocka_unit_test(code_without_info),
		cmocka_unit_test(an_unreadable_register_is_not_known),
		cmocka_unit_test(every_kind_of_place),
		cmocka_unit_test(places_mean_the_frames_own_registers),
		cmocka_unit_test(saved_registers_need_not_be_close),
		cmocka_unit_test(a_signal_frame),
		cmocka_unit_test(a_plt_entry),
		cmocka_unit_test(a_realigned_stack),
		cmocka_unit_test(rules_of_it_are_recognised),
		cmocka_unit_test(the_cache_is_used),
		cmocka_unit_test(images_are_told_apart),
		cmocka_unit_test(
			nothing_is_indexed_while_the_thread_is_stopped),
		cmocka_unit_test(a_growing_cache_keeps_its_rules),
		cmocka_unit_test(a_full_cache_just_misses),
		cmocka_unit_test(steady_state_allocates_nothing),
		cmocka_unit_test(a_long_program_is_work),
		cmocka_unit_test(a_rule_is_small),
		cmocka_unit_test(every_prefix_is_safe),
		cmocka_unit_test(every_flipped_byte_is_safe),
	};
	return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
#else
int main(void)
{
	/* The bytes above are x86-64's. */
	return 0;
}
#endif
