/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: dump.  Waits that lead to other processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>

#include "../../src/dump/links.h"
#include "wallprof/clock.h"
#include "wallprof/syscall_nr.h"

enum {
	THREADS = 300,
	HOLDERS = 300,
};

static void add_edges(struct wp_links *links, uint32_t thread)
{
	for (pid_t pid = 1; pid <= HOLDERS; pid++)
		assert_int_equal(wp_links_add_edge(links, WP_EDGE_PIPE, thread,
						   pid, "pipe:[1]"),
				 0);
}

static void edges_are_bounded_and_who_lacks_some_is_not_stuck(void **state)
{
	struct wp_snapshot snapshot = { .dump = WP_DUMP_INIT };
	struct wp_links links = { .snapshot = &snapshot };
	const struct wp_dump *dump = &snapshot.dump;
	uint32_t whole = WP_LINKS_EDGES_MAX / HOLDERS;

	(void)state;
	for (uint32_t i = 0; i < THREADS; i++)
		assert_non_null(wp_dump_add_thread(&snapshot.dump));
	for (uint32_t i = 0; i < whole; i++)
		add_edges(&links, i);
	assert_int_equal(dump->nedges, whole * HOLDERS);
	/* Each has one to it already. */
	add_edges(&links, whole - 1);
	assert_int_equal(dump->nedges, whole * HOLDERS);
	assert_false(snapshot.edges_cut);
	for (uint32_t i = whole; i < THREADS; i++)
		add_edges(&links, i);
	assert_int_equal(dump->nedges, WP_LINKS_EDGES_MAX);
	assert_true(snapshot.edges_cut);
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(dump->threads[i].open_ended, i >= whole);
	wp_dump_clear(&snapshot.dump);
}

/* /proc/locks may have a line for each of any number of threads. */
static void locks_are_searched_for_so_long(void **state)
{
	struct wp_snapshot_process process = { .process = WP_PROCESS_INIT };
	struct wp_snapshot_process *processes[] = { &process };
	struct wp_snapshot snapshot = { .dump = WP_DUMP_INIT,
					.processes = processes };
	struct wp_links links = { .snapshot = &snapshot };
	struct wp_dump_thread *t = wp_dump_add_thread(&snapshot.dump);

	(void)state;
	assert_non_null(t);
	t->call = (struct wp_dump_call){ .nr = SYS_fcntl,
					 .args = { 0, F_SETLKW } };
	links.round_ns = wp_clock_ns();
	assert_int_equal(wp_links_add_file_lock(&links, 0), 0);
	assert_false(t->open_ended);
	links.round_ns -= 2 * WP_NS_PER_S;
	assert_int_equal(wp_links_add_file_lock(&links, 0), 0);
	assert_true(t->open_ended);
	wp_text_clear(&links.locks);
	wp_dump_clear(&snapshot.dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			edges_are_bounded_and_who_lacks_some_is_not_stuck),
		cmocka_unit_test(locks_are_searched_for_so_long),
	};

	return cmocka_run_group_tests_name("links", tests, NULL, NULL);
}
