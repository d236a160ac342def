/* SPDX-License-Identifier: Apache-2.0 */
/* test_proof_call.c - what the code around a return address does.
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

static void assert_call(uint64_t return_avma, uint64_t target_avma,
			bool by_pointer)
{
	struct wp_proof_call call = wp_proof_find_call(&f.proof, return_avma);

	assert_int_equal(call.target_avma, target_avma);
	assert_int_equal(call.by_pointer, by_pointer);
}

static void a_call_is_direct_or_by_pointer(void **state)
{
	uint64_t outside = BIAS + FAKE_DATA;

	(void)state;
	proof_text();
	proof_call(CALLER, FUNC);
	/* To what is no code; *%rax; *%r11; what only ends as a call does. */
	proof_call(CALLER + 0x20, 0x4000);
	proof_put(CALLER + 0x3e, CODE("\xff\xd0"));
	proof_put(CALLER + 0x5d, CODE("\x41\xff\xd3"));
	proof_put(CALLER + 0x7e, CODE("\xff\xe0"));
	/* call *slot(%rip), of one in the text; of one that is not code. */
	proof_put(0x100, CODE("\xff\x15\xfa\x06\0\0"));
	proof_put(SLOT, &(uint64_t){ TEXT + OTHER }, 8);
	proof_put(0x120, CODE("\xff\x15\xe2\x06\0\0"));
	proof_put(SLOT + 8, &outside, 8);
	/* mov $15,%eax; syscall. */
	proof_put(0x140, CODE("\xb8\x0f\0\0\0\x0f\x05"));
	/* The module's last call, and the first. */
	proof_call(FAKE_HDR - FAKE_TEXT, FUNC);
	proof_call(5, FUNC);
	proof_open(FUNC, 0, false);
	assert_call(TEXT + CALLER, TEXT + FUNC, false);
	assert_call(TEXT + CALLER + 0x20, 0, false);
	assert_call(TEXT + CALLER + 0x40, 0, true);
	assert_call(TEXT + CALLER + 0x60, 0, true);
	assert_call(TEXT + CALLER + 0x80, 0, false);
	assert_call(TEXT + CALLER + 1, 0, false);
	assert_call(TEXT + 0x106, TEXT + OTHER, false);
	assert_call(TEXT + 0x126, 0, true);
	assert_call(TEXT + 0x140, 0, true);
	assert_call(BIAS + FAKE_HDR, TEXT + FUNC, false);
	assert_call(BIAS + FAKE_HDR + 1, 0, false);
	assert_call(TEXT, 0, false);
	assert_call(0, 0, false);
	assert_call(1, 0, false);
	/* The slots that may be read are counted: two were. */
	assert_int_equal(f.flow.reads, READS - 2);
	/* What is not read is not known: no call of just anything. */
	f.flow.reads = 0;
	assert_call(TEXT + 0x106, 0, false);
	proof_close();
}

/* musl's and glibc's clone. */
static void who_exits_behind_a_call_ends_the_thread(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		bool ends;
	} rows[] = {
		/* mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall. */
		{ CODE("\x89\xc7\x31\xc0\xb0\x3c\x0f\x05"), true },
		{ CODE("\x48\x89\xc7\x31\xc0\xb0\x3c\x0f\x05"), true },
		{ CODE("\x31\xc0\xb0\x3c\x0f\x05"), true },
		/* mov $60,%eax; syscall. */
		{ CODE("\x89\xc7\xb8\x3c\0\0\0\x0f\x05"), true },
		{ CODE("\x48\x89\xc7\xb8\x3c\0\0\0\x0f\x05"), true },
		{ CODE("\xb8\x3c\0\0\0\x0f\x05"), true },
		/* exit_group; mov %eax,%esi; no syscall. */
		{ CODE("\xb8\xe7\0\0\0\x0f\x05"), false },
		{ CODE("\x89\xc6\xb8\x3c\0\0\0\x0f\x05"), false },
		{ CODE("\xb8\x3c\0\0\0\x90\x90"), false },
		{ CODE("\x88\xc7\xb8\x3c\0\0\0\x0f\x05"), false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		proof_text();
		proof_put(FUNC, rows[i].code, rows[i].len);
		/* Cut off by the end of the code. */
		proof_put(FAKE_HDR - FAKE_TEXT - 7,
			  CODE("\xb8\x3c\0\0\0\x0f\x05"));
		proof_open(FUNC, 0, true);
		assert_int_equal(wp_proof_ends_thread(&f.proof, TEXT + FUNC),
				 rows[i].ends);
		assert_int_equal(wp_proof_is_first_frame(&f.proof),
				 rows[i].ends);
		f.step.is_return = false;
		assert_false(wp_proof_is_first_frame(&f.proof));
		assert_false(
			wp_proof_ends_thread(&f.proof, BIAS + FAKE_HDR - 7));
		proof_close();
	}
}

