/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  thread_files.h: which files of a thread are kept open, and what is
 * said of one that cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/resource.h>

#include "one_target.h"

enum { TID = 7 };

static struct wp_thread *t;

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	options = fake_target_options();
	fake_target_add_thread(&fake, TID, "seven");
	return 0;
}

static void start(void)
{
	start_target();
	assert_int_equal(wp_threads_update(fake.target), 0);
	t = fake.target->threads[0];
}

static bool is_kept(enum wp_thread_file file)
{
	return t->files.fds[file] >= 0;
}

static void read_file(enum wp_thread_file file, const char *want)
{
	char text[256];
	ssize_t n = wp_thread_files_read(t, file, text, sizeof(text));

	assert_int_equal(n, strlen(want));
	assert_string_equal(text, want);
}

/* A file holds a page of the kernel's while it is open. */
static void a_file_is_kept_from_its_second_read(void **state)
{
	int fds[WP_NTHREAD_FILES];

	(void)state;
	start();
	fake_target_write(&fake, TID, "stat", "one\n");
	read_file(WP_THREAD_STAT, "one\n");
	assert_false(is_kept(WP_THREAD_STAT));
	read_file(WP_THREAD_STAT, "one\n");
	assert_true(is_kept(WP_THREAD_STAT));
	/* From its begin at each read. */
	fake_target_write(&fake, TID, "stat", "another\n");
	read_file(WP_THREAD_STAT, "another\n");
	read_file(WP_THREAD_SYSCALL, "running\n");
	assert_false(is_kept(WP_THREAD_SYSCALL));
	read_file(WP_THREAD_SCHEDSTAT, "1000 0 1\n");
	assert_true(is_kept(WP_THREAD_SCHEDSTAT));
	for (int i = 0; i < WP_NTHREAD_FILES; i++)
		fds[i] = t->files.fds[i];
	wp_thread_files_close(&t->files);
	for (int i = 0; i < WP_NTHREAD_FILES; i++) {
		assert_false(is_kept(i));
		if (fds[i] >= 0)
			assert_int_equal(fcntl(fds[i], F_GETFD), -1);
	}
	/* As at first. */
	read_file(WP_THREAD_STAT, "another\n");
	assert_false(is_kept(WP_THREAD_STAT));
}

static void a_tick_that_reads_a_file_twice_keeps_it_at_once(void **state)
{
	(void)state;
	options.stop = WP_STOP_ALL;
	start();
	read_file(WP_THREAD_SYSCALL, "running\n");
	assert_true(is_kept(WP_THREAD_SYSCALL));
	fake_target_write(&fake, TID, "stat", "one\n");
	read_file(WP_THREAD_STAT, "one\n");
	assert_false(is_kept(WP_THREAD_STAT));
}

/* 256 descriptors are left for other things. */
static void some_descriptors_are_spared(void **state)
{
	int next;

	(void)state;
	start();
	next = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(next);
	fake.sampler->fd_limit = (rlim_t)next + 255;
	read_file(WP_THREAD_SCHEDSTAT, "1000 0 1\n");
	assert_false(is_kept(WP_THREAD_SCHEDSTAT));
	/* That one is closed again, and it is not tried anew. */
	assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), next);
	close(next);
	fake.sampler->fd_limit++;
	read_file(WP_THREAD_SCHEDSTAT, "1000 0 1\n");
	assert_false(is_kept(WP_THREAD_SCHEDSTAT));
	wp_thread_files_close(&t->files);
	read_file(WP_THREAD_SCHEDSTAT, "1000 0 1\n");
	assert_true(is_kept(WP_THREAD_SCHEDSTAT));
}

static void a_thread_that_has_ended_is_told_by_its_descriptor(void **state)
{
	struct wp_schedstat now;

	(void)state;
	start();
	/* Nothing was read so far: no other thread can be taken for it. */
	assert_true(wp_thread_files_answer(t));
	assert_int_equal(wp_thread_files_schedstat(t, &now), 0);
	assert_int_equal(now.run_ns, 1000);
	assert_int_equal(now.slices, 1);
	assert_true(wp_thread_files_answer(t));
	fake_target_end_thread(&fake, TID);
	fake_target_add_thread(&fake, TID, "another");
	assert_false(wp_thread_files_answer(t));
	assert_int_not_equal(wp_thread_files_schedstat(t, &now), 0);
	wp_thread_files_close(&t->files);
	assert_true(wp_thread_files_answer(t));
	fake_target_end_thread(&fake, TID);
	assert_int_equal(wp_thread_files_schedstat(t, &now), -ENOENT);
	fake_target_add_thread(&fake, TID, "a third");
}

