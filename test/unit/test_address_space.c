/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  space.h on this process, which maps and unmaps code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../src/sample/address_space.h"
#include "wallprof/budget.h"

enum { MANY = 40000, PAGE = 4096 };

struct own {
	struct wp_process process;
	struct wp_profile profile;
	struct wp_address_space space;
	struct wp_modules modules;
	struct wp_image_cache images;
};

static int setup(void **state)
{
	struct own *own = calloc(1, sizeof(*own));
	struct wp_err err = WP_ERR_INIT;

	*state = own;
	own->process = (struct wp_process)WP_PROCESS_INIT;
	assert_int_equal(wp_process_open(&own->process, getpid(), &err), 0);
	return wp_profile_init(&own->profile);
}

static int teardown(void **state)
{
	struct own *own = *state;

	wp_address_space_close(&own->space);
	wp_modules_clear(&own->modules);
	wp_image_cache_clear(&own->images);
	wp_profile_clear(&own->profile);
	wp_process_clear(&own->process);
	free(own);
	return 0;
}

static void open_space(struct own *own)
{
	wp_modules_init(&own->modules, &own->profile, &own->images);
	assert_int_equal(wp_address_space_open(&own->space, &own->process,
					       &own->modules, 0),
			 0);
}

static void *map_code(void *at, size_t size)
{
	void *p = mmap(at, size, PROT_READ | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1,
		       0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* The mapping id of ADDR now; WP_MAPPING_NONE: no code there. */
static uint32_t id_of(struct own *own, const void *addr)
{
	const struct wp_unwind_module *m;

	assert_int_equal(wp_address_space_reload(&own->space, true), 1);
	m = wp_unwind_find_module(&own->space.view, (uintptr_t)addr);
	return m ? m->mapping : WP_MAPPING_NONE;
}

static void a_generation_ends_when_code_comes_or_goes(void **state)
{
	struct own *own = *state;
	char *code = mmap(NULL, 4 * PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int exec = PROT_READ | PROT_EXEC;
	uint64_t generation;
	uint32_t id;

	assert_true(code != MAP_FAILED);
	assert_int_equal(mprotect(code, PAGE, exec), 0);
	open_space(own);
	generation = own->space.view.generation;
	assert_true(generation > 0);
	id = id_of(own, code);
	assert_int_not_equal(id, WP_MAPPING_NONE);
	/* Read again, for the kernel may have no question for one mapping. */
	assert_int_equal(own->space.view.generation, generation);
	assert_int_equal(mprotect(code, PAGE, PROT_NONE), 0);
	assert_int_equal(id_of(own, code), WP_MAPPING_NONE);
	assert_int_equal(own->space.view.generation, generation + 1);
	assert_int_equal(mprotect(code, PAGE, exec), 0);
	assert_int_equal(id_of(own, code), id);
	assert_int_equal(own->space.view.generation, generation + 2);
	/* As many as before, one at another place. */
	assert_int_equal(mprotect(code, PAGE, PROT_NONE), 0);
	assert_int_equal(mprotect(code + 2 * PAGE, PAGE, exec), 0);
	assert_int_equal(id_of(own, code), WP_MAPPING_NONE);
	assert_int_equal(own->space.view.generation, generation + 3);
	munmap(code, 4 * PAGE);
}

static void a_mapping_has_one_id_for_good(void **state)
{
	struct own *own = *state;
	char *p = map_code(NULL, 3 * PAGE);
	uint32_t whole, part;

	open_space(own);
	whole = id_of(own, p);
	assert_int_not_equal(whole, WP_MAPPING_NONE);
	assert_int_equal(id_of(own, p), whole);
	munmap(p, 3 * PAGE);
	assert_int_equal(id_of(own, p), WP_MAPPING_NONE);
	map_code(p, PAGE);
	part = id_of(own, p);
	assert_int_not_equal(part, WP_MAPPING_NONE);
	assert_int_not_equal(part, whole);
	map_code(p, 3 * PAGE);
	assert_int_equal(id_of(own, p), whole);
	munmap(p, 3 * PAGE);
	map_code(p, PAGE);
	assert_int_equal(id_of(own, p), part);
	munmap(p, PAGE);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* What it takes over reading the map, which the kernel writes line by line. */
/* An ended process has no map; samples of before are read with the last it had. */
static void a_process_that_has_ended_keeps_its_map(void **state)
{
	struct own *own = *state;
	uint64_t pc = (uintptr_t)a_process_that_has_ended_keeps_its_map;
	char dir[] = "/tmp/wallprof-ended-XXXXXX", path[64];
	FILE *maps;

	open_space(own);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/maps", dir);
	maps = fopen(path, "w");
	assert_non_null(maps);
	fclose(maps);
	wp_process_clear(&own->process);
	own->process.proc_fd = open(dir, O_RDONLY | O_DIRECTORY);
	own->process.task_fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(wp_address_space_reload(&own->space, true), -ESRCH);
	assert_non_null(wp_unwind_find_module(&own->space.view, pc));
	unlink(path);
	rmdir(dir);
}

static void many_mappings_cost_no_more_than_to_read_them(void **state)
{
	struct own *own = *state;
	struct wp_maps maps = WP_MAPS_INIT;
	struct wp_text text = { 0 };
	char *p = map_code(NULL, (size_t)MANY * PAGE);
	uint64_t begin, read_ns, all_ns;

	/* Neighbours that differ are not merged. */
	for (size_t i = 0; i < MANY; i += 2)
		assert_int_equal(mprotect(p + i * PAGE, PAGE, PROT_EXEC), 0);
	begin = cpu_ns();
	assert_int_equal(wp_process_read_maps(&own->process, &text, &maps), 0);
	read_ns = cpu_ns() - begin;
	assert_true(maps.len >= MANY);
	begin = cpu_ns();
	open_space(own);
	all_ns = cpu_ns() - begin;
	assert_true(own->profile.nmappings > MANY);
	print_message("%d mappings: read in %.1f ms, opened in %.1f ms\n", MANY,
		      (double)read_ns / 1e6, (double)all_ns / 1e6);
	assert_true(all_ns < 6 * read_ns);
	/* Nothing new. */
	assert_int_equal(wp_address_space_reload(&own->space, true), 1);
	assert_true(own->profile.nmappings < MANY + 100);
	wp_maps_clear(&maps);
	wp_text_clear(&text);
	munmap(p, (size_t)MANY * PAGE);
}

static void a_file_is_opened_when_a_pc_is_met_in_it(void **state)
{
	struct own *own = *state;
	const struct wp_unwind_module *m;

	open_space(own);
	assert_true(own->space.view.len > 2);
	assert_int_equal(own->images.len, 0);
	for (size_t i = 0; i < own->space.view.len; i++)
		assert_true(own->space.view.v[i].is_unopened);
	m = wp_unwind_find_module(&own->space.view, (uintptr_t)&setup);
	assert_non_null(m);
	assert_non_null(m->image);
	assert_false(m->is_unopened);
	assert_int_equal(own->images.len, 1);
	assert_ptr_equal(own->profile.mappings[m->mapping].image, m->image);
	/* It stays so when the map is read again. */
	assert_int_equal(wp_address_space_reload(&own->space, true), 1);
	assert_ptr_equal(
		wp_unwind_find_module(&own->space.view, (uintptr_t)&setup)
			->image,
		own->profile.mappings[m->mapping].image);
	assert_int_equal(own->images.len, 1);
}

static void mappings_beyond_the_budget_are_left_out(void **state)
{
	struct own *own = *state;

	wp_budget_set(16 * 1024);
	open_space(own);
	assert_true(own->profile.counters.mappings_dropped > 0);
	assert_true(own->space.view.len > 0);
	wp_budget_set(WP_BUDGET_DEFAULT);
	assert_int_equal(wp_address_space_reload(&own->space, true), 1);
	assert_non_null(
		wp_unwind_find_module(&own->space.view, (uintptr_t)&setup));
}

/* Of few descriptors files have some: what is mapped has no symbol table. */
static void a_low_limit_leaves_descriptors_for_files(void **state)
{
	struct own *own = *state;

	own->images.fd_limit = 64;
	open_space(own);
	assert_non_null(
		wp_unwind_find_module(&own->space.view, (uintptr_t)&setup));
	assert_int_equal(own->images.len, 1);
	assert_null(own->images.v[0].memory);
}

static void past_the_limit_a_file_is_read_from_memory(void **state)
{
	struct own *own = *state;

	own->images.fd_limit = 2;
	open_space(own);
	assert_non_null(
		wp_unwind_find_module(&own->space.view, (uintptr_t)&setup));
	assert_int_equal(own->images.len, 1);
	assert_non_null(own->images.v[0].memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			mappings_beyond_the_budget_are_left_out, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_file_is_opened_when_a_pc_is_met_in_it, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_low_limit_leaves_descriptors_for_files, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			past_the_limit_a_file_is_read_from_memory, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_generation_ends_when_code_comes_or_goes, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_process_that_has_ended_keeps_its_map, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_mapping_has_one_id_for_good,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			many_mappings_cost_no_more_than_to_read_them, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
