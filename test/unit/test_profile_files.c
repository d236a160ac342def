/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: cmd.  src/outset.h: the files of several profiles, by their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/cmd/profile_files.h"

#define BIT(kind) (1u << WP_PROFILE_##kind)

static char dir[] = "/tmp/wallprof-outset-XXXXXX";

static int enter_directory(void **state)
{
	(void)state;
	return !mkdtemp(dir) || chdir(dir) || mkdir("dir.d", 0700);
}

static int leave_directory(void **state)
{
	(void)state;
	return rmdir("dir.d") || chdir("/") || rmdir(dir);
}

static size_t count_files(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *entry;
	size_t n = 0;

	assert_non_null(d);
	while ((entry = readdir(d)))
		n += entry->d_type == DT_REG;
	closedir(d);
	return n;
}

static int write_kind(void *ctx, enum wp_profile_kind kind, FILE *out)
{
	const enum wp_profile_kind *fails = ctx;

	fputs(wp_profile_kind_name(kind), out);
	return fails && *fails == kind ? -EIO : 0;
}

static void assert_holds(const char *path, const char *text)
{
	char have[32] = "";
	FILE *f = fopen(path, "r");

	if (!f)
		fail_msg("no file %s", path);
	assert_non_null(fgets(have, sizeof(have), f));
	fclose(f);
	assert_string_equal(have, text);
	assert_int_equal(unlink(path), 0);
}

/* Files with their kind in them, and no more. */
static void names_are_made_of_the_kind(void **state)
{
	static const struct {
		const char *path;
		unsigned int kinds;
		/* Of each kind in order. */
		const char *files[5];
	} rows[] = {
		{ "a.pb.gz", BIT(WALL), { "a.pb.gz" } },
		{ "a.pb.gz", BIT(BLOCK), { "a.pb.gz" } },
		{ "a.pb.gz",
		  BIT(WALL) | BIT(BLOCK),
		  { "a.pb.gz", "a.block.pb.gz" } },
		{ "a.pb.gz",
		  BIT(WALL) | BIT(MUTEX) | BIT(THREADCREATE),
		  { "a.pb.gz", "a.mutex.pb.gz", "a.threadcreate.pb.gz" } },
		{ "a.pb.gz",
		  BIT(WALL) | BIT(BLOCK) | BIT(MUTEX) | BIT(THREADCREATE) |
			  BIT(HEAP),
		  { "a.pb.gz", "a.block.pb.gz", "a.mutex.pb.gz",
		    "a.threadcreate.pb.gz", "a.heap.pb.gz" } },
		{ "a.pb.gz",
		  BIT(BLOCK) | BIT(MUTEX),
		  { "a.block.pb.gz", "a.mutex.pb.gz" } },
		{ "a.speedscope.json",
		  BIT(WALL) | BIT(BLOCK),
		  { "a.speedscope.json", "a.block.speedscope.json" } },
		{ "a.firefox.json",
		  BIT(BLOCK) | BIT(MUTEX),
		  { "a.block.firefox.json", "a.mutex.firefox.json" } },
		{ "a.b.pb.gz",
		  BIT(WALL) | BIT(BLOCK),
		  { "a.b.pb.gz", "a.b.block.pb.gz" } },
		{ "x.folded",
		  BIT(WALL) | BIT(BLOCK),
		  { "x.folded", "x.block.folded" } },
		{ "dir.d/noext",
		  BIT(WALL) | BIT(BLOCK),
		  { "dir.d/noext", "dir.d/noext.block" } },
		{ "dir.d/x.txt",
		  BIT(WALL) | BIT(BLOCK),
		  { "dir.d/x.txt", "dir.d/x.block.txt" } },
		{ ".hidden",
		  BIT(WALL) | BIT(BLOCK),
		  { ".hidden", ".hidden.block" } },
		{ "x.", BIT(WALL) | BIT(BLOCK), { "x.", "x.block." } },
		{ "%s.txt",
		  BIT(WALL) | BIT(BLOCK),
		  { "%s.txt", "%s.block.txt" } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_err err = WP_ERR_INIT;
		struct wp_profile_files set;

		assert_int_equal(wp_profile_files_open(&set, rows[i].kinds,
						       rows[i].path, &err),
				 0);
		assert_int_equal(
			wp_profile_files_write(&set, write_kind, NULL, &err),
			0);
		for (size_t k = 0; k < set.n; k++)
			assert_holds(rows[i].files[k],
				     wp_profile_kind_name(set.v[k].kind));
		assert_true(set.n == 5 || !rows[i].files[set.n]);
		wp_profile_files_discard(&set);
		assert_int_equal(count_files(".") + count_files("dir.d"), 0);
	}
}

static void streams_take_one_after_another(void **state)
{
	struct wp_err err = WP_ERR_INIT;
	struct wp_profile_files set;

	(void)state;
	assert_int_equal(wp_profile_files_open(&set, BIT(WALL) | BIT(BLOCK),
					       "/dev/null", &err),
			 0);
	assert_int_equal(set.n, 2);
	assert_string_equal(set.v[1].path, "/dev/null");
	assert_int_equal(wp_profile_files_write(&set, write_kind, NULL, &err),
			 0);
	wp_profile_files_discard(&set);
	assert_int_equal(
		wp_profile_files_open(&set, BIT(WALL) | BIT(BLOCK), NULL, &err),
		0);
	assert_ptr_equal(set.v[1].file.stream, stdout);
	wp_profile_files_discard(&set);
}

/* The name that is to be made is too long, for a path or for a directory. */
static void names_too_long_are_refused(void **state)
{
	static const size_t lengths[] = { PATH_MAX - 1, PATH_MAX - 4,
					  PATH_MAX + 100, NAME_MAX - 3 };
	char path[PATH_MAX + 128];

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct wp_err err = WP_ERR_INIT;
		struct wp_profile_files set;

		memset(path, 'x', sizeof(path));
		path[lengths[i]] = '\0';
		assert_int_equal(wp_profile_files_open(&set,
						       BIT(WALL) | BIT(BLOCK),
						       path, &err),
				 -ENAMETOOLONG);
		assert_true(err.msg[0]);
		wp_profile_files_discard(&set);
		assert_int_equal(count_files("."), 0);
	}
}

static void what_is_not_written_is_not_left(void **state)
{
	enum wp_profile_kind fails = WP_PROFILE_BLOCK;
	struct wp_err err = WP_ERR_INIT;
	struct wp_profile_files set;

	(void)state;
	assert_int_equal(
		wp_profile_files_open(&set, BIT(WALL) | BIT(BLOCK) | BIT(MUTEX),
				      "a.txt", &err),
		0);
	assert_int_equal(wp_profile_files_write(&set, write_kind, &fails, &err),
			 -EIO);
	wp_profile_files_discard(&set);
	wp_profile_files_discard(&set);
	/* What was complete before. */
	assert_holds("a.txt", "wall");
	assert_int_equal(count_files("."), 0);
	/* No directory. */
	assert_int_equal(wp_profile_files_open(&set, BIT(WALL) | BIT(BLOCK),
					       "none/a.txt", &err),
			 -ENOENT);
	wp_profile_files_discard(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_made_of_the_kind),
		cmocka_unit_test(streams_take_one_after_another),
		cmocka_unit_test(names_too_long_are_refused),
		cmocka_unit_test(what_is_not_written_is_not_left),
	};

	return cmocka_run_group_tests_name("outset", tests, enter_directory,
					   leave_directory);
}
