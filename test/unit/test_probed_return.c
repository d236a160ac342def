/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  src/sample/probed_return.h: stacks that were made here, of calls that
 * this test knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../src/sample/probed_return.h"
#include "wallprof/heap_probe.h"

enum { TRAMPOLINE = 0x10000, NOW = 100, SLOT = 0x2000, CALLER = 0x5000 };

static struct wp_address_space space = { .uprobes_avma = TRAMPOLINE };
static struct wp_stack_copy copy;

/* The calls whose return address is known: the one at CALLER + N has its own at
 * known[N]. */
static uint64_t known[2];

uint64_t wp_heap_probe_find_return(const struct wp_heap_probe *probe,
				   const struct wp_heap_return *call)
{
	assert_ptr_equal(probe, space.probe);
	assert_int_equal(call->time_ns, NOW);
	assert_int_equal(call->pc, TRAMPOLINE);
	for (unsigned int i = 0; i < 2; i++)
		if (known[i] && call->sp == known[i])
			return CALLER + i;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	space.probe = (const void *)&space;
	copy = (struct wp_stack_copy){ .space = &space, .time_ns = NOW };
	known[0] = known[1] = 0;
	return 0;
}

static void each_word_that_is_known_is_put_back(void **state)
{
	uint64_t words[] = { TRAMPOLINE, 1, TRAMPOLINE, 2, TRAMPOLINE };

	(void)state;
	known[0] = SLOT;
	known[1] = SLOT + 32;
	assert_int_equal(
		wp_probed_return_restore(&copy, SLOT, words, sizeof(words)),
		WP_MEM_OK);
	assert_int_equal(words[0], CALLER);
	assert_int_equal(words[1], 1);
	/* It is no return address of a frame. */
	assert_int_equal(words[2], TRAMPOLINE);
	assert_int_equal(words[3], 2);
	assert_int_equal(words[4], CALLER + 1);
}

static void a_return_address_that_is_not_known_is_said(void **state)
{
	uint64_t words[] = { 1, TRAMPOLINE };

	(void)state;
	known[0] = SLOT;
	assert_int_equal(
		wp_probed_return_restore(&copy, SLOT, words, sizeof(words)),
		WP_MEM_PROBED);
	space.probe = NULL;
	assert_int_equal(
		wp_probed_return_restore(&copy, SLOT - 8, words, sizeof(words)),
		WP_MEM_PROBED);
}

static void words_that_are_not_aligned_are_none(void **state)
{
	uint64_t word = TRAMPOLINE;

	(void)state;
	known[0] = SLOT;
	assert_int_equal(
		wp_probed_return_restore(&copy, SLOT + 4, &word, sizeof(word)),
		WP_MEM_OK);
	assert_int_equal(word, TRAMPOLINE);
}

/* Where a sample's own call returns to. */
static void the_one_that_is_kept_is_left(void **state)
{
	uint64_t words[] = { TRAMPOLINE, TRAMPOLINE };

	(void)state;
	known[0] = SLOT;
	known[1] = SLOT + 8;
	copy.kept_avma = SLOT;
	assert_int_equal(
		wp_probed_return_restore(&copy, SLOT, words, sizeof(words)),
		WP_MEM_OK);
	assert_int_equal(words[0], TRAMPOLINE);
	assert_int_equal(words[1], CALLER + 1);
	assert_int_equal(
		wp_probed_return_restore(&copy, SLOT, words, sizeof(words[0])),
		WP_MEM_OK);
	assert_int_equal(words[0], TRAMPOLINE);
}

static void who_is_not_asked_for_is_left(void **state)
{
	(void)state;
	assert_true(wp_probed_return_may_be(&copy));
	copy.time_ns = 0;
	assert_false(wp_probed_return_may_be(&copy));
}

#if defined(__x86_64__)
enum { RCX = 2, CALL_OFF = 13 };

/* What is on top of the stack. */
static uint64_t top[3];

static enum wp_mem_result read_top(void *ctx, uint64_t avma, void *buf,
				   size_t len)
{
	(void)ctx;
	(void)avma;
	assert_int_equal(len, sizeof(top));
	memcpy(buf, top, len);
	return WP_MEM_OK;
}

struct wp_mem wp_stack_copy_mem(struct wp_stack_copy *of)
{
	return (struct wp_mem){ read_top, of };
}

/* Of a thread at OFF of the trampoline, with PUSHED bytes on the stack above SLOT + 8. */
static struct wp_regs left_from(uint64_t off, uint64_t pushed, uint64_t rcx)
{
	struct wp_regs regs = { 0 };

