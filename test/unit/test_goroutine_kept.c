/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  goroutine_kept.h, goroutine_cpu.c: which entry of the profile a
 * goroutine, a thread and a CPU sample have, and why goroutines are not recorded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/sample/goroutine_kept.h"
#include "few_allocations.h"
#include "one_target.h"

#include "go_target_maker.h"

enum {
	TID = 77,
	LABELS = 344,
	/* Of a thread's struct: the goroutine that it runs. */
	CURG = 192,
/* The register that holds the current goroutine. */
#if defined(__x86_64__)
	G_REG = 14,
#else
	G_REG = 28,
#endif
};

static struct wp_goroutine_times *times;
static struct wp_thread *t;

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, TID, "worker");
	options = fake_target_options();
	options.goroutines = true;
	made_go_init(&made);
	made_goexit();
	return 0;
}

static void open_goroutines(void)
{
	made_target_update();
	fake.sampler->tick_ns = fake_now_ns;
	assert_int_equal(wp_goroutine_kept_open(fake.target), 0);
	times = fake.target->goroutines;
}

/* The target runs the made program from now on. */
static void begin(void)
{
	start_target();
	t = wp_threads_find_or_add(fake.target, TID);
	assert_non_null(t);
	made_target_show();
	fake.target->go_is_none = false;
	open_goroutines();
}

static void start(void)
{
	begin();
	assert_non_null(times);
}

static void look(void)
{
	made_target_update();
	fake_now_ns += TICK;
	fake.sampler->tick_ns = fake.target->last_tick_ns = fake_now_ns;
	assert_int_equal(wp_goroutine_times_tick(fake.target), 0);
}

static const char *string(uint32_t id)
{
	return wp_profile_str(&fake.profile, id);
}

/* The entry of the made program's goroutine I, by the last look. */
static const struct wp_profile_thread *entry_of(size_t i)
{
	return &fake.profile.threads[times->slots[i].entry];
}

static const char *name_of(size_t i)
{
	return string(entry_of(i)->name);
}

static void those_with_the_same_labels_share_an_entry(void **state)
{
	(void)state;
	start();
	look();
	assert_int_equal(times->slots[0].entry, times->slots[1].entry);
	assert_int_equal(entry_of(0)->part, WP_GOROUTINE_OWN);
	assert_int_equal(entry_of(0)->nlabels, 0);
	assert_int_equal(entry_of(0)->nmore, 1);
	assert_int_equal(entry_of(0)->goroutine, 0);
	assert_int_equal(entry_of(2)->nlabels, 1);
	assert_int_equal(entry_of(2)->nmore, 0);
	assert_string_equal(
		string(fake.profile.labels[entry_of(2)->first_label].key), "k");
	assert_string_equal(
		string(fake.profile.labels[entry_of(2)->first_label].value),
		"v");
	/* They are counted once. */
	look();
	assert_int_equal(entry_of(0)->nmore, 1);
	assert_true(fake.profile.meta.is_of_goroutines);
	assert_false(fake.profile.meta.has_goroutine_ids);
}

static void another_label_is_another_entry(void **state)
{
	uint32_t before;

	(void)state;
	start();
	look();
	before = times->slots[2].entry;
	made_put(made_g(&made, 2, LABELS), 0, 0, 8);
	++*made_g(&made, 2, 191);
	look();
	assert_int_equal(times->slots[2].entry, times->slots[0].entry);
	/* It is no goroutine more. */
	assert_int_equal(entry_of(0)->nmore, 1);
	made_put(made_g(&made, 2, LABELS), 0, made_avma(MADE_LABELS), 8);
	++*made_g(&made, 2, 191);
	look();
	assert_int_equal(times->slots[2].entry, before);
}

static void with_ids_each_has_its_own(void **state)
{
	(void)state;
	options.goroutine_ids = true;
	start();
	look();
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(entry_of(i)->goroutine, i + 1);
		assert_string_equal(name_of(i), "main.main");
		assert_int_equal(entry_of(i)->nlabels, i == 2);
	}
	assert_true(fake.profile.meta.has_goroutine_ids);
}

static void one_of_no_function_is_a_goroutine(void **state)
{
	(void)state;
	options.goroutine_ids = true;
	/* Where it began is nowhere in the program. */
	start();
	made_put(made_g(&made, 0, 296), 0, 0x1234, 8);
	look();
	assert_string_equal(name_of(0), "goroutine");
}

