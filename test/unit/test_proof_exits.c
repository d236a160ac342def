/* SPDX-License-Identifier: Apache-2.0 */
/* test_proof_exits.c - the ways out of a function, and what the ways to its pc say of
 * the frame pointer.
 *
 * Layer: unwind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../unwind/insn.h"

#if defined(__x86_64__)

#include "proof_maker.h"

#define CODE(bytes) bytes, sizeof(bytes) - 1

/* The ways out of CODE, from AT on. */
static const struct wp_proof_exits *find_exits(const char *code, size_t len,
					       size_t at, bool is_return)
{
	proof_text();
	proof_put(FUNC - 1, "\x90", 1);
	proof_put(FUNC, code, len);
	proof_open(FUNC + at, 8, is_return);
	wp_proof_find_exits(&f.proof);
	return &f.proof.exits;
}

static void ways_out_are_told_apart_by_their_frames(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		uint8_t n;
		bool is_odd;
	} rows[] = {
		{ CODE("\xc3"), 1, false },
		/* je; ret; ret: one frame.  je; pop; ret; ret: two. */
		{ CODE("\x74\x01\xc3\xc3"), 1, false },
		{ CODE("\x74\x02\x5b\xc3\xc3"), 2, false },
		/* je; ret; leave; ret: as far from rsp as from rbp. */
		{ CODE("\x74\x02\x5b\xc3\xc9\xc3"), 2, false },
		/* je to each of five times pop %rbx; ret: the first four. */
		{ CODE("\x74\x0e\x74\x0b\x74\x08\x74\x05\x74\x02\x90\x90\x5b"
		       "\x5b\x5b\x5b\x5b\xc3"),
		  4, false },
		/* A jump elsewhere is one too; behind a return none more; before
		 * it, both. */
		{ CODE("\xff\xe0"), 1, false },
		{ CODE("\x74\x01\xc3\xff\xe0"), 1, false },
		{ CODE("\x74\x02\xff\xe0\xc3"), 2, false },
		/* and $-16,%rsp; ret: from anywhere; jmp *%rax says nothing. */
		{ CODE("\x48\x83\xe4\xf0\xc3"), 0, true },
		{ CODE("\x48\x83\xe4\xf0\xff\xe0"), 0, false },
		/* pop %rax; jmp *%rax: it returns so. */
		{ CODE("\x58\xff\xe0"), 1, true },
		/* push %rbp; mov %rsp,%rbp; and $-16,%rsp; ret: by the frame
		 * pointer; jmp *%rax: not at all. */
		{ CODE("\x55\x48\x89\xe5\x48\x83\xe4\xf0\xc3"), 1, false },
		{ CODE("\x55\x48\x89\xe5\x48\x83\xe4\xf0\xff\xe0"), 1, false },
		{ CODE("\xcc"), 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct wp_proof_exits *e = find_exits(
			rows[i].code, rows[i].len, 0, false);

		if (e->len != rows[i].n || e->is_odd != rows[i].is_odd)
			fail_msg("case %zu: %u, %d", i, e->len, e->is_odd);
		proof_close();
	}
}

static void an_exit_says_what_it_is(void **state)
{
	const struct wp_proof_exits *e;

	(void)state;
	e = find_exits(CODE("\xc3"), 0, false);
	assert_false(e->v[0].past_call || e->v[0].is_lost ||
		     e->v[0].is_prologue);
	proof_close();
	e = find_exits(CODE("\xe8\0\0\0\0\xc3"), 0, false);
	assert_true(e->v[0].past_call);
	assert_false(e->v[0].is_lost);
	proof_close();
	e = find_exits(CODE("\xff\xe0"), 0, false);
	assert_true(e->v[0].is_lost);
	proof_close();
	e = find_exits(CODE("\x55\x48\x89\xe5\x48\x83\xe4\xf0\xc3"), 0, false);
	assert_true(e->v[0].is_prologue);
	assert_true(e->sets_fp);
	assert_true(e->has_prologue);
	assert_int_equal(e->prologue.rule.off, 0);
	proof_close();
	/* lea -16(%rsp),%rbp: it is set up in a way of its own. */
	e = find_exits(CODE("\x48\x8d\x6c\x24\xf0\xc3"), 0, false);
	assert_true(e->sets_fp);
	assert_false(e->has_prologue);
	proof_close();
	/* mov -8(%rbp),%rax tells of a frame behind a call alone. */
	for (int is_return = 0; is_return < 2; is_return++) {
		e = find_exits(CODE("\x48\x8b\x45\xf8\xc3"), 0, is_return);
		assert_int_equal(e->fp_use, is_return ? -8 : 0);
		assert_false(e->sets_fp);
		assert_false(e->has_prologue);
		assert_int_equal(e->home_reg, 0);
		proof_close();
	}
	/* What was not used of the budget is left. */
	assert_int_equal(f.proof.budget, BUDGET - 2);
}

