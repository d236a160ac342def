/* SPDX-License-Identifier: Apache-2.0 */
/* test_proof.c - where a frame's return address is, proven by code.
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

/* What the caller calls. */
enum call { THE_FUNCTION, BY_POINTER, ANOTHER };

/* A frame whose pc is AT in the function CODE, under NWORDS words of its own. */
struct row {
	const char *code;
	size_t len;
	size_t at;
	unsigned int nwords;
	bool is_return;
	enum call call;
	bool is_proven;
};

static void put_caller(enum call call)
{
	if (call == BY_POINTER)
		proof_put(CALLER - 2, "\xff\xd0", 2);
	else
		proof_call(CALLER, call == ANOTHER ? OTHER : FUNC);
}

/* The return address in an odd word, or with OFF_BY 1 an even one. */
static void open_row(const struct row *row, unsigned int off_by)
{
	unsigned int sp = 16 + off_by + (row->nwords % 2 ? 0 : 1);

	proof_text();
	proof_put(FUNC - 1, "\x90", 1);
	proof_put(FUNC, row->code, row->len);
	proof_put(OTHER, "\xc3", 1);
	put_caller(row->call);
	for (unsigned int n = 0; n < NWORDS; n++)
		f.stack[n] = 0xbad;
	f.stack[sp + row->nwords] = TEXT + CALLER;
	proof_open(FUNC + row->at, sp, row->is_return);
	wp_proof_find_exits(&f.proof);
}

static void assert_proven(const struct row *row, size_t i)
{
	uint64_t slot_avma;

	if (wp_proof_search(&f.proof) != row->is_proven)
		fail_msg("case %zu: %d", i, !row->is_proven);
	if (!row->is_proven)
		return;
	assert_int_equal(f.proof.return_avma, TEXT + CALLER);
	assert_true(wp_proof_slot(&f.proof, &f.proof.rule, &slot_avma));
	assert_int_equal(slot_avma, f.proof.sp_avma + 8 * row->nwords);
}

