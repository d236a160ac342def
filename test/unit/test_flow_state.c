/* SPDX-License-Identifier: Apache-2.0 */
/* test_flow_state.c - what instructions do to what is known of registers and stack.
 *
 * Layer: unwind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../unwind/flow_state.h"

#if defined(__x86_64__)

#define CODE(bytes) bytes, sizeof(bytes) - 1
#define REG(r) (WP_BASE_REG + (r))
#define START UINT64_C(0x400000)

enum {
	/* Bits of kept registers. */
	RBX_BIT = 1 << 0,
	RBP_BIT = 1 << 1,
	R12_BIT = 1 << 2,
	R15_BIT = 1 << 5,
};

/* Executes CODE[0..LEN) one instruction after the other. */
static void execute(struct wp_flow_state *s, const char *code, size_t len)
{
	struct wp_insn insn;

	for (size_t at = 0; at < len; at += insn.len) {
		assert_true(wp_insn_decode(&insn, (const uint8_t *)code + at,
					   len - at));
		s->pc_avma += insn.len;
		wp_flow_state_execute(s, &insn);
	}
}

static void start(struct wp_flow_state *s, const char *code, size_t len)
{
	memset(s, 0xff, sizeof(*s));
	wp_flow_state_start(s, START);
	execute(s, code, len);
}

static void at_the_start_a_register_holds_what_it_holds(void **state)
{
	struct wp_flow_state s;

	(void)state;
	start(&s, CODE(""));
	assert_int_equal(s.pc_avma, START);
	for (unsigned int r = 0; r < WP_NGPRS; r++) {
		assert_int_equal(s.base[r], REG(r));
		assert_int_equal(s.off[r], 0);
	}
	assert_int_equal(s.saved, 0);
	assert_int_equal(s.stored, 0);
	assert_false(s.past_call);
}

