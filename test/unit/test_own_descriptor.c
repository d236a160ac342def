/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: cmd.  src/own_descriptor.h: what paths stand for, by the kernel's links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../src/cmd/own_descriptor.h"

static char dir[] = "/tmp/wallprof-own-XXXXXX";

static int enter_directory(void **state)
{
	(void)state;
	return !mkdtemp(dir) || chdir(dir) || symlink("/dev/fd/7", "seven") ||
	       symlink("seven", "to-seven") || symlink("/dev/fd", "fds") ||
	       symlink("loop", "loop") || symlink("/dev/null", "null") ||
	       symlink("/proc/self/fd/../fd/2", "two");
}

static int leave_directory(void **state)
{
	(void)state;
	return unlink("seven") || unlink("to-seven") || unlink("fds") ||
	       unlink("loop") || unlink("null") || unlink("two") ||
	       chdir("/") || rmdir(dir);
}

static void paths_of_descriptors_are_known(void **state)
{
	static const struct {
		const char *path;
		int fd;
	} rows[] = {
		{ "/proc/self/fd/9", 9 },
		{ "/proc/thread-self/fd/9", 9 },
		{ "/proc/self/./fd//9", 9 },
		{ "/dev/fd/12", 12 },
		{ "seven", 7 },
		{ "to-seven", 7 },
		{ "fds/3", 3 },
		{ "two", 2 },
		{ "loop", -1 },
		{ "null", -1 },
		{ "/dev/null", -1 },
		{ "/proc/1/fd/1", -1 },
		{ "/proc/self/fdinfo/1", -1 },
		{ "/proc/self/fd/x", -1 },
		{ "/proc/self/fd/1x", -1 },
		{ "/proc/self/fd/99999999999", -1 },
		{ "7", -1 },
		{ "", -1 },
		{ "no/7", -1 },
	};
	char own[64];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (wp_own_descriptor_find(rows[i].path) != rows[i].fd)
			fail_msg("%s: %d", rows[i].path,
				 wp_own_descriptor_find(rows[i].path));
	snprintf(own, sizeof(own), "/proc/%d/fd/5", (int)getpid());
	assert_int_equal(wp_own_descriptor_find(own), 5);
	snprintf(own, sizeof(own), "/proc/%d/task/%d/fd/5", (int)getpid(),
		 (int)getpid());
	assert_int_equal(wp_own_descriptor_find(own), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_of_descriptors_are_known),
	};

	return cmocka_run_group_tests_name("own_descriptor", tests,
					   enter_directory, leave_directory);
}
