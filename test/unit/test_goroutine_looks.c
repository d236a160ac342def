/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: go.  Looks at the goroutines of a program made by hand, whose list grows
 * and lies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "go_maker.h"
#include "wallprof/budget.h"
#include "wallprof/goroutine_looks.h"

enum { WAITS = 4, RUNS = 2, ENDED = 6, SEQ = 191, MADE_CURG = 192 };

struct seen {
	uint32_t index;
	struct wp_goroutine_words words;
	struct wp_goroutine_more more;
};

struct fixture {
	struct made_go made;
	struct wp_go_program *program;
	struct wp_goroutine_looks *looks;
	/* What the last look told. */
	struct seen seen[16];
	uint32_t nseen, nunread, n, nleft;
	struct wp_intern strings;
	struct wp_goroutines all;
	unsigned int nstacks;
};

static int set_up(void **state)
{
	struct fixture *f = test_calloc(1, sizeof(*f));

	made_go_init(&f->made);
	assert_int_equal(made_open(&f->made, &f->program, NULL), 0);
	assert_int_equal(wp_goroutine_looks_new(&f->looks, f->program), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	wp_goroutine_looks_free(f->looks);
	wp_go_program_free(f->program);
	wp_intern_clear(&f->strings);
	wp_goroutines_clear(&f->all);
	wp_budget_set(WP_BUDGET_DEFAULT);
	test_free(f);
	return 0;
}

static void see(void *ctx, uint32_t index,
		const struct wp_goroutine_words *words, const uint8_t *bytes)
{
	struct fixture *f = ctx;

	assert_true(f->nseen < 16);
	f->seen[f->nseen++] = (struct seen){
		index, *words, wp_goroutine_looks_more(f->looks, bytes)
	};
}

static void look(struct fixture *f)
{
	f->nseen = 0;
	assert_int_equal(wp_goroutine_looks_update(f->looks, &f->n, &f->nleft),
			 0);
	assert_int_equal(wp_goroutine_looks_make(f->looks, see, f, &f->nunread),
			 0);
}

static void a_look_tells_all_that_live(void **state)
{
	struct fixture *f = *state;

	look(f);
	assert_int_equal(f->n, 4);
	assert_int_equal(f->nleft, 0);
	assert_int_equal(f->nseen, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(f->seen[i].index, i);
		assert_int_equal(f->seen[i].words.id, i + 1);
		assert_int_equal(f->seen[i].words.pc_avma,
				 MADE_TEXT + MADE_BIAS + 0x10);
		assert_int_equal(f->seen[i].more.start_avma,
				 MADE_TEXT + MADE_BIAS);
	}
	assert_int_equal(f->seen[0].words.state, WP_GOROUTINE_WAITING);
	assert_string_equal(
		wp_go_program_reason(f->program, f->seen[0].more.reason),
		"IO wait");
	assert_string_equal(wp_go_program_reason(f->program, 200), "");
	assert_int_equal(f->seen[1].words.state, WP_GOROUTINE_RUNNING);
	assert_int_equal(
		wp_goroutine_looks_tid(f->looks, f->seen[1].more.m_avma), 77);
	assert_int_equal(f->seen[2].more.labels_avma, made_avma(MADE_LABELS));
}

static uint32_t nended;

static void see_ended(void *ctx, uint64_t id,
		      const struct wp_goroutine_more *more)
{
	(void)ctx;
	assert_int_equal(id, 4 - nended++);
	assert_int_equal(more->start_avma, MADE_TEXT + MADE_BIAS);
	assert_int_equal(more->created_avma, MADE_TEXT + MADE_BIAS + 0x20);
}

static void those_that_have_ended_are_told_to_who_asks(void **state)
{
	struct fixture *f = *state;

	look(f);
	assert_int_equal(nended, 0);
	wp_goroutine_looks_tell_ended(f->looks, see_ended);
	look(f);
	assert_int_equal(nended, 1);
	assert_int_equal(f->nseen, 3);
}

static void one_that_has_run_has_other_words(void **state)
{
	struct fixture *f = *state;

	look(f);
	++*made_g(&f->made, 0, SEQ);
	made_put(made_g(&f->made, 2, 144), 0, ENDED, 4);
	look(f);
	assert_int_equal(f->nseen, 2);
	assert_int_equal(f->seen[0].words.seq, 1);
	assert_int_equal(f->seen[1].words.seq, 0);
}

static void the_list_grows(void **state)
{
	struct fixture *f = *state;

	look(f);
	made_goroutine(&f->made, 4, WAITS);
	look(f);
	assert_int_equal(f->nseen, 3);
	made_put(f->made.memory, MADE_ALLGS + 8, 5, 8);
	look(f);
	assert_int_equal(f->n, 5);
	assert_int_equal(f->nseen, 4);
	assert_int_equal(f->seen[3].index, 4);
	/* It never gets shorter: one that says so lies. */
	made_put(f->made.memory, MADE_ALLGS + 8, 1, 8);
	look(f);
	assert_int_equal(f->nseen, 4);
}

static void a_list_that_lies_does_no_harm(void **state)
{
	struct fixture *f = *state;

	/* Twice the same, one that overlaps, one that is none, one out of
	 * memory. */
	made_put(f->made.memory, MADE_LIST + 32, made_avma(MADE_G), 8);
	made_put(f->made.memory, MADE_LIST + 40, made_avma(MADE_G + 16), 8);
	made_put(f->made.memory, MADE_LIST + 48, 7, 8);
	made_put(f->made.memory, MADE_LIST + 56, UINT64_C(0x7fff00000000), 8);
	made_put(f->made.memory, MADE_ALLGS + 8, 8, 8);
	look(f);
	assert_int_equal(f->nunread, 1);
	assert_in_range(f->nseen, 4, 5);
	/* More than there can be: as many are read as there is room for. */
	made_put(f->made.memory, MADE_ALLGS + 8, UINT64_C(1) << 60, 8);
	look(f);
	assert_int_equal(f->n, 8);
	assert_true(f->nleft > 1000);
	/* The list itself cannot be read. */
	f->made.memory[MADE_ALLGS] = 0;
	look(f);
	assert_in_range(f->nseen, 4, 5);
}

static void what_memory_has_no_room_for_is_told(void **state)
{
	struct fixture *f = *state;

	wp_budget_set(64);
	look(f);
	assert_int_equal(f->n + f->nleft, 4);
	assert_int_equal(f->nseen, 0);
}

/* The same goroutines 512 times, and memory for some of them. */
static void the_list_is_followed_to_the_end_of_its_memory(void **state)
{
	enum { ALL = (MADE_G - MADE_LIST) / 8, LOOKS = 20 };
	struct fixture *f = *state;
	uint32_t first;

	for (size_t i = MADE_GOROUTINES; i < ALL; i++)
		made_put(f->made.memory, MADE_LIST + 8 * i, made_avma(MADE_G),
			 8);
	made_put(f->made.memory, MADE_ALLGS + 8, ALL, 8);
	wp_budget_set(16 * 1024);
	for (int i = 0; i < LOOKS; i++) {
		look(f);
		assert_int_equal(f->n + f->nleft, ALL);
		if (!i)
			first = f->n;
	}
	/* A later look goes on where there is room, and no further. */
	assert_true(first > 0 && f->n >= first && f->n < 1024 / 16);
	/* What was read is looked at as ever: the fourth goroutine has ended. */
	assert_int_equal(f->nseen, f->n - 1);
	assert_false(wp_budget_take(WP_BUDGET_GO, 1024));
}

static void the_goroutine_of_a_register(void **state)
{
	struct fixture *f = *state;
	uint64_t g0 = made_avma(MADE_G + 5 * MADE_G_STEP), id;
	struct wp_goroutine_more more;
	bool is_threads;

	assert_true(wp_goroutine_looks_at(f->looks,
					  made_avma(MADE_G + 2 * MADE_G_STEP),
					  &id, &more, &is_threads));
	assert_int_equal(id, 3);
	assert_false(is_threads);
	assert_int_equal(more.labels_avma, made_avma(MADE_LABELS));
	/* g0 of the thread that runs goroutine 2. */
	made_put(made_g(&f->made, 5, 72), 0, g0, 8);
	made_put(made_g(&f->made, 5, 48), 0, made_avma(MADE_M), 8);
	made_put(f->made.memory, MADE_M + MADE_CURG,
		 made_avma(MADE_G + MADE_G_STEP), 8);
	assert_true(
		wp_goroutine_looks_at(f->looks, g0, &id, &more, &is_threads));
	assert_int_equal(id, 2);
	assert_true(is_threads);
	/* The thread runs none; the register holds something else. */
	made_put(f->made.memory, MADE_M + MADE_CURG, 0, 8);
	assert_false(
		wp_goroutine_looks_at(f->looks, g0, &id, &more, &is_threads));
	assert_true(is_threads);
	assert_false(wp_goroutine_looks_at(f->looks, made_avma(MADE_G + 8), &id,
					   &more, &is_threads));
	assert_false(is_threads);
	assert_false(
		wp_goroutine_looks_at(f->looks, 1, &id, &more, &is_threads));
}

static bool walk(void *ctx, struct wp_goroutine *g,
		 const struct wp_goroutine_stack *stack, bool last)
{
	struct fixture *f = ctx;

	(void)g;
	(void)last;
	f->nstacks += stack != NULL;
	return true;
}

static void stacks_of_some_are_read(void **state)
{
	struct fixture *f = *state;
	const struct wp_goroutine_user user = { .walk = walk,
						.ctx = f,
						.strings = &f->strings,
						.skips_labels = true };
	static const uint32_t wanted[] = { 2, 1 };

	look(f);
	assert_int_equal(
		wp_goroutine_looks_read(f->looks, &user, wanted, 2, &f->all),
		0);
	assert_int_equal(f->all.len, 2);
	assert_int_equal(f->nstacks, 1);
	assert_int_equal(f->all.v[0].index, 2);
	assert_int_equal(f->all.v[0].id, 3);
	assert_int_equal(f->all.v[0].nlabels, 0);
	assert_int_equal(f->all.v[0].labels_avma, made_avma(MADE_LABELS));
	assert_int_equal(f->all.v[1].index, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_look_tells_all_that_live,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			those_that_have_ended_are_told_to_who_asks, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			one_that_has_run_has_other_words, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_list_grows, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_list_that_lies_does_no_harm,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_memory_has_no_room_for_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			the_list_is_followed_to_the_end_of_its_memory, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(the_goroutine_of_a_register,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(stacks_of_some_are_read, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
