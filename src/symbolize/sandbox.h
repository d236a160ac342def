/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.h - give up every right that reading files of others does not need.
 *
 * Layer: symbolize.
 */
#ifndef WP_SANDBOX_H
#define WP_SANDBOX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"

struct wp_sandbox {
	/* Descriptors that stay open, keep[0..nkeep); sorted by enter. */
	int *keep;
	size_t nkeep;
	/* The process whose death is ours, too. */
	pid_t parent;
	/* Address space, in bytes, and CPU time. */
	uint64_t memory;
	uint64_t cpu_s;
};

/* For good, in a process of one thread: close all other descriptors; drop all
 * capabilities and the way back (no_new_privs); no more memory and CPU time
 * than given, no core, no child; die with the parent; and allow only system
 * calls that work on memory and on what is open.  Nothing can be opened,
 * nothing executed, nobody signalled, and memory never becomes code.
 *
 * Returns 0 or -errno of what failed: then the caller should end.
 */
WP_MUST_CHECK
int wp_sandbox_enter(const struct wp_sandbox *sandbox);

#endif
