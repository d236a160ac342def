/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: profile.  Which entry of a profile's threads a goroutine has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "profile_maker.h"
#include "wallprof/goroutine_entries.h"

struct fixture {
	struct wp_profile profile;
	struct wp_goroutine_entries entries;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(wp_profile_init(&f->profile), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	wp_goroutine_entries_clear(&f->entries);
	wp_profile_clear(&f->profile);
	free(f);
	return 0;
}

static struct wp_profile_label label(struct fixture *f, const char *key,
				     const char *value)
{
	return (struct wp_profile_label){
		wp_intern_add_str(&f->profile.strings, key),
		wp_intern_add_str(&f->profile.strings, value)
	};
}

static const char *name(const struct fixture *f, uint32_t entry)
{
	return wp_profile_str(&f->profile, f->profile.threads[entry].name);
}

static void labels_tell_entries_apart(void **state)
{
	struct fixture *f = *state;
	struct wp_profile_label labels[] = { label(f, "kind", "a"),
					     label(f, "n", "1") };
	struct wp_goroutine_entry what = { .part = WP_GOROUTINE_OWN };
	uint32_t none, both, one;

	none = wp_goroutine_entries_find_or_add(&f->entries, &f->profile,
						&what);
	assert_string_equal(name(f, none), "goroutines");
	what.labels = labels;
	what.nlabels = 2;
	both = wp_goroutine_entries_find_or_add(&f->entries, &f->profile,
						&what);
	assert_string_equal(name(f, both), "kind=a, n=1");
	what.nlabels = 1;
	one = wp_goroutine_entries_find_or_add(&f->entries, &f->profile, &what);
	assert_int_not_equal(none, both);
	assert_int_not_equal(both, one);
	assert_int_equal(wp_goroutine_entries_find_or_add(&f->entries,
							  &f->profile, &what),
			 one);
	what.part = WP_GOROUTINE_RUNTIME;
	what.nlabels = 0;
	assert_int_not_equal(wp_goroutine_entries_find_or_add(
				     &f->entries, &f->profile, &what),
			     none);
	assert_int_equal(f->profile.nthreads, 4);
}

static void processes_and_goroutines_do(void **state)
{
	struct fixture *f = *state;
	struct wp_goroutine_entry what = { .part = WP_GOROUTINE_OWN,
					   .goroutine = 7 };
	uint32_t seven = wp_goroutine_entries_find_or_add(&f->entries,
							  &f->profile, &what);

	assert_int_equal(f->profile.threads[seven].tid, 7);
	what.goroutine = 8;
	assert_int_not_equal(wp_goroutine_entries_find_or_add(
				     &f->entries, &f->profile, &what),
			     seven);
	what.goroutine = 7;
	what.process = 1;
	assert_int_not_equal(wp_goroutine_entries_find_or_add(
				     &f->entries, &f->profile, &what),
			     seven);
	assert_int_equal(f->entries.nown, 3);
}

static void labels_without_end_share_an_entry(void **state)
{
	struct fixture *f = *state;
	struct wp_profile_label one;
	struct wp_goroutine_entry what = { .part = WP_GOROUTINE_OWN,
					   .labels = &one,
					   .nlabels = 1 };
	char text[16];
	uint32_t last = 0, next;

	for (int i = 0; i < WP_GOROUTINE_ENTRIES_MAX + 1; i++) {
		snprintf(text, sizeof(text), "%d", i);
		one = label(f, "request", text);
		last = wp_goroutine_entries_find_or_add(&f->entries,
							&f->profile, &what);
	}
	assert_string_equal(name(f, last), "goroutines with other labels");
	one = label(f, "request", "another");
	next = wp_goroutine_entries_find_or_add(&f->entries, &f->profile,
						&what);
	assert_int_equal(next, last);
	assert_int_equal(f->profile.threads[next].nlabels, 0);
	assert_int_equal(f->profile.nthreads, WP_GOROUTINE_ENTRIES_MAX + 1);
}

static void an_entry_counts_its_goroutines(void **state)
{
	struct fixture *f = *state;
	struct wp_goroutine_entry what = { .part = WP_GOROUTINE_OWN };
	uint32_t entry = wp_goroutine_entries_find_or_add(&f->entries,
							  &f->profile, &what);
	const struct wp_sample_key key = { .thread = entry,
					   .stack = mk_stack(&f->profile,
							     (uint64_t[]){ 0 },
							     WP_END_EMPTY, 0) };

	for (int i = 0; i < 3; i++)
		wp_goroutine_entries_count(&f->profile, entry);
	wp_timeline_start(&f->profile.timeline, 4096);
	assert_int_equal(wp_profile_add_sample(&f->profile, WP_PROFILE_WALL,
					       &key, 1, 10),
			 0);
	wp_profile_add_up(&f->profile);
	assert_int_equal(f->profile.sums[WP_PROFILE_WALL].threads, 3);
	/* What several do is no sequence. */
	assert_int_equal(f->profile.timeline.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(labels_tell_entries_apart,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(processes_and_goroutines_do,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			labels_without_end_share_an_entry, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_entry_counts_its_goroutines,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
