/* SPDX-License-Identifier: Apache-2.0 */
/* test_return_path.c - steps from aarch64's code without unwind info: at each
 * instruction of functions in a file, over a stack that is an array.
 *
 * Layer: unwind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../unwind/return_path.h"
#include "../../unwind/rule.h"
#include "fake_elf.h"

#if defined(__aarch64__)

enum {
	/* Of the text: the caller, behind whose call the function returns; the caller's
	 * caller; the function. */
	CALLER = 0x40,
	OUTER = 0x80,
	FUNC = 0x200,
	TRAMPOLINE = 0x800,
	NWORDS = 64,
	/* The word of the stack that the CFA of the function is at, where the caller's
	 * frame record is; and the one of the caller's caller. */
	CFA = 24,
	OUTER_RECORD = 40,
	SIGFRAME_LEN = 4688,
	SIGFRAME_REGS = 312,
};

#define BIAS UINT64_C(0x400000)
#define TEXT (BIAS + FAKE_TEXT)
#define STACK UINT64_C(0x7ffc00000000)
#define AT(word) (STACK + 8 * (uint64_t)(word))

static struct fixture {
	struct fake_elf elf;
	struct wp_elf_image image;
	struct wp_unwind_module module;
	struct wp_unwind_modules modules;
	struct wp_mem mem;
	struct wp_regs regs;
	struct wp_step step;
	uint64_t stack[NWORDS];
	/* Another stack. */
	uint64_t other_avma;
	uint8_t other[SIGFRAME_LEN + 64];
} f;

static enum wp_mem_result read_stacks(void *ctx, uint64_t avma, void *buf,
				      size_t len)
{
	(void)ctx;
	if (avma >= STACK && avma - STACK + len <= sizeof(f.stack))
		memcpy(buf, (const char *)f.stack + (avma - STACK), len);
	else if (avma >= f.other_avma &&
		 avma - f.other_avma + len <= sizeof(f.other))
		memcpy(buf, f.other + (avma - f.other_avma), len);
	else
		return WP_MEM_UNREADABLE;
	return WP_MEM_OK;
}

static void put_insn(size_t at, uint32_t insn)
{
	memcpy(f.elf.bytes + FAKE_TEXT + at, &insn, sizeof(insn));
}

/* The functions, and where each ends: global, for aarch64's linker gives all labels of a
 * section one slot of the GOT. */
#define FUNCTION(name, ...)                                                    \
	extern const uint32_t name[], name##_end[];                            \
	__asm__(".pushsection .rodata\n.globl " #name ", " #name               \
		"_end\n.balign 4\n" #name ":\n" __VA_ARGS__ "\n" #name         \
		"_end:\n.popsection\n")

FUNCTION(leaf, "cmp x0, x1\nadd x0, x0, x1\nret");
FUNCTION(leaf_with_locals,
	 "sub sp, sp, #32\nstr x0, [sp, #8]\n1: ldr x1, [sp, #8]\n"
	 "subs x1, x1, #1\nb.ne 1b\nadd sp, sp, #32\nret");
FUNCTION(with_record, "stp x29, x30, [sp, #-32]!\nmov x29, sp\n"
		      "str x19, [sp, #16]\nbl .+64\nldr x19, [sp, #16]\n"
		      "ldp x29, x30, [sp], #32\nret");
FUNCTION(with_record_above, "sub sp, sp, #64\nstp x29, x30, [sp, #48]\n"
			    "add x29, sp, #48\nbl .+64\n"
			    "ldp x29, x30, [sp, #48]\nadd sp, sp, #64\nret");
FUNCTION(without_record,
	 "str x30, [sp, #-16]!\nbl .+64\nldr x30, [sp], #16\nret");
FUNCTION(with_alloca, "stp x29, x30, [sp, #-16]!\nmov x29, sp\n"
		      "sub sp, sp, #32\nbl .+64\nmov sp, x29\n"
		      "ldp x29, x30, [sp], #16\nret");