/* After CODE, REG is BASE + OFF (of WP_BASE_NONE OFF is not looked at). */
static const struct {
	const char *code;
	size_t len;
	uint8_t reg, base;
	int64_t off;
} values[] = {
	/* mov between registers: 64 bits, or nothing is known, in both forms. */
	{ CODE("\x48\x89\xe5"), WP_RBP, WP_BASE_SP, 0 },
	{ CODE("\x89\xe5"), WP_RBP, WP_BASE_NONE, 0 },
	{ CODE("\x48\x8b\xec"), WP_RBP, WP_BASE_SP, 0 },
	{ CODE("\x8b\xec"), WP_RBP, WP_BASE_NONE, 0 },
	{ CODE("\x48\x8b\xe5"), WP_RSP, WP_BASE_FP, 0 },
	/* mov (%rsp),%rsp. */
	{ CODE("\x48\x8b\x24\x24"), WP_RSP, WP_BASE_WORD, 0 },
	/* lea 8(%rsp),%rbx; lea 8(%rsp),%ebx; lea 8(%rsp,%rax),%rbx. */
	{ CODE("\x48\x8d\x5c\x24\x08"), WP_RBX, WP_BASE_SP, 8 },
	{ CODE("\x8d\x5c\x24\x08"), WP_RBX, WP_BASE_NONE, 0 },
	{ CODE("\x48\x8d\x5c\x04\x08"), WP_RBX, WP_BASE_NONE, 0 },
	/* lea 16(%rip),%rbx; lea -8(%rbp),%rsp. */
	{ CODE("\x48\x8d\x1d\x10\0\0\0"), WP_RBX, WP_BASE_ZERO, START + 23 },
	{ CODE("\x48\x8d\x65\xf8"), WP_RSP, WP_BASE_FP, -8 },
	/* lea 8(%rax),%rbx; mov %rax,%rsp. */
	{ CODE("\x48\x8d\x58\x08"), WP_RBX, REG(WP_RAX), 8 },
	{ CODE("\x48\x89\xc4"), WP_RSP, REG(WP_RAX), 0 },
	/* rol $5,%bl; movmskps %xmm0,%ebx is no push. */
	{ CODE("\xc0\xc3\x05"), WP_RBX, WP_BASE_NONE, 0 },
	{ CODE("\x0f\x50\xd8"), WP_RSP, WP_BASE_SP, 0 },
	/* add and sub of 8 and 32 bits; and; add to 32 bits. */
	{ CODE("\x48\x83\xec\x18"), WP_RSP, WP_BASE_SP, -0x18 },
	{ CODE("\x48\x83\xc4\x18"), WP_RSP, WP_BASE_SP, 0x18 },
	{ CODE("\x48\x81\xec\0\x10\0\0"), WP_RSP, WP_BASE_SP, -0x1000 },
	{ CODE("\x48\x81\xc3\0\x10\0\0"), WP_RBX, REG(WP_RBX), 0x1000 },
	{ CODE("\x48\x83\xe4\xf0"), WP_RSP, WP_BASE_NONE, 0 },
	{ CODE("\x83\xc3\x08"), WP_RBX, WP_BASE_NONE, 0 },
	/* cmp; add to memory. */
	{ CODE("\x48\x83\xfb\x08"), WP_RBX, REG(WP_RBX), 0 },
	{ CODE("\x48\x83\x03\x08"), WP_RBX, REG(WP_RBX), 0 },
	/* mov $5,%ebx, %rbx as 32 bits sign-extended, of 64 bits; mov $-1,%ebx is
	 * zero-extended; mov $5,%edi and %eax; mov $5,%bx. */
	{ CODE("\xbb\5\0\0\0"), WP_RBX, WP_BASE_ZERO, 5 },
	{ CODE("\x48\xc7\xc3\xff\xff\xff\xff"), WP_RBX, WP_BASE_ZERO, -1 },
	{ CODE("\x48\xbb\xff\xff\xff\xff\xff\xff\xff\xff"), WP_RBX,
	  WP_BASE_ZERO, -1 },
	{ CODE("\xbb\xff\xff\xff\xff"), WP_RBX, WP_BASE_ZERO, 0xffffffff },
	{ CODE("\xb8\5\0\0\0"), WP_RAX, WP_BASE_ZERO, 5 },
	{ CODE("\xbf\5\0\0\0"), WP_RDI, WP_BASE_ZERO, 5 },
	{ CODE("\x66\xbb\5\0"), WP_RBX, WP_BASE_NONE, 0 },
	/* mov $5,%ebx by c7; mov $5,%bh; movq $5,(%rbx). */
	{ CODE("\xc7\xc3\5\0\0\0"), WP_RBX, WP_BASE_NONE, 0 },
	{ CODE("\xb7\5"), WP_RBX, WP_BASE_NONE, 0 },
	{ CODE("\x48\xc7\x03\5\0\0\0"), WP_RBX, REG(WP_RBX), 0 },
	/* mov $5,%rax; add $3,%rax: a constant stays one. */
	{ CODE("\xb8\5\0\0\0\x48\x83\xc0\x03"), WP_RAX, WP_BASE_ZERO, 8 },
	/* A word of the stack plus 8 is not known: mov (%rsp),%rax; add. */
	{ CODE("\x48\x8b\x04\x24"), WP_RAX, WP_BASE_AT_SP, 0 },
	{ CODE("\x48\x8b\x04\x24\x48\x83\xc0\x08"), WP_RAX, WP_BASE_NONE, 0 },
	/* Nor where it leads: mov (%rsp),%rax; lea 8(%rax),%rbx. */
	{ CODE("\x48\x8b\x04\x24\x48\x8d\x58\x08"), WP_RBX, WP_BASE_NONE, 0 },
	/* mov -8(%rbp),%rbx; of 32 bits; mov (%rax),%rbx; mov %fs:(%rsp),%rbx. */
	{ CODE("\x48\x8b\x5d\xf8"), WP_RBX, WP_BASE_AT_FP, -8 },
	{ CODE("\x8b\x5d\xf8"), WP_RBX, WP_BASE_NONE, 0 },
	{ CODE("\x48\x8b\x18"), WP_RBX, WP_BASE_NONE, 0 },
	{ CODE("\x64\x48\x8b\x1c\x24"), WP_RBX, WP_BASE_NONE, 0 },
	/* push and pop. */
	{ CODE("\x53"), WP_RSP, WP_BASE_SP, -8 },
	{ CODE("\x41\x57"), WP_RSP, WP_BASE_SP, -8 },
	{ CODE("\x5b"), WP_RSP, WP_BASE_SP, 8 },
	{ CODE("\x5b"), WP_RBX, WP_BASE_AT_SP, 0 },
	{ CODE("\x5f"), WP_RDI, WP_BASE_AT_SP, 0 },
	{ CODE("\x58"), WP_RAX, WP_BASE_AT_SP, 0 },
	{ CODE("\x5c"), WP_RSP, WP_BASE_WORD, 0 },
	{ CODE("\x50\x57"), WP_RSP, WP_BASE_SP, -16 },
	/* push $5 of 32 and 8 bits; pushf; push (%rax); inc (%rax). */
	{ CODE("\x68\5\0\0\0"), WP_RSP, WP_BASE_SP, -8 },
	{ CODE("\x6a\5"), WP_RSP, WP_BASE_SP, -8 },
	{ CODE("\x9c"), WP_RSP, WP_BASE_SP, -8 },
	{ CODE("\xff\x30"), WP_RSP, WP_BASE_SP, -8 },
	{ CODE("\xff\x00"), WP_RSP, WP_BASE_SP, 0 },
	{ CODE("\x41\xff\x30"), WP_RSP, WP_BASE_SP, -8 },
	/* popf writes no register; pop %rbx and pop (%rbx) by 8f. */
	{ CODE("\x9d"), WP_RSP, WP_BASE_SP, 8 },
	{ CODE("\x9d"), WP_RBX, REG(WP_RBX), 0 },
	{ CODE("\x8f\xc3"), WP_RBX, WP_BASE_AT_SP, 0 },
	{ CODE("\x8f\x03"), WP_RBX, REG(WP_RBX), 0 },
	{ CODE("\x8f\x03"), WP_RSP, WP_BASE_SP, 8 },
	/* leave. */
	{ CODE("\xc9"), WP_RSP, WP_BASE_FP, 8 },
	{ CODE("\xc9"), WP_RBP, WP_BASE_AT_FP, 0 },
	/* What else writes a register: xchg, cmovne, andn; cmp does not. */
	{ CODE("\x48\x93"), WP_RBX, WP_BASE_NONE, 0 },
	{ CODE("\x48\x0f\x45\xd8"), WP_RBX, WP_BASE_NONE, 0 },
	{ CODE("\xc4\xe2\xe0\xf2\xd8"), WP_RBX, WP_BASE_NONE, 0 },
	{ CODE("\x48\x39\xd8"), WP_RBX, REG(WP_RBX), 0 },
	/* vpxor's opcode is none of mov's: xmm3, not rbx. */
	{ CODE("\xc5\xe1\xef\xdb"), WP_RBX, REG(WP_RBX), 0 },
	/* A stack is within 2 GB: lea of 2^31 - 1, then one more. */
	{ CODE("\x48\x8d\xa4\x24\xff\xff\xff\x7f"), WP_RSP, WP_BASE_SP,
	  INT32_MAX },
	{ CODE("\x48\x8d\xa4\x24\xff\xff\xff\x7f\x48\x83\xc4\x01"), WP_RSP,
	  WP_BASE_NONE, 0 },
	{ CODE("\x48\x8d\xa4\x24\0\0\0\x80"), WP_RSP, WP_BASE_SP, INT32_MIN },
	{ CODE("\x48\x8d\xa4\x24\0\0\0\x80\x48\x83\xec\x01"), WP_RSP,
	  WP_BASE_NONE, 0 },
	/* Nor is one at a constant: mov $64,%rsp. */
	{ CODE("\x48\xc7\xc4\x40\0\0\0"), WP_RSP, WP_BASE_NONE, 0 },
	/* It may be at a word of the stack that was there before: pop %rsp, mov
	 * 32(%rsp),%rsp, from where registers are popped; a second is lost. */
	{ CODE("\x48\x8b\x64\x24\x20"), WP_RSP, WP_BASE_WORD, 0 },
	{ CODE("\x5c\x53"), WP_RSP, WP_BASE_WORD, -8 },
	{ CODE("\x5c\x58\x5d"), WP_RBP, WP_BASE_AT_WORD, 8 },
	{ CODE("\x5c\x53\x58\x5d"), WP_RBP, WP_BASE_AT_WORD, 0 },
	{ CODE("\x5c\x58\x50\x5d"), WP_RBP, WP_BASE_NONE, 0 },
	{ CODE("\x5c\x5c"), WP_RSP, WP_BASE_NONE, 0 },
	/* push %rax; pop %rsp.  mov (%rax),%rsp.  mov 32(%rsp),%esp. */
	{ CODE("\x50\x5c"), WP_RSP, WP_BASE_NONE, 0 },
	{ CODE("\x48\x8b\x20"), WP_RSP, WP_BASE_NONE, 0 },
	{ CODE("\x8b\x64\x24\x20"), WP_RSP, WP_BASE_NONE, 0 },
	/* push %rbx; change it; pop: as before, in another register too. */
	{ CODE("\x53\x31\xdb\x5b"), WP_RBX, REG(WP_RBX), 0 },
	{ CODE("\x53\x58"), WP_RAX, REG(WP_RBX), 0 },
	{ CODE("\x41\x57\x45\x31\xff\x41\x5f"), WP_R15, REG(WP_R15), 0 },
	/* push %rax; pop %rbx: what rax was is nobody's. */
	{ CODE("\x50\x5b"), WP_RBX, WP_BASE_NONE, 0 },
	/* inc %rbx; push; pop: not what it was. */
	{ CODE("\x48\x83\xc3\x01\x53\x5b"), WP_RBX, WP_BASE_NONE, 0 },
	/* mov %ebx,-8(%rsp); mov -8(%rsp),%rbx: half of it. */
	{ CODE("\x89\x5c\x24\xf8\x48\x8b\x5c\x24\xf8"), WP_RBX, WP_BASE_NONE,
	  0 },
	{ CODE("\x48\x89\x5c\x24\xf8\x48\x8b\x5c\x24\xf8"), WP_RBX, REG(WP_RBX),
	  0 },
	/* mov %rbx,-8(%rsp); a write over its last byte, its first, behind and
	 * before it: mov %eax,-1(%rsp), -15(%rsp), 0(%rsp), -16(%rsp). */
	{ CODE("\x48\x89\x5c\x24\xf8\x48\x89\x44\x24\xff\x48\x8b\x5c\x24\xf8"),
	  WP_RBX, WP_BASE_NONE, 0 },
	{ CODE("\x48\x89\x5c\x24\xf8\x48\x89\x44\x24\xf1\x48\x8b\x5c\x24\xf8"),
	  WP_RBX, WP_BASE_NONE, 0 },
	{ CODE("\x48\x89\x5c\x24\xf8\x48\x89\x04\x24\x48\x8b\x5c\x24\xf8"),
	  WP_RBX, REG(WP_RBX), 0 },
	{ CODE("\x48\x89\x5c\x24\xf8\x48\x89\x44\x24\xf0\x48\x8b\x5c\x24\xf8"),
	  WP_RBX, REG(WP_RBX), 0 },
	/* Words beside what was written are what they were: mov %rax,(%rsp), then
	 * from 8, -8, 7 and -7; by rbp as well, which is another range. */
	{ CODE("\x48\x89\x04\x24\x48\x8b\x5c\x24\x08"), WP_RBX, WP_BASE_AT_SP,
	  8 },
	{ CODE("\x48\x89\x04\x24\x48\x8b\x5c\x24\xf8"), WP_RBX, WP_BASE_AT_SP,
	  -8 },
	{ CODE("\x48\x89\x04\x24\x48\x8b\x5c\x24\x07"), WP_RBX, WP_BASE_NONE,
	  0 },
	{ CODE("\x48\x89\x04\x24\x48\x8b\x5c\x24\xf9"), WP_RBX, WP_BASE_NONE,
	  0 },
	{ CODE("\x48\x89\x45\0\x48\x8b\x5d\x08"), WP_RBX, WP_BASE_AT_FP, 8 },
	{ CODE("\x48\x89\x45\0\x48\x8b\x5d\x07"), WP_RBX, WP_BASE_NONE, 0 },
	{ CODE("\x48\x89\x45\0\x48\x8b\x5c\x24\x07"), WP_RBX, WP_BASE_AT_SP,
	  7 },
	/* Two writes, and all between them. */
	{ CODE("\x48\x89\x44\x24\x20\x48\x89\x04\x24\x48\x8b\x5c\x24\x10"),
	  WP_RBX, WP_BASE_NONE, 0 },
	{ CODE("\x48\x89\x04\x24\x48\x89\x44\x24\x20\x48\x8b\x5c\x24\x27"),
	  WP_RBX, WP_BASE_NONE, 0 },
	{ CODE("\x48\x89\x04\x24\x48\x89\x44\x24\x20\x48\x8b\x5c\x24\x28"),
	  WP_RBX, WP_BASE_AT_SP, 0x28 },
	{ CODE("\x48\x89\x44\x24\x20\x48\x89\x04\x24\x48\x8b\x5c\x24\x28"),
	  WP_RBX, WP_BASE_AT_SP, 0x28 },
};

