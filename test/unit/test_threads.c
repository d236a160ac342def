/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  threads.h and thread_files.h: the table follows the threads of
 * the process, and their files are read through descriptors that are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "one_target.h"

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	options = fake_target_options();
	return 0;
}

/* The table has exactly TIDS[0..n), in order. */
static void assert_table(const pid_t *tids, size_t n)
{
	assert_int_equal(wp_threads_update(fake.target), n ? 0 : -ESRCH);
	assert_int_equal(fake.target->nthreads, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(fake.target->threads[i]->tid, tids[i]);
		assert_ptr_equal(wp_threads_find(fake.target, tids[i]),
				 fake.target->threads[i]);
	}
}

static void the_table_follows_the_process(void **state)
{
	static const pid_t one[] = { 20 }, three[] = { 5, 20, 30 },
			   two[] = { 5, 30 };
	struct wp_thread *kept;

	(void)state;
	start_target();
	assert_table(NULL, 0);
	fake_target_add_thread(&fake, 20, "b");
	assert_table(one, 1);
	fake_target_add_thread(&fake, 30, "c");
	fake_target_add_thread(&fake, 5, "a");
	kept = fake.target->threads[0];
	assert_table(three, 3);
	assert_ptr_equal(wp_threads_find(fake.target, 20), kept);
	fake_target_end_thread(&fake, 20);
	assert_table(two, 2);
	assert_int_equal(fake.target->nended, 1);
	assert_ptr_equal(fake.target->ended[0], kept);
	wp_threads_free_ended(fake.target);
	fake_target_end_thread(&fake, 5);
	fake_target_end_thread(&fake, 30);
	assert_table(NULL, 0);
	assert_int_equal(fake.target->nended, 2);
	assert_int_equal(fake.target->nwatched, 2);
	wp_threads_free_ended(fake.target);
	assert_int_equal(fake.target->nwatched, 0);
	/* None had a sample. */
	assert_int_equal(fake.profile.counters.threads_lost, 3);
	assert_int_equal(fake.profile.counters.threads_seen, 3);
}

static void the_same_number_of_threads_is_believed_to_be_the_same(void **state)
{
	static const pid_t first[] = { 5, 6 };

	(void)state;
	start_target();
	fake_target_add_thread(&fake, 5, "a");
	fake_target_add_thread(&fake, 6, "b");
	assert_table(first, 2);
	fake_target_end_thread(&fake, 6);
	fake_target_add_thread(&fake, 7, "c");
	/* Until the one that has ended is met. */
	assert_table(first, 2);
	assert_int_equal(wp_threads_end(fake.target, 1), 0);
	assert_int_equal(fake.target->nthreads, 1);
	assert_int_equal(wp_threads_update(fake.target), 0);
	assert_non_null(wp_threads_find(fake.target, 7));
	assert_null(wp_threads_find(fake.target, 6));
}

static void a_later_thread_with_the_same_tid_is_another(void **state)
{
	struct wp_thread *first;
	struct wp_schedstat now;

	(void)state;
	start_target();
	fake_target_add_thread(&fake, 5, "a");
	assert_int_equal(wp_threads_update(fake.target), 0);
	first = fake.target->threads[0];
	assert_int_equal(wp_thread_files_schedstat(first, &now), 0);
	fake_target_end_thread(&fake, 5);
	fake_target_add_thread(&fake, 5, "b");
	fake_target_add_thread(&fake, 6, "c");
	assert_int_equal(wp_threads_update(fake.target), 0);
	assert_int_equal(fake.target->nended, 1);
	assert_ptr_equal(fake.target->ended[0], first);
	assert_int_equal(fake.target->nthreads, 2);
	assert_true(fake.target->threads[0]->serial > first->serial);
}

static void a_thread_that_a_record_names_is_added_in_its_place(void **state)
{
	(void)state;
	start_target();
	fake_target_add_thread(&fake, 9, "c");
	assert_int_equal(wp_threads_update(fake.target), 0);
	/* It may be over before it is listed. */
	assert_non_null(wp_threads_find_or_add(fake.target, 4));
	assert_ptr_equal(wp_threads_find_or_add(fake.target, 4),
			 fake.target->threads[0]);
	assert_int_equal(fake.target->nthreads, 2);
	assert_string_equal(
		wp_profile_str(&fake.profile, fake.profile.threads[1].name),
		"");
}

