/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  src/sample/perf_source.h with perf events that the test
 * writes: each record comes once, whatever is replaced meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "../../src/sample/perf_source.h"
#include "fake_perf.h"
#include "wallprof/clock.h"

static uint64_t now_ns;

uint64_t wp_clock_ns(void)
{
	return now_ns;
}

int64_t wp_clock_utc_ns(void)
{
	return (int64_t)now_ns;
}

static const struct wp_perf_options options = {
	.period_ns = 1000,
	.stack_bytes = WP_PERF_SOURCE_FIRST_STACK,
};

static int setup(void **state)
{
	(void)state;
	fake_perf_reset();
	now_ns = 1000;
	return 0;
}

static void put(struct wp_perf *perf, uint64_t time_ns)
{
	fake_perf_put(perf,
		      &(struct wp_perf_record){ .type = WP_PERF_SAMPLE_CPU,
						.time_ns = time_ns });
}

/* The time of the next record before UNTIL_NS; 0: there is none. */
static uint64_t next(struct wp_perf_source *source, uint64_t until_ns)
{
	struct wp_perf_record record;

	return wp_perf_source_next(source, until_ns, &record) ? record.time_ns :
								0;
}

static void open_source(struct wp_perf_source *source)
{
	assert_int_equal(wp_perf_source_open(source, NULL, &options, NULL), 0);
}

static void a_source_without_events_has_no_records(void **state)
{
	struct wp_perf_source source = { 0 };

	(void)state;
	assert_int_equal(next(&source, UINT64_MAX), 0);
	assert_int_equal(wp_perf_source_lost(&source), 0);
	wp_perf_source_enable(&source);
	wp_perf_source_disable(&source);
	wp_perf_source_close(&source);
}

static void too_few_descriptors_lead_to_events_of_cpus(void **state)
{
	struct wp_perf_source source = { 0 };

	(void)state;
	fake_perf.open_rc[WP_PERF_AUTO] = -EMFILE;
	open_source(&source);
	assert_int_equal(fake_perf_last()->options.scope, WP_PERF_CPU);
	assert_int_equal(source.options.scope, WP_PERF_CPU);
	wp_perf_source_close(&source);
}

static void a_refusal_leaves_the_source_as_it_is(void **state)
{
	struct wp_perf_source source = { 0 };
	struct wp_perf *first;

	(void)state;
	wp_perf_source_enable(&source);
	open_source(&source);
	first = source.perf;
	fake_perf.open_rc[WP_PERF_AUTO] = -EPERM;
	assert_int_equal(wp_perf_source_open(&source, NULL, &options, NULL),
			 -EPERM);
	assert_ptr_equal(source.perf, first);
	assert_true(first->enabled);
	wp_perf_source_close(&source);
}

static void replaced_events_tell_what_came_before_the_new_ones(void **state)
{
	struct wp_perf_source source = { 0 };
	struct wp_perf *old;

	(void)state;
	wp_perf_source_enable(&source);
	open_source(&source);
	old = source.perf;
	put(old, 1100);
	now_ns = 2000;
	open_source(&source);
	assert_false(old->enabled);
	assert_true(source.perf->enabled);
	/* Both recorded for a moment. */
	put(old, 1900);
	put(old, 2001);
	put(source.perf, 1950);
	put(source.perf, 2001);
	put(source.perf, 2100);
	assert_int_equal(next(&source, 1500), 1100);
	assert_int_equal(next(&source, 1500), 0);
	assert_false(old->closed);
	assert_int_equal(next(&source, UINT64_MAX), 1900);
	assert_int_equal(next(&source, UINT64_MAX), 2001);
	assert_true(old->closed);
	assert_int_equal(next(&source, UINT64_MAX), 2100);
	assert_int_equal(next(&source, UINT64_MAX), 0);
	wp_perf_source_close(&source);
}

/* Two replacements within the age at which records are read: the first one's
 * were dropped, and no loss was counted. */
