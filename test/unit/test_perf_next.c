/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: perf.  wp_perf_next over rings that the test fills: the order of what is
 * handed out, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/perf/perf_priv.h"
#include "wallprof/clock.h"

enum { CPUS = 3, RING = 4096, MAIN_ID = 11, SWITCH_ID = 12, OTHER_ID = 13 };

/* What a sample stands for beside its period: half of one is run unsampled, after 16. */
enum { DRAWN = 5000 / 32 };

static struct wp_process process;
static struct wp_perf_cpu cpus[CPUS];
static struct perf_event_mmap_page pages[CPUS];
static _Alignas(8) uint8_t data[CPUS][RING];
static struct wp_perf_event events[2];
static pid_t threads[4];
static uint32_t heap[CPUS];
static _Alignas(8) uint8_t bounce[WP_PERF_RECORD_MAX];
static struct wp_perf perf;

/* The test's own process, with CPU samples by two events of CPUs. */
static int setup(void **state)
{
	(void)state;
	assert_int_equal(wp_process_open(&process, getpid(), NULL), 0);
	memset(pages, 0, sizeof(pages));
	memset(data, 0xee, sizeof(data));
	events[0] = (struct wp_perf_event){ .id = MAIN_ID,
					    .tid = -1,
					    .kind = WP_PERF_KIND_MAIN,
					    .period = 4800 };
	events[1] = (struct wp_perf_event){ .id = SWITCH_ID,
					    .tid = -1,
					    .kind = WP_PERF_KIND_SWITCHES };
	perf = (struct wp_perf){
		.process = &process,
		.options = { .period_ns = 5000,
			     .switch_sample_every = 7,
			     .tasks = true },
		.sample_type = WP_PERF_SAMPLE_BASE,
		.cpus = cpus,
		.ncpus = CPUS,
		.events = events,
		.nevents = 2,
		.threads = threads,
		.heap = heap,
		.bounce = bounce,
	};
	perf.facts.main_scope = WP_PERF_TASK;
	for (int i = 0; i < CPUS; i++)
		cpus[i].ring = (struct wp_perf_ring){ .page = &pages[i],
						      .data = data[i],
						      .size = RING };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wp_process_clear(&process);
	return 0;
}

/* The kernel writes WORDS[0..n) to the ring of CPU. */
static void put(int cpu, const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t at = pages[cpu].data_head % RING;

		memcpy(data[cpu] + at, &words[i], 8);
		pages[cpu].data_head += 8;
	}
}

