/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: symbolize.  Files of which names or lines are missing are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/symbolize/unread_files.h"
#include "make_elf.h"
#include "profile_maker.h"
#include "wallprof/elf_image.h"
#include "wallprof/symbols.h"

static struct wp_profile p;

static int setup(void **state)
{
	(void)state;
	return wp_profile_init(&p);
}

static int teardown(void **state)
{
	(void)state;
	wp_profile_clear(&p);
	return 0;
}

/* Without a build-id nothing tells whether a file that was written to holds the code
 * that is mapped. */
static void a_file_that_was_written_to_is_counted(void **state)
{
	static const struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
	static const uint8_t code[16];
	const struct make_section section = {
		.name = ".text", .type = SHT_PROGBITS, .data = code, .size = 16
	};
	size_t size;
	uint8_t *bytes = make_elf(&section, 1, &size);
	int fd = memfd_create("prog", MFD_CLOEXEC);
	struct wp_elf_image image;
	struct wp_err err = WP_ERR_INIT;
	uint32_t m = mk_mapping(&p, EXE_START, "/usr/bin/prog", "");

	(void)state;
	assert_int_equal(write(fd, bytes, size), (ssize_t)size);
	assert_int_equal(wp_elf_image_open(&image, fd, &err), 0);
	p.mappings[m].image = &image;
	assert_int_equal(wp_unread_files_count(&p), 0);
	assert_int_equal(p.counters.files_unopened, 0);
	assert_int_equal(futimens(fd, times), 0);
	assert_int_equal(wp_unread_files_count(&p), 0);
	assert_int_equal(p.counters.files_unopened, 1);
	wp_elf_image_clear(&image);
	free(bytes);
}

static void the_cause_of_missing_lines_is_told(void **state)
{
	static const char *const says[] = {
		[WP_DWARF_WHOLE] = "",
		[WP_DWARF_SPLIT] = "debug info of prog is partly in .dwo files",
		[WP_DWARF_CUT] = "debug info of prog takes too much work",
		[WP_DWARF_LACKS_SHARED] = ".gnu_debugaltlink",
		[WP_DWARF_UNREADABLE] = "debug info of prog cannot be read",
		[WP_DWARF_TOO_LARGE] = "is larger than 512 MiB",
	};
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	uint32_t m = mk_mapping(&p, EXE_START, "/usr/bin/prog", "");

	(void)state;
	p.mappings[m].image = &image;
	p.mappings[m].is_data = true;
	for (uint8_t i = 0; i < sizeof(says) / sizeof(*says); i++) {
		const char *why;

		p.mappings[m].dwarf_loss = i;
		assert_int_equal(wp_unread_files_count(&p), 0);
		why = wp_profile_str(&p, p.meta.lineless_why);
		assert_int_equal(p.counters.files_lineless, i > 0);
		assert_non_null(strstr(why, says[i]));
		assert_true(i || !*why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_file_that_was_written_to_is_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_cause_of_missing_lines_is_told, setup, teardown),
	};

	return cmocka_run_group_tests_name("unread_files", tests, NULL, NULL);
}