FUNCTION(signed_return, "hint #25\nstp x29, x30, [sp, #-16]!\nmov x29, sp\n"
			"bl .+64\nldp x29, x30, [sp], #16\nhint #29\nret");

/* Where the function at INDEX instructions stands: bytes of its stack; lr has the return
 * address; it is stored at the bytes below the CFA, with x29 before it if HAS_RECORD; x29
 * points to that. */
struct place {
	int used;
	bool in_lr;
	int stored;
	bool has_record;
	bool is_fp;
};

/* Put CODE, LEN instructions, into the file and open it. */
static void start(const uint32_t *code, size_t len)
{
	memset(&f, 0, sizeof(f));
	for (size_t at = 0; at < FAKE_HDR - FAKE_TEXT; at += 4)
		put_insn(at, 0xd503201f);
	/* bl. */
	put_insn(CALLER - 4, 0x94000000 | ((FUNC - CALLER + 4) / 4));
	put_insn(OUTER - 4, 0x94000010);
	memcpy(f.elf.bytes + FAKE_TEXT + FUNC, code, len * 4);
	/* What comes behind returns nowhere. */
	put_insn(FUNC + len * 4, 0);
	assert_int_equal(fake_open(&f.elf, &f.image, FAKE_SIZE), 0);
	f.module = (struct wp_unwind_module){ .start_avma = TEXT,
					      .end_avma = BIAS + FAKE_HDR,
					      .bias = BIAS,
					      .mapping = 1,
					      .image = &f.image };
	f.modules = (struct wp_unwind_modules){ .v = &f.module,
						.len = 1,
						.generation = 1 };
	f.mem.read = read_stacks;
	f.step = (struct wp_step){ .module = &f.module,
				   .regs = &f.regs,
				   .mem = &f.mem };
	/* The records of the callers. */
	f.stack[CFA] = AT(OUTER_RECORD);
	f.stack[CFA + 1] = TEXT + OUTER;
}

/* The thread stands before instruction INDEX of the function, at PLACE. */
static void stand(int index, const struct place *place, bool is_return)
{
	int record = CFA - place->stored / 8;

	f.regs = (struct wp_regs){ 0 };
	for (unsigned int i = 0; i < WP_NREGS; i++)
		wp_reg_set(&f.regs, i, 0);
	memset(f.stack, 0, CFA * sizeof(*f.stack));
	if (place->has_record) {
		f.stack[record] = AT(CFA);
		f.stack[record + 1] = TEXT + CALLER;
	} else if (place->stored) {
		f.stack[record] = TEXT + CALLER;
	}
	wp_reg_set(&f.regs, WP_REG_PC, TEXT + FUNC + 4 * (uint64_t)index);
	wp_reg_set(&f.regs, WP_REG_SP, AT(CFA) - (uint64_t)place->used);
	wp_reg_set(&f.regs, WP_REG_FP, place->is_fp ? AT(record) : AT(CFA));
	/* A call leaves where it returned to. */
	wp_reg_set(&f.regs, WP_REG_LR,
		   TEXT + (place->in_lr ? CALLER : FUNC + 4 * index));
	if (is_return)
		f.regs.known &= WP_ARCH_CALLEE_SAVED |
				UINT64_C(1) << WP_REG_SP |
				UINT64_C(1) << WP_REG_PC;
	f.step.is_return = is_return;
}

static enum wp_step_result go(void)
{
	return wp_step_guess(NULL, &f.step, &f.modules);
}

static void assert_caller(enum wp_step_result result)
{
	assert_int_equal(result, WP_STEP_OK);
	assert_int_equal(f.regs.v[WP_REG_PC], TEXT + CALLER);
	assert_true(wp_reg_known(&f.regs, WP_REG_SP));
	assert_int_equal(f.regs.v[WP_REG_SP], AT(CFA));
	assert_true(wp_reg_known(&f.regs, WP_REG_FP));
	assert_int_equal(f.regs.v[WP_REG_FP], AT(CFA));
	assert_int_equal(f.step.cfa_avma, AT(CFA));
}

