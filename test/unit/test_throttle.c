/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  wallprof/throttle.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "wallprof/throttle.h"

static const char hybrid[] = "9:name=systemd:/\n"
			     "8:cpuset:/set\n"
			     "7:cpuacct,cpu:/one/two\n"
			     "0::/new:er/part\n";

static void a_process_has_a_cgroup_of_each_version(void **state)
{
	char path[16];

	(void)state;
	assert_int_equal(wp_throttle_path(hybrid, false, path, sizeof(path)),
			 0);
	assert_string_equal(path, "/one/two");
	assert_int_equal(wp_throttle_path(hybrid, true, path, sizeof(path)), 0);
	assert_string_equal(path, "/new:er/part");
	assert_int_equal(wp_throttle_path("1:cpu:/\n", false, path, 16), 0);
	assert_string_equal(path, "/");
	assert_int_equal(wp_throttle_path("1:cpuset,cpuacct:/a\n", false, path,
					  sizeof(path)),
			 -ENOENT);
	assert_int_equal(wp_throttle_path("10::/a\n", true, path, sizeof(path)),
			 -ENOENT);
	assert_int_equal(
		wp_throttle_path(hybrid, true, path, strlen("/new:er/part")),
		-ENAMETOOLONG);
}

static void what_is_cut_short_is_no_cgroup(void **state)
{
	char text[sizeof(hybrid)], path[64];

	(void)state;
	for (size_t len = 0; len < sizeof(hybrid); len++)
		for (int is_v2 = 0; is_v2 < 2; is_v2++) {
			memcpy(text, hybrid, len);
			text[len] = '\0';
			if (!wp_throttle_path(text, is_v2, path, sizeof(path)))
				assert_int_equal(*path, '/');
		}
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(wp_throttle_path(
					 (const char *const[]){
						 "", ":", "0:", "0::" }[i],
					 true, path, sizeof(path)),
				 -ENOENT);
}

static void periods_are_counted_where_there_is_a_limit(void **state)
{
	struct wp_throttle_count count = { 1, 2 };

	(void)state;
	assert_int_equal(wp_throttle_parse(&count, "usage_usec 7\n"), -ENOENT);
	assert_int_equal(wp_throttle_parse(&count, "nr_periods 7\n"), -ENOENT);
	assert_int_equal(
		wp_throttle_parse(&count, "nr_periods x\nnr_throttled 3\n"),
		-ENOENT);
	assert_int_equal(count.periods, 1);
	assert_int_equal(wp_throttle_parse(&count, "usage_usec 7\n"
						   "nr_periods 53\n"
						   "nr_throttled 50\n"
						   "throttled_usec 8\n"),
			 0);
	assert_int_equal(count.periods, 53);
	assert_int_equal(count.throttled, 50);
	/* Version 1. */
	assert_int_equal(wp_throttle_parse(&count, "nr_periods 5\n"
						   "nr_throttled 0"),
			 0);
	assert_int_equal(count.throttled, 0);
}

static void a_process_that_has_ended_has_no_cgroup(void **state)
{
	struct wp_throttle throttle;
	char text[128];

	(void)state;
	wp_throttle_begin(&throttle, -1);
	assert_int_equal(throttle.n, 0);
	assert_false(wp_throttle_tell(&throttle, text, sizeof(text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_has_a_cgroup_of_each_version),
		cmocka_unit_test(what_is_cut_short_is_no_cgroup),
		cmocka_unit_test(periods_are_counted_where_there_is_a_limit),
		cmocka_unit_test(a_process_that_has_ended_has_no_cgroup),
	};

	return cmocka_run_group_tests_name("throttle", tests, NULL, NULL);
}
