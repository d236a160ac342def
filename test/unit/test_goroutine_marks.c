/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  What two looks at goroutines made by hand say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "few_allocations.h"

#include "go_maker.h"

#include "wallprof/goroutine_marks.h"

enum { MANY = 40 };

static struct wp_goroutine_mark before[MANY], after[MANY];
static struct wp_goroutine_marks first, second;
static struct wp_goroutine_change change;

static struct wp_goroutine_mark waiting(uint64_t id, uint64_t created)
{
	return (struct wp_goroutine_mark){
		.words = { .id = id,
			   .sp_avma = 0x1000 * id,
			   .pc_avma = 0x400000,
			   .status = 4,
			   .state = WP_GOROUTINE_WAITING },
		.created_avma = created,
		.start_avma = 0x401000,
		.reason = 14,
		.waits_inside = true,
	};
}

/* N of one group at the first look, MORE of it besides at the second. */
static void make(uint32_t n, uint32_t more)
{
	first = (struct wp_goroutine_marks){ .v = before, .n = n };
	second = (struct wp_goroutine_marks){ .v = after, .n = n + more };
	for (uint32_t i = 0; i < MANY; i++)
		before[i] = after[i] = waiting(i + 1, 0x402000);
}

static void compare(void)
{
	assert_int_equal(wp_goroutine_marks_compare(&first, &second, &change),
			 0);
}

static void a_group_that_only_grows_is_told(void **state)
{
	(void)state;
	make(10, 10);
	compare();
	assert_int_not_equal(change.grown_id, 0);
	assert_int_equal(change.nbefore, 10);
	assert_int_equal(change.nafter, 20);
	make(10, 9);
	compare();
	assert_int_equal(change.grown_id, 0);
	make(9, 20);
	compare();
	assert_int_equal(change.grown_id, 0);
}

static void one_that_has_run_or_ended_frees_its_group(void **state)
{
	(void)state;
	make(12, 20);
	after[3].words.seq++;
	compare();
	assert_int_equal(change.grown_id, 0);
	make(12, 20);
	memmove(after + 3, after + 4, 28 * sizeof(*after));
	second.n--;
	compare();
	assert_int_equal(change.grown_id, 0);
	/* It waits for something else now. */
	make(12, 20);
	after[3].reason = 9;
	compare();
	assert_int_equal(change.grown_id, 0);
}

static void groups_are_told_apart(void **state)
{
	(void)state;
	/* One ended, but of another group. */
	make(30, 10);
	before[0].created_avma = after[0].created_avma = 0x403000;
	after[0].words.seq++;
	compare();
	assert_int_equal(change.nbefore, 29);
	assert_int_equal(change.nafter, 39);
	/* Of two the one that grows more. */
	make(20, 20);
	for (uint32_t i = 0; i < 10; i++)
		before[i].created_avma = after[i].created_avma = 0x403000;
	for (uint32_t i = 28; i < MANY; i++)
		after[i].created_avma = 0x403000;
	compare();
	assert_int_equal(change.nafter - change.nbefore, 12);
}

/* Those that wait have ids from 1 on: of ENDED the youngest is ID. */
static struct wp_goroutine_ended ended;

static void note_ended(uint64_t id)
{
	ended = (struct wp_goroutine_ended){ 0x402000, 0x401000, id };
	second.ended = &ended;
	second.nended = 1;
}

static void older_ones_that_have_ended_make_it_a_queue(void **state)
{
	(void)state;
	make(10, 10);
	/* Some come from a stock of ids. */
	note_ended(10);
	compare();
	assert_int_not_equal(change.grown_id, 0);
	assert_true(change.is_queue);
	assert_int_equal(change.nafter, 20);
	/* Half of them were overtaken. */
	note_ended(11);
	compare();
	assert_int_not_equal(change.grown_id, 0);
	assert_false(change.is_queue);
	/* Those that have ended were of another go statement. */
	note_ended(5);
	ended.created_avma = 0x403000;
	compare();
	assert_false(change.is_queue);
}