/* CODE is at each of its instructions at one of PLACES, and behind its call too. */
static void check_each_place(const uint32_t *code, const uint32_t *end,
			     const struct place *places)
{
	start(code, (size_t)(end - code));
	for (int i = 0; i < end - code; i++) {
		stand(i, &places[i], false);
		assert_caller(go());
		if (!i || (code[i - 1] & 0xfc000000) != 0x94000000)
			continue;
		stand(i, &places[i], true);
		assert_caller(go());
	}
	fake_close(&f.elf, &f.image);
}

#define CHECK(name, ...)                                                       \
	check_each_place(name, name##_end,                                     \
			 (const struct place[]){ __VA_ARGS__ })

static void a_leaf_returns_to_lr(void **state)
{
	const struct place none = { .in_lr = true };
	const struct place locals = { .used = 32, .in_lr = true };

	(void)state;
	CHECK(leaf, none, none, none);
	CHECK(leaf_with_locals, none, locals, locals, locals, locals, locals,
	      none);
}

static void a_function_returns_where_its_record_says(void **state)
{
	const struct place none = { .in_lr = true };
	const struct place stored = { 32, true, 32, true, false };
	const struct place set_up = { 32, true, 32, true, true };
	const struct place called = { 32, false, 32, true, true };
	const struct place room = { .used = 64, .in_lr = true };
	const struct place above = { 64, true, 16, true, false };
	const struct place above_set = { 64, true, 16, true, true };
	const struct place above_called = { 64, false, 16, true, true };

	(void)state;
	CHECK(with_record, none, stored, set_up, set_up, called, called, none);
	CHECK(with_record_above, none, room, above, above_set, above_called,
	      room, none);
}

static void a_function_without_a_record_hides_no_caller(void **state)
{
	const struct place none = { .in_lr = true };
	const struct place stored = { .used = 16, .in_lr = true, .stored = 16 };
	const struct place called = { .used = 16, .stored = 16 };

	(void)state;
	CHECK(without_record, none, stored, called, none);
}

static void a_stack_of_any_size_is_left(void **state)
{
	const struct place none = { .in_lr = true };
	const struct place stored = { 16, true, 16, true, false };
	const struct place set_up = { 16, true, 16, true, true };
	const struct place room = { 48, true, 16, true, true };
	const struct place called = { 48, false, 16, true, true };
	const struct place back = { 16, false, 16, true, true };

	(void)state;
	CHECK(with_alloca, none, stored, set_up, room, called, back, none);
}

static void a_signed_return_address_is_followed(void **state)
{
	const struct place none = { .in_lr = true };
	const struct place stored = { 16, true, 16, true, false };
	const struct place set_up = { 16, true, 16, true, true };
	const struct place called = { 16, false, 16, true, true };

	(void)state;
	CHECK(signed_return, none, none, stored, set_up, called, none, none);
}

/* The way back from a branch does not hide that another one returns. */
FUNCTION(wrapped, "cbz x0, 1f\nstp x29, x30, [sp, #-16]!\nmov x29, sp\n"
		  "bl .+64\nldp x29, x30, [sp], #16\n1: ret\n"
		  "bl .+64\nbrk #0");
FUNCTION(jumps_on, "cbnz x0, 1f\nb 2f\n1: brk #0\n2: br x17");
FUNCTION(switches, "cbz x0, 1f\nbr x2\n1: ret");

