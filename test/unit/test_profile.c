/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, stacks, samples, and what locate makes of them.
 *
 * Layer: profile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "profile_maker.h"
#include "wallprof/profile_processes.h"

static int setup(void **state)
{
	struct wp_profile *p = malloc(sizeof(*p));

	assert_int_equal(wp_profile_init(p), 0);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	wp_profile_clear(*state);
	free(*state);
	return 0;
}

static const char *location_name(const struct wp_profile *p, uint32_t loc)
{
	const struct wp_profile_location *l = &p->locations[loc];

	assert_int_equal(l->nlines, 1);
	return wp_profile_str(
		p, p->functions[p->lines[l->line_first].function].name);
}

/* The name of the outermost location of STACK, which is a text. */
static const char *end_of(const struct wp_profile *p, uint32_t stack)
{
	const struct wp_profile_stack *s = &p->stacks[stack];

	return location_name(p, p->loc_pool[s->loc_first + s->nlocs - 1]);
}

static void equal_stacks_are_one(void **state)
{
	static const uint64_t a[] = { 1, 2, 3, 0 }, b[] = { 1, 2, 4, 0 },
			      prefix[] = { 1, 2, 0 };
	struct wp_profile *p = *state;
	uint32_t first = mk_stack(p, a, WP_END_ROOT, 0);

	assert_int_equal(mk_stack(p, a, WP_END_ROOT, 0), first);
	assert_int_not_equal(mk_stack(p, b, WP_END_ROOT, 0), first);
	assert_int_not_equal(mk_stack(p, prefix, WP_END_ROOT, 0), first);
	assert_int_not_equal(mk_stack(p, a, WP_END_NO_INFO, 0), first);
	assert_int_not_equal(mk_stack(p, a, WP_END_NO_INFO, 1),
			     mk_stack(p, a, WP_END_NO_INFO, 2));
	assert_int_equal(p->nstacks, 6);
	assert_int_equal(p->nframe_ids, 3 + 3 + 2 + 3 * 3);
	assert_int_equal(p->nframes, 4);
}

static void many_stacks_are_found_again(void **state)
{
	enum { N = 20000 };
	struct wp_profile *p = *state;

	for (int round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < N; i++) {
			uint64_t pcs[] = { 1 + i % 7, 1 + i, 5, 0 };

			assert_int_equal(mk_stack(p, pcs, WP_END_ROOT, 0), i);
		}
	}
	assert_int_equal(p->nstacks, N);
}

static void samples_of_one_key_add_up(void **state)
{
	struct wp_profile *p = *state;
	const struct wp_sample_set *set = &p->sets[WP_PROFILE_WALL];

	for (uint32_t i = 0; i < 30000; i++)
		mk_sample(p, i % 3000, 0, WP_STATE_WAITING, WP_WAIT_LOCK, "x",
			  1, i);
	assert_int_equal(set->nsamples, 3000);
	for (uint32_t i = 0; i < 3000; i++) {
		assert_int_equal(set->samples[i].key.thread, i);
		assert_int_equal(set->samples[i].count, 10);
		/* i, i + 3000, ..., i + 27000. */
		assert_int_equal(set->samples[i].wall_ns, 10 * i + 135000);
	}
}

static void add(struct wp_profile *p, enum wp_profile_kind kind,
		const struct wp_sample_key *key)
{
	assert_int_equal(wp_profile_add_sample(p, kind, key, 1, 1), 0);
}

static void every_part_of_a_key_counts(void **state)
{
	struct wp_sample_key key = { 0 }, other;
	struct wp_profile *p = *state;
	const struct wp_sample_set *set = &p->sets[WP_PROFILE_WALL];
	unsigned char *bytes = (unsigned char *)&other;

	add(p, WP_PROFILE_WALL, &key);
	for (size_t i = 0; i < sizeof(key); i++) {
		other = key;
		bytes[i] = 1;
		add(p, WP_PROFILE_WALL, &other);
		assert_int_equal(set->nsamples, 2 + i);
	}
}

