/* SPDX-License-Identifier: Apache-2.0 */
/* stuck.h - finds out that a process of wallprof's does not come back from the kernel.
 *
 * It reads files and memory of what is looked at, and a file server that does not answer,
 * or a userfaultfd(2) that nobody serves, holds it up for ever.
 *
 * Layer: cmd.
 */
#ifndef WP_STUCK_H
#define WP_STUCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Looks at one process.  They are counted, not the time between them, in which the
 * looker may be stopped itself. */
struct wp_stuck {
	/* Looks in a row at which it slept and had not run since the one before. */
	unsigned int nstill;
	/* At the last look: times it was put on a CPU; its state (proc(5)). */
	uint64_t slices;
	char state_char;
};

#define WP_STUCK_INIT                                                          \
	{                                                                      \
		.slices = UINT64_MAX                                           \
	}

enum { WP_STUCK_TEXT = 320 };

/* Look at process PID; if it cannot be seen nothing is changed. */
void wp_stuck_look(struct wp_stuck *stuck, pid_t pid);

/* Does PID, which STUCK is of, wait for work of the kernel's own that takes seconds, but
 * ends? */
bool wp_stuck_is_in_kernels_work(const struct wp_stuck *stuck, pid_t pid);

/* The process whose memory, or file below /proc, PID's system call is to read; 0: none, or
 * not known. */
pid_t wp_stuck_find_target(pid_t pid);

/* Put into TEXT that process PID is stuck, where, and what the cause may be. */
void wp_stuck_describe(pid_t pid, char text[WP_STUCK_TEXT]);

/* Does whoever reads standard error take more?  A terminal that is stopped does not, and
 * who writes to it waits. */
bool wp_stuck_is_heard(void);

#endif
