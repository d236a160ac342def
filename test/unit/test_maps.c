/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  wallprof/maps.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "guarded.h"
#include "wallprof/maps.h"

static const char some[] =
	"1000-2000 r-xp 00000000 08:01 7 /a b\\012c (deleted)\n"
	"3000-5000 rw-s 00001000 00:00 0 \n"
	"7ffe0000-7fff0000 rw-p 00000000 00:00 0                  [stack]\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]";

static void fields_are_read(void **state)
{
	struct wp_maps maps = WP_MAPS_INIT;

	(void)state;
	assert_int_equal(wp_maps_parse(&maps, some, strlen(some)), 0);
	assert_int_equal(maps.len, 4);
	assert_true(maps.v[0].exec && maps.v[0].read && !maps.v[0].write);
	assert_true(maps.v[0].deleted);
	assert_int_equal(maps.v[0].ino, 7);
	assert_int_equal(maps.v[0].dev, makedev(8, 1));
	assert_string_equal(wp_maps_path(&maps, &maps.v[0]), "/a b\nc");
	assert_int_equal(maps.v[1].off, 0x1000);
	assert_true(maps.v[1].shared && !maps.v[0].shared);
	assert_string_equal(wp_maps_path(&maps, &maps.v[1]), "");
	assert_string_equal(wp_maps_path(&maps, &maps.v[2]), "[stack]");
	assert_int_equal(maps.v[3].end_avma, 0xffffffffff601000);
	wp_maps_clear(&maps);
}

static void find_is_half_open(void **state)
{
	struct wp_maps maps = WP_MAPS_INIT;

	(void)state;
	assert_int_equal(wp_maps_parse(&maps, some, strlen(some)), 0);
	assert_null(wp_maps_find(&maps, 0xfff));
	assert_ptr_equal(wp_maps_find(&maps, 0x1000), &maps.v[0]);
	assert_null(wp_maps_find(&maps, 0x2000));
	assert_ptr_equal(wp_maps_find(&maps, 0x4fff), &maps.v[1]);
	assert_null(wp_maps_find(&maps, UINT64_MAX));
	wp_maps_clear(&maps);
}

static void a_stack_that_grew_is_found_below_its_region(void **state)
{
	struct wp_maps maps = WP_MAPS_INIT;

	(void)state;
	assert_int_equal(wp_maps_parse(&maps, some, strlen(some)), 0);
	assert_ptr_equal(wp_maps_find_stack(&maps, 0x7ffdf000), &maps.v[2]);
	assert_ptr_equal(wp_maps_find_stack(&maps, 0x3000), &maps.v[1]);
	assert_null(wp_maps_find_stack(&maps, 0x2500));
	wp_maps_clear(&maps);
}

static void bad_lines_leave_maps_empty(void **state)
{
	static const char *const bad[] = {
		"zz",
		"1000-",
		"1000-2000",
		"2000-1000 r-xp 0 0:0 0\n",
		"1000-1000 r-xp 0 0:0 0\n",
		"11112222333344445-5 r-xp 0 0:0 0\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct wp_maps maps = WP_MAPS_INIT;

		assert_int_equal(wp_maps_parse(&maps, some, strlen(some)), 0);
		assert_int_equal(wp_maps_parse(&maps, bad[i], strlen(bad[i])),
				 -EBADMSG);
		assert_int_equal(maps.len, 0);
		wp_maps_clear(&maps);
	}
}

/* As the kernel lists them that grew between two reads of its list. */
static void regions_that_grew_meanwhile_follow_each_other(void **state)
{
	static const char text[] = "1000-2000 r-xp 00004000 0:1 7 /a\n"
				   "1800-3000 r-xp 00004800 0:1 7 /a\n"
				   "1000-3000 r-xp 00004000 0:1 7 /a\n"
				   "3000-4000 r-xp 00000000 0:1 8 /b\n";
	struct wp_maps maps = WP_MAPS_INIT;

	(void)state;
	assert_int_equal(wp_maps_parse(&maps, text, strlen(text)), 0);
	assert_int_equal(maps.len, 3);
	assert_int_equal(maps.v[1].start_avma, 0x2000);
	assert_int_equal(maps.v[1].end_avma, 0x3000);
	assert_int_equal(maps.v[1].off, 0x5000);
	assert_int_equal(maps.v[2].start_avma, 0x3000);
	assert_int_equal(maps.v[2].off, 0);
	wp_maps_clear(&maps);
}

static void every_prefix_is_safe(void **state)
{
	(void)state;
	for (size_t n = 0; n <= strlen(some); n++) {
		struct wp_maps maps = WP_MAPS_INIT;
		char *exact = guarded(some, n);

		(void)!wp_maps_parse(&maps, exact, n);
		wp_maps_clear(&maps);
		guarded_free(exact, n);
	}
}

static void paths_are_read_as_the_kernel_writes_them(void **state)
{
	static const struct {
		const char *path, *want;
		bool deleted;
	} rows[] = {
		{ "7 /x\\012", "/x\n", false },
		{ "7 /x\\01", "/x\\01", false },
		{ "7 /x\\012y\\012\\012", "/x\ny\n\n", false },
		{ "7 /x\\040", "/x\\040", false },
		{ "7 /x (deleted)", "/x", true },
		{ "7 /x(deleted)", "/x(deleted)", false },
		/* Of no file. */
		{ "0 /x (deleted)", "/x (deleted)", false },
		{ "7 (deleted)", "(deleted)", false },
		{ "7 /x", "/x", false },
		{ "7     ", "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_maps maps = WP_MAPS_INIT;
		char text[128], *exact;
		size_t n = (size_t)snprintf(text, sizeof(text),
					    "1000-2000 r--p 0 8:1 %s",
					    rows[i].path);

		exact = guarded(text, n);
		assert_int_equal(wp_maps_parse(&maps, exact, n), 0);
		assert_int_equal(maps.len, 1);
		assert_string_equal(wp_maps_path(&maps, &maps.v[0]),
				    rows[i].want);
		assert_int_equal(maps.v[0].deleted, rows[i].deleted);
		guarded_free(exact, n);
		wp_maps_clear(&maps);
	}
}

static void many_regions_stay_sorted(void **state)
{
	struct wp_maps maps = WP_MAPS_INIT;
	size_t cap = 20000 * 64, len = 0;
	char *text = test_malloc(cap);

	(void)state;
	for (unsigned int i = 1; i <= 20000; i++)
		len += (size_t)snprintf(text + len, cap - len,
					"%x000-%x800 r--p 0 0:0 %u /f%u\n", i,
					i, i, i % 100);
	assert_int_equal(wp_maps_parse(&maps, text, len), 0);
	assert_int_equal(maps.len, 20000);
	assert_string_equal(wp_maps_path(&maps, wp_maps_find(&maps, 77 * 4096)),
			    "/f77");
	wp_maps_clear(&maps);
	test_free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_read),
		cmocka_unit_test(find_is_half_open),
		cmocka_unit_test(a_stack_that_grew_is_found_below_its_region),
		cmocka_unit_test(bad_lines_leave_maps_empty),
		cmocka_unit_test(regions_that_grew_meanwhile_follow_each_other),
		cmocka_unit_test(every_prefix_is_safe),
		cmocka_unit_test(paths_are_read_as_the_kernel_writes_them),
		cmocka_unit_test(many_regions_stay_sorted),
	};

	return cmocka_run_group_tests_name("maps", tests, NULL, NULL);
}