static void no_hint_leads_to_the_sample_of_another_key(void **state)
{
	struct wp_profile *p = *state;
	const struct wp_sample_set *set = &p->sets[WP_PROFILE_WALL];

	for (uint32_t i = 0; i < 400; i++) {
		struct wp_sample_key key = { .thread = i % 4 };
		uint32_t hint = i / 4 % 5 < 4 ? i / 4 % 5 : UINT32_MAX;

		assert_int_equal(wp_profile_add_sample_hinted(
					 p, WP_PROFILE_WALL, &key, &hint, 1, i),
				 0);
		assert_int_equal(hint, i % 4);
	}
	assert_int_equal(set->nsamples, 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(set->samples[i].key.thread, i);
		assert_int_equal(set->samples[i].count, 100);
		/* i, i + 4, ..., i + 396. */
		assert_int_equal(set->samples[i].wall_ns, 100 * i + 19800);
	}
}

static void kinds_have_samples_of_their_own(void **state)
{
	struct wp_sample_key key = { 0 };
	struct wp_profile *p = *state;

	add(p, WP_PROFILE_BLOCK, &key);
	add(p, WP_PROFILE_MUTEX, &key);
	add(p, WP_PROFILE_MUTEX, &key);
	assert_int_equal(p->sets[WP_PROFILE_BLOCK].nsamples, 1);
	assert_int_equal(p->sets[WP_PROFILE_BLOCK].samples[0].count, 1);
	assert_int_equal(p->sets[WP_PROFILE_MUTEX].nsamples, 1);
	assert_int_equal(p->sets[WP_PROFILE_MUTEX].samples[0].count, 2);
	assert_int_equal(p->sets[WP_PROFILE_WALL].nsamples, 0);
	assert_string_equal(wp_profile_kind_name(WP_PROFILE_MUTEX), "mutex");
}

static uint32_t share(struct wp_profile *p, int32_t tid, const char *name)
{
	const struct wp_profile_thread t = { .tid = tid };

	p->counters.threads_shared++;
	return wp_profile_share_thread(p, &t, name);
}

static void threads_share_by_name(void **state)
{
	struct wp_profile *p = *state;
	uint32_t own = mk_thread(p, 1, "worker"), worker, nameless;
	struct wp_sample_key key = { .state = WP_STATE_WAITING };
	static const uint64_t no_pc = 0;

	worker = share(p, 2, "worker");
	assert_int_not_equal(worker, own);
	nameless = share(p, 3, "");
	assert_int_not_equal(nameless, worker);
	for (int32_t tid = 4; tid < 100; tid++)
		assert_int_equal(share(p, tid, tid % 2 ? "worker" : ""),
				 tid % 2 ? worker : nameless);
	assert_int_equal(p->nthreads, 3);
	assert_int_equal(p->threads[worker].tid, 2);
	assert_int_equal(p->threads[worker].nmore, 48);
	assert_int_equal(p->threads[nameless].nmore, 48);
	assert_string_equal(wp_profile_str(p, p->threads[worker].name),
			    "worker");
	key.stack = mk_stack(p, &no_pc, WP_END_ROOT, 0);
	key.thread = worker;
	add(p, WP_PROFILE_BLOCK, &key);
	key.thread = own;
	add(p, WP_PROFILE_BLOCK, &key);
	wp_profile_add_up(p);
	assert_int_equal(p->sums[WP_PROFILE_BLOCK].threads, 50);
	assert_int_equal(p->sums[WP_PROFILE_WALL].threads, 0);
}

