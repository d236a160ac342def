/* SPDX-License-Identifier: Apache-2.0 */
/* test_flow.c - the ways through code that is an array.
 *
 * Layer: unwind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "flow_maker.h"

#if defined(__x86_64__)

static void a_way_ends_at_a_return(void **state)
{
	(void)state;
	/* push %rbx; ret.  ret $8. */
	follow_code(CODE("\x53\xc3"));
	assert_int_equal(f.n, 1);
	assert_int_equal(f.stop[0], WP_FLOW_RETURNS);
	assert_int_equal(f.s[0].base[WP_RSP], WP_BASE_SP);
	assert_int_equal(f.s[0].off[WP_RSP], -8);
	assert_int_equal(f.flow.budget, BUDGET - 2);
	follow_code(CODE("\xc2\x08\0"));
	assert_int_equal(f.n, 1);
	assert_int_equal(f.stop[0], WP_FLOW_RETURNS);
	/* With a goal a return is none, and the goal is not followed. */
	follow_to(CODE("\xc3\x90"), 1);
	assert_int_equal(f.n, 0);
	follow_to(CODE("\x53\xcc"), 1);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.stop[0], WP_FLOW_AT_GOAL);
	assert_int_equal(f.s[0].pc_avma, HERE + 1);
	assert_int_equal(f.s[0].off[WP_RSP], -8);
	assert_int_equal(f.flow.budget, BUDGET - 1);
}

static void some_instructions_end_a_way_without_a_word(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		bool ends;
	} rows[] = {
		/* int3; int $0x80; hlt; enter; ud2; ud1; ud0. */
		{ CODE("\xcc\xc3"), true },
		{ CODE("\xcd\x80\xc3"), true },
		{ CODE("\xf4\xc3"), true },
		{ CODE("\xc8\0\0\0\xc3"), true },
		{ CODE("\x0f\x0b\xc3"), true },
		{ CODE("\x0f\xb9\xc0\xc3"), true },
		{ CODE("\x0f\xff\xc0\xc3"), true },
		/* Far call and jump by pointer. */
		{ CODE("\xff\x18\xc3"), true },
		{ CODE("\xff\x28\xc3"), true },
		/* inc (%rax); dec (%rax); push (%rax); syscall; cmove; bswap. */
		{ CODE("\xff\x00\xc3"), false },
		{ CODE("\xff\x08\xc3"), false },
		{ CODE("\xff\x30\xc3"), false },
		{ CODE("\x0f\x05\xc3"), false },
		{ CODE("\x0f\x44\xc3\xc3"), false },
		{ CODE("\x0f\xc8\xc3"), false },
		/* setne %bl; pshufb; palignr; vzeroupper. */
		{ CODE("\x0f\x95\xc3\xc3"), false },
		{ CODE("\x66\x0f\x38\x00\xc1\xc3"), false },
		{ CODE("\x66\x0f\x3a\x0f\xdb\x08\xc3"), false },
		{ CODE("\xc5\xf8\x77\xc3"), false },
		/* mov $1,%al; test; movsb. */
		{ CODE("\xb0\x01\xc3"), false },
		{ CODE("\x84\xc0\xc3"), false },
		{ CODE("\xa4\xc3"), false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		follow_code(rows[i].code, rows[i].len);
		if (f.n != (rows[i].ends ? 0 : 1))
			fail_msg("case %zu: %u ways", i, f.n);
	}
}

static void branches_go_both_ways(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		/* rcx is counted in. */
		bool counts;
	} rows[] = {
		/* jo, jg; jo, jg far; loopne, loope, loop; jrcxz. */
		{ CODE("\x70\x01\xc3\x53\xc3"), false },
		{ CODE("\x7f\x01\xc3\x53\xc3"), false },
		{ CODE("\x0f\x80\x01\0\0\0\xc3\x53\xc3"), false },
		{ CODE("\x0f\x8f\x01\0\0\0\xc3\x53\xc3"), false },
		{ CODE("\xe0\x01\xc3\x53\xc3"), true },
		{ CODE("\xe1\x01\xc3\x53\xc3"), true },
		{ CODE("\xe2\x01\xc3\x53\xc3"), true },
		{ CODE("\xe3\x01\xc3\x53\xc3"), false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		follow_code(rows[i].code, rows[i].len);
		assert_int_equal(f.n, 2);
		assert_int_equal(f.s[0].off[WP_RSP], 0);
		assert_int_equal(f.s[1].off[WP_RSP], -8);
		for (int n = 0; n < 2; n++)
			assert_int_equal(f.s[n].base[WP_RCX],
					 rows[i].counts ? WP_BASE_NONE :
							  WP_BASE_REG + WP_RCX);
	}
}

