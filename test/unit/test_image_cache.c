/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  image_cache.h: a file is opened once, whoever maps it, and one
 * that cannot be opened is read from memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../../src/sample/image_cache.h"
#include "wallprof/budget.h"

struct own {
	struct wp_process process, other;
	struct wp_text text;
	struct wp_maps maps;
	struct wp_image_cache cache;
};

static int setup(void **state)
{
	static struct own own;

	memset(&own, 0, sizeof(own));
	own.process = own.other = (struct wp_process)WP_PROCESS_INIT;
	own.maps = (struct wp_maps)WP_MAPS_INIT;
	assert_int_equal(wp_process_open(&own.process, getpid(), NULL), 0);
	assert_int_equal(wp_process_open(&own.other, getpid(), NULL), 0);
	assert_int_equal(
		wp_process_read_maps(&own.process, &own.text, &own.maps), 0);
	*state = &own;
	return 0;
}

static int teardown(void **state)
{
	struct own *own = *state;

	wp_image_cache_clear(&own->cache);
	wp_maps_clear(&own->maps);
	wp_text_clear(&own->text);
	wp_process_clear(&own->process);
	wp_process_clear(&own->other);
	return 0;
}

static const struct wp_map *map_of(const struct own *own, const void *p)
{
	const struct wp_map *map = wp_maps_find(&own->maps, (uintptr_t)p);

	assert_non_null(map);
	return map;
}

static const struct wp_map *map_called(const struct own *own, const char *name)
{
	for (size_t i = 0; i < own->maps.len; i++)
		if (!strcmp(wp_maps_path(&own->maps, &own->maps.v[i]), name))
			return &own->maps.v[i];
	return NULL;
}

static struct wp_elf_image *find(struct own *own,
				 const struct wp_process *process,
				 const struct wp_map *map)
{
	struct wp_elf_image *image;

	assert_int_equal(wp_image_cache_find(&own->cache, process, &own->maps,
					     map, &image),
			 0);
	return image;
}

static void a_file_is_opened_once_for_all_processes(void **state)
{
	struct own *own = *state;
	struct wp_elf_image *image = find(own, &own->process,
					  map_of(own, (void *)&setup));

	assert_non_null(image);
	/* By another of its regions, and of another process. */
	assert_ptr_equal(find(own, &own->process, map_of(own, own)), image);
	assert_ptr_equal(find(own, &own->other, map_of(own, (void *)&setup)),
			 image);
	assert_int_equal(own->cache.len, 1);
	assert_null(own->cache.v[0].memory);
}

static void memory_that_is_no_file_has_no_image(void **state)
{
	struct own *own = *state;
	const struct wp_map *map = map_called(own, "[stack]");

	if (!map)
		skip();
	assert_null(find(own, &own->process, map));
	assert_int_equal(own->cache.len, 0);
}

static void the_vdso_is_read_from_the_memory_of_each_process(void **state)
{
	struct own *own = *state;
	const struct wp_map *map = map_called(own, "[vdso]");
	struct wp_elf_image *image;
	uint64_t svma;

	if (!map) {
		skip();
		return;
	}
	image = find(own, &own->process, map);
	assert_non_null(image);
	assert_true(wp_elf_image_shown(image, 0, map->off, &svma));
	assert_ptr_equal(find(own, &own->process, map), image);
	assert_ptr_not_equal(find(own, &own->other, map), image);
	assert_int_equal(own->cache.len, 2);
}

/* Another may be at its address. */
static void the_vdso_outlives_its_process(void **state)
{
	struct own *own = *state;
	const struct wp_map *map = map_called(own, "[vdso]");
	struct wp_process *process = malloc(sizeof(*process));
	struct wp_elf_image *image;
	const uint8_t *whole;

	if (!map) {
		free(process);
		skip();
		return;
	}
	*process = (struct wp_process)WP_PROCESS_INIT;
	assert_int_equal(wp_process_open(process, getpid(), NULL), 0);
	image = find(own, process, map);
	assert_non_null(image);
	wp_image_cache_forget(&own->cache, process);
	wp_process_clear(process);
	free(process);
	whole = wp_elf_image_whole(image);
	assert_non_null(whole);
	assert_memory_equal(whole, (void *)(uintptr_t)map->start_avma,
			    map->end_avma - map->start_avma);
	image = find(own, &own->other, map);
	wp_image_cache_forget(&own->cache, &own->other);
	assert_ptr_not_equal(find(own, &own->other, map), image);
}