	wp_reg_set(&regs, WP_REG_PC, TRAMPOLINE + off);
	wp_reg_set(&regs, WP_REG_SP, SLOT + 8 - pushed);
	wp_reg_set(&regs, RCX, rcx);
	wp_probed_return_leave(&copy, &regs);
	return regs;
}

static void each_place_of_the_trampoline_returns_to_the_caller(void **state)
{
	static const struct {
		uint64_t off, pushed;
	} places[] = { { 0, 0 },   { 2, 16 },  { 4, 24 }, { 11, 24 },
		       { 13, 24 }, { 15, 16 }, { 16, 8 } };

	(void)state;
	known[0] = SLOT;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		struct wp_regs regs = left_from(places[i].off, places[i].pushed,
						TRAMPOLINE + CALL_OFF);

		assert_int_equal(regs.v[WP_REG_PC], CALLER);
		assert_int_equal(regs.v[WP_REG_SP], SLOT + 8);
	}
}

/* The kernel moves sp and pc there and back: where what the code has pushed is on top, and
 * in the registers, sp is below it. */
static void in_the_call_sp_is_where_the_stack_says(void **state)
{
	struct wp_regs regs;

	(void)state;
	known[0] = SLOT;
	known[1] = SLOT + 24;
	regs = left_from(CALL_OFF, 24, TRAMPOLINE + CALL_OFF);
	assert_int_equal(regs.v[WP_REG_PC], CALLER);
	top[0] = 0;
	top[1] = 9;
	regs = left_from(CALL_OFF, 24, 9);
	assert_int_equal(regs.v[WP_REG_PC], CALLER);
	assert_int_equal(regs.v[WP_REG_SP], SLOT + 8);
	top[1] = 8;
	regs = left_from(CALL_OFF, 0, 9);
	assert_int_equal(regs.v[WP_REG_PC], CALLER);
	assert_int_equal(regs.v[WP_REG_SP], SLOT + 8);
	top[1] = 9;
	regs = left_from(CALLER - TRAMPOLINE, 24, 9);
	assert_int_equal(regs.v[WP_REG_SP], SLOT + 8);
	assert_true(wp_reg_known(&regs, WP_REG_SP));
	/* In a session, which notes no calls, and on a stack of zeros. */
	known[0] = known[1] = 0;
	regs = left_from(CALLER - TRAMPOLINE, 24, 9);
	assert_int_equal(regs.v[WP_REG_PC], CALLER);
	assert_false(wp_reg_known(&regs, WP_REG_SP));
	top[1] = 0;
	regs = left_from(CALLER - TRAMPOLINE, 24, 0);
	assert_true(wp_reg_known(&regs, WP_REG_SP));
	known[0] = SLOT;
	known[1] = SLOT + 24;
	top[1] = 9;
	/* It has returned from that call, and is at another. */
	regs = left_from(CALLER - TRAMPOLINE + 1, 24, 9);
	assert_int_equal(regs.v[WP_REG_SP], SLOT - 16);
	top[1] = 8;
	regs = left_from(CALLER - TRAMPOLINE, 24, 9);
	assert_int_equal(regs.v[WP_REG_SP], SLOT - 16);
}

static void who_is_elsewhere_stays_there(void **state)
{
	(void)state;
	known[0] = SLOT;
	top[0] = 1;
	for (uint64_t off = 17; off < 200; off++)
		assert_int_equal(left_from(off, 0, 0).v[WP_REG_PC],
				 TRAMPOLINE + off);
	assert_int_equal(left_from((uint64_t)-1, 0, 0).v[WP_REG_PC],
			 TRAMPOLINE - 1);
	known[0] = 0;
	assert_int_equal(left_from(0, 0, 0).v[WP_REG_PC], TRAMPOLINE);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_word_that_is_known_is_put_back,
				       setup),
		cmocka_unit_test_setup(
			a_return_address_that_is_not_known_is_said, setup),
		cmocka_unit_test_setup(words_that_are_not_aligned_are_none,
				       setup),
		cmocka_unit_test_setup(the_one_that_is_kept_is_left, setup),
		cmocka_unit_test_setup(who_is_not_asked_for_is_left, setup),
#if defined(__x86_64__)
		cmocka_unit_test_setup(
			each_place_of_the_trampoline_returns_to_the_caller,
			setup),
		cmocka_unit_test_setup(in_the_call_sp_is_where_the_stack_says,
				       setup),
		cmocka_unit_test_setup(who_is_elsewhere_stays_there, setup),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
