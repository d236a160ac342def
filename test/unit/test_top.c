/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: output.  wallprof/top.h: what came to a profile between two looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "profile_maker.h"
#include "wallprof/clock.h"
#include "wallprof/top.h"

#define S WP_NS_PER_S

static struct wp_profile profile;
static struct wp_top top;

static int setup(void **state)
{
	(void)state;
	top = (struct wp_top)WP_TOP_INIT;
	make_server(&profile);
	profile.nlocated = profile.nstacks;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wp_top_clear(&top);
	wp_profile_clear(&profile);
	return 0;
}

static void look(uint64_t now_ns)
{
	assert_int_equal(wp_top_look(&top, &profile, now_ns), 0);
	assert_int_equal(wp_top_list(&top, &profile), 0);
}

/* The first sample of the thread called NAME in STATE gets NS more. */
static void add(const char *name, enum wp_state state, uint64_t ns)
{
	struct wp_sample_set *set = &profile.sets[WP_PROFILE_WALL];

	for (uint32_t i = 0; i < set->nsamples; i++) {
		struct wp_profile_sample *s = &set->samples[i];

		if (s->key.state != state ||
		    strcmp(wp_profile_str(&profile,
					  profile.threads[s->key.thread].name),
			   name) != 0)
			continue;
		s->wall_ns += ns;
		return;
	}
	fail_msg("%s has no such sample", name);
}

static const struct wp_top_thread *find(const char *name)
{
	for (uint32_t i = 0; i < top.n; i++)
		if (!strcmp(wp_profile_str(
				    &profile,
				    profile.threads[top.v[i].thread].name),
			    name))
			return &top.v[i];
	return NULL;
}

static void a_look_has_what_came_since_the_last(void **state)
{
	(void)state;
	look(40 * S);
	assert_int_equal(top.n, 4);
	add("server", WP_STATE_WAITING, S / 4);
	add("server", WP_STATE_RUNNING, 3 * S / 4);
	add("work-1", WP_STATE_WAITING, S);
	look(41 * S);
	/* The other two have ended. */
	assert_int_equal(top.n, 2);
	assert_int_equal(find("server")->ns[WP_STATE_RUNNING], 3 * S / 4);
	assert_int_equal(find("server")->ns[WP_STATE_WAITING], S / 4);
	assert_int_equal(find("server")->all_ns, S);
	assert_int_equal(top.mean_ns, S);
	assert_int_equal(top.set.samples[find("server")->sample].key.state,
			 WP_STATE_RUNNING);
}

/* Its stack gets the time later. */
static void who_ran_for_a_moment_has_moved(void **state)
{
	(void)state;
	look(40 * S);
	for (int i = 1; i < 5; i++) {
		add("work-1", WP_STATE_WAITING, S);
		look((40 + (uint64_t)i) * S);
	}
	assert_int_equal(find("work-1")->since_ns, 4 * S);
	add("work-1", WP_STATE_WAITING, S);
	for (uint32_t i = 0; i < profile.nthreads; i++)
		profile.threads[i].cpu_ns += 1000;
	look(45 * S);
	assert_int_equal(find("work-1")->since_ns, 0);
	add("work-1", WP_STATE_WAITING, S);
	look(46 * S);
	assert_int_equal(find("work-1")->since_ns, S);
}

/* A wait that was shown and then turns out to have been another state's time. */
static void what_is_taken_back_is_less_than_nothing_nowhere(void **state)
{
	(void)state;
	add("work-1", WP_STATE_WAITING, 2 * S);
	look(40 * S);
	add("work-1", WP_STATE_WAITING, 0 - S / 2);
	add("work-1", WP_STATE_RUNNING, S);
	look(41 * S);
	assert_int_equal(find("work-1")->ns[WP_STATE_WAITING], 0);
	assert_int_equal(find("work-1")->all_ns, S);
	add("work-1", WP_STATE_WAITING, S);
	look(42 * S);
	assert_int_equal(find("work-1")->ns[WP_STATE_WAITING], S);
}

static void who_does_not_run_stays_where_it_is(void **state)
{
	(void)state;
	look(40 * S);
	for (uint64_t t = 41; t < 44; t++) {
		add("work-1", WP_STATE_WAITING, S);
		add("server", t == 42 ? WP_STATE_RUNNING : WP_STATE_WAITING, S);
		look(t * S);
	}
	assert_int_equal(find("server")->since_ns, S);
	assert_false(find("server")->from_begin);
	assert_true(find("work-1")->since_ns >= 3 * S);
}

static void threads_are_sorted_and_filtered(void **state)
{
	(void)state;
	look(40 * S);
	add("server", WP_STATE_RUNNING, S);
	add("work-1", WP_STATE_WAITING, S);
	add("work-2", WP_STATE_WAITING, S);
	look(41 * S);
	assert_ptr_equal(find("server"), &top.v[0]);
	top.sort = WP_TOP_WAITING;
	assert_int_equal(wp_top_list(&top, &profile), 0);
	assert_ptr_equal(find("server"), &top.v[2]);
	top.sort = WP_TOP_NAME;
	assert_int_equal(wp_top_list(&top, &profile), 0);
	assert_ptr_equal(find("work-2"), &top.v[2]);
	strcpy(top.filter, "LOCK");
	assert_int_equal(wp_top_list(&top, &profile), 0);
	assert_int_equal(top.n, 2);
	assert_int_equal(top.nall, 3);
	strcpy(top.filter, "102");
	assert_int_equal(wp_top_list(&top, &profile), 0);
	assert_int_equal(top.n, 1);
	assert_ptr_equal(find("work-2"), &top.v[0]);
}

static char *text_of(int (*write)(FILE *out))
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(write(out), 0);
	fclose(out);
	return text;
}

static int write_waits(FILE *out)
{
	return wp_top_write_places(&top, &profile, true, 9, 60, out);
}

static int write_functions(FILE *out)
{
	return wp_top_write_places(&top, &profile, false, 9, 60, out);
}

static int write_sums(FILE *out)
{
	return wp_top_write_sums(&top, &profile, 200, out);
}

static void assert_text(int (*write)(FILE *out), const char *want)
{
	char *text = text_of(write);

	assert_string_equal(text, want);
	free(text);
}

static void places_are_in_threads_on_average(void **state)
{
	(void)state;
	look(40 * S);
	add("server", WP_STATE_RUNNING, S / 2);
	add("server", WP_STATE_WAITING, S / 2);
	add("work-1", WP_STATE_WAITING, S);
	add("work-2", WP_STATE_WAITING, S);
	look(41 * S);
	assert_text(write_waits, "threads  where they wait\n"
				 "   2.00  lock  work (pool.c:9)\n"
				 "   0.50  poll  serve (server.c:40)\n");
	assert_text(write_functions,
		    "threads  functions that run\n"
		    "   0.50  parse_inline (parse.h:7) [inlined]\n");
	assert_text(write_sums,
		    "3 of 3 threads; of all on average 0.5 ran, 0.0 waited for "
		    "a CPU, 2.5 for something else\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_look_has_what_came_since_the_last),
		TEST(what_is_taken_back_is_less_than_nothing_nowhere),
		TEST(who_ran_for_a_moment_has_moved),
		TEST(who_does_not_run_stays_where_it_is),
		TEST(threads_are_sorted_and_filtered),
		TEST(places_are_in_threads_on_average),
	};

	return cmocka_run_group_tests_name("top", tests, NULL, NULL);
}