/* Is rbp, which points to the word at sp + FP, known to be set up at AT? */
static bool has_set_fp(const char *code, size_t len, size_t at, int fp,
		       bool is_known)
{
	bool has;

	find_exits(code, len, at, false);
	if (is_known)
		proof_set_fp(f.proof.sp_avma + (uint64_t)(int64_t)(8 * fp));
	/* Whatever is left. */
	f.proof.budget = 0;
	wp_proof_find_fp(&f.proof);
	has = f.proof.exits.has_set_fp;
	proof_close();
	return has;
}

static void the_way_to_the_pc_sets_the_frame_pointer_up(void **state)
{
	(void)state;
	/* push %rbp; mov %rsp,%rbp; push %rbx; jmp *%rax. */
#define SETS CODE("\x55\x48\x89\xe5\x53\xff\xe0")
	assert_true(has_set_fp(SETS, 4, 0, true));
	assert_true(has_set_fp(SETS, 5, 1, true));
	assert_false(has_set_fp(SETS, 5, 0, true));
	assert_false(has_set_fp(SETS, 5, 2, true));
	assert_false(has_set_fp(SETS, 4, 0, false));
	/* Not yet. */
	assert_false(has_set_fp(SETS, 0, 0, true));
	assert_false(has_set_fp(SETS, 1, 0, true));
	/* push %rbp; mov %rsp,%rbp; nop; pop %rbp; ret: its code says where the
	 * return address is without it. */
	assert_false(
		has_set_fp(CODE("\x55\x48\x89\xe5\x90\x5d\xc3"), 4, 0, true));
	/* ... nop; leave; ret: by it; behind a call either may be. */
	assert_true(
		has_set_fp(CODE("\x55\x48\x89\xe5\x90\xc9\xc3"), 4, 0, true));
	assert_true(has_set_fp(CODE("\x55\x48\x89\xe5\xe8\0\0\0\0\x5d\xc3"), 4,
			       0, true));
	/* sub $8,%rsp is not how. */
	assert_false(has_set_fp(CODE("\x53\x90\x90\x90\xff\xe0"), 4, 0, true));
}

static void the_way_to_the_pc_leaves_the_stack_bare(void **state)
{
	static const struct {
		const char *code;
		size_t len, at;
		bool is_bare;
	} rows[] = {
		/* nop; push %rax; pop %rax; jmp *%rbx. */
		{ CODE("\x90\x50\x58\xff\xe3"), 0, true },
		{ CODE("\x90\x50\x58\xff\xe3"), 1, true },
		{ CODE("\x90\x50\x58\xff\xe3"), 2, false },
		{ CODE("\x90\x50\x58\xff\xe3"), 3, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		find_exits(rows[i].code, rows[i].len, rows[i].at, false);
		wp_proof_find_bare(&f.proof);
		assert_int_equal(f.proof.exits.is_bare, rows[i].is_bare);
		proof_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ways_out_are_told_apart_by_their_frames),
		cmocka_unit_test(an_exit_says_what_it_is),
		cmocka_unit_test(the_way_to_the_pc_sets_the_frame_pointer_up),
		cmocka_unit_test(the_way_to_the_pc_leaves_the_stack_bare),
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