static void names_that_are_too_many_share_too(void **state)
{
	struct wp_profile *p = *state;
	uint32_t first = share(p, 1, "0"), others = 0, nstrings;
	char name[16];

	for (int i = 1; i < WP_SHARED_NAMES; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(share(p, i + 1, name), first + (uint32_t)i);
	}
	others = share(p, 1000, "x");
	nstrings = p->strings.len;
	assert_int_equal(others, first + WP_SHARED_NAMES);
	assert_int_equal(share(p, 1001, "y"), others);
	assert_int_equal(share(p, 1002, "0"), first);
	assert_int_equal(p->threads[others].nmore, 1);
	assert_int_equal(p->strings.len, nstrings);
	assert_int_equal(p->nthreads, WP_SHARED_NAMES + 1);
}

/* 3 processes have an entry each, 256 names one each, all others one. */
static void processes_that_are_too_many_share_too(void **state)
{
	enum { OWN = 3, N = OWN + WP_SHARED_NAMES + 1000 };
	struct wp_profile *p = *state;
	const uint32_t first = p->nprocesses;
	uint32_t all = 0, index = 0;
	char name[16];

	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "%d", i);
		index = wp_profile_share_process(p, i + 1, name, first + OWN);
		assert_in_range(index, first, first + OWN + WP_SHARED_NAMES);
	}
	assert_int_equal(p->nprocesses, first + OWN + WP_SHARED_NAMES + 1);
	assert_string_equal(wp_profile_str(p, p->processes[index].name),
			    "[other processes]");
	assert_int_equal(p->processes[index].nmore, 999);
	for (uint32_t i = first; i < p->nprocesses; i++)
		all += 1 + p->processes[i].nmore;
	assert_int_equal(all, N);
}

static void return_address_is_looked_up_before_itself(void **state)
{
	static const uint64_t pcs[] = { EXE_START + 0x10, EXE_START + 0x20, 0 };
	struct wp_profile *p = *state;

	mk_mapping(p, EXE_START, "/exe", "");
	mk_stack(p, pcs, WP_END_ROOT, 0);
	assert_int_equal(wp_profile_locate(p), 0);
	assert_int_equal(p->nlocations, 2);
	assert_int_equal(p->locations[0].avma, EXE_START + 0x10);
	assert_int_equal(p->locations[1].avma, EXE_START + 0x1f);
	assert_int_equal(p->locations[1].mapping, 1);
	assert_int_equal(p->locations[1].nlines, 0);
}

static void address_before_its_mapping_is_in_none(void **state)
{
	static const uint64_t pcs[] = { EXE_START, EXE_START, 0 };
	struct wp_profile *p = *state;

	mk_mapping(p, EXE_START, "/exe", "");
	mk_stack(p, pcs, WP_END_ROOT, 0);
	assert_int_equal(wp_profile_locate(p), 0);
	assert_int_equal(p->locations[0].mapping, 1);
	assert_int_equal(p->locations[1].avma, EXE_START - 1);
	assert_int_equal(p->locations[1].mapping, WP_MAPPING_NONE);
}

static void same_address_is_one_location(void **state)
{
	struct wp_frame frames[] = {
		{ .pc_avma = 8, .flags = 0 },
		{ .pc_avma = 9, .flags = WP_FRAME_RETURN },
		{ .pc_avma = 8, .flags = WP_FRAME_SIGNAL },
		{ .pc_avma = 8, .flags = WP_FRAME_GUESSED },
		{ .pc_avma = 8, .mapping = 99 },
	};
	struct wp_stack stack = { .frames = frames, .depth = 5 };
	struct wp_profile *p = *state;

	assert_int_equal(wp_profile_add_stack(p, &stack, 0), 0);
	assert_int_equal(wp_profile_locate(p), 0);
	assert_int_equal(p->nlocations, 2);
	assert_int_equal(p->stacks[0].nlocs, 5);
	assert_false(p->locations[0].guessed);
	assert_true(p->locations[1].guessed);
	assert_int_equal(p->loc_pool[3], 1);
	assert_int_equal(p->loc_pool[4], 0);
}

