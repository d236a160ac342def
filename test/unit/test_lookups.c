/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: symbolize.  lookups.h: files below one root directory are named together,
 * code in no file by its own process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include "../../src/symbolize/lookups.h"
#include "wallprof/process.h"

static struct wp_profile profile;
static struct wp_lookups lookups;
/* Of two processes below one root, by two descriptors, and of one below another. */
static struct wp_symbol_source sources[3];

static int open_dir(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static int setup(void **state)
{
	(void)state;
	sources[0].root_fd = open_dir("/");
	sources[1].root_fd = open_dir("/");
	sources[2].root_fd = open_dir("/proc");
	return wp_profile_init(&profile);
}

static int teardown(void **state)
{
	(void)state;
	wp_lookups_clear(&lookups);
	wp_profile_clear(&profile);
	for (int i = 0; i < 3; i++)
		close(sources[i].root_fd);
	return 0;
}

static uint32_t add(const char *path, uint32_t process)
{
	const struct wp_profile_mapping mapping = {
		.path = wp_intern_add_str(&profile.strings, path),
		.process = process,
	};

	return wp_profile_add_mapping(&profile, &mapping);
}

static const struct wp_symbol_source *source_of(uint32_t mapping)
{
	assert_true(lookups.group_of[mapping] < lookups.n);
	return lookups.sources[lookups.group_of[mapping]];
}

static void files_are_grouped_by_root(void **state)
{
	uint32_t libc = add("/lib/libc.so.6", 0), other = add("/bin/x", 1),
		 inside = add("/lib/libc.so.6", 2), unknown = add("/bin/y", 77);

	(void)state;
	assert_int_equal(wp_lookups_init(&lookups, &profile, sources, 3), 0);
	assert_int_equal(lookups.n, 2);
	assert_int_equal(lookups.group_of[libc], lookups.group_of[other]);
	assert_true(lookups.group_of[libc] != lookups.group_of[inside]);
	assert_ptr_equal(source_of(libc), &sources[0]);
	assert_ptr_equal(source_of(inside), &sources[2]);
	/* Of a process that has no source of its own. */
	assert_ptr_equal(source_of(unknown), &sources[0]);
}

static void code_in_no_file_is_its_processes_own(void **state)
{
	uint32_t first = add("", 0), second = add("", 1),
		 again = add("/memfd:jit (deleted)", 1), file = add("/x", 1);

	(void)state;
	assert_int_equal(wp_lookups_init(&lookups, &profile, sources, 3), 0);
	assert_ptr_equal(source_of(first), &sources[0]);
	assert_ptr_equal(source_of(second), &sources[1]);
	assert_int_equal(lookups.group_of[second], lookups.group_of[again]);
	assert_true(lookups.group_of[first] != lookups.group_of[file]);
	assert_ptr_equal(source_of(file), &sources[0]);
	/* Files, and the code of two processes. */
	assert_int_equal(lookups.n, 3);
}

static void one_process_has_one_group(void **state)
{
	uint32_t code = add("", 0), file = add("/x", 0);

	(void)state;
	assert_int_equal(wp_lookups_init(&lookups, &profile, sources, 1), 0);
	assert_int_equal(lookups.n, 1);
	assert_int_equal(lookups.group_of[code], lookups.group_of[file]);
}

static void sources_are_told_apart_by_their_directories(void **state)
{
	const struct wp_symbol_source none = { .root_fd = -1 };
	struct wp_process process = WP_PROCESS_INIT;
	struct wp_symbol_source own;

	(void)state;
	assert_true(wp_symbol_source_is_like(&sources[0], &sources[1]));
	assert_false(wp_symbol_source_is_like(&sources[0], &sources[2]));
	assert_false(wp_symbol_source_is_like(&sources[0], &none));
	assert_true(wp_symbol_source_is_like(&none, &none));
	assert_int_equal(wp_process_open(&process, getpid(), NULL), 0);
	own = wp_symbol_source_of(&process);
	assert_int_equal(own.uid, geteuid());
	assert_true(own.pid_inside > 0);
	wp_process_clear(&process);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(files_are_grouped_by_root),
		TEST(code_in_no_file_is_its_processes_own),
		TEST(one_process_has_one_group),
		TEST(sources_are_told_apart_by_their_directories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
