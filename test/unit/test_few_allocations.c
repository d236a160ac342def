/* SPDX-License-Identifier: Apache-2.0 */
/* A profile and a dump are made and written whole, or it is said that there was
 * no memory, whichever allocation fails.
 *
 * Layer: output.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump_maker.h"
#include "few_allocations.h"
#include "profile_maker.h"
#include "wallprof/output.h"

#ifdef CAN_FAIL

enum { TEXT_MAX = 1 << 16, MANY = 100000 };

/* Of a writer: what it wrote into TEXT[0..*LEN), or the error that it told. */
static int run(int (*write)(const void *what, FILE *out), const void *what,
	       long allocations, char *text, size_t *ret_len)
{
	FILE *out = fmemopen(text, TEXT_MAX, "w");
	int rc;

	assert_non_null(out);
	setvbuf(out, NULL, _IONBF, 0);
	allocations_left = allocations;
	rc = write(what, out);
	allocations_left = -1;
	*ret_len = (size_t)ftell(out);
	fclose(out);
	return rc;
}

static void assert_whole_or_error(int (*write)(const void *what, FILE *out),
				  const void *what)
{
	static char want[TEXT_MAX], got[TEXT_MAX];
	size_t want_len, len;
	long before, failed = 0, in_a_row = 0;

	assert_int_equal(run(write, what, -1, want, &want_len), 0);
	before = live;
	/* A sort takes less memory where there is none: it still succeeds. */
	for (long n = 0; in_a_row < 10; n++) {
		int rc = run(write, what, n, got, &len);

		assert_int_equal(live, before);
		if (rc) {
			assert_int_equal(rc, -ENOMEM);
			failed++;
		} else {
			assert_int_equal(len, want_len);
			assert_memory_equal(got, want, want_len);
		}
		in_a_row = rc ? 0 : in_a_row + 1;
		assert_true(n < MANY);
	}
	assert_true(failed > 0);
}

static int write_pprof(const void *what, FILE *out)
{
	return wp_write_pprof(what, WP_PROFILE_WALL, out);
}

static int write_folded(const void *what, FILE *out)
{
	return wp_write_folded(what, WP_PROFILE_WALL, out);
}

static int write_text(const void *what, FILE *out)
{
	const struct wp_report_options options = { .width = 80 };

	return wp_write_text(what, WP_PROFILE_WALL, &options, out);
}

static int write_dump(const void *what, FILE *out)
{
	const struct wp_write_dump_options options = { .peers = true };

	return wp_write_dump_text(what, &options, out);
}

static int write_groups(const void *what, FILE *out)
{
	const struct wp_write_dump_options options = { .group = true };

	return wp_write_dump_text(what, &options, out);
}

static int write_json(const void *what, FILE *out)
{
	return wp_write_dump_json(what, out);
}

static void a_profile_is_written_whole_or_not(void **state)
{
	struct wp_profile p;

	(void)state;
	make_server(&p);
	assert_whole_or_error(write_pprof, &p);
	assert_whole_or_error(write_folded, &p);
	assert_whole_or_error(write_text, &p);
	wp_profile_clear(&p);
}

static void a_dump_is_written_whole_or_not(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	make_deadlock(&d);
	assert_whole_or_error(write_dump, &d);
	assert_whole_or_error(write_groups, &d);
	assert_whole_or_error(write_json, &d);
	wp_dump_clear(&d);
}

