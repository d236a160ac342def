/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  call_memory.h: what a call waits for is copied, and no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "wallprof/call_memory.h"
#include "wallprof/clock.h"
#include "wallprof/syscall_nr.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

static struct wp_process process = WP_PROCESS_INIT;
static struct wp_call_memory memory;
/* Two pages that can be read between two that cannot. */
static uint8_t *pages;

static int setup(void **state)
{
	(void)state;
	pages = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (pages == MAP_FAILED ||
	    mprotect(pages + PAGE, 2 * PAGE, PROT_READ | PROT_WRITE))
		return -1;
	pages += PAGE;
	for (size_t i = 0; i < 2 * PAGE; i++)
		pages[i] = (uint8_t)(i * 7 + i / 256);
	return wp_process_open(&process, getpid(), NULL);
}

static int teardown(void **state)
{
	(void)state;
	wp_process_clear(&process);
	return munmap(pages - PAGE, 4 * PAGE);
}

static uint64_t avma_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void take(long nr, const uint64_t args[6], const void *sp)
{
	struct wp_thread_facts facts = { .syscall_nr = nr };

	memcpy(facts.args, args, sizeof(facts.args));
	memset(&memory, 0xee, sizeof(memory));
	wp_call_memory_take(&memory, &process, &facts, avma_of(sp));
	assert_int_equal(memory.sp_avma, avma_of(sp));
	assert_in_range(memory.time_ns, 1, wp_clock_ns());
}

/* Part I is P[0..LEN), and can be read from its first byte to its last. */
static void assert_part(uint32_t i, const uint8_t *p, size_t len)
{
	uint8_t buf[WP_CALL_MEMORY_AFTER + WP_CALL_MEMORY_STACK + 8192];

	assert_true(i < memory.nparts);
	assert_int_equal(memory.parts[i].avma, avma_of(p));
	assert_int_equal(memory.parts[i].len, len);
	assert_true(wp_call_memory_read(&memory, avma_of(p), buf, len));
	assert_memory_equal(buf, p, len);
	assert_true(wp_call_memory_read(&memory, avma_of(p) + len - 1, buf, 1));
	assert_int_equal(buf[0], p[len - 1]);
}

static void assert_not_there(const uint8_t *p, size_t len)
{
	uint8_t buf[64];

	assert_false(wp_call_memory_read(&memory, avma_of(p), buf, len));
}

static void a_lock_is_copied_with_what_is_around_it(void **state)
{
	const uint8_t *word = pages + 2048, *sp = pages + PAGE;
	const uint64_t args[6] = { avma_of(word) };
	const size_t len = WP_CALL_MEMORY_BEFORE + WP_CALL_MEMORY_AFTER;

	(void)state;
	take(SYS_futex, args, sp);
	assert_int_equal(memory.nparts, 2);
	assert_part(0, word - WP_CALL_MEMORY_BEFORE, len);
	assert_part(1, sp, WP_CALL_MEMORY_STACK);
	assert_not_there(word - WP_CALL_MEMORY_BEFORE - 1, 1);
	assert_not_there(word - WP_CALL_MEMORY_BEFORE - 1, 2);
	assert_not_there(word - WP_CALL_MEMORY_BEFORE + len, 1);
	assert_not_there(word - WP_CALL_MEMORY_BEFORE + len - 1, 2);
	assert_not_there(sp - 1, 1);
}

static void a_lock_at_the_start_of_a_mapping_is_copied_from_there(void **state)
{
	const uint8_t *word = pages + WP_CALL_MEMORY_BEFORE / 2;
	uint64_t args[6] = { avma_of(word) };

	(void)state;
	take(SYS_futex, args, pages + PAGE);
	assert_int_equal(memory.nparts, 2);
	assert_part(0, pages, WP_CALL_MEMORY_BEFORE / 2 + WP_CALL_MEMORY_AFTER);
	args[0] = avma_of(pages);
	take(SYS_futex, args, pages + PAGE);
	assert_part(0, pages, WP_CALL_MEMORY_AFTER);
	/* There is no page at all. */
	args[0] = avma_of(pages - 8);
	take(SYS_futex, args, pages + PAGE);
	assert_int_equal(memory.nparts, 1);
	assert_part(0, pages + PAGE, WP_CALL_MEMORY_STACK);
	args[0] = 8;
	take(SYS_futex, args, NULL);
	assert_int_equal(memory.nparts, 0);
}