static uint64_t pair(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

static uint64_t header(uint32_t type, size_t nwords)
{
	return type | (uint64_t)(8 * nwords) << 48;
}

/* A sample of thread TID of process PID by event ID. */
static void put_sample(int cpu, uint64_t time_ns, pid_t pid, pid_t tid,
		       uint64_t id)
{
	const uint64_t words[] = { header(PERF_RECORD_SAMPLE, 6),
				   id,
				   0x401000,
				   pair((uint32_t)pid, (uint32_t)tid),
				   time_ns,
				   pair((uint32_t)cpu, 0) };

	put(cpu, words, 6);
}

/* A record that thread TID wrote: BODY[0..n), and what follows all but samples. */
static void put_other(int cpu, uint32_t type, uint64_t time_ns, pid_t tid,
		      const uint64_t *body, size_t n, uint64_t id)
{
	uint64_t words[16];

	words[0] = header(type, 1 + n + 4);
	if (n)
		memcpy(words + 1, body, 8 * n);
	words[n + 1] = pair((uint32_t)getpid(), (uint32_t)tid);
	words[n + 2] = time_ns;
	words[n + 3] = pair((uint32_t)cpu, 0);
	words[n + 4] = id;
	put(cpu, words, n + 5);
}

static void put_task(int cpu, uint32_t type, uint64_t time_ns, pid_t tid,
		     pid_t parent_tid)
{
	uint32_t pid = (uint32_t)getpid();
	const uint64_t body[] = { pair(pid, pid),
				  pair((uint32_t)tid, (uint32_t)parent_tid),
				  time_ns };

	put_other(cpu, type, time_ns, parent_tid, body, 3, MAIN_ID);
}

/* The time of the next record before UNTIL_NS; 0: there is none. */
static uint64_t next(uint64_t until_ns)
{
	struct wp_perf_record record;

	return wp_perf_next(&perf, until_ns, &record) ? record.time_ns : 0;
}

static void records_of_all_rings_come_in_order_of_time(void **state)
{
	uint64_t last = 0;

	(void)state;
	srandom(1);
	for (int cpu = 0; cpu < CPUS; cpu++) {
		uint64_t time_ns = 1;

		for (int i = 0; i < 50; i++) {
			time_ns += (uint64_t)random() % 10;
			put_sample(cpu, time_ns, getpid(), 1, MAIN_ID);
		}
	}
	for (int i = 0; i < 50 * CPUS; i++) {
		uint64_t time_ns = next(UINT64_MAX);

		assert_true(time_ns >= last);
		last = time_ns;
	}
	assert_int_equal(next(UINT64_MAX), 0);
	assert_int_equal(perf.stats.records, 50 * CPUS);
	assert_int_equal(perf.stats.late, 0);
	/* All room is given back. */
	for (int cpu = 0; cpu < CPUS; cpu++)
		assert_int_equal(pages[cpu].data_tail, pages[cpu].data_head);
}

static void what_is_written_meanwhile_comes_after_the_end(void **state)
{
	(void)state;
	put_sample(0, 100, getpid(), 1, MAIN_ID);
	put_sample(1, 300, getpid(), 1, MAIN_ID);
	assert_int_equal(next(UINT64_MAX), 100);
	put_sample(2, 200, getpid(), 1, MAIN_ID);
	assert_int_equal(next(UINT64_MAX), 300);
	assert_int_equal(next(UINT64_MAX), 0);
	assert_int_equal(next(UINT64_MAX), 200);
	assert_int_equal(perf.stats.late, 1);
	assert_int_equal(next(UINT64_MAX), 0);
}

static void later_records_stay(void **state)
{
	(void)state;
	put_sample(0, 100, getpid(), 1, MAIN_ID);
	put_sample(0, 200, getpid(), 1, MAIN_ID);
	assert_int_equal(next(100), 0);
	assert_int_equal(next(101), 100);
	assert_int_equal(next(200), 0);
	assert_int_equal(next(201), 200);
	assert_int_equal(next(UINT64_MAX), 0);
}

static void samples_get_type_and_period_of_their_event(void **state)
{
	struct wp_perf_record record;

	(void)state;
	put_sample(0, 100, getpid(), 1, MAIN_ID);
	put_sample(0, 200, getpid(), 1, SWITCH_ID);
	assert_true(wp_perf_next(&perf, UINT64_MAX, &record));
	assert_int_equal(record.type, WP_PERF_SAMPLE_CPU);
	assert_int_equal(record.period, 4800);
	assert_true(wp_perf_next(&perf, UINT64_MAX, &record));
	assert_int_equal(record.type, WP_PERF_SAMPLE_SWITCH);
	assert_int_equal(record.period, 7);
	assert_int_equal(perf.stats.switch_samples, 1);
}

static uint64_t next_period(void)
{
	struct wp_perf_record record;

	assert_true(wp_perf_next(&perf, UINT64_MAX, &record));
	return record.period;
}

static void a_sample_stands_for_the_period_of_its_time(void **state)
{
	(void)state;
	events[0].tid = 1;
	events[0].period_before = 4000;
	events[0].changed_ns = 150;
	put_sample(0, 100, getpid(), 1, MAIN_ID);
	put_sample(0, 200, getpid(), 1, MAIN_ID);
	/* By an inherited event, whose period is one drawn before. */
	put_sample(0, 300, getpid(), 2, MAIN_ID);
	assert_int_equal(next_period(), 4000 + DRAWN);
	assert_int_equal(next_period(), 4800 + DRAWN);
	assert_int_equal(next_period(), 5000);
	assert_int_equal(events[0].nsamples, 3);
}

static void others_are_left_out(void **state)
{
	(void)state;
	put_sample(0, 100, getpid() + 1, 1, MAIN_ID);
	put_sample(0, 200, getpid(), 1, OTHER_ID);
	/* A thread that has ended has no tid. */
	put_sample(0, 300, getpid(), -1, MAIN_ID);
	put_sample(0, 400, getpid(), 1, MAIN_ID);
	assert_int_equal(next(UINT64_MAX), 400);
	assert_int_equal(next(UINT64_MAX), 0);
	assert_int_equal(perf.stats.foreign, 3);
}

static void records_of_tasks_come_only_if_asked_for(void **state)
{
	(void)state;
	put_task(0, PERF_RECORD_FORK, 100, 8, 7);
	put_task(0, PERF_RECORD_EXIT, 200, 8, 8);
	assert_int_equal(next(UINT64_MAX), 100);
	assert_int_equal(next(UINT64_MAX), 200);
	assert_int_equal(next(UINT64_MAX), 0);
	perf.options.tasks = false;
	put_task(0, PERF_RECORD_FORK, 300, 8, 7);
	assert_int_equal(next(UINT64_MAX), 0);
}

static void a_thread_with_an_event_of_its_own_is_not_told_twice(void **state)
{
	(void)state;
	/* Thread 8 was listed, and had inherited the event of 7. */
	events[0].tid = 7;
	events[1].tid = 8;
	threads[0] = 7;
	threads[1] = 8;
	perf.nthreads = 2;
	put_sample(0, 100, getpid(), 8, MAIN_ID);
	put_sample(0, 110, getpid(), 8, SWITCH_ID);
	put_sample(0, 120, getpid(), 9, MAIN_ID);
	assert_int_equal(next(UINT64_MAX), 110);
	assert_int_equal(next(UINT64_MAX), 120);
	/* Another thread with the tid has what it inherited alone. */
	put_task(0, PERF_RECORD_FORK, 200, 8, 7);
	put_sample(0, 210, getpid(), 8, MAIN_ID);
	assert_int_equal(next(UINT64_MAX), 0);
	assert_int_equal(next(UINT64_MAX), 200);
	assert_int_equal(next(UINT64_MAX), 210);
	assert_int_equal(perf.nthreads, 1);
}

/* Thread 7 has executed a program: it has the first one's tid, and its own event. */
static void a_thread_that_took_over_the_first_tid_is_told(void **state)
{
	(void)state;
	events[0].tid = 7;
	threads[0] = 7;
	threads[1] = getpid();
	perf.nthreads = 2;
	put_sample(0, 100, getpid(), getpid(), MAIN_ID);
	assert_int_equal(next(UINT64_MAX), 100);
}

static void losses_are_told_whoever_was_on_the_cpu(void **state)
{
	const uint64_t lost[] = { MAIN_ID, 17 }, throttle[] = { 1, 2, 3 };
	struct wp_perf_record record;

	(void)state;
	put_other(0, PERF_RECORD_LOST, 100, 1, lost, 2, OTHER_ID);
	put_other(0, PERF_RECORD_THROTTLE, 200, 1, throttle, 3, OTHER_ID);
	put_other(0, PERF_RECORD_UNTHROTTLE, 300, 1, throttle, 3, OTHER_ID);
	assert_true(wp_perf_next(&perf, UINT64_MAX, &record));
	assert_int_equal(record.type, WP_PERF_LOST);
	assert_int_equal(record.lost, 17);
	assert_true(wp_perf_next(&perf, UINT64_MAX, &record));
	assert_int_equal(record.type, WP_PERF_THROTTLE);
	assert_true(wp_perf_next(&perf, UINT64_MAX, &record));
	assert_int_equal(record.type, WP_PERF_UNTHROTTLE);
	assert_int_equal(perf.stats.lost, 17);
	assert_int_equal(perf.stats.throttled, 1);
}

static void a_ring_of_garbage_does_not_hold_up_the_others(void **state)
{
	static const uint64_t garbage[] = {
		/* Sizes of 0, of 12, of more than there is; no such type. */
		0x0000000000000009,
		0x000c000000000009,
		0xfff8000000000009,
		0x000800000000ffff,
	};
	size_t n = sizeof(garbage) / sizeof(*garbage);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		put_sample(0, 10 * i + 1, getpid(), 1, MAIN_ID);
		put(0, &garbage[i], 1);
		put_sample(1, 10 * i + 2, getpid(), 1, MAIN_ID);
		assert_int_equal(next(UINT64_MAX), 10 * i + 1);
		assert_int_equal(next(UINT64_MAX), 10 * i + 2);
		assert_int_equal(next(UINT64_MAX), 0);
		assert_int_equal(perf.stats.malformed, i + 1);
		assert_int_equal(pages[0].data_tail, pages[0].data_head);
	}
	pages[1].data_head += 3 * RING;
	put_sample(2, 100, getpid(), 1, MAIN_ID);
	assert_int_equal(next(UINT64_MAX), 100);
	assert_int_equal(perf.stats.malformed, n + 1);
}

