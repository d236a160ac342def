/* SPDX-License-Identifier: Apache-2.0 */
/* groups.h - groups of threads whose names differ only in digits. */
#ifndef WP_GROUPS_H
#define WP_GROUPS_H

#include "wallprof/output.h"

struct wp_group {
	/* String id in NAMES: "worker-*", or the name that all threads have. */
	uint32_t name;
	/* Number of threads with any time, and the index of one. */
	uint32_t nthreads;
	uint32_t thread;
	uint64_t ns[WP_NSTATES];
	uint64_t total_ns;
	/* Index + 1 of the first sample; NEXT leads to the others. */
	uint32_t first;
};

struct wp_groups {
	/* v[0..len), busiest first, owned. */
	struct wp_group *v;
	uint32_t len;
	/* next[sample]: index + 1 of the group's next one, 0 at its end. */
	uint32_t *next;
	struct wp_intern names;
};

/* Group the threads of PROFILE's samples of KIND, idle ones only if IDLE_TOO.  0 or
 * -ENOMEM; the caller clears GROUPS in both cases. */
WP_MUST_CHECK
int wp_groups_init(struct wp_groups *groups, const struct wp_profile *profile,
		   enum wp_profile_kind kind, bool idle_too);
void wp_groups_clear(struct wp_groups *groups);

#endif
