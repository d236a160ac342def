/* SPDX-License-Identifier: Apache-2.0 */
/* hold.c - see wallprof/hold.h. */
#include "wallprof/hold.h"

#include <stdio.h>
#include <string.h>

#include "wallprof/io.h"
#include "wallprof/procfs.h"

bool wp_hold_wchan(char ret[WP_WCHAN_MAX], int task_fd, pid_t tid)
{
	char path[48];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/wchan", tid);
	n = wp_io_read_at(task_fd, path, ret, WP_WCHAN_MAX);
	if (n <= 0)
		return false;
	ret[strcspn(ret, ".\n")] = '\0';
	/* "0": it runs, or may not be asked about. */
	return *ret && strcmp(ret, "0") != 0;
}

enum wp_hold wp_hold_by_function(const char *name)
{
	/* kernel/signal.c, do_freezer_trap, which the compiler may put in its
	 * only caller; kernel/freezer.c, __refrigerator; kernel/exit.c,
	 * coredump_task_exit, which was a part of exit_mm before Linux 5.16.
	 * What takes a lock is left out of wchan, as all of the scheduler is; who takes
	 * that of the map: mm/mmap_lock.c, before Linux 6.5 a part of
	 * arch/x86/mm/fault.c and of arch/arm64/mm/fault.c; mm/util.c, mm/madvise.c,
	 * mm/mlock.c, mm/gup.c, kernel/fork.c. */
	static const struct {
		const char *name;
		enum wp_hold hold;
	} rows[] = {
		{ "do_freezer_trap", WP_HOLD_FROZEN },
		{ "get_signal", WP_HOLD_FROZEN },
		{ "__refrigerator", WP_HOLD_FROZEN },
		{ "coredump_task_exit", WP_HOLD_CORE_DUMP },
		{ "exit_mm", WP_HOLD_CORE_DUMP },
		{ "do_exit", WP_HOLD_CORE_DUMP },
		{ "lock_mm_and_find_vma", WP_HOLD_MMAP_LOCK },
		{ "do_user_addr_fault", WP_HOLD_MMAP_LOCK },
		{ "exc_page_fault", WP_HOLD_MMAP_LOCK },
		{ "do_page_fault", WP_HOLD_MMAP_LOCK },
		{ "vm_mmap_pgoff", WP_HOLD_MMAP_LOCK },
		{ "madvise_lock", WP_HOLD_MMAP_LOCK },
		{ "do_madvise", WP_HOLD_MMAP_LOCK },
		{ "do_mlock", WP_HOLD_MMAP_LOCK },
		{ "__mm_populate", WP_HOLD_MMAP_LOCK },
		{ "dup_mmap", WP_HOLD_MMAP_LOCK },
		{ "dup_mm", WP_HOLD_MMAP_LOCK },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!strcmp(name, rows[i].name))
			return rows[i].hold;
	return WP_HOLD_NONE;
}

enum wp_hold wp_hold_read(int task_fd, pid_t tid)
{
	char path[48], wchan[WP_WCHAN_MAX];
	struct wp_proc_stat stat;

	snprintf(path, sizeof(path), "%d/stat", tid);
	/* "I" is what who waits for a core dump has (TASK_IDLE). */
	if (wp_proc_stat_read_at(&stat, task_fd, path) ||
	    !memchr("SDI", stat.state_char, 3))
		return WP_HOLD_NONE;
	if (stat.dumps_core)
		return WP_HOLD_CORE_DUMP;
	return wp_hold_wchan(wchan, task_fd, tid) ? wp_hold_by_function(wchan) :
						    WP_HOLD_NONE;
}