/* Who has closed standard input gets descriptor 0 for a file. */
static void descriptor_0_is_one_as_well(void **state)
{
	int input = dup(STDIN_FILENO);
	bool is_first, answers, is_closed;

	(void)state;
	start();
	close(STDIN_FILENO);
	for (int n = 0; n < 2; n++)
		read_file(WP_THREAD_SCHEDSTAT, "1000 0 1\n");
	is_first = t->files.fds[WP_THREAD_SCHEDSTAT] == 0;
	fake_target_end_thread(&fake, TID);
	fake_target_add_thread(&fake, TID, "another");
	answers = wp_thread_files_answer(t);
	wp_thread_files_close(&t->files);
	is_closed = fcntl(STDIN_FILENO, F_GETFD) < 0;
	if (input >= 0) {
		dup2(input, STDIN_FILENO);
		close(input);
	}
	assert_true(is_first);
	assert_false(answers);
	assert_true(is_closed);
}

/* CONFIG_SCHED_INFO=n: a thread is there as long as its stat is. */
static void without_schedstat_a_thread_is_there_while_its_stat_is(void **state)
{
	struct wp_schedstat now = { 1, 2, 3 };
	char path[128];

	(void)state;
	start();
	snprintf(path, sizeof(path), "%s/task/%d/schedstat", fake.dir, TID);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(wp_thread_files_schedstat(t, &now), -ENOENT);
	assert_int_equal(now.slices, 3);
	fake.sampler->schedstat_works = false;
	assert_int_equal(wp_thread_files_schedstat(t, &now), 0);
	assert_int_equal(now.run_ns + now.wait_ns + now.slices, 0);
	snprintf(path, sizeof(path), "%s/task/%d/stat", fake.dir, TID);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(wp_thread_files_schedstat(t, &now), -ESRCH);
}

static void a_thread_waits_if_it_is_in_a_call(void **state)
{
	static const struct {
		const char *text;
		bool waits;
	} rows[] = {
		{ "running\n", false },
		{ "0 0x0 0x0 0x0 0x0 0x0 0x0 0x7ffc00000000 0x400000\n", true },
		/* A page fault. */
		{ "-1 0x7ffc00000000 0x400000\n", true },
		{ "", false },
		{ "0 0x0\n", false },
	};

	(void)state;
	start();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		fake_target_write(&fake, TID, "syscall", rows[i].text);
		assert_int_equal(wp_thread_files_waits(t), rows[i].waits);
	}
}

static void what_cannot_be_read_is_not_known(void **state)
{
	(void)state;
	start();
	fake_target_write(&fake, TID, "status",
			  "Name:\tseven\nvoluntary_ctxt_switches:\t42\n");
	assert_int_equal(wp_thread_files_sleeps(t), 42);
	fake_target_write(&fake, TID, "status", "Name:\tseven\n");
	assert_int_equal(wp_thread_files_sleeps(t), UINT64_MAX);
	fake_target_write(&fake, TID, "status", "");
	assert_int_equal(wp_thread_files_sleeps(t), UINT64_MAX);
	assert_int_equal(wp_thread_files_exec_start(t), 0);
	fake_target_write(
		&fake, TID, "sched",
		"seven (7, #threads: 1)\n"
		"-----------------------\n"
		"se.exec_start                  :      1234.567890\n");
	assert_int_equal(wp_thread_files_exec_start(t), 1234567890);
	fake_target_write(&fake, TID, "sched", "seven (7, #threads: 1)\n");
	assert_int_equal(wp_thread_files_exec_start(t), 0);
	fake_target_write(&fake, TID, "sched", "");
	assert_int_equal(wp_thread_files_exec_start(t), 0);
	/* The fake's stat has CPU 0 behind the exit signal. */
	assert_int_equal(wp_thread_files_cpu(t), 0);
	fake_target_write(&fake, TID, "stat", "7 (seven) R 1\n");
	assert_int_equal(wp_thread_files_cpu(t), -1);
	fake_target_write(&fake, TID, "stat", "");
	assert_int_equal(wp_thread_files_cpu(t), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_kept_from_its_second_read),
		TEST(a_tick_that_reads_a_file_twice_keeps_it_at_once),
		TEST(some_descriptors_are_spared),
		TEST(a_thread_that_has_ended_is_told_by_its_descriptor),
		TEST(descriptor_0_is_one_as_well),
		TEST(without_schedstat_a_thread_is_there_while_its_stat_is),
		TEST(a_thread_waits_if_it_is_in_a_call),
		TEST(what_cannot_be_read_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
