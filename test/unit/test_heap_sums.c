/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  src/heap_sums.h: what is said of the probes of a recording, and counted,
 * for targets and counts that the test makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../src/sample/heap_state.h"
#include "../../src/sample/heap_sums.h"
#include "../../src/sample/sampler_loop.h"
#include "../../src/sample/target.h"

enum { NTARGETS = 3 };

struct wp_heap_probe {
	struct wp_heap_counts counts;
	enum wp_heap_tier tier;
	bool cannot;
};

static struct wp_sampler loop;
static struct wp_common common;
static struct wp_profile profile;
static struct wp_target targets[NTARGETS];
static struct wp_process processes[NTARGETS];
static struct wp_heap_samples heaps[NTARGETS];
static struct wp_heap_probe probes[NTARGETS];

struct wp_heap_counts wp_heap_probe_counts(const struct wp_heap_probe *probe)
{
	return probe->counts;
}

enum wp_heap_tier wp_heap_probe_tier(const struct wp_heap_probe *probe)
{
	return probe->tier;
}

bool wp_heap_probe_can(const struct wp_heap_probe *probe,
		       enum wp_heap_call call)
{
	assert_int_equal(call, WP_HEAP_MPROTECT);
	return !probe->cannot;
}

static int setup(void **state)
{
	(void)state;
	memset(&common, 0, sizeof(common));
	memset(heaps, 0, sizeof(heaps));
	memset(probes, 0, sizeof(probes));
	memset(targets, 0, sizeof(targets));
	assert_int_equal(wp_profile_init(&profile), 0);
	common.profile = &profile;
	for (int i = 0; i < NTARGETS; i++) {
		struct wp_profile_process process;
		char name[2] = "a";

		name[0] = (char)('a' + i);
		process = (struct wp_profile_process){
			.pid = 100 + i,
			.name = wp_intern_add_str(&profile.strings, name),
		};
		processes[i].pid = 100 + i;
		targets[i] = (struct wp_target){
			.loop = &loop,
			.common = &common,
			.profile = &profile,
			.process = &processes[i],
			.index = wp_profile_add_process(&profile, &process),
			.heap_samples = &heaps[i],
		};
		heaps[i].probe = &probes[i];
		probes[i].tier = WP_HEAP_TIER_SESSION;
	}
	loop.options = (struct wp_sampler_options){ .heap_rate = 4096 };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wp_profile_clear(&profile);
	return 0;
}

static void describe(int n)
{
	for (int i = 0; i < n; i++)
		wp_heap_sums_add(&targets[i]);
	assert_int_equal(wp_heap_sums_describe(&common, &loop), 0);
}

static const char *source(void)
{
	return wp_profile_str(&profile, profile.meta.source[WP_PROFILE_HEAP]);
}

static void assert_says(const char *text)
{
	if (!strstr(source(), text))
		fail_msg("no \"%s\" in \"%s\"", text, source());
}

static void assert_does_not_say(const char *text)
{
	if (strstr(source(), text))
		fail_msg("\"%s\" in \"%s\"", text, source());
}

static void counts_are_those_of_all_processes(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		probes[i].counts = (struct wp_heap_counts){ .calls = 100 + i,
							    .frees = 10 + i,
							    .maps = 1 + i,
							    .samples = 50 + i,
							    .unsent = 3 + i };
		probes[i].tier = WP_HEAP_TIER_MULTI;
		heaps[i].ninner = 2;
		heaps[i].objects.ndropped = 4;
		heaps[i].maps.ndropped = 5;
		strcpy(heaps[i].sites.files,
		       i ? "libjemalloc.so.2" : "libc.so.6");
	}
	common.heap.cost = 0.0123;
	common.heap.nbeyond = 6;
	describe(2);
	assert_string_equal(
		source(),
		"201 calls that allocate, 21 that free and 3 of mmap and its "
		"kin, in libc.so.6, libjemalloc.so.2 of 2 processes; one sample "
		"per 4096 bytes, 97 in all, 31 of them lost; probes (uprobes, "
		"two for each call) took at most 1.2 % of the threads' time");
	assert_int_equal(profile.counters.heap_samples, 101);
	assert_int_equal(profile.counters.heap_lost, 31);
	assert_int_equal(profile.counters.heap_overwritten, 0);
	assert_int_equal(profile.counters.heap_ended, 0);
	assert_int_equal(profile.meta.heap_period, 4096);
}

static void a_file_of_several_processes_is_named_once(void **state)
{
	(void)state;
	for (int i = 0; i < NTARGETS; i++)
		strcpy(heaps[i].sites.files, i == 1 ? "" : "libc.so.6");
	describe(NTARGETS);
	assert_says("in libc.so.6 of 3 processes;");
	assert_says("probes (uprobe sessions)");
}

