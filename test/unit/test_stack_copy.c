/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  stack_copy.h on this process: what it copies is memory that
 * the test has filled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../src/sample/stack_copy.h"
#include "wallprof/pages.h"

enum {
	SHORT = WP_STACK_COPY_SHORT,
	BIG = 4 * WP_COPY_MAX,
	FILL = 0xa5,
	KEPT = 0x5a
};
#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

struct own {
	struct wp_process process;
	struct wp_stack_copy copy;
	/* BIG bytes that begin where sp is. */
	uint8_t *stack;
	/* Its map has the regions that the test says. */
	struct wp_address_space space;
};

static void open_own(struct own *own)
{
	own->process = (struct wp_process)WP_PROCESS_INIT;
	assert_int_equal(wp_process_open(&own->process, getpid(), NULL), 0);
	own->space = (struct wp_address_space)WP_ADDRESS_SPACE_INIT;
	own->space.process = &own->process;
	assert_int_equal(wp_stack_copy_init(&own->copy), 0);
	own->stack = mmap(NULL, BIG + PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(own->stack, MAP_FAILED);
	memset(own->stack, FILL, BIG + PAGE);
	own->stack += PAGE;
	own->space.maps = (struct wp_maps)WP_MAPS_INIT;
}

static void close_own(struct own *own)
{
	munmap(own->stack - PAGE, BIG + PAGE);
	wp_stack_copy_clear(&own->copy);
	wp_maps_clear(&own->space.maps);
	wp_process_clear(&own->process);
}

static uint64_t avma_of(const void *p)
{
	return (uintptr_t)p;
}

/* The map is the stack's region, which ends SIZE bytes above sp. */
static void set_region(struct own *own, size_t size)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "%lx-%lx rw-p 00000000 00:00 0\n",
			 (unsigned long)avma_of(own->stack),
			 (unsigned long)avma_of(own->stack + size));

	assert_int_equal(wp_maps_parse(&own->space.maps, text, (size_t)n), 0);
}

static void no_more_is_copied_than_there_is_room_for(void **state)
{
	struct own own;
	uint8_t *behind;

	(void)state;
	open_own(&own);
	/* Another's page may be behind the buffer that it has. */
	wp_pages_free(own.copy.buf, WP_COPY_MAX);
	own.copy.buf = wp_pages_new(WP_COPY_MAX + PAGE);
	assert_non_null(own.copy.buf);
	behind = own.copy.buf + WP_COPY_MAX;
	memset(behind, KEPT, PAGE);
	set_region(&own, BIG);
	assert_int_equal(wp_stack_copy_take(&own.copy, &own.space,
					    avma_of(own.stack),
					    2 * WP_COPY_MAX),
			 WP_COPY_MAX);
	assert_int_equal(own.copy.len, WP_COPY_MAX);
	for (size_t i = 0; i < PAGE; i++)
		assert_int_equal(behind[i], KEPT);
	wp_stack_copy_set(&own.copy, &own.space, avma_of(own.stack), own.stack,
			  BIG);
	assert_int_equal(own.copy.len, WP_COPY_MAX);
	for (size_t i = 0; i < PAGE; i++)
		assert_int_equal(behind[i], KEPT);
	wp_pages_free(behind, PAGE);
	close_own(&own);
}

/* What was copied before is no longer than the region, and is read on as any copy. */
static void a_copy_made_ahead_is_a_short_copy(void **state)
{
	struct own own;
	struct wp_mem mem;
	uint8_t data[SHORT];
	uint64_t sp, word = 0;

	(void)state;
	open_own(&own);
	memset(data, KEPT, sizeof(data));
	set_region(&own, BIG);
	sp = avma_of(own.stack) + WP_RED_ZONE;
	wp_stack_copy_use(&own.copy, &own.space, sp, data, sizeof(data));
	assert_int_equal(own.copy.start_avma, avma_of(own.stack));
	assert_int_equal(own.copy.len, SHORT);
	mem = wp_stack_copy_mem(&own.copy);
	assert_int_equal(mem.read(mem.ctx, avma_of(own.stack), &word, 8), 0);
	assert_int_equal(word, UINT64_C(0x5a5a5a5a5a5a5a5a));
	assert_int_equal(
		mem.read(mem.ctx, avma_of(own.stack) + SHORT, &word, 8),
		WP_MEM_BEYOND_COPY);
	own.copy.live = true;
	assert_int_equal(
		mem.read(mem.ctx, avma_of(own.stack) + SHORT, &word, 8), 0);
	assert_int_equal(word, UINT64_C(0xa5a5a5a5a5a5a5a5));
	set_region(&own, 1024);
	wp_stack_copy_use(&own.copy, &own.space, sp, data, sizeof(data));
	assert_int_equal(own.copy.len, 1024);
	close_own(&own);
}

