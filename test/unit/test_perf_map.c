/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: symbols.  symbols/perf_map.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../symbols/perf_map.h"

/* The name at AVMA, "" for none. */
static const char *at(const struct wp_perf_map *map, uint64_t avma)
{
	const char *name = wp_perf_map_find(map, avma);

	return name ? name : "";
}

/* From memory that ends with the NUL behind the text. */
static void parse_bytes(struct wp_perf_map *map, const char *text, size_t len)
{
	struct wp_text copy = { malloc(len + 1), len, len + 1 };

	memcpy(copy.data, text, len);
	copy.data[len] = '\0';
	assert_int_equal(wp_perf_map_parse(map, copy), 0);
}

static void parse(struct wp_perf_map *map, const char *text)
{
	parse_bytes(map, text, strlen(text));
}

static void lines_become_functions(void **state)
{
	struct wp_perf_map map = WP_PERF_MAP_INIT;

	(void)state;
	parse(&map, "2000 10 LazyCompile:~f g.js:1\n"
		    "0x1000 0x20 b\r\n"
		    "  7f00AB00\t8 c");
	assert_int_equal(map.nbad, 0);
	assert_string_equal(at(&map, 0xfff), "");
	assert_string_equal(at(&map, 0x1000), "b");
	assert_string_equal(at(&map, 0x101f), "b");
	assert_string_equal(at(&map, 0x1020), "");
	assert_string_equal(at(&map, 0x200f), "LazyCompile:~f g.js:1");
	assert_string_equal(at(&map, 0x7f00ab07), "c");
	wp_perf_map_clear(&map);
}

static void bad_lines_are_left_out_and_counted(void **state)
{
	struct wp_perf_map map = WP_PERF_MAP_INIT;

	(void)state;
	parse(&map, "\n\nhello\n1000\n1000 10\n1000 10 \n1000 0 empty\n"
		    "ffffffffffffffff 10 over\n11112222333344445 1 long\n"
		    "-1000 10 minus\n1000 10x y\n2000 10 good\n3000 1");
	assert_int_equal(map.nbad, 10);
	assert_int_equal(map.len, 1);
	assert_string_equal(at(&map, 0x2000), "good");
	wp_perf_map_clear(&map);
}

static void later_lines_win(void **state)
{
	static const char text[] = "1000 100 old\n"
				   "1040 20 new\n"
				   "10f0 20 tail\n"
				   "2000 10 first\n"
				   "2000 10 second\n"
				   "3000 10 under\n"
				   "2ff0 40 over\n";
	static const struct {
		uint64_t avma;
		const char *want;
	} at_want[] = {
		{ 0x1000, "old" },    { 0x103f, "old" },  { 0x1040, "new" },
		{ 0x105f, "new" },    { 0x1060, "old" },  { 0x10ef, "old" },
		{ 0x10f0, "tail" },   { 0x110f, "tail" }, { 0x1110, "" },
		{ 0x2005, "second" }, { 0x3005, "over" }, { 0x302f, "over" },
		{ 0x3030, "" },
	};
	struct wp_perf_map map = WP_PERF_MAP_INIT;

	(void)state;
	parse(&map, text);
	for (size_t i = 0; i < sizeof(at_want) / sizeof(*at_want); i++)
		assert_string_equal(at(&map, at_want[i].avma), at_want[i].want);
	wp_perf_map_clear(&map);
}

/* The same question asked of the lines one by one. */
static void overlaps_are_what_a_plain_search_finds(void **state)
{
	enum { LINES = 400, RANGE = 4000 };
	static uint32_t start[LINES], len[LINES];
	struct wp_perf_map map = WP_PERF_MAP_INIT;
	static char text[LINES * 32];
	uint64_t seed = 7;
	size_t n = 0;

	(void)state;
	for (unsigned int i = 0; i < LINES; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		start[i] = (uint32_t)(seed >> 33) % RANGE;
		len[i] = 1 + (uint32_t)(seed >> 20) % 100;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%x %x f%u\n",
				      start[i], len[i], i);
	}
	parse(&map, text);
	for (uint32_t avma = 0; avma < RANGE + 200; avma++) {
		char want[16] = "";

		for (unsigned int i = 0; i < LINES; i++)
			if (avma >= start[i] && avma < start[i] + len[i])
				snprintf(want, sizeof(want), "f%u", i);
		assert_string_equal(at(&map, avma), want);
	}
	wp_perf_map_clear(&map);
}

