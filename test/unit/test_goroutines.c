/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: go.  Goroutines of a program made by hand, whose memory lies and changes
 * while it is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "go_maker.h"
#include "wallprof/budget.h"

enum { WAITS = 4, RUNS = 2, COPYSTACK = 8, SCAN = 0x1000, SEQ = 191 };

struct fixture {
	struct made_go made;
	struct wp_intern strings;
	struct wp_goroutines all;
	/* What the walk is asked: stacks, goroutines without; what it says. */
	unsigned int nstacks, nwithout;
	bool is_never_whole;
	size_t longest;
};

static bool walk(void *ctx, struct wp_goroutine *g,
		 const struct wp_goroutine_stack *stack, bool last)
{
	struct fixture *f = ctx;

	(void)last;
	g->stack = f->nstacks;
	if (!stack) {
		f->nwithout++;
		return true;
	}
	f->nstacks++;
	assert_non_null(stack->bytes);
	if (stack->len > f->longest)
		f->longest = stack->len;
	return !f->is_never_whole;
}

static int set_up(void **state)
{
	struct fixture *f = test_calloc(1, sizeof(*f));

	made_go_init(&f->made);
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

static int open_only(struct fixture *f)
{
	struct wp_err err = WP_ERR_INIT;
	struct wp_go_program *program = NULL;
	int rc = made_open(&f->made, &program, &err);

	assert_int_equal(err.code, rc);
	wp_go_program_free(program);
	return rc;
}

static void read_all(struct fixture *f)
{
	const struct wp_goroutine_user user = {
		.walk = walk,
		.ctx = f,
		.strings = &f->strings,
	};
	struct wp_go_program *program;

	assert_int_equal(made_open(&f->made, &program, NULL), 0);
	assert_string_equal(wp_go_program_version(program), "go1.22.3");
	f->made.nreads = 0;
	assert_int_equal(wp_goroutines_read(program, &user, &f->all), 0);
	wp_go_program_free(program);
}

static const char *text(const struct fixture *f, uint32_t id)
{
	return wp_intern_str(&f->strings, id);
}

static void all_that_live_are_read(void **state)
{
	struct fixture *f = *state;
	const struct wp_goroutine *v;

	read_all(f);
	v = f->all.v;
	assert_int_equal(f->all.len, 3);
	assert_int_equal(f->nstacks, 2);
	assert_int_equal(f->nwithout, 1);
	assert_int_equal(f->longest, MADE_STACK_STEP / 2);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(v[i].id, i + 1);
		assert_int_equal(v[i].parent_id, 1);
		assert_int_equal(v[i].created_avma,
				 MADE_TEXT + MADE_BIAS + 0x20);
		assert_int_equal(v[i].start_avma, MADE_TEXT + MADE_BIAS);
	}
	assert_int_equal(v[0].state, WP_GOROUTINE_WAITING);
	assert_string_equal(text(f, v[0].reason), "IO wait");
	assert_int_equal(v[0].nlabels, 0);
	assert_int_equal(v[1].state, WP_GOROUTINE_RUNNING);
	assert_int_equal(v[1].tid, 77);
	assert_int_equal(v[1].reason, 0);
	assert_int_equal(v[2].nlabels, 1);
	assert_string_equal(text(f, f->all.labels[v[2].first_label].key), "k");
	assert_string_equal(text(f, f->all.labels[v[2].first_label].value),
			    "v");
	assert_int_equal(f->all.nmoved + f->all.nunread, 0);
}

/* Each takes twice its size, and gives it back. */
static void more_than_the_budget_has_room_for_are_counted(void **state)
{
	enum { ROOM = 3 };
	struct fixture *f = *state;
	const uint64_t each = 2 * sizeof(struct wp_goroutine);

	read_all(f);
	assert_in_range(f->all.taken, ROOM * each, (ROOM + 1) * each);
	wp_goroutines_clear(&f->all);
	/* A quarter is theirs. */
	wp_budget_set(4 * 2 * each);
	for (int i = 0; i < 2; i++) {
		read_all(f);
		assert_int_equal(f->all.len, 2);
		assert_int_equal(f->all.v[0].id, 1);
		assert_int_equal(f->all.nunread, 1);
		wp_goroutines_clear(&f->all);
	}
	/* Of a list that is longer than its part only the begin is read. */
	wp_budget_set(16 * 8 * 2);
	read_all(f);
	assert_int_equal(f->all.nunread, MADE_GOROUTINES);
	wp_budget_set(WP_BUDGET_DEFAULT);
}

static void a_stack_that_is_scanned_is_read(void **state)
{
	struct fixture *f = *state;

	made_put(made_g(&f->made, 0, 144), 0, SCAN | WAITS, 4);
	read_all(f);
	assert_int_equal(f->nstacks, 2);
	assert_int_equal(f->all.v[0].state, WP_GOROUTINE_WAITING);
}

