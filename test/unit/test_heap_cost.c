/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  src/heap_cost.c: what probes take, of counts and CPU times that the test
 * makes, and who loses them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../src/sample/heap_state.h"
#include "../../src/sample/sampler_loop.h"
#include "../../src/sample/target.h"

enum { NTARGETS = 3, SECOND = 1000000000, CLOCK = -4000 };

struct wp_heap_probe {
	struct wp_heap_counts counts;
	unsigned int ndetached;
	bool was_given_up;
};

static struct wp_sampler loop;
static struct wp_common commons[2];
static struct wp_target targets[NTARGETS], *listed[NTARGETS];
static struct wp_process processes[NTARGETS];
static struct wp_heap_samples heaps[NTARGETS];
static struct wp_heap_probe probes[NTARGETS];
static uint64_t cpu_ns[NTARGETS];

struct wp_heap_counts wp_heap_probe_counts(const struct wp_heap_probe *probe)
{
	return probe->counts;
}

void wp_heap_probe_detach(struct wp_heap_probe *probe, bool keeps)
{
	probe->ndetached++;
	probe->was_given_up = !keeps;
}

int clock_getcpuclockid(pid_t pid, clockid_t *ret)
{
	*ret = CLOCK - pid;
	return 0;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (clock > CLOCK || clock <= CLOCK - NTARGETS)
		return (int)syscall(SYS_clock_gettime, clock, ts);
	*ts = (struct timespec){
		(time_t)(cpu_ns[CLOCK - clock] / SECOND),
		(long)(cpu_ns[CLOCK - clock] % SECOND),
	};
	return 0;
}

/* The last target is of another recording, and no probe is on it. */
static int setup(void **state)
{
	(void)state;
	memset(&loop, 0, sizeof(loop));
	memset(commons, 0, sizeof(commons));
	memset(targets, 0, sizeof(targets));
	memset(heaps, 0, sizeof(heaps));
	memset(probes, 0, sizeof(probes));
	for (int i = 0; i < NTARGETS; i++) {
		processes[i].pid = i;
		heaps[i].probe = &probes[i];
		heaps[i].cost_ns = 1000;
		heaps[i].state = WP_HEAP_SAMPLING;
		targets[i].loop = &loop;
		targets[i].common = &commons[i == 2];
		targets[i].process = &processes[i];
		targets[i].heap_samples = &heaps[i];
		listed[i] = &targets[i];
		cpu_ns[i] = SECOND;
	}
	loop.targets = listed;
	loop.ntargets = NTARGETS;
	loop.options.max_overhead = 0.05;
	for (int i = 0; i < NTARGETS; i++)
		wp_heap_cost_begin(&targets[i], SECOND);
	return 0;
}

static void assert_near(double a, double b)
{
	assert_true(fabs(a - b) < 1e-9);
}

static double take(int i, uint64_t now, bool is_dearest)
{
	bool dearest;
	double cost = wp_heap_cost_take(&targets[i], now, &dearest);

	assert_int_equal(dearest, is_dearest);
	return cost;
}

static void a_cost_is_of_the_time_since_the_last_look(void **state)
{
	(void)state;
	probes[0].counts.calls = 20000;
	probes[0].counts.frees = 10000;
	cpu_ns[0] += SECOND / 2;
	/* 30,000 us in a second of a CPU that was half idle. */
	assert_near(take(0, 2 * (uint64_t)SECOND, true), 0.03);
	assert_near(heaps[0].spent, 0.03);
	assert_near(heaps[0].ran, 0.5);
	assert_near(commons[0].heap.cost, 0.03);
	/* Nothing more in a second; the most there was stays. */
	assert_near(take(0, 3 * (uint64_t)SECOND, true), 0);
	assert_near(heaps[0].ran, 0);
	assert_near(commons[0].heap.cost, 0.03);
	probes[0].counts.calls += 20000;
	assert_near(take(0, 3 * (uint64_t)SECOND + SECOND / 2, true), 0.04);
	assert_near(commons[0].heap.cost, 0.04);
	assert_near(commons[1].heap.cost, 0);
}

/* Of four threads that run, a fourth each. */
static void a_cost_is_of_all_threads_that_run(void **state)
{
	(void)state;
	probes[0].counts.calls = 200000;
	cpu_ns[0] += 4 * (uint64_t)SECOND;
	assert_near(take(0, 2 * (uint64_t)SECOND, true), 0.05);
}