static void two_ways_agree_or_there_is_no_proof(void **state)
{
	static const struct row rows[] = {
		/* nop; ret: straight on, whatever was called. */
		{ CODE("\x90\xc3"), 0, 0, false, ANOTHER, true },
		{ CODE("\x90\xc3"), 0, 0, false, BY_POINTER, true },
		{ CODE("\x53\x90\x5b\xc3"), 1, 1, false, BY_POINTER, true },
		/* nop; jmp *%rax: it goes on elsewhere. */
		{ CODE("\x90\xff\xe0"), 0, 0, false, THE_FUNCTION, true },
		{ CODE("\x90\xff\xe0"), 0, 0, false, ANOTHER, false },
		/* push %rbx; call; pop %rbx; ret: of who was called it must be
		 * the function, by pointer one that begins there. */
		{ CODE("\x53\xe8\0\0\0\0\x5b\xc3"), 6, 1, true, THE_FUNCTION,
		  true },
		{ CODE("\x53\xe8\0\0\0\0\x5b\xc3"), 6, 1, true, BY_POINTER,
		  true },
		{ CODE("\x53\xe8\0\0\0\0\x5b\xc3"), 6, 1, true, ANOTHER,
		  false },
		{ CODE("\x53\xe8\0\0\0\0\x5b\xc3"), 1, 1, false, THE_FUNCTION,
		  true },
		{ CODE("\x53\xe8\0\0\0\0\x5b\xc3"), 1, 1, false, ANOTHER,
		  false },
		/* push %rbx; call; add $16,%rsp; ret: not as it came. */
		{ CODE("\x53\xe8\0\0\0\0\x48\x83\xc4\x10\xc3"), 6, 2, true,
		  THE_FUNCTION, false },
		{ CODE("\x53\xe8\0\0\0\0\x48\x83\xc4\x10\xc3"), 6, 2, true,
		  BY_POINTER, false },
		/* push %rbx; call; add $8,%rsp; ret: rbx is not what it was, so
		 * the way in has the word, by a call that is known. */
		{ CODE("\x53\xe8\0\0\0\0\x48\x83\xc4\x08\xc3"), 6, 1, true,
		  THE_FUNCTION, true },
		/* push %rbp; mov %rsp,%rbp; call; pop %rbp; ret. */
		{ CODE("\x55\x48\x89\xe5\xe8\0\0\0\0\x5d\xc3"), 9, 1, true,
		  THE_FUNCTION, true },
		/* sub $24,%rsp; jmp *(%rax); call; add $24,%rsp; ret: a switch
		 * with this frame; of 16 bytes any function may have. */
		{ CODE("\x48\x83\xec\x18\xff\x20\xe8\0\0\0\0\x48\x83\xc4\x18"
		       "\xc3"),
		  11, 3, true, THE_FUNCTION, true },
		{ CODE("\x48\x83\xec\x17\xff\x20\xe8\0\0\0\0\x48\x83\xc4\x17"
		       "\xc3"),
		  11, 3, true, THE_FUNCTION, false },
		{ CODE("\x48\x83\xec\x20\xff\x20\xe8\0\0\0\0\x48\x83\xc4\x18"
		       "\xc3"),
		  11, 3, true, THE_FUNCTION, false },
		{ CODE("\x48\x83\xec\x10\xff\x20\xe8\0\0\0\0\x48\x83\xc4\x10"
		       "\xc3"),
		  11, 2, true, THE_FUNCTION, false },
		/* push %rbx; call; hlt: no way out, but the call leads there. */
		{ CODE("\x53\xe8\0\0\0\0\xf4"), 6, 1, true, THE_FUNCTION,
		  true },
		{ CODE("\x53\xe8\0\0\0\0\xf4"), 6, 1, true, BY_POINTER, true },
		{ CODE("\x53\xe8\0\0\0\0\xf4"), 6, 1, true, ANOTHER, false },
		{ CODE("\x53\xe8\0\0\0\0\xf4"), 6, 2, true, THE_FUNCTION,
		  false },
		/* PLT stubs: jmp *slot(%rip); push $5; jmp. */
		{ CODE("\xff\x25\xfa\x6f\0\0\x68\5\0\0\0\xe9\0\0\0\0"), 6, 0,
		  false, THE_FUNCTION, true },
		{ CODE("\xff\x25\xfa\x6f\0\0\x68\5\0\0\0\xe9\0\x70\0\0"), 11, 1,
		  false, THE_FUNCTION, true },
		{ CODE("\xff\x25\xfa\x6f\0\0\x68\5\0\0\0\xe9\0\x70\0\0"), 6, 0,
		  false, ANOTHER, false },
		{ CODE("\xff\x25\xfa\x6f\0\0\x68\5\0\0\0\xe9\0\x70\0\0"), 6, 0,
		  true, THE_FUNCTION, false },
		/* So far from where was called it is another's. */
		{ CODE("\xf4\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		       "\x90\x90\xff\x25\xfa\x6f\0\0"),
		  15, 0, false, THE_FUNCTION, true },
		{ CODE("\xf4\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		       "\x90\x90\x90\xff\x25\xfa\x6f\0\0"),
		  16, 0, false, THE_FUNCTION, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		open_row(&rows[i], 0);
		assert_proven(&rows[i], i);
		proof_close();
	}
}

/* At a call by pointer the stack is aligned, or it is not this one. */
static void a_call_by_pointer_aligns_the_stack(void **state)
{
	static const struct row rows[] = {
		{ CODE("\x53\xe8\0\0\0\0\x5b\xc3"), 6, 1, true, BY_POINTER,
		  false },
		{ CODE("\x53\xe8\0\0\0\0\x5b\xc3"), 6, 1, true, THE_FUNCTION,
		  true },
		{ CODE("\x53\xe8\0\0\0\0\xf4"), 6, 1, true, BY_POINTER, false },
		{ CODE("\x53\xe8\0\0\0\0\xf4"), 6, 1, true, THE_FUNCTION,
		  true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		open_row(&rows[i], 1);
		assert_proven(&rows[i], i);
		proof_close();
	}
}

/* push %rbp; mov %rsp,%rbp; call; pop %rbp; ret, behind the call: where rbp is known it
 * points to its own word. */
static void a_frame_pointer_that_is_known_agrees(void **state)
{
	struct row row = { CODE("\x55\x48\x89\xe5\xe8\0\0\0\0\x5d\xc3"),
			   9,
			   1,
			   true,
			   THE_FUNCTION,
			   true };

	(void)state;
	for (int n = -8; n <= 8; n += 8) {
		open_row(&row, 0);
		proof_set_fp(f.proof.sp_avma + (uint64_t)(int64_t)n);
		row.is_proven = !n;
		assert_proven(&row, 0);
		proof_close();
	}
}

/* ... leave; ret: the return address is by rbp. */
static void a_frame_pointer_that_is_needed_is_known_or_wanted(void **state)
{
	const struct row row = {
		CODE("\x55\x48\x89\xe5\x48\x83\xe4\xf0\xe8\0\0\0\0\xc9\xc3"),
		13,
		3,
		true,
		THE_FUNCTION,
		true
	};

	(void)state;
	for (unsigned int off_by = 0; off_by < 2; off_by++) {
		open_row(&row, off_by);
		assert_false(wp_proof_search(&f.proof));
		assert_true(f.proof.wanted_fp);
		proof_set_fp(f.proof.sp_avma + 16);
		f.proof.wanted_fp = false;
		assert_proven(&row, off_by);
		assert_false(f.proof.wanted_fp);
		assert_true(f.proof.rule.by_fp);
		proof_close();
	}
}

static void a_slot_is_on_the_stack(void **state)
{
	struct wp_proof_rule rule = { .off = 8 };
	uint64_t avma;

	(void)state;
	f.proof = (struct wp_proof){ .sp_avma = STACK };
	assert_true(wp_proof_slot(&f.proof, &rule, &avma));
	assert_int_equal(avma, STACK + 8);
	rule.off = 4;
	assert_false(wp_proof_slot(&f.proof, &rule, &avma));
	assert_false(f.proof.wanted_fp);
	rule = (struct wp_proof_rule){ .off = 8, .by_fp = true };
	assert_false(wp_proof_slot(&f.proof, &rule, &avma));
	assert_true(f.proof.wanted_fp);
	proof_set_fp(STACK);
	assert_true(wp_proof_slot(&f.proof, &rule, &avma));
	proof_set_fp(STACK - 8);
	assert_false(wp_proof_slot(&f.proof, &rule, &avma));
	/* Past the end of memory. */
	proof_set_fp(UINT64_MAX - 7);
	assert_false(wp_proof_slot(&f.proof, &rule, &avma));
	rule.off = 0;
	assert_true(wp_proof_slot(&f.proof, &rule, &avma));
}

/* So many calls on the stack are followed, and no more. */
static void as_many_words_are_tried(void **state)
{
	static const struct row row = {
		CODE("\x53\xe8\0\0\0\0\xf4"), 6, 9, true, THE_FUNCTION, true
	};

	(void)state;
	for (unsigned int others = 6; others <= 8; others++) {
		open_row(&row, 0);
		memset(f.elf.file + FAKE_TEXT + FUNC, 0x53, 9);
		proof_close();
		/* push %rbx nine times; call; hlt. */
		proof_text();
		memset(f.elf.bytes + FAKE_TEXT + FUNC, 0x53, 9);
		proof_put(FUNC + 9, CODE("\xe8\0\0\0\0\xf4"));
		proof_put(OTHER, "\xc3", 1);
		proof_call(CALLER, FUNC);
		proof_call(CALLER + 0x20, OTHER);
		for (unsigned int n = 0; n < NWORDS; n++)
			f.stack[n] = n < others ? TEXT + CALLER + 0x20 : 0;
		f.stack[9] = TEXT + CALLER;
		proof_open(FUNC + 14, 0, true);
		wp_proof_find_exits(&f.proof);
		assert_int_equal(wp_proof_search(&f.proof), others < 8);
		proof_close();
	}
}

/* Is a start found at AT, with BEFORE's five bytes before it and CODE there: behind the
 * call in it, by pointer? */
static bool is_start(size_t at, const char *before, const char *code,
		     size_t len, unsigned int nwords)
{
	bool is_found;

	proof_text();
	proof_put(at - 5, before, 5);
	proof_put(at, code, len);
	/* call; hlt. */
	proof_put(at + len, CODE("\xe8\0\0\0\0\xf4"));
	put_caller(BY_POINTER);
	f.stack[nwords] = TEXT + CALLER;
	proof_open(at + len + 5, 0, true);
	/* Where other words are is no matter. */
	f.proof.nwords = nwords + 1;
	is_found = wp_proof_search(&f.proof);
	if (is_found)
		assert_int_equal(f.proof.return_avma, TEXT + CALLER);
	proof_close();
	return is_found;
}

static void a_function_seems_to_begin(void **state)
{
	static const struct {
		const char *before;
		/* Aligned, and not, with a frame made and without. */
		bool aligned, framed, bare;
	} rows[] = {
		/* ret; jmp short; jmp; call; ud2. */
		{ "\x06\x06\x06\x06\xc3", true, true, true },
		{ "\x06\x06\x06\xeb\x10", true, true, false },
		{ "\xe9\x10\x20\x30\x40", true, true, false },
		{ "\xe8\x10\x20\x30\x40", true, true, false },
		{ "\x06\x06\x06\x0f\x0b", true, true, false },
		/* nop, int3, hlt, a zero. */
		{ "\x06\x06\x06\x06\x90", true, false, false },
		{ "\x06\x06\x06\x06\xcc", true, false, false },
		{ "\x06\x06\x06\x06\xf4", true, false, false },
		{ "\x06\x06\x06\x06\0", true, false, false },
		/* Anything else. */
		{ "\x06\x06\x06\x06\x06", false, false, false },
		{ "\x06\x06\x06\x0f\x06", false, false, false },
		{ "\x06\x06\x06\x06\x0b", false, false, false },
		{ "\x06\x06\x06\xc3\x06", false, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *b = rows[i].before;

		/* push %rbx; and push %rax, which no function must keep. */
		if (is_start(FUNC, b, CODE("\x50"), 1) != rows[i].aligned ||
		    is_start(FUNC + 8, b, CODE("\x53"), 1) != rows[i].framed ||
		    is_start(FUNC + 8, b, CODE("\x50"), 1) != rows[i].bare)
			fail_msg("case %zu", i);
	}
}

static void a_frame_is_made_by_some_instructions(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		unsigned int nwords;
		bool makes;
	} rows[] = {
		{ CODE("\x53"), 1, true },
		{ CODE("\x55"), 1, true },
		{ CODE("\x41\x54"), 1, true },
		{ CODE("\x41\x57"), 1, true },
		{ CODE("\x41\x53"), 1, false },
		{ CODE("\x51"), 1, false },
		{ CODE("\x54"), 1, false },
		/* sub $8,%rsp; of 32 bits; add. */
		{ CODE("\x48\x83\xec\x08"), 1, true },
		{ CODE("\x48\x81\xec\x08\0\0\0"), 1, true },
		{ CODE("\x48\x83\xc4\xf8"), 1, false },
		{ CODE("\x48\x8d\x64\x24\xf8"), 1, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (is_start(FUNC + 8, "\x06\x06\x06\xeb\x10", rows[i].code,
			     rows[i].len, rows[i].nwords) != rows[i].makes)
			fail_msg("case %zu", i);
	/* push %rbp; mov %rsp,%rbp begins one behind anything. */
	assert_true(
		is_start(FUNC + 8, "\6\6\6\6\6", CODE("\x55\x48\x89\xe5"), 1));
	assert_true(
		is_start(FUNC + 8, "\6\6\6\6\6", CODE("\x55\x48\x8b\xec"), 1));
	assert_false(
		is_start(FUNC + 8, "\6\6\6\6\6", CODE("\x53\x48\x89\xe5"), 1));
}

/* Functions of vectors that align their stack have what rsp was in a word of it. */
static void a_stack_that_was_aligned_is_left_by_a_word(void **state)
{
	/* push %rbp; mov %rsp,%rax; sub $8,%rsp; and $-32,%rsp; mov %rax,(%rsp);
	 * mov %rsp,%rbp; push %rbx; nop; pop %rbx; mov %rbp,%rsp; pop %rsp;
	 * pop %rbp; ret (libjpeg-turbo). */
	static const char code[] =
		"\x55\x48\x89\xe0\x48\x83\xec\x08\x48\x83\xe4\xe0\x48\x89"
		"\x04\x24\x48\x89\xe5\x53\x90\x5b\x48\x89\xec\x5c\x5d\xc3";
	const struct row row = { code,	sizeof(code) - 1, 20,  6,
				 false, BY_POINTER,	  true };
	enum { AT = 17, ALIGNED = 18, WORD = 22, FAR = ALIGNED + 17 };
	uint64_t slot_avma;

	(void)state;
	for (unsigned int word = ALIGNED - 1; word <= FAR; word++) {
		bool is_above = word > ALIGNED && word < FAR;

		open_row(&row, 0);
		proof_set_fp(STACK + 8 * ALIGNED);
		for (unsigned int n = AT; n < NWORDS; n++)
			f.stack[n] = TEXT + CALLER;
		f.stack[ALIGNED] = STACK + 8 * word;
		assert_int_equal(f.proof.exits.len, 1);
		assert_int_equal(wp_proof_search(&f.proof),
				 is_above && word + 1 < NWORDS);
		if (wp_proof_slot(&f.proof, &f.proof.exits.v[0].rule,
				  &slot_avma))
			assert_int_equal(slot_avma, STACK + 8 * (word + 1));
		else
			assert_false(is_above);
		if (word != WORD) {
			proof_close();
			continue;
		}
		assert_int_equal(f.proof.return_avma, TEXT + CALLER);
		assert_int_equal(f.proof.rule.where[1], WP_PROOF_SLOT);
		assert_int_equal(f.proof.rule.rel[1], -8);
		/* How far below it rbx is says the thread, not the code. */
		assert_int_equal(f.proof.rule.where[0], WP_PROOF_LOST);
		proof_close();
	}
}

/* Behind a switch are more places that look like a start than are tried. */
static void a_large_function_begins_where_a_frame_is_made(void **state)
{
	/* push %rbx; sub $24,%rsp; jmp *(%rax); nops. */
	static const char start[] = "\x53\x48\x83\xec\x18\xff\x20\x90\x90\x90"
				    "\x90\x90\x90\x90\x90\x90";
	/* call; add $24,%rsp; pop %rbx; ret. */
	static const char end[] = "\xe8\0\0\0\0\x48\x83\xc4\x18\x5b\xc3";
	enum { LEN = 16, PLACES = 30, END = (PLACES + 1) * LEN };
	char code[END + sizeof(end) - 1];
	const struct row row = { code, sizeof(code), END + 5, 4,
				 true, BY_POINTER,   true };

	(void)state;
	memset(code, 0x90, sizeof(code));
	memcpy(code, start, LEN);
	for (unsigned int i = 2; i <= PLACES + 1; i++)
		memcpy(code + i * LEN - 2, "\xeb\0", 2);
	memcpy(code + END, end, sizeof(end) - 1);
	open_row(&row, 0);
	assert_proven(&row, 0);
	proof_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_ways_agree_or_there_is_no_proof),
		cmocka_unit_test(a_stack_that_was_aligned_is_left_by_a_word),
		cmocka_unit_test(a_large_function_begins_where_a_frame_is_made),
		cmocka_unit_test(a_call_by_pointer_aligns_the_stack),
		cmocka_unit_test(a_frame_pointer_that_is_known_agrees),
		cmocka_unit_test(
			a_frame_pointer_that_is_needed_is_known_or_wanted),
		cmocka_unit_test(a_slot_is_on_the_stack),
		cmocka_unit_test(as_many_words_are_tried),
		cmocka_unit_test(a_function_seems_to_begin),
		cmocka_unit_test(a_frame_is_made_by_some_instructions),
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