static void values_are_sums_or_not_known(void **state)
{
	struct wp_flow_state s;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		start(&s, values[i].code, values[i].len);
		if (s.base[values[i].reg] != values[i].base ||
		    (values[i].base != WP_BASE_NONE &&
		     s.off[values[i].reg] != values[i].off))
			fail_msg("case %zu: %u + %lld", i,
				 s.base[values[i].reg],
				 (long long)s.off[values[i].reg]);
		assert_int_equal(s.pc_avma, START + values[i].len);
	}
}

static void saved_registers_have_a_place_until_it_is_left(void **state)
{
	struct wp_flow_state s;

	(void)state;
	/* push %rbx; push %r12; push %rax. */
	start(&s, CODE("\x53\x41\x54\x50"));
	assert_int_equal(s.saved, RBX_BIT | R12_BIT);
	assert_int_equal(s.saved_off[0], -8);
	assert_int_equal(s.saved_off[2], -16);
	/* A second copy does not move it: mov %rbx,8(%rsp). */
	execute(&s, CODE("\x48\x89\x1c\x24"));
	assert_int_equal(s.saved_off[0], -8);
	/* add $8,%rsp: both are there still; what is below rsp is not. */
	execute(&s, CODE("\x48\x83\xc4\x08"));
	assert_int_equal(s.saved, RBX_BIT | R12_BIT);
	execute(&s, CODE("\x48\x83\xc4\x08"));
	assert_int_equal(s.saved, RBX_BIT);
	execute(&s, CODE("\x48\x83\xc4\x08"));
	assert_int_equal(s.saved, 0);

	/* In the red zone it stays when rsp goes down, or is where it was. */
	start(&s, CODE("\x48\x89\x5c\x24\xf8\x48\x8d\x24\x24"));
	assert_int_equal(s.saved, RBX_BIT);
	execute(&s, CODE("\x48\x83\xec\x20"));
	assert_int_equal(s.saved, RBX_BIT);
	/* A stack that rbp leads to has another base: the words stay. */
	execute(&s, CODE("\x48\x89\xec"));
	assert_int_equal(s.saved, RBX_BIT);
	/* In another memory nothing is saved: mov %rbx,(%rax). */
	start(&s, CODE("\x48\x89\x18\x48\x89\x5d\xf8"));
	assert_int_equal(s.saved, 0);
	/* A register that is none to be kept; one that has changed. */
	start(&s, CODE("\x50\x57\x48\x83\xc3\x01\x53"));
	assert_int_equal(s.saved, 0);
	/* The last of them. */
	start(&s, CODE("\x41\x57"));
	assert_int_equal(s.saved, R15_BIT);
	/* Over a part of itself: mov %rbx,-12(%rsp). */
	start(&s, CODE("\x48\x89\x5c\x24\xf8\x48\x89\x5c\x24\xf4"));
	assert_int_equal(s.saved, RBX_BIT);
	assert_int_equal(s.saved_off[0], -12);
	/* The same again, over itself. */
	start(&s, CODE("\x48\x89\x5c\x24\xf8\x48\x89\x5c\x24\xf8"));
	assert_int_equal(s.saved, RBX_BIT);
}