static void count_up(struct made_go *made)
{
	++*made_g(made, 0, SEQ);
}

static void a_goroutine_that_never_rests_has_no_stack(void **state)
{
	struct fixture *f = *state;

	f->made.before = count_up;
	read_all(f);
	assert_int_equal(f->all.len, 3);
	assert_int_equal(f->all.nmoved, 1);
	assert_int_equal(f->nstacks, 1);
	assert_int_equal(f->nwithout, 2);
}

static void count_up_once(struct made_go *made)
{
	/* After the structs, before the stacks: reads 1 and 2 are the list's,
	 * 3 is the structs'. */
	if (made->nreads == 4)
		++*made_g(made, 0, SEQ);
}

static void a_goroutine_that_moved_is_read_again(void **state)
{
	struct fixture *f = *state;

	f->made.before = count_up_once;
	read_all(f);
	assert_int_equal(f->all.len, 3);
	assert_int_equal(f->all.nmoved, 0);
	assert_int_equal(f->nstacks, 2);
}

static void a_walk_that_fails_is_made_again_and_then_kept(void **state)
{
	struct fixture *f = *state;

	f->is_never_whole = true;
	read_all(f);
	assert_int_equal(f->all.len, 3);
	assert_int_equal(f->nstacks, 8);
}

static void a_stack_that_is_being_moved_is_none(void **state)
{
	struct fixture *f = *state;

	made_put(made_g(&f->made, 0, 144), 0, COPYSTACK, 4);
	read_all(f);
	assert_int_equal(f->all.len, 3);
	assert_int_equal(f->nstacks, 1);
	assert_int_equal(f->all.nmoved, 1);
}

static void a_stack_pointer_outside_its_stack_is_not_followed(void **state)
{
	struct fixture *f = *state;

	made_put(made_g(&f->made, 0, 56), 0, made_avma(0), 8);
	read_all(f);
	assert_int_equal(f->all.len, 3);
	assert_int_equal(f->nstacks, 1);
}

static void a_huge_stack_is_cut_and_unreadable(void **state)
{
	struct fixture *f = *state;

	made_put(made_g(&f->made, 0, 8), 0, made_avma(UINT32_MAX / 8), 8);
	read_all(f);
	assert_int_equal(f->all.len, 3);
	/* 32 KiB of it are there. */
	assert_int_equal(f->longest, 32 << 10);
}

static void goroutines_that_cannot_be_read_are_counted(void **state)
{
	struct fixture *f = *state;

	f->made.before = NULL;
	made_put(f->made.memory, MADE_ALLGS + 8, 6, 8);
	/* A list of six whose last two lead nowhere is not taken for one. */
	made_put(f->made.memory, MADE_LIST + 32, 0x10000, 8);
	made_put(f->made.memory, MADE_LIST + 40, 0x10008, 8);
	assert_int_equal(open_only(f), -EAGAIN);
}

static void forget_a_g(struct made_go *made)
{
	made_put(made->memory, MADE_LIST, 0x10000, 8);
}

static void a_goroutine_that_is_gone_is_counted(void **state)
{
	const struct wp_goroutine_user user = { .walk = walk, .ctx = *state };
	struct fixture *f = *state;
	struct wp_goroutine_user own = user;
	struct wp_go_program *program;

	own.strings = &f->strings;
	assert_int_equal(made_open(&f->made, &program, NULL), 0);
	f->made.before = forget_a_g;
	assert_int_equal(wp_goroutines_read(program, &own, &f->all), 0);
	assert_int_equal(f->all.len, 2);
	assert_int_equal(f->all.nunread, 1);
	wp_go_program_free(program);
}

static void lists_that_are_none_are_refused(void **state)
{
	struct fixture *f = *state;

	/* Points to another than itself. */
	made_put(made_g(&f->made, 2, 72), 0, made_avma(0), 8);
	assert_int_equal(open_only(f), -EAGAIN);
	made_go_init(&f->made);
	/* Two with one id. */
	made_put(made_g(&f->made, 2, 152), 0, 1, 8);
	assert_int_equal(open_only(f), -EAGAIN);
	made_go_init(&f->made);
	/* The first does not begin in Go's code. */
	made_put(made_g(&f->made, 0, 296), 0, 1, 8);
	assert_int_equal(open_only(f), -EAGAIN);
	made_go_init(&f->made);
	/* One struct twice. */
	made_put(f->made.memory, MADE_LIST + 8, made_avma(MADE_G), 8);
	assert_int_equal(open_only(f), -EAGAIN);
	made_go_init(&f->made);
	assert_int_equal(open_only(f), 0);
}

static void versions_that_are_not_known_are_refused(void **state)
{
	struct fixture *f = *state;

	made_module(&f->made, "go1.17.8");
	assert_int_equal(open_only(f), -ENOTSUP);
	made_module(&f->made, "none at all");
	assert_int_equal(open_only(f), -ENOENT);
	made_module(&f->made, "go1.99999");
	assert_int_equal(open_only(f), -ENOENT);
	f->made.image.go_table.size = 0;
	assert_int_equal(open_only(f), -ENOENT);
}