/* A second page is read when it is wanted. */
static void a_short_copy_ends_with_its_page(void **state)
{
	struct own own;
	struct wp_mem mem;
	uint64_t sp, end, word = 0;

	(void)state;
	open_own(&own);
	set_region(&own, BIG);
	end = avma_of(own.stack) + PAGE;
	sp = end - 3096 + WP_RED_ZONE;
	assert_int_equal(wp_stack_copy_take(&own.copy, &own.space, sp, SHORT),
			 3096);
	own.copy.live = true;
	mem = wp_stack_copy_mem(&own.copy);
	assert_int_equal(mem.read(mem.ctx, end, &word, 8), 0);
	assert_int_equal(word, UINT64_C(0xa5a5a5a5a5a5a5a5));
	assert_true(own.copy.len > SHORT);
	/* There would be little of it; more is asked for; it ends later. */
	sp = end - 100 + WP_RED_ZONE;
	assert_int_equal(wp_stack_copy_take(&own.copy, &own.space, sp, SHORT),
			 SHORT);
	assert_int_equal(
		wp_stack_copy_take(&own.copy, &own.space, sp, 2 * SHORT),
		2 * SHORT);
	sp = avma_of(own.stack) + WP_RED_ZONE;
	assert_int_equal(wp_stack_copy_take(&own.copy, &own.space, sp, SHORT),
			 SHORT);
	close_own(&own);
}

/* Bytes that could be read from AVMA on, frame by frame, of LEN. */
static size_t read_up(struct own *own, uint64_t avma, size_t len)
{
	struct wp_mem mem = wp_stack_copy_mem(&own->copy);
	uint64_t word;
	size_t at = 0;

	while (at < len && mem.read(mem.ctx, avma + at, &word, 8) == 0)
		at += 8;
	return at;
}

/* The frames above a sample's end are as they were while the end is. */
static void a_sample_is_read_on_while_its_end_is_as_it_was(void **state)
{
	enum { LEN = 8192, FRAME = 2048 };
	struct own own;
	struct wp_mem mem;
	uint64_t above, word = 0;

	(void)state;
	open_own(&own);
	set_region(&own, BIG);
	above = avma_of(own.stack + LEN);
	wp_stack_copy_set(&own.copy, &own.space, avma_of(own.stack), own.stack,
			  LEN);
	mem = wp_stack_copy_mem(&own.copy);
	/* A longer copy could be had. */
	assert_int_equal(mem.read(mem.ctx, above, &word, 8),
			 WP_MEM_BEYOND_COPY);
	assert_false(own.copy.has_left);
	own.copy.may_follow = true;
	assert_int_equal(mem.read(mem.ctx, above - FRAME, &word, 8), 0);
	/* What is below the end changes all the time. */
	memset(own.stack, KEPT, LEN - FRAME);
	assert_int_equal(mem.read(mem.ctx, above, &word, 8), 0);
	assert_int_equal(word, UINT64_C(0xa5a5a5a5a5a5a5a5));
	assert_int_equal(read_up(&own, above, WP_FOLLOW_MAX),
			 WP_FOLLOW_MAX - LEN);
	assert_false(own.copy.has_left);
	close_own(&own);
}

/* The frame that the walk found last in it is of the end, however long it is.
 */
static void a_sample_is_not_read_on_where_its_end_was_left(void **state)
{
	enum { LEN = 32768, FRAME = 8192 };
	struct own own;
	struct wp_mem mem;
	uint64_t above, word = 0;

	(void)state;
	open_own(&own);
	set_region(&own, BIG);
	above = avma_of(own.stack + LEN);
	wp_stack_copy_set(&own.copy, &own.space, avma_of(own.stack), own.stack,
			  LEN);
	own.copy.may_follow = true;
	mem = wp_stack_copy_mem(&own.copy);
	assert_int_equal(mem.read(mem.ctx, above - FRAME - 8, &word, 8), 0);
	own.stack[LEN - FRAME] = KEPT;
	assert_int_equal(mem.read(mem.ctx, above, &word, 8),
			 WP_MEM_BEYOND_COPY);
	assert_true(own.copy.has_left);
	/* Not even where it was left, in the time between. */
	own.stack[LEN - FRAME] = FILL;
	assert_int_equal(mem.read(mem.ctx, above, &word, 8),
			 WP_MEM_BEYOND_COPY);
	close_own(&own);
}

/* A goroutine's stack lies above the runtime's own, which calls nothing of it.
 */
