/* SPDX-License-Identifier: Apache-2.0 */
/* test_prover.c - steps from code without unwind info: which proofs are searched for,
 * which are remembered, and what is done without one.
 *
 * Layer: unwind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../unwind/prover.h"

#if defined(__x86_64__)

#include "proof_maker.h"

#define CODE(bytes) bytes, sizeof(bytes) - 1

enum {
	RAX = 0,
	RBX = 3,
	R12 = 12,
	R13 = 13,
	/* Of the text: a call of another function than FUNC. */
	OTHERS = CALLER + 0x20,
	/* Calls of FUNC, each 16 bytes behind the one before. */
	CALLS = 0x80,
	NCALLS = 8,
	/* Words of a stack that is longer than the fixture's. */
	LONG = 700,
};

static struct wp_unwind_stats stats;
static struct wp_prover *prover;
static uint64_t long_stack[LONG];

/* FUNC has CODE, on a stack without a return address.  CALLER and calls from CALLS on
 * call FUNC, OTHERS something else. */
static void put_function(const char *code, size_t len)
{
	proof_text();
	proof_put(FUNC - 1, "\x90", 1);
	proof_put(FUNC, code, len);
	proof_put(OTHER, "\xc3", 1);
	proof_call(CALLER, FUNC);
	proof_call(OTHERS, OTHER);
	for (unsigned int i = 0; i < NCALLS; i++)
		proof_call(CALLS + 0x10 * i, FUNC);
	for (unsigned int n = 0; n < NWORDS; n++)
		f.stack[n] = 0xbad;
}

/* The frame is at AT of FUNC, its sp at word SP; of a file or, with IS_FOREIGN, of
 * memory of no file. */
static void open_at(size_t at, unsigned int sp, bool is_return, bool is_foreign)
{
	proof_open(FUNC + at, sp, is_return);
	if (is_foreign)
		f.module.image = NULL;
	stats = (struct wp_unwind_stats){ 0 };
	prover = wp_prover_new(&stats);
	assert_non_null(prover);
}

static void open_frame(const char *code, size_t len, size_t at, unsigned int sp,
		       bool is_return, bool is_foreign)
{
	put_function(code, len);
	open_at(at, sp, is_return, is_foreign);
}

static void close_frame(void)
{
	wp_prover_free(prover);
	proof_close();
}

/* Make the step of the thread at AT of the text, its sp at word SP. */
static enum wp_step_result step_from(size_t at, unsigned int sp)
{
	wp_reg_set(&f.regs, WP_REG_PC, TEXT + at);
	wp_reg_set(&f.regs, WP_REG_SP, STACK + 8 * sp);
	return wp_prover_step(prover, &f.step, &f.modules);
}

/* The same, of the frame as it was opened; rbp points to word FP, below 0: it
 * is not known. */
static enum wp_step_result step_with(int fp)
{
	uint64_t pc_avma = f.proof.pc_avma, sp_avma = f.proof.sp_avma;

	f.regs.known = 0;
	if (fp >= 0)
		wp_reg_set(&f.regs, WP_REG_FP, STACK + 8 * (uint64_t)fp);
	return step_from(pc_avma - TEXT, (unsigned int)(sp_avma - STACK) / 8);
}

static void assert_caller(uint64_t return_avma, unsigned int slot)
{
	assert_int_equal(f.regs.v[WP_REG_PC], return_avma);
	assert_int_equal(f.regs.v[WP_REG_SP], STACK + 8 * (slot + 1));
	assert_int_equal(f.step.cfa_avma, STACK + 8 * (slot + 1));
}

static void assert_reg(unsigned int reg, uint64_t val)
{
	assert_true(wp_reg_known(&f.regs, reg));
	assert_int_equal(f.regs.v[reg], val);
}

/* push %rbx; call; pop %rbx; ret, behind the call. */
#define PUSHES CODE("\x53\xe8\0\0\0\0\x5b\xc3"), 6

