/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  goroutine_stacks.h, go_target.h: the goroutines of a target, each with
 * its own stack and the one that created it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/epoll.h>

#include "one_target.h"
#include "few_allocations.h"

#include "go_target_maker.h"
#include "wallprof/goroutine_stacks.h"

enum { WAITS = 4, CODE = 0x10, CREATED = 0x20 };

static struct wp_goroutine_list list;

static int setup(void **state)
{
	(void)state;
	list = (struct wp_goroutine_list)WP_GOROUTINE_LIST_INIT;
	fake_target_open(&fake);
	fake_target_link(&fake, "fdinfo");
	fake_target_add_thread(&fake, 7, "worker");
	options = fake_target_options();
	start_target();
	made_go_init(&made);
	made_target_show();
	/* The first stack of the profile is another's. */
	return wp_profile_add_stack(
		&fake.profile, &(struct wp_stack){ .end = WP_END_NO_INFO }, 0);
}

static int end(void **state)
{
	wp_goroutine_stacks_clear(&list);
	return made_target_end(state);
}

static int read_list(struct wp_err *err)
{
	made_target_update();
	return wp_goroutine_stacks_read(fake.target, &list, err);
}

/* Goroutine I of the made program, whose id is I + 1. */
static const struct wp_goroutine *goroutine(uint64_t i)
{
	uint32_t k = 0;

	while (k < list.all.len && list.all.v[k].id != i + 1)
		k++;
	assert_true(k < list.all.len);
	return &list.all.v[k];
}

static const struct wp_goroutine_stacks *stacks_of(uint64_t i)
{
	assert_true(goroutine(i)->stack < list.nstacks);
	return &list.stacks[goroutine(i)->stack];
}

static const struct wp_profile_stack *stack_at(uint32_t index)
{
	assert_true(index < fake.profile.nstacks);
	return &fake.profile.stacks[index];
}

/* The innermost frame of stack INDEX is at OFF of the made program's code. */
static void assert_top(uint32_t index, uint64_t off)
{
	const struct wp_profile_stack *s = stack_at(index);
	const struct wp_frame *frame = wp_profile_frame(&fake.profile, s, 0);

	assert_true(s->depth >= 1);
	assert_int_equal(frame->pc_avma, MADE_TEXT + MADE_BIAS + off);
	assert_int_equal(frame->mapping, made_target_module.mapping);
	/* It goes on there. */
	assert_true(frame->flags & WP_FRAME_RETURN);
}

static void each_has_its_stack_and_its_creator(void **state)
{
	(void)state;
	assert_int_equal(read_list(NULL), 0);
	assert_int_equal(list.all.len, 3);
	assert_int_equal(list.nstacks, 3);
	assert_string_equal(list.version, "go1.22.3");
	assert_int_equal(list.time_ns, fake_now_ns);
	assert_top(stacks_of(0)->own, CODE);
	assert_top(stacks_of(2)->own, CODE);
	for (uint32_t i = 1; i < 3; i++) {
		assert_top(stacks_of(i)->created, CREATED);
		assert_int_equal(stack_at(stacks_of(i)->created)->depth, 1);
		assert_int_equal(stack_at(stacks_of(i)->created)->end,
				 WP_END_ROOT);
	}
	/* The program began the first. */
	assert_int_equal(stack_at(stacks_of(0)->created)->depth, 0);
	assert_int_equal(stack_at(stacks_of(0)->created)->end, WP_END_EMPTY);
}

#if defined(__x86_64__)
/* Nothing is gained by reading it again. */
static void a_whole_stack_is_read_once(void **state)
{
	const struct wp_unwind_stats *stats;
	uint64_t walks;

	(void)state;
	made_goexit();
	stats = wp_unwinder_stats(fake.sampler->unwinder);
	walks = stats->walks;
	assert_int_equal(read_list(NULL), 0);
	assert_int_equal(stats->walks - walks, 2);
	assert_int_equal(list.nstacks, 3);
	assert_int_equal(stack_at(stacks_of(0)->own)->end, WP_END_ROOT);
}
#endif