static void a_neighbour_is_not_read_as_what_follows(void **state)
{
	enum { LEN = 32768 };
	struct own own;
	struct wp_mem mem;
	uint64_t above, word = 0;

	(void)state;
	open_own(&own);
	set_region(&own, BIG);
	above = avma_of(own.stack + LEN);
	wp_stack_copy_set(&own.copy, &own.space, avma_of(own.stack), own.stack,
			  LEN);
	own.copy.may_follow = true;
	mem = wp_stack_copy_mem(&own.copy);
	assert_int_equal(
		mem.read(mem.ctx, above - WP_FOLLOW_STEP - 8, &word, 8), 0);
	assert_int_equal(mem.read(mem.ctx, above, &word, 8),
			 WP_MEM_BEYOND_COPY);
	assert_int_equal(mem.read(mem.ctx, above - 8, &word, 8), 0);
	assert_int_equal(mem.read(mem.ctx, above, &word, 8), 0);
	/* Nor in what has been read of it already. */
	assert_int_equal(
		mem.read(mem.ctx, above + WP_FOLLOW_STEP + 8, &word, 8),
		WP_MEM_BEYOND_COPY);
	assert_false(own.copy.has_left);
	assert_int_equal(mem.read(mem.ctx, above + WP_FOLLOW_STEP, &word, 8),
			 0);
	close_own(&own);
}

/* A copy of 1 KiB is read past its end: only of a thread that stands still. */
static void what_is_not_copied_is_read_of_who_stands_still(void **state)
{
	struct own own;
	struct wp_mem mem;
	uint64_t far, word = 0;

	(void)state;
	open_own(&own);
	set_region(&own, BIG);
	far = avma_of(own.stack + WP_COPY_MAX / 2);
	assert_int_equal(wp_stack_copy_take(&own.copy, &own.space,
					    avma_of(own.stack), 1024),
			 1024);
	mem = wp_stack_copy_mem(&own.copy);
	assert_int_equal(mem.read(mem.ctx, avma_of(own.stack), &word, 8), 0);
	assert_int_equal(word, UINT64_C(0xa5a5a5a5a5a5a5a5));
	assert_false(own.copy.beyond);
	assert_int_equal(mem.read(mem.ctx, far, &word, 8), WP_MEM_BEYOND_COPY);
	assert_true(own.copy.beyond);
	own.copy.live = true;
	memset(own.stack + WP_COPY_MAX / 2, KEPT, 8);
	assert_int_equal(mem.read(mem.ctx, far, &word, 8), 0);
	assert_int_equal(word, UINT64_C(0x5a5a5a5a5a5a5a5a));
	assert_true(own.copy.len <= WP_COPY_MAX);
	assert_false(own.copy.elsewhere);
	/* Past what a copy can hold. */
	assert_int_equal(
		mem.read(mem.ctx, avma_of(own.stack + BIG - 8), &word, 8), 0);
	assert_true(own.copy.elsewhere);
	close_own(&own);
}

/* Below a copy is what has been over since it was made. */
static void what_is_below_a_copy_is_read_of_who_stands_still(void **state)
{
	struct own own;
	struct wp_mem mem;
	uint64_t words[2];

	(void)state;
	open_own(&own);
	set_region(&own, BIG);
	wp_stack_copy_set(&own.copy, &own.space, avma_of(own.stack), own.stack,
			  1024);
	mem = wp_stack_copy_mem(&own.copy);
	assert_int_equal(mem.read(mem.ctx, avma_of(own.stack - WP_RED_ZONE - 8),
				  words, 8),
			 WP_MEM_UNREADABLE);
	/* What a function may keep there a copy of a stop has. */
	assert_int_equal(
		mem.read(mem.ctx, avma_of(own.stack - WP_RED_ZONE), words, 8),
		WP_MEM_BEYOND_COPY);
	assert_int_equal(mem.read(mem.ctx, avma_of(own.stack - 8), words, 8),
			 WP_MEM_BEYOND_COPY);
	/* Also where a part of it is in the copy. */
	assert_int_equal(mem.read(mem.ctx, avma_of(own.stack - 8), words, 16),
			 WP_MEM_BEYOND_COPY);
	assert_int_equal(mem.read(mem.ctx, avma_of(own.stack), words, 16), 0);
	assert_false(own.copy.beyond || own.copy.elsewhere);
	own.copy.live = true;
	assert_int_equal(mem.read(mem.ctx, avma_of(own.stack - 8), words, 16),
			 0);
	close_own(&own);
}

/* Another stack may be used meanwhile; code and what files hold is as it was.
 */
