/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: bpf.  src/bpf/heap_returns.h: rings that were made here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../src/bpf/heap_returns.h"

enum { CPUS = 2, N = WP_HEAP_RETURNS, TRAMPOLINE = 0x7000, SP = 64 };

static struct wp_heap_return rings[CPUS * N];
static uint64_t written[CPUS];

static int setup(void **state)
{
	(void)state;
	memset(rings, 0, sizeof(rings));
	memset(written, 0, sizeof(written));
	return 0;
}

static void call(unsigned int cpu, uint64_t time_ns, uint64_t sp, uint64_t pc)
{
	rings[cpu * N + written[cpu]++ % N] = (struct wp_heap_return){ time_ns,
								       sp, pc };
}

static uint64_t find(uint64_t time_ns)
{
	const struct wp_heap_returns returns = { rings, CPUS };
	const struct wp_heap_return asked = { time_ns, SP, TRAMPOLINE };

	return wp_heap_returns_find(&returns, &asked);
}

static void of_no_call_nothing_is_known(void **state)
{
	(void)state;
	assert_int_equal(find(UINT64_MAX), 0);
	call(0, 10, SP - 8, 1);
	call(0, 11, SP + (UINT64_C(1) << 32), 2);
	assert_int_equal(find(UINT64_MAX), 0);
}

static void the_last_call_before_the_time_counts(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 100; i++)
		call(0, 10 * i, SP, 0x1000 + i);
	for (uint64_t i = 1; i <= 100; i++) {
		assert_int_equal(find(10 * i), 0x1000 + i);
		assert_int_equal(find(10 * i + 9), 0x1000 + i);
	}
	assert_int_equal(find(9), 0);
}

static void of_all_cpus_the_last_one_counts(void **state)
{
	(void)state;
	call(0, 10, SP, 1);
	call(1, 20, SP, 2);
	call(0, 30, SP, 3);
	assert_int_equal(find(19), 1);
	assert_int_equal(find(29), 2);
	assert_int_equal(find(30), 3);
}

/* realloc jumps to malloc: the return address is the trampoline's already. */
static void a_call_from_the_trampoline_is_the_one_before(void **state)
{
	(void)state;
	call(0, 10, SP, 1);
	call(0, 11, SP, TRAMPOLINE);
	assert_int_equal(find(12), 1);
}

static void calls_of_two_threads_may_be_in_disorder(void **state)
{
	(void)state;
	call(0, 100, SP + 8, 1);
	call(0, 90, SP, 2);
	assert_int_equal(find(95), 2);
}

/* After each number of calls, in a ring that goes round. */
static void a_ring_that_goes_round_has_the_latest(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 2 * N + 100; i++) {
		call(0, 10 * i, SP, i);
		if (i % 97 && i % N > 2 && N - i % N > 2)
			continue;
		assert_int_equal(find(10 * i), i);
		assert_int_equal(find(10 * i + 5), i);
		if (i > 1)
			assert_int_equal(find(10 * i - 1), i - 1);
		if (i >= N)
			assert_int_equal(find(10 * (i - N / 2)), i - N / 2);
	}
}

/* A later one may have been overwritten. */
static void what_is_older_than_a_ring_is_not_known(void **state)
{
	(void)state;
	call(1, 5, SP, 1);
	for (uint64_t i = 1; i <= N; i++)
		call(0, 10 * i, SP + 8, i);
	assert_int_equal(find(UINT64_MAX), 0);
	call(1, 10 * N, SP, 2);
	assert_int_equal(find(UINT64_MAX), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(of_no_call_nothing_is_known, setup),
		cmocka_unit_test_setup(the_last_call_before_the_time_counts,
				       setup),
		cmocka_unit_test_setup(of_all_cpus_the_last_one_counts, setup),
		cmocka_unit_test_setup(
			a_call_from_the_trampoline_is_the_one_before, setup),
		cmocka_unit_test_setup(calls_of_two_threads_may_be_in_disorder,
				       setup),
		cmocka_unit_test_setup(a_ring_that_goes_round_has_the_latest,
				       setup),
		cmocka_unit_test_setup(what_is_older_than_a_ring_is_not_known,
				       setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
