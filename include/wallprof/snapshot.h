/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.h - one look at the threads of some processes, as a dump.
 *
 * Layer: dump.
 */
#ifndef WP_SNAPSHOT_H
#define WP_SNAPSHOT_H

#include <signal.h>

#include "wallprof/dump.h"
#include "wallprof/fdinfo.h"
#include "wallprof/process.h"
#include "wallprof/profile.h"
#include "wallprof/sampler.h"
#include "wallprof/sched.h"

/* A thread's number in the target's own PID namespace, and in ours. */
struct wp_ns_tid {
	pid_t own;
	pid_t tid;
};

/* A process that was looked at, held open until the looks are cleared. */
struct wp_snapshot_process {
	struct wp_process process;
	struct wp_fdinfo fdinfo;
	/* How many PID namespaces it is below ours. */
	int level;
	/* Its threads, made when LEVEL is not 0 and one is asked for:
	 * ns_tids[0..n_ns_tids), owned. */
	struct wp_ns_tid *ns_tids;
	size_t n_ns_tids;
};

struct wp_snapshot {
	struct wp_dump dump;
	/* v[i] is of dump.processes[i]; each owned. */
	struct wp_snapshot_process **v;
	uint32_t cap;
	struct wp_sched_clock clock;
	/* Borrowed. */
	const struct wp_sampler_options *options;
	/* Stop threads of peers that run, too: else those have no stack. */
	bool stop_peers;
	/* Over 1: no names any more, only addresses. */
	const volatile sig_atomic_t *hurry;
	/* Addresses of all processes that a failure left without a function
	 * name, and the reason of the first process that has some. */
	uint64_t nunnamed;
	char unnamed_why[256];
};

/* Look at all threads of process PID and add them to LOOKS->dump.  PEER: only
 * because a wait led there.  What could not be looked at is an entry with an
 * error.  KEEP, if not NULL, is filled with the
 * look as a threads profile, which the caller clears.
 *
 * Returns 0; -ESRCH, -EPERM, -ENOTSUP, -EMFILE: could not be looked at, ERR says
 * why; -ENOMEM.
 */
WP_MUST_CHECK
int wp_snapshot_add(struct wp_snapshot *looks, pid_t pid, bool peer,
		    struct wp_profile *keep, struct wp_err *err);

/* Add the edges that lead over pipes, unix sockets, file locks and children,
 * and look at the processes where they lead to.  Bounded in processes and time.
 * 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_snapshot_follow(struct wp_snapshot *looks);

/* After all looks: a thread that has run since it was looked at is marked
 * open_ended, since what it waited for is over.  All others were waiting at one
 * moment: when the last look began. */
void wp_snapshot_finish(struct wp_snapshot *looks);

void wp_snapshot_clear(struct wp_snapshot *looks);

#endif