static void cut_stack_says_why(void **state)
{
	static const uint64_t pcs[] = { 5, 0 }, none[] = { 0 };
	struct wp_profile *p = *state;
	const struct {
		const uint64_t *pcs;
		enum wp_stack_end end;
		uint32_t mapping;
		const char *want;
	} rows[] = {
		{ pcs, WP_END_NO_INFO, 1,
		  "[truncated: no unwind info in libfoo.so]" },
		{ pcs, WP_END_NO_INFO, 2,
		  "[truncated: no unwind info in anonymous memory]" },
		{ pcs, WP_END_NO_INFO, 0, "[truncated: no unwind info]" },
		{ pcs, WP_END_NO_INFO, 77, "[truncated: no unwind info]" },
		{ pcs, WP_END_UNKNOWN_REG, 1,
		  "[truncated: a register was not known in libfoo.so]" },
		{ pcs, WP_END_DEPTH_LIMIT, 1, "[truncated: depth limit]" },
		{ pcs, WP_END_BEYOND_COPY, 1,
		  "[truncated: stack deeper than the copy]" },
		{ none, WP_END_EMPTY, 0, "[no stack]" },
		{ none, WP_END_ROOT, 0, "[no stack]" },
		{ none, WP_END_UNREADABLE, 0,
		  "[no stack: memory not readable]" },
	};

	mk_mapping(p, EXE_START, "/usr/lib/libfoo.so", "");
	mk_mapping(p, JIT_START, "", "");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(
			mk_stack(p, rows[i].pcs, rows[i].end, rows[i].mapping),
			i);
	assert_int_equal(wp_profile_locate(p), 0);
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_string_equal(end_of(p, i), rows[i].want);
		assert_int_equal(p->stacks[i].nlocs, p->stacks[i].depth + 1);
	}
}

static void kernel_frame_is_its_name(void **state)
{
	struct wp_profile *p = *state;
	struct wp_frame frame = {
		.pc_avma = mk_str(p, "do_epoll_wait"),
		.mapping = WP_MAPPING_KERNEL,
		.flags = WP_FRAME_NAMED,
	};
	struct wp_stack stack = { .frames = &frame, .depth = 1 };

	wp_profile_add_stack(p, &stack, 0);
	assert_int_equal(wp_profile_locate(p), 0);
	assert_int_equal(p->nlocations, 1);
	assert_int_equal(p->locations[0].mapping, WP_MAPPING_KERNEL);
	assert_string_equal(location_name(p, 0), "do_epoll_wait");
}

static void equal_functions_are_one(void **state)
{
	struct wp_profile_function f = { .name = 1, .file = 2 };
	struct wp_profile *p = *state;
	uint32_t first = wp_profile_add_function(p, &f);

	assert_int_equal(wp_profile_add_function(p, &f), first);
	for (uint32_t i = 0; i < 5000; i++) {
		f.start_line = i;
		assert_int_equal(wp_profile_add_function(p, &f), i);
	}
	assert_int_equal(p->nfunctions, 5000);
}

static void locating_again_gives_the_same(void **state)
{
	static const uint64_t pcs[] = { 5, 8, 0 };
	struct wp_profile *p = *state;

	mk_stack(p, pcs, WP_END_NO_INFO, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wp_profile_locate(p), 0);
		assert_int_equal(p->nlocations, 3);
		assert_int_equal(p->nlines, 1);
		assert_int_equal(p->nfunctions, 1);
		assert_int_equal(p->stacks[0].loc_first, 0);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(equal_stacks_are_one),
		T(many_stacks_are_found_again),
		T(samples_of_one_key_add_up),
		T(no_hint_leads_to_the_sample_of_another_key),
		T(every_part_of_a_key_counts),
		T(kinds_have_samples_of_their_own),
		T(threads_share_by_name),
		T(names_that_are_too_many_share_too),
		T(processes_that_are_too_many_share_too),
		T(return_address_is_looked_up_before_itself),
		T(address_before_its_mapping_is_in_none),
		T(same_address_is_one_location),
		T(cut_stack_says_why),
		T(kernel_frame_is_its_name),
		T(equal_functions_are_one),
		T(locating_again_gives_the_same),
	};

	return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
