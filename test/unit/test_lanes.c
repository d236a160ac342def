/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: output.  lanes.h, call_nodes.h and html.c: a profile by thread, its stacks
 * as a tree, and both as a page.
 *
 * With arguments FORMAT FILE, writes the profile of timeline_maker.h there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../src/output/buf.h"
#include "../../src/output/call_nodes.h"
#include "../../src/output/html_data.h"
#include "../../src/output/lanes.h"
#include "timeline_maker.h"
#include "wallprof/enum_name.h"
#include "wallprof/output.h"

static struct wp_profile p;

static int setup(void **state)
{
	(void)state;
	make_timeline(&p);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wp_profile_clear(&p);
	return 0;
}

static void rows_of_a_thread_are_in_order_of_time(void **state)
{
	struct wp_lanes lanes;

	(void)state;
	assert_int_equal(wp_lanes_init(&lanes, &p, WP_PROFILE_WALL), 0);
	assert_int_equal(lanes.nrows, 20 + 4 + 4 + 1 + 1);
	for (uint32_t t = 0; t < p.nthreads; t++) {
		uint64_t sum = 0;

		assert_true(lanes.timed[t]);
		assert_int_equal(wp_lanes_start_ns(&lanes, t), 0);
		for (uint32_t i = lanes.first[t]; i < lanes.first[t + 1]; i++) {
			struct wp_lane_row row = wp_lanes_row(&lanes, t, i);

			assert_int_equal(row.key->thread, t);
			sum += row.value;
		}
		assert_int_equal(sum, 10000000000);
	}
	assert_int_equal(wp_lanes_row(&lanes, 0, 0).value, 900000000);
	assert_int_equal(wp_lanes_row(&lanes, 0, 1).value, 100000000);
	assert_int_equal(wp_lanes_row(&lanes, 1, lanes.first[2] - 1).holder, 3);
	wp_lanes_clear(&lanes);
}

/* The timeline is of wall time. */
static void rows_of_cpu_time_are_samples(void **state)
{
	struct wp_lanes lanes;
	uint64_t sum = 0, all = 0;

	(void)state;
	p.meta.has_wall = false;
	p.meta.has_cpu = true;
	for (uint32_t i = 0; i < p.sets[WP_PROFILE_WALL].nsamples; i++)
		all += p.sets[WP_PROFILE_WALL].samples[i].cpu_ns;
	assert_int_equal(wp_lanes_init(&lanes, &p, WP_PROFILE_WALL), 0);
	for (uint32_t t = 0; t < p.nthreads; t++) {
		assert_false(lanes.timed[t]);
		for (uint32_t i = lanes.first[t]; i < lanes.first[t + 1]; i++)
			sum += wp_lanes_row(&lanes, t, i).value;
	}
	assert_int_equal(sum, all);
	wp_lanes_clear(&lanes);
}

static void thread_out_of_the_timeline_has_its_sums(void **state)
{
	struct wp_lanes lanes;
	uint32_t t = mk_thread(&p, 200, "late");

	(void)state;
	p.timeline.max = 0;
	mk_sample(&p, t, 0, WP_STATE_RUNNING, WP_WAIT_NONE, "", 1, 5);
	p.threads[t].first_ns = p.threads[0].first_ns + 7;
	assert_int_equal(wp_lanes_init(&lanes, &p, WP_PROFILE_WALL), 0);
	assert_false(lanes.timed[t]);
	assert_int_equal(wp_lanes_start_ns(&lanes, t), 7);
	assert_int_equal(lanes.first[t + 1] - lanes.first[t], 1);
	assert_int_equal(wp_lanes_row(&lanes, t, lanes.first[t]).value, 5);
	wp_lanes_clear(&lanes);
}

static void time_unwatched_has_no_key(void **state)
{
	struct wp_lanes lanes;

	(void)state;
	assert_int_equal(wp_profile_add_unwatched(&p, 4, 11), 0);
	assert_int_equal(wp_lanes_init(&lanes, &p, WP_PROFILE_WALL), 0);
	assert_null(wp_lanes_row(&lanes, 4, lanes.nrows - 1).key);
	assert_int_equal(wp_lanes_row(&lanes, 4, lanes.nrows - 1).value, 11);
	wp_lanes_clear(&lanes);
}