static void what_is_polled_is_copied_up_to_a_limit(void **state)
{
	uint64_t args[6] = { avma_of(pages), 3, avma_of(pages + PAGE) };

	(void)state;
	take(SYS_poll, args, NULL);
	assert_int_equal(memory.nparts, 1);
	assert_part(0, pages, 3 * sizeof(struct pollfd));
	take(SYS_ppoll, args, NULL);
	assert_int_equal(memory.nparts, 2);
	assert_part(0, pages, 3 * sizeof(struct pollfd));
	assert_part(1, pages + PAGE, sizeof(struct timespec));
	args[1] = WP_CALL_MEMORY_POLLED;
	take(SYS_poll, args, NULL);
	assert_part(0, pages, WP_CALL_MEMORY_POLLED * sizeof(struct pollfd));
	args[1] = UINT64_MAX;
	take(SYS_poll, args, NULL);
	assert_part(0, pages, WP_CALL_MEMORY_POLLED * sizeof(struct pollfd));
	args[1] = 0;
	take(SYS_poll, args, NULL);
	assert_int_equal(memory.nparts, 0);
}

static void sets_of_select_are_copied_in_whole_words(void **state)
{
	static const struct {
		uint64_t n, len;
	} sets[] = { { 1, 8 },
		     { 64, 8 },
		     { 65, 16 },
		     { 1024, 128 },
		     { UINT64_C(1) << 40, WP_CALL_MEMORY_SET } };
	uint64_t args[6] = { 0, avma_of(pages), 0, 0, avma_of(pages + PAGE) };

	(void)state;
	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
		args[0] = sets[i].n;
		take(SYS_pselect6, args, NULL);
		assert_int_equal(memory.nparts, 2);
		assert_part(0, pages, sets[i].len);
		assert_part(1, pages + PAGE, sizeof(struct timespec));
	}
#ifdef __x86_64__
	take(SYS_select, args, NULL);
	assert_int_equal(memory.nparts, 2);
#endif
	args[0] = 0;
	take(SYS_pselect6, args, NULL);
	assert_int_equal(memory.nparts, 1);
	assert_part(0, pages + PAGE, sizeof(struct timespec));
}

static void times_are_copied_from_where_the_call_has_them(void **state)
{
	static const struct {
		long nr;
		int arg;
	} calls[] = { { SYS_nanosleep, 0 },
		      { SYS_clock_nanosleep, 2 },
		      { SYS_epoll_pwait2, 3 } };

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		uint64_t args[6] = { 0 };

		args[calls[i].arg] = avma_of(pages + 16);
		take(calls[i].nr, args, NULL);
		assert_int_equal(memory.nparts, 1);
		assert_part(0, pages + 16, sizeof(struct timespec));
	}
}

static void other_calls_have_nothing_to_copy(void **state)
{
	const uint64_t args[6] = { avma_of(pages), avma_of(pages),
				   avma_of(pages), avma_of(pages),
				   avma_of(pages), avma_of(pages) };

	(void)state;
	take(SYS_read, args, pages);
	assert_int_equal(memory.nparts, 0);
	take(-1, args, pages);
	assert_int_equal(memory.nparts, 0);
	assert_not_there(pages, 1);
}

static void addresses_that_wrap_are_not_read(void **state)
{
	const uint64_t args[6] = { UINT64_MAX - 8, 3 };

	(void)state;
	take(SYS_poll, args, NULL);
	assert_int_equal(memory.nparts, 0);
	take(SYS_nanosleep, args, NULL);
	assert_int_equal(memory.nparts, 0);
}