static void jumps_are_followed_where_the_target_is_known(void **state)
{
	uint64_t slot = HERE + 10;

	(void)state;
	/* jmp, short and far, over int3 and back. */
	follow_code(CODE("\xeb\x01\xcc\xe9\x01\0\0\0\xcc\xc3"));
	assert_int_equal(f.n, 1);
	assert_int_equal(f.s[0].pc_avma, HERE + 10);
	start(NULL);
	put(AT - 3, CODE("\xc3\xcc\xcc\xeb\xfb"));
	follow(HERE, 0, BUDGET);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.s[0].pc_avma, HERE - 2);
	/* lea 3(%rip),%rax; jmp *%rax. */
	follow_code(CODE("\x48\x8d\x05\x03\0\0\0\xff\xe0\xcc\xc3"));
	assert_int_equal(f.n, 1);
	assert_int_equal(f.stop[0], WP_FLOW_RETURNS);
	/* jmp *8(%rip), at most READS times. */
	for (unsigned int n = 0; n < 2; n++) {
		start(NULL);
		put(AT, CODE("\xff\x25\x08\0\0\0\xc3"));
		memcpy(f.memory + AT + 14, &(uint64_t){ HERE + 6 }, 8);
		wp_flow_open(&f.flow, &f.modules, &f.mem, READS);
		follow(HERE, 0, BUDGET);
		assert_int_equal(f.n, 1);
		assert_int_equal(f.stop[0], WP_FLOW_RETURNS);
		assert_int_equal(f.flow.reads, READS - 1);
	}
	wp_flow_open(&f.flow, &f.modules, &f.mem, 1);
	assert_true(wp_flow_slot(&f.flow, HERE + 14, &slot));
	assert_int_equal(slot, HERE + 6);
	assert_false(wp_flow_slot(&f.flow, HERE + 14, &slot));
	wp_flow_open(&f.flow, &f.modules, &f.mem, 1);
	assert_false(wp_flow_slot(&f.flow, AVMA - 8, &slot));
}

static void other_jumps_are_reported(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		enum wp_flow_stop stop;
	} rows[] = {
		/* jmp *%rax; *(%rax); *0(,%rax,8). */
		{ CODE("\xff\xe0"), WP_FLOW_LOST },
		{ CODE("\xff\x20"), WP_FLOW_LOST },
		{ CODE("\xff\x24\xc5\0\0\0\0"), WP_FLOW_LOST },
		/* A slot that cannot be read. */
		{ CODE("\xff\x24\x25\0\0\0\0"), WP_FLOW_LOST },
		/* By rbx, which is not known, at what a slot's address is. */
		{ CODE("\xff\xa3\x00\x10\x40\x00"), WP_FLOW_LOST },
		/* pop %rax; jmp *%rax.  mov 8(%rbp),%rax; jmp *%rax. */
		{ CODE("\x58\xff\xe0"), WP_FLOW_JUMPS_BACK },
		{ CODE("\x48\x8b\x45\x08\xff\xe0"), WP_FLOW_JUMPS_BACK },
		/* pop %rax; jmp *(%rax). */
		{ CODE("\x58\xff\x20"), WP_FLOW_LOST },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		follow_code(rows[i].code, rows[i].len);
		assert_int_equal(f.n, 1);
		assert_int_equal(f.stop[0], rows[i].stop);
		follow_to(rows[i].code, rows[i].len, 100);
		assert_int_equal(f.n, 1);
		assert_int_equal(f.stop[0], WP_FLOW_LOST);
	}
}

