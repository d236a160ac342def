/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: go.  What goroutines of a program made by hand wait for, in memory that lies
 * and changes while it is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "go_maker.h"

enum { REASON = 176, SEQ = 191, WAITING = 312, CHAN_RECEIVE = 3, LOCK = 4 };

struct fixture {
	struct made_go made;
	struct wp_intern strings;
	struct wp_goroutines all;
};

static bool walk(void *ctx, struct wp_goroutine *g,
		 const struct wp_goroutine_stack *stack, bool last)
{
	(void)ctx;
	(void)g;
	(void)stack;
	(void)last;
	return true;
}

static int set_up(void **state)
{
	struct fixture *f = test_calloc(1, sizeof(*f));

	made_go_init(&f->made);
	*made_g(&f->made, 0, REASON) = CHAN_RECEIVE;
	*made_g(&f->made, 2, REASON) = LOCK;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	wp_intern_clear(&f->strings);
	wp_goroutines_clear(&f->all);
	test_free(f);
	return 0;
}

/* Read all goroutines, and what is polled: DATA, as descriptor 3. */
static void read_all(struct fixture *f, uint64_t data)
{
	const struct wp_goroutine_user user = {
		.walk = walk,
		.strings = &f->strings,
		.reads_objects = true,
	};
	const struct wp_epoll_watch polled = { 3, data };
	struct wp_go_program *program;

	assert_int_equal(made_open(&f->made, &program, NULL), 0);
	f->made.nreads = 0;
	assert_int_equal(wp_goroutines_read(program, &user, &f->all), 0);
	assert_int_equal(
		wp_goroutine_objects_poll(program, &polled, 1, &f->all), 0);
	wp_go_program_free(program);
	assert_int_equal(f->all.len, 3);
	/* Of one that runs nothing is told. */
	assert_int_equal(f->all.v[1].nobjects, 0);
}

static const struct wp_go_object *object(const struct fixture *f, uint32_t g,
					 uint32_t i)
{
	assert_true(i < f->all.v[g].nobjects);
	return &f->all.objects[f->all.v[g].first_object + i];
}

static uint64_t channel(size_t number)
{
	return made_avma(MADE_CHANNEL + number * MADE_CHANNEL_STEP);
}

static uint64_t sudog(size_t number)
{
	return made_avma(MADE_SUDOG + number * MADE_SUDOG_STEP);
}

static void channels_of_a_select_are_told(void **state)
{
	struct fixture *f = *state;

	made_put(f->made.memory, MADE_CHANNEL + MADE_CHANNEL_STEP, 7, 8);
	made_put(f->made.memory, MADE_CHANNEL + 28, 1, 4);
	read_all(f, 0);
	assert_int_equal(f->all.v[0].nobjects, 2);
	assert_int_equal(object(f, 0, 0)->kind, WP_GO_OBJECT_CHANNEL);
	assert_int_equal(object(f, 0, 0)->avma, channel(0));
	assert_int_equal(object(f, 0, 0)->cap, 0);
	assert_true(object(f, 0, 0)->is_closed);
	assert_int_equal(object(f, 0, 1)->avma, channel(1));
	assert_int_equal(object(f, 0, 1)->len, 7);
	assert_int_equal(object(f, 0, 1)->cap, 10);
	/* 1.22 does not tell timers' channels. */
	assert_false(object(f, 0, 1)->is_closed || object(f, 0, 1)->is_timers);
}

/* They have room for one time.Time. */
static void a_channel_may_be_a_timers(void **state)
{
	struct fixture *f = *state;

	made_put(f->made.memory, MADE_CHANNEL + 8, 1, 8);
	made_put(f->made.memory, MADE_CHANNEL + 24, 24, 2);
	made_put(f->made.memory, MADE_CHANNEL + MADE_CHANNEL_STEP + 8, 1, 8);
	made_put(f->made.memory, MADE_CHANNEL + MADE_CHANNEL_STEP + 24, 8, 2);
	read_all(f, 0);
	assert_true(object(f, 0, 0)->may_be_timers);
	assert_false(object(f, 0, 1)->may_be_timers);
	/* Who waits for one that is full, sends. */
	made_put(f->made.memory, MADE_CHANNEL, 1, 8);
	wp_goroutines_clear(&f->all);
	read_all(f, 0);
	assert_false(object(f, 0, 0)->may_be_timers);
	made_put(f->made.memory, MADE_CHANNEL, 0, 8);
	made_put(f->made.memory, MADE_CHANNEL + 8, 2, 8);
	wp_goroutines_clear(&f->all);
	read_all(f, 0);
	assert_false(object(f, 0, 0)->may_be_timers);
}

