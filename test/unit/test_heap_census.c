/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  A target's heap census, from two counts that the test makes: what the
 * profile has of each class of sizes, and what it says of the counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/sample/heap_census.h"
#include "../../src/sample/heap_state.h"
#include "few_allocations.h"
#include "one_target.h"
#include "wallprof/glibc_heap.h"

#define OLD "as many as at first"
#define MORE "more than at first"

/* What the library would count. */
static struct {
	/* Of the first count, and the second. */
	struct {
		int rc;
		/* How often an arena changes before that. */
		unsigned int nbad;
		struct wp_census census;
	} takes[2];
	size_t ntakes;
	/* The memory of the last. */
	struct wp_census_area data[8], anon[8], brk;
	size_t ndata, nanon;
	/* How many bytes were read of where there are some, and of where none are. */
	size_t nread, nread_of_none;
	char read[4];
} fakes;

int wp_census_take(struct wp_census *ret, const struct wp_census_memory *memory)
{
	size_t i = fakes.ntakes;
	char none;

	assert_true(i < 2);
	if (fakes.takes[i].nbad) {
		fakes.takes[i].nbad--;
		return -EBADMSG;
	}
	fakes.ntakes += fakes.takes[i].rc != -EBADMSG;
	if (memory->ndata <= 8 && memory->nanon <= 8) {
		for (size_t k = 0; k < memory->ndata; k++)
			fakes.data[k] = memory->data[k];
		for (size_t k = 0; k < memory->nanon; k++)
			fakes.anon[k] = memory->anon[k];
	}
	fakes.ndata = memory->ndata;
	fakes.nanon = memory->nanon;
	fakes.brk = memory->brk;
	fakes.nread = memory->read(memory->ctx, (uintptr_t)OLD, fakes.read,
				   sizeof(fakes.read));
	fakes.nread_of_none = memory->read(memory->ctx, 16, &none, 1);
	*ret = fakes.takes[i].census;
	return fakes.takes[i].rc;
}

uint64_t wp_census_class_max(size_t class)
{
	return 16 * class;
}

static int setup(void **state)
{
	(void)state;
	memset(&fakes, 0, sizeof(fakes));
	fake_target_open(&fake);
	fake_target_add_thread(&fake, 7, "first");
	options = fake_target_options();
	options.wall = false;
	options.heap = options.heap_census = true;
	for (int i = 0; i < 2; i++)
		fakes.takes[i].census.knows_mapped = true;
	return 0;
}

/* In count I, CLASS has CHUNKS of BYTES in all. */
static void put(size_t i, size_t class, uint64_t chunks, uint64_t bytes)
{
	fakes.takes[i].census.heap[class] = (struct wp_census_count){ chunks,
								      bytes };
}

static void run(void)
{
	start_target();
	tick();
	fake_now_ns += TICK;
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
	wp_profile_add_up(&fake.profile);
}

static const char *frame_text(const struct wp_profile_stack *s, uint32_t i)
{
	return wp_profile_str(
		&fake.profile,
		(uint32_t)wp_profile_frame(&fake.profile, s, i)->pc_avma);
}

/* The sample of PART of what the census calls NAME; "": of all of it.  None has no
 * chunks and no bytes. */
static struct wp_census_count sample(const char *name, const char *part)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_HEAP];
	struct wp_census_count ret = { 0 };

	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];
		const struct wp_profile_stack *stack_of =
			&fake.profile.stacks[s->key.stack];

		if (stack_of->depth != (*part ? 2 : 1) ||
		    strcmp(frame_text(stack_of, stack_of->depth - 1), name) ||
		    (*part && strcmp(frame_text(stack_of, 0), part)))
			continue;
		/* What is allocated is what is in use. */
		assert_int_equal(s->count, s->cpu_count);
		assert_int_equal(s->wall_ns, s->cpu_ns);
		ret.chunks += s->cpu_count;
		ret.bytes += s->cpu_ns;
	}
	return ret;
}

