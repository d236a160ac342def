/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  src/sample/site_cache.h, over a stack that is an array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "../../src/sample/site_cache.h"
#include "few_allocations.h"

enum { SP = 0x7000, DEPTH = 3 };

static uint64_t words[16];

static enum wp_mem_result read_words(void *ctx, uint64_t avma, void *buf,
				     size_t len)
{
	(void)ctx;
	if (avma < SP || avma + len > SP + sizeof(words))
		return WP_MEM_UNREADABLE;
	memcpy(buf, (char *)words + (avma - SP), len);
	return WP_MEM_OK;
}

static const struct wp_mem mem = { read_words, NULL };
static struct wp_frame frames[DEPTH];
static uint64_t cfa[DEPTH];
static struct wp_stack stack;

/* pc 0x100 called from 0x201 (slot 2) called from 0x301 (slot 5). */
static void make_stack(void)
{
	frames[0] = (struct wp_frame){ 0x100, 1, 0 };
	frames[1] = (struct wp_frame){ 0x201, 1, WP_FRAME_RETURN };
	frames[2] = (struct wp_frame){ 0x301, 1, WP_FRAME_RETURN };
	cfa[0] = SP + 3 * 8;
	cfa[1] = SP + 6 * 8;
	cfa[2] = 0;
	words[2] = 0x201;
	words[5] = 0x301;
	stack = (struct wp_stack){ frames, cfa, DEPTH, DEPTH, WP_END_ROOT };
}

static struct wp_frame out_frames[DEPTH];
static uint64_t out_cfa[DEPTH];

static bool find(const struct wp_site_cache *cache, uint64_t pc, uint64_t sp,
		 uint64_t generation, uint32_t cap, struct wp_stack *ret)
{
	*ret = (struct wp_stack){ out_frames, out_cfa, 0, cap, WP_END_EMPTY };
	return wp_site_cache_find(cache, pc, sp, generation, &mem, ret);
}

static void the_same_site_is_the_same_stack(void **state)
{
	struct wp_site_cache cache = { 0 };
	struct wp_stack got;

	(void)state;
	make_stack();
	assert_false(find(&cache, 0x100, SP, 1, DEPTH, &got));
	assert_int_equal(wp_site_cache_add(&cache, SP, 1, &stack), 0);
	assert_true(find(&cache, 0x100, SP, 1, DEPTH, &got));
	assert_int_equal(got.depth, DEPTH);
	assert_int_equal(got.end, WP_END_ROOT);
	assert_memory_equal(got.frames, frames, sizeof(frames));
	wp_site_cache_clear(&cache);
}

static void any_difference_is_another_stack(void **state)
{
	struct wp_site_cache cache = { 0 };
	struct wp_stack got;

	(void)state;
	make_stack();
	assert_int_equal(wp_site_cache_add(&cache, SP, 1, &stack), 0);
	assert_false(find(&cache, 0x101, SP, 1, DEPTH, &got));
	assert_false(find(&cache, 0x100, SP + 8, 1, DEPTH, &got));
	assert_false(find(&cache, 0x100, SP, 2, DEPTH, &got));
	assert_false(find(&cache, 0x100, SP, 1, DEPTH - 1, &got));
	words[5] = 0x302;
	assert_false(find(&cache, 0x100, SP, 1, DEPTH, &got));
	words[5] = 0x301;
	assert_true(find(&cache, 0x100, SP, 1, DEPTH, &got));
	wp_site_cache_clear(&cache);
}

static void a_slot_that_cannot_be_read_is_no_match(void **state)
{
	struct wp_site_cache cache = { 0 };
	struct wp_stack got;

	(void)state;
	make_stack();
	cfa[1] = SP + 4096;
	assert_int_equal(wp_site_cache_add(&cache, SP, 1, &stack), 0);
	assert_false(find(&cache, 0x100, SP, 1, DEPTH, &got));
	wp_site_cache_clear(&cache);
}

static void the_oldest_site_gives_way(void **state)
{
	struct wp_site_cache cache = { 0 };
	struct wp_stack got;

	(void)state;
	make_stack();
	for (uint64_t i = 0; i <= WP_SITES; i++) {
		frames[0].pc_avma = 0x100 + i;
		assert_int_equal(wp_site_cache_add(&cache, SP, 1, &stack), 0);
	}
	assert_false(find(&cache, 0x100, SP, 1, DEPTH, &got));
	for (uint64_t i = 1; i <= WP_SITES; i++)
		assert_true(find(&cache, 0x100 + i, SP, 1, DEPTH, &got));
	wp_site_cache_clear(&cache);
}

static void an_empty_stack_is_no_site(void **state)
{
	struct wp_site_cache cache = { 0 };
	struct wp_stack got;

	(void)state;
	make_stack();
	assert_int_equal(wp_site_cache_add(&cache, SP, 1, &stack), 0);
	stack.depth = 0;
	assert_int_equal(wp_site_cache_add(&cache, SP, 1, &stack), 0);
	assert_int_equal(cache.next, 1);
	assert_true(find(&cache, 0x100, SP, 1, DEPTH, &got));
	wp_site_cache_clear(&cache);
}

#ifdef CAN_FAIL
static void a_site_without_memory_is_an_error(void **state)
{
	struct wp_site_cache cache = { 0 };
	struct wp_stack got;
	long had = live;

	(void)state;
	make_stack();
	for (long n = 0; n < 2; n++) {
		allocations_left = n;
		assert_int_equal(wp_site_cache_add(&cache, SP, 1, &stack),
				 -ENOMEM);
		allocations_left = -1;
		assert_false(find(&cache, 0x100, SP, 1, DEPTH, &got));
	}
	for (uint64_t i = 0; i < WP_SITES; i++)
		assert_int_equal(wp_site_cache_add(&cache, SP + i, 1, &stack),
				 0);
	assert_true(find(&cache, 0x100, SP, 1, DEPTH, &got));
	wp_site_cache_clear(&cache);
	assert_int_equal(live, had);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_site_is_the_same_stack),
		cmocka_unit_test(any_difference_is_another_stack),
		cmocka_unit_test(a_slot_that_cannot_be_read_is_no_match),
		cmocka_unit_test(the_oldest_site_gives_way),
		cmocka_unit_test(an_empty_stack_is_no_site),
#ifdef CAN_FAIL
		cmocka_unit_test(a_site_without_memory_is_an_error),
#endif
	};

	/* Elsewhere a site never matches: see same_return_addresses. */
	if (WP_REG_PC != 16)
		return 0;
	return cmocka_run_group_tests_name("site_cache", tests, NULL, NULL);
}