static void branches_are_followed(void **state)
{
	const struct place none = { .in_lr = true };

	(void)state;
	start(wrapped, (size_t)(wrapped_end - wrapped));
	stand(0, &none, false);
	assert_caller(go());
	fake_close(&f.elf, &f.image);
	start(jumps_on, (size_t)(jumps_on_end - jumps_on));
	stand(0, &none, false);
	assert_caller(go());
	fake_close(&f.elf, &f.image);
	start(switches, (size_t)(switches_end - switches));
	stand(0, &none, false);
	assert_caller(go());
	/* A jump by register alone may stay in the function. */
	stand(1, &none, false);
	assert_int_equal(go(), WP_STEP_NO_INFO);
	fake_close(&f.elf, &f.image);
}

/* lr has no return address, but it is there that the code returns to. */
static void an_address_behind_no_call_is_no_caller(void **state)
{
	const struct place none = { .in_lr = true };

	(void)state;
	start(leaf, (size_t)(leaf_end - leaf));
	stand(0, &none, false);
	wp_reg_set(&f.regs, WP_REG_LR, TEXT + CALLER + 4);
	assert_int_equal(go(), WP_STEP_NO_INFO);
	stand(0, &none, false);
	fake_close(&f.elf, &f.image);
}

static void what_is_not_known_is_asked_for(void **state)
{
	const struct place none = { .in_lr = true };
	const struct place called = { .used = 16, .stored = 16 };

	(void)state;
	start(leaf, (size_t)(leaf_end - leaf));
	stand(0, &none, false);
	f.regs.known &= ~(UINT64_C(1) << WP_REG_LR);
	assert_int_equal(go(), WP_STEP_UNKNOWN_REG);
	/* As a waiting thread's are. */
	f.regs.known = UINT64_C(1) << WP_REG_SP | UINT64_C(1) << WP_REG_PC;
	assert_int_equal(go(), WP_STEP_UNKNOWN_REG);
	fake_close(&f.elf, &f.image);
	/* The stack goes on past what can be read. */
	start(without_record, (size_t)(without_record_end - without_record));
	stand(2, &called, true);
	wp_reg_set(&f.regs, WP_REG_SP, AT(NWORDS));
	assert_int_equal(go(), WP_STEP_UNREADABLE);
	fake_close(&f.elf, &f.image);
}

static void a_stop_is_not_held_up(void **state)
{
	enum { LONG = 600 };
	static uint32_t code[LONG];
	const struct place none = { .in_lr = true };
	uint32_t work = 1 << 14;

	(void)state;
	for (size_t i = 0; i < LONG; i++)
		code[i] = i == LONG - 1 ? 0xd65f03c0 : 0xd503201f;
	start(code, LONG);
	f.step.in_stop = true;
	stand(0, &none, false);
	assert_int_equal(go(), WP_STEP_TOO_SLOW);
	stand(LONG - 100, &none, false);
	assert_caller(go());
	f.step.in_stop = false;
	f.step.work = &work;
	stand(0, &none, false);
	assert_caller(go());
	/* Only what was followed is paid for. */
	assert_in_range(work, (1 << 14) - LONG, (1 << 14) - LONG / 16);
	work = 1;
	stand(0, &none, false);
	assert_int_equal(go(), WP_STEP_TOO_SLOW);
	fake_close(&f.elf, &f.image);
}

/* Code that returns on no way. */
FUNCTION(endless, "stp x29, x30, [sp, #-16]!\nmov x29, sp\n1: bl .+64\nb 1b");
FUNCTION(endless_by_fp,
	 "stp x29, x30, [sp, #-16]!\nmov x29, sp\n"
	 "sub sp, sp, #32\n1: bl .+64\nstr x0, [x29, #-8]\nb 1b");
FUNCTION(endless_without, "str x30, [sp, #-16]!\n1: bl .+64\nb 1b");
FUNCTION(endless_leaf, "1: add x0, x0, #1\nb 1b");