static void every_version_has_a_layout_within_a_g(void **state)
{
	struct fixture *f = *state;

	/* The structs are 1.22's, which no other layout takes for its own, but
	 * for the one that is the same where it is checked. */
	for (unsigned int minor = 18; minor < 40; minor++) {
		char version[16];
		int rc;

		snprintf(version, sizeof(version), "go1.%u.1", minor);
		made_module(&f->made, version);
		rc = open_only(f);
		assert_true(rc == -EAGAIN || !rc);
		assert_true(minor != 22 || !rc);
	}
}

static void moduledata_that_lies_is_refused(void **state)
{
	struct fixture *f = *state;
	uint8_t *m = f->made.file + MADE_DATA_OFF;

	/* Ends before it begins. */
	made_put(m, 8 * 28, MADE_BSS + 0x2000, 8);
	assert_int_equal(open_only(f), -ENOENT);
	/* Everything there is; the list is in it all the same. */
	made_put(m, 8 * 28, MADE_BSS, 8);
	made_put(m, 8 * 29, UINT64_MAX - MADE_BIAS, 8);
	assert_true(open_only(f) <= 0);
	/* Nowhere. */
	made_put(m, 0, 1, 8);
	assert_int_equal(open_only(f), -ENOENT);
}

static void labels_that_lie_are_bounded(void **state)
{
	struct fixture *f = *state;
	uint8_t *l = f->made.memory + MADE_LABELS;

	/* A bucket that is its own next, full, with texts of all of memory. */
	memset(l + 0x100, 5, 8);
	for (size_t i = 0; i < 8; i++) {
		made_put(l, 0x108 + 16 * i, made_avma(0), 8);
		made_put(l, 0x110 + 16 * i, UINT64_MAX, 8);
	}
	made_put(f->made.memory, 0, 0x41, 8);
	made_put(l, 0x100 + 8 + 256, made_avma(MADE_LABELS + 0x100), 8);
	read_all(f);
	assert_int_equal(f->all.len, 3);
	assert_in_range(f->all.v[2].nlabels, 1, 64);
}

static void labels_without_a_key_are_bounded_too(void **state)
{
	struct fixture *f = *state;
	uint8_t *l = f->made.memory + MADE_LABELS;
	unsigned int nreads;

	read_all(f);
	nreads = f->made.nreads;
	wp_goroutines_clear(&f->all);
	memset(l + 0x100, 5, 8);
	memset(l + 0x108, 0, 256);
	made_put(l, 0x100 + 8 + 256, made_avma(MADE_LABELS + 0x100), 8);
	read_all(f);
	assert_int_equal(f->all.v[2].nlabels, 0);
	/* A key and a value of each of 64, and 16 buckets. */
	assert_in_range(f->made.nreads, nreads, nreads + 2 * 64 + 16);
}

static void labels_beyond_the_budget_are_dropped_by_name(void **state)
{
	struct fixture *f = *state;
	uint32_t len;

	wp_budget_set(1 << 20);
	for (int i = 0; i < 5000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "a string of before %d", i);
		wp_intern_add_str(&f->strings, name);
	}
	wp_intern_add_str(&f->strings, "k");
	len = f->strings.len;
	read_all(f);
	wp_budget_set(WP_BUDGET_DEFAULT);
	assert_int_equal(f->all.v[2].nlabels, 1);
	/* What is there costs nothing. */
	assert_string_equal(text(f, f->all.labels[f->all.v[2].first_label].key),
			    "k");
	assert_string_equal(
		text(f, f->all.labels[f->all.v[2].first_label].value),
		"[dropped: memory]");
	assert_in_range(f->strings.len, len, len + 8);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(all_that_live_are_read),
		TEST(more_than_the_budget_has_room_for_are_counted),
		TEST(a_stack_that_is_scanned_is_read),
		TEST(a_goroutine_that_never_rests_has_no_stack),
		TEST(a_goroutine_that_moved_is_read_again),
		TEST(a_walk_that_fails_is_made_again_and_then_kept),
		TEST(a_stack_that_is_being_moved_is_none),
		TEST(a_stack_pointer_outside_its_stack_is_not_followed),
		TEST(a_huge_stack_is_cut_and_unreadable),
		TEST(goroutines_that_cannot_be_read_are_counted),
		TEST(a_goroutine_that_is_gone_is_counted),
		TEST(lists_that_are_none_are_refused),
		TEST(versions_that_are_not_known_are_refused),
		TEST(every_version_has_a_layout_within_a_g),
		TEST(moduledata_that_lies_is_refused),
		TEST(labels_that_lie_are_bounded),
		TEST(labels_without_a_key_are_bounded_too),
		TEST(labels_beyond_the_budget_are_dropped_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