static void a_frame_is_proven_once(void **state)
{
	(void)state;
	open_frame(PUSHES, 8, true, false);
	for (unsigned int sp = 8; sp <= 10; sp += 2) {
		f.stack[sp] = 0x11;
		f.stack[sp + 1] = TEXT + CALLER;
		f.regs.known = 0;
		wp_reg_set(&f.regs, RAX, 1);
		wp_reg_set(&f.regs, RBX, 2);
		wp_reg_set(&f.regs, R12, 3);
		assert_int_equal(step_from(FUNC + 6, sp), WP_STEP_OK);
		assert_caller(TEXT + CALLER, sp + 1);
		assert_reg(RBX, 0x11);
		assert_reg(R12, 3);
		assert_false(wp_reg_known(&f.regs, RAX));
		assert_int_equal(stats.proofs, 1);
	}
	/* Through other modules, from elsewhere, by another call: another one. */
	f.modules.generation++;
	assert_int_equal(step_from(FUNC + 6, 8), WP_STEP_OK);
	assert_int_equal(stats.proofs, 2);
	f.step.is_return = false;
	assert_int_equal(step_from(FUNC + 6, 8), WP_STEP_OK);
	assert_int_equal(stats.proofs, 3);
	f.step.is_return = true;
	f.stack[9] = TEXT + CALLS;
	assert_int_equal(step_from(FUNC + 6, 8), WP_STEP_OK);
	assert_caller(TEXT + CALLS, 9);
	assert_int_equal(stats.proofs, 4);
	assert_int_equal(step_from(FUNC + 6, 10), WP_STEP_OK);
	assert_int_equal(stats.proofs, 4);
	/* And without a return address there is none. */
	f.stack[9] = 0xbad;
	assert_int_not_equal(step_from(FUNC + 6, 8), WP_STEP_OK);
	close_frame();
}

/* Of the callers of one place the last four. */
static void callers_of_one_place_are_remembered(void **state)
{
	enum { NWAYS = 4 };

	(void)state;
	open_frame(PUSHES, 8, true, false);
	for (unsigned int i = 0; i < NCALLS; i++) {
		f.stack[9] = TEXT + CALLS + 0x10 * i;
		assert_int_equal(step_from(FUNC + 6, 8), WP_STEP_OK);
		assert_int_equal(stats.proofs, i + 1);
	}
	for (unsigned int i = NCALLS; i-- > NCALLS - NWAYS;) {
		f.stack[9] = TEXT + CALLS + 0x10 * i;
		assert_int_equal(step_from(FUNC + 6, 8), WP_STEP_OK);
		assert_caller(f.stack[9], 9);
		assert_int_equal(stats.proofs, NCALLS);
	}
	close_frame();
}

/* FUNC and all behind it are nops, and END in each 16 bytes. */
static void put_sled(uint8_t end)
{
	put_function("", 0);
	for (size_t at = FUNC; at < FAKE_HDR - FAKE_TEXT; at++)
		f.elf.bytes[FAKE_TEXT + at] = at % 16 == 15 ? end : 0x90;
}

static void many_frames_are_remembered(void **state)
{
	enum { NFRAMES = 512, END = 0xf00 };

	(void)state;
	put_sled(0xc3);
	open_at(0, 8, false, false);
	f.stack[8] = TEXT + OTHERS;
	for (size_t at = FUNC; at < FUNC + NFRAMES; at++)
		assert_int_equal(step_from(at, 8), WP_STEP_OK);
	assert_int_equal(stats.proofs, NFRAMES);
	for (size_t at = FUNC; at < FUNC + NFRAMES; at++)
		assert_int_equal(step_from(at, 8), WP_STEP_OK);
	assert_in_range(stats.proofs, NFRAMES, NFRAMES + NFRAMES / 6);
	/* More than there is room for: the last one always is. */
	for (size_t at = FUNC; at < END; at++) {
		uint64_t proofs;

		assert_int_equal(step_from(at, 8), WP_STEP_OK);
		proofs = stats.proofs;
		assert_int_equal(step_from(at, 8), WP_STEP_OK);
		assert_int_equal(stats.proofs, proofs);
	}
	close_frame();
}

/* How often a proof is searched for if the step is made once more. */
static uint64_t searches(void)
{
	uint64_t proofs = stats.proofs;

	assert_int_not_equal(step_from(FUNC + 6, 8), WP_STEP_OK);
	return stats.proofs - proofs;
}

