/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  space.h on this process, which maps and unmaps code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../src/sample/address_space.h"
#include "wallprof/budget.h"

enum { MANY = 40000 };
#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

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
	char *p = map_code(NULL, MANY * PAGE);
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
	munmap(p, MANY * PAGE);
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

/* Code that was mapped since the map was read is missed, other memory is not. */
static void code_that_came_since_is_missed(void **state)
{
	struct own *own = *state;
	uint64_t here = (uintptr_t)&code_that_came_since_is_missed;
	char *code;

	open_space(own);
	code = map_code(NULL, PAGE);
	/* Before Linux 6.11 a map cannot be asked. */
	assert_int_equal(wp_address_space_misses(&own->space, (uintptr_t)code),
			 own->space.can_query);
	assert_false(wp_address_space_misses(&own->space, here));
	assert_false(wp_address_space_misses(&own->space, (uintptr_t)&here));
	assert_int_equal(wp_address_space_reload(&own->space, true), 1);
	assert_false(wp_address_space_misses(&own->space, (uintptr_t)code));
	own->space.can_query = false;
	munmap(code, PAGE);
	code = map_code(NULL, 2 * PAGE);
	assert_false(wp_address_space_misses(&own->space, (uintptr_t)code));
	munmap(code, 2 * PAGE);
}

/* A map is read again when that takes less than a twentieth of the time since. */
static void a_map_is_not_read_too_often(void **state)
{
	struct own *own = *state;
	uint64_t n;

	open_space(own);
	n = own->profile.counters.map_reloads;
	own->space.reload_cost_ns = UINT64_C(3600) * 1000000000;
	assert_int_equal(wp_address_space_reload(&own->space, false), 0);
	assert_int_equal(own->profile.counters.map_reloads, n);
	assert_int_equal(wp_address_space_reload(&own->space, true), 1);
	own->space.reload_cost_ns = 0;
	assert_int_equal(wp_address_space_reload(&own->space, false), 1);
	assert_int_equal(own->profile.counters.map_reloads, n + 2);
}

static void a_stack_holds_while_its_code_is_mapped(void **state)
{
	struct own *own = *state;
	char *code = map_code(NULL, PAGE);
	struct wp_frame frames[3] = { { .mapping = WP_MAPPING_NONE } };
	const struct wp_stack stack = { .frames = frames, .depth = 3 };

	open_space(own);
	frames[1].mapping = id_of(own, code);
	/* A kernel's, and what others added to the profile. */
	frames[2].mapping = (uint32_t)own->modules.len;
	assert_true(wp_address_space_check(&own->space, &stack, 1));
	munmap(code, PAGE);
	/* It is asked once in a tick. */
	assert_true(wp_address_space_check(&own->space, &stack, 1));
	if (own->space.can_query)
		assert_false(wp_address_space_check(&own->space, &stack, 2));
	/* Read again, it is known to be gone without a question. */
	assert_int_equal(id_of(own, code), WP_MAPPING_NONE);
	if (own->space.can_query)
		assert_false(wp_address_space_check(&own->space, &stack, 2));
}

/* Where a map cannot be asked it is believed for twenty times what it cost. */
static void without_a_question_a_map_is_believed_for_a_while(void **state)
{
	struct own *own = *state;
	const struct wp_stack none = { .depth = 0 };

	open_space(own);
	own->space.can_query = false;
	own->space.reload_cost_ns = UINT64_C(3600) * 1000000000;
	assert_true(wp_address_space_check(&own->space, &none, 1));
	own->space.reload_cost_ns = 0;
	assert_false(wp_address_space_check(&own->space, &none, 1));
}

static void a_space_that_is_closed_keeps_no_descriptor(void **state)
{
	struct own *own = *state;
	int fd;

	open_space(own);
	fd = own->space.maps_fd;
	assert_true(fd >= 0 && fcntl(fd, F_GETFD) >= 0);
	wp_address_space_close(&own->space);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(own->space.maps_fd, -1);
	wp_address_space_close(&own->space);
}

/* CHILD executes a program as soon as it is told to. */
static pid_t begin_child(int *ret_go)
{
	int go[2];
	pid_t pid;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		char byte;

		if (read(go[0], &byte, 1) == 1)
			execlp("sleep", "sleep", "100", NULL);
		_exit(1);
	}
	close(go[0]);
	*ret_go = go[1];
	return pid;
}

