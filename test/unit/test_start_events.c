/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  start_events.h: which events of thread starts are opened, and what the
 * profile says of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/sample/start_events.h"
#include "fake_perf.h"
#include "one_target.h"

enum { MIB = 1 << 20 };

enum { REAL = -2 };

/* Number of CPUs that sysconf(3) tells; REAL: those that there are. */
static long ncpus = REAL;

long sysconf(int name)
{
	static long (*real)(int);

	if (name == _SC_NPROCESSORS_CONF && ncpus != REAL)
		return ncpus;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sysconf");
	return real(name);
}

static int setup(void **state)
{
	(void)state;
	ncpus = REAL;
	fake_perf_reset();
	fake_target_open(&fake);
	fake_target_add_thread(&fake, 7, "maker");
	options = fake_target_options();
	return 0;
}

static struct wp_start_events *get(void)
{
	start_target();
	return wp_start_events_find_or_add(fake.target);
}

static const char *source(void)
{
	wp_start_events_describe(fake.target->common);
	return wp_profile_str(
		&fake.profile,
		fake.profile.meta.source[WP_PROFILE_THREADCREATE]);
}

static void one_target_has_events_of_its_process(void **state)
{
	const struct wp_start_events *all = get();
	const struct wp_perf_options *o = &fake_perf_last()->options;

	(void)state;
	assert_ptr_equal(wp_start_events_process(all), &fake.process);
	assert_ptr_equal(all->events.perf, fake_perf_last());
	assert_true(fake_perf_last()->enabled);
	assert_int_equal(o->scope, WP_PERF_AUTO);
	assert_true(o->tasks);
	assert_true(o->thread_starts);
	assert_true(o->user_regs);
	assert_int_equal(o->stack_bytes, WP_PERF_SOURCE_FIRST_STACK);
	assert_int_equal(o->period_ns, 0);
}

static void several_have_events_of_all_processes(void **state)
{
	const struct wp_start_events *all;

	(void)state;
	options.many = true;
	all = get();
	assert_null(wp_start_events_process(all));
	assert_int_equal(fake_perf_last()->options.scope, WP_PERF_CPU);
}

static void they_are_opened_once(void **state)
{
	struct wp_start_events *all = get();
	size_t n = fake_perf.nopened;

	(void)state;
	assert_non_null(all);
	assert_ptr_equal(wp_start_events_find_or_add(fake.target), all);
	assert_int_equal(fake_perf.nopened, n);
}

/* 16 MiB of all CPUs together, but no less than every user may lock on each. */
static void rings_share_what_there_is(void **state)
{
	static const struct {
		long cpus;
		size_t bytes;
	} rows[] = {
		{ 1, 4 * MIB },
		{ 4, 4 * MIB },
		{ 5, 16 * MIB / 5 },
		{ 16, MIB },
		{ 31, 16 * MIB / 31 },
		{ 33, WP_PERF_RING_DEFAULT },
		{ 4096, WP_PERF_RING_DEFAULT },
		/* It is not known. */
		{ -1, 4 * MIB },
		{ 0, 4 * MIB },
	};

	(void)state;
	start_target();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		ncpus = rows[i].cpus;
		assert_non_null(wp_start_events_find_or_add(fake.target));
		assert_int_equal(fake_perf_last()->options.ring_bytes,
				 rows[i].bytes);
		wp_start_events_close(fake.target->common);
	}
}

static void the_profile_says_what_was_counted(void **state)
{
	struct wp_start_events *all = get();

	(void)state;
	all->created = 12;
	all->without_stack = 3;
	fake_perf_last()->stats.lost = 4;
	assert_string_equal(source(),
			    "12 threads created, 3 without the stack that did "
			    "it, 4 records of perf events lost; told by perf "
			    "events of each thread");
}

static void it_says_why_there_are_no_stacks(void **state)
{
	static const struct {
		int rc;
		bool user_only;
		const char *text;
	} rows[] = {
		{ -EPERM, true,
		  "events of each thread, no stacks: kernel.perf_event_paranoid "
		  "or missing CAP_PERFMON forbids samples of the kernel" },
		{ -EACCES, true,
		  "events of each thread, no stacks: kernel.perf_event_paranoid "
		  "or missing CAP_PERFMON forbids samples of the kernel" },
		{ -EACCES, false,
		  "events of each thread, no stacks: tracefs, which tells the "
		  "tracepoint task:task_newtask, may not be read (run wallprof "
		  "as root)" },
		{ -ENOENT, false,
		  "events of each thread, no stacks: the kernel has no tracepoint "
		  "task:task_newtask" },
	};

	(void)state;
	get();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *text;

		fake_perf_last()->facts.thread_start_rc = rows[i].rc;
		fake_perf_last()->facts.user_only = rows[i].user_only;
		text = source();
		assert_true(strlen(text) > strlen(rows[i].text));
		assert_string_equal(text + strlen(text) - strlen(rows[i].text),
				    rows[i].text);
	}
}

static void events_of_cpus_are_said_to_be(void **state)
{
	const char *text;

	(void)state;
	options.many = true;
	get();
	text = strstr(source(), "; ");
	assert_non_null(text);
	assert_string_equal(text, "; told by perf events of each CPU");
}

static void without_events_lists_of_threads_tell(void **state)
{
	struct wp_start_events *all;

	(void)state;
	fake_perf.open_rc[WP_PERF_AUTO] = -EPERM;
	all = get();
	assert_non_null(all);
	assert_null(all->events.perf);
	all->created = 2;
	assert_string_equal(source(),
			    "2 threads created, 0 without the stack that did "
			    "it, 0 records of perf events lost; told by lists "
			    "of threads, in which those are missing that lived "
			    "between two ticks, and a thread stands for who "
			    "created it (refused by the test)");
}

static void nothing_is_said_where_it_was_not_asked_for(void **state)
{
	(void)state;
	start_target();
	assert_string_equal(source(), "");
}

static void closed_they_are_opened_anew(void **state)
{
	struct wp_perf *perf;

	(void)state;
	get();
	perf = fake_perf_last();
	wp_start_events_close(fake.target->common);
	assert_true(perf->closed);
	assert_null(fake.target->common->start_events);
	wp_start_events_close(fake.target->common);
	assert_non_null(wp_start_events_find_or_add(fake.target));
	assert_ptr_not_equal(fake_perf_last(), perf);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_target_has_events_of_its_process),
		TEST(several_have_events_of_all_processes),
		TEST(they_are_opened_once),
		TEST(rings_share_what_there_is),
		TEST(the_profile_says_what_was_counted),
		TEST(it_says_why_there_are_no_stacks),
		TEST(events_of_cpus_are_said_to_be),
		TEST(without_events_lists_of_threads_tell),
		TEST(nothing_is_said_where_it_was_not_asked_for),
		TEST(closed_they_are_opened_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
