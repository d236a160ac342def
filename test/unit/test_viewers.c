/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: output.  firefox.c and speedscope.c: which threads their files have, and what
 * these are called.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "profile_maker.h"
#include "wallprof/output.h"

static struct wp_profile p;

static int setup(void **state)
{
	(void)state;
	make_server(&p);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wp_profile_clear(&p);
	return 0;
}

static char *file_of(enum wp_profile_kind kind, enum wp_format format)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(wp_write_profile(&p, kind, format, NULL, out), 0);
	fclose(out);
	return text;
}

static void assert_has(const char *text, const char *want)
{
	if (!strstr(text, want))
		fail_msg("not in the file:\n%s\nthe file:\n%s", want, text);
}

/* Entry 1 of the server's four threads gets none, as of threads that -t leaves out. */
static void a_thread_without_samples_is_in_no_file(void **state)
{
	struct wp_sample_set *set = &p.sets[WP_PROFILE_WALL];
	char *text;

	(void)state;
	for (uint32_t i = 0; i < set->nsamples; i++)
		if (set->samples[i].key.thread == 1)
			set->samples[i].key.thread = 2;
	text = file_of(WP_PROFILE_WALL, WP_FORMAT_FIREFOX);
	assert_null(strstr(text, "\"name\":\"work-1\""));
	assert_has(text, "\"initialVisibleThreads\":[0,1,2]}");
	assert_has(text, "\"threads\":[{\"name\":\"server\"");
	assert_has(text, "},\n{\"name\":\"work-2\"");
	free(text);
	text = file_of(WP_PROFILE_WALL, WP_FORMAT_SPEEDSCOPE);
	assert_null(strstr(text, "work-1"));
	free(text);
	/* The viewer shows no file without a thread. */
	text = file_of(WP_PROFILE_BLOCK, WP_FORMAT_FIREFOX);
	assert_has(text, "\"initialVisibleThreads\":[0,1,2,3]}");
	free(text);
}

static void a_shared_entry_has_the_id_of_none(void **state)
{
	char *text;

	(void)state;
	p.threads[1].nmore = 3;
	text = file_of(WP_PROFILE_WALL, WP_FORMAT_SPEEDSCOPE);
	assert_has(text, "\"name\":\"work-1 and 3 more, sums\"");
	assert_has(text, "\"name\":\"work-2 (102), sums\"");
	free(text);
	/* As of a file that tells no ids. */
	p.threads[1].nmore = 0;
	p.threads[1].tid = 0;
	text = file_of(WP_PROFILE_WALL, WP_FORMAT_SPEEDSCOPE);
	assert_has(text, "\"name\":\"work-1, sums\"");
	free(text);
}

static void a_holder_that_is_shared_has_the_id_of_none(void **state)
{
	struct wp_sample_set *set = &p.sets[WP_PROFILE_WALL];
	struct wp_sample_key key = set->samples[2].key;
	char *text;

	(void)state;
	for (uint32_t i = 0; i < set->nsamples; i++)
		set->samples[i].count = set->samples[i].wall_ns = 0;
	wp_timeline_start(&p.timeline, 1 << 20);
	assert_int_equal(wp_profile_add_sample(&p, WP_PROFILE_WALL, &key, 1, 9),
			 0);
	wp_timeline_set_holder(&p.timeline, key.thread, 2);
	text = file_of(WP_PROFILE_WALL, WP_FORMAT_FIREFOX);
	assert_has(text, "\"holder\":\"work-2 (102)\"");
	free(text);
	p.threads[2].nmore = 3;
	text = file_of(WP_PROFILE_WALL, WP_FORMAT_FIREFOX);
	assert_has(text, "\"holder\":\"work-2 and 3 more\"");
	free(text);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_thread_without_samples_is_in_no_file),
		T(a_shared_entry_has_the_id_of_none),
		T(a_holder_that_is_shared_has_the_id_of_none),
	};

	return cmocka_run_group_tests_name("viewers", tests, NULL, NULL);
}