static void a_leak_is_told_before_a_queue(void **state)
{
	(void)state;
	for (int way = 0; way < 2; way++) {
		/* Two groups of 10 that get as many more; of one some have ended. */
		make(20, 20);
		for (uint32_t i = 0; i < MANY; i++)
			if (i % 2 == (uint32_t)way)
				before[i].created_avma = after[i].created_avma =
					0x403000;
		note_ended(1);
		compare();
		assert_int_not_equal(change.grown_id, 0);
		assert_false(change.is_queue);
	}
}

static void what_waits_for_the_world_outside_is_no_group(void **state)
{
	(void)state;
	make(15, 15);
	after[29].waits_inside = false;
	compare();
	assert_int_equal(change.grown_id, 0);
	make(15, 15);
	for (uint32_t i = 0; i < 30; i++)
		after[i].is_runtime = true;
	compare();
	assert_int_equal(change.grown_id, 0);
}

static void all_that_wait_inside(void **state)
{
	(void)state;
	make(5, 0);
	before[0].is_runtime = after[0].is_runtime = true;
	after[0].words.seq++;
	compare();
	assert_true(change.all_wait_inside);
	assert_false(change.takes_signals);
	assert_int_equal(change.nown, 4);
	after[1].takes_signals = true;
	after[1].waits_inside = false;
	compare();
	assert_true(change.all_wait_inside);
	assert_true(change.takes_signals);
	assert_int_equal(change.nown, 3);
	after[2].words.seq++;
	compare();
	assert_false(change.all_wait_inside);
	make(5, 1);
	compare();
	assert_false(change.all_wait_inside);
}

static struct made_go made;
static struct wp_go_program *program;

/* The made program's second function becomes FUNCTION. */
static void open_program(const char *function)
{
	made_go_init(&made);
	strcpy((char *)made.file + MADE_NAMES + 10, function);
	made_reason(&made, 5, "finalizer wait");
	made_reason(&made, 6, "cleanup wait");
	assert_int_equal(made_open(&made, &program, NULL), 0);
}

/* One in STATE for REASON that began with that function. */
static struct wp_goroutine_mark mark_of(enum wp_goroutine_state state,
					uint8_t reason)
{
	const struct wp_goroutine_words words = { .id = 7,
						  .state = (uint8_t)state };
	const struct wp_goroutine_more more = {
		.start_avma = MADE_TEXT + MADE_BIAS + MADE_FUNC,
		.reason = reason,
	};

	return wp_goroutine_marks_make(program, &words, &more);
}