#define assert_sample(name, part, n, size)                                     \
	do {                                                                   \
		struct wp_census_count got = sample(name, part);               \
		assert_int_equal(got.chunks, n);                               \
		assert_int_equal(got.bytes, size);                             \
	} while (0)

static const char *source(void)
{
	return wp_profile_str(&fake.profile,
			      fake.profile.meta.source[WP_PROFILE_HEAP]);
}

static void each_class_is_what_it_was_and_what_it_grew(void **state)
{
	const struct wp_profile_sums *sums;

	(void)state;
	/* Grown, shrunk, new, gone, and as before. */
	put(0, 2, 10, 320);
	put(1, 2, 14, 448);
	put(0, 3, 5, 240);
	put(1, 3, 3, 144);
	put(1, 4, 7, 448);
	put(0, 5, 2, 160);
	put(0, 6, 1, 96);
	put(1, 6, 1, 96);
	/* The same class of mapped ones is another. */
	fakes.takes[1].census.mapped[2] = (struct wp_census_count){ 1, 32 };
	run();
	assert_sample("malloc of 0 to 24", OLD, 10, 320);
	assert_sample("malloc of 0 to 24", MORE, 4, 128);
	assert_sample("malloc of 25 to 40", OLD, 3, 144);
	assert_sample("malloc of 25 to 40", MORE, 0, 0);
	assert_sample("malloc of 41 to 56", OLD, 0, 0);
	assert_sample("malloc of 41 to 56", MORE, 7, 448);
	assert_sample("malloc of 73 to 88", OLD, 1, 96);
	assert_sample("mapped for itself: malloc of 0 to 16", MORE, 1, 32);
	sums = &fake.profile.sums[WP_PROFILE_HEAP];
	assert_int_equal(sums->cpu_count, 10 + 4 + 3 + 7 + 1 + 1);
	assert_int_equal(sums->cpu_ns, 320 + 128 + 144 + 448 + 96 + 32);
	assert_int_equal(sums->threads, 1);
	assert_true(fake.profile.meta.is_census);
	assert_int_equal(fake.profile.meta.heap_period, 1);
	assert_int_equal(fake.profile.meta.leaks_ns, 0);
	assert_int_equal(fake.profile.counters.heap_ended, 0);
}

/* Where a class has many sizes, chunks and bytes need not grow together: no chunk and
 * no byte is left out or counted twice. */
static void chunks_and_bytes_of_a_class_grow_apart(void **state)
{
	(void)state;
	/* More, but smaller. */
	put(0, 70, 2, 2200);
	put(1, 70, 3, 2100);
	/* As many, but larger. */
	put(0, 71, 3, 3000);
	put(1, 71, 3, 3300);
	/* Fewer, but larger. */
	put(0, 72, 3, 3000);
	put(1, 72, 2, 3100);
	run();
	assert_sample("malloc of 1097 to 1112", OLD, 3, 2100);
	assert_sample("malloc of 1097 to 1112", MORE, 0, 0);
	assert_sample("malloc of 1113 to 1128", OLD, 3, 3000);
	assert_sample("malloc of 1113 to 1128", MORE, 0, 300);
	assert_sample("malloc of 1129 to 1144", OLD, 2, 3000);
	assert_sample("malloc of 1129 to 1144", MORE, 0, 100);
}

static void leaks_are_the_growth_alone(void **state)
{
	(void)state;
	options.heap_leaks = true;
	put(0, 2, 10, 320);
	put(1, 2, 14, 448);
	put(0, 3, 5, 240);
	put(1, 3, 3, 144);
	run();
	assert_sample("malloc of 0 to 24", "", 4, 128);
	assert_int_equal(fake.profile.sums[WP_PROFILE_HEAP].cpu_ns, 128);
	assert_int_equal(fake.profile.meta.leaks_ns, 2 * TICK);
}

