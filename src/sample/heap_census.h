/* SPDX-License-Identifier: Apache-2.0 */
/* heap_census.h - what a target's malloc holds, by size, at two times.
 *
 * Layer: sample.  Private to src/sample/heap_*.c.
 */
#ifndef WP_HEAP_CENSUS_H
#define WP_HEAP_CENSUS_H

#include "wallprof/err.h"
#include "wallprof/glibc_heap.h"

struct wp_target;

struct wp_heap_census {
	/* As the recording began, of the program that the process ran then. */
	struct wp_census first;
	uint32_t nexecs;
};

/* Count what TARGET's malloc holds.  0 and *RET, which the caller frees; -ENOTSUP, -ESRCH,
 * -EPERM, -ENOMEM: ERR says why. */
WP_MUST_CHECK
int wp_heap_census_begin(struct wp_heap_census **ret, struct wp_target *target,
			 struct wp_err *err);

/* Count it again, and add what is in use to TARGET's profile: each class of sizes in two
 * parts, what it had at first and what there is more; for leaks the second alone.  If the
 * process has ended, the first of the counts is all.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_heap_census_end(const struct wp_heap_census *census,
		       struct wp_target *target);

#endif
