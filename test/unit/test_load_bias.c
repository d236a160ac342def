/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  load_bias.h: which segment a mapping shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../src/sample/load_bias.h"

enum { R = PF_R, RW = PF_R | PF_W, RX = PF_R | PF_X, RWX = PF_R | PF_W | PF_X };

#define BIAS UINT64_C(0x70000000)
#define FILE_AT " 08:01 99 /x\n"

/* The svma that the mapping at BIAS + SVMA begins with, less SVMA, by what MAPS, whose
 * lines are those of BIAS, says of the segments LOADS, up to one of no bytes. */
static int64_t off_by(const struct wp_elf_load *loads, const char *lines,
		      uint64_t svma)
{
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	struct wp_maps maps = WP_MAPS_INIT;
	const struct wp_map *map;
	uint64_t bias = 1;

	while (loads[image.nloads].memsz) {
		image.loads[image.nloads] = loads[image.nloads];
		image.nloads++;
	}
	assert_int_equal(wp_maps_parse(&maps, lines, strlen(lines)), 0);
	map = wp_maps_find(&maps, BIAS + svma);
	assert_non_null(map);
	assert_true(wp_load_bias_find(&image, &maps, map, &bias));
	wp_maps_clear(&maps);
	return (int64_t)(bias - BIAS);
}

/* As lld lays them out: readelf -lW of any program of rustc 1.90. */
static void segments_may_share_a_page_of_the_file(void **state)
{
	static const struct wp_elf_load loads[] = {
		{ 0, 0, 0x1230, 0x1230, R },
		{ 0x5234, 0x1234, 0x2000, 0x3000, RX },
		/* Without bytes in the file it is not mapped from there. */
		{ 0x9240, 0x1240, 0, 0x100, RW },
		{ 0 },
	};
	static const char lines[] =
		"70000000-70002000 r--p 00000000" FILE_AT
		"70005000-70008000 r-xp 00001000" FILE_AT
		"70009000-7000a000 rw-p 00000000 00:00 0 \n";

	(void)state;
	assert_int_equal(off_by(loads, lines, 0), 0);
	assert_int_equal(off_by(loads, lines, 0x5000), 0);
}

/* As lld 14 lays out a short program: headers, code and data in one page. */
static void code_may_be_between_others_in_a_page(void **state)
{
	static const struct wp_elf_load loads[] = {
		{ 0, 0, 0x400, 0x400, R },
		{ 0x1440, 0x440, 0x80, 0x80, RX },
		{ 0x24c0, 0x4c0, 0x80, 0x80, RW },
		{ 0 },
	};
	static const char lines[] = "70000000-70001000 r--p 00000000" FILE_AT
				    "70001000-70002000 r-xp 00000000" FILE_AT
				    "70002000-70003000 rw-p 00000000" FILE_AT;

	(void)state;
	for (uint64_t svma = 0; svma < 0x3000; svma += 0x1000)
		assert_int_equal(off_by(loads, lines, svma), 0);
	/* Nothing but its rights tells. */
	assert_int_equal(off_by(loads,
				"70001000-70002000 r-xp 00000000" FILE_AT,
				0x1000),
			 0);
}

/* As lld lays out a program whose code and data share a page of the file, of which the
 * data, but for a part that is read-only once it is linked, may be written. */
static void a_part_of_the_data_may_be_read_only(void **state)
{
	static const struct wp_elf_load loads[] = {
		{ 0, 0, 0x8d0, 0x8d0, R },
		{ 0x18d0, 0x8d0, 0x560, 0x560, RX },
		{ 0x2e30, 0xe30, 0x10, 0x10, RW },
		{ 0x3e40, 0xe40, 0x10, 0x3000, RW },
		{ 0 },
	};
	static const char lines[] = "70000000-70001000 r--p 00000000" FILE_AT
				    "70001000-70002000 r-xp 00000000" FILE_AT
				    "70002000-70003000 r--p 00000000" FILE_AT
				    "70003000-70004000 rw-p 00000000" FILE_AT;

	(void)state;
	for (uint64_t svma = 0; svma < 0x4000; svma += 0x1000)
		assert_int_equal(off_by(loads, lines, svma), 0);
}

