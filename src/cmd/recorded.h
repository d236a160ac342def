/* SPDX-License-Identifier: Apache-2.0 */
/* recorded.h - the processes that are recorded into one profile.
 *
 * Layer: cmd.
 */
#ifndef WP_RECORDED_H
#define WP_RECORDED_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"
#include "wallprof/profile.h"
#include "wallprof/renumber.h"
#include "wallprof/sampler.h"
#include "wallprof/symbolize.h"

struct wp_recorded {
	/* Borrowed. */
	struct wp_sampler *sampler;
	struct wp_profile *profile;
	/* The first one, which its owner samples; borrowed; NULL: none. */
	const struct wp_process *first;
	/* The others that have not ended: v[0..n), each owned. */
	struct wp_process **v;
	size_t n, cap;
	/* By the profile's index of a process: where its names are. */
	struct wp_symbol_source *sources;
	size_t nsources, cap_sources;
	/* Descriptors of their root directories, each once; owned. */
	int *roots;
	size_t nroots, cap_roots;
	/* Called for each that has ended. */
	void (*ended)(void *ctx, pid_t pid);
	void *ctx;
};

/* Record PID too, from SINCE_NS on if it started then, while others were recorded; 0:
 * it has been there.  0; -ESRCH, -EPERM, ... of wp_process_open with ERR. */
WP_MUST_CHECK
int wp_recorded_add(struct wp_recorded *recorded, pid_t pid, uint64_t since_ns,
		    struct wp_err *err);

/* PROCESS is the profile's next process.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_recorded_note(struct wp_recorded *recorded,
		     const struct wp_process *process);

/* The profile has been renumbered: its processes, and what belongs to them. */
void wp_recorded_renumber(struct wp_recorded *recorded,
			  const struct wp_renumber *renumber);

/* The process with PID that has not ended; NULL: it is not recorded. */
const struct wp_process *wp_recorded_find(const struct wp_recorded *recorded,
					  pid_t pid);

/* Check access to all again: what was recorded of those that may not be looked at any
 * more is thrown away, which is counted; ERR says so of one. */
void wp_recorded_recheck(const struct wp_recorded *recorded,
			 struct wp_err *err);

/* Between ticks: let go of those that have ended.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_recorded_retire(struct wp_recorded *recorded);

/* After the sampler has been freed. */
void wp_recorded_clear(struct wp_recorded *recorded);

#endif