/* The stack may have the return address in another place by then. */
static void a_search_that_failed_is_made_anew_on_another_stack(void **state)
{
	struct wp_unwind_module two[2];

	(void)state;
	open_frame(PUSHES, 8, true, false);
	f.stack[9] = TEXT + OTHERS;
	two[0] = f.module;
	two[1] = (struct wp_unwind_module){ .start_avma = 0xa000000,
					    .end_avma = 0xa001000 };
	f.modules.v = two;
	f.modules.len = 2;
	assert_int_equal(step_with(-1), WP_STEP_UNKNOWN_REG);
	assert_int_equal(stats.proofs, 1);
	assert_int_equal(searches(), 0);
	/* What is no return address, and what is below sp. */
	f.stack[20] = 1234;
	f.stack[21] = two[0].start_avma;
	f.stack[22] = two[0].end_avma + 1;
	f.stack[23] = two[1].start_avma;
	f.stack[24] = two[1].end_avma + 1;
	f.stack[25] = 0x9000000;
	f.stack[7] = TEXT + OTHERS;
	assert_int_equal(searches(), 0);
	/* A return address, and one behind the last call of a module. */
	f.stack[20] = TEXT + OTHERS;
	assert_int_equal(searches(), 1);
	assert_int_equal(searches(), 0);
	f.stack[21]++;
	assert_int_equal(searches(), 1);
	f.stack[22]--;
	assert_int_equal(searches(), 1);
	f.stack[23]++;
	assert_int_equal(searches(), 1);
	f.stack[24]--;
	assert_int_equal(searches(), 1);
	/* The same ones in another order. */
	f.stack[20] = f.stack[21];
	f.stack[21] = TEXT + OTHERS;
	assert_int_equal(searches(), 1);
	assert_int_equal(searches(), 0);
	wp_reg_set(&f.regs, WP_REG_FP, STACK + 8 * 16);
	assert_int_equal(searches(), 1);
	assert_int_equal(searches(), 0);
	wp_reg_set(&f.regs, WP_REG_FP, STACK + 8 * 18);
	assert_int_equal(searches(), 1);
	f.modules.generation++;
	assert_int_equal(searches(), 1);
	assert_int_equal(searches(), 0);
	close_frame();
}

/* What another thread's longer stack had is not part of a shorter one. */
static void a_stack_ends_where_it_ends(void **state)
{
	(void)state;
	open_frame(PUSHES, 30, true, false);
	f.stack[31] = TEXT + OTHERS;
	assert_int_equal(step_with(-1), WP_STEP_UNKNOWN_REG);
	assert_int_equal(stats.proofs, 1);
	for (unsigned int n = 8; n < 30; n++)
		f.stack[n] = TEXT + OTHERS;
	f.step.is_return = false;
	step_from(FUNC + 6, 8);
	f.step.is_return = true;
	assert_int_equal(stats.proofs, 2);
	assert_int_equal(step_with(-1), WP_STEP_UNKNOWN_REG);
	assert_int_equal(stats.proofs, 2);
	close_frame();
}

static void each_frame_that_is_not_proven_is_searched_for(void **state)
{
	enum { END = 0xf00 };

	(void)state;
	put_sled(0xcc);
	open_at(0, 24, true, true);
	for (size_t at = FUNC; at < END; at++)
		assert_int_equal(step_from(at, 24), WP_STEP_UNKNOWN_REG);
	assert_int_equal(stats.proofs, END - FUNC);
	close_frame();
}

/* Code of no file may be replaced by other code. */
static void code_that_has_changed_is_looked_at_anew(void **state)
{
	(void)state;
	for (int is_foreign = 0; is_foreign < 2; is_foreign++) {
		open_frame(PUSHES, 8, true, is_foreign);
		f.stack[9] = TEXT + OTHERS;
		assert_int_equal(step_with(-1), WP_STEP_UNKNOWN_REG);
		assert_int_equal(searches(), 0);
		f.elf.bytes[FAKE_TEXT + FUNC + 6 + 5]++;
		assert_int_equal(searches(), is_foreign);
		f.elf.bytes[FAKE_TEXT + FUNC + 6 + 13]++;
		assert_int_equal(searches(), is_foreign);
		f.elf.bytes[FAKE_TEXT + FUNC + 6 + 16]++;
		assert_int_equal(searches(), 0);
		close_frame();
	}
}