static void it_is_noted_what_was_put_into_memory(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		uint8_t stored;
	} rows[] = {
		/* push; mov to (%rsp), to (%rax), to (%rax,%rcx). */
		{ CODE("\x53"), RBX_BIT },
		{ CODE("\x48\x89\x1c\x24"), RBX_BIT },
		{ CODE("\x48\x89\x18"), RBX_BIT },
		{ CODE("\x48\x89\x1c\x08"), RBX_BIT },
		{ CODE("\x48\x89\x6c\x24\xf8"), RBP_BIT },
		/* Half of it; another register; another value; not memory. */
		{ CODE("\x89\x1c\x24"), 0 },
		{ CODE("\x50"), 0 },
		{ CODE("\x31\xdb\x53"), 0 },
		{ CODE("\x48\x83\xc3\x01\x53"), 0 },
		{ CODE("\x48\x89\xeb\x53"), 0 },
		{ CODE("\x48\x89\xd8"), 0 },
	};
	struct wp_flow_state s;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		start(&s, rows[i].code, rows[i].len);
		assert_int_equal(s.stored, rows[i].stored);
	}
}

/* The range holds each word that was written, in whatever order. */
static void written_words_are_a_range(void **state)
{
	struct wp_flow_state s;

	(void)state;
	start(&s, CODE("\x48\x89\x44\x24\x10"));
	assert_int_equal(s.over_sp.lo, 0x10);
	assert_int_equal(s.over_sp.hi, 0x18);
	execute(&s, CODE("\x48\x89\x44\x24\x0c"));
	assert_int_equal(s.over_sp.lo, 0x0c);
	assert_int_equal(s.over_sp.hi, 0x18);
	execute(&s, CODE("\x48\x89\x44\x24\x20"));
	assert_int_equal(s.over_sp.lo, 0x0c);
	assert_int_equal(s.over_sp.hi, 0x28);
	assert_int_equal(s.over_fp.lo, s.over_fp.hi);
	execute(&s, CODE("\x48\x89\x45\xf8"));
	assert_int_equal(s.over_fp.lo, -8);
	assert_int_equal(s.over_fp.hi, 0);
	/* Elsewhere: mov %rax,(%rbx). */
	execute(&s, CODE("\x48\x89\x03"));
	assert_int_equal(s.over_sp.hi, 0x28);
}