/* A timeline is that of one goroutine, whatever labels it gets. */
static void in_a_timeline_labels_are_part_of_the_name(void **state)
{
	uint32_t before;

	(void)state;
	options.note_holders = true;
	start();
	look();
	assert_string_equal(name_of(0), "main.main");
	assert_string_equal(name_of(2), "main.main k=v");
	assert_int_equal(entry_of(2)->nlabels, 0);
	before = times->slots[2].entry;
	made_put(made_g(&made, 2, LABELS), 0, 0, 8);
	++*made_g(&made, 2, 191);
	look();
	assert_int_equal(times->slots[2].entry, before);
}

static void past_the_limit_they_share(void **state)
{
	size_t nown = 0;

	(void)state;
	options.goroutine_ids = true;
	options.own_threads = 2;
	start();
	look();
	for (size_t i = 0; i < 3; i++)
		nown += entry_of(i)->goroutine != 0;
	assert_int_equal(nown, 2);
	/* Those that have one keep it. */
	look();
	for (size_t i = 0; i < 3; i++)
		nown -= entry_of(i)->goroutine != 0;
	assert_int_equal(nown, 0);
}

/* Of which those that wait are of no interest. */
static void those_of_the_runtime_are_told_apart(void **state)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_WALL];

	(void)state;
	for (size_t i = 0; i < 2; i++)
		made_put(made_g(&made, i, 296), 0, MADE_GOEXIT, 8);
	start();
	look();
	assert_int_equal(set->nsamples, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct wp_sample_key *key = &set->samples[i].key;
		enum wp_goroutine_part part =
			fake.profile.threads[key->thread].part;

		if (key->state == WP_STATE_RUNNING)
			assert_int_equal(part, WP_GOROUTINE_RUNTIME);
		else
			assert_true(part == WP_GOROUTINE_RUNTIME_IDLE ||
				    part == WP_GOROUTINE_OWN);
	}
	assert_int_equal(
		fake.profile.threads[wp_goroutine_kept_idle(times)].nmore, 1);
}

static void samples_of_its_entries_are_its_own(void **state)
{
	struct wp_profile_sample s = { .count = 1 };

	(void)state;
	start();
	s.key.thread = wp_goroutine_kept_scheduler(times);
	assert_true(wp_goroutine_kept_owns(times, &s));
	assert_int_equal(fake.profile.threads[s.key.thread].part,
			 WP_GOROUTINE_SCHEDULER);
	/* Of another Go program. */
	fake.profile.threads[s.key.thread].process++;
	assert_false(wp_goroutine_kept_owns(times, &s));
	s.key.thread = wp_goroutine_kept_unlabelled(times);
	assert_true(wp_goroutine_kept_owns(times, &s));
	s.key.thread = t->index;
	assert_false(wp_goroutine_kept_owns(times, &s));
}

static void goroutines_that_are_not_asked_for_are_not_sought(void **state)
{
	(void)state;
	options.goroutines = false;
	begin();
	assert_null(times);
	assert_false(fake.profile.meta.is_of_goroutines);
}

/* Until it executes another program. */
static void a_program_that_is_not_gos_is_not_asked_again(void **state)
{
	size_t size = made.image.go_table.size;

	(void)state;
	made.image.go_table.size = 0;
	begin();
	assert_null(times);
	assert_true(fake.target->go_is_none);
	assert_int_equal(fake.profile.meta.source[WP_PROFILE_WALL], 0);
	made.image.go_table.size = size;
	open_goroutines();
	assert_null(times);
	fake.target->space.nexecs++;
	open_goroutines();
	assert_non_null(times);
	/* Once found, they stay. */
	open_goroutines();
	assert_ptr_equal(fake.target->goroutines, times);
}

/* A library of Go's in another program: that has threads beside them. */
static void a_library_of_go_is_no_go_program(void **state)
{
	(void)state;
	options.goroutines = false;
	begin();
	made_library();
	fake.sampler->options.goroutines = true;
	open_goroutines();
	assert_null(times);
	fake.target->space.view.len = 0;
	fake.target->go_is_none = false;
	open_goroutines();
	assert_null(times);
}

static void a_version_that_is_not_known_is_told(void **state)
{
	const char *text;

	(void)state;
	made_module(&made, "go1.15.3");
	begin();
	assert_null(times);
	assert_true(fake.target->go_is_none);
	text = string(fake.profile.meta.source[WP_PROFILE_WALL]);
	assert_memory_equal(text, "threads, not goroutines: built by a Go", 38);
}

