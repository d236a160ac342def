/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: output.  What changed between two profiles, and what of it is chance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile_maker.h"
#include "wallprof/output.h"

static struct wp_profile before, after;
static char *text;

static int setup(void **state)
{
	(void)state;
	make_server(&before);
	make_server(&after);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wp_profile_clear(&before);
	wp_profile_clear(&after);
	free(text);
	text = NULL;
	return 0;
}

static void diff(void)
{
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(wp_write_diff(&before, &after, true, out), 0);
	fclose(out);
}

/* Each sample of PROFILE is by 100 looks. */
static void have_looks(struct wp_profile *profile)
{
	struct wp_sample_set *set = &profile->sets[WP_PROFILE_WALL];

	for (uint32_t i = 0; i < set->nsamples; i++) {
		set->samples[i].looks = 100;
		set->samples[i].cpu_count = 0;
	}
}

/* The line of FUNCTION; static. */
static const char *line_of(const char *function)
{
	static char line[256];
	const char *at = strstr(text, function), *begin = at;

	if (!at)
		fail_msg("no %s in\n%s", function, text);
	while (begin > text && begin[-1] != '\n')
		begin--;
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(begin, "\n"), begin);
	return line;
}

static void without_looks_no_error_is_told(void **state)
{
	(void)state;
	have_looks(&after);
	diff();
	assert_null(strstr(text, "\u00b1"));
	assert_non_null(strstr(text,
			       "per second of recording\n"
			       "      self     before      after      total  "
			       "function\n"));
}

/* The only wait of the server is changed to NS. */
static void wait_for(struct wp_profile *profile, uint64_t ns)
{
	struct wp_sample_set *set = &profile->sets[WP_PROFILE_WALL];

	assert_int_equal(set->samples[0].key.wait, WP_WAIT_POLL);
	set->samples[0].wall_ns = ns;
}

/* epoll_wait has all of 9 s that 100 looks divide, of 10 s: a standard error of 9 s /
 * 10 * sqrt(q (1 - q) / 104) with q = 102 / 104, 12.1 ms per second; after that of
 * 8.6 s, 11.6 ms; of the difference the root of the sum of squares.  A change of 40
 * ms per second is less than three of that. */
static void a_change_within_the_error_has_no_star(void **state)
{
	(void)state;
	have_looks(&before);
	have_looks(&after);
	wait_for(&after, 8600000000);
	diff();
	assert_non_null(strstr(line_of("epoll_wait"), "\u00b116.8 ms   "));
	assert_null(strstr(text, "ms *"));
}

static void a_change_beyond_three_errors_has_a_star(void **state)
{
	(void)state;
	have_looks(&before);
	have_looks(&after);
	wait_for(&after, 4000000000);
	diff();
	assert_non_null(strstr(line_of("epoll_wait"), "-500 ms"));
	assert_non_null(strstr(line_of("epoll_wait"), "ms *"));
	/* Its callers have no time of their own. */
	assert_null(strstr(line_of("main"), "\u00b1"));
}

/* Two dumps of one process: the time between their looks says nothing. */
static void numbers_of_threads_are_not_divided(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct wp_profile *p = i ? &after : &before;

		p->meta.value_type = mk_str(p, "thread");
		p->meta.value_unit = mk_str(p, "count");
		p->meta.duration_ns = i ? 3000000 : 1000000;
		wait_for(p, i ? 30 : 9);
	}
	diff();
	assert_int_equal(strncmp(text, "sums of each file\n", 18), 0);
	assert_non_null(strstr(line_of("epoll_wait"),
			       "      +21          9         30        +21"));
}

/* Both have 40 s of thread time. */
static void without_a_duration_values_are_not_divided(void **state)
{
	(void)state;
	before.meta.duration_ns = 0;
	diff();
	assert_non_null(
		strstr(text, "one does not say how long it was recorded"));
	assert_non_null(strstr(line_of("  all"), "+0 s     40.0 s     40.0 s"));
}

static void assert_differs(const char *want)
{
	struct wp_err err = WP_ERR_INIT;

	assert_int_equal(wp_diff_check(&before, &after, &err), -EINVAL);
	assert_string_equal(err.msg, want);
}

static void unlike_values_have_no_difference(void **state)
{
	struct wp_err err = WP_ERR_INIT;

	(void)state;
	assert_int_equal(wp_diff_check(&before, &after, &err), 0);
	before.meta.value_type = mk_str(&before, "inuse_space");
	before.meta.value_unit = mk_str(&before, "bytes");
	assert_differs("the values before (inuse_space) are bytes, those after "
		       "(wall) are nanoseconds: there is no difference of "
		       "them");
	after.meta.value_type = mk_str(&after, "inuse_space");
	after.meta.value_unit = mk_str(&after, "count");
	assert_differs("the values before (inuse_space) are bytes, those after "
		       "(inuse_space) are count: there is no difference of "
		       "them");
	after.meta.value_unit = mk_str(&after, "bytes");
	assert_int_equal(wp_diff_check(&before, &after, &err), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_looks_no_error_is_told),
		TEST(a_change_within_the_error_has_no_star),
		TEST(a_change_beyond_three_errors_has_a_star),
		TEST(numbers_of_threads_are_not_divided),
		TEST(without_a_duration_values_are_not_divided),
		TEST(unlike_values_have_no_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
