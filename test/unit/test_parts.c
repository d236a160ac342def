/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: cmd.  What is told of many processes by their names, which are bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../src/cmd/parts.h"
#include "profile_maker.h"
#include "wallprof/profile_processes.h"

enum { S = 1000000000 };

static struct wp_profile profile;
static struct wp_parts_told told;
static struct wp_parts parts = { .told = &told };

/* A process called NAME with a thread: the thread's index. */
static uint32_t add(const char *name)
{
	struct wp_profile_thread thread = {
		.process = wp_profile_share_process(&profile, 1, name, 0),
	};

	return wp_profile_add_thread(&profile, &thread);
}

/* The part called NAME; if there is none, one of nothing. */
static const struct wp_part *find(const char *name)
{
	static struct wp_part room[WP_PARTS_MAX];
	static const struct wp_part none;

	wp_parts_read(&told, room);
	for (size_t i = 0; i < WP_PARTS_MAX; i++)
		if (!strcmp(room[i].name, name))
			return &room[i];
	return &none;
}

static void pass_many(uint32_t thread, uint32_t n, uint64_t at_s)
{
	const struct wp_sample_key key = { .thread = thread,
					   .state = WP_STATE_WAITING,
					   .wait = WP_WAIT_POLL };

	wp_parts_add(&parts, &profile, &key, S, at_s * S);
	wp_parts_count(&parts, &profile, thread, n, WP_STATE_WAITING,
		       thread * (uint64_t)S);
}

static void pass(uint32_t thread, uint64_t at_s)
{
	pass_many(thread, 1, at_s);
}

static void begin_mark(uint64_t at_s)
{
	assert_int_equal(
		wp_parts_begin(&parts, &profile, at_s * S, 10 * (uint64_t)S),
		0);
}

static void end_mark(void)
{
	wp_parts_end(&parts);
}

static void end(void)
{
	free(parts.of);
	free(parts.counted);
	parts = (struct wp_parts){ .told = &told };
	told = (struct wp_parts_told){ 0 };
	wp_profile_clear(&profile);
}

static void processes_of_a_name_are_added_up(void **state)
{
	uint32_t a[2], b;

	(void)state;
	assert_int_equal(wp_profile_init(&profile), 0);
	a[0] = add("nginx");
	b = add("");
	a[1] = add("nginx");
	begin_mark(1);
	pass(a[0], 1);
	pass(b, 1);
	pass(a[1], 1);
	end_mark();
	assert_int_equal(find("nginx")->processes, 2);
	assert_int_equal(find("nginx")->threads[WP_STATE_WAITING], 2);
	assert_int_equal(find("nginx")->longest_wait_ns, a[1] * (uint64_t)S);
	assert_int_equal(find("nginx")->ns[WP_STATE_WAITING][WP_WAIT_POLL],
			 2 * (uint64_t)S);
	assert_int_equal(find("?")->processes, 1);
	/* Threads are of the last mark, time adds up. */
	begin_mark(2);
	pass(a[0], 2);
	end_mark();
	assert_int_equal(find("nginx")->processes, 1);
	assert_int_equal(find("nginx")->ns[WP_STATE_WAITING][WP_WAIT_POLL],
			 3 * (uint64_t)S);
	end();
}

/* A second in which THREAD waited for NS, less than 0: it is taken back. */
static uint64_t poll_ns_after(uint32_t thread, int64_t ns, uint64_t at_s)
{
	const struct wp_sample_key key = { .thread = thread,
					   .state = WP_STATE_WAITING,
					   .wait = WP_WAIT_POLL };

	begin_mark(at_s);
	wp_parts_add(&parts, &profile, &key, ns, at_s * S);
	end_mark();
	return find("nginx")->ns[WP_STATE_WAITING][WP_WAIT_POLL];
}

static void time_that_is_taken_back_is_not_told_as_a_fall(void **state)
{
	uint32_t a;

	(void)state;
	assert_int_equal(wp_profile_init(&profile), 0);
	a = add("nginx");
	assert_int_equal(poll_ns_after(a, S, 1), S);
	assert_int_equal(poll_ns_after(a, -S / 2, 2), S);
	assert_int_equal(poll_ns_after(a, S / 4, 3), S);
	assert_int_equal(poll_ns_after(a, S / 2, 4), S + S / 4);
	/* Another recorder goes on with that. */
	memset(parts.v, 0, sizeof(parts.v));
	memset(parts.sums, 0, sizeof(parts.sums));
	wp_parts_init(&parts, &told);
	assert_int_equal(poll_ns_after(a, S / 4, 5), S + S / 2);
	/* Of who comes in its place it is not told. */
	assert_int_equal(poll_ns_after(a, S, 50), S);
	end();
}

static void a_mark_is_told_when_all_of_it_is_added(void **state)
{
	uint32_t a[2];

	(void)state;
	assert_int_equal(wp_profile_init(&profile), 0);
	a[0] = add("nginx");
	a[1] = add("nginx");
	begin_mark(1);
	pass(a[0], 1);
	pass(a[1], 1);
	end_mark();
	begin_mark(2);
	assert_int_equal(find("nginx")->processes, 2);
	pass(a[0], 2);
	assert_int_equal(find("nginx")->processes, 2);
	assert_int_equal(find("nginx")->threads[WP_STATE_WAITING], 2);
	assert_int_equal(find("nginx")->longest_wait_ns, a[1] * (uint64_t)S);
	end_mark();
	assert_int_equal(find("nginx")->processes, 1);
	end();
}

static void those_that_shared_an_entry_and_ended_are_not_counted(void **state)
{
	uint32_t a, b;

	(void)state;
	assert_int_equal(wp_profile_init(&profile), 0);
	a = add("cc1");
	b = add("cc1");
	profile.threads[a].nmore = profile.threads[b].nmore = 5000;
	profile.processes[profile.threads[a].process].nmore = 5000;
	begin_mark(1);
	pass_many(a, 3, 1);
	end_mark();
	assert_int_equal(find("cc1")->processes, 3);
	assert_int_equal(find("cc1")->threads[WP_STATE_WAITING], 3);
	/* These are threads of one process. */
	pass_many(b, 4, 1);
	end_mark();
	assert_int_equal(find("cc1")->processes, 4);
	assert_int_equal(find("cc1")->threads[WP_STATE_WAITING], 7);
	end();
}

static void names_are_bounded_and_make_room(void **state)
{
	char name[32];

	(void)state;
	assert_int_equal(wp_profile_init(&profile), 0);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "name-%d", i);
		add(name);
	}
	begin_mark(1);
	for (uint32_t i = 0; i < 100; i++)
		pass(i, 1);
	end_mark();
	assert_true(find("name-62")->name[0]);
	assert_false(find("name-63")->name[0]);
	assert_int_equal(find("[other processes]")->processes, 37);
	/* Only those that are still met keep their place. */
	begin_mark(8);
	pass(0, 8);
	end_mark();
	begin_mark(12);
	pass(99, 12);
	end_mark();
	assert_true(find("name-0")->name[0]);
	assert_true(find("name-99")->name[0]);
	assert_false(find("name-1")->name[0]);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_of_a_name_are_added_up),
		cmocka_unit_test(a_mark_is_told_when_all_of_it_is_added),
		cmocka_unit_test(time_that_is_taken_back_is_not_told_as_a_fall),
		cmocka_unit_test(
			those_that_shared_an_entry_and_ended_are_not_counted),
		cmocka_unit_test(names_are_bounded_and_make_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
