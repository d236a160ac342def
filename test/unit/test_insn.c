/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding x86-64 instructions.  Layer: unwind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../unwind/insn.h"
#include "guarded.h"

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
	R8 = 1 << 8,
	R11 = 1 << 11,
	R12 = 1 << WP_R12,
};

/* Instructions of each form, and what they write as objdump and the SDM say. */
static const struct {
	const char *code;
	size_t len;
	uint32_t writes;
} cases[] = {
	/* Vectors of the numbers of rsp and rbp: vpaddd of zmm20, zmm4; vmovdqu64 to
	 * ymm20; vpaddd of xmm21, xmm5; vfmadd132ph; vpbroadcastd %esp,%zmm4;
	 * vextracti32x4 to xmm20. */
	{ CODE("\x62\xb1\x5d\x40\xfe\xe4"), 0 },
	{ CODE("\x62\xe1\xfe\x28\x6f\x66\x02"), 0 },
	{ CODE("\x62\xa1\x55\x08\xfe\xed"), 0 },
	{ CODE("\x62\xb6\x5d\x48\x98\xec"), 0 },
	{ CODE("\x62\xf2\x7d\x48\x7c\xe4"), 0 },
	{ CODE("\x62\xb3\x7d\x48\x39\xe4\x01"), 0 },
	/* To %r12d and %ebx from xmm20: vcvttss2usi; vcvttss2si, vcvttsh2si, vpextrw,
	 * vpextrd, vmovd, vmovw.  cvttsd2si %xmm4,%ebx. */
	{ CODE("\x62\x31\x7e\x08\x78\xe4"), R12 },
	{ CODE("\x62\xb1\x7e\x08\x2c\xdc"), BX },
	{ CODE("\x62\xb5\x7e\x08\x2c\xdc"), BX },
	{ CODE("\x62\xb1\x7d\x08\xc5\xdc\x01"), BX },
	{ CODE("\x62\xe3\x7d\x08\x16\xe3\x01"), BX },
	{ CODE("\x62\xe1\x7d\x08\x7e\xe3"), BX },
	{ CODE("\x62\xe5\x7d\x08\x7e\xe3"), BX },
	{ CODE("\xf2\x0f\x2c\xdc"), BX },
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
	/* xchg %r8,%rax; nop. */
	{ CODE("\x49\x90"), AX | R8 },
	{ CODE("\x90"), 0 },
	/* bts $52,%rcx; lfence; stmxcsr (%rax); xsavec (%rcx). */
	{ CODE("\x48\x0f\xba\xe9\x34"), CX },
	{ CODE("\x0f\xae\xe8"), AX },
	{ CODE("\x0f\xae\x18"), 0 },
	{ CODE("\x0f\xc7\x21"), AX | DX },
	/* movq %xmm4,%xmm0, by VEX as well; popcnt %rbp,%rax; bsf %ebp,%eax. */
	{ CODE("\xf3\x0f\x7e\xc4"), 0 },
	{ CODE("\xc5\xfa\x7e\xc4"), 0 },
	{ CODE("\xf3\x48\x0f\xb8\xc5"), AX },
	{ CODE("\x0f\xbc\xc5"), AX },
	/* pcmpistri $12,%xmm1,%xmm0; cmpzxadd %rcx,%rax,(%rdi). */
	{ CODE("\x66\x0f\x3a\x63\xc1\x0c"), CX },
	{ CODE("\xc4\xe2\xf1\xe4\x07"), AX },
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
	/* add: %al to %bl, %bh, %ah, %spl, %r8b, (%rbx); %eax to %ebx, (%rbx). */
	{ CODE("\x00\xc3"), BX },
	{ CODE("\x00\xc7"), BX },
	{ CODE("\x00\xc4"), AX },
	{ CODE("\x40\x00\xc4"), SP },
	{ CODE("\x45\x00\xc0"), R8 },
	{ CODE("\x00\x03"), 0 },
	{ CODE("\x01\xc3"), BX },
	{ CODE("\x01\x03"), 0 },
	/* add (%rdi) to %bl, %ebx; $5 to %al, %eax.  cmp %al,%bl; cmp $1,%eax. */
	{ CODE("\x02\x1f"), BX },
	{ CODE("\x03\x1f"), BX },
	{ CODE("\x04\x05"), AX },
	{ CODE("\x05\x01\0\0\0"), AX },
	{ CODE("\x38\xc3"), 0 },
	{ CODE("\x3d\x01\0\0\0"), 0 },
	/* push %rbx, %rdi; pop %rax, %rbx; push $1, of 32 bits and of 8; jo. */
	{ CODE("\x53"), 0 },
	{ CODE("\x57"), 0 },
	{ CODE("\x58"), AX },
	{ CODE("\x5b"), BX },
	{ CODE("\x68\x01\0\0\0"), 0 },
	{ CODE("\x6a\x01"), 0 },
	{ CODE("\x70\x05"), 0 },
	/* movslq %eax,%rbx; imul $1,%eax,%ebx. */
	{ CODE("\x48\x63\xd8"), BX },
	{ CODE("\x69\xd8\x01\0\0\0"), BX },
	{ CODE("\x6b\xd8\x01"), BX },
	/* $1: add to %bl, %bh, (%rbx), %ebx, cmp with %bl; add $0x88,%rsp with 66. */
	{ CODE("\x80\xc3\x01"), BX },
	{ CODE("\x80\xc7\x01"), BX },
	{ CODE("\x80\x03\x01"), 0 },
	{ CODE("\x81\xc3\x01\0\0\0"), BX },
	{ CODE("\x80\xfb\x01"), 0 },
	{ CODE("\x66\x48\x81\xc4\x88\0\0\0"), SP },
	/* test; xchg: %al and %bl, (%rdi) and %bl, %eax and %ebx, (%rdi) and %ebx. */
	{ CODE("\x84\xdb"), 0 },
	{ CODE("\x85\xdb"), 0 },
	{ CODE("\x86\xc3"), AX | BX },
	{ CODE("\x86\x1f"), BX },
	{ CODE("\x87\xd8"), AX | BX },
	{ CODE("\x87\x1f"), BX },
	/* mov: %al to %bl both ways, (%rdi) to and from %bl; from and to a segment. */
	{ CODE("\x88\xc3"), BX },
	{ CODE("\x88\x1f"), 0 },
	{ CODE("\x8a\xd8"), BX },
	{ CODE("\x8a\x1f"), BX },
	{ CODE("\x8c\xdb"), BX },
	{ CODE("\x8e\xdb"), 0 },
	{ CODE("\x8f\xc3"), BX },
	{ CODE("\x48\x8b\x83\x10\0\0\0"), AX },
	/* nop; xchg with %eax: %ecx, %edi; cltq; cqto; fwait; pushf; sahf; lahf. */
	{ CODE("\x90"), 0 },
	{ CODE("\x91"), AX | CX },
	{ CODE("\x97"), AX | DI },
	{ CODE("\x48\x98"), AX | DX },
	{ CODE("\x48\x99"), AX | DX },
	{ CODE("\x9b"), 0 },
	{ CODE("\x9c"), 0 },
	{ CODE("\x9e"), 0 },
	{ CODE("\x9f"), AX },
	/* mov $1 to %al, %eax. */
	{ CODE("\xb0\x01"), AX },
	{ CODE("\xb8\x01\0\0\0"), AX },
	/* shl: %bl, %ah, (%rbx), %ebx by 1, by %cl. */
	{ CODE("\xc0\xe3\x01"), BX },
	{ CODE("\xc0\xe4\x01"), AX },
	{ CODE("\xc0\x23\x01"), 0 },
	{ CODE("\xc1\xe3\x01"), BX },
	{ CODE("\xd0\xe3"), BX },
	{ CODE("\xd1\xe3"), BX },
	{ CODE("\xd2\xe3"), BX },
	{ CODE("\xd3\xe3"), BX },
	/* mov $1,%bl; inc %bl, %ebx, (%rdi); dec %ebx; call *%rbx. */
	{ CODE("\xc6\xc3\x01"), BX },
	{ CODE("\xfe\xc3"), BX },
	{ CODE("\xff\xc3"), BX },
	{ CODE("\xff\x07"), 0 },
	{ CODE("\xff\xcb"), BX },
	{ CODE("\xff\xd3"), 0 },
	/* neg %bl, %bh, (%rdi); not %bl, %ah, %ebx, %esp, (%rdi); mul %bl, %ebx, (%rdi). */
	{ CODE("\xf6\xdb"), BX },
	{ CODE("\xf6\xdf"), BX },
	{ CODE("\xf7\x1f"), 0 },
	{ CODE("\xf6\xd3"), BX },
	{ CODE("\xf6\xd4"), AX },
	{ CODE("\xf7\xd3"), BX },
	{ CODE("\xf7\xd4"), SP },
	{ CODE("\xf6\x17"), 0 },
	{ CODE("\xf6\xe3"), AX | DX },
	{ CODE("\xf7\xe3"), AX | DX },
	{ CODE("\xf7\x27"), AX | DX },
	/* test $1: %ebx, %bx; %bl by its other number. */
	{ CODE("\xf7\xc3\x01\0\0\0"), 0 },
	{ CODE("\x66\xf7\xc3\x01\0"), 0 },
	{ CODE("\xf6\xcb\x01"), 0 },
	/* xlat; fnstsw; enter; leave; loopne; loope; loop; jrcxz; ret $1; ret; int3. */
	{ CODE("\xd7"), AX },
	{ CODE("\xdf\xe0"), AX },
	{ CODE("\xc8\x01\0\0"), BP | SP },
	{ CODE("\xc9"), BP | SP },
	{ CODE("\xe0\x05"), CX },
	{ CODE("\xe1\x05"), CX },
	{ CODE("\xe2\x05"), CX },
	{ CODE("\xe3\x05"), 0 },
	{ CODE("\xc2\x01\0"), 0 },
	{ CODE("\xc3"), 0 },
	{ CODE("\xcc"), 0 },
	/* syscall; rdtsc; xgetbv; ud2; prefetchw; prefetchnta; rdsspq %rbx. */
	{ CODE("\x0f\x05"), AX | CX | DX | R11 },
	{ CODE("\x0f\x31"), AX | CX | DX | R11 },
	{ CODE("\x0f\x01\xd0"), AX | CX | DX | R11 },
	{ CODE("\x0f\x0b"), 0 },
	{ CODE("\x0f\x0d\x0f"), 0 },
	{ CODE("\x0f\x18\x0f"), 0 },
	{ CODE("\xf3\x48\x0f\x1e\xcb"), BX },
	/* cmov %eax,%ebx; imul; movz and movs of words and bytes. */
	{ CODE("\x0f\x40\xd8"), BX },
	{ CODE("\x0f\x4f\xd8"), BX },
	{ CODE("\x0f\xaf\xd8"), BX },
	{ CODE("\x0f\xb6\xd8"), BX },
	{ CODE("\x0f\xb7\xd8"), BX },
	{ CODE("\x0f\xbe\xd8"), BX },
	{ CODE("\x0f\xbf\xd8"), BX },
	/* jg; seto %bl, %bh, (%rdi); setg %bl; bswap %eax, %edi; bt. */
	{ CODE("\x0f\x8f\x01\0\0\0"), 0 },
	{ CODE("\x0f\x90\xc3"), BX },
	{ CODE("\x0f\x90\xc7"), BX },
	{ CODE("\x0f\x90\x07"), 0 },
	{ CODE("\x0f\x9f\xc3"), BX },
	{ CODE("\x0f\xc8"), AX },
	{ CODE("\x0f\xcf"), DI },
	{ CODE("\x0f\xa3\xc3"), 0 },
	{ CODE("\x0f\xba\xe3\x01"), 0 },
	/* movntps; ucomiss; sqrtps; cmpps; shufps; addsubps; psubusb; movd %xmm0,%ebx. */
	{ CODE("\x0f\x2b\x07"), 0 },
	{ CODE("\x0f\x2e\xd8"), 0 },
	{ CODE("\x0f\x51\xdb"), 0 },
	{ CODE("\x0f\xc2\xdb\x01"), 0 },
	{ CODE("\x0f\xc6\xdb\x01"), 0 },
	{ CODE("\xf2\x0f\xd0\xdb"), 0 },
	{ CODE("\x0f\xd8\xdb"), 0 },
	{ CODE("\x66\x0f\x7e\xc3"), BX },
	/* pshufb; pextrb; extractps; vinsertf128; vaddps with the long prefix. */
	{ CODE("\x66\x0f\x38\x00\xdb"), 0 },
	{ CODE("\x66\x0f\x3a\x14\xc3\x01"), BX },
	{ CODE("\x66\x0f\x3a\x17\xc3\x01"), BX },
	{ CODE("\xc4\xe3\x65\x18\xdb\x01"), 0 },
	{ CODE("\xc4\xe1\x78\x58\xc1"), 0 },
};

