/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  modules.h: processes that map one file at one place share the
 * module; code in no file does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/sample/modules.h"
#include "wallprof/budget.h"

static struct wp_profile profile;
static struct wp_image_cache images;
static struct wp_modules modules;
static struct wp_maps maps;
static struct wp_process process;

static int setup(void **state)
{
	(void)state;
	memset(&images, 0, sizeof(images));
	images.fd_limit = 1024;
	maps = (struct wp_maps)WP_MAPS_INIT;
	process = (struct wp_process)WP_PROCESS_INIT;
	if (wp_profile_init(&profile))
		return -1;
	wp_modules_init(&modules, &profile, &images);
	return wp_process_open(&process, getpid(), NULL);
}

static int teardown(void **state)
{
	(void)state;
	wp_modules_clear(&modules);
	wp_image_cache_clear(&images);
	wp_maps_clear(&maps);
	wp_profile_clear(&profile);
	wp_process_clear(&process);
	wp_budget_set(512 << 20);
	return 0;
}

/* The one region of LINE, in process INDEX. */
static struct wp_module_place place(const char *line, uint32_t index)
{
	assert_int_equal(wp_maps_parse(&maps, line, strlen(line)), 0);
	assert_int_equal(maps.len, 1);
	return (struct wp_module_place){ &process, index, &maps, &maps.v[0] };
}

/* The id of LINE's module in process INDEX, entered if it is new. */
static uint32_t id_of(const char *line, uint32_t index)
{
	const struct wp_module_place at = place(line, index);
	uint32_t id = wp_modules_find(&modules, &at);

	if (id == WP_INDEX_NONE)
		assert_int_equal(wp_modules_add(&modules, &at, &id), 0);
	assert_int_equal(wp_modules_find(&modules, &at), id);
	return id;
}

#define LIB "7000-9000 r-xp 00001000 08:01 99 /lib/x.so\n"

static void one_file_at_one_place_is_shared(void **state)
{
	static const char *const others[] = {
		"7000-a000 r-xp 00001000 08:01 99 /lib/x.so\n",
		"8000-9000 r-xp 00001000 08:01 99 /lib/x.so\n",
		"7000-9000 r-xp 00002000 08:01 99 /lib/x.so\n",
		"7000-9000 r-xp 00001000 08:02 99 /lib/x.so\n",
		"7000-9000 r-xp 00001000 08:01 98 /lib/x.so\n",
		"7000-9000 r-xp 00001000 08:01 99 /lib/y.so\n",
	};
	uint32_t id = id_of(LIB, 0);

	(void)state;
	assert_true(id > 0);
	assert_int_equal(id_of(LIB, 1), id);
	assert_int_equal(id_of(LIB, 200), id);
	assert_int_equal(profile.nmappings, id + 1);
	assert_int_equal(profile.mappings[id].process, 0);
	assert_string_equal(wp_profile_str(&profile, profile.mappings[id].path),
			    "/lib/x.so");
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_int_equal(id_of(others[i], 0), id + 1 + i);
}

static void code_in_no_file_is_its_processes_own(void **state)
{
	static const char code[] = "7000-9000 r-xp 00000000 00:00 0 \n";
	uint32_t first = id_of(code, 0), second = id_of(code, 1);

	(void)state;
	assert_true(first != second);
	assert_int_equal(id_of(code, 0), first);
	assert_int_equal(id_of(code, 1), second);
	assert_int_equal(profile.mappings[second].process, 1);
}

/* 4,000 processes of a host have [vsyscall]: each is found by its own hash. */
static void code_in_no_file_is_found_at_once(void **state)
{
	static const char code[] =
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";
	uint32_t hash[4000];

	(void)state;
	for (uint32_t i = 0; i < 4000; i++)
		id_of(code, i);
	for (uint32_t at = 0, n = 0; at < modules.index.cap; at++)
		if (modules.index.v[at].element)
			hash[n++] = modules.index.v[at].hash;
	for (size_t i = 0; i < 100; i++)
		for (size_t k = i + 1; k < 4000; k++)
			assert_int_not_equal(hash[i], hash[k]);
}

