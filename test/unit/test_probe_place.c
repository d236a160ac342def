/* SPDX-License-Identifier: Apache-2.0 */
/* Where a probe on a function stands.  Layer: unwind.  The code is of real
 * allocators, as objdump prints it; which instructions the kernel emulates is read from
 * arch/x86/kernel/uprobes.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "guarded.h"
#include "wallprof/probe_place.h"

#define CODE(bytes) bytes, sizeof(bytes) - 1

/* Bits of arguments. */
enum { FIRST = 1, SECOND = 2, BOTH = 3, FIRST_AND_THIRD = 5 };

static const struct {
	const char *code;
	size_t len;
	unsigned int args;
	bool wants_return;
	int at;
} cases[] = {
#ifdef __x86_64__
	/* glibc's malloc: push %r12. */
	{ CODE("\x41\x54\x55\x53"), FIRST, true, 0 },
	/* endbr64; push %rbp. */
	{ CODE("\xf3\x0f\x1e\xfa\x55"), FIRST, true, 4 },
	/* glibc's free: test %rdi,%rdi; je. */
	{ CODE("\x48\x85\xff\x0f\x84\xbc\0\0\0"), FIRST, false, 3 },
	/* jemalloc's malloc: mov 0x5b6a9(%rip),%rax; jmp short. */
	{ CODE("\x48\x8b\x05\xa9\xb6\x05\0\xeb\x10"), FIRST, true, 7 },
	/* sub $8,%rsp; test; jne: the stack pointer is another. */
	{ CODE("\x48\x83\xec\x08\x48\x85\xff\x75\x10"), FIRST, true, -ENOENT },
	{ CODE("\x48\x83\xec\x08\x48\x85\xff\x75\x10"), FIRST, false, 7 },
	/* mov %rdi,%rax; nop. */
	{ CODE("\x48\x89\xf8\x90"), FIRST, true, 3 },
	/* mov %rsi,%rdi; push %rbx: the first argument is gone. */
	{ CODE("\x48\x89\xf7\x53"), FIRST, true, -ENOENT },
	{ CODE("\x48\x89\xf7\x53"), SECOND, true, 3 },
	/* imul %rsi,%rdi: that of calloc. */
	{ CODE("\x48\x0f\xaf\xfe\x53"), BOTH, true, -ENOENT },
	/* xor %edx,%edx; call. */
	{ CODE("\x31\xd2\xe8\x10\0\0\0"), FIRST_AND_THIRD, true, -ENOENT },
	{ CODE("\x31\xd2\xe8\x10\0\0\0"), FIRST, true, 2 },
	/* What is executed next is not what follows: ret, jmp *%rax, ud2, hlt,
	 * loop. */
	{ CODE("\xc3\x90"), FIRST, false, -ENOENT },
	{ CODE("\xff\xe0\x90"), FIRST, false, -ENOENT },
	{ CODE("\x0f\x0b\x90"), FIRST, false, -ENOENT },
	{ CODE("\xe2\xfe\x90"), FIRST, false, -ENOENT },
	/* pop %rax; push $1; pushf; leave: they are not emulated, and move the
	 * stack pointer. */
	{ CODE("\x58\x90"), FIRST, true, -ENOENT },
	{ CODE("\x6a\x01\x90"), FIRST, true, -ENOENT },
	{ CODE("\x9c\x90"), FIRST, true, -ENOENT },
	{ CODE("\xc9\x90"), FIRST, true, -ENOENT },
	/* data16 jmp and call are not emulated: nothing here is. */
	{ CODE("\x66\xe8\x10\0\0\0"), FIRST, false, -ENOENT },
	/* rex.W push: a prefix that the kernel does not know. */
	{ CODE("\x48\x53\x90"), FIRST, true, -ENOENT },
	/* What is executed next is not known behind these either: ret $8; lret;
	 * enter; int3; int; iret; loopne; jrcxz; call *%rax; inc %al, in one
	 * group with it; icebp; data16 jo and jg, call, jmp, jcc far. */
	{ CODE("\xc2\x08\0\x90"), FIRST, false, -ENOENT },
	{ CODE("\xcb\x90"), FIRST, false, -ENOENT },
	{ CODE("\xc8\0\0\0\x90"), FIRST, false, -ENOENT },
	{ CODE("\xcc\x90"), FIRST, false, -ENOENT },
	{ CODE("\xcd\x80\x90"), FIRST, false, -ENOENT },
	{ CODE("\xcf\x90"), FIRST, false, -ENOENT },
	{ CODE("\xe0\xfe\x90"), FIRST, false, -ENOENT },
	{ CODE("\xe3\xfe\x90"), FIRST, false, -ENOENT },
	{ CODE("\xff\xd0\x90"), FIRST, false, -ENOENT },
	{ CODE("\xfe\xc0\x90"), FIRST, false, -ENOENT },
	{ CODE("\xf1\x90"), FIRST, false, -ENOENT },
	{ CODE("\xf4\x90"), FIRST, false, -ENOENT },
	{ CODE("\x66\x70\x10\x90"), FIRST, false, -ENOENT },
	{ CODE("\x66\x7f\x10\x90"), FIRST, false, -ENOENT },
	{ CODE("\x66\xeb\x10\x90"), FIRST, false, -ENOENT },
	{ CODE("\x66\x0f\x80\0\0\0\0\x90"), FIRST, false, -ENOENT },
	{ CODE("\x66\x0f\x8f\0\0\0\0\x90"), FIRST, false, -ENOENT },
	/* syscall; sysenter; pop %fs, %gs; push of both moves the stack too. */
	{ CODE("\x0f\x05\x90"), FIRST, false, -ENOENT },
	{ CODE("\x0f\x34\x90"), FIRST, false, -ENOENT },
	{ CODE("\x0f\xa1\x90"), FIRST, true, -ENOENT },
	{ CODE("\x0f\xa9\x90"), FIRST, true, -ENOENT },
	{ CODE("\x0f\xa0\x90"), FIRST, true, -ENOENT },
	{ CODE("\x0f\xa8\x90"), FIRST, true, -ENOENT },
	/* pop (%rax); pop %rax by 8f; push $1 of 32 bits; popf. */
	{ CODE("\x8f\x00\x90"), FIRST, true, -ENOENT },
	{ CODE("\x8f\xc0\x90"), FIRST, true, -ENOENT },
	{ CODE("\x68\1\0\0\0\x90"), FIRST, true, -ENOENT },
	{ CODE("\x9d\x90"), FIRST, true, -ENOENT },
	/* Others are passed: rol %cl,%al; shl $1,%al; mov of a byte and of four;
	 * cmc; clc; bt; setne %al; vpxor; pshufb; movaps; lea; imul. */
	{ CODE("\xd2\xc0\x90"), FIRST, true, 2 },
	{ CODE("\xc1\xe0\x01\x90"), FIRST, true, 3 },
	{ CODE("\xc6\xc0\x01\x90"), FIRST, true, 3 },
	{ CODE("\xc7\xc0\1\0\0\0\x90"), FIRST, true, 6 },
	{ CODE("\xf5\x90"), FIRST, true, 1 },
	{ CODE("\xf8\x90"), FIRST, true, 1 },
	{ CODE("\x0f\xa3\xc0\x90"), FIRST, true, 3 },
	{ CODE("\x0f\x95\xc0\x90"), FIRST, true, 3 },
	{ CODE("\xc5\xe1\xef\xdb\x90"), FIRST, true, 4 },
	{ CODE("\x66\x0f\x38\x00\xc1\x90"), FIRST, true, 5 },
	{ CODE("\x0f\x29\x1c\x24\x90"), FIRST, true, 4 },
	{ CODE("\x48\x8d\x04\x24\x90"), FIRST, true, 4 },
	{ CODE("\x69\xc0\1\0\0\0\x90"), FIRST, true, 6 },
	{ CODE("\x8d\x00\x90"), FIRST, true, 2 },
	/* Those that are emulated: push of each kind, jcc, call, jmp. */
	{ CODE("\x57"), FIRST, true, 0 },
	{ CODE("\x41\x57"), FIRST, true, 0 },
	{ CODE("\x70\x10"), FIRST, true, 0 },
	{ CODE("\x7f\x10"), FIRST, true, 0 },
	{ CODE("\x0f\x80\0\0\0\0"), FIRST, true, 0 },
	{ CODE("\x0f\x8f\0\0\0\0"), FIRST, true, 0 },
	{ CODE("\xe8\0\0\0\0"), FIRST, true, 0 },
	{ CODE("\xe9\0\0\0\0"), FIRST, true, 0 },
	{ CODE("\xeb\0"), FIRST, true, 0 },
	/* Arguments are in rdi, rsi, rdx, rcx: xor of each, then a nop. */
	{ CODE("\x31\xff\x90"), 1, false, -ENOENT },
	{ CODE("\x31\xf6\x90"), 2, false, -ENOENT },
	{ CODE("\x31\xd2\x90"), 4, false, -ENOENT },
	{ CODE("\x31\xc9\x90"), 8, false, -ENOENT },
	{ CODE("\x31\xff\x90"), 14, false, 2 },
	{ CODE("\x31\xc9\x90"), 7, false, 2 },
	/* 15 times mov %rax,%rax: the nop is the 16th. */
	{ CODE("\x48\x89\xc0\x48\x89\xc0\x48\x89\xc0\x48\x89\xc0"
	       "\x48\x89\xc0\x48\x89\xc0\x48\x89\xc0\x48\x89\xc0"
	       "\x48\x89\xc0\x48\x89\xc0\x48\x89\xc0\x48\x89\xc0"
	       "\x48\x89\xc0\x48\x89\xc0\x48\x89\xc0\x90"),
	  FIRST, true, 45 },
	/* Nothing is emulated for too long: 16 times mov %rax,%rax. */
	{ CODE("\x48\x89\xc0\x48\x89\xc0\x48\x89\xc0\x48\x89\xc0"
	       "\x48\x89\xc0\x48\x89\xc0\x48\x89\xc0\x48\x89\xc0"
	       "\x48\x89\xc0\x48\x89\xc0\x48\x89\xc0\x48\x89\xc0"
	       "\x48\x89\xc0\x48\x89\xc0\x48\x89\xc0\x48\x89\xc0\x90"),
	  FIRST, true, -ENOENT },
#else
	{ CODE("\x1f\x20\x03\xd5"), FIRST, true, -ENOTSUP },
#endif
};

