/* SPDX-License-Identifier: Apache-2.0 */
/* lookups.h - which mappings are named together.
 *
 * Layer: symbolize.
 *
 * Processes with one root directory share the files below it: each is read once.
 * Code that is in no file is named by the map that its own process may have written.
 */
#ifndef WP_LOOKUPS_H
#define WP_LOOKUPS_H

#include "wallprof/profile.h"
#include "wallprof/symbolize.h"

struct wp_lookups {
	/* sources[group], [0..n), each borrowed; group_of[mapping]; owned. */
	const struct wp_symbol_source **sources;
	uint32_t *group_of;
	uint32_t n, cap;
};

/* Group PROFILE's mappings by SOURCES[0..N), N > 0, of its processes; a process beyond
 * these has the first one.  0 or -ENOMEM; the caller clears LOOKUPS in both cases. */
WP_MUST_CHECK
int wp_lookups_init(struct wp_lookups *lookups,
		    const struct wp_profile *profile,
		    const struct wp_symbol_source *sources, size_t n);
void wp_lookups_clear(struct wp_lookups *lookups);

#endif