static void one_that_runs_has_no_stack(void **state)
{
	(void)state;
	assert_int_equal(read_list(NULL), 0);
	assert_int_equal(goroutine(1)->state, WP_GOROUTINE_RUNNING);
	assert_int_equal(goroutine(1)->tid, 77);
	assert_int_equal(stack_at(stacks_of(1)->own)->depth, 0);
	assert_int_equal(stack_at(stacks_of(1)->own)->end, WP_END_EMPTY);
}

static void who_created_one_may_not_be_known(void **state)
{
	(void)state;
	made_put(made_g(&made, 2, 280), 0, 0, 8);
	assert_int_equal(read_list(NULL), 0);
	assert_int_equal(stack_at(stacks_of(2)->created)->depth, 0);
}

/* One that has not begun stands at its function's first instruction, not behind a
 * call. */
static void one_that_has_not_begun_returns_to_nothing(void **state)
{
	const struct wp_frame *frame;

	(void)state;
	made_put(made_g(&made, 0, 64), 0, MADE_TEXT + MADE_BIAS, 8);
	assert_int_equal(read_list(NULL), 0);
	frame = wp_profile_frame(&fake.profile, stack_at(stacks_of(0)->own), 0);
	assert_int_equal(frame->pc_avma, MADE_TEXT + MADE_BIAS);
	assert_false(frame->flags & WP_FRAME_RETURN);
}

/* A pc of no module: the frame is told, and belongs to none. */
static void a_creator_outside_of_the_program_has_no_mapping(void **state)
{
	const struct wp_profile_stack *s;

	(void)state;
	made_put(made_g(&made, 2, 280), 0, 0x1234, 8);
	assert_int_equal(read_list(NULL), 0);
	s = stack_at(stacks_of(2)->created);
	assert_int_equal(s->depth, 1);
	assert_int_equal(wp_profile_frame(&fake.profile, s, 0)->mapping,
			 WP_MAPPING_NONE);
}

/* The address behind the last of a module is a return address in it. */
static void a_return_address_is_looked_up_before_it(void **state)
{
	const struct wp_profile_stack *s;

	(void)state;
	made_put(made_g(&made, 2, 280), 0, made_target_module.end_avma, 8);
	assert_int_equal(read_list(NULL), 0);
	s = stack_at(stacks_of(2)->created);
	assert_int_equal(wp_profile_frame(&fake.profile, s, 0)->mapping,
			 made_target_module.mapping);
	/* And that behind the first. */
	made_put(made_g(&made, 2, 280), 0, made_target_module.start_avma + 1,
		 8);
	wp_goroutine_stacks_clear(&list);
	assert_int_equal(read_list(NULL), 0);
	s = stack_at(stacks_of(2)->created);
	assert_int_equal(wp_profile_frame(&fake.profile, s, 0)->mapping,
			 made_target_module.mapping);
}

static void what_the_poller_waits_for_is_named(void **state)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fds[2], epoll = epoll_create1(EPOLL_CLOEXEC);

	(void)state;
	assert_true(epoll >= 0);
	assert_int_equal(pipe(fds), 0);
	/* As the runtime packs a pollDesc. */
	made_put(made_g(&made, 1, 144), 0, WAITS, 4);
	event.data.u64 = made_avma(MADE_POLL) << 16 | 0x5a5a;
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event), 0);
	made_put(made.memory, MADE_POLL + 8, (uint64_t)fds[0], 8);
	made_put(made_g(&made, 0, 312), 0, 0, 8);
	assert_int_equal(read_list(NULL), 0);
	assert_int_equal(goroutine(0)->nobjects, 1);
	assert_int_equal(list.all.objects[goroutine(0)->first_object].kind,
			 WP_GO_OBJECT_FD);
	assert_int_equal(list.all.objects[goroutine(0)->first_object].fd,
			 fds[0]);
	close(fds[0]);
	close(fds[1]);
	close(epoll);
}

