/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_stacks.h - the goroutines of a target, with stacks of its profile.
 *
 * Layer: sample.
 */
#ifndef WP_GOROUTINE_STACKS_H
#define WP_GOROUTINE_STACKS_H

#include "wallprof/go_program.h"
#include "wallprof/sampler.h"

/* A goroutine's stacks: indices of the profile's stacks. */
struct wp_goroutine_stacks {
	/* Without frames if the goroutine ran, or changed while it was read. */
	uint32_t own;
	/* The one frame that created it; without frames if that is not known. */
	uint32_t created;
};

struct wp_goroutine_list {
	struct wp_goroutines all;
	/* stacks[all.v[i].stack] is of all.v[i]; owned. */
	struct wp_goroutine_stacks *stacks;
	uint32_t nstacks, cap_stacks;
	/* What built the program ("go1.22.3"), "" when it is not Go's. */
	char version[WP_GO_VERSION_MAX];
	/* When they were read: CLOCK_MONOTONIC. */
	uint64_t time_ns;
};

#define WP_GOROUTINE_LIST_INIT                                                 \
	{                                                                      \
		.all = WP_GOROUTINES_INIT                                      \
	}

/* Read the goroutines of TARGET, whose threads have been sampled; nothing is
 * stopped.  Their stacks and strings go to TARGET's profile.  *LIST, which the
 * caller clears in any case, stays empty for a program that is not Go's.
 *
 * Returns 0, and ERR says whose are not read, if several libraries have goroutines
 * each; -ENOTSUP, -EAGAIN: they cannot be found, ERR says why;
 * -ENOMEM, -EPERM, -ESRCH.
 */
WP_MUST_CHECK
int wp_goroutine_stacks_read(struct wp_target *target,
			     struct wp_goroutine_list *list,
			     struct wp_err *err);

void wp_goroutine_stacks_clear(struct wp_goroutine_list *list);

#endif