static void operands_of_known_address(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		bool known;
		uint8_t base;
		int64_t off;
	} rows[] = {
		/* mov 8(%rbx),%rax; 0x1234; 16(%rip). */
		{ CODE("\x48\x8b\x43\x08"), true, REG(WP_RBX), 8 },
		{ CODE("\x48\x8b\x04\x25\x34\x12\0\0"), true, WP_BASE_ZERO,
		  0x1234 },
		{ CODE("\x48\x8b\x05\x10\0\0\0"), true, WP_BASE_ZERO,
		  START + 16 },
		/* 0(,%rcx,8); %fs:0; a register. */
		{ CODE("\x48\x8b\x04\xcd\0\0\0\0"), false, 0, 0 },
		{ CODE("\x64\x48\x8b\x04\x25\0\0\0\0"), false, 0, 0 },
		{ CODE("\x48\x8b\xc3"), false, 0, 0 },
	};
	struct wp_flow_state s;
	struct wp_insn insn;
	uint8_t base;
	int64_t off;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		start(&s, CODE(""));
		assert_true(wp_insn_decode(&insn, (const uint8_t *)rows[i].code,
					   rows[i].len));
		assert_int_equal(wp_flow_state_operand(&s, &insn, &base, &off),
				 rows[i].known);
		if (rows[i].known) {
			assert_int_equal(base, rows[i].base);
			assert_int_equal(off, rows[i].off);
		}
		/* Of a register that is not known nothing is. */
		wp_flow_state_forget(&s, 1u << WP_RBX);
		assert_int_equal(wp_flow_state_operand(&s, &insn, &base, &off),
				 rows[i].known && i > 0);
	}
	assert_int_equal(s.base[WP_RBX], WP_BASE_NONE);
	assert_int_equal(s.base[WP_RDX], REG(WP_RDX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_the_start_a_register_holds_what_it_holds),
		cmocka_unit_test(values_are_sums_or_not_known),
		cmocka_unit_test(saved_registers_have_a_place_until_it_is_left),
		cmocka_unit_test(it_is_noted_what_was_put_into_memory),
		cmocka_unit_test(written_words_are_a_range),
		cmocka_unit_test(operands_of_known_address),
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