static void what_is_no_elf_file_is_remembered(void **state)
{
	struct own *own = *state;
	struct wp_map none = *map_of(own, (void *)&setup);

	/* A file that is not there, mapped where nothing is. */
	none.ino = 1;
	none.start_avma = 4096;
	none.end_avma = 8192;
	assert_null(find(own, &own->process, &none));
	assert_null(find(own, &own->process, &none));
	assert_int_equal(own->cache.len, 1);
}

/* A map of one region, behind which PATH lies, or what is in its place now. */
static struct wp_maps one_map(const char *path)
{
	struct wp_maps maps = WP_MAPS_INIT;
	struct stat st;
	char text[256];
	int n;

	assert_int_equal(stat(path, &st), 0);
	n = snprintf(text, sizeof(text),
		     "1000-2000 r-xp 00000000 08:01 %lu %s\n",
		     (unsigned long)st.st_ino, path);
	assert_int_equal(wp_maps_parse(&maps, text, (size_t)n), 0);
	return maps;
}

/* Does opening the file of a map that says PATH give a descriptor?  The file is
 * not to be opened if not. */
static bool opens(const struct own *own, const char *path)
{
	struct wp_maps maps = one_map(path);
	char event[4096];
	int notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), fd;

	assert_true(inotify_add_watch(notify, path, IN_OPEN) >= 0);
	fd = wp_process_open_map(&own->process, &maps, &maps.v[0]);
	assert_int_equal(read(notify, event, sizeof(event)) > 0, fd >= 0);
	if (fd >= 0)
		close(fd);
	close(notify);
	wp_maps_clear(&maps);
	return fd >= 0;
}

static void only_regular_files_are_opened(void **state)
{
	const struct own *own = *state;
	char dir[] = "/tmp/wallprof-open-XXXXXX", path[64];

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_true(opens(own, path));
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_false(opens(own, path));
	unlink(path);
	/* The device 1, 3 is null. */
	if (!mknod(path, S_IFCHR | 0600, makedev(1, 3))) {
		assert_false(opens(own, path));
		unlink(path);
	}
	rmdir(dir);
}

static void a_file_in_dev_shm_is_a_file(void **state)
{
	const struct own *own = *state;
	char path[] = "/dev/shm/wallprof-open-XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0)
		skip();
	assert_true(opens(own, path));
	close(fd);
	unlink(path);
}

/* Write program FROM's bytes to PATH, over what there is. */
static void write_program(const char *path, const char *from)
{
	char command[128];

	snprintf(command, sizeof(command), "cat %s > %s", from, path);
	assert_int_equal(system(command), 0);
}