/* push %rbp; mov %rsp,%rbp; and $-16,%rsp; call; leave; ret, behind the call.
 */
#define ALIGNS CODE("\x55\x48\x89\xe5\x48\x83\xe4\xf0\xe8\0\0\0\0\xc9\xc3"), 13

static void a_frame_pointer_that_is_not_known_is_asked_for(void **state)
{
	(void)state;
	for (int is_another = 0; is_another < 2; is_another++) {
		open_frame(ALIGNS, 8, true, false);
		f.stack[10] = 0xf;
		f.stack[11] = TEXT + (is_another ? OTHERS : CALLER);
		assert_int_equal(step_with(-1), WP_STEP_UNKNOWN_REG);
		assert_int_equal(step_with(-1), WP_STEP_UNKNOWN_REG);
		assert_int_equal(stats.proofs, 1);
		/* Whoever was called: this code leaves by it. */
		assert_int_equal(step_with(10), WP_STEP_OK);
		assert_caller(f.stack[11], 11);
		assert_reg(WP_REG_FP, 0xf);
		/* It is known, and not this frame's. */
		assert_int_equal(step_with(9), WP_STEP_NO_INFO);
		close_frame();
	}
}

/* nop; add $8,%rsp; ret: rbp is what it was before, unless it points to the
 * word right below the return address. */
#define LEAVES CODE("\x90\x48\x83\xc4\x08\xc3"), 0

static void registers_of_the_caller(void **state)
{
	(void)state;
	for (int is_foreign = 0; is_foreign < 2; is_foreign++) {
		open_frame(LEAVES, 8, false, is_foreign);
		f.stack[8] = STACK + 8 * 20;
		f.stack[9] = TEXT + OTHERS;
		f.regs.known = 0;
		wp_reg_set(&f.regs, RBX, 5);
		wp_reg_set(&f.regs, WP_REG_FP, STACK + 8 * 24);
		assert_int_equal(step_from(FUNC, 8), WP_STEP_OK);
		assert_caller(TEXT + OTHERS, 9);
		assert_reg(WP_REG_FP, STACK + 8 * 24);
		/* A compiler of code as it runs may change any other. */
		assert_int_equal(wp_reg_known(&f.regs, RBX), !is_foreign);
		assert_int_equal(step_with(8), WP_STEP_OK);
		assert_caller(TEXT + OTHERS, 9);
		assert_reg(WP_REG_FP, STACK + 8 * 20);
		/* It is in the register, which is not known. */
		f.regs.known = 0;
		f.regs.v[WP_REG_FP] = STACK + 8 * 8;
		assert_int_equal(step_from(FUNC, 8), WP_STEP_OK);
		assert_false(wp_reg_known(&f.regs, WP_REG_FP));
		close_frame();
	}
}

/* push %rbp; mov %rsp,%rbp; push %rbx; call; pop %rbx; leave; ret, behind the
 * call. */
#define FRAME CODE("\x55\x48\x89\xe5\x53\xe8\0\0\0\0\x5b\xc9\xc3"), 10

/* A file's function is proven, and so are its registers; of other code the
 * frame pointer is enough, and what else it does nobody knows. */
static void code_of_no_file_is_stepped_by_its_frame_pointer(void **state)
{
	(void)state;
	for (int is_foreign = 0; is_foreign < 2; is_foreign++) {
		open_frame(FRAME, 8, true, is_foreign);
		f.stack[8] = 0xb;
		f.stack[9] = STACK + 8 * 20;
		f.stack[10] = TEXT + CALLER;
		assert_int_equal(step_with(9), WP_STEP_OK);
		assert_caller(TEXT + CALLER, 10);
		assert_reg(WP_REG_FP, STACK + 8 * 20);
		assert_int_equal(wp_reg_known(&f.regs, RBX), !is_foreign);
		close_frame();
	}
}