static void the_first_emulated_instruction_with_its_arguments(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int at = wp_probe_place((const uint8_t *)cases[i].code,
					cases[i].len, cases[i].args,
					cases[i].wants_return);

		if (at != cases[i].at)
			fail_msg("case %zu: %d, wanted %d", i, at, cases[i].at);
	}
}

/* Of code that ends early, nothing behind its end is read, and no place is found that
 * the whole does not have. */
static void every_prefix(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		for (size_t len = 0; len < cases[i].len; len++) {
			uint8_t *copy = guarded(cases[i].code, len);
			int at = wp_probe_place(copy, len, cases[i].args,
						cases[i].wants_return);

			assert_true(at < 0 || at == cases[i].at);
			guarded_free(copy, len);
		}
	}
}

#ifdef __x86_64__
static void jumps_are_found(void **state)
{
	/* jne 0x10; jmp +0x100; mov $0xe9,%eax; jmp -2. */
	static const uint8_t code[] = { 0x75, 0x10, 0xe9, 0x00, 0x01, 0x00,
					0x00, 0xb8, 0xe9, 0x00, 0x00, 0x00,
					0xe9, 0xfe, 0xff, 0xff, 0xff };
	size_t at = 0;
	int32_t distance;

	(void)state;
	assert_true(wp_probe_next_jump(code, sizeof(code), &at, &distance));
	assert_int_equal(at, 7);
	assert_int_equal(distance, 0x100);
	assert_true(wp_probe_next_jump(code, sizeof(code), &at, &distance));
	assert_int_equal(at, sizeof(code));
	assert_int_equal(distance, -2);
	assert_false(wp_probe_next_jump(code, sizeof(code), &at, &distance));
	/* Cut in its middle. */
	at = 0;
	assert_false(wp_probe_next_jump(code, 5, &at, &distance));
}

static void the_first_call_before_a_return(void **state)
{
	/* push %rbx; test %rdi,%rdi; je .+5; call .+0x100; ret */
	uint8_t code[] = { 0x53, 0x48, 0x85, 0xff, 0x74, 0x05,
			   0xe8, 0x00, 0x01, 0x00, 0x00, 0xc3 };
	size_t at;
	int32_t distance;

	(void)state;
	assert_true(wp_probe_first_call(code, sizeof(code), &at, &distance));
	assert_int_equal(at, 11);
	assert_int_equal(distance, 0x100);
	assert_false(wp_probe_first_call(code, 10, &at, &distance));
	/* It may return first. */
	code[0] = 0xc3;
	assert_false(wp_probe_first_call(code, sizeof(code), &at, &distance));
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(jumps_are_found),
		cmocka_unit_test(the_first_call_before_a_return),
#endif
		cmocka_unit_test(
			the_first_emulated_instruction_with_its_arguments),
		cmocka_unit_test(every_prefix),
	};

	return cmocka_run_group_tests_name("probe_place", tests, NULL, NULL);
}