static void a_frame_pointer_is_cleared_before_the_call(void **state)
{
	static const struct {
		const char *code;
		/* How far before the pc. */
		size_t before;
		bool clears;
	} rows[] = {
		{ "\x29\xed", 2, true },   { "\x2b\xed", 24, true },
		{ "\x31\xed", 10, true },  { "\x33\xed", 5, true },
		{ "\x29\xed", 25, false }, { "\x29\xed", 1, false },
		{ "\x39\xed", 10, false }, { "\x31\xec", 10, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		proof_text();
		proof_put(FUNC - rows[i].before, rows[i].code, 2);
		proof_open(FUNC, 0, true);
		assert_int_equal(wp_proof_clears_fp(&f.proof), rows[i].clears);
		proof_close();
	}
	/* Too near the begin of the code. */
	for (size_t at = 23; at <= 24; at++) {
		proof_text();
		proof_put(10, "\x31\xed", 2);
		proof_open(at, 0, true);
		assert_int_equal(wp_proof_clears_fp(&f.proof), at == 24);
		proof_close();
	}
}

/* Nothing that leads away is on the way from a program's entry point to the pc. */
static void the_first_code_of_a_program_is_entered_by_nobody(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		size_t at;
		bool is_first;
	} rows[] = {
		{ CODE("\x90\x90\x90"), 0, true },
		{ CODE("\x90\x90\x90"), 2, true },
		/* ret; jmp; jmp short; jmp *%rax; call *%rax; inc %eax. */
		{ CODE("\xc3\x90"), 1, false },
		{ CODE("\xe9\0\0\0\0\x90"), 5, false },
		{ CODE("\xeb\0\x90"), 2, false },
		{ CODE("\xff\xe0\x90"), 2, false },
		{ CODE("\xff\xd0\x90"), 2, true },
		{ CODE("\xff\xc0\x90"), 2, true },
		/* jne far: two bytes; its second is none of jmp's. */
		{ CODE("\x0f\x85\0\0\0\0\x90"), 6, true },
		/* bswap %ebx, whose second byte alone is iret's. */
		{ CODE("\x0f\xcb\x90"), 2, true },
		/* Within an instruction; behind what is none. */
		{ CODE("\xb8\0\0\0\0\x90"), 2, false },
		{ CODE("\x06\x90"), 1, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		proof_text();
		proof_put(FUNC, rows[i].code, rows[i].len);
		proof_open(FUNC + rows[i].at, 0, false);
		f.image.entry_svma = FAKE_TEXT + FUNC;
		if (wp_proof_is_first_frame(&f.proof) != rows[i].is_first)
			fail_msg("case %zu", i);
		f.image.entry_svma = FAKE_TEXT + FUNC + rows[i].at + 1;
		assert_false(wp_proof_is_first_frame(&f.proof));
		f.image.entry_svma = 0;
		assert_false(wp_proof_is_first_frame(&f.proof));
		proof_close();
	}
	/* Of so many bytes, and no more; and of a file that has them. */
	for (size_t at = 64; at <= 65; at++) {
		proof_text();
		memset(f.elf.bytes + FAKE_TEXT + FUNC, 0x90, 100);
		proof_open(FUNC + at, 0, false);
		f.image.entry_svma = FAKE_TEXT + FUNC;
		assert_int_equal(wp_proof_is_first_frame(&f.proof), at == 64);
		f.module.start_avma = TEXT + FUNC + 1;
		wp_flow_open(&f.flow, &f.modules, &f.mem, READS);
		assert_false(wp_proof_is_first_frame(&f.proof));
		proof_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_direct_or_by_pointer),
		cmocka_unit_test(who_exits_behind_a_call_ends_the_thread),
		cmocka_unit_test(a_frame_pointer_is_cleared_before_the_call),
		cmocka_unit_test(
			the_first_code_of_a_program_is_entered_by_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

/* The instructions are x86-64's. */
int main(void)
{
	return 0;
}

#endif
