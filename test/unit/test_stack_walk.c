/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  stack_walk.h: a walk returns its stack, why it ended, and
 * whether the map was out of date. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>

#include "../../src/sample/stack_walk.h"
#include "fake_target.h"

enum { PAGE = 4096 };

static struct fake_target fake;
static struct fake_stack stack;
static struct wp_regs regs;

static int setup(void **state)
{
	const struct wp_sampler_options options = fake_target_options();

	(void)state;
	fake_stack_init(&stack, fake_stack_root);
	regs = fake_stack_regs(&stack);
	fake_target_open(&fake);
	fake_target_add_thread(&fake, 5, "t");
	assert_int_equal(fake_target_start(&fake, &options), 0);
	fake.target->tick = 1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_target_close(&fake);
	return 0;
}

static void copy(size_t len)
{
	wp_stack_copy_take(&fake.sampler->copy, &fake.target->space,
			   regs.v[WP_REG_SP], len);
}

static void the_frames_are_in_the_profile(void **state)
{
	const struct wp_profile_stack *p;
	struct wp_stack_walk walk;
	uint32_t id;

	(void)state;
	copy(4096);
	walk = wp_stack_walk(fake.target, &regs, WP_UNWIND_THOROUGH);
	assert_int_equal(walk.stack.depth, 3);
	assert_false(walk.is_on_two_stacks || walk.map_is_stale);
	id = wp_stack_walk_intern(fake.target, &walk);
	p = &fake.profile.stacks[id];
	assert_int_equal(p->depth, 3);
	assert_int_equal(wp_profile_frame(&fake.profile, p, 0)->pc_avma,
			 regs.v[WP_REG_PC]);
	assert_int_equal(p->end, walk.stack.end);
	assert_int_equal(wp_stack_walk_intern(fake.target, &walk), id);
	id = wp_stack_walk_intern_none(fake.target, WP_END_NO_RECORD);
	assert_int_equal(fake.profile.stacks[id].end, WP_END_NO_RECORD);
	assert_int_equal(fake.profile.stacks[id].depth, 0);
}

static void a_short_copy_cuts_the_stack(void **state)
{
	struct wp_stack_walk walk;

	(void)state;
	copy(WP_RED_ZONE);
	walk = wp_stack_walk(fake.target, &regs, WP_UNWIND_THOROUGH);
	assert_int_equal(walk.stack.end, WP_END_BEYOND_COPY);
	assert_true(walk.is_beyond_copy);
	/* Of a thread that stands still the rest is read. */
	copy(WP_RED_ZONE);
	fake.sampler->copy.live = true;
	walk = wp_stack_walk(fake.target, &regs, WP_UNWIND_THOROUGH);
	assert_int_equal(walk.stack.depth, 3);
	assert_true(walk.is_beyond_copy);
}

static void a_sample_that_was_cut_tells_its_source(void **state)
{
	struct wp_perf_source source = { .cannot_grow = false };
	struct wp_perf_record record = {
		.regs = regs,
		.stack = (const uint8_t *)(uintptr_t)regs.v[WP_REG_SP],
		.stack_len = (uintptr_t)(&stack + 1) - regs.v[WP_REG_SP],
		.stack_full = true,
	};
	struct wp_stack_walk walk;

	(void)state;
	walk = wp_stack_walk_sample(fake.target, &source, &record);
	assert_int_equal(walk.stack.depth, 3);
	assert_false(source.stack_was_cut);
	record.stack_len = 0;
	record.stack_full = false;
	wp_stack_walk_sample(fake.target, &source, &record);
	assert_false(source.stack_was_cut);
	record.stack_len = 1;
	walk = wp_stack_walk_sample(fake.target, &source, &record);
	assert_int_equal(walk.stack.end, WP_END_BEYOND_COPY);
	/* It ended at a page that was never touched. */
	assert_false(source.stack_was_cut);
	record.stack_full = true;
	wp_stack_walk_sample(fake.target, &source, &record);
	assert_true(source.stack_was_cut);
	source = (struct wp_perf_source){ .cannot_grow = true };
	wp_stack_walk_sample(fake.target, &source, &record);
	assert_false(source.stack_was_cut);
}

/* Code that is mapped after the map was read. */
static void *map_code(void)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void code_that_is_not_in_the_map_has_it_read_again(void **state)
{
	void *code = map_code();
	struct wp_stack_walk walk;

	(void)state;
	wp_reg_set(&regs, WP_REG_PC, (uintptr_t)code);
	copy(4096);
	fake_now_ns += WP_NS_PER_S;
	walk = wp_stack_walk(fake.target, &regs, WP_UNWIND_THOROUGH);
	assert_true(walk.stack.frames[0].mapping != WP_MAPPING_NONE);
	assert_false(walk.map_is_stale);
	assert_int_equal(fake.profile.counters.map_reloads, 2);
	munmap(code, PAGE);
}

static void in_a_stop_window_the_map_is_not_read(void **state)
{
	void *code = map_code();
	struct wp_stack_walk walk;

	(void)state;
	wp_reg_set(&regs, WP_REG_PC, (uintptr_t)code);
	copy(4096);
	fake_now_ns += WP_NS_PER_S;
	walk = wp_stack_walk(fake.target, &regs, WP_UNWIND_IN_STOP);
	assert_true(walk.map_is_stale);
	assert_int_equal(walk.stack.frames[0].mapping, WP_MAPPING_NONE);
	assert_int_equal(fake.profile.counters.map_reloads, 1);
	munmap(code, PAGE);
}