/* The test's own program. */
static void a_file_is_opened_once_and_has_a_build_id(void **state)
{
	struct wp_text text = WP_TEXT_INIT;
	struct wp_module_place at = { &process, 0, &maps, NULL };
	uint32_t id;

	(void)state;
	assert_int_equal(wp_process_read_maps(&process, &text, &maps), 0);
	wp_text_clear(&text);
	at.map = wp_maps_find(&maps, (uintptr_t)setup);
	assert_non_null(at.map);
	assert_int_equal(wp_modules_add(&modules, &at, &id), 0);
	assert_false(modules.v[id].is_opened);
	wp_modules_open(&modules, id, &at);
	assert_true(modules.v[id].is_opened);
	assert_non_null(modules.v[id].image);
	assert_ptr_equal(profile.mappings[id].image, modules.v[id].image);
	assert_true(strlen(wp_profile_str(&profile,
					  profile.mappings[id].build_id)) > 0);
	/* Any process may read it. */
	assert_int_equal(modules.v[id].process, UINT32_MAX);
}

static void what_cannot_be_had_costs_its_frames(void **state)
{
	uint32_t lost = id_of(LIB, 0), gone;
	struct wp_module_place at;

	(void)state;
	wp_modules_lose(&modules, lost);
	assert_true(modules.v[lost].is_opened);
	assert_true(profile.mappings[lost].is_lost);
	assert_null(modules.v[lost].image);
	assert_int_equal(profile.counters.files_lost, 1);
	at = place("1000-2000 r-xp 0 08:01 7 /no/such/file\n", 0);
	assert_int_equal(wp_modules_add(&modules, &at, &gone), 0);
	wp_modules_open(&modules, gone, &at);
	assert_true(modules.v[gone].is_opened);
	assert_null(modules.v[gone].image);
}

static void mappings_end_with_their_budget(void **state)
{
	struct wp_module_place at = place(LIB, 0);
	size_t n = 0;

	(void)state;
	wp_budget_set(1 << 20);
	while (n < 100000 && wp_modules_fit(&at))
		n++;
	assert_in_range(n, 10, 10000);
}

/* PLACE's map is the N-th that differs in FIELD. */
static void vary(struct wp_module_place *place, int field, uint64_t n)
{
	maps.v[0].end_avma += field == 0 ? n : 0;
	maps.v[0].off += field == 1 ? n : 0;
	maps.v[0].dev += field == 2 ? n : 0;
	maps.v[0].ino = field == 3 ? n + 1 : maps.v[0].ino;
	maps.v[0].start_avma -= field == 4 ? n : 0;
	if (field == 5) {
		maps.v[0].ino = 0;
		place->index = (uint32_t)n;
	}
}

/* Among as many, some have one hash of 32 bits: eight pairs of each field are expected. */
static void modules_of_one_hash_are_told_apart(void **state)
{
	enum { N = 1 << 18 };
	struct wp_module_place at = place(LIB, 0);
	const struct wp_map map = *at.map;
	uint32_t id;

	for (int field = 0; field < 6; field++) {
		for (uint64_t n = 0; n < N; n++) {
			maps.v[0] = map;
			at.index = 0;
			vary(&at, field, n);
			assert_int_equal(wp_modules_find(&modules, &at),
					 WP_INDEX_NONE);
			assert_int_equal(wp_modules_add(&modules, &at, &id), 0);
		}
		wp_modules_clear(&modules);
		wp_profile_clear(&profile);
		assert_int_equal(wp_profile_init(&profile), 0);
		wp_modules_init(&modules, &profile, &images);
	}
	(void)state;
}