/* It may end the waits of all others. */
static void what_runs_a_finalizer_is_the_programs(void **state)
{
	static const struct {
		const char *function;
		uint8_t idle;
		bool is_given;
	} cases[] = {
		{ "runtime.runfinq", 5, true },
		{ "runtime.runFinalizers", 5, true },
		{ "runtime.runCleanups", 6, true },
		{ "runtime.bgsweep", 5, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const bool is_runtime = !cases[i].is_given;

		open_program(cases[i].function);
		assert_true(mark_of(WP_GOROUTINE_WAITING, cases[i].idle)
				    .is_runtime);
		assert_int_equal(
			mark_of(WP_GOROUTINE_RUNNING, cases[i].idle).is_runtime,
			is_runtime);
		assert_int_equal(mark_of(WP_GOROUTINE_WAITING, 4).is_runtime,
				 is_runtime);
		assert_true(mark_of(WP_GOROUTINE_WAITING, 4).waits_inside);
		make(5, 0);
		after[0].is_runtime = before[0].is_runtime = true;
		after[1] = mark_of(WP_GOROUTINE_RUNNING, cases[i].idle);
		after[1].words.id = 2;
		compare();
		assert_int_equal(change.all_wait_inside, is_runtime);
		wp_go_program_free(program);
	}
}

/* As the garbage collector marks who waits for what none can do any more. */
static void one_that_has_leaked_waits_as_before(void **state)
{
	(void)state;
	open_program("main.wait");
	assert_true(mark_of(WP_GOROUTINE_LEAKED, 3).waits_inside);
	assert_false(mark_of(WP_GOROUTINE_LEAKED, 2).waits_inside);
	assert_false(mark_of(WP_GOROUTINE_RUNNABLE, 3).waits_inside);
	wp_go_program_free(program);
	make(10, 10);
	after[3].words.status = 10;
	after[3].words.state = WP_GOROUTINE_LEAKED;
	compare();
	assert_int_not_equal(change.grown_id, 0);
	make(10, 10);
	before[3].words.status = 10;
	before[3].words.state = WP_GOROUTINE_LEAKED;
	compare();
	assert_int_not_equal(change.grown_id, 0);
	make(10, 10);
	after[3].words.status = 1;
	after[3].words.state = WP_GOROUTINE_RUNNABLE;
	compare();
	assert_int_equal(change.grown_id, 0);
}

static void what_was_not_read_says_nothing(void **state)
{
	(void)state;
	make(15, 15);
	second.nunread = 1;
	compare();
	assert_int_equal(change.grown_id, 0);
	assert_false(change.all_wait_inside);
	make(15, 15);
	first.n = 0;
	compare();
	assert_int_equal(change.grown_id, 0);
	assert_false(change.all_wait_inside);
}

static void what_has_no_goroutine_any_more_says_nothing(void **state)
{
	(void)state;
	make(15, 0);
	second.n = 0;
	compare();
	assert_int_equal(change.grown_id, 0);
	assert_false(change.all_wait_inside);
}

/* This test is none of Go. */
static void a_program_without_goroutines_has_no_marks(void **state)
{
	struct wp_process process = WP_PROCESS_INIT;
	struct wp_goroutine_marks marks = WP_GOROUTINE_MARKS_INIT;

	(void)state;
	assert_int_equal(wp_process_open(&process, getpid(), NULL), 0);
	assert_int_equal(wp_goroutine_marks_read(&marks, &process), 0);
	assert_int_equal(marks.n, 0);
	wp_process_clear(&process);
	/* Who has ended has none either. */
	assert_int_equal(wp_goroutine_marks_read(&marks, &process), 0);
	assert_int_equal(marks.n, 0);
}

#ifdef CAN_FAIL
static void without_memory_there_are_no_marks(void **state)
{
	struct wp_process process = WP_PROCESS_INIT;
	struct wp_goroutine_marks marks = WP_GOROUTINE_MARKS_INIT;
	long n = 0, had;
	int rc;

	(void)state;
	assert_int_equal(wp_process_open(&process, getpid(), NULL), 0);
	assert_int_equal(wp_goroutine_marks_read(&marks, &process), 0);
	had = live;
	do {
		allocations_left = n++;
		rc = wp_goroutine_marks_read(&marks, &process);
		allocations_left = -1;
		assert_true(!rc || rc == -ENOMEM);
		assert_int_equal(live, had);
	} while (rc && n < 1000);
	assert_int_equal(rc, 0);
	assert_true(n > 5);
	wp_process_clear(&process);
	make(10, 10);
	allocations_left = 0;
	assert_int_equal(wp_goroutine_marks_compare(&first, &second, &change),
			 -ENOMEM);
	allocations_left = -1;
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_that_only_grows_is_told),
		cmocka_unit_test(one_that_has_run_or_ended_frees_its_group),
		cmocka_unit_test(groups_are_told_apart),
		cmocka_unit_test(older_ones_that_have_ended_make_it_a_queue),
		cmocka_unit_test(a_leak_is_told_before_a_queue),
		cmocka_unit_test(what_waits_for_the_world_outside_is_no_group),
		cmocka_unit_test(all_that_wait_inside),
		cmocka_unit_test(what_runs_a_finalizer_is_the_programs),
		cmocka_unit_test(one_that_has_leaked_waits_as_before),
		cmocka_unit_test(what_was_not_read_says_nothing),
		cmocka_unit_test(what_has_no_goroutine_any_more_says_nothing),
		cmocka_unit_test(a_program_without_goroutines_has_no_marks),
#ifdef CAN_FAIL
		cmocka_unit_test(without_memory_there_are_no_marks),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