static const char *name_of(const struct wp_thread *t)
{
	return wp_profile_str(&fake.profile,
			      fake.profile.threads[t->index].name);
}

static void name_in_next_tick(struct wp_thread *t,
			      const struct wp_task_record *record)
{
	fake.target->tick++;
	wp_threads_name(t, record);
}

static void names_are_read_again_now_and_then(void **state)
{
	const struct wp_task_record record = { .comm = "by scan" };
	struct wp_thread *t;

	(void)state;
	start_target();
	fake_target_add_thread(&fake, 5, "a) R (b");
	assert_int_equal(wp_threads_update(fake.target), 0);
	t = fake.target->threads[0];
	assert_string_equal(name_of(t), "a) R (b");
	fake_target_write(&fake, 5, "comm", "new\n");
	/* It was read in this tick. */
	wp_threads_name(t, NULL);
	assert_string_equal(name_of(t), "a) R (b");
	name_in_next_tick(t, &record);
	assert_string_equal(name_of(t), "by scan");
	/* Not at the third sample, but at the fourth. */
	name_in_next_tick(t, NULL);
	assert_string_equal(name_of(t), "by scan");
	name_in_next_tick(t, NULL);
	assert_string_equal(name_of(t), "new");
	/* A thread without a name keeps the one it had. */
	fake_target_write(&fake, 5, "comm", "");
	for (int i = 0; i < 600; i++)
		name_in_next_tick(t, NULL);
	assert_string_equal(name_of(t), "new");
}

/* Two threads, of which "io-*" chooses the second. */
static void start_main_and_io(void)
{
	options.thread_globs[0] = "io-*";
	start_target();
	fake_target_add_thread(&fake, 5, "main");
	fake_target_add_thread(&fake, 6, "io-1");
	assert_int_equal(wp_threads_update(fake.target), 0);
}

static void only_names_in_the_glob_are_watched(void **state)
{
	struct wp_thread *t;

	(void)state;
	start_main_and_io();
	assert_int_equal(fake.target->nwatched, 1);
	assert_int_equal(fake.profile.counters.threads_seen, 1);
	t = fake.target->threads[0];
	assert_false(t->watched);
	name_in_next_tick(t, NULL);
	/* Renamed into it: what came before is not its time. */
	fake.sampler->tick_ns = fake_now_ns + 5 * WP_NS_PER_MS;
	fake_target_write(&fake, 5, "comm", "io-2\n");
	name_in_next_tick(t, NULL);
	assert_true(t->watched);
	assert_int_equal(t->time.accounted_ns, fake.sampler->tick_ns);
	assert_int_equal(fake.target->nwatched, 2);
	assert_int_equal(fake.profile.counters.threads_seen, 2);
	assert_int_equal(wp_sampler_count_threads(fake.sampler), 2);
}

/* No look meets that one has ended: they are listed though their number is the
 * same. */
static void one_that_is_not_watched_makes_room_for_one_that_is(void **state)
{
	struct wp_thread *kept;

	(void)state;
	start_main_and_io();
	kept = fake.target->threads[1];
	fake_target_end_thread(&fake, 5);
	fake_target_add_thread(&fake, 7, "io-2");
	assert_int_equal(wp_threads_update(fake.target), 0);
	assert_int_equal(fake.target->nthreads, 2);
	assert_ptr_equal(fake.target->threads[0], kept);
	assert_int_equal(fake.target->threads[1]->tid, 7);
	assert_int_equal(fake.target->nwatched, 2);
	assert_int_equal(fake.target->nended, 1);
}

/* A list of many threads takes long. */
static void they_are_listed_as_often_as_it_costs_little(void **state)
{
	static const pid_t before[] = { 5, 6 }, after[] = { 6, 7 };

	(void)state;
	options.thread_globs[0] = "io-*";
	start_target();
	fake_target_add_thread(&fake, 5, "main");
	fake_target_add_thread(&fake, 6, "idle");
	assert_table(before, 2);
	/* The same are left as they are. */
	fake.sampler->tick_ns += TICK;
	assert_table(before, 2);
	assert_int_equal(fake.target->nended, 0);
	fake.target->list_cost_ns = TICK;
	fake_target_end_thread(&fake, 5);
	fake_target_add_thread(&fake, 7, "io-2");
	fake.sampler->tick_ns += 50ULL * TICK - 1;
	assert_table(before, 2);
	fake.sampler->tick_ns++;
	assert_table(after, 2);
	assert_int_equal(fake.target->list_cost_ns, 0);
}