static void a_semaphore_is_found_by_the_stack(void **state)
{
	struct fixture *f = *state;

	made_put(f->made.memory, MADE_SEMAPHORE - 4, 0x1234, 4);
	read_all(f, 0);
	assert_int_equal(f->all.v[2].nobjects, 1);
	assert_int_equal(object(f, 2, 0)->kind, WP_GO_OBJECT_SEMAPHORE);
	assert_int_equal(object(f, 2, 0)->avma, made_avma(MADE_SEMAPHORE));
	assert_true(object(f, 2, 0)->has_words);
	assert_int_equal(object(f, 2, 0)->words[3], 0x1234);
}

static void a_descriptor_is_told_by_the_poller(void **state)
{
	struct fixture *f = *state;

	*made_g(&f->made, 0, REASON) = 2;
	made_put(made_g(&f->made, 0, WAITING), 0, 0, 8);
	/* As the tag of 19 bits is packed by 1.21 and later. */
	read_all(f, made_avma(MADE_POLL) << 16 | 0x5a5a);
	assert_int_equal(f->all.v[0].nobjects, 1);
	assert_int_equal(object(f, 0, 0)->kind, WP_GO_OBJECT_FD);
	assert_int_equal(object(f, 0, 0)->fd, 3);
	assert_true(object(f, 0, 0)->writes);
}

static void polls_that_lie_tell_nothing(void **state)
{
	static const uint64_t data[] = { 0, 1, UINT64_MAX, UINT64_C(1) << 63,
					 0x7000 };
	struct fixture *f = *state;

	made_put(made_g(&f->made, 0, WAITING), 0, 0, 8);
	for (size_t i = 0; i < sizeof(data) / sizeof(*data); i++) {
		wp_goroutines_clear(&f->all);
		read_all(f, data[i]);
		assert_int_equal(f->all.v[0].nobjects, 0);
	}
	/* Of another descriptor. */
	made_put(f->made.memory, MADE_POLL + 8, 4, 8);
	wp_goroutines_clear(&f->all);
	read_all(f, made_avma(MADE_POLL) << 16);
	assert_int_equal(f->all.v[0].nobjects, 0);
	/* For which nobody waits: 0, ready, and what is no goroutine's. */
	for (uint64_t g = 0; g < 4; g++) {
		made_put(f->made.memory, MADE_POLL + 8, 3, 8);
		made_put(f->made.memory, MADE_POLL + 32, g, 8);
		made_put(f->made.memory, MADE_POLL + 40, made_avma(0) + g, 8);
		wp_goroutines_clear(&f->all);
		read_all(f, made_avma(MADE_POLL) << 16);
		assert_int_equal(f->all.v[0].nobjects, 0);
	}
}

static void a_ring_of_cases_is_cut(void **state)
{
	struct fixture *f = *state;

	made_put(f->made.memory, MADE_SUDOG + MADE_SUDOG_STEP + 64, sudog(0),
		 8);
	read_all(f, 0);
	assert_int_equal(f->all.v[0].nobjects, 64);
	made_put(f->made.memory, MADE_SUDOG + 64, sudog(0), 8);
	wp_goroutines_clear(&f->all);
	read_all(f, 0);
	assert_int_equal(f->all.v[0].nobjects, 64);
}