/* Of i386, two words of 32 bits, of which the first is signed. */
static void a_narrow_time_is_copied_as_a_wide_one(void **state)
{
	struct wp_thread_facts facts = { .syscall_nr = SYS_nanosleep,
					 .has_narrow_time = true };
	const int32_t narrow[2] = { -5, 999999999 };
	int64_t wide[2];

	(void)state;
	facts.args[0] = avma_of(pages + 16);
	memcpy(pages + 16, narrow, sizeof(narrow));
	wp_call_memory_take(&memory, &process, &facts, 0);
	assert_int_equal(memory.nparts, 1);
	assert_true(wp_call_memory_read(&memory, facts.args[0], wide,
					sizeof(wide)));
	assert_int_equal(wide[0], -5);
	assert_int_equal(wide[1], 999999999);
	/* It is cut off by the end of what is mapped: it stays as it is. */
	facts.args[0] = avma_of(pages + 2 * PAGE - 4);
	wp_call_memory_take(&memory, &process, &facts, 0);
	assert_int_equal(memory.nparts, 1);
	assert_part(0, pages + 2 * PAGE - 4, 4);
	/* There is none. */
	facts.args[0] = 0;
	wp_call_memory_take(&memory, &process, &facts, 0);
	assert_int_equal(memory.nparts, 0);
}

static void what_is_copied_replaces_what_was(void **state)
{
	uint64_t args[6] = { avma_of(pages), 1, avma_of(pages + PAGE) };
	struct wp_thread_facts facts = { .syscall_nr = SYS_ppoll };

	(void)state;
	memcpy(facts.args, args, sizeof(args));
	wp_call_memory_take(&memory, &process, &facts, 0);
	assert_part(1, pages + PAGE, sizeof(struct timespec));
	facts.args[2] = 0;
	wp_call_memory_take(&memory, &process, &facts, 0);
	assert_int_equal(memory.nparts, 1);
	assert_not_there(pages + PAGE, 1);
}

/* The page before the word's can be read: it is in one part with what is there. */
static void a_lock_near_a_page_is_copied_once(void **state)
{
	const uint8_t *word = pages + PAGE + WP_CALL_MEMORY_BEFORE / 2;
	const uint64_t args[6] = { avma_of(word) };

	(void)state;
	take(SYS_futex, args, pages);
	assert_int_equal(memory.nparts, 2);
	assert_part(0, word - WP_CALL_MEMORY_BEFORE,
		    WP_CALL_MEMORY_BEFORE + WP_CALL_MEMORY_AFTER);
	assert_part(1, pages, WP_CALL_MEMORY_STACK);
}

/* Calls of i386: socketcall(2) has its arguments in memory. */
static void a_call_of_i386_becomes_one_of_ours(void **state)
{
	enum { SOCKETCALL = 102, NANOSLEEP = 162, RECV = 10 };
	const uint32_t block[4] = { 3, 0x1000, 64, 0 };
	uint64_t args[6] = { RECV, avma_of(pages + 32) };
	long nr = SOCKETCALL;

	(void)state;
	memcpy(pages + 32, block, sizeof(block));
	(void)wp_call_memory_make_native(&process, &nr, args);
	assert_int_equal(nr, SYS_recvfrom);
	assert_int_equal(args[0], 3);
	assert_int_equal(args[2], 64);
	/* Where they cannot be read it is not known which call it is. */
	nr = SOCKETCALL;
	args[0] = RECV;
	args[1] = avma_of(pages - PAGE);
	(void)wp_call_memory_make_native(&process, &nr, args);
	assert_int_not_equal(nr, SYS_recvfrom);
	nr = NANOSLEEP;
	args[0] = 77;
	assert_true(wp_call_memory_make_native(&process, &nr, args));
	assert_int_equal(nr, SYS_nanosleep);
	assert_int_equal(args[0], 77);
	/* clock_nanosleep_time64. */
	nr = 407;
	assert_false(wp_call_memory_make_native(&process, &nr, args));
	assert_int_equal(nr, SYS_clock_nanosleep);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_lock_is_copied_with_what_is_around_it),
		TEST(a_lock_at_the_start_of_a_mapping_is_copied_from_there),
		TEST(what_is_polled_is_copied_up_to_a_limit),
		TEST(sets_of_select_are_copied_in_whole_words),
		TEST(times_are_copied_from_where_the_call_has_them),
		TEST(other_calls_have_nothing_to_copy),
		TEST(addresses_that_wrap_are_not_read),
		TEST(a_narrow_time_is_copied_as_a_wide_one),
		TEST(what_is_copied_replaces_what_was),
		TEST(a_lock_near_a_page_is_copied_once),
		TEST(a_call_of_i386_becomes_one_of_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