static void globs_choose_and_leave_out(void **state)
{
	static const struct {
		const char *globs[3];
		const char *name;
		bool watched;
	} rows[] = {
		{ { "!idle*" }, "idle-1", false },
		{ { "!idle*" }, "io-1", true },
		{ { "io-*", "net" }, "net", true },
		{ { "io-*", "net" }, "main", false },
		{ { "io-*", "!io-9" }, "io-9", false },
		{ { "!io-9", "io-*" }, "io-1", true },
		{ { "!io-9", "io-*" }, "main", false },
		{ { "!a", "!b" }, "b", false },
		{ { "!a", "!b" }, "c", true },
	};

	(void)state;
	start_target();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		pid_t tid = 10 + (pid_t)i;

		memcpy(fake.sampler->options.thread_globs, rows[i].globs,
		       sizeof(rows[i].globs));
		fake_target_add_thread(&fake, tid, rows[i].name);
		assert_int_equal(
			wp_threads_find_or_add(fake.target, tid)->watched,
			rows[i].watched);
	}
}

static void names_are_listed_once_and_as_far_as_there_is_room(void **state)
{
	char names[64];

	(void)state;
	start_target();
	for (pid_t tid = 5; tid < 8; tid++)
		fake_target_add_thread(&fake, tid, tid == 5 ? "main" : "io");
	assert_int_equal(wp_threads_update(fake.target), 0);
	wp_profile_list_names(&fake.profile, names, sizeof(names));
	assert_string_equal(names, "main, io");
	wp_profile_list_names(&fake.profile, names, 11);
	assert_string_equal(names, "main, ...");
}

static void a_thread_that_is_over_is_in_no_glob(void **state)
{
	(void)state;
	options.thread_globs[0] = "*";
	start_target();
	assert_false(wp_threads_find_or_add(fake.target, 77)->watched);
}

static void threads_beyond_the_limit_share_an_entry_by_name(void **state)
{
	struct wp_thread *t;

	(void)state;
	options.own_threads = 1;
	start_target();
	for (pid_t tid = 5; tid < 9; tid++)
		fake_target_add_thread(&fake, tid, tid < 8 ? "pool" : "io");
	assert_int_equal(wp_threads_update(fake.target), 0);
	assert_int_equal(fake.profile.counters.threads_shared, 3);
	assert_int_equal(fake.profile.nthreads, 3);
	t = fake.target->threads[1];
	assert_int_equal(t->index, fake.target->threads[2]->index);
	assert_string_equal(name_of(t), "pool");
	/* By its new name it is another, with another account. */
	wp_time_ledger_add_run(&t->time, 700);
	fake_target_write(&fake, 6, "comm", "io\n");
	name_in_next_tick(t, NULL);
	assert_int_equal(t->index, fake.target->threads[3]->index);
	assert_int_equal(t->time.run_before_ns, 700);
	assert_int_equal(t->time.run_ns, 0);
}

static void schedstat_is_kept_open_other_files_when_read_twice(void **state)
{
	struct wp_schedstat now;
	struct wp_thread *t;
	char text[64];

	(void)state;
	start_target();
	fake_target_add_thread(&fake, 5, "a");
	t = wp_threads_find_or_add(fake.target, 5);
	assert_true(wp_thread_files_answer(t));
	assert_int_equal(wp_thread_files_schedstat(t, &now), 0);
	assert_int_equal(now.run_ns, 1000);
	assert_true(t->files.fds[WP_THREAD_SCHEDSTAT] >= 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(wp_thread_files_read(t, WP_THREAD_SYSCALL,
						      text, sizeof(text)),
				 8);
		assert_string_equal(text, "running\n");
		assert_int_equal(t->files.fds[WP_THREAD_SYSCALL] >= 0, i > 0);
	}
	assert_true(t->files.fds[WP_THREAD_STAT] < 0);
	wp_thread_files_close(&t->files);
	assert_true(t->files.fds[WP_THREAD_SCHEDSTAT] < 0);
	/* A tick reads it more than once. */
	fake.sampler->options.stop = WP_STOP_ALL;
	assert_int_equal(
		wp_thread_files_read(t, WP_THREAD_SYSCALL, text, sizeof(text)),
		8);
	assert_true(t->files.fds[WP_THREAD_SYSCALL] >= 0);
}