/* push %rbp; mov %rsp,%rbp; push %rbx; nop; jmp *%rax, at the nop: the way from
 * the function's start alone says that rbp is its own. */
#define SET_UP CODE("\x55\x48\x89\xe5\x53\x90\xff\xe0"), 5

static void a_frame_pointer_that_the_way_here_has_set_up(void **state)
{
	(void)state;
	for (int is_foreign = 0; is_foreign < 2; is_foreign++) {
		open_frame(SET_UP, 8, false, is_foreign);
		/* As if a frame were left out. */
		f.stack[8] = TEXT + OTHERS;
		f.stack[9] = STACK + 8 * 20;
		f.stack[10] = TEXT + OTHERS;
		assert_int_equal(step_with(9), WP_STEP_OK);
		assert_caller(TEXT + OTHERS, 10);
		/* From now on in a stop, too, where it is a file's. */
		f.step.in_stop = true;
		assert_int_equal(step_with(9),
				 is_foreign ? WP_STEP_TOO_SLOW : WP_STEP_OK);
		close_frame();
	}
}

static void in_a_stop_nothing_is_searched_for(void **state)
{
	(void)state;
	open_frame(PUSHES, 8, true, false);
	f.stack[9] = TEXT + OTHERS;
	f.step.in_stop = true;
	assert_int_equal(step_with(-1), WP_STEP_TOO_SLOW);
	assert_int_equal(stats.proofs, 0);
	f.step.in_stop = false;
	assert_int_equal(step_with(-1), WP_STEP_UNKNOWN_REG);
	f.step.in_stop = true;
	assert_int_equal(step_with(-1), WP_STEP_TOO_SLOW);
	assert_int_equal(stats.proofs, 1);
	close_frame();
}

/* nop; nop; hlt: the function has just begun, and nothing is on the stack. */
static void a_function_that_has_pushed_nothing(void **state)
{
	(void)state;
	open_frame(CODE("\x90\x90\xf4"), 1, 9, false, false);
	f.stack[9] = TEXT + OTHERS;
	assert_int_equal(step_with(-1), WP_STEP_OK);
	assert_caller(TEXT + OTHERS, 9);
	f.stack[9] = 0xbad;
	assert_int_equal(step_with(-1), WP_STEP_UNKNOWN_REG);
	close_frame();
	/* push %rax; hlt: it has; what is on top is not where it returns to. */
	open_frame(CODE("\x50\xf4"), 1, 9, false, false);
	f.stack[9] = TEXT + OTHERS;
	assert_int_equal(step_with(-1), WP_STEP_UNKNOWN_REG);
	close_frame();
}

static void
ways_out_that_pass_nothing_that_may_be_another_function(void **state)
{
	(void)state;
	/* nop; jmp *%rax. */
	open_frame(CODE("\x90\xff\xe0"), 0, 9, false, false);
	f.stack[9] = TEXT + OTHERS;
	assert_int_equal(step_with(-1), WP_STEP_OK);
	assert_caller(TEXT + OTHERS, 9);
	close_frame();
	/* push %rbp; nop; pop %rbp; jmp *%rax, at the nop: rbp is in its word,
	 * whatever the register has. */
	open_frame(CODE("\x55\x90\x5d\xff\xe0"), 1, 8, false, false);
	f.stack[8] = 0xf;
	f.stack[9] = TEXT + OTHERS;
	assert_int_equal(step_with(-1), WP_STEP_OK);
	assert_caller(TEXT + OTHERS, 9);
	assert_reg(WP_REG_FP, 0xf);
	close_frame();
	/* push %rax; call; pop %rax; ret, at the call, which may never return. */
	open_frame(CODE("\x50\xe8\0\0\0\0\x58\xc3"), 1, 8, false, false);
	f.stack[9] = TEXT + OTHERS;
	assert_int_equal(step_with(-1), WP_STEP_UNKNOWN_REG);
	close_frame();
}

/* mov %rbp,%rsp; add $8,%rsp; jmp *%rax: where that leads to is not known, so
 * it need not be the end of the frame. */