static void code_that_never_returns_has_its_record(void **state)
{
	const struct place set_up = { 16, false, 16, true, true };
	const struct place room = { 48, false, 16, true, true };

	(void)state;
	start(endless, (size_t)(endless_end - endless));
	for (int is_return = 0; is_return < 2; is_return++) {
		stand(3, &set_up, is_return);
		assert_int_equal(go(), WP_STEP_OK);
		assert_int_equal(f.regs.v[WP_REG_PC], TEXT + CALLER);
		assert_int_equal(f.regs.v[WP_REG_FP], AT(CFA));
		/* Where it ends, a record does not say. */
		assert_false(wp_reg_known(&f.regs, WP_REG_SP));
		assert_int_equal(f.regs.v[WP_REG_SP], AT(CFA));
	}
	fake_close(&f.elf, &f.image);
	/* What lies below the record may look like a return address. */
	start(endless_by_fp, (size_t)(endless_by_fp_end - endless_by_fp));
	stand(4, &room, true);
	f.stack[CFA - 4] = TEXT + OUTER;
	assert_int_equal(go(), WP_STEP_OK);
	assert_int_equal(f.regs.v[WP_REG_PC], TEXT + CALLER);
	fake_close(&f.elf, &f.image);
}

static void a_record_of_the_caller_is_not_taken(void **state)
{
	const struct place none = { .in_lr = true };
	const struct place called = { .used = 16, .stored = 16 };

	(void)state;
	start(endless_without, (size_t)(endless_without_end - endless_without));
	stand(2, &called, true);
	assert_int_equal(go(), WP_STEP_NO_INFO);
	stand(2, &called, false);
	assert_int_equal(go(), WP_STEP_NO_INFO);
	/* lr is not stored so far. */
	stand(0, &none, false);
	assert_int_equal(go(), WP_STEP_NO_INFO);
	fake_close(&f.elf, &f.image);
	start(endless_leaf, (size_t)(endless_leaf_end - endless_leaf));
	stand(0, &none, false);
	assert_int_equal(go(), WP_STEP_NO_INFO);
	fake_close(&f.elf, &f.image);
}

/* As musl's clone calls the first function of a thread. */
FUNCTION(ends_thread, "ldp x1, x0, [sp], #16\nblr x1\nmov x8, #93\nsvc #0");
FUNCTION(exits, "blr x1\nmov w8, #94\nmov x0, #0\nsvc #0");
FUNCTION(calls_more, "blr x1\nmov x8, #96\nsvc #0");

static void code_that_ends_a_thread_has_no_caller(void **state)
{
	const struct place none = { .used = 0 };

	(void)state;
	start(ends_thread, (size_t)(ends_thread_end - ends_thread));
	stand(2, &none, true);
	/* The creator's. */
	wp_reg_set(&f.regs, WP_REG_FP, STACK - 0x10000000);
	assert_int_equal(go(), WP_STEP_ROOT);
	/* A thread that is just there. */
	stand(2, &none, false);
	wp_reg_set(&f.regs, WP_REG_FP, STACK - 0x10000000);
	assert_int_equal(go(), WP_STEP_NO_INFO);
	fake_close(&f.elf, &f.image);
	start(exits, (size_t)(exits_end - exits));
	stand(1, &none, true);
	assert_int_equal(go(), WP_STEP_ROOT);
	fake_close(&f.elf, &f.image);
	start(calls_more, (size_t)(calls_more_end - calls_more));
	stand(1, &none, true);
	wp_reg_set(&f.regs, WP_REG_FP, STACK - 0x10000000);
	assert_int_equal(go(), WP_STEP_NO_INFO);
	fake_close(&f.elf, &f.image);
}