static void another_program_has_none(void **state)
{
	struct wp_err err = WP_ERR_INIT;

	(void)state;
	made.image.go_table.size = 0;
	assert_int_equal(read_list(&err), 0);
	assert_int_equal(read_list(NULL), 0);
	assert_int_equal(err.code, 0);
	assert_int_equal(list.all.len, 0);
	assert_string_equal(list.version, "");
	/* Nor has a process without code. */
	fake.target->space.view.len = 0;
	assert_int_equal(read_list(&err), 0);
	assert_int_equal(list.all.len, 0);
}

/* A program that loads a library which Go built. */
static void a_library_of_go_has_goroutines_too(void **state)
{
	struct wp_unwind_module *modules;

	(void)state;
	modules = made_library();
	fake.target->space.view.generation++;
	assert_int_equal(read_list(NULL), 0);
	assert_int_equal(list.all.len, 3);
	/* Unless no walk has met it yet. */
	wp_goroutine_stacks_clear(&list);
	modules[1].is_unopened = true;
	assert_int_equal(read_list(NULL), 0);
	assert_int_equal(list.all.len, 0);
	modules[1].image = NULL;
	modules[1].is_unopened = false;
	assert_int_equal(read_list(NULL), 0);
	assert_int_equal(list.all.len, 0);
}

/* Another library of Go's with a runtime of its own; one file in two mappings is one. */
static void a_second_runtime_is_said_to_be_left_out(void **state)
{
	struct wp_err err = WP_ERR_INIT;
	struct wp_unwind_module *modules;
	struct wp_elf_image other;

	(void)state;
	modules = made_library();
	other = *modules[1].image;
	modules[0].image = &other;
	fake.target->space.view.generation++;
	assert_int_equal(read_list(&err), 0);
	assert_int_equal(list.all.len, 3);
	assert_int_equal(err.code, 0);
	assert_memory_equal(err.msg, "those of 1 more Go runtime (", 28);
	wp_goroutine_stacks_clear(&list);
	err = (struct wp_err)WP_ERR_INIT;
	modules[0].image = modules[1].image;
	assert_int_equal(read_list(&err), 0);
	assert_string_equal(err.msg, "");
	/* A plugin has none, nor what Go of another version built. */
	wp_goroutine_stacks_clear(&list);
	other.go_buildinfo.size = 0;
	modules[1].image = &other;
	assert_int_equal(read_list(&err), 0);
	assert_int_equal(list.all.len, 3);
	assert_string_equal(err.msg, "");
}

static void one_of_an_unknown_go_says_so(void **state)
{
	struct wp_err err = WP_ERR_INIT;

	(void)state;
	made_module(&made, "go1.15.3");
	assert_int_equal(read_list(&err), -ENOTSUP);
	assert_non_null(strstr(err.msg, "a Go that is not known"));
	assert_int_equal(list.all.len, 0);
}

#ifdef CAN_FAIL
static void without_memory_the_list_is_an_error(void **state)
{
	enum { MANY = 1 << 20 };
	long need;

	allocations_left = MANY;
	assert_int_equal(read_list(NULL), 0);
	need = MANY - allocations_left;
	allocations_left = -1;
	assert_true(need > 5);
	for (long n = 0; n < need; n++) {
		int rc;

		end(state);
		setup(state);
		allocations_left = n;
		rc = read_list(NULL);
		allocations_left = -1;
		assert_int_equal(rc, -ENOMEM);
	}
}
#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_has_its_stack_and_its_creator),
#if defined(__x86_64__)
		TEST(a_whole_stack_is_read_once),
#endif
		TEST(one_that_runs_has_no_stack),
		TEST(who_created_one_may_not_be_known),
		TEST(one_that_has_not_begun_returns_to_nothing),
		TEST(a_creator_outside_of_the_program_has_no_mapping),
		TEST(a_return_address_is_looked_up_before_it),
		TEST(what_the_poller_waits_for_is_named),
		TEST(another_program_has_none),
		TEST(a_library_of_go_has_goroutines_too),
		TEST(a_second_runtime_is_said_to_be_left_out),
		TEST(one_of_an_unknown_go_says_so),
#ifdef CAN_FAIL
		TEST(without_memory_the_list_is_an_error),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