static void a_jump_elsewhere_is_not_by_the_frame_pointer(void **state)
{
	(void)state;
	open_frame(CODE("\x48\x89\xec\x48\x83\xc4\x08\xff\xe0"), 0, 8, true,
		   true);
	f.stack[8] = TEXT + OTHERS;
	f.stack[10] = STACK + 8 * 20;
	f.stack[11] = TEXT + OTHERS;
	assert_int_equal(step_with(10), WP_STEP_NO_INFO);
	close_frame();
}

/* mov -8(%rbp),%rax; int3, where rbp is right above sp; and int3 alone, where
 * it is below. */
static void a_frame_pointer_that_is_used_is_the_frames(void **state)
{
	(void)state;
	open_frame(CODE("\x48\x8b\x45\xf8\xcc"), 0, 8, true, true);
	f.stack[8] = TEXT + OTHERS;
	f.stack[9] = STACK + 8 * 20;
	f.stack[10] = TEXT + OTHERS;
	assert_int_equal(step_with(9), WP_STEP_OK);
	assert_caller(TEXT + OTHERS, 10);
	close_frame();
	open_frame(CODE("\xcc"), 0, 8, true, true);
	f.stack[7] = STACK + 8 * 20;
	f.stack[8] = TEXT + OTHERS;
	assert_int_equal(step_with(7), WP_STEP_NO_INFO);
	close_frame();
}

/* mov 0x58(%r13),%rsp; mov 0x60(%r13),%rbp; leave; ret: r13 is not known. */
static void a_home_that_is_not_known_tells_nothing(void **state)
{
	(void)state;
	open_frame(CODE("\x49\x8b\x65\x58\x49\x8b\x6d\x60\xc9\xc3"), 0, 8, true,
		   true);
	f.stack[8] = TEXT + OTHERS;
	f.stack[9] = STACK + 8 * 20;
	f.stack[10] = TEXT + OTHERS;
	assert_int_equal(step_with(9), WP_STEP_NO_INFO);
	f.regs.known = 0;
	wp_reg_set(&f.regs, WP_REG_FP, STACK + 8 * 9);
	wp_reg_set(&f.regs, R13, STACK + 8 * 24 - 0x60);
	f.stack[24] = STACK + 8 * 9;
	assert_int_equal(step_from(FUNC, 8), WP_STEP_OK);
	assert_caller(TEXT + OTHERS, 10);
	close_frame();
}

/* No call is before it: no frame returns there. */
static void a_return_to_where_no_call_was_is_no_frame(void **state)
{
	(void)state;
	open_frame(CODE("\x90\xc9\xc3"), 1, 8, true, false);
	f.stack[9] = STACK + 8 * 20;
	f.stack[10] = TEXT + OTHERS;
	assert_int_equal(step_with(9), WP_STEP_NO_INFO);
	assert_int_equal(stats.proofs, 0);
	close_frame();
}

/* mov -16(%rbp),%rsp where a call returns to is the interpreter's own in code
 * of no file; what a file's, or what runs there, does is not known. */
static void only_code_of_no_file_is_an_interpreter(void **state)
{
	static const char code[] = "\x50\xe8\0\0\0\0\x48\x8b\x65\xf0\x06\x06"
				   "\x06\x06\x06";

	(void)state;
	for (int i = 0; i < 4; i++) {
		bool is_return = i & 1, is_foreign = i & 2;

		open_frame(CODE(code), 6, 8, is_return, is_foreign);
		f.stack[8] = TEXT + OTHERS;
		f.stack[9] = STACK + 8 * 20;
		f.stack[10] = TEXT + OTHERS;
		assert_int_equal(step_with(9) == WP_STEP_OK,
				 is_return && is_foreign);
		close_frame();
	}
}