static void behind_a_call_kept_registers_are_known(void **state)
{
	static const char *const calls[] = { "\xe8\0\0\0\0\xc3",
					     "\xff\x15\0\0\0\0\xc3" };
	static const size_t lens[] = { 6, 7 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		follow_code(calls[i], lens[i]);
		assert_int_equal(f.n, 1);
		assert_true(f.s[0].past_call);
		for (unsigned int r = 0; r < WP_NGPRS; r++) {
			bool kept = r == WP_RBX || r == WP_RSP || r == WP_RBP ||
				    r >= WP_R12;

			assert_int_equal(f.s[0].base[r],
					 kept ? WP_BASE_REG + r : WP_BASE_NONE);
		}
	}
	follow_code(CODE("\xc3"));
	assert_false(f.s[0].past_call);
}

static void a_flow_ends(void **state)
{
	uint8_t *p;

	(void)state;
	/* 1: jmp 1b.  1: nop; je 1b; ret: one way. */
	follow_code(CODE("\xeb\xfe"));
	assert_int_equal(f.n, 0);
	assert_int_equal(f.flow.budget, BUDGET - 1);
	follow_code(CODE("\x90\x74\xfd\xc3"));
	assert_int_equal(f.n, 1);
	assert_int_equal(f.flow.budget, BUDGET - 3);
	/* With another rsp it is another way: 1: push %rax; je 1b; ret. */
	start(NULL);
	put(AT, CODE("\x50\x74\xfd\xc3"));
	follow(HERE, 0, 30);
	assert_int_equal(f.n, 10);
	assert_int_equal(f.flow.budget, 0);
	/* As many instructions as it may: nop; nop; ret. */
	for (unsigned int budget = 0; budget < 5; budget++) {
		start(NULL);
		put(AT, CODE("\x90\x90\xc3"));
		follow(HERE, 0, budget);
		assert_int_equal(f.n, budget >= 3);
		assert_int_equal(f.flow.budget, budget >= 3 ? budget - 3 : 0);
	}
	/* As many branches as there is room for: je to a ret of its own. */
	start(NULL);
	p = f.memory;
	for (unsigned int n = 0; n < 60; n++) {
		memcpy(p + 2 * n, "\x74\x77", 2);
		p[2 * n + 121] = 0xc3;
	}
	p[120] = 0xc3;
	follow(AVMA, 0, BUDGET);
	assert_int_equal(f.n, 1 + WP_FLOW_PENDING);
	/* What was visited at a stamp that comes again is not by now. */
	follow_code(CODE("\x90\xc3"));
	assert_int_equal(f.flow.stamp, 1);
	f.flow.stamp = UINT32_MAX;
	follow(HERE, 0, BUDGET);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.flow.stamp, 1);
}