/* At first at each tick, later once a second. */
static void a_runtime_that_has_not_begun_is_tried_again(void **state)
{
	uint64_t begin_ns;

	(void)state;
	made_put(made.memory, MADE_ALLGS, 0, 8);
	begin();
	begin_ns = fake.target->start_ns;
	assert_null(times);
	assert_false(fake.target->go_is_none);
	assert_int_equal(fake.target->go_retry_ns, 0);
	assert_memory_equal(string(fake.profile.meta.source[WP_PROFILE_WALL]),
			    "threads, not goroutines: no list of goroutines",
			    46);
	fake_now_ns = begin_ns + 2 * WP_NS_PER_S;
	open_goroutines();
	assert_int_equal(fake.target->go_retry_ns, 0);
	fake_now_ns++;
	open_goroutines();
	assert_int_equal(fake.target->go_retry_ns, fake_now_ns + WP_NS_PER_S);
	made_put(made.memory, MADE_ALLGS, made_avma(MADE_LIST), 8);
	fake_now_ns += WP_NS_PER_S - 1;
	open_goroutines();
	assert_null(times);
	fake_now_ns++;
	open_goroutines();
	assert_non_null(times);
	/* From now on. */
	assert_int_equal(times->begin_ns, fake_now_ns);
	assert_int_equal(times->last_ns, fake_now_ns);
}

static void several_programs_are_not_all_gos(void **state)
{
	(void)state;
	options.many = true;
	start();
	assert_false(fake.profile.meta.is_of_goroutines);
}

/* A CPU sample of T with register G and a stack that begins with ROOT; 0: it is cut. */
static uint32_t note(uint64_t g, uint64_t root)
{
	struct wp_frame frames[] = { { .pc_avma = MADE_MAIN + 0x10 },
				     { .pc_avma = root + 2,
				       .flags = WP_FRAME_RETURN } };
	const struct wp_stack stack_from_root = {
		.frames = frames,
		.depth = root ? 2 : 1,
		.end = root ? WP_END_ROOT : WP_END_BEYOND_COPY
	};
	struct wp_regs regs = { .known = 0 };

	if (g)
		wp_reg_set(&regs, G_REG, g);
	made_target_update();
	t->cpu_entry = UINT32_MAX;
	wp_goroutine_times_note(t, &regs, &stack_from_root);
	assert_int_equal(wp_goroutine_times_entry(t), t->cpu_entry);
	return t->cpu_entry;
}

static void the_register_tells_the_goroutine(void **state)
{
	uint64_t g = made_avma(MADE_G);

	(void)state;
	options.goroutine_ids = true;
	start();
	look();
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(note(g + i * MADE_G_STEP, MADE_GOEXIT),
				 times->slots[i].entry);
		assert_int_equal(note(g + i * MADE_G_STEP, 0),
				 times->slots[i].entry);
		/* Its own g, so it is the goroutine's whatever the stack. */
		assert_int_equal(note(g + i * MADE_G_STEP, MADE_MAIN),
				 times->slots[i].entry);
	}
}

static void without_it_the_last_look_or_the_stack_tells(void **state)
{
	struct wp_frame cut = { .pc_avma = MADE_GOEXIT };
	const struct wp_regs none = { .known = 0 };

	(void)state;
	options.goroutine_ids = true;
	start();
	look();
	/* By the look, the thread runs the second. */
	assert_int_equal(t->goroutine_entry, times->slots[1].entry);
	assert_int_equal(note(0, MADE_MAIN), times->slots[1].entry);
	assert_int_equal(note(1, MADE_GOEXIT), times->slots[1].entry);
	t->goroutine_entry = UINT32_MAX;
	assert_int_equal(note(0, MADE_GOEXIT),
			 wp_goroutine_kept_unlabelled(times));
	assert_int_equal(note(0, MADE_MAIN),
			 wp_goroutine_kept_scheduler(times));
	assert_int_equal(note(0, 0), wp_goroutine_kept_scheduler(times));
	/* Cut in a function that is a goroutine's first: not known to be whole. */
	wp_goroutine_times_note(
		t, &none,
		&(struct wp_stack){ .frames = &cut,
				    .depth = 1,
				    .end = WP_END_BEYOND_COPY });
	assert_int_equal(t->cpu_entry, wp_goroutine_kept_scheduler(times));
	/* No sample yet. */
	t->cpu_entry = UINT32_MAX;
	assert_int_equal(wp_goroutine_times_entry(t),
			 wp_goroutine_kept_scheduler(times));
	t->goroutine_entry = 3;
	assert_int_equal(wp_goroutine_times_entry(t), 3);
}

