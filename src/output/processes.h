/* SPDX-License-Identifier: Apache-2.0 */
/* processes.h - threads of several processes told apart. */
#ifndef WP_PROCESSES_H
#define WP_PROCESSES_H

#include "buf.h"
#include "wallprof/profile.h"

/* Append to OUT the name of THREAD, an entry of PROFILE's threads; where several
 * processes were recorded, behind that of its process, "nginx: worker", unless they are
 * the same, as they are of a process's first thread. */
void wp_processes_title(struct wp_buf *out, const struct wp_profile *profile,
			const struct wp_profile_thread *thread);

/* How many threads, or goroutines, THREAD, an entry, stands for. */
uint64_t wp_processes_threads(const struct wp_profile_thread *thread);

/* Append to OUT the id of THREAD, " (4242)", if it has one, or how many more share its
 * entry: " and 3 more". */
void wp_processes_id(struct wp_buf *out,
		     const struct wp_profile_thread *thread);

#endif
