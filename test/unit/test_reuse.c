/* SPDX-License-Identifier: Apache-2.0 */
/* test_reuse.c - when the walks of a thread are remembered.
 *
 * Layer: sample.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "../../src/sample/reuse.h"

#if defined(__x86_64__)

enum {
	FRAMES_MAX = 2000,
	/* A call, at the start of the code. */
	CODE_SIZE = 64,
};

#define CODE UINT64_C(0x400000)
#define STACK UINT64_C(0x7ffc00000000)

/* Code without a file: frame pointers are followed, which is a guess, so
 * nothing is ever taken over. */
struct fixture {
	uint8_t code[CODE_SIZE];
	/* Frame records. */
	uint64_t stack[2 * FRAMES_MAX + 2];
	struct wp_unwind_module module;
	struct wp_unwind_modules modules;
	struct wp_mem mem;
	struct wp_regs regs;
	struct wp_unwinder *unwinder;
	struct wp_reuse reuse;
	struct wp_reuse_room room;
	struct wp_frame frames[FRAMES_MAX + 1];
	uint64_t cfa_avma[FRAMES_MAX + 1];
};

static struct fixture fix;

static int read_mem(void *ctx, uint64_t avma, void *buf, size_t len)
{
	const struct fixture *f = ctx;

	if (avma - CODE <= sizeof(f->code) - len && avma >= CODE)
		memcpy(buf, f->code + (avma - CODE), len);
	else if (avma >= STACK && avma - STACK <= sizeof(f->stack) - len)
		memcpy(buf, (const uint8_t *)f->stack + (avma - STACK), len);
	else
		return -EFAULT;
	return 0;
}

/* DEPTH frames, each a frame record. */
static void lay_out(struct fixture *f, unsigned int depth)
{
	memset(f->stack, 0, sizeof(f->stack));
	for (size_t i = 0; i + 1 < depth; i++) {
		f->stack[2 * i] = STACK + 16 * (i + 1);
		f->stack[2 * i + 1] = CODE + 0x20;
	}
	f->regs = (struct wp_regs){ .known = 0 };
	wp_reg_set(&f->regs, WP_REG_PC, CODE + 0x10);
	wp_reg_set(&f->regs, WP_REG_SP, STACK);
	wp_reg_set(&f->regs, WP_REG_FP, STACK);
}

static int setup(void **state)
{
	struct fixture *f = &fix;

	(void)state;
	memset(f, 0, sizeof(*f));
	memset(f->code, 0x90, sizeof(f->code));
	f->code[0x20 - 5] = 0xe8;
	f->module = (struct wp_unwind_module){ .start_avma = CODE,
					       .end_avma = CODE + CODE_SIZE,
					       .bias = CODE,
					       .mapping = 1 };
	f->modules = (struct wp_unwind_modules){ &f->module, 1, 1 };
	f->mem = (struct wp_mem){ read_mem, f };
	return wp_unwinder_new(&f->unwinder, WP_UNWIND_ROWS);
}

static int teardown(void **state)
{
	(void)state;
	wp_reuse_clear(&fix.reuse, &fix.room);
	assert_int_equal(fix.room.used, 0);
	wp_unwinder_free(fix.unwinder);
	return 0;
}

static uint32_t walk(struct fixture *f)
{
	struct wp_stack stack = { .frames = f->frames,
				  .cfa_avma = f->cfa_avma,
				  .cap = FRAMES_MAX + 1 };

	wp_reuse_walk(&f->reuse, &f->room, f->unwinder, &f->modules, &f->regs,
		      &f->mem, &stack);
	return stack.depth;
}

static void shallow_walks_are_not_remembered(void **state)
{
	(void)state;
	lay_out(&fix, 63);
	for (int i = 0; i < 100; i++)
		assert_int_equal(walk(&fix), 63);
	assert_null(fix.reuse.tail);
	assert_int_equal(fix.room.used, 0);
}

static void what_does_not_pay_is_given_up_for_longer_each_time(void **state)
{
	unsigned int with = 0, ends = 0, last = 0, gap = 0;

	(void)state;
	lay_out(&fix, 200);
	for (unsigned int i = 0; i < 4000; i++) {
		bool had = fix.reuse.tail;

		assert_int_equal(walk(&fix), 200);
		with += had;
		if (!had || fix.reuse.tail)
			continue;
		assert_true(!ends || i - last > gap);
		gap = ends ? i - last : 0;
		last = i;
		ends++;
	}
	assert_in_range(ends, 3, 5);
	assert_true(with < 100);
}

static void room_is_made_for_deeper_walks_up_to_a_limit(void **state)
{
	struct wp_reuse_room full = { (size_t)16 << 20 };
	struct wp_reuse other = { NULL, 0, 0, 0, 0, 0 };
	struct wp_stack stack = { .frames = fix.frames,
				  .cfa_avma = fix.cfa_avma,
				  .cap = FRAMES_MAX + 1 };
	size_t used;

	(void)state;
	lay_out(&fix, 100);
	walk(&fix);
	assert_non_null(fix.reuse.tail);
	used = fix.room.used;
	assert_true(used >= wp_tail_size(100));
	lay_out(&fix, 1000);
	walk(&fix);
	assert_true(wp_tail_depth(fix.reuse.tail) >= 1000);
	assert_int_equal(fix.room.used,
			 wp_tail_size(wp_tail_depth(fix.reuse.tail)));
	wp_reuse_walk(&other, &full, fix.unwinder, &fix.modules, &fix.regs,
		      &fix.mem, &stack);
	assert_int_equal(stack.depth, 1000);
	assert_null(other.tail);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(shallow_walks_are_not_remembered),
		TEST(what_does_not_pay_is_given_up_for_longer_each_time),
		TEST(room_is_made_for_deeper_walks_up_to_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

/* The code above is of x86-64. */
int main(void)
{
	return 0;
}

#endif