static void
events_are_not_replaced_before_all_their_records_are_read(void **state)
{
	struct wp_perf_source source = { 0 };
	struct wp_perf *old, *wider;

	(void)state;
	wp_perf_source_enable(&source);
	open_source(&source);
	old = source.perf;
	source.stack_was_cut = true;
	wp_perf_source_grow(&source, NULL);
	wider = source.perf;
	assert_ptr_equal(source.old, old);
	put(old, 990);
	put(old, 999);
	assert_int_equal(next(&source, 995), 990);
	/* A copy of the replaced events' size. */
	source.stack_was_cut = true;
	wp_perf_source_grow(&source, NULL);
	assert_ptr_equal(source.perf, wider);
	assert_int_equal(wp_perf_source_open(&source, NULL, &options, NULL),
			 -EBUSY);
	assert_int_equal(next(&source, UINT64_MAX), 999);
	assert_int_equal(next(&source, UINT64_MAX), 0);
	assert_true(old->closed);
	wp_perf_source_grow(&source, NULL);
	assert_ptr_equal(source.perf, wider);
	wp_perf_source_close(&source);
}

static void events_that_are_replaced_while_off_are_closed_at_once(void **state)
{
	struct wp_perf_source source = { 0 };
	struct wp_perf *old;

	(void)state;
	open_source(&source);
	old = source.perf;
	open_source(&source);
	assert_true(old->closed);
	assert_null(source.old);
	assert_false(source.perf->enabled);
	wp_perf_source_close(&source);
}

static void what_closed_events_lost_stays_counted(void **state)
{
	struct wp_perf_source source = { 0 };

	(void)state;
	wp_perf_source_enable(&source);
	open_source(&source);
	source.perf->stats.lost = 3;
	open_source(&source);
	source.perf->stats.lost = 5;
	assert_int_equal(wp_perf_source_lost(&source), 8);
	assert_int_equal(next(&source, UINT64_MAX), 0);
	open_source(&source);
	assert_int_equal(wp_perf_source_lost(&source), 8);
	assert_int_equal(next(&source, UINT64_MAX), 0);
	assert_int_equal(wp_perf_source_lost(&source), 8);
	wp_perf_source_close(&source);
	assert_int_equal(wp_perf_source_lost(&source), 8);
	for (size_t i = 0; i < fake_perf.nopened; i++)
		assert_true(fake_perf.opened[i]->closed);
}

static void copies_grow_when_a_stack_was_cut_up_to_the_most(void **state)
{
	static const uint32_t want[] = { 32768, WP_PERF_STACK_MAX,
					 WP_PERF_STACK_MAX };
	struct wp_perf_source source = { 0 };

	(void)state;
	wp_perf_source_enable(&source);
	open_source(&source);
	wp_perf_source_grow(&source, NULL);
	assert_int_equal(fake_perf.nopened, 1);
	for (size_t i = 0; i < 3; i++) {
		assert_false(source.cannot_grow);
		assert_int_equal(next(&source, UINT64_MAX), 0);
		source.stack_was_cut = true;
		wp_perf_source_grow(&source, NULL);
		assert_false(source.stack_was_cut);
		assert_int_equal(source.options.stack_bytes, want[i]);
	}
	assert_true(source.cannot_grow);
	assert_int_equal(fake_perf.nopened, 3);
	wp_perf_source_close(&source);
}

static void copies_that_cannot_grow_stay(void **state)
{
	struct wp_perf_source source = { 0 };

	(void)state;
	open_source(&source);
	fake_perf.open_rc[WP_PERF_AUTO] = -ENOMEM;
	source.stack_was_cut = true;
	wp_perf_source_grow(&source, NULL);
	assert_true(source.cannot_grow);
	assert_int_equal(source.options.stack_bytes,
			 WP_PERF_SOURCE_FIRST_STACK);
	assert_false(source.perf->closed);
	wp_perf_source_close(&source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_source_without_events_has_no_records,
				       setup),
		cmocka_unit_test_setup(
			too_few_descriptors_lead_to_events_of_cpus, setup),
		cmocka_unit_test_setup(a_refusal_leaves_the_source_as_it_is,
				       setup),
		cmocka_unit_test_setup(
			replaced_events_tell_what_came_before_the_new_ones,
			setup),
		cmocka_unit_test_setup(
			events_are_not_replaced_before_all_their_records_are_read,
			setup),
		cmocka_unit_test_setup(
			events_that_are_replaced_while_off_are_closed_at_once,
			setup),
		cmocka_unit_test_setup(what_closed_events_lost_stays_counted,
				       setup),
		cmocka_unit_test_setup(
			copies_grow_when_a_stack_was_cut_up_to_the_most, setup),
		cmocka_unit_test_setup(copies_that_cannot_grow_stay, setup),
	};

	return cmocka_run_group_tests_name("perf_source", tests, NULL, NULL);
}
