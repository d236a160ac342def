/* SPDX-License-Identifier: Apache-2.0 */
/* hold.h - what holds up a thread that would go on otherwise, whatever it was doing.
 *
 * Layer: proc.
 */
#ifndef WP_HOLD_H
#define WP_HOLD_H

#include <stdbool.h>
#include <sys/types.h>

#include "wallprof/err.h"

enum wp_hold {
	WP_HOLD_NONE,
	/* The freezer of its cgroup, of version 1 or 2. */
	WP_HOLD_FROZEN,
	/* Its process dumps core: it writes the file, or waits for that. */
	WP_HOLD_CORE_DUMP,
	/* The lock of its memory map (mmap_lock), in a page fault or in a call. */
	WP_HOLD_MMAP_LOCK,
};

enum { WP_WCHAN_MAX = 128 };

/* Read the name of the kernel's function that thread TID sleeps in, as in
 * /proc/TID/wchan, where TASK_FD is /proc/PID/task; without the suffix of a compiler.
 * False: it is not told, or the thread does not sleep. */
WP_MUST_CHECK
bool wp_hold_wchan(char ret[WP_WCHAN_MAX], int task_fd, pid_t tid);

/* What holds a thread that sleeps in the kernel's function NAME. */
enum wp_hold wp_hold_by_function(const char *name);

/* What holds thread TID of TASK_FD, /proc/PID/task, by its files stat and wchan; NONE, if
 * it does not sleep or they cannot be read. */
enum wp_hold wp_hold_read(int task_fd, pid_t tid);

#endif