/* On the thread's own stack (g0). */
static void the_runtime_works_for_a_goroutine_or_for_none(void **state)
{
	uint64_t g0 = made_avma(MADE_G + 5 * MADE_G_STEP);
	uint32_t scheduler, second;

	(void)state;
	options.goroutine_ids = true;
	made_put(made_g(&made, 5, 72), 0, g0, 8);
	made_put(made_g(&made, 5, 48), 0, made_avma(MADE_M), 8);
	made_put(made.memory, MADE_M + CURG, made_avma(MADE_G + MADE_G_STEP),
		 8);
	start();
	look();
	scheduler = wp_goroutine_kept_scheduler(times);
	second = times->slots[1].entry;
	/* A walk that leads back to the goroutine; one that ends at the thread's
	 * own first function; one that does not tell. */
	assert_int_equal(note(g0, MADE_GOEXIT), second);
	assert_int_equal(note(g0, MADE_MAIN), scheduler);
	assert_int_equal(note(g0, 0), second);
	/* It has left its goroutine. */
	made_put(made.memory, MADE_M + CURG, 0, 8);
	t->goroutine_entry = second;
	assert_int_equal(note(g0, MADE_MAIN), scheduler);
	assert_int_equal(note(g0, 0), scheduler);
	assert_int_equal(note(g0, MADE_GOEXIT), second);
}

static void a_thread_of_another_program_has_no_goroutine(void **state)
{
	const struct wp_regs regs = { .known = 0 };
	const struct wp_stack none = { .depth = 0 };

	(void)state;
	options.goroutines = false;
	begin();
	t->cpu_entry = 5;
	wp_goroutine_times_note(t, &regs, &none);
	assert_int_equal(t->cpu_entry, 5);
	assert_int_equal(wp_goroutine_times_tick(fake.target), 0);
	assert_int_equal(wp_goroutine_times_finish(fake.target), 0);
	wp_goroutine_times_close(fake.target);
}

#ifdef CAN_FAIL
/* Their first look, another and the end. */
static int keep(void)
{
	int rc = wp_goroutine_kept_open(fake.target);

	for (int i = 0; i < 2 && !rc; i++) {
		fake_now_ns += TICK;
		fake.sampler->tick_ns = fake.target->last_tick_ns = fake_now_ns;
		rc = wp_goroutine_times_tick(fake.target);
	}
	return rc ? rc : wp_goroutine_times_finish(fake.target);
}

static long keep_with(long n, int *ret_rc)
{
	long left;

	start_target();
	t = wp_threads_find_or_add(fake.target, TID);
	made_target_show();
	fake.target->go_is_none = false;
	made_target_update();
	fake.sampler->tick_ns = fake_now_ns;
	allocations_left = n;
	*ret_rc = keep();
	left = allocations_left;
	allocations_left = -1;
	return left;
}

static void goroutines_without_memory_are_an_error(void **state)
{
	enum { MANY = 1 << 20 };
	int rc;
	long need = MANY - keep_with(MANY, &rc);

	assert_int_equal(rc, 0);
	assert_true(need > 10);
	for (long n = 0; n < need; n++) {
		made_target_end(state);
		setup(state);
		keep_with(n, &rc);
		assert_int_equal(rc, -ENOMEM);
	}
}
#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, made_target_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(those_with_the_same_labels_share_an_entry),
		TEST(another_label_is_another_entry),
		TEST(with_ids_each_has_its_own),
		TEST(one_of_no_function_is_a_goroutine),
		TEST(in_a_timeline_labels_are_part_of_the_name),
		TEST(past_the_limit_they_share),
		TEST(those_of_the_runtime_are_told_apart),
		TEST(samples_of_its_entries_are_its_own),
		TEST(goroutines_that_are_not_asked_for_are_not_sought),
		TEST(a_program_that_is_not_gos_is_not_asked_again),
		TEST(a_library_of_go_is_no_go_program),
		TEST(a_version_that_is_not_known_is_told),
		TEST(a_runtime_that_has_not_begun_is_tried_again),
		TEST(several_programs_are_not_all_gos),
		TEST(the_register_tells_the_goroutine),
		TEST(without_it_the_last_look_or_the_stack_tells),
		TEST(the_runtime_works_for_a_goroutine_or_for_none),
		TEST(a_thread_of_another_program_has_no_goroutine),
#ifdef CAN_FAIL
		TEST(goroutines_without_memory_are_an_error),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