/* What these write, with more that they leave alone. */
static const struct {
	const char *code;
	size_t len;
	uint32_t least;
} rough[] = {
	/* lar, lsl, movmskps, cvttss2si, cvtss2si, pextrw, pmovmskb: to %ebx. */
	{ CODE("\x0f\x02\xd8"), BX },
	{ CODE("\x0f\x03\xd8"), BX },
	{ CODE("\x0f\x50\xd8"), BX },
	{ CODE("\xf3\x0f\x2c\xd8"), BX },
	{ CODE("\xf3\x0f\x2d\xd8"), BX },
	{ CODE("\x0f\xc5\xd8\x01"), BX },
	{ CODE("\x0f\xd7\xd8"), BX },
	/* bts $1,%ebx; bts %eax,%ebx; shld $1,%eax,%ebx; bsf %eax,%ebx. */
	{ CODE("\x0f\xba\xeb\x01"), BX },
	{ CODE("\x0f\xab\xc3"), BX },
	{ CODE("\x0f\xa4\xc3\x01"), BX },
	{ CODE("\x0f\xbc\xd8"), BX },
	/* xadd: %ebx to %eax, %bl to %ch; cmpxchg8b; rdrand %ebx. */
	{ CODE("\x0f\xc1\xd8"), AX | BX },
	{ CODE("\x0f\xc0\xdd"), BX | CX },
	{ CODE("\x0f\xc7\x0f"), AX | DX },
	{ CODE("\x0f\xc7\xf3"), BX },
	/* test $1,%al; mov of an absolute address to %al. */
	{ CODE("\xa8\x01"), 0 },
	{ CODE("\xa0\0\0\0\0\0\0\0\0"), AX },
	{ CODE("\xaa"), DI },
	/* movbe; mulx; rorx; kmov to %ebx, %r8d. */
	{ CODE("\x0f\x38\xf0\x1f"), BX },
	{ CODE("\xc4\xe2\x63\xf6\xc8"), BX | CX },
	{ CODE("\xc4\xe3\x7b\xf0\xd8\x01"), BX },
	{ CODE("\xc5\xf8\x93\xd9"), BX },
	{ CODE("\xc5\x78\x93\xc1"), R8 },
	/* EVEX: vmovdqa64; vcmpps; vcvtuqq2pd; vaddph; a map behind it. */
	{ CODE("\x62\xf1\xfd\x48\x6f\xc1"), 0 },
	{ CODE("\x62\xf1\x7c\x48\xc2\xc9\x01"), 0 },
	{ CODE("\x62\xf1\xff\x48\x7a\xc1"), 0 },
	{ CODE("\x62\xf5\x7c\x48\x58\xc1"), 0 },
	{ CODE("\x62\xf6\x7d\x48\x98\xc1"), 0 },
	/* vmovd %xmm0,%ebx. */
	{ CODE("\x62\xf1\x7d\x08\x7e\xc3"), BX },
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

static void what_is_written_is_not_missed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rough) / sizeof(rough[0]); i++) {
		struct wp_insn insn;
		uint8_t code[WP_INSN_MAX] = { 0 };
		uint32_t got;

		memcpy(code, rough[i].code, rough[i].len);
		assert_true(wp_insn_decode(&insn, code, sizeof(code)));
		got = wp_insn_writes(&insn);
		if (insn.len != rough[i].len || rough[i].least & ~got)
			fail_msg("rough %zu: %u bytes, %x", i, insn.len, got);
		/* None of them has to do with the stack. */
		assert_false(got & SP);
	}
}