/* xor %ebp,%ebp; call: who begins so has no caller, in code of no file. */
static void a_frame_pointer_of_0_that_was_cleared_is_the_first(void **state)
{
	static const char code[] = "\x31\xed\xe8\0\0\0\0\xcc";

	(void)state;
	for (int i = 0; i < 4; i++) {
		bool is_return = i & 1, is_foreign = i & 2;

		open_frame(CODE(code), 7, 8, is_return, is_foreign);
		f.regs.known = 0;
		wp_reg_set(&f.regs, WP_REG_FP, 0);
		assert_int_equal(step_from(FUNC + 7, 8) == WP_STEP_ROOT,
				 is_return && is_foreign);
		assert_int_not_equal(step_with(20), WP_STEP_ROOT);
		f.regs.known = 0;
		f.regs.v[WP_REG_FP] = 0;
		assert_int_not_equal(step_from(FUNC + 7, 8), WP_STEP_ROOT);
		close_frame();
	}
}

static enum wp_mem_result read_long(void *ctx, uint64_t avma, void *buf,
				    size_t len)
{
	if (avma < STACK)
		return proof_read(ctx, avma, buf, len);
	if (avma - STACK > sizeof(long_stack) - len)
		return WP_MEM_UNREADABLE;
	memcpy(buf, (uint8_t *)long_stack + (avma - STACK), len);
	return WP_MEM_OK;
}

/* sub $8 * NWORDS,%rsp; call; hlt: is the return address found in a stack that
 * has ROOM words? */
static bool is_found(unsigned int nwords, unsigned int room)
{
	char code[] = "\x48\x81\xec\0\0\0\0\xe8\0\0\0\0\xf4";
	uint32_t size = 8 * nwords;
	unsigned int sp = LONG - room;
	enum wp_step_result result;

	memcpy(code + 3, &size, sizeof(size));
	open_frame(CODE(code), 12, 0, true, false);
	f.mem.read = read_long;
	memset(long_stack, 0, sizeof(long_stack));
	long_stack[sp + nwords] = TEXT + CALLER;
	result = step_from(FUNC + 12, sp);
	if (result == WP_STEP_OK)
		assert_caller(TEXT + CALLER, sp + nwords);
	close_frame();
	return result == WP_STEP_OK;
}

/* Where no way leads out of the function, the return address is searched for in
 * the stack: in so much of it, and to its very end. */
static void the_stack_is_searched_to_its_end(void **state)
{
	(void)state;
	assert_true(is_found(1, LONG));
	assert_true(is_found(64, LONG));
	assert_true(is_found(511, LONG));
	assert_false(is_found(512, LONG));
	for (unsigned int room = 2; room < 130; room++)
		assert_true(is_found(room - 1, room));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_is_proven_once),
		cmocka_unit_test(callers_of_one_place_are_remembered),
		cmocka_unit_test(many_frames_are_remembered),
		cmocka_unit_test(
			a_search_that_failed_is_made_anew_on_another_stack),
		cmocka_unit_test(a_stack_ends_where_it_ends),
		cmocka_unit_test(each_frame_that_is_not_proven_is_searched_for),
		cmocka_unit_test(code_that_has_changed_is_looked_at_anew),
		cmocka_unit_test(
			a_frame_pointer_that_is_not_known_is_asked_for),
		cmocka_unit_test(registers_of_the_caller),
		cmocka_unit_test(
			code_of_no_file_is_stepped_by_its_frame_pointer),
		cmocka_unit_test(a_frame_pointer_that_the_way_here_has_set_up),
		cmocka_unit_test(in_a_stop_nothing_is_searched_for),
		cmocka_unit_test(a_function_that_has_pushed_nothing),
		cmocka_unit_test(
			ways_out_that_pass_nothing_that_may_be_another_function),
		cmocka_unit_test(a_jump_elsewhere_is_not_by_the_frame_pointer),
		cmocka_unit_test(a_frame_pointer_that_is_used_is_the_frames),
		cmocka_unit_test(a_home_that_is_not_known_tells_nothing),
		cmocka_unit_test(a_return_to_where_no_call_was_is_no_frame),
		cmocka_unit_test(only_code_of_no_file_is_an_interpreter),
		cmocka_unit_test(
			a_frame_pointer_of_0_that_was_cleared_is_the_first),
		cmocka_unit_test(the_stack_is_searched_to_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

/* The proofs are x86-64's. */
int main(void)
{
	return 0;
}

#endif