/* musl's first functions of a thread never return, and x29 is 0 there. */
static void the_end_of_the_chain_is_the_end(void **state)
{
	const struct place set_up = { 16, false, 16, true, true };
	const struct place called = { .used = 16, .stored = 16 };

	(void)state;
	start(endless_without, (size_t)(endless_without_end - endless_without));
	stand(2, &called, true);
	wp_reg_set(&f.regs, WP_REG_FP, 0);
	assert_int_equal(go(), WP_STEP_ROOT);
	fake_close(&f.elf, &f.image);
	/* The record of the first function. */
	start(endless, (size_t)(endless_end - endless));
	stand(3, &set_up, true);
	f.stack[CFA - 2] = f.stack[CFA - 1] = 0;
	assert_int_equal(go(), WP_STEP_ROOT);
	fake_close(&f.elf, &f.image);
	start(without_record, (size_t)(without_record_end - without_record));
	stand(2, &called, true);
	f.stack[CFA - 2] = 0;
	assert_int_equal(go(), WP_STEP_OK);
	assert_int_equal(f.regs.v[WP_REG_PC], 0);
	fake_close(&f.elf, &f.image);
}

/* The compiler's unwind info takes the CFA from sp, which a frame record does not
 * tell: the frame's own record does. */
static void a_frame_behind_a_record_finds_its_sp(void **state)
{
	struct wp_cfi_row row = { .cfa_kind = WP_CFI_CFA_REG,
				  .cfa_reg = WP_REG_SP,
				  .cfa_off = 64 };
	struct wp_rule rule;

	(void)state;
	start(leaf, (size_t)(leaf_end - leaf));
	row.reg[WP_CFI_SP_SLOT].kind = WP_CFI_VAL_OFFSET;
	row.reg[WP_CFI_FP_SLOT] = (struct wp_cfi_place){ WP_CFI_OFFSET, -48 };
	row.reg[WP_CFI_RA_SLOT] = (struct wp_cfi_place){ WP_CFI_OFFSET, -40 };
	f.regs.v[WP_REG_SP] = AT(4);
	wp_reg_set(&f.regs, WP_REG_PC, TEXT + FUNC);
	wp_reg_set(&f.regs, WP_REG_FP, AT(CFA));
	rule = wp_rule_pack(&row, false, &f.image);
	assert_int_equal(wp_rule_execute(&rule, &f.step), WP_STEP_OK);
	assert_int_equal(f.regs.v[WP_REG_PC], TEXT + OUTER);
	assert_int_equal(f.regs.v[WP_REG_FP], AT(OUTER_RECORD));
	assert_int_equal(f.regs.v[WP_REG_SP], AT(CFA) + 48);
	assert_true(wp_reg_known(&f.regs, WP_REG_SP));
	/* A frame that has none: x29 may be any other's. */
	f.regs = (struct wp_regs){ 0 };
	wp_reg_set(&f.regs, WP_REG_PC, TEXT + FUNC);
	wp_reg_set(&f.regs, WP_REG_FP, AT(CFA));
	row.reg[WP_CFI_FP_SLOT] = (struct wp_cfi_place){ WP_CFI_SAME, 0 };
	rule = wp_rule_pack(&row, false, &f.image);
	assert_int_equal(wp_rule_execute(&rule, &f.step), WP_STEP_UNKNOWN_REG);
	fake_close(&f.elf, &f.image);
}

/* Behind a frame record: sp is told by the frame's own record, and not by another's. */
static void a_way_to_a_return_finds_its_sp(void **state)
{
	const struct place called = { 32, false, 32, true, true };
	const struct place bare = { .used = 16, .stored = 16 };

	(void)state;
	start(with_record, (size_t)(with_record_end - with_record));
	stand(4, &called, true);
	f.regs.v[WP_REG_SP] = AT(2);
	wp_reg_forget_sp(&f.regs);
	assert_caller(go());
	fake_close(&f.elf, &f.image);
	start(without_record, (size_t)(without_record_end - without_record));
	stand(2, &bare, true);
	f.regs.v[WP_REG_SP] = AT(2);
	wp_reg_forget_sp(&f.regs);
	assert_int_equal(go(), WP_STEP_UNKNOWN_REG);
	fake_close(&f.elf, &f.image);
}