/* What ID stays as; NONE is said to stay but what is in KEPT[0..N). */
static void drop_all_but(uint32_t *kept, size_t n)
{
	struct wp_renumber r;

	assert_int_equal(wp_renumber_begin(&r, &profile), 0);
	for (size_t i = 0; i < n; i++)
		wp_renumber_ref(&r, WP_REF_MAPPING, &kept[i]);
	assert_int_equal(wp_renumber_apply(&r, &profile), 0);
	for (size_t i = 0; i < n; i++)
		wp_renumber_ref(&r, WP_REF_MAPPING, &kept[i]);
	assert_int_equal(wp_modules_renumber(&modules, &r), 0);
	wp_renumber_clear(&r);
}

static void a_module_that_stays_is_found_under_its_new_id(void **state)
{
	static const char other[] =
		"7000-9000 r-xp 00001000 08:01 98 /lib/y.so\n";
	uint32_t gone, kept;
	struct wp_module_place at;

	(void)state;
	gone = id_of(LIB, 0);
	kept = id_of(other, 0);
	drop_all_but(&kept, 1);
	assert_int_equal(kept, gone);
	at = place(other, 3);
	assert_int_equal(wp_modules_find(&modules, &at), kept);
	at = place(LIB, 0);
	assert_int_equal(wp_modules_find(&modules, &at), WP_INDEX_NONE);
	assert_int_equal(modules.len, kept + 1);
	/* A file's module is of no process: others share it as before. */
	assert_int_equal(modules.v[kept].process, UINT32_MAX);
}

/* Its process has gone, and another may be given its number. */
static void code_in_no_file_of_a_process_that_went_is_nobodys(void **state)
{
	static const char code[] = "7000-9000 r-xp 00000000 00:00 0 \n";
	uint32_t kept;
	struct wp_module_place at;

	(void)state;
	assert_int_equal(profile.nprocesses, 0);
	assert_int_not_equal(
		wp_profile_add_process(
			&profile, &(struct wp_profile_process){ .pid = 5 }),
		UINT32_MAX);
	kept = id_of(code, 0);
	profile.mappings[kept].process = 0;
	drop_all_but(&kept, 1);
	at = place(code, 1);
	assert_int_equal(wp_modules_find(&modules, &at), WP_INDEX_NONE);
}

/* Most mappings stay, so all do and keep their numbers; the file of the one that nothing
 * refers to does not stay open for that. */
static void a_module_that_stays_unused_has_no_image(void **state)
{
	enum { N = 11 };
	static struct wp_elf_image image;
	uint32_t kept[N], unused;
	char line[64];

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		snprintf(line, sizeof(line),
			 "%x000-%x800 r-xp 00001000 08:01 99 /lib/x.so\n",
			 7 + i, 7 + i);
		kept[i] = id_of(line, 0);
		modules.v[kept[i]].image = &image;
		modules.v[kept[i]].is_opened = true;
		profile.mappings[kept[i]].image = &image;
	}
	unused = kept[N - 1];
	drop_all_but(kept, N - 1);
	assert_int_equal(id_of(line, 0), unused);
	assert_false(modules.v[unused].is_opened);
	assert_null(modules.v[unused].image);
	assert_null(profile.mappings[unused].image);
	for (uint32_t i = 0; i < N - 1; i++) {
		assert_true(modules.v[kept[i]].is_opened);
		assert_ptr_equal(modules.v[kept[i]].image, &image);
		assert_ptr_equal(profile.mappings[kept[i]].image, &image);
	}
	wp_modules_hold_images(&modules);
	assert_true(image.is_held);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_file_at_one_place_is_shared),
		TEST(code_in_no_file_is_its_processes_own),
		TEST(code_in_no_file_is_found_at_once),
		TEST(a_file_is_opened_once_and_has_a_build_id),
		TEST(what_cannot_be_had_costs_its_frames),
		TEST(mappings_end_with_their_budget),
		TEST(modules_of_one_hash_are_told_apart),
		TEST(a_module_that_stays_is_found_under_its_new_id),
		TEST(code_in_no_file_of_a_process_that_went_is_nobodys),
		TEST(a_module_that_stays_unused_has_no_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
