/* SPDX-License-Identifier: Apache-2.0 */
/* test_flow_frame.c - what a way through code says of frames and their pointers.
 *
 * Layer: unwind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_elf.h"
#include "flow_maker.h"

#if defined(__x86_64__)

/* A frame is torn down by leave, or by pop %rbp with rsp at it. */
static void a_way_ends_where_its_frame_does(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		/* Reported there; else at its return. */
		uint64_t at;
	} rows[] = {
		{ CODE("\xc9\x90\xc3"), 1 },
		{ CODE("\x48\x89\xec\x5d\x90\xc3"), 4 },
		/* lea -8(%rbp),%rsp; pop %rbx; pop %rbp. */
		{ CODE("\x48\x8d\x65\xf8\x5b\x5d\x90\xc3"), 6 },
		/* pop %rbx there; mov -8(%rbp),%rbp; push %rbp; leave. */
		{ CODE("\x48\x89\xec\x5b\x90\xc3"), 6 },
		{ CODE("\x48\x8d\x65\xf8\x5d\x90\xc3"), 7 },
		{ CODE("\x55\x48\x89\xe5\xc9\x90\xc3"), 7 },
		/* mov %rax,(%rbp); leave: what was there is gone. */
		{ CODE("\x48\x89\x45\0\xc9\x90\xc3"), 7 },
		/* lea 8(%rbp),%rsp; mov (%rbp),%rbp. */
		{ CODE("\x48\x8d\x65\x08\x48\x8b\x6d\0\xc3"), 9 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		follow_code(rows[i].code, rows[i].len);
		assert_int_equal(f.n, 1);
		assert_int_equal(f.stop[0], WP_FLOW_RETURNS);
		assert_int_equal(f.s[0].pc_avma, HERE + rows[i].at);
	}
	/* On the way to a goal that is no end. */
	follow_to(CODE("\xc9\x90\xc3"), 2);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.stop[0], WP_FLOW_AT_GOAL);
}

static void uses_of_the_frame_pointer_are_noted(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		int64_t use;
	} rows[] = {
		/* mov -8(%rbp),%rax; then -16; then 8. */
		{ CODE("\x48\x8b\x45\xf8\xc3"), -8 },
		{ CODE("\x48\x8b\x45\xf8\x48\x8b\x45\xf0\xc3"), -16 },
		{ CODE("\x48\x8b\x45\xf0\x48\x8b\x45\xf8\xc3"), -16 },
		{ CODE("\x48\x8b\x45\x08\xc3"), 0 },
		/* movss: a write as well; -7; with an index; %fs. */
		{ CODE("\xf3\x0f\x11\x45\xf8\xc3"), -8 },
		{ CODE("\x48\x8b\x45\xf9\xc3"), 0 },
		{ CODE("\x48\x8b\x44\x05\xf8\xc3"), 0 },
		{ CODE("\x64\x48\x8b\x45\xf8\xc3"), 0 },
		/* By rbx; mov %rbp,%rax; lea 8(%rbp),%rbp; mov -8(%rbp). */
		{ CODE("\x48\x8b\x43\xf8\xc3"), 0 },
		{ CODE("\x48\x89\xe8\xc3"), 0 },
		{ CODE("\x48\x8d\x6d\x08\x48\x8b\x45\xf8\xc3"), 0 },
		/* mov %rsp,%rbp; mov -8(%rbp),%rax. */
		{ CODE("\x48\x89\xe5\x48\x8b\x45\xf8\xc3"), 0 },
		/* push $-8 has no such operand. */
		{ CODE("\x6a\xf8\xc3"), 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		follow_code(rows[i].code, rows[i].len);
		if (f.flow.fp_use != rows[i].use)
			fail_msg("case %zu: %lld", i, (long long)f.flow.fp_use);
	}
}