static void of_one_process_it_is_not_said(void **state)
{
	(void)state;
	probes[0].tier = WP_HEAP_TIER_PERF;
	describe(1);
	assert_says("kin, in no file; one sample");
	assert_says("probes (uprobes of perf events)");
	assert_does_not_say("; memory");
	assert_does_not_say("; the process");
	assert_does_not_say("; ended");
}

static void what_is_not_in_it_is_said(void **state)
{
	(void)state;
	probes[0].cannot = true;
	probes[0].counts.unfollowed = 7;
	probes[0].counts.unknown = 5;
	heaps[0].noverwritten = 2;
	heaps[0].sites.nplaces = 9;
	heaps[0].sites.nslow = 3;
	heaps[1].sites.nplaces = 5;
	describe(2);
	assert_says("; 5 calls of mprotect are not in it, as the memory map ");
	assert_says("; calls of 3 functions are not in it, each probe on ");
	assert_says("; memory that mprotect makes usable is not in it (");
	assert_says("; 7 objects are not known to be in use, for want of room");
	assert_says("; the process has written over 2 of 9 probes: ");
	assert_int_equal(profile.counters.heap_lost, 7);
	assert_int_equal(profile.counters.heap_overwritten, 2);
}

static void files_with_an_operator_new_are_named(void **state)
{
	(void)state;
	strcpy(heaps[0].sites.throwing, "libtcmalloc.so.4");
	heaps[0].nthrowing = 3;
	strcpy(heaps[1].sites.throwing, "libjemalloc.so.2");
	describe(2);
	assert_says("; 3 of them are of operator new of libtcmalloc.so.4, ");
	assert_does_not_say("libjemalloc");
	assert_int_equal(profile.counters.heap_throwing, 3);
}

static void who_was_not_probed_to_the_end_is_named(void **state)
{
	(void)state;
	wp_err_set(&heaps[1].why, -EDQUOT, "it costs too much");
	wp_err_set(&heaps[2].why, -ENOENT, "it has no allocator");
	heaps[2].probe = NULL;
	describe(NTARGETS);
	assert_says("in no file of 2 processes;");
	assert_says("; of 2 of 3 processes it is not whole, as of b (101): it "
		    "costs too much");
	assert_int_equal(profile.counters.heap_ended, 1);
}

static void of_one_process_alone_the_reason_is_enough(void **state)
{
	(void)state;
	wp_err_set(&heaps[0].why, -EDQUOT, "it costs too much");
	heaps[0].probe = NULL;
	describe(1);
	assert_says("probes (none) took");
	assert_says("; ended before the recording: it costs too much");
}

/* One that the recording let go is nobody's loss. */
static void who_was_forgotten_is_not_missed(void **state)
{
	(void)state;
	wp_err_set(&heaps[0].why, -EDQUOT, "it costs too much");
	targets[0].forgotten = true;
	describe(2);
	assert_int_equal(profile.counters.heap_ended, 0);
	assert_does_not_say("it costs too much");
}

static void where_nothing_is_in_use_it_is_of_allocations(void **state)
{
	struct wp_sample_set *set = &profile.sets[WP_PROFILE_HEAP];
	struct wp_profile_sample samples[2] = { { .cpu_ns = 0 },
						{ .cpu_ns = 0 } };

	(void)state;
	set->samples = samples;
	set->nsamples = 2;
	describe(1);
	assert_true(profile.meta.is_of_allocations);
	loop.options.heap_leaks = true;
	describe(1);
	assert_false(profile.meta.is_of_allocations);
	loop.options.heap_leaks = false;
	samples[1].cpu_ns = 1;
	describe(1);
	assert_false(profile.meta.is_of_allocations);
	set->samples = NULL;
	set->nsamples = 0;
}

static void without_a_process_nothing_is_said(void **state)
{
	uint32_t before = profile.meta.source[WP_PROFILE_HEAP];

	(void)state;
	describe(0);
	assert_int_equal(profile.meta.source[WP_PROFILE_HEAP], before);
	assert_int_equal(profile.meta.heap_period, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(counts_are_those_of_all_processes),
		TEST(a_file_of_several_processes_is_named_once),
		TEST(of_one_process_it_is_not_said),
		TEST(what_is_not_in_it_is_said),
		TEST(files_with_an_operator_new_are_named),
		TEST(who_was_not_probed_to_the_end_is_named),
		TEST(of_one_process_alone_the_reason_is_enough),
		TEST(who_was_forgotten_is_not_missed),
		TEST(where_nothing_is_in_use_it_is_of_allocations),
		TEST(without_a_process_nothing_is_said),
	};

	return cmocka_run_group_tests_name("heap_sums", tests, NULL, NULL);
}