/* Thread I waits at a stack of its own. */
static int add_to_profile(struct wp_profile *p, uint32_t i)
{
	struct wp_profile_thread thread = { .tid = (int32_t)i + 1 };
	struct wp_profile_mapping mapping = {
		.start_avma = 0x1000 * (i + 1),
		.end_avma = 0x1000 * (i + 2),
	};
	struct wp_frame frames[2] = {
		{ .pc_avma = mapping.start_avma + 1 },
		{ .pc_avma = 0x10 + i, .flags = WP_FRAME_RETURN },
	};
	struct wp_stack stack = { .frames = frames,
				  .depth = 2,
				  .end = WP_END_NO_INFO };
	struct wp_sample_key key = { .state = WP_STATE_WAITING };
	char name[32];

	snprintf(name, sizeof(name), "a name of thread %u", i);
	thread.name = wp_intern_add_str(&p->strings, name);
	if (thread.name == UINT32_MAX)
		return -ENOMEM;
	mapping.path = thread.name;
	frames[0].mapping = wp_profile_add_mapping(p, &mapping);
	if (frames[0].mapping == UINT32_MAX)
		return -ENOMEM;
	key.thread = i % 2 ? wp_profile_add_thread(p, &thread) :
			     wp_profile_share_thread(p, &thread, name);
	if (key.thread == UINT32_MAX)
		return -ENOMEM;
	key.stack = wp_profile_add_stack(p, &stack, frames[0].mapping);
	if (key.stack == UINT32_MAX)
		return -ENOMEM;
	return wp_profile_add_sample(p, WP_PROFILE_WALL, &key, 1, 1000);
}

static int add_line(struct wp_profile *p, uint32_t loc)
{
	struct wp_profile_function function = { .name = loc, .file = loc };
	struct wp_profile_line line = { .function = wp_profile_add_function(
						p, &function) };

	if (line.function == UINT32_MAX)
		return -ENOMEM;
	return wp_profile_add_line(p, loc, line);
}

static int make_profile(struct wp_profile *p)
{
	int rc = wp_profile_init(p);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < 40 && !rc; i++)
		rc = add_to_profile(p, i);
	if (!rc)
		rc = wp_profile_locate(p);
	for (uint32_t loc = 0; loc < p->nlocations && !rc; loc++)
		if (!p->locations[loc].text)
			rc = add_line(p, loc);
	return rc;
}

static void a_profile_is_made_whole_or_not(void **state)
{
	long before = live;
	int rc = -1;

	(void)state;
	for (long n = 0; rc; n++) {
		struct wp_profile p = { 0 };

		allocations_left = n;
		rc = make_profile(&p);
		allocations_left = -1;
		assert_true(!rc || rc == -ENOMEM);
		if (!rc) {
			assert_int_equal(p.nthreads, 40);
			assert_int_equal(p.nstacks, 40);
		}
		wp_profile_clear(&p);
		assert_int_equal(live, before);
		assert_true(n < MANY);
	}
}

static int make_dump(struct wp_dump *d)
{
	for (int32_t i = 0; i < 40; i++) {
		struct wp_dump_process *process = wp_dump_add_process(d);
		struct wp_dump_thread *thread = wp_dump_add_thread(d);
		struct wp_dump_frame *frame = wp_dump_add_frame(d);
		struct wp_edge *edge = wp_dump_add_edge(d);

		if (!process || !thread || !frame || !edge)
			return -ENOMEM;
	}
	return 0;
}

static void a_dump_is_made_whole_or_not(void **state)
{
	long before = live;
	int rc = -1;

	(void)state;
	for (long n = 0; rc; n++) {
		struct wp_dump d = WP_DUMP_INIT;

		allocations_left = n;
		rc = make_dump(&d);
		allocations_left = -1;
		if (!rc)
			assert_int_equal(d.nthreads, 40);
		wp_dump_clear(&d);
		assert_int_equal(live, before);
		assert_true(n < MANY);
	}
}
#endif

int main(void)
{
#ifdef CAN_FAIL
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_profile_is_made_whole_or_not),
		cmocka_unit_test(a_profile_is_written_whole_or_not),
		cmocka_unit_test(a_dump_is_made_whole_or_not),
		cmocka_unit_test(a_dump_is_written_whole_or_not),
	};

	return cmocka_run_group_tests_name("few_allocations", tests, NULL,
					   NULL);
#else
	return 0;
#endif
}
