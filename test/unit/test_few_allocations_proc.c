/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says is read whole, or it is said that there was no memory,
 * whichever allocation fails.
 *
 * Layer: proc.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "few_allocations.h"
#include "wallprof/children.h"
#include "wallprof/fdinfo.h"
#include "wallprof/kallsyms.h"
#include "wallprof/process.h"

#ifdef CAN_FAIL

enum { LINES = 500, MANY = 10000 };

static void put_map(FILE *f, unsigned int i)
{
	fprintf(f, "%x000-%xfff r-xp 00000000 08:01 7   /lib/%u.so\n", i, i, i);
}

static void put_symbol(FILE *f, unsigned int i)
{
	/* Data are passed over. */
	fprintf(f, "ffffffff%08x T name_of_%u\nffffffff00000001 D data\n", i,
		i);
}

static void put_child(FILE *f, unsigned int i)
{
	fprintf(f, "%u ", i);
}

static void put_socket(FILE *f, unsigned int i)
{
	fprintf(f,
		"0000000000000000: 00000002 00000000 00010000 0001 01 %u "
		"/run/socket-%u\n",
		i, i);
}

/* To be freed. */
static char *make_lines(void (*put)(FILE *f, unsigned int i))
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	for (unsigned int i = 1; i <= LINES; i++)
		put(f, i);
	fclose(f);
	return text;
}

/* READ gives 0 and what it should have read, or -ENOMEM; and frees all. */
static void assert_whole_or_error(int (*read)(const void *input),
				  const void *input)
{
	long before, failed = 0;
	int rc = -1;

	/* What libc keeps for good is made now. */
	assert_int_equal(read(input), 0);
	before = live;
	for (long n = 0; rc; n++, failed++) {
		allocations_left = n;
		rc = read(input);
		allocations_left = -1;
		assert_true(!rc || rc == -ENOMEM);
		assert_int_equal(live, before);
		assert_true(n < MANY);
	}
	assert_true(failed > 1);
}

static int read_maps(const void *input)
{
	struct wp_maps maps = WP_MAPS_INIT;
	int rc = wp_maps_parse(&maps, input, strlen(input));
	bool whole = !rc && maps.len == LINES;

	for (unsigned int i = 0; whole && i < LINES; i++) {
		char want[32];

		snprintf(want, sizeof(want), "/lib/%u.so", i + 1);
		whole = !strcmp(wp_maps_path(&maps, &maps.v[i]), want);
	}

	wp_maps_clear(&maps);
	assert_true(rc || whole);
	return rc;
}

static int read_kallsyms(const void *input)
{
	struct wp_kallsyms table = WP_KALLSYMS_INIT;
	int rc = wp_kallsyms_parse(&table, input, strlen(input));
	bool whole = table.len == LINES;

	wp_kallsyms_clear(&table);
	assert_true(rc || whole);
	return rc;
}

static int read_children(const void *input)
{
	struct wp_tids pids = WP_TIDS_INIT;
	int rc = wp_children_parse(&pids, input, strlen(input));
	bool whole = pids.len == LINES;

	wp_tids_clear(&pids);
	assert_true(rc || whole);
	return rc;
}

static int read_sockets(const void *input)
{
	struct wp_fdinfo fi;
	int rc;

	wp_fdinfo_init(&fi, -1);
	rc = wp_fdinfo_parse_net(&fi, "unix", input, strlen(input));
	wp_fdinfo_clear(&fi);
	return rc;
}

static void texts_are_parsed_whole_or_not(void **state)
{
	static const struct {
		int (*read)(const void *input);
		void (*put)(FILE *f, unsigned int i);
	} texts[] = {
		{ read_maps, put_map },
		{ read_kallsyms, put_symbol },
		{ read_children, put_child },
		{ read_sockets, put_socket },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		char *text = make_lines(texts[i].put);

		assert_whole_or_error(texts[i].read, text);
		free(text);
	}
}

static int read_threads(const void *input)
{
	struct wp_tids tids = WP_TIDS_INIT;
	int rc = wp_process_list_threads(input, &tids);
	bool whole = tids.len == 1;

	wp_tids_clear(&tids);
	assert_true(rc || whole);
	return rc;
}

static void threads_are_listed_or_not(void **state)
{
	struct wp_process process = WP_PROCESS_INIT;

	(void)state;
	assert_int_equal(wp_process_open(&process, getpid(), NULL), 0);
	assert_int_equal(read_threads(&process), 0);
	allocations_left = 0;
	assert_int_equal(read_threads(&process), -ENOMEM);
	allocations_left = -1;
	wp_process_clear(&process);
}

static int read_process(const void *input)
{
	struct wp_process process = WP_PROCESS_INIT;
	struct wp_tids tids = WP_TIDS_INIT;
	struct wp_maps maps = WP_MAPS_INIT;
	struct wp_text text = WP_TEXT_INIT;
	int rc = wp_process_open(&process, *(const pid_t *)input, NULL);

	if (!rc)
		rc = wp_process_list_threads(&process, &tids);
	if (!rc)
		rc = wp_process_read_maps(&process, &text, &maps);
	if (!rc)
		assert_true(tids.len == 1 && maps.len > 5);
	wp_text_clear(&text);
	wp_maps_clear(&maps);
	wp_tids_clear(&tids);
	wp_process_clear(&process);
	return rc;
}

static void a_process_is_read_whole_or_not(void **state)
{
	pid_t self = getpid();

	(void)state;
	assert_whole_or_error(read_process, &self);
}
#endif

int main(void)
{
#ifdef CAN_FAIL
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_parsed_whole_or_not),
		cmocka_unit_test(threads_are_listed_or_not),
		cmocka_unit_test(a_process_is_read_whole_or_not),
	};

	return cmocka_run_group_tests_name("few_allocations_proc", tests, NULL,
					   NULL);
#else
	return 0;
#endif
}