static void too_few_descriptors_are_not_all_taken(void **state)
{
	struct wp_schedstat now;
	struct wp_thread *t;

	(void)state;
	start_target();
	fake.sampler->fd_limit = 64;
	fake_target_add_thread(&fake, 5, "a");
	t = wp_threads_find_or_add(fake.target, 5);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wp_thread_files_schedstat(t, &now), 0);
	assert_true(t->files.fds[WP_THREAD_SCHEDSTAT] < 0);
	fake_target_end_thread(&fake, 5);
	assert_int_equal(wp_thread_files_schedstat(t, &now), -ENOENT);
}

/* The first thread's name is its process's. */
static void a_process_has_the_name_of_its_first_thread(void **state)
{
	const struct wp_profile_process *p;
	struct wp_thread *other, *leader;

	(void)state;
	fake.process.pid = 5;
	fake_target_add_thread(&fake, 5, "first");
	fake_target_add_thread(&fake, 6, "second");
	start_target();
	leader = wp_threads_find_or_add(fake.target, 5);
	other = wp_threads_find_or_add(fake.target, 6);
	p = &fake.profile.processes[fake.target->index];
	assert_string_equal(wp_profile_str(&fake.profile, p->name), "first");
	wp_threads_rename(other, "third");
	assert_string_equal(wp_profile_str(&fake.profile, p->name), "first");
	wp_threads_rename(leader, "fourth");
	assert_string_equal(wp_profile_str(&fake.profile, p->name), "fourth");
}

static void new_names_are_bounded(void **state)
{
	enum { NAMES = 20000 };
	const struct wp_intern *strings = &fake.profile.strings;
	const uint64_t *dropped = &fake.profile.counters.names_dropped;
	struct wp_thread *t;
	char name[16];
	uint32_t len;

	(void)state;
	fake.process.pid = 5;
	fake_target_add_thread(&fake, 5, "first");
	fake_target_add_thread(&fake, 6, "second");
	start_target();
	t = wp_threads_find_or_add(fake.target, 5);
	wp_threads_find_or_add(fake.target, 6);
	len = strings->len;
	for (uint32_t i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "%x", i);
		wp_threads_rename(t, name);
	}
	assert_int_equal(strings->len, len + NAMES);
	assert_int_equal(*dropped, 0);
	wp_threads_rename(t, "another");
	assert_int_equal(strings->len, len + NAMES);
	/* The process has that name as well. */
	assert_int_equal(*dropped, 2);
	assert_string_equal(name_of(t), "4e1f");
	/* Names that are there cost nothing. */
	wp_threads_rename(t, "second");
	assert_string_equal(name_of(t), "second");
	assert_int_equal(*dropped, 2);
	/* Each thread has a first one. */
	fake_target_add_thread(&fake, 7, "third");
	assert_string_equal(name_of(wp_threads_find_or_add(fake.target, 7)),
			    "third");
	assert_int_equal(strings->len, len + NAMES + 1);
	assert_int_equal(*dropped, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_table_follows_the_process),
		TEST(the_same_number_of_threads_is_believed_to_be_the_same),
		TEST(a_later_thread_with_the_same_tid_is_another),
		TEST(a_thread_that_a_record_names_is_added_in_its_place),
		TEST(names_are_read_again_now_and_then),
		TEST(only_names_in_the_glob_are_watched),
		TEST(one_that_is_not_watched_makes_room_for_one_that_is),
		TEST(they_are_listed_as_often_as_it_costs_little),
		TEST(globs_choose_and_leave_out),
		TEST(names_are_listed_once_and_as_far_as_there_is_room),
		TEST(a_thread_that_is_over_is_in_no_glob),
		TEST(threads_beyond_the_limit_share_an_entry_by_name),
		TEST(schedstat_is_kept_open_other_files_when_read_twice),
		TEST(too_few_descriptors_are_not_all_taken),
		TEST(a_process_has_the_name_of_its_first_thread),
		TEST(new_names_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
