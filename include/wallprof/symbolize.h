/* SPDX-License-Identifier: Apache-2.0 */
/* symbolize.h - names for a recorded profile.
 *
 * Layer: symbolize.
 */
#ifndef WP_SYMBOLIZE_H
#define WP_SYMBOLIZE_H

#include <signal.h>

#include "wallprof/process.h"
#include "wallprof/profile.h"

/* Turn the stacks of PROFILE into locations with lines, and refine wait reasons
 * by the functions in the stacks.  Waits of the mutex profile that turn out to be for
 * no lock become 0: the sums want wp_profile_add_up again.  Names come from the files
 * behind PROFILE's mappings and from debug files under the root directory of PROCESS; a
 * child process in a sandbox reads them (namer.h).  An address that it fails to name
 * reads "MODULE+0xOFFSET" and is counted as unnamed, with the reason in
 * PROFILE->meta.  *INTERRUPTS counts the user's interrupts: at the second one
 * the naming ends.  Servers that $DEBUGINFOD_URLS names are asked for debug files
 * that are not here for as long as PROFILE->meta.servers_ns says, which becomes what
 * is left of it; PROFILE->meta has the reason why they were not asked to the end.
 *
 * If PROFILE->meta.keeps_names, names are kept in a directory of the user's
 * (src/symbolize/name_cache.h) and taken from there the next time.
 *
 * What was named before is not named again: it may be called while PROFILE grows.
 * Returns 0 or -ENOMEM.
 */
WP_MUST_CHECK
int wp_symbolize(struct wp_profile *profile, const struct wp_process *process,
		 const volatile sig_atomic_t *interrupts);

/* Where names of what a process runs are. */
struct wp_symbol_source {
	/* Its root directory; borrowed; -1: not known. */
	int root_fd;
	/* For /tmp/perf-PID.map: its owner, and its pid in its own PID namespace. */
	uid_t uid;
	pid_t pid_inside;
};

struct wp_symbol_source wp_symbol_source_of(const struct wp_process *process);

/* Have both the same root directory? */
bool wp_symbol_source_is_like(const struct wp_symbol_source *a,
			      const struct wp_symbol_source *b);

/* The same for a PROFILE of several processes: SOURCES[0..N), N > 0, by their index in
 * PROFILE; a process beyond these has the first one. */
WP_MUST_CHECK
int wp_symbolize_sources(struct wp_profile *profile,
			 const struct wp_symbol_source *sources, size_t n,
			 const volatile sig_atomic_t *interrupts);

/* Refine the wait reasons of SET, samples of PROFILE's stacks, by functions that have
 * names already. */
void wp_symbolize_waits(const struct wp_profile *profile,
			struct wp_sample_set *set);

#endif