/* Whatever a pointer of a sudog is, nothing is told that is not there. */
static void pointers_that_lie_tell_nothing(void **state)
{
	static const uint64_t lies[] = {
		0,
		1,
		7,
		0x1000,
		UINT64_MAX,
		UINT64_MAX / 2,
		UINT64_C(1) << 63,
		MADE_BSS + MADE_BIAS + MADE_MEMORY - 8, /* half outside */
		MADE_BSS + MADE_BIAS + 1, /* odd */
	};
	struct fixture *f = *state;
	const size_t at[] = {
		MADE_G + WAITING,
		MADE_SUDOG + 80,
		MADE_SUDOG,
	};

	for (size_t k = 0; k < sizeof(at) / sizeof(*at); k++) {
		for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
			made_go_init(&f->made);
			*made_g(&f->made, 0, REASON) = CHAN_RECEIVE;
			made_put(f->made.memory, MADE_SUDOG + 64, 0, 8);
			made_put(f->made.memory, at[k], lies[i], 8);
			wp_goroutines_clear(&f->all);
			read_all(f, 0);
			assert_int_equal(f->all.v[0].nobjects, 0);
		}
	}
}

static void a_channel_with_more_than_it_has_room_for_is_none(void **state)
{
	struct fixture *f = *state;

	made_put(f->made.memory, MADE_CHANNEL, UINT64_MAX, 8);
	read_all(f, 0);
	assert_int_equal(f->all.v[0].nobjects, 1);
	assert_int_equal(object(f, 0, 0)->avma, channel(1));
}

static void semaphores_that_lie_tell_nothing(void **state)
{
	struct fixture *f = *state;
	uint8_t *s = f->made.memory + MADE_SUDOG + 2 * MADE_SUDOG_STEP;

	/* Of a channel; taken from its queue; odd; another's. */
	made_put(s, 80, channel(0), 8);
	read_all(f, 0);
	assert_int_equal(f->all.v[2].nobjects, 0);
	made_put(s, 80, 0, 8);
	made_put(s, 24, 0, 8);
	wp_goroutines_clear(&f->all);
	read_all(f, 0);
	assert_int_equal(f->all.v[2].nobjects, 0);
	made_put(s, 24, made_avma(MADE_SEMAPHORE) + 1, 8);
	wp_goroutines_clear(&f->all);
	read_all(f, 0);
	assert_int_equal(f->all.v[2].nobjects, 0);
	made_put(s, 24, made_avma(MADE_SEMAPHORE), 8);
	made_sudog(&f->made, 2, 1);
	wp_goroutines_clear(&f->all);
	read_all(f, 0);
	assert_int_equal(f->all.v[2].nobjects, 0);
	/* Nowhere: there is one, of which no more is known. */
	made_sudog(&f->made, 2, 2);
	made_put(s, 24, 0x700000000000, 8);
	wp_goroutines_clear(&f->all);
	read_all(f, 0);
	assert_int_equal(f->all.v[2].nobjects, 1);
	assert_false(object(f, 2, 0)->has_words);
}

static unsigned int turn;

/* From read TURN on goroutine 0 is in another wait. */
static void go_on(struct made_go *made)
{
	if (made->nreads == turn) {
		++*made_g(made, 0, SEQ);
		made_put(made->memory, MADE_SUDOG + 80, channel(5), 8);
	}
}

static void what_one_waits_for_is_of_one_wait(void **state)
{
	struct fixture *f = *state;
	unsigned int nread;

	read_all(f, 0);
	nread = f->made.nreads;
	for (turn = 1; turn < nread + 4; turn++) {
		made_go_init(&f->made);
		*made_g(&f->made, 0, REASON) = CHAN_RECEIVE;
		f->made.before = go_on;
		wp_goroutines_clear(&f->all);
		read_all(f, 0);
		/* Both old ones, the new one and the other, or none. */
		if (!f->all.v[0].nobjects)
			continue;
		assert_int_equal(f->all.v[0].nobjects, 2);
		assert_true(object(f, 0, 0)->avma == channel(0) ||
			    object(f, 0, 0)->avma == channel(5));
		assert_int_equal(object(f, 0, 0)->avma == channel(5),
				 f->all.v[0].seq != 0);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(channels_of_a_select_are_told),
		TEST(a_channel_may_be_a_timers),
		TEST(a_semaphore_is_found_by_the_stack),
		TEST(a_descriptor_is_told_by_the_poller),
		TEST(polls_that_lie_tell_nothing),
		TEST(a_ring_of_cases_is_cut),
		TEST(pointers_that_lie_tell_nothing),
		TEST(a_channel_with_more_than_it_has_room_for_is_none),
		TEST(semaphores_that_lie_tell_nothing),
		TEST(what_one_waits_for_is_of_one_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