static void stacks_of_one_beginning_share_its_nodes(void **state)
{
	struct wp_call_nodes nodes;
	struct wp_view view;
	uint32_t wait, run;

	(void)state;
	assert_int_equal(wp_call_nodes_init(&nodes, &p, WP_PROFILE_WALL), 0);
	/* main;serve;epoll_wait and main;serve;handle;parse_inline. */
	wait = nodes.leaf[p.sets[WP_PROFILE_WALL].samples[0].key.stack] - 1;
	run = nodes.leaf[p.sets[WP_PROFILE_WALL].samples[1].key.stack] - 1;
	wp_call_nodes_view(&nodes, nodes.v[wait].frame, &view);
	assert_string_equal(view.function, "epoll_wait");
	wp_call_nodes_view(&nodes, nodes.v[run].frame, &view);
	assert_string_equal(view.function, "parse_inline");
	run = nodes.v[run].parent - 1;
	assert_int_equal(nodes.v[run].parent, nodes.v[wait].parent);
	for (uint32_t i = 0; i < nodes.n; i++)
		assert_true(nodes.v[i].parent <= i);
	wp_call_nodes_clear(&nodes);
}

static void page_has_no_text_of_the_target_but_packed(void **state)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	(void)state;
	p.meta.command_line = mk_str(&p, "</script><script>alert(1)//");
	assert_int_equal(wp_write_html(&p, WP_PROFILE_WALL, out), 0);
	fclose(out);
	assert_non_null(strstr(text, "<!DOCTYPE html>"));
	assert_null(strstr(text, "alert(1)"));
	assert_null(strstr(text, "epoll_wait"));
	assert_null(strstr(text, "@DATA@"));
	assert_null(strstr(text, "http:"));
	assert_null(strstr(text, "https:"));
	free(text);
}

/* One without samples stands for none, as -t leaves it out. */
static void page_tells_how_many_threads_an_entry_stands_for(void **state)
{
	struct wp_buf out = WP_BUF_INIT;

	(void)state;
	mk_thread(&p, 200, "not chosen");
	p.threads[0].nmore = 2;
	p.threads[1].part = WP_GOROUTINE_RUNTIME;
	p.threads[1].nmore = 5;
	assert_int_equal(wp_html_data_write(&p, WP_PROFILE_WALL, &out), 0);
	wp_buf_char(&out, '\0');
	assert_non_null(strstr(out.data, "[100,3,\"server\""));
	assert_non_null(strstr(out.data, "[101,5,\"work-1\""));
	assert_non_null(strstr(out.data, "[102,1,\"work-2\""));
	assert_non_null(strstr(out.data, "[200,0,\"not chosen\""));
	wp_buf_clear(&out);
}

static void failed_write_of_a_page_is_told(void **state)
{
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_int_equal(wp_write_html(&p, WP_PROFILE_WALL, full), -ENOSPC);
	fclose(full);
}

static int write_file(const char *name, const char *path)
{
	static const char *const names[] = { WP_FORMATS(WP_ENUM_TEXT) };
	unsigned int format = 0;
	FILE *out = fopen(path, "w");
	int rc = out ? 0 : -1;

	make_timeline(&p);
	assert_int_equal(wp_idle_mark(&p), 0);
	while (format < WP_NFORMATS && strcmp(names[format], name))
		format++;
	if (!rc)
		rc = wp_write_profile(&p, WP_PROFILE_WALL,
				      (enum wp_format)format, NULL, out);
	wp_profile_clear(&p);
	return rc || fclose(out) ? 1 : 0;
}

int main(int argc, char **argv)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(rows_of_a_thread_are_in_order_of_time),
		T(rows_of_cpu_time_are_samples),
		T(thread_out_of_the_timeline_has_its_sums),
		T(time_unwatched_has_no_key),
		T(stacks_of_one_beginning_share_its_nodes),
		T(page_has_no_text_of_the_target_but_packed),
		T(page_tells_how_many_threads_an_entry_stands_for),
		T(failed_write_of_a_page_is_told),
	};

	if (argc > 2)
		return write_file(argv[1], argv[2]);
	return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