static void another_stack_is_read_of_who_stands_still(void **state)
{
	static const uint8_t lasting[16] = "as in the file";
	const uint64_t page = avma_of(lasting) & ~(uint64_t)(PAGE - 1);
	char text[256];
	struct own own;
	struct wp_mem mem;
	uint8_t bytes[16];
	uint64_t other;
	int n;

	(void)state;
	open_own(&own);
	assert_true(page < avma_of(own.stack));
	n = snprintf(text, sizeof(text),
		     "%lx-%lx r--p 00000000 00:01 7 /a\n"
		     "%lx-%lx rw-p 00000000 00:00 0\n",
		     (unsigned long)page, (unsigned long)page + 2 * PAGE,
		     (unsigned long)avma_of(own.stack),
		     (unsigned long)avma_of(own.stack + 1024));
	assert_int_equal(wp_maps_parse(&own.space.maps, text, (size_t)n), 0);
	other = avma_of(own.stack + BIG / 2);
	wp_stack_copy_set(&own.copy, &own.space, avma_of(own.stack), own.stack,
			  1024);
	mem = wp_stack_copy_mem(&own.copy);
	assert_int_equal(mem.read(mem.ctx, avma_of(lasting), bytes, 16), 0);
	assert_memory_equal(bytes, lasting, 16);
	assert_false(own.copy.elsewhere);
	assert_int_equal(mem.read(mem.ctx, other, bytes, 16),
			 WP_MEM_OTHER_STACK);
	assert_true(own.copy.elsewhere);
	own.copy.live = true;
	assert_int_equal(mem.read(mem.ctx, other, bytes, 16), 0);
	assert_int_equal(bytes[0], FILL);
	close_own(&own);
}

/* With 1 KiB of what lies above it, for a walk when the thread goes on. */
static void what_was_read_of_another_stack_is_kept(void **state)
{
	struct own own;
	struct wp_mem mem;
	uint64_t other, word;

	(void)state;
	open_own(&own);
	set_region(&own, 1024);
	other = avma_of(own.stack + BIG / 2);
	wp_stack_copy_take(&own.copy, &own.space, avma_of(own.stack), 1024);
	mem = wp_stack_copy_mem(&own.copy);
	own.copy.live = true;
	assert_int_equal(mem.read(mem.ctx, other, &word, 8), 0);
	own.copy.live = own.copy.elsewhere = false;
	memset(own.stack + BIG / 2, KEPT, 4096);
	assert_int_equal(mem.read(mem.ctx, other + 1016, &word, 8), 0);
	assert_int_equal(word, UINT64_C(0xa5a5a5a5a5a5a5a5));
	assert_true(own.copy.elsewhere);
	assert_int_equal(mem.read(mem.ctx, other + 1020, &word, 8),
			 WP_MEM_OTHER_STACK);
	assert_int_equal(mem.read(mem.ctx, other - 8, &word, 8),
			 WP_MEM_OTHER_STACK);
	/* There is room for so many; more are read and not kept. */
	own.copy.live = true;
	for (unsigned int i = 1; i <= WP_PIECES_MAX; i++)
		assert_int_equal(mem.read(mem.ctx, other + 8192 * i, &word, 8),
				 0);
	assert_int_equal(own.copy.npieces, WP_PIECES_MAX);
	/* Of the next copy's thread nothing was read. */
	wp_stack_copy_take(&own.copy, &own.space, avma_of(own.stack), 1024);
	assert_int_equal(mem.read(mem.ctx, other, &word, 8),
			 WP_MEM_OTHER_STACK);
	assert_true(own.copy.missing_avma == other);
	/* It is kept where it is known to be wanted. */
	wp_stack_copy_keep(&own.copy, other);
	memset(own.stack + BIG / 2, 0, 4096);
	assert_int_equal(mem.read(mem.ctx, other + 8, &word, 8), 0);
	assert_int_equal(word, UINT64_C(0x5a5a5a5a5a5a5a5a));
	close_own(&own);
}

static void the_end_of_the_region_ends_the_copy(void **state)
{
	struct own own;

	(void)state;
	open_own(&own);
	set_region(&own, 512);
	assert_int_equal(wp_stack_copy_take(&own.copy, &own.space,
					    avma_of(own.stack), 4096),
			 512 + WP_RED_ZONE);
	/* No page below sp: the copy begins at sp. */
	munmap(own.stack - PAGE, PAGE);
	assert_int_equal(wp_stack_copy_take(&own.copy, &own.space,
					    avma_of(own.stack), 4096),
			 512);
	close_own(&own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_is_copied_than_there_is_room_for),
		cmocka_unit_test(a_copy_made_ahead_is_a_short_copy),
		cmocka_unit_test(a_short_copy_ends_with_its_page),
		cmocka_unit_test(
			a_sample_is_read_on_while_its_end_is_as_it_was),
		cmocka_unit_test(
			a_sample_is_not_read_on_where_its_end_was_left),
		cmocka_unit_test(a_neighbour_is_not_read_as_what_follows),
		cmocka_unit_test(
			what_is_not_copied_is_read_of_who_stands_still),
		cmocka_unit_test(
			what_is_below_a_copy_is_read_of_who_stands_still),
		cmocka_unit_test(another_stack_is_read_of_who_stands_still),
		cmocka_unit_test(what_was_read_of_another_stack_is_kept),
		cmocka_unit_test(the_end_of_the_region_ends_the_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
