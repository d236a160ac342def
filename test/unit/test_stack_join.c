/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  stack_join.h on this process's memory, and on files of /proc/PID/task
 * that the test writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../src/sample/stack_join.h"

enum { LEN = 8192, MORE = 4096, TID = 7, OTHER_TID = TID + WP_STACK_JOINS };

struct thread {
	struct wp_process process;
	struct wp_address_space space;
	struct wp_stack_copy copy;
	struct wp_stack_joins joins;
	uint64_t ntick;
	char dir[32];
	uint8_t stack[2 * LEN];
};

/* Moments that were waited for, and by what run time grows in each. */
static int nmoments, grows;

static void write_file(const struct thread *thread, pid_t tid, const char *name,
		       const char *text)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d", thread->dir, tid);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%d/%s", thread->dir, tid, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void set_counts(const struct thread *thread, pid_t tid, int arrivals,
		       int slept, int preempted)
{
	char text[128];

	write_file(thread, tid, "syscall", "running\n");
	snprintf(text, sizeof(text), "%d 20 %d\n", 1000 + nmoments * grows,
		 arrivals);
	write_file(thread, tid, "schedstat", text);
	snprintf(text, sizeof(text),
		 "Name:\tx\nvoluntary_ctxt_switches:\t%d\n"
		 "nonvoluntary_ctxt_switches:\t%d\n",
		 slept, preempted);
	write_file(thread, tid, "status", text);
}

static uint64_t end_of(const struct thread *thread)
{
	return (uintptr_t)thread->stack + LEN - WP_FOLLOW_SAME;
}

/* It sleeps with SP. */
static void set_sleep(const struct thread *thread, uint64_t sp_avma)
{
	char text[96];

	snprintf(text, sizeof(text),
		 "35 0x1 0x2 0x3 0x4 0x5 0x6 0x%lx 0x1234\n",
		 (unsigned long)sp_avma);
	write_file(thread, TID, "syscall", text);
}

/* A sample of LEN bytes was copied, and the walk has read MORE above it. */
static void sample(struct thread *thread)
{
	struct wp_stack_copy *copy = &thread->copy;
	const uint64_t above = (uintptr_t)thread->stack + LEN;
	struct wp_mem mem;
	uint64_t word;

	wp_stack_copy_set(copy, &thread->space, (uintptr_t)thread->stack,
			  thread->stack, LEN);
	copy->may_follow = true;
	mem = wp_stack_copy_mem(copy);
	assert_int_equal(mem.read(mem.ctx, above - 8, &word, 8), 0);
	assert_int_equal(mem.read(mem.ctx, above, &word, 8), 0);
	assert_int_equal(mem.read(mem.ctx, above + MORE - 8, &word, 8), 0);
}

/* What happens in the next moments that are waited for, NULL: nothing. */
static void (*in_moment)(struct thread *thread);
static struct thread *waiting;

int nanosleep(const struct timespec *wanted, struct timespec *rest)
{
	(void)wanted;
	(void)rest;
	nmoments++;
	if (in_moment)
		in_moment(waiting);
	return 0;
}

static int set_up(void **state)
{
	struct thread *thread = calloc(1, sizeof(*thread));
	char text[128];
	int n;

	assert_non_null(thread);
	*state = waiting = thread;
	in_moment = NULL;
	nmoments = 0;
	thread->process = (struct wp_process)WP_PROCESS_INIT;
	assert_int_equal(wp_process_open(&thread->process, getpid(), NULL), 0);
	strcpy(thread->dir, "/tmp/wp-join-XXXXXX");
	assert_non_null(mkdtemp(thread->dir));
	close(thread->process.task_fd);
	thread->process.task_fd = open(thread->dir, O_RDONLY | O_DIRECTORY);
	thread->space = (struct wp_address_space)WP_ADDRESS_SPACE_INIT;
	thread->space.process = &thread->process;
	n = snprintf(text, sizeof(text), "%lx-%lx rw-p 00000000 00:00 0\n",
		     (unsigned long)thread->stack,
		     (unsigned long)(thread->stack + sizeof(thread->stack)));
	assert_int_equal(wp_maps_parse(&thread->space.maps, text, (size_t)n),
			 0);
	assert_int_equal(wp_stack_copy_init(&thread->copy), 0);
	sample(thread);
	return 0;
}