/* Behind a call that never returns. */
static void a_way_ends_where_another_function_begins(void **state)
{
	static const struct {
		const char *code;
		size_t len, goal;
		unsigned int ways;
	} rows[] = {
		/* push %rbx; call; jmp to the start: never at the goal but by the
		 * branch, with one frame. */
		{ CODE("\x53\x74\x07\xe8\0\0\0\0\xeb\xf6\x90"), 10, 1 },
		/* The same with nothing on the stack: a loop. */
		{ CODE("\x53\x5b\x74\x07\xe8\0\0\0\0\xeb\xf5\x90"), 11, 1 },
		/* push %rbp; mov %rsp,%rbp; call; the same again, in either form. */
		{ CODE("\x55\x48\x89\xe5\xe8\0\0\0\0\x55\x48\x89\xe5\x90"), 13,
		  0 },
		{ CODE("\x55\x48\x8b\xec\xe8\0\0\0\0\x55\x48\x8b\xec\x90"), 13,
		  0 },
		/* With no call before; rbp not pushed; not all of rbp; to rbx; no
		 * frame pointer yet: one function's. */
		{ CODE("\x55\x48\x89\xe5\x55\x48\x89\xe5\x90"), 8, 1 },
		{ CODE("\x55\x48\x89\xe5\xe8\0\0\0\0\x53\x48\x89\xe5\x90"), 13,
		  1 },
		{ CODE("\x55\x48\x89\xe5\xe8\0\0\0\0\x55\x89\xe5\x90"), 12, 1 },
		{ CODE("\x55\x48\x89\xe5\xe8\0\0\0\0\x55\x48\x89\xe3\x90"), 13,
		  1 },
		{ CODE("\xe8\0\0\0\0\x55\x48\x89\xe5\x90"), 9, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		follow_to(rows[i].code, rows[i].len, rows[i].goal);
		if (f.n != rows[i].ways)
			fail_msg("case %zu: %u ways", i, f.n);
	}
}

static void code_ends_where_its_module_does(void **state)
{
	uint8_t buf[16];

	(void)state;
	/* Over the edge of a window: 19 nops before it, one behind, ret. */
	start(NULL);
	memset(f.memory + AT, 0x90, 21);
	f.memory[AT + 21] = 0xc3;
	follow(HERE, 0, BUDGET);
	assert_int_equal(f.n, 1);
	/* An instruction that lies across it: mov $1,%eax. */
	start(NULL);
	put(AT + 18, CODE("\xb8\1\0\0\0\xc3"));
	follow(HERE + 18, 0, BUDGET);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.s[0].off[WP_RAX], 1);
	/* Cut off, the ret is not there any more; one byte longer it is. */
	for (unsigned int n = 0; n < 2; n++) {
		f.module.end_avma = HERE + 23 + n;
		follow(HERE + 18, 0, BUDGET);
		assert_int_equal(f.n, n);
		assert_int_equal(f.flow.budget, BUDGET - 2);
	}
	assert_int_equal(wp_flow_code(&f.flow, HERE + 20, buf, 16), 4);
	assert_memory_equal(buf, "\0\0\0\xc3", 4);
	assert_int_equal(wp_flow_code(&f.flow, HERE + 24, buf, 16), 0);
	assert_int_equal(wp_flow_code(&f.flow, AVMA - 1, buf, 16), 0);
	/* A module that begins within a window. */
	f.module.start_avma = HERE + 18;
	assert_int_equal(wp_flow_code(&f.flow, HERE + 18, buf, 1), 1);
	assert_int_equal(buf[0], 0xb8);
	assert_int_equal(wp_flow_code(&f.flow, HERE + 17, buf, 1), 0);
	/* Memory that cannot be read: of a window all, or nothing. */
	f.module.start_avma = AVMA - 1;
	f.module.end_avma = AVMA + 16;
	wp_flow_open(&f.flow, &f.modules, &f.mem, 0);
	assert_int_equal(wp_flow_code(&f.flow, AVMA - 1, buf, 16), 0);
	assert_int_equal(wp_flow_code(&f.flow, AVMA, buf, 1), 1);
}

static void put_jump(size_t at, size_t to)
{
	int32_t off = (int32_t)to - (int32_t)at - 5;

	f.memory[at] = 0xe9;
	memcpy(f.memory + at + 1, &off, sizeof(off));
}

/* Each jump leads to the other window, which is read anew. */
static void code_that_leaps_about_is_left(void **state)
{
	enum { JUMPS = 800, LONG = 4000 };

	(void)state;
	start(NULL);
	for (size_t i = 0; i < JUMPS; i++) {
		put_jump(5 * i, WP_FLOW_WINDOW + 5 * i);
		put_jump(WP_FLOW_WINDOW + 5 * i, 5 * (i + 1));
	}
	put(5 * JUMPS, CODE("\xc3"));
	follow(AVMA, 0, LONG);
	assert_int_equal(f.n, 0);
	assert_int_equal(f.flow.windows, 0);
	assert_in_range(LONG - f.flow.budget, 1024, 1026);
	/* A few are nothing. */
	put(500, CODE("\xc3"));
	follow(AVMA, 0, LONG);
	assert_int_equal(f.n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_way_ends_at_a_return),
		cmocka_unit_test(some_instructions_end_a_way_without_a_word),
		cmocka_unit_test(branches_go_both_ways),
		cmocka_unit_test(jumps_are_followed_where_the_target_is_known),
		cmocka_unit_test(other_jumps_are_reported),
		cmocka_unit_test(behind_a_call_kept_registers_are_known),
		cmocka_unit_test(a_flow_ends),
		cmocka_unit_test(a_way_ends_where_another_function_begins),
		cmocka_unit_test(code_ends_where_its_module_does),
		cmocka_unit_test(code_that_leaps_about_is_left),
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