/* Data that may be executed, before and behind the code, in a page with it. */
static void data_may_be_executable(void **state)
{
	static const struct wp_elf_load behind[] = {
		{ 0, 0, 0x1230, 0x1230, RX },
		{ 0x2230, 0x1230, 0x100, 0x100, RWX },
		{ 0 },
	};
	static const struct wp_elf_load before[] = {
		{ 0x1000, 0x1000, 0x230, 0x230, RWX },
		{ 0x2230, 0x1230, 0x1000, 0x1000, RX },
		{ 0 },
	};

	(void)state;
	assert_int_equal(off_by(behind,
				"70000000-70002000 r-xp 00000000" FILE_AT
				"70002000-70003000 rwxp 00001000" FILE_AT,
				0),
			 0);
	assert_int_equal(off_by(behind,
				"70000000-70002000 r-xp 00000000" FILE_AT
				"70002000-70003000 rwxp 00001000" FILE_AT,
				0x2000),
			 0);
	assert_int_equal(off_by(before,
				"70001000-70002000 rwxp 00001000" FILE_AT
				"70002000-70004000 r-xp 00001000" FILE_AT,
				0x1000),
			 0);
	assert_int_equal(off_by(before,
				"70001000-70002000 rwxp 00001000" FILE_AT
				"70002000-70004000 r-xp 00001000" FILE_AT,
				0x2000),
			 0);
}

/* Two segments of one page with the same rights; the one that comes first in the file is
 * the second in memory.  Another file lies where a wrong one would be. */
static void where_the_others_are_tells(void **state)
{
	static const struct wp_elf_load loads[] = {
		{ 0x1800, 0x800, 0x100, 0x100, RWX },
		{ 0x2100, 0x100, 0x100, 0x100, RWX },
		{ 0 },
	};
	static const char lines[] =
		"70000000-70001000 rwxp 00000000 08:01 98 /y\n"
		"70001000-70002000 rwxp 00000000" FILE_AT
		"70002000-70003000 rwxp 00000000" FILE_AT
		"70003000-70004000 rwxp 00001000" FILE_AT;

	(void)state;
	assert_int_equal(off_by(loads, lines, 0x1000), 0);
	assert_int_equal(off_by(loads, lines, 0x2000), 0);
}

/* Rights that were changed, as relocations in code want it for a while. */
static void rights_may_change(void **state)
{
	static const struct wp_elf_load loads[] = {
		{ 0, 0, 0x400, 0x400, R },
		{ 0x1400, 0x400, 0x80, 0x80, RX },
		{ 0x2480, 0x480, 0x80, 0x80, RW },
		{ 0 },
	};

	(void)state;
	assert_int_equal(off_by(loads,
				"70001000-70002000 rwxp 00000000" FILE_AT,
				0x1000),
			 0);
	assert_int_equal(off_by(loads,
				"70000000-70001000 rwxp 00000000" FILE_AT
				"70001000-70002000 rwxp 00000000" FILE_AT
				"70002000-70003000 rwxp 00000000" FILE_AT,
				0x2000),
			 0);
}

static void a_mapping_may_show_no_segment(void **state)
{
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	struct wp_maps maps = WP_MAPS_INIT;
	static const char line[] = "70001000-70002000 r-xp 00005000" FILE_AT;
	uint64_t bias = 7;

	(void)state;
	assert_int_equal(wp_maps_parse(&maps, line, strlen(line)), 0);
	assert_false(wp_load_bias_find(&image, &maps, maps.v, &bias));
	image.nloads = 1;
	image.loads[0] = (struct wp_elf_load){ 0x1000, 0x1000, 0x4000, 0x8000,
					       RX };
	assert_false(wp_load_bias_find(&image, &maps, maps.v, &bias));
	assert_int_equal(bias, 7);
	wp_maps_clear(&maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_may_share_a_page_of_the_file),
		cmocka_unit_test(code_may_be_between_others_in_a_page),
		cmocka_unit_test(a_part_of_the_data_may_be_read_only),
		cmocka_unit_test(data_may_be_executable),
		cmocka_unit_test(where_the_others_are_tells),
		cmocka_unit_test(rights_may_change),
		cmocka_unit_test(a_mapping_may_show_no_segment),
	};

	return cmocka_run_group_tests_name("load_bias", tests, NULL, NULL);
}