static void remove_files(const struct thread *thread, pid_t tid)
{
	static const char *const names[] = { "syscall", "schedstat", "status",
					     "" };
	char path[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%d/%s", thread->dir, tid,
			 names[i]);
		(void)remove(path);
	}
}

static int tear_down(void **state)
{
	struct thread *thread = *state;

	remove_files(thread, TID);
	remove_files(thread, OTHER_TID);
	assert_int_equal(rmdir(thread->dir), 0);
	wp_stack_copy_clear(&thread->copy);
	wp_maps_clear(&thread->space.maps);
	wp_process_clear(&thread->process);
	free(thread);
	return 0;
}

/* In a tick of its own. */
static bool holds(struct thread *thread, pid_t tid)
{
	return wp_stack_join_holds(&thread->joins, &thread->copy, tid,
				   ++thread->ntick);
}

/* Who has a CPU for a moment in which nothing changes has not left. */
static void who_has_a_cpu_has_not_left(void **state)
{
	struct thread *thread = *state;

	set_counts(thread, TID, 5, 1, 3);
	assert_true(holds(thread, TID));
}

/* A thread that waits for a CPU may have overwritten what is above the end, and come to
 * the end later. */
static void of_who_has_no_cpu_nothing_is_known(void **state)
{
	struct thread *thread = *state;

	set_counts(thread, TID, 4, 1, 3);
	assert_false(holds(thread, TID));
}

/* What was once found to be of one stack is. */
static void what_is_known_needs_no_cpu(void **state)
{
	struct thread *thread = *state;

	set_counts(thread, TID, 5, 1, 3);
	assert_true(holds(thread, TID));
	set_counts(thread, TID, 5, 1, 4);
	sample(thread);
	assert_true(holds(thread, TID));
	/* Another stack is not, nor is another end of it. */
	thread->stack[LEN + 8] = 1;
	sample(thread);
	assert_false(holds(thread, TID));
	thread->stack[LEN + 8] = 0;
	thread->stack[LEN - 8] = 1;
	sample(thread);
	assert_false(holds(thread, TID));
	thread->stack[LEN - 8] = 0;
	sample(thread);
	assert_true(holds(thread, TID));
	/* Nor is it of another thread. */
	set_counts(thread, OTHER_TID, 5, 1, 4);
	assert_int_equal(OTHER_TID % WP_STACK_JOINS, TID % WP_STACK_JOINS);
	assert_false(holds(thread, OTHER_TID));
}

static void who_sleeps_below_the_end_has_not_left(void **state)
{
	struct thread *thread = *state;

	set_sleep(thread, end_of(thread) - 64);
	assert_true(holds(thread, TID));
}

static void who_sleeps_above_the_end_has_left(void **state)
{
	struct thread *thread = *state;

	set_sleep(thread, end_of(thread) + 64);
	assert_false(holds(thread, TID));
}

static void what_has_changed_was_left(void **state)
{
	struct thread *thread = *state;

	set_counts(thread, TID, 5, 1, 3);
	thread->stack[LEN + 8] = 1;
	assert_false(holds(thread, TID));
	thread->stack[LEN + 8] = 0;
	thread->stack[LEN - 8] = 1;
	assert_false(holds(thread, TID));
	/* Below the end, and above what was read, it may. */
	thread->stack[LEN - 8] = 0;
	thread->stack[0] = thread->stack[LEN + MORE] = 1;
	assert_true(holds(thread, TID));
}

static void leaves_and_comes_back(struct thread *thread)
{
	set_counts(thread, TID, 4 + nmoments, 1, 3 + nmoments);
}

static void who_had_a_cpu_in_between_has_not_left(void **state)
{
	struct thread *thread = *state;

	set_counts(thread, TID, 4, 1, 3);
	in_moment = leaves_and_comes_back;
	assert_true(holds(thread, TID));
	assert_int_equal(nmoments, 1);
}

static void leaves(struct thread *thread)
{
	set_counts(thread, TID, 5, 1, 3 + nmoments);
}

/* It may have been about to come to the end. */
static void who_has_left_its_cpu_is_waited_for(void **state)
{
	struct thread *thread = *state;

	set_counts(thread, TID, 5, 1, 3);
	in_moment = leaves;
	assert_false(holds(thread, TID));
	assert_true(nmoments > 10);
}

