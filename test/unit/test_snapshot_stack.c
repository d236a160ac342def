/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: dump.  A profile's stack as a stack of a dump. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/dump/snapshot_priv.h"
#include "make_go_table.h"
#include "profile_maker.h"

/* How far in their functions a stack of PC, behind it CALLER's, is told to be. */
static void assert_offsets(uint64_t pc, uint32_t want, uint64_t caller,
			   uint32_t want_caller)
{
	const uint64_t pcs[] = { pc, caller, 0 };
	struct maker_symbol symbols[] = { { pc, "main.f", "/src/main.go", 7 },
					  { caller - 1, "main.g",
					    "/src/main.go", 9 } };
	struct wp_snapshot_sample sample = { .sampler = NULL };
	struct section s = make();
	struct wp_dump_stack stack = { 0 };
	struct wp_dump dump = WP_DUMP_INIT;
	uint32_t index;

	s.image.fd = -1;
	s.image.data = s.v;
	s.image.size = s.len;
	s.image.go_table = (struct wp_elf_range){ TABLE, 0, s.len };
	assert_int_equal(wp_go_table_open(&sample.go_table, &s.image), 0);
	assert_int_equal(wp_profile_init(&sample.profile), 0);
	mk_mapping(&sample.profile, TEXT, "/usr/bin/server", "");
	sample.profile.mappings[1].image = &s.image;
	index = mk_stack(&sample.profile, pcs, WP_END_ROOT, 0);
	mk_lines(&sample.profile, symbols, 2);
	assert_int_equal(wp_snapshot_add_stack(&dump, &sample, index, &stack),
			 0);
	assert_int_equal(stack.nframes, 2);
	assert_int_equal(dump.frames[0].go_off, want);
	assert_int_equal(dump.frames[1].go_off, want_caller);
	wp_dump_clear(&dump);
	wp_profile_clear(&sample.profile);
	test_free(s.v);
}

static void frames_have_their_offsets_in_functions_of_go(void **state)
{
	(void)state;
	assert_offsets(TEXT + 0x48, 8, TEXT + 0x65, 5);
}

static void one_that_has_not_begun_has_no_offset(void **state)
{
	(void)state;
	assert_offsets(TEXT + 0x40, 0, TEXT + 0x65, 5);
	assert_offsets(TEXT, 0, TEXT + 0x65, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_have_their_offsets_in_functions_of_go),
		cmocka_unit_test(one_that_has_not_begun_has_no_offset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
