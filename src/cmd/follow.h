/* SPDX-License-Identifier: Apache-2.0 */
/* follow.h - finds the processes that are to be recorded.
 *
 * Layer: cmd.
 *
 * The kernel tells the sampler of processes that start, where perf events of CPUs are
 * permitted; elsewhere /proc is listed at each tick, and where its records were lost now
 * and then.
 */
#ifndef WP_FOLLOW_H
#define WP_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "recorded.h"
#include "wallprof/process.h"

struct wp_follow {
	const struct wp_options *options;
	struct wp_recorded *recorded;
	/* Children are followed of these, sorted: what is recorded, and what could not
	 * be in time. */
	struct wp_tids parents;
	/* Where the kernel does not tell of tasks: all processes at the last listing,
	 * sorted, and when that was. */
	struct wp_tids known;
	/* Processes whose new names have been looked at since the last tick, sorted. */
	struct wp_tids renamed;
	uint64_t listed_ns;
	/* Since when children are followed; the records that the kernel had lost when
	 * those were looked for which they would have told of, and when that was. */
	uint64_t begin_ns;
	uint64_t lost;
	uint64_t lost_ns;
	/* When all were looked at for those that --name, --cgroup and --all mean. */
	uint64_t chosen_ns;
	/* Why something that is to be recorded cannot be; code 0: all is. */
	struct wp_err why;
	/* Without memory the recording ends. */
	bool no_memory;
};

/* Both are borrowed.  Set the watch of OPTIONS' sampler to *RET_WATCH. */
void wp_follow_init(struct wp_follow *follow, const struct wp_options *options,
		    struct wp_recorded *recorded,
		    struct wp_task_watch *ret_watch);

/* Record what is there already: the further processes that were named, with --tree the
 * descendants of PID, and what is chosen.  PID, 0: none, is recorded already.  0, or
 * -errno with ERR. */
WP_MUST_CHECK
int wp_follow_begin(struct wp_follow *follow, pid_t pid, struct wp_err *err);

/* How many threads process PID (0: none) has, with --tree its descendants too, and the
 * processes that --name, --cgroup or --all means. */
size_t wp_follow_count_threads(const struct wp_options *options, pid_t pid);

/* Open the first process that --name, --cgroup or --all means as PROCESS.  0, or -ENOENT
 * or -errno with ERR. */
WP_MUST_CHECK
int wp_follow_first(const struct wp_options *options,
		    struct wp_process *process, struct wp_err *err);

/* Note in the profile's meta what was chosen, instead of one process. */
void wp_follow_describe(const struct wp_follow *follow);

/* After a tick: find new processes where the kernel does not tell of them.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_follow_step(struct wp_follow *follow);

void wp_follow_clear(struct wp_follow *follow);

#endif
