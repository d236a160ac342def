/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  wallprof/throttle.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wallprof/throttle.h"

static char root[] = "/tmp/wallprof_throttle_XXXXXX";

/* Make directory or file NAME below the root with TEXT; NULL: of a directory. */
static void put(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (!text) {
		assert_int_equal(mkdir(path, 0700), 0);
		return;
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void put_counts(const char *name, int periods, int throttled)
{
	char text[64];

	snprintf(text, sizeof(text), "nr_periods %d\nnr_throttled %d\n",
		 periods, throttled);
	put(name, text);
}

static int remove_one(const char *path, const struct stat *st, int kind,
		      struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static int make_root(void **state)
{
	(void)state;
	strcpy(strrchr(root, '_') + 1, "XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	(void)state;
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int open_root(void)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* The group in /a/b has no limit to count, nor has the outermost. */
static void the_group_that_lacked_most_is_named(void **state)
{
	struct wp_throttle t;
	char text[128];
	int fd = open_root();

	(void)state;
	put("cgroup", "0::/a/b/c\n");
	put("a", NULL);
	put("a/b", NULL);
	put("a/b/c", NULL);
	put_counts("a/cpu.stat", 100, 10);
	put_counts("a/b/c/cpu.stat", 50, 20);
	put("a/b/cpu.stat", "usage_usec 1\n");
	put("a/cpu.max", "150000 100000\n");
	put("a/b/c/cpu.max", "max 100000\n");
	wp_throttle_begin(&t, fd, root);
	assert_int_equal(t.n, 2);
	assert_false(wp_throttle_tell(&t, text, sizeof(text)));
	put_counts("a/b/c/cpu.stat", 60, 25);
	put_counts("a/cpu.stat", 120, 16);
	assert_true(wp_throttle_tell(&t, text, sizeof(text)));
	assert_string_equal(text, "6 of 20 periods of cgroup /a without CPU "
				  "time left (150 ms of each 100 ms)");
	put_counts("a/b/c/cpu.stat", 70, 27);
	assert_true(wp_throttle_tell(&t, text, sizeof(text)));
	assert_string_equal(text, "7 of 20 periods of cgroup /a/b/c without "
				  "CPU time left");
	close(fd);
}

static void version_1_has_a_directory_of_its_own(void **state)
{
	struct wp_throttle t;
	char text[128];
	int fd = open_root();

	(void)state;
	put("cgroup", "4:memory:/x\n3:cpuacct,cpu:/n\1\n0::/y\n");
	put("cpu", NULL);
	put("cpu/n\1", NULL);
	put_counts("cpu/n\1/cpu.stat", 1, 1);
	put("cpu/n\1/cpu.cfs_quota_us", "500\n");
	put("cpu/n\1/cpu.cfs_period_us", "10000\n");
	wp_throttle_begin(&t, fd, root);
	put_counts("cpu/n\1/cpu.stat", 3, 2);
	assert_true(wp_throttle_tell(&t, text, sizeof(text)));
	assert_string_equal(text, "1 of 2 periods of cgroup /n? without CPU "
				  "time left (0.5 ms of each 10 ms)");
	close(fd);
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
	struct wp_throttle t;
	char text[128];
	int fd = open_root();

	(void)state;
	wp_throttle_begin(&t, fd, root);
	assert_int_equal(t.n, 0);
	assert_false(wp_throttle_tell(&t, text, sizeof(text)));
	close(fd);
}

#define IN_ROOT(name)                                                          \
	cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(periods_are_counted_where_there_is_a_limit),
		IN_ROOT(the_group_that_lacked_most_is_named),
		IN_ROOT(version_1_has_a_directory_of_its_own),
		IN_ROOT(a_process_that_has_ended_has_no_cgroup),
	};

	return cmocka_run_group_tests_name("throttle", tests, NULL, NULL);
}
