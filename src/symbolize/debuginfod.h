/* SPDX-License-Identifier: Apache-2.0 */
/* debuginfod.h - debug files from the servers that $DEBUGINFOD_URLS names.
 *
 * Layer: symbolize.
 *
 * libdebuginfod asks them, and keeps what they gave in the user's cache
 * (debuginfod_find_debuginfo(3)).  It is loaded when it is first wanted, in a
 * child process, which is ended whatever it waits for: so a server that does
 * not answer costs time, of which there is so much, and names.
 */
#ifndef WP_DEBUGINFOD_H
#define WP_DEBUGINFOD_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"

struct wp_debuginfod {
	/* The number of the user's interrupts: the second ends the asking;
	 * borrowed. */
	const volatile sig_atomic_t *interrupts;
	/* The child, 0 until the first question; the parent's end of its
	 * socket. */
	pid_t pid;
	int sock;
	/* Time that all further answers may take together. */
	uint64_t left_ns;
	/* Why nothing is asked any more; NULL: it is. */
	const char *why;
};

/* Begin; asks nothing yet.  The caller ends it. */
void wp_debuginfod_begin(struct wp_debuginfod *ret, uint64_t left_ns,
			 const volatile sig_atomic_t *interrupts);

/* Ask for the debug file of the build-id ID[0..len).  Returns a descriptor for
 * reading, which the caller closes, or -ENOENT: no server has it, or
 * D->why says why that is not known. */
WP_MUST_CHECK
int wp_debuginfod_find(struct wp_debuginfod *d, const uint8_t *id,
		       uint32_t len);

/* End the child.  D->why stays. */
void wp_debuginfod_end(struct wp_debuginfod *d);

#endif