static void of_a_process_that_ends_there_is_the_first_count(void **state)
{
	(void)state;
	options.heap_leaks = true;
	put(0, 2, 10, 320);
	fakes.takes[1].rc = -ESRCH;
	start_target();
	tick();
	fake_target_end_thread(&fake, 7);
	fake_target_stat(&fake, 0, 'Z');
	fake_now_ns += TICK;
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
	/* It has not grown, and for how long is not said. */
	assert_int_equal(fake.profile.sets[WP_PROFILE_HEAP].nsamples, 0);
	assert_int_equal(fake.profile.meta.leaks_ns, 0);
	assert_int_equal(fake.profile.counters.heap_ended, 1);
	assert_non_null(strstr(source(), "; then the process had ended"));
}

static void a_second_count_that_fails_is_said(void **state)
{
	(void)state;
	put(0, 2, 10, 320);
	fakes.takes[1].rc = -EBADMSG;
	run();
	assert_sample("malloc of 0 to 24", OLD, 10, 320);
	assert_non_null(strstr(source(), "; then its arenas changed whenever "
					 "they were read"));
	assert_int_equal(fake.profile.counters.heap_ended, 1);
}

static void an_arena_that_changes_is_read_again(void **state)
{
	(void)state;
	put(0, 2, 10, 320);
	put(1, 2, 30, 960);
	fakes.takes[0].nbad = 10;
	fakes.takes[1].nbad = 3;
	run();
	assert_sample("malloc of 0 to 24", OLD, 10, 320);
	assert_sample("malloc of 0 to 24", MORE, 20, 640);
	assert_int_equal(fake.profile.counters.heap_ended, 0);
}

static void another_programs_heap_is_not_compared(void **state)
{
	(void)state;
	put(0, 2, 10, 320);
	put(1, 2, 99, 9999);
	start_target();
	tick();
	fake.target->space.nexecs++;
	fake_now_ns += TICK;
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
	assert_sample("malloc of 0 to 24", OLD, 10, 320);
	assert_sample("malloc of 0 to 24", MORE, 0, 0);
	assert_non_null(strstr(source(), "had executed another program"));
	assert_int_equal(fake.profile.counters.heap_ended, 1);
}