static void what_is_cut_short_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t len = 0; len < cases[i].len; len++) {
			uint8_t *exact = guarded(cases[i].code, len);
			struct wp_insn insn;

			assert_false(wp_insn_decode(&insn, exact, len));
			guarded_free(exact, len);
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
	/* The same with %gs; mov %ebx,%eax and its 16 bits. */
	assert_true(wp_insn_decode(
		&insn, (const uint8_t *)"\x65\x48\x8b\x04\x25\0\0\0\0", 9));
	assert_true(insn.segment);
	assert_true(wp_insn_decode(&insn, (const uint8_t *)"\x89\xd8", 2));
	assert_false(insn.segment || insn.narrow);
	assert_true(wp_insn_decode(&insn, (const uint8_t *)"\x66\x89\xd8", 3));
	assert_true(insn.narrow);
	assert_false(insn.segment);
	/* vaddps (%rax,%r12,1), with the index's fourth bit in the prefix, and
	 * (%rax). */
	assert_true(wp_insn_decode(
		&insn, (const uint8_t *)"\xc4\xa1\x78\x58\x04\x20", 6));
	assert_true(insn.has_index);
	assert_true(wp_insn_decode(
		&insn, (const uint8_t *)"\xc4\xe1\x78\x58\x04\x20", 6));
	assert_false(insn.has_index);
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
		/* Maps that are none, of VEX and EVEX. */
		{ CODE("\xc4\xe0\x78\x58\xc1\x01") },
		{ CODE("\xc4\xe4\x78\x58\xc1\x01") },
		{ CODE("\xc4\xe7\x78\x58\xc1\x01") },
		{ CODE("\xc4\xe8\x78\x58\xc1\x01") },
		{ CODE("\x62\xf0\x7c\x48\x6f\xc1\x01") },
		{ CODE("\x62\xf4\x7c\x48\x6f\xc1\x01") },
		{ CODE("\x62\xf7\x7c\x48\x6f\xc1\x01") },
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
		cmocka_unit_test(what_is_written_is_not_missed),
		cmocka_unit_test(what_is_cut_short_is_refused),
		cmocka_unit_test(the_operand_in_memory_is_known),
		cmocka_unit_test(what_is_no_user_code_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