/* The descriptor of before an exec has nothing to be read any more. */
static void wait_for_exec(const struct own *own)
{
	char byte;

	for (int i = 0; i < 1000; i++) {
		if (pread(own->space.maps_fd, &byte, 1, 0) <= 0)
			return;
		usleep(10000);
	}
	fail();
}

static void an_exec_is_counted_once(void **state)
{
	struct own *own = *state;
	struct wp_err err = WP_ERR_INIT;
	pid_t pid;
	int go;

	pid = begin_child(&go);
	assert_true(pid > 0);
	wp_process_clear(&own->process);
	assert_int_equal(wp_process_open(&own->process, pid, &err), 0);
	open_space(own);
	assert_int_equal(wp_address_space_reload(&own->space, true), 1);
	assert_int_equal(own->space.nexecs, 0);
	assert_int_equal(write(go, "", 1), 1);
	wait_for_exec(own);
	assert_int_equal(wp_address_space_reload(&own->space, true), 1);
	assert_int_equal(wp_address_space_reload(&own->space, true), 1);
	assert_int_equal(own->space.nexecs, 1);
	assert_int_equal(own->profile.counters.execs, 1);
	close(go);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* Its end is no exec. */
	assert_true(wp_address_space_reload(&own->space, true) < 0);
	assert_int_equal(own->space.nexecs, 1);
}

/* As in the middle of an exec, where only the stack is there, and [vsyscall]. */
static void a_process_without_code_has_not_executed(void **state)
{
	struct own *own = *state;
	struct wp_err err = WP_ERR_INIT;
	int status;
	pid_t pid = fork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		/* All that there may be, which is the end of it. */
		for (int bits = 52; bits > 32; bits--)
			syscall(SYS_munmap, 0,
				(UINT64_C(1) << bits) - (uint64_t)PAGE);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	wp_process_clear(&own->process);
	assert_int_equal(wp_process_open(&own->process, pid, &err), 0);
	open_space(own);
	assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSEGV);
	(void)!wp_address_space_reload(&own->space, true);
	assert_int_equal(own->space.nexecs, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Walks that are remembered have the ids of before. */
static void new_ids_are_a_new_generation(void **state)
{
	struct own *own = *state;
	struct wp_renumber r;
	uint64_t generation;

	open_space(own);
	for (int drops = 0; drops < 2; drops++) {
		assert_int_equal(wp_renumber_begin(&r, &own->profile), 0);
		if (!drops)
			wp_address_space_renumber(&own->space, &r);
		assert_int_equal(wp_renumber_apply(&r, &own->profile), 0);
		generation = own->space.view.generation;
		wp_address_space_renumber(&own->space, &r);
		assert_int_equal(own->space.view.generation,
				 generation + (uint64_t)drops);
		wp_renumber_clear(&r);
	}
}

/* A thread that starts later has its stack where the map has nothing. */
static void the_end_of_a_new_stack_is_asked_for(void **state)
{
	struct own *own = *state;
	uint8_t *p;

	open_space(own);
	/* What is beside it is of another kind. */
	p = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(wp_address_space_stack_end(&own->space,
						    (uintptr_t)p + PAGE + 8),
			 own->space.can_query ? (uintptr_t)p + 2 * PAGE : 0);
	munmap(p, 3 * PAGE);
	assert_int_equal(wp_address_space_stack_end(&own->space,
						    (uintptr_t)p + PAGE + 8),
			 0);
	own->space.can_query = false;
	assert_int_equal(wp_address_space_stack_end(&own->space,
						    (uintptr_t)p + PAGE + 8),
			 0);
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
		cmocka_unit_test_setup_teardown(code_that_came_since_is_missed,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_map_is_not_read_too_often,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_stack_holds_while_its_code_is_mapped, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			without_a_question_a_map_is_believed_for_a_while, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_space_that_is_closed_keeps_no_descriptor, setup,
			teardown),
		cmocka_unit_test_setup_teardown(an_exec_is_counted_once, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_process_without_code_has_not_executed, setup,
			teardown),
		cmocka_unit_test_setup_teardown(new_ids_are_a_new_generation,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_end_of_a_new_stack_is_asked_for, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