/* Every byte may be anything: each call returns, and the rings are used up. */
static void random_bytes_are_survived(void **state)
{
	struct wp_perf_record record;
	uint64_t words[RING / 8];

	(void)state;
	srandom(2);
	for (int round = 0; round < 2000; round++) {
		size_t calls = 0;

		for (int cpu = 0; cpu < CPUS; cpu++) {
			for (size_t i = 0; i < RING / 8; i++)
				words[i] = random() % 3 ?
						   (uint64_t)random() % 64
								   << 48 |
							   (uint64_t)random() %
								   16 :
						   (uint64_t)random() << 32;
			put(cpu, words, RING / 8);
		}
		while (wp_perf_next(&perf, UINT64_MAX, &record))
			assert_true(calls++ < CPUS * RING / 8);
		for (int cpu = 0; cpu < CPUS; cpu++)
			pages[cpu].data_tail = cpus[cpu].ring.pos =
				pages[cpu].data_head;
		perf.loaded = perf.handed_out = false;
	}
	assert_true(perf.stats.malformed > 0);
}

/* Its pid may be another's by now. */
static void what_comes_after_the_process_is_not_its_own(void **state)
{
	pid_t child = fork();
	struct wp_process gone;

	(void)state;
	if (!child) {
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(wp_process_open(&gone, child, NULL), 0);
	perf.process = &gone;
	put_sample(0, 100, child, child, MAIN_ID);
	assert_int_equal(next(UINT64_MAX), 100);
	assert_int_equal(next(UINT64_MAX), 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	put_sample(0, 200, child, child, MAIN_ID);
	put_sample(0, wp_clock_ns() + WP_NS_PER_S, child, child, MAIN_ID);
	assert_int_equal(next(UINT64_MAX), 200);
	assert_int_equal(next(UINT64_MAX), 0);
	wp_process_clear(&gone);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(records_of_all_rings_come_in_order_of_time),
		TEST(what_is_written_meanwhile_comes_after_the_end),
		TEST(later_records_stay),
		TEST(samples_get_type_and_period_of_their_event),
		TEST(a_sample_stands_for_the_period_of_its_time),
		TEST(others_are_left_out),
		TEST(records_of_tasks_come_only_if_asked_for),
		TEST(a_thread_with_an_event_of_its_own_is_not_told_twice),
		TEST(a_thread_that_took_over_the_first_tid_is_told),
		TEST(losses_are_told_whoever_was_on_the_cpu),
		TEST(a_ring_of_garbage_does_not_hold_up_the_others),
		TEST(random_bytes_are_survived),
		TEST(what_comes_after_the_process_is_not_its_own),
	};

	return cmocka_run_group_tests_name("perf_next", tests, NULL, NULL);
}