/* 20 us each: 2,500 are 5 % of a second. */
static void samples_cost_more_than_their_probes(void **state)
{
	struct wp_err err = WP_ERR_INIT;

	(void)state;
	probes[0].counts.samples = 2400;
	assert_int_equal(
		wp_heap_cost_judge(&targets[0], 2 * (uint64_t)SECOND, &err), 0);
	assert_near(heaps[0].spent, 0.048);
	probes[0].counts.samples += 2600;
	assert_int_equal(
		wp_heap_cost_judge(&targets[0], 3 * (uint64_t)SECOND, &err),
		-EDQUOT);
	assert_int_equal(probes[0].ndetached, 1);
}

static void probes_of_one_step_at_a_time_cost_more(void **state)
{
	(void)state;
	probes[0].counts.maps = 1000;
	assert_near(take(0, 2 * (uint64_t)SECOND, true), 0.015);
	/* One that is not probed. */
	heaps[0].sites.nslow = 1;
	probes[0].counts.calls = 1000;
	assert_near(take(0, 3 * (uint64_t)SECOND, true), 0.001);
	/* Before as well as now. */
	loop.options.heap_anyway = true;
	probes[0].counts.frees = 1000;
	assert_near(take(0, 4 * (uint64_t)SECOND, true), 0.029);
}

static void no_time_and_a_clock_that_is_gone_cost_nothing(void **state)
{
	(void)state;
	probes[0].counts.calls = 1000;
	cpu_ns[0] += 1000;
	assert_near(take(0, SECOND, true), 0);
	assert_near(heaps[0].ran, 0);
	/* Counted from there on. */
	assert_near(take(0, 2 * (uint64_t)SECOND, true), 0);
	cpu_ns[0] = 0;
	assert_near(take(0, 3 * (uint64_t)SECOND, true), 0);
	assert_near(heaps[0].ran, 0);
}

static void what_a_recording_takes_is_of_all_its_targets(void **state)
{
	(void)state;
	probes[0].counts.calls = 10000;
	probes[1].counts.calls = 30000;
	probes[2].counts.calls = 90000;
	assert_near(take(2, 2 * (uint64_t)SECOND, true), 0.09);
	assert_near(take(0, 2 * (uint64_t)SECOND, true), 0.01);
	assert_near(take(1, 2 * (uint64_t)SECOND, true), 0.04);
	probes[0].counts.calls += 10000;
	cpu_ns[0] += 2 * (uint64_t)SECOND;
	assert_near(take(0, 3 * (uint64_t)SECOND, false), 0.02);
	targets[1].heap_samples = NULL;
	probes[0].counts.calls += 10000;
	assert_near(take(0, 4 * (uint64_t)SECOND, true), 0.01);
}

static int judge(int i, uint64_t now, char text[512])
{
	struct wp_err err = WP_ERR_INIT;
	int rc = wp_heap_cost_judge(&targets[i], now, &err);

	assert_int_equal(rc, err.code);
	strncpy(text, err.msg, 511);
	text[511] = '\0';
	return rc;
}

static void up_to_the_limit_probes_stay(void **state)
{
	char text[512];

	(void)state;
	probes[0].counts.calls = 50000;
	assert_int_equal(judge(0, 2 * (uint64_t)SECOND, text), 0);
	assert_int_equal(probes[0].ndetached, 0);
	assert_int_equal(heaps[0].state, WP_HEAP_SAMPLING);
	probes[0].counts.calls += 51000;
	assert_int_equal(judge(0, 3 * (uint64_t)SECOND, text), -EDQUOT);
	assert_int_equal(probes[0].ndetached, 1);
	assert_true(probes[0].was_given_up);
	assert_int_equal(heaps[0].state, WP_HEAP_STOPPED);
	assert_near(heaps[0].spent, 0);
	assert_non_null(strstr(
		text, "would take 5 % of the time of its threads"
		      " (1.0 us for each call, 20 us for each sample), and "
		      "--max-overhead is 5 %"));
}

