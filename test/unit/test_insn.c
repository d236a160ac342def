/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding x86-64 instructions.  Layer: unwind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../unwind/insn.h"

#define CODE(bytes) bytes, sizeof(bytes) - 1

/* A bit for a register. */
enum {
	AX = 1 << WP_RAX,
	CX = 1 << WP_RCX,
	DX = 1 << WP_RDX,
	BX = 1 << WP_RBX,
	SP = 1 << WP_RSP,
	BP = 1 << WP_RBP,
	SI = 1 << WP_RSI,
	DI = 1 << WP_RDI,
	R12 = 1 << WP_R12,
};

/* Instructions of each form, and what they write as objdump and the SDM say. */
static const struct {
	const char *code;
	size_t len;
	uint32_t writes;
} cases[] = {
	/* mov %rsp,%rbp; mov %rbx,-0x10(%rbp); mov 0x8(%rsp,%rcx,4),%rax. */
	{ CODE("\x48\x89\xe5"), BP },
	{ CODE("\x48\x89\x5d\xf0"), 0 },
	{ CODE("\x48\x8b\x44\x8c\x08"), AX },
	/* movabs $1,%r12; mov $-1,%rbx; mov $1,%bx; mov $1,%bh, %sil. */
	{ CODE("\x49\xbc\x01\0\0\0\0\0\0\0"), R12 },
	{ CODE("\x48\xc7\xc3\xff\xff\xff\xff"), BX },
	{ CODE("\x66\xbb\x01\0"), BX },
	{ CODE("\xb7\x01"), BX },
	{ CODE("\x40\xb6\x01"), SI },
	/* lea 0x10(%rip),%rbx; lea 0x0(,%rcx,8),%rbp. */
	{ CODE("\x48\x8d\x1d\x10\0\0\0"), BX },
	{ CODE("\x48\x8d\x2c\xcd\0\0\0\0"), BP },
	/* sub $0x88,%rsp; add $8,%rsp; cmp $1,%rbx; test $1,%bl; neg %rbx. */
	{ CODE("\x48\x81\xec\x88\0\0\0"), SP },
	{ CODE("\x48\x83\xc4\x08"), SP },
	{ CODE("\x48\x83\xfb\x01"), 0 },
	{ CODE("\xf6\xc3\x01"), 0 },
	{ CODE("\x48\xf7\xdb"), BX },
	/* jmp, je, call; jmp *%rax; call *0x10(%rip). */
	{ CODE("\xe9\x01\x02\x03\x04"), 0 },
	{ CODE("\x0f\x84\x01\x02\x03\x04"), 0 },
	{ CODE("\xe8\x01\x02\x03\x04"), 0 },
	{ CODE("\xff\xe0"), 0 },
	{ CODE("\xff\x15\x10\0\0\0"), 0 },
	/* xchg %rax,%rbx; cmpxchg %rbx,(%rdi); rep movsb; cpuid. */
	{ CODE("\x48\x93"), AX | BX },
	{ CODE("\x48\x0f\xb1\x1f"), AX | DX | BX },
	{ CODE("\xf3\xa4"), AX | CX | SI | DI },
	{ CODE("\x0f\xa2"), AX | CX | DX | BX },
	/* setne %bl; cmovne %rax,%rbx; bswap %rbx; movzbl (%rdi),%ebx. */
	{ CODE("\x0f\x95\xc3"), BX },
	{ CODE("\x48\x0f\x45\xd8"), BX },
	{ CODE("\x48\x0f\xcb"), BX },
	{ CODE("\x0f\xb6\x1f"), BX },
	/* endbr64; nopw 0x0(%rax,%rax,1); movaps %xmm3,(%rsp). */
	{ CODE("\xf3\x0f\x1e\xfa"), DX },
	{ CODE("\x66\x0f\x1f\x44\0\0"), 0 },
	{ CODE("\x0f\x29\x1c\x24"), 0 },
	/* vpxor %xmm3,%xmm3,%xmm3; vmovdqu64 %zmm3,(%rdi); palignr. */
	{ CODE("\xc5\xe1\xef\xdb"), 0 },
	{ CODE("\x66\x0f\x3a\x0f\xdb\x08"), 0 },
	/* andn %rax,%rbx,%rbx; pextrq $1,%xmm0,%rbx. */
	{ CODE("\xc4\xe2\xe0\xf2\xd8"), AX | BX | DX },
	{ CODE("\x66\x48\x0f\x3a\x16\xc3\x01"), BX },
};

static void lengths_and_writes_are_known(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wp_insn insn;
		uint8_t code[WP_INSN_MAX] = { 0 };

		memcpy(code, cases[i].code, cases[i].len);
		assert_true(wp_insn_decode(&insn, code, sizeof(code)));
		if (insn.len != cases[i].len ||
		    wp_insn_writes(&insn) != cases[i].writes)
			print_error("case %zu\n", i);
		assert_int_equal(insn.len, cases[i].len);
		assert_int_equal(wp_insn_writes(&insn), cases[i].writes);
	}
}

static void what_is_cut_short_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t len = 0; len < cases[i].len; len++) {
			uint8_t *exact = test_malloc(len ? len : 1);
			struct wp_insn insn;

			memcpy(exact, cases[i].code, len);
			assert_false(wp_insn_decode(&insn, exact, len));
			test_free(exact);
		}
	}
}

static void the_operand_in_memory_is_known(void **state)
{
	struct wp_insn insn;

	(void)state;
	/* mov 0x8(%r12),%rax; mov -0x10(%rbp,%r12,2),%rax; mov %fs:0,%rax. */
	assert_true(wp_insn_decode(&insn,
				   (const uint8_t *)"\x49\x8b\x44\x24"
						    "\x08",
				   5));
	assert_int_equal(insn.base, WP_R12);
	assert_int_equal(insn.disp, 8);
	assert_false(insn.has_index);
	assert_true(wp_insn_decode(&insn,
				   (const uint8_t *)"\x4a\x8b\x44\x65"
						    "\xf0",
				   5));
	assert_int_equal(insn.base, WP_RBP);
	assert_int_equal(insn.disp, -16);
	assert_true(insn.has_index);
	assert_true(wp_insn_decode(&insn,
				   (const uint8_t *)"\x64\x48\x8b\x04\x25\0\0"
						    "\0\0",
				   9));
	assert_int_equal(insn.base, WP_NO_BASE);
	assert_true(insn.segment);
}

static void what_is_no_user_code_is_refused(void **state)
{
	/* push %es; a REX prefix before VEX; in; AMD's vprotd, which begins as
	 * pop does. */
	static const struct {
		const char *code;
		size_t len;
	} bad[] = {
		{ CODE("\x06") },
		{ CODE("\x48\xc5\xe1\xef\xdb") },
		{ CODE("\xec") },
		{ CODE("\x8f\xe8\x78\xc2\xec\x0e") },
	};
	struct wp_insn insn;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(wp_insn_decode(&insn, (const uint8_t *)bad[i].code,
					    bad[i].len));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_and_writes_are_known),
		cmocka_unit_test(what_is_cut_short_is_refused),
		cmocka_unit_test(the_operand_in_memory_is_known),
		cmocka_unit_test(what_is_no_user_code_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