/* The kernel that is asked knows of no code there either: where a thread runs itself, it
 * may have been asked of another address space. */
static void code_that_is_not_there_has_the_map_opened_again(void **state)
{
	void *code = map_code();
	struct wp_stack_walk walk;

	(void)state;
	munmap(code, PAGE);
	wp_reg_set(&regs, WP_REG_PC, (uintptr_t)code);
	copy(4096);
	fake_now_ns += WP_NS_PER_S;
	/* Before Linux 6.11 it cannot be asked. */
	if (!fake.target->space.can_query)
		return;
	walk = wp_stack_walk(fake.target, &regs, WP_UNWIND_THOROUGH);
	assert_false(walk.map_is_stale);
	assert_int_equal(walk.stack.frames[0].mapping, WP_MAPPING_NONE);
	assert_int_equal(fake.profile.counters.map_reloads, 2);
	assert_int_equal(fake.profile.counters.execs, 0);
	/* But not each time. */
	fake.target->space.reload_cost_ns = WP_NS_PER_S;
	walk = wp_stack_walk(fake.target, &regs, WP_UNWIND_THOROUGH);
	assert_true(walk.map_is_stale);
	assert_int_equal(fake.profile.counters.map_reloads, 2);
}

/* It is read again at the next chance, not in this walk. */
static void a_map_that_was_just_read_is_not_read_again(void **state)
{
	void *code = map_code();
	struct wp_stack_walk walk;

	(void)state;
	/* No code is there, and what was read has not changed. */
	munmap(code, PAGE);
	wp_reg_set(&regs, WP_REG_PC, (uintptr_t)code);
	copy(4096);
	/* As before Linux 6.11. */
	fake.target->space.can_query = false;
	fake.target->space.reload_cost_ns = WP_NS_PER_S;
	walk = wp_stack_walk(fake.target, &regs, WP_UNWIND_THOROUGH);
	assert_true(walk.map_is_stale);
	assert_int_equal(fake.profile.counters.map_reloads, 1);
	/* Once that is a while ago it is. */
	fake_now_ns += 30 * WP_NS_PER_S;
	walk = wp_stack_walk(fake.target, &regs, WP_UNWIND_THOROUGH);
	assert_false(walk.map_is_stale);
	assert_int_equal(fake.profile.counters.map_reloads, 2);
}

/* Of a sample whose kernel copied all that it was asked for, and whose source may ask for
 * no more, the rest is read from the target; so is what ended at a page that was never
 * touched. */
static void a_sample_may_be_followed_where_no_longer_copy_comes(void **state)
{
	static const struct {
		bool full, cannot_grow, follows;
	} rows[] = {
		{ false, false, true },
		{ false, true, true },
		{ true, false, false },
		{ true, true, true },
	};
	struct wp_perf_record record = {
		.regs = regs,
		.stack = (const uint8_t *)(uintptr_t)regs.v[WP_REG_SP],
		.stack_len = 1,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_perf_source source = {
			.cannot_grow = rows[i].cannot_grow
		};

		record.stack_full = rows[i].full;
		wp_stack_walk_sample(fake.target, &source, &record);
		assert_int_equal(fake.sampler->copy.may_follow,
				 rows[i].follows);
	}
}

/* A stack that --max-memory cut short is known by its end. */
static void what_had_no_memory_is_said(void **state)
{
	static const struct {
		enum wp_stack_end end, want;
		bool lacks;
	} rows[] = {
		{ WP_END_NO_INFO, WP_END_DROPPED, true },
		{ WP_END_BAD_INFO, WP_END_DROPPED, true },
		{ WP_END_ROOT, WP_END_ROOT, true },
		{ WP_END_NO_INFO, WP_END_NO_INFO, false },
		{ WP_END_BAD_INFO, WP_END_BAD_INFO, false },
	};
	struct wp_stack_walk walk;
	struct wp_elf_image *image;

	(void)state;
	copy(4096);
	walk = wp_stack_walk(fake.target, &regs, WP_UNWIND_THOROUGH);
	image = fake.profile
			.mappings[walk.stack.frames[walk.stack.depth - 1]
					  .mapping]
			.image;
	assert_non_null(image);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint32_t id;

		walk.stack.end = rows[i].end;
		image->lacks_memory = rows[i].lacks;
		id = wp_stack_walk_intern(fake.target, &walk);
		assert_int_equal(fake.profile.stacks[id].end, rows[i].want);
	}
	image->lacks_memory = false;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_frames_are_in_the_profile),
		TEST(a_short_copy_cuts_the_stack),
		TEST(a_sample_that_was_cut_tells_its_source),
		TEST(code_that_is_not_in_the_map_has_it_read_again),
		TEST(in_a_stop_window_the_map_is_not_read),
		TEST(code_that_is_not_there_has_the_map_opened_again),
		TEST(a_map_that_was_just_read_is_not_read_again),
		TEST(a_sample_may_be_followed_where_no_longer_copy_comes),
		TEST(what_had_no_memory_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