static void what_is_not_read_is_said(void **state)
{
	const struct {
		uint64_t system, walked, torn;
		bool is_cut;
		const char *said;
		uint32_t lacks;
	} cases[] = {
		{ 1000, 1000, 0, false, NULL, 0 },
		{ 1000, 900, 0, false, "(100 of them not read)", 0 },
		{ 1000, 899, 0, false, "(101 of them not read)", 1 },
		{ 1000, 0, 0, true,
		  "(1000 of them not read) (not whole: it took over 10 s)", 1 },
		{ 1000, 1000, 0, true, "(not whole: it took over 10 s)", 1 },
		{ 1000, 1000, 100, false, "(100 of them no chunks: ", 0 },
		{ 1000, 1000, 101, false, "(101 of them no chunks: ", 1 },
		/* The heap has shrunk meanwhile. */
		{ 1000, 1200, 0, false, NULL, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct wp_census *last = &fakes.takes[1].census;
		const char *second;

		last->system_bytes = cases[i].system;
		last->walked_bytes = cases[i].walked;
		last->torn_bytes = cases[i].torn;
		last->is_cut = cases[i].is_cut;
		run();
		second = strstr(source(), "; then ");
		if (cases[i].said)
			assert_non_null(strstr(second, cases[i].said));
		else
			assert_null(strstr(second, "of them"));
		assert_int_equal(fake.profile.counters.heap_unread,
				 cases[i].lacks);
		assert_int_equal(fake.profile.counters.heap_ended, 0);
		teardown(state);
		setup(state);
	}
}

static void what_was_not_read_at_first_has_not_grown(void **state)
{
	(void)state;
	put(0, 2, 10, 320);
	put(1, 2, 30, 960);
	fakes.takes[0].census.is_cut = true;
	run();
	assert_sample("malloc of 0 to 24", OLD, 30, 960);
	assert_sample("malloc of 0 to 24", MORE, 0, 0);
	assert_non_null(strstr(source(), "; what there is more than at first "
					 "is not known, as "));
	assert_int_equal(fake.profile.counters.heap_unread, 1);
	assert_int_equal(fake.profile.counters.heap_ended, 0);
}

static void classes_of_mapped_chunks_follow_each_other(void **state)
{
	(void)state;
	/* Two words of each are malloc's, of others one. */
	fakes.takes[1].census.mapped[8] = (struct wp_census_count){ 1, 128 };
	fakes.takes[1].census.mapped[9] = (struct wp_census_count){ 1, 144 };
	fakes.takes[1].census.heap[9] = (struct wp_census_count){ 1, 144 };
	run();
	assert_sample("mapped for itself: malloc of 97 to 112", MORE, 1, 128);
	assert_sample("mapped for itself: malloc of 113 to 128", MORE, 1, 144);
	assert_sample("malloc of 121 to 136", MORE, 1, 144);
}

static void mapped_chunks_are_compared_with_mallocs_own_account(void **state)
{
	(void)state;
	fakes.takes[0].census.knows_mapped = false;
	fakes.takes[0].census.system_bytes = 1000;
	fakes.takes[0].census.walked_bytes = 1000;
	fakes.takes[0].census.mapped_bytes = 77;
	fakes.takes[0].census.in_mapped = (struct wp_census_count){ 1, 500 };
	fakes.takes[1].census.mapped_bytes = 8192;
	fakes.takes[1].census.in_mapped = (struct wp_census_count){ 1, 4096 };
	run();
	assert_non_null(strstr(source(), "account is not found); then "));
	assert_non_null(strstr(source(), "(malloc says it has mapped 8192)"));
	/* What malloc has in all is by its account, if that is found. */
	assert_non_null(strstr(source(), " of 1500 that malloc has of the"));
	assert_non_null(strstr(source(), " of 8192 that malloc has of the"));
}

/* RC of the first count is, to who records, WANT, and SAID. */
static void assert_refused(int rc, int want, const char *said)
{
	struct wp_err err = WP_ERR_INIT;

	fakes.takes[0].rc = rc;
	assert_int_equal(
		wp_sampler_new(&fake.sampler, &options, &fake.tracer, &err), 0);
	assert_int_equal(wp_sampler_add_target(fake.sampler, &fake.process,
					       &fake.profile, &fake.target,
					       &err),
			 want);
	assert_non_null(strstr(err.msg, said));
}

static void another_malloc_is_named(void **state)
{
	(void)state;
#ifdef CAN_FAIL
	/* This test has its own, which takes the place of the C library's. */
	assert_refused(-ENOENT, -ENOTSUP,
		       "this program's malloc is that of test_heap_census ");
#else
	/* Or the sanitizer does. */
	assert_refused(-ENOENT, -ENOTSUP, "this program's malloc is that of ");
#endif
}

static void a_program_without_malloc_is_said(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/maps", fake.dir);
	unlink(path);
	fake_target_write(&fake, 0, "maps",
			  "10000-20000 rw-p 00000000 00:00 0 \n");
	assert_refused(-ENOENT, -ENOTSUP, "no malloc is found");
}

static void an_unknown_layout_is_refused(void **state)
{
	(void)state;
	assert_refused(-EBADMSG, -ENOTSUP, "not laid out as those of glibc");
}

static void memory_that_may_not_be_read_is_an_error(void **state)
{
	(void)state;
	assert_refused(-EPERM, -EPERM, "no census of the heap: ");
}

static void no_memory_at_the_end_is_an_error(void **state)
{
	(void)state;
	fakes.takes[1].rc = -ENOMEM;
	start_target();
	tick();
	assert_int_equal(wp_sampler_finish(fake.sampler), -ENOMEM);
}

/* Whichever allocation fails: the census is whole, or there was no memory. */
#ifdef CAN_FAIL
static void without_memory_it_is_whole_or_an_error(void **state)
{
	long failed = 0;
	int rc;

	do {
		teardown(state);
		setup(state);
		put(0, 2, 10, 320);
		put(1, 2, 14, 448);
		start_target();
		allocations_left = failed;
		rc = wp_heap_census_end(fake.target->heap_samples->census,
					fake.target);
		allocations_left = -1;
		if (rc) {
			assert_int_equal(rc, -ENOMEM);
			failed++;
		}
	} while (rc && failed < 1000);
	assert_true(failed > 0);
	assert_int_equal(rc, 0);
	assert_sample("malloc of 0 to 24", OLD, 10, 320);
	assert_sample("malloc of 0 to 24", MORE, 4, 128);
	assert_non_null(strstr(source(), "a census of glibc's malloc"));
}
#endif

static void memory_is_the_processs(void **state)
{
	(void)state;
	run();
	assert_int_equal(fakes.nread, sizeof(fakes.read));
	assert_memory_equal(fakes.read, OLD, sizeof(fakes.read));
	assert_int_equal(fakes.nread_of_none, 0);
}

#define assert_area(area, start, end)                                          \
	do {                                                                   \
		assert_int_equal((area).start_avma, start);                    \
		assert_int_equal((area).end_avma, end);                        \
	} while (0)

static void arenas_are_sought_in_data_and_in_memory_of_no_file(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/maps", fake.dir);
	unlink(path);
	fake_target_write(
		&fake, 0, "maps",
		"10000-11000 r--p 00000000 08:01 5 /none/program\n"
		"11000-12000 r-xp 00001000 08:01 5 /none/program\n"
		"12000-13000 r--p 00002000 08:01 5 /none/program\n"
		"13000-14000 rw-p 00003000 08:01 5 /none/program\n"
		/* Zeroed, as its data's end is. */
		"14000-15000 rw-p 00000000 00:00 0 \n"
		"20000-30000 rw-p 00000000 00:00 0 [heap]\n"
		"30000-38000 rw-p 00000000 00:00 0 [heap]\n"
		"40000-41000 r-xp 00000000 08:01 6 /none/lib.so\n"
		/* Of another file than the code before. */
		"41000-42000 rw-p 00000000 08:01 7 /none/data\n"
		"43000-44000 rw-p 00001000 08:01 6 /none/lib.so\n"
		"50000-51000 rw-p 00000000 00:00 0 [anon:glibc: malloc]\n"
		"51000-52000 ---p 00000000 00:00 0 \n"
		"52000-53000 r--p 00000000 00:00 0 \n"
		"60000-70000 rw-p 00000000 00:00 0 [stack]\n");
	run();
	assert_int_equal(fakes.ntakes, 2);
	assert_int_equal(fakes.ndata, 2);
	assert_area(fakes.data[0], 0x13000, 0x15000);
	assert_area(fakes.data[1], 0x43000, 0x44000);
	assert_int_equal(fakes.nanon, 4);
	assert_area(fakes.anon[0], 0x14000, 0x15000);
	assert_area(fakes.anon[1], 0x20000, 0x30000);
	assert_area(fakes.anon[2], 0x30000, 0x38000);
	assert_area(fakes.anon[3], 0x50000, 0x51000);
	assert_area(fakes.brk, 0x20000, 0x38000);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_class_is_what_it_was_and_what_it_grew),
		TEST(chunks_and_bytes_of_a_class_grow_apart),
		TEST(leaks_are_the_growth_alone),
		TEST(of_a_process_that_ends_there_is_the_first_count),
		TEST(a_second_count_that_fails_is_said),
		TEST(an_arena_that_changes_is_read_again),
		TEST(another_programs_heap_is_not_compared),
		TEST(what_is_not_read_is_said),
		TEST(what_was_not_read_at_first_has_not_grown),
		TEST(classes_of_mapped_chunks_follow_each_other),
		TEST(mapped_chunks_are_compared_with_mallocs_own_account),
		TEST(another_malloc_is_named),
		TEST(a_program_without_malloc_is_said),
		TEST(an_unknown_layout_is_refused),
		TEST(memory_that_may_not_be_read_is_an_error),
		TEST(no_memory_at_the_end_is_an_error),
#ifdef CAN_FAIL
		TEST(without_memory_it_is_whole_or_an_error),
#endif
		TEST(memory_is_the_processs),
		TEST(arenas_are_sought_in_data_and_in_memory_of_no_file),
	};

	return cmocka_run_group_tests_name("heap_census", tests, NULL, NULL);
}
