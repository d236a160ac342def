/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  wallprof/hold.h, in a directory as /proc/PID/task that the test made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wallprof/hold.h"

enum { TID = 7 };

static char dir[] = "/tmp/wallprof_hold_XXXXXX";
static int task_fd = -1;

static int make_dir(void **state)
{
	char path[64];

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/%d", dir, TID);
	task_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return task_fd < 0 || mkdir(path, 0755);
}

static int remove_dir(void **state)
{
	char path[80];

	(void)state;
	snprintf(path, sizeof(path), "%s/%d/stat", dir, TID);
	unlink(path);
	snprintf(path, sizeof(path), "%s/%d/wchan", dir, TID);
	unlink(path);
	snprintf(path, sizeof(path), "%s/%d", dir, TID);
	rmdir(path);
	close(task_fd);
	return rmdir(dir);
}

static void put(const char *name, const char *text)
{
	char path[80];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d/%s", dir, TID, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void put_stat(char state_char, unsigned int flags)
{
	char text[256];

	snprintf(
		text, sizeof(text),
		"7 (x) %c 1 7 7 0 -1 %u 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 "
		"0 0 0 0 0 0 0 0 0 0 17 0 0 0 0\n",
		state_char, flags);
	put("stat", text);
}

/* Flags as Linux 6.18 showed them of threads that dump core, wait for that, or sleep. */
static void a_hold_is_told_by_flags_and_by_the_kernels_function(void **state)
{
	static const struct {
		char state_char;
		unsigned int flags;
		const char *wchan;
		enum wp_hold want;
	} rows[] = {
		{ 'S', 0x400000, "do_freezer_trap", WP_HOLD_FROZEN },
		{ 'S', 0x400000, "get_signal", WP_HOLD_FROZEN },
		{ 'S', 0x400000, "do_freezer_trap.isra.0", WP_HOLD_FROZEN },
		{ 'D', 0x400000, "__refrigerator", WP_HOLD_FROZEN },
		{ 'D', 0x400000, "coredump_task_exit", WP_HOLD_CORE_DUMP },
		{ 'D', 0x400008, "schedule", WP_HOLD_CORE_DUMP },
		{ 'I', 0x400448, "do_exit", WP_HOLD_CORE_DUMP },
		{ 'S', 0x400600, "anon_pipe_write", WP_HOLD_CORE_DUMP },
		{ 'D', 0x400000, "exit_mm", WP_HOLD_CORE_DUMP },
		{ 'D', 0x400000, "lock_mm_and_find_vma", WP_HOLD_MMAP_LOCK },
		{ 'D', 0x400000, "exc_page_fault", WP_HOLD_MMAP_LOCK },
		{ 'D', 0x400000, "vm_mmap_pgoff", WP_HOLD_MMAP_LOCK },
		{ 'D', 0x400000, "dup_mmap", WP_HOLD_MMAP_LOCK },
		{ 'D', 0x400000, "folio_wait_bit_common", WP_HOLD_NONE },
		{ 'D', 0x400000, "rpc_wait_bit_killable", WP_HOLD_NONE },
		{ 'S', 0x400000, "0", WP_HOLD_NONE },
		{ 'S', 0x400000, "", WP_HOLD_NONE },
		/* A signal or a debugger has stopped it, it runs, it has ended. */
		{ 'T', 0x400000, "get_signal", WP_HOLD_NONE },
		{ 't', 0x400000, "get_signal", WP_HOLD_NONE },
		{ 'R', 0x400200, "0", WP_HOLD_NONE },
		{ 'Z', 0x40000c, "do_exit", WP_HOLD_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		put_stat(rows[i].state_char, rows[i].flags);
		put("wchan", rows[i].wchan);
		if (wp_hold_read(task_fd, TID) != rows[i].want)
			fail_msg("row %zu", i);
	}
}

static void what_cannot_be_read_holds_nothing(void **state)
{
	char wchan[WP_WCHAN_MAX];

	(void)state;
	assert_int_equal(wp_hold_read(task_fd, TID + 1), WP_HOLD_NONE);
	assert_false(wp_hold_wchan(wchan, task_fd, TID + 1));
	put("stat", "7 (x) S");
	put("wchan", "do_freezer_trap");
	assert_int_equal(wp_hold_read(task_fd, TID), WP_HOLD_NONE);
	assert_true(wp_hold_wchan(wchan, task_fd, TID));
	assert_string_equal(wchan, "do_freezer_trap");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_hold_is_told_by_flags_and_by_the_kernels_function),
		cmocka_unit_test(what_cannot_be_read_holds_nothing),
	};

	return cmocka_run_group_tests_name("hold", tests, make_dir, remove_dir);
}
