/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.h - gives up every right that parsing open files does not need.
 *
 * Layer: proc.
 */
#ifndef WP_SANDBOX_H
#define WP_SANDBOX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"

struct wp_sandbox {
	/* Descriptors that stay open, keep[0..nkeep); wp_sandbox_enter sorts
	 * them. */
	int *keep;
	size_t nkeep;
	/* The parent's pid: when that process ends, this one is killed. */
	pid_t parent;
	/* Limits on address space, in bytes, and on CPU time. */
	uint64_t memory;
	uint64_t cpu_s;
	/* System calls that are allowed beside those below, more[0..nmore). */
	const int *more;
	size_t nmore;
};

/* Confine this process, of one thread, for good: close all other descriptors;
 * drop all capabilities, with no_new_privs; limit memory and CPU time, with no
 * core file and no child; die with the parent; and allow only system calls on
 * memory and on open descriptors.  It can open nothing, execute nothing, signal
 * no other process, and make no memory executable.
 *
 * Returns 0 or -errno of what failed: then the caller should end.
 */
WP_MUST_CHECK
int wp_sandbox_enter(const struct wp_sandbox *sandbox);

#endif