static void runs_on(struct thread *thread)
{
	grows = 1;
	set_counts(thread, TID, 2, 1, 3);
}

/* Arrivals that are not counted, from Linux 6.12 on. */
static void run_time_that_grows_is_a_cpu(void **state)
{
	struct thread *thread = *state;

	set_counts(thread, TID, 2, 1, 3);
	in_moment = runs_on;
	assert_true(holds(thread, TID));
	assert_int_equal(nmoments, 1);
	grows = 0;
}

static void overwrites(struct thread *thread)
{
	thread->stack[LEN + 8]++;
}

static void what_changes_in_the_moment_was_left(void **state)
{
	struct thread *thread = *state;

	set_counts(thread, TID, 5, 1, 3);
	in_moment = overwrites;
	assert_false(holds(thread, TID));
	assert_int_equal(nmoments, 1);
}

static void falls_asleep(struct thread *thread)
{
	set_sleep(thread, end_of(thread) - 64);
}

static void who_falls_asleep_is_looked_at_there(void **state)
{
	struct thread *thread = *state;

	set_counts(thread, TID, 4, 1, 3);
	in_moment = falls_asleep;
	assert_true(holds(thread, TID));
}

/* On a signal's stack, or a coroutine's. */
static void who_sleeps_on_another_stack_may_have_left(void **state)
{
	struct thread *thread = *state;

	set_sleep(thread, 4096);
	assert_false(holds(thread, TID));
}

static void of_who_has_ended_nothing_is_known(void **state)
{
	assert_false(holds(*state, TID));
}

/* A kernel that does not count. */
static void without_counts_a_moment_is_enough(void **state)
{
	struct thread *thread = *state;
	char path[64];

	set_counts(thread, TID, 0, 1, 3);
	assert_true(holds(thread, TID));
	snprintf(path, sizeof(path), "%s/%d/schedstat", thread->dir, TID);
	assert_int_equal(unlink(path), 0);
	thread->stack[LEN + 8] = 1;
	sample(thread);
	assert_true(holds(thread, TID));
	assert_int_equal(nmoments, 2);
}

/* However many samples there are. */
static void a_tick_waits_for_so_long_alone(void **state)
{
	struct thread *thread = *state;
	int most;

	set_counts(thread, TID, 4, 1, 3);
	assert_false(holds(thread, TID));
	most = nmoments;
	for (int i = 0; i < 10; i++)
		assert_false(wp_stack_join_holds(&thread->joins, &thread->copy,
						 TID, thread->ntick));
	assert_int_equal(nmoments, most);
	assert_false(holds(thread, TID));
	assert_int_equal(nmoments, 2 * most);
}

static void a_sample_that_holds_all_is_not_asked_of(void **state)
{
	struct thread *thread = *state;

	set_counts(thread, TID, 4, 1, 3);
	wp_stack_copy_set(&thread->copy, &thread->space,
			  (uintptr_t)thread->stack, thread->stack, LEN);
	assert_true(holds(thread, TID));
}

#define JOIN_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOIN_TEST(who_has_a_cpu_has_not_left),
		JOIN_TEST(of_who_has_no_cpu_nothing_is_known),
		JOIN_TEST(what_is_known_needs_no_cpu),
		JOIN_TEST(who_sleeps_below_the_end_has_not_left),
		JOIN_TEST(who_sleeps_above_the_end_has_left),
		JOIN_TEST(what_has_changed_was_left),
		JOIN_TEST(who_had_a_cpu_in_between_has_not_left),
		JOIN_TEST(who_has_left_its_cpu_is_waited_for),
		JOIN_TEST(run_time_that_grows_is_a_cpu),
		JOIN_TEST(what_changes_in_the_moment_was_left),
		JOIN_TEST(who_falls_asleep_is_looked_at_there),
		JOIN_TEST(who_sleeps_on_another_stack_may_have_left),
		JOIN_TEST(of_who_has_ended_nothing_is_known),
		JOIN_TEST(without_counts_a_moment_is_enough),
		JOIN_TEST(a_tick_waits_for_so_long_alone),
		JOIN_TEST(a_sample_that_holds_all_is_not_asked_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