static void the_first_prologue_is_noted(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		bool has;
		int64_t off;
	} rows[] = {
		/* push %rbp; mov %rsp,%rbp; push %rax; mov %rsp,%rbp; ret. */
		{ CODE("\x55\x48\x89\xe5\x50\x48\x89\xe5\xc3"), true, -8 },
		/* lea 8(%rsp),%rbp; ret. */
		{ CODE("\x48\x8d\x6c\x24\x08\xc3"), true, 8 },
		/* mov %rbx,%rbp; mov 8(%rsp),%rbp; ret. */
		{ CODE("\x48\x89\xdd\xc3"), false, 0 },
		{ CODE("\x48\x8b\x6c\x24\x08\xc3"), false, 0 },
		/* add $8,%rbp; mov %rsp,%rbp. xor %ebp,%ebp; mov %rsp,%rbp. */
		{ CODE("\x48\x83\xc5\x08\x48\x89\xe5\xc3"), false, 0 },
		{ CODE("\x31\xed\x48\x89\xe5\xc3"), false, 0 },
		/* call; push %rbp; mov %rsp,%rbp. */
		{ CODE("\xe8\0\0\0\0\x55\x48\x89\xe5\xc3"), false, 0 },
		{ CODE("\x90\xc3"), false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		follow_code(rows[i].code, rows[i].len);
		assert_int_equal(f.flow.has_prologue, rows[i].has);
		if (rows[i].has)
			assert_int_equal(f.flow.prologue.off[WP_RBP],
					 rows[i].off);
	}
	/* Of another flow it is not. */
	follow_code(CODE("\x55\x48\x89\xe5\xc3"));
	follow(HERE + 4, 0, BUDGET);
	assert_false(f.flow.has_prologue);
}

static void code_of_no_file_reads_its_frame_pointer_back(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		uint8_t reg;
		int64_t off;
		uint8_t base;
	} rows[] = {
		/* mov 0x60(%r13),%rbp; 8(%rbx); -8(%r15). */
		{ CODE("\x49\x8b\x6d\x60\xc3"), 13, 0x60, WP_BASE_FP },
		{ CODE("\x48\x8b\x6b\x08\xc3"), WP_RBX, 8, WP_BASE_FP },
		{ CODE("\x49\x8b\x6f\xf8\xc3"), 15, -8, WP_BASE_FP },
		/* mov of 32 bits; %rax; lea; by %rax, %rbp, with an index. */
		{ CODE("\x41\x8b\x6d\x60\xc3"), 0, 0, WP_BASE_NONE },
		{ CODE("\x49\x8b\x45\x60\xc3"), 0, 0, WP_BASE_FP },
		{ CODE("\x49\x8d\x6d\x60\xc3"), 0, 0, WP_BASE_REG + 13 },
		{ CODE("\x48\x8b\x68\x60\xc3"), 0, 0, WP_BASE_NONE },
		{ CODE("\x48\x8b\x6d\x60\xc3"), 0, 0, WP_BASE_AT_FP },
		{ CODE("\x49\x8b\x6c\x05\x60\xc3"), 0, 0, WP_BASE_NONE },
		/* mov %r13,%rbp; mov %rbp,0x60(%r13). */
		{ CODE("\x4c\x89\xed\xc3"), 0, 0, WP_BASE_REG + 13 },
		{ CODE("\x4c\x8b\xed\xc3"), 0, 0, WP_BASE_FP },
		{ CODE("\x49\x8b\xed\xc3"), 0, 0, WP_BASE_REG + 13 },
		{ CODE("\x49\x89\x6d\x60\xc3"), 0, 0, WP_BASE_FP },
		/* From one home it may be read again, from a second not. */
		{ CODE("\x49\x8b\x6d\x60\x49\x8b\x6d\x60\xc3"), 13, 0x60,
		  WP_BASE_FP },
		{ CODE("\x49\x8b\x6d\x60\x49\x8b\x6d\x68\xc3"), 13, 0x60,
		  WP_BASE_NONE },
		{ CODE("\x49\x8b\x6d\x60\x49\x8b\x6e\x60\xc3"), 13, 0x60,
		  WP_BASE_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		follow_code(rows[i].code, rows[i].len);
		assert_int_equal(f.n, 1);
		if (f.flow.home_reg != rows[i].reg ||
		    (rows[i].reg && f.flow.home_off != rows[i].off) ||
		    f.s[0].base[WP_RBP] != rows[i].base)
			fail_msg("case %zu: home %u, base %u", i,
				 f.flow.home_reg, f.s[0].base[WP_RBP]);
	}
}

