/* SPDX-License-Identifier: Apache-2.0 */
/* throttle.h - was a process kept from the CPUs by a limit of CPU time that one of its
 * cgroups has (cpu.max of cgroups(7), cpu.cfs_quota_us of version 1)?
 *
 * Threads that could run then wait in state R, as they do for a CPU that is busy.
 *
 * Layer: proc.
 */
#ifndef WP_THROTTLE_H
#define WP_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"

enum {
	/* Most cgroups, each in the next, that are looked at. */
	WP_THROTTLE_LEVELS = 16,
	/* Most bytes of a cgroup's directory, with its NUL; others are not looked at. */
	WP_THROTTLE_DIR_MAX = 512,
};

/* Periods of a limit in which threads could run, and those of them in which no CPU time
 * was left (nr_periods and nr_throttled of cpu.stat). */
struct wp_throttle_count {
	uint64_t periods;
	uint64_t throttled;
};

/* Nothing to clear. */
struct wp_throttle {
	/* The directory of the process's cgroup, whose name begins at NAME_AT. */
	char dir[WP_THROTTLE_DIR_MAX];
	size_t name_at;
	/* v[0..n): that cgroup and those it is in, as far as they can have a limit: how
	 * long their directories' names are, as parts of DIR. */
	struct wp_throttle_level {
		size_t len;
		struct wp_throttle_count before;
	} v[WP_THROTTLE_LEVELS];
	unsigned int n;
};

/* Note what the kernel has counted so far of the cgroups that the process of PROC_FD,
 * /proc/PID, is in, by their files below ROOT, "/sys/fs/cgroup".  What cannot be read is
 * left out. */
void wp_throttle_begin(struct wp_throttle *t, int proc_fd, const char *root);

/* Which cgroup has lacked CPU time in most periods since then: TEXT[0..size) says it in
 * words.  False: none has. */
bool wp_throttle_tell(const struct wp_throttle *t, char *text, size_t size);

/* Parse TEXT, of cpu.stat.  -ENOENT: this cgroup has no limit of its own to count. */
WP_MUST_CHECK
int wp_throttle_parse(struct wp_throttle_count *ret, const char *text);

#endif