/* A handler without unwind info, on a stack of its own at OTHER_AVMA, which came upon
 * a leaf. */
static void check_handler(uint64_t other_avma)
{
	enum { HANDLER = FUNC + 0x100, RETURNS = HANDLER + 8, FRAME = 16 };
	const uint64_t trampoline_avma = TEXT + TRAMPOLINE;
	const struct place none = { .in_lr = true };
	struct wp_frame frames[8];
	uint64_t cfa[8];
	struct wp_stack stack = { .frames = frames, .cfa_avma = cfa, .cap = 8 };
	struct wp_unwinder *u;

	start(leaf, (size_t)(leaf_end - leaf));
	fake_close(&f.elf, &f.image);
	memcpy(f.elf.bytes + FAKE_TEXT + HANDLER, without_record,
	       sizeof(*without_record) *
		       (size_t)(without_record_end - without_record));
	/* mov x8, #139; svc #0. */
	put_insn(TRAMPOLINE, 0xd2801168);
	put_insn(TRAMPOLINE + 4, 0xd4000001);
	assert_int_equal(fake_open(&f.elf, &f.image, FAKE_SIZE), 0);
	f.other_avma = other_avma;
	stand(0, &none, false);
	memcpy(f.other + FRAME + SIGFRAME_REGS, f.regs.v, sizeof(f.regs.v));
	memcpy(f.other, &trampoline_avma, sizeof(trampoline_avma));
	wp_reg_set(&f.regs, WP_REG_PC, TEXT + RETURNS);
	wp_reg_set(&f.regs, WP_REG_SP, other_avma);
	wp_reg_set(&f.regs, WP_REG_FP, other_avma + SIGFRAME_LEN);
	wp_reg_set(&f.regs, WP_REG_LR, TEXT + RETURNS);
	assert_int_equal(wp_unwinder_new(&u, WP_UNWIND_ROWS), 0);
	wp_unwind_walk(u, &f.modules, &f.regs, &f.mem, WP_UNWIND_THOROUGH,
		       &stack);
	assert_in_range(stack.depth, 5, 8);
	assert_int_equal(frames[1].pc_avma, trampoline_avma);
	assert_true(frames[1].flags & WP_FRAME_SIGNAL);
	assert_int_equal(frames[2].pc_avma, TEXT + FUNC);
	assert_false(frames[2].flags & WP_FRAME_RETURN);
	assert_int_equal(frames[3].pc_avma, TEXT + CALLER);
	assert_int_equal(frames[4].pc_avma, TEXT + OUTER);
	wp_unwinder_free(u);
	fake_close(&f.elf, &f.image);
}

static void a_handler_on_another_stack_is_walked_through(void **state)
{
	(void)state;
	check_handler(STACK - 0x10000000);
	check_handler(STACK + 0x10000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_leaf_returns_to_lr),
		cmocka_unit_test(a_function_returns_where_its_record_says),
		cmocka_unit_test(a_function_without_a_record_hides_no_caller),
		cmocka_unit_test(a_stack_of_any_size_is_left),
		cmocka_unit_test(a_signed_return_address_is_followed),
		cmocka_unit_test(branches_are_followed),
		cmocka_unit_test(an_address_behind_no_call_is_no_caller),
		cmocka_unit_test(what_is_not_known_is_asked_for),
		cmocka_unit_test(a_stop_is_not_held_up),
		cmocka_unit_test(code_that_never_returns_has_its_record),
		cmocka_unit_test(a_record_of_the_caller_is_not_taken),
		cmocka_unit_test(code_that_ends_a_thread_has_no_caller),
		cmocka_unit_test(the_end_of_the_chain_is_the_end),
		cmocka_unit_test(a_frame_behind_a_record_finds_its_sp),
		cmocka_unit_test(a_way_to_a_return_finds_its_sp),
		cmocka_unit_test(a_handler_on_another_stack_is_walked_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 0;
}

#endif