static void a_frame_may_be_made_for_who_is_called(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		bool is_callees;
	} rows[] = {
		/* mov %rbp,(%rsp); mov %rsp,%rbp; call; ret. */
		{ CODE("\x48\x89\x2c\x24\x48\x89\xe5\xe8\0\0\0\0\xc3"), true },
		{ CODE("\x48\x89\x2c\x24\x48\x8b\xec\xe8\0\0\0\0\xc3"), true },
		{ CODE("\x48\x89\x2c\x24\x48\x8b\xec\xff\x50\xfd\xc3\xcc\xcc"
		       "\xcc"),
		  true },
		{ CODE("\x48\x89\x2c\x24\x48\x8b\xec\xbf\1\0\0\0\xff\xd0\xc3"),
		  true },
		/* push (%rax) for the call; nop; another register, two. */
		{ CODE("\x48\x89\x2c\x24\x48\x8b\xec\xff\x30\xc3\xcc"), false },
		{ CODE("\x48\x89\x2c\x24\x48\x8b\xec\x90\xc3\xcc\xcc"), false },
		{ CODE("\x48\x89\x2c\x24\x48\x89\xdd\xe8\0\0\0\0\xc3"), false },
		{ CODE("\x48\x89\x2c\x24\x48\x89\xe5\x90\xe8\0\0\0\0\xc3"),
		  false },
		/* mov %rbx,(%rsp). */
		{ CODE("\x48\x89\x1c\x24\x48\x89\xe5\xe8\0\0\0\0\xc3"), false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		follow_code(rows[i].code, rows[i].len);
		assert_int_equal(f.n, 1);
		if ((f.s[0].base[WP_RBP] == WP_BASE_FP) != rows[i].is_callees)
			fail_msg("case %zu", i);
	}
}

/* In a file code is what the file has, and neither guess is made. */
static void code_of_a_file_is_its_own(void **state)
{
	static struct fake_elf elf;
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	uint8_t buf[4];

	(void)state;
	start(NULL);
	memcpy(elf.bytes + FAKE_TEXT, "\x49\x8b\x6d\x60\xc3", 5);
	memcpy(elf.bytes + FAKE_TEXT + 0x10,
	       "\x48\x89\x2c\x24\x48\x89\xe5\xe8\0\0\0\0\xc3", 13);
	assert_int_equal(fake_open(&elf, &image, FAKE_SIZE), 0);
	f.module.image = &image;
	follow(AVMA + FAKE_TEXT, 0, BUDGET);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.flow.home_reg, 0);
	assert_int_equal(f.s[0].base[WP_RBP], WP_BASE_NONE);
	follow(AVMA + FAKE_TEXT + 0x10, 0, BUDGET);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.s[0].base[WP_RBP], WP_BASE_SP);
	/* A module that holds more than its file has. */
	f.module.end_avma = AVMA + 2 * FAKE_SIZE;
	wp_flow_open(&f.flow, &f.modules, &f.mem, 0);
	assert_int_equal(wp_flow_code(&f.flow, AVMA + FAKE_DATA - 3, buf, 4),
			 4);
	assert_int_equal(wp_flow_code(&f.flow, AVMA + FAKE_SIZE - 3, buf, 4),
			 3);
	assert_int_equal(wp_flow_code(&f.flow, AVMA + FAKE_SIZE, buf, 1), 0);
	/* And one that holds less. */
	f.module.end_avma = AVMA + FAKE_TEXT + 3;
	wp_flow_open(&f.flow, &f.modules, &f.mem, 0);
	assert_int_equal(wp_flow_code(&f.flow, AVMA + FAKE_TEXT, buf, 4), 3);
	f.module.end_avma = AVMA + 2 * FAKE_SIZE;
	/* A window whose first part is no segment's. */
	f.module.start_avma = AVMA - 0x1000;
	f.module.bias = AVMA - 0x800;
	wp_flow_open(&f.flow, &f.modules, &f.mem, 0);
	assert_int_equal(wp_flow_code(&f.flow, AVMA - 0x800, buf, 4), 4);
	assert_memory_equal(buf, ELFMAG, 4);
	assert_int_equal(wp_flow_code(&f.flow, AVMA - 0x801, buf, 4), 0);
	fake_close(&elf, &image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_way_ends_where_its_frame_does),
		cmocka_unit_test(uses_of_the_frame_pointer_are_noted),
		cmocka_unit_test(the_first_prologue_is_noted),
		cmocka_unit_test(code_of_no_file_reads_its_frame_pointer_back),
		cmocka_unit_test(a_frame_may_be_made_for_who_is_called),
		cmocka_unit_test(code_of_a_file_is_its_own),
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