static void a_file_that_is_written_over_is_another(void **state)
{
	const struct timespec before[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct own *own = *state;
	char path[] = "/tmp/wallprof-open-XXXXXX", name[64], exe[64];
	int fd = mkstemp(path);
	struct wp_elf_image *first;
	void *p;

	assert_true(fd >= 0);
	snprintf(exe, sizeof(exe), "/proc/%d/exe", getpid());
	write_program(path, exe);
	assert_int_equal(futimens(fd, before), 0);
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(
		wp_process_read_maps(&own->process, &own->text, &own->maps), 0);
	first = find(own, &own->process, map_of(own, p));
	assert_non_null(first);
	/* A link makes no other file of it. */
	snprintf(name, sizeof(name), "%s.link", path);
	assert_int_equal(link(path, name), 0);
	assert_ptr_equal(find(own, &own->other, map_of(own, p)), first);
	assert_false(wp_elf_image_has_changed(first));
	/* With the same build-id it is the same. */
	write_program(path, exe);
	assert_false(wp_elf_image_has_changed(first));
	write_program(path, "/bin/sh");
	assert_true(wp_elf_image_has_changed(first));
	assert_ptr_not_equal(find(own, &own->other, map_of(own, p)), first);
	assert_int_equal(own->cache.len, 2);
	munmap(p, 4096);
	close(fd);
	unlink(path);
	unlink(name);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Of more files than there are, one is held. */
static void what_nobody_holds_is_closed(void **state)
{
	struct own *own = *state;
	const struct wp_map *exe = map_of(own, (void *)&setup), *lib;
	const struct wp_map *vdso = map_called(own, "[vdso]");
	struct wp_elf_image *held = find(own, &own->process, exe), *gone;
	int fd;

	lib = map_of(own, dlsym(RTLD_DEFAULT, "getpid"));
	gone = find(own, &own->process, lib);
	assert_non_null(held);
	assert_non_null(gone);
	fd = gone->fd;
	assert_true(fd >= 0 && is_open(fd));
	/* The half of what there may be. */
	assert_true(wp_elf_image_take(gone, wp_budget_per_file() / 2));
	gone->lacks_memory = true;
	if (vdso) {
		find(own, &own->process, vdso);
		find(own, &own->other, vdso);
		wp_image_cache_forget(&own->cache, &own->other);
	}
	held->is_held = true;
	assert_int_equal(wp_image_cache_count_idle(&own->cache, false),
			 own->cache.len - 1);
	assert_int_equal(wp_image_cache_drop(&own->cache), 0);
	assert_int_equal(own->cache.len, 1);
	assert_false(is_open(fd));
	assert_true(is_open(held->fd));
	/* Once, though it is there no more. */
	assert_int_equal(wp_image_cache_count_dropped(&own->cache), 1);
	assert_ptr_equal(find(own, &own->other, exe), held);
	assert_int_equal(own->cache.len, 1);
	assert_non_null(find(own, &own->process, lib));
	assert_int_equal(own->cache.len, 2);
	/* It has to be said anew. */
	assert_int_equal(wp_image_cache_count_idle(&own->cache, false), 2);
}

/* One file after the other is half of what a file may take: without end. */
static void what_was_closed_takes_nothing(void **state)
{
	struct own *own = *state;
	const struct wp_map *exe = map_of(own, (void *)&setup);

	for (int n = 0; n < 100; n++) {
		struct wp_elf_image *image = find(own, &own->process, exe);

		assert_non_null(image);
		assert_true(wp_elf_image_take(image, wp_budget_per_file() / 2));
		assert_int_equal(wp_image_cache_drop(&own->cache), 0);
	}
	assert_int_equal(wp_image_cache_count_dropped(&own->cache), 0);
}

/* A region of the file in which nothing is relocated: its headers and its code. */
static bool is_code_of(const struct own *own, const struct wp_map *map,
		       const struct wp_map *exe)
{
	return map->read && (map->exec || !map->off) && map->ino == exe->ino &&
	       map->dev == exe->dev &&
	       !strcmp(wp_maps_path(&own->maps, map),
		       wp_maps_path(&own->maps, exe));
}

/* Of few descriptors none is left: each region has the bytes that it has in the file. */
static void past_the_limit_a_file_is_what_is_mapped_of_it(void **state)
{
	enum { PAGE = 4096 };
	struct own *own = *state;
	const struct wp_map *exe = map_of(own, (void *)&setup);
	struct wp_elf_image *file = find(own, &own->process, exe), *memory;
	uint8_t id[WP_BUILD_ID_MAX];
	size_t npages = 0;

	assert_non_null(file);
	memcpy(id, file->build_id, file->build_id_len);
	wp_image_cache_clear(&own->cache);
	own->cache.fd_limit = 2;
	memory = find(own, &own->process, exe);
	assert_non_null(memory);
	assert_non_null(own->cache.v[0].memory);
	assert_memory_equal(memory->build_id, id, memory->build_id_len);
	for (size_t i = 0; i < own->maps.len; i++) {
		const struct wp_map *map = &own->maps.v[i];
		uint64_t size = map->end_avma - map->start_avma;

		if (!is_code_of(own, map, exe))
			continue;
		for (uint64_t at = 0; at < size; at += PAGE, npages++) {
			const uint8_t *bytes = wp_elf_image_at(
				memory, map->off + at, PAGE);

			assert_non_null(bytes);
			assert_memory_equal(
				bytes,
				(void *)(uintptr_t)(map->start_avma + at),
				PAGE);
		}
	}
	assert_true(npages > 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_opened_once_for_all_processes),
		TEST(memory_that_is_no_file_has_no_image),
		TEST(the_vdso_is_read_from_the_memory_of_each_process),
		TEST(the_vdso_outlives_its_process),
		TEST(what_is_no_elf_file_is_remembered),
		TEST(only_regular_files_are_opened),
		TEST(a_file_in_dev_shm_is_a_file),
		TEST(a_file_that_is_written_over_is_another),
		TEST(past_the_limit_a_file_is_what_is_mapped_of_it),
		TEST(what_nobody_holds_is_closed),
		TEST(what_was_closed_takes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