static void every_prefix_is_safe(void **state)
{
	static const char whole[] = "1000 10 a\n0x1008 10 b c\r\nzz\n2000 1 d";

	(void)state;
	for (size_t n = 0; n < sizeof(whole); n++) {
		struct wp_perf_map map = WP_PERF_MAP_INIT;

		parse_bytes(&map, whole, n);
		(void)at(&map, 0x1000);
		wp_perf_map_clear(&map);
	}
}

static void only_a_regular_file_is_read(void **state)
{
	struct wp_perf_map map = WP_PERF_MAP_INIT;
	int fds[2], fd = memfd_create("map", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(wp_perf_map_read(&map, fds[0]), -ENOTSUP);
	assert_int_equal(write(fd, "1000 10 f\n", 10), 10);
	assert_int_equal(wp_perf_map_read(&map, fd), 0);
	assert_string_equal(at(&map, 0x1000), "f");
	wp_perf_map_clear(&map);
	close(fds[0]);
	close(fds[1]);
	close(fd);
}

/* A line of COMMENT bytes, then two of code. */
static void read_long(struct wp_perf_map *map, size_t comment)
{
	static const char tail[] = "\n2000 10 f\n3000 10 g\n";
	int fd = memfd_create("map", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)comment), 0);
	assert_int_equal(pwrite(fd, "1000 10 old\n4000 10 ", 20, 0), 20);
	assert_int_equal(pwrite(fd, tail, sizeof(tail) - 1, (off_t)comment),
			 sizeof(tail) - 1);
	assert_int_equal(wp_perf_map_read(map, fd), 0);
	close(fd);
}

static void of_a_long_file_the_end_is_read(void **state)
{
	enum { MAX = 64 << 20, LINES = 20 };
	struct wp_perf_map map;

	(void)state;
	/* The whole file. */
	read_long(&map, MAX - LINES - 1);
	assert_string_equal(at(&map, 0x1000), "old");
	assert_string_equal(at(&map, 0x3000), "g");
	wp_perf_map_clear(&map);
	read_long(&map, MAX);
	assert_string_equal(at(&map, 0x1000), "");
	assert_string_equal(at(&map, 0x2000), "f");
	assert_string_equal(at(&map, 0x3000), "g");
	wp_perf_map_clear(&map);
}

static void a_line_that_the_limit_cuts_is_left_out(void **state)
{
	enum { MAX = 64 << 20 };
	static const char text[] = "911000 10 f\n1000 10 g\n";
	struct wp_perf_map map;

	(void)state;
	/* One byte more is read. */
	for (int cut = 0; cut <= 12; cut++) {
		int fd = memfd_create("map", MFD_CLOEXEC);

		assert_int_equal(pwrite(fd, text, sizeof(text) - 1, 0),
				 sizeof(text) - 1);
		assert_int_equal(ftruncate(fd, (off_t)MAX + cut), 0);
		assert_int_equal(wp_perf_map_read(&map, fd), 0);
		assert_string_equal(at(&map, 0x911000), cut > 1 ? "" : "f");
		assert_string_equal(at(&map, 0x1000), "g");
		wp_perf_map_clear(&map);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_become_functions),
		cmocka_unit_test(bad_lines_are_left_out_and_counted),
		cmocka_unit_test(later_lines_win),
		cmocka_unit_test(overlaps_are_what_a_plain_search_finds),
		cmocka_unit_test(every_prefix_is_safe),
		cmocka_unit_test(only_a_regular_file_is_read),
		cmocka_unit_test(of_a_long_file_the_end_is_read),
		cmocka_unit_test(a_line_that_the_limit_cuts_is_left_out),
	};

	return cmocka_run_group_tests_name("perf_map", tests, NULL, NULL);
}