static void the_dearest_of_several_loses_its_probes(void **state)
{
	char text[512];

	(void)state;
	loop.options.many = true;
	probes[0].counts.calls = 40000;
	probes[1].counts.calls = 60000;
	assert_int_equal(judge(0, 2 * (uint64_t)SECOND, text), 0);
	assert_int_equal(judge(1, 2 * (uint64_t)SECOND, text), -EDQUOT);
	assert_non_null(strstr(text, "10 % of the time of the threads of all"));
	assert_int_equal(probes[1].ndetached, 1);
	/* Without them it is little enough. */
	probes[0].counts.calls += 40000;
	assert_int_equal(judge(0, 3 * (uint64_t)SECOND, text), 0);
	/* Nor is who takes less judged for who takes more. */
	probes[0].counts.calls += 60000;
	probes[1].counts.calls += 200000;
	(void)take(1, 4 * (uint64_t)SECOND, true);
	assert_int_equal(judge(0, 4 * (uint64_t)SECOND, text), 0);
	assert_int_equal(probes[0].ndetached, 0);
}

static void who_wants_it_anyway_gets_it(void **state)
{
	char text[512];

	(void)state;
	loop.options.heap_anyway = true;
	probes[0].counts.calls = 500000;
	assert_int_equal(judge(0, 2 * (uint64_t)SECOND, text), 0);
	assert_int_equal(probes[0].ndetached, 0);
	assert_near(commons[0].heap.cost, 0.5);
}

/* The end of a second is not awaited whose limit is passed. */
static void beyond_is_what_a_whole_window_may_take(void **state)
{
	(void)state;
	assert_false(wp_heap_cost_is_beyond(&targets[0], SECOND, SECOND));
	probes[0].counts.calls = 30000;
	probes[0].counts.frees = 20000;
	assert_false(wp_heap_cost_is_beyond(&targets[0], SECOND, SECOND));
	probes[0].counts.calls++;
	assert_true(wp_heap_cost_is_beyond(&targets[0], SECOND, SECOND));
	assert_false(wp_heap_cost_is_beyond(&targets[0], SECOND,
					    2 * (uint64_t)SECOND));
	/* Two threads have run for as long. */
	cpu_ns[0] += 2 * (uint64_t)SECOND;
	assert_false(wp_heap_cost_is_beyond(&targets[0], SECOND, SECOND));
	probes[0].counts.calls += 50000;
	assert_true(wp_heap_cost_is_beyond(&targets[0], SECOND, SECOND));
	/* What was taken before is of another window. */
	(void)take(0, 2 * (uint64_t)SECOND, true);
	assert_false(wp_heap_cost_is_beyond(&targets[0], SECOND, SECOND));
	probes[0].counts.calls += 50001;
	assert_true(wp_heap_cost_is_beyond(&targets[0], SECOND, SECOND));
	loop.options.heap_anyway = true;
	assert_false(wp_heap_cost_is_beyond(&targets[0], SECOND, SECOND));
}

/* It was idle for most of the time that is judged. */
static void what_is_too_dear_is_told_as_of_late(void **state)
{
	uint64_t now = SECOND + SECOND / 2;
	char text[512];

	(void)state;
	assert_false(wp_heap_cost_is_beyond(&targets[0], now, SECOND));
	probes[0].counts.calls = 35000;
	now += SECOND / 20;
	assert_false(wp_heap_cost_is_beyond(&targets[0], now, SECOND));
	/* Less than 20 ms later, with little. */
	probes[0].counts.calls += 20000;
	now += SECOND / 100;
	assert_true(wp_heap_cost_is_beyond(&targets[0], now, SECOND));
	assert_int_equal(judge(0, now, text), -EDQUOT);
	assert_non_null(strstr(text, "would take 70 % of"));
	/* Of four threads that run. */
	heaps[1].recent = 0.8;
	probes[1].counts.calls = 300000;
	cpu_ns[1] += 4 * (uint64_t)SECOND;
	assert_int_equal(judge(1, 2 * (uint64_t)SECOND, text), -EDQUOT);
	assert_non_null(strstr(text, "would take 20 % of"));
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_cost_is_of_the_time_since_the_last_look),
		TEST(a_cost_is_of_all_threads_that_run),
		TEST(samples_cost_more_than_their_probes),
		TEST(probes_of_one_step_at_a_time_cost_more),
		TEST(no_time_and_a_clock_that_is_gone_cost_nothing),
		TEST(what_a_recording_takes_is_of_all_its_targets),
		TEST(up_to_the_limit_probes_stay),
		TEST(the_dearest_of_several_loses_its_probes),
		TEST(who_wants_it_anyway_gets_it),
		TEST(what_is_too_dear_is_told_as_of_late),
		TEST(beyond_is_what_a_whole_window_may_take),
	};

	return cmocka_run_group_tests_name("heap_cost", tests, NULL, NULL);
}
