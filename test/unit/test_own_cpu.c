/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  own_cpu.h: wallprof leaves a CPU on which threads sleep, and no other,
 * and its affinity stays what it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#include "../../src/sample/own_cpu.h"

static struct wp_own_cpu own;
static cpu_set_t all;
static uint64_t now_ns;

static int begin(void **state)
{
	(void)state;
	wp_own_cpu_open(&own);
	now_ns = WP_NS_PER_S;
	return sched_getaffinity(0, sizeof(all), &all);
}

static int end(void **state)
{
	(void)state;
	wp_own_cpu_close(&own);
	return sched_setaffinity(0, sizeof(all), &all);
}

/* Move to CPU; the affinity stays as it is. */
static void go_to(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* The first CPU of ours behind AFTER. */
static int next_cpu(int after)
{
	for (int cpu = after + 1; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t)cpu, &all))
			return cpu;
	return -1;
}

/* The test is skipped where there is but one. */
static int second_cpu(void)
{
	int cpu = next_cpu(next_cpu(-1));

	if (cpu < 0) {
		print_message("one CPU\n");
		skip();
	}
	return cpu;
}

static void decide(void)
{
	cpu_set_t now;

	now_ns += WP_NS_PER_S;
	wp_own_cpu_leave(&own, now_ns);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &all));
}

/* How often of a hundred times this thread is on CPU B after threads were met on MET
 * while it was on A.  The kernel may move it besides. */
static int count_moves(int a, int b, int met)
{
	int n = 0;

	for (int i = 0; i < 100; i++) {
		go_to(a);
		wp_own_cpu_note(&own, met);
		decide();
		n += sched_getcpu() == b;
	}
	return n;
}

static void a_cpu_on_which_threads_sleep_is_left(void **state)
{
	int a = next_cpu(-1), b = second_cpu();

	(void)state;
	assert_true(count_moves(a, b, a) > 80);
	assert_true(count_moves(b, next_cpu(b) < 0 ? a : next_cpu(b), b) > 80);
}

static void another_is_not(void **state)
{
	int a = next_cpu(-1), b = second_cpu();

	(void)state;
	assert_true(count_moves(a, b, b) < 20);
	assert_true(count_moves(a, b, -1) < 20);
	assert_true(count_moves(a, b, CPU_SETSIZE) < 20);
}

static void where_threads_sleep_on_every_cpu_none_is_better(void **state)
{
	(void)state;
	for (int cpu = next_cpu(-1); cpu >= 0; cpu = next_cpu(cpu))
		wp_own_cpu_note(&own, cpu);
	decide();
	/* What was met is forgotten then. */
	for (int cpu = next_cpu(-1); cpu >= 0; cpu = next_cpu(cpu))
		assert_false(CPU_ISSET((size_t)cpu, &own.met));
}

static void it_is_decided_ten_times_a_second(void **state)
{
	(void)state;
	decide();
	wp_own_cpu_note(&own, sched_getcpu());
	wp_own_cpu_leave(&own, now_ns + WP_NS_PER_S / 10 - 1);
	assert_int_equal(CPU_COUNT(&own.met), 1);
	wp_own_cpu_leave(&own, now_ns + WP_NS_PER_S / 10);
	assert_int_equal(CPU_COUNT(&own.met), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_cpu_on_which_threads_sleep_is_left, begin, end),
		cmocka_unit_test_setup_teardown(another_is_not, begin, end),
		cmocka_unit_test_setup_teardown(
			where_threads_sleep_on_every_cpu_none_is_better, begin,
			end),
		cmocka_unit_test_setup_teardown(
			it_is_decided_ten_times_a_second, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
