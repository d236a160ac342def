/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.h - sample the threads of some processes once, as a dump.
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

/* The number of a thread or child in the target's own PID namespace, and in
 * wallprof's. */
struct wp_ns_tid {
	pid_t own;
	pid_t tid;
	/* Of a child: it had ended at LOOKED_NS. */
	bool has_ended;
};

/* The threads or children of a process, as they were listed at one time. */
struct wp_ns_tids {
	/* v[0..len) by OWN, owned. */
	struct wp_ns_tid *v;
	size_t len;
	/* CLOCK_MONOTONIC when the list was begun, and of that which was looked through
	 * for children that have ended; 0: there is none. */
	uint64_t time_ns;
	uint64_t looked_ns;
};

/* A process of the dump, held open until the snapshot is cleared. */
struct wp_snapshot_process {
	struct wp_process process;
	/* It runs an i386 program. */
	bool is_32bit;
	struct wp_fdinfo fdinfo;
	/* PID namespaces between wallprof's and the target's. */
	int level;
	/* Listed when LEVEL is not 0 and one is asked for; and the time that it
	 * took to list them anew. */
	struct wp_ns_tids threads;
	uint64_t relisted_ns;
	/* Listed when a child is asked for: a thousand threads may wait for a child
	 * each. */
	struct wp_ns_tids children;
	/* The time that it took to read what its epolls watch. */
	uint64_t epolls_ns;
};

/* Why others than those that were found may end a wait. */
enum wp_wait_doubt {
	WP_DOUBT_NONE,
	/* The search took too long, or found too many. */
	WP_DOUBT_CUT,
	/* The descriptors of a process may not be read; descriptors are on their way to
	 * one (SCM_RIGHTS). */
	WP_DOUBT_DENIED,
	WP_DOUBT_SENT,
	/* The kernel may write for a process (io_uring). */
	WP_DOUBT_RING,
	/* A process outside of wallprof's PID namespace may. */
	WP_DOUBT_OUTSIDE,
	/* A process of another PID namespace may have the lock: it shares the memory, and
	 * one of its threads has the recorded number there. */
	WP_DOUBT_NAMESPACE,
};

struct wp_snapshot {
	struct wp_dump dump;
	/* processes[i] is of dump.processes[i]; each owned. */
	struct wp_snapshot_process **processes;
	uint32_t cap;
	struct wp_sched_clock clock;
	/* Borrowed. */
	const struct wp_sampler_options *options;
	/* Stop the running threads of peers, which have no stack otherwise. */
	bool stop_peers;
	/* As in struct wp_profile_meta. */
	bool keeps_names;
	/* Number of the user's interrupts; borrowed.  From 2 on addresses get
	 * no names. */
	const volatile sig_atomic_t *interrupts;
	/* Addresses of all processes that a failure left without a function
	 * name, and the reason of the first process that has some. */
	uint64_t nunnamed;
	char unnamed_why[256];
	/* Waits on unix sockets whose other end is not told, and why that of the last is
	 * not: as wp_unix_peer_read. */
	uint64_t npeers_untold;
	int peers_untold_rc;
	/* Threads wait for more processes than the dump has room for. */
	bool edges_cut;
	/* Waits that lead to processes, and that others may end who were not found; of the
	 * last such wait why, and the process that may, 0: not known. */
	uint64_t nwaits_doubtful;
	enum wp_wait_doubt wait_doubt;
	pid_t doubtful_pid;
	/* Mapped files whose file server does not answer; that could not be opened. */
	uint64_t nfiles_lost;
	uint64_t nfiles_unopened;
	/* Stacks of the kernel's that may not be read. */
	uint64_t nkernel_denied;
	/* Stacks, mappings and files for which there was no memory (--max-memory). */
	uint64_t ndropped;
	/* Mapped files whose debug info was not read, or not all of it, and why that of
	 * the first was not. */
	uint64_t nfiles_lineless;
	char lineless_why[256];
};

/* Sample all threads of process PID and add them to the dump.  PEER: a wait
 * led there.  A process that cannot be sampled is an entry with an error.
 *
 * Returns 0; -ESRCH, -EPERM, -ENOTSUP, -EMFILE, -EDEADLK (it traces wallprof),
 * -ENODATA (no thread has a name that was asked for): it could not be sampled, ERR
 * says why; -ENOMEM.
 */
WP_MUST_CHECK
int wp_snapshot_add(struct wp_snapshot *snapshot, pid_t pid, bool peer,
		    struct wp_err *err);

/* Has dump.threads[THREAD], whose timeslices after its sample are known, run since, been
 * woken, or ended? */
bool wp_snapshot_has_run(const struct wp_snapshot *snapshot, uint32_t thread);

/* Take the process that was added last out again, if it has no thread: it ended before
 * it was read, and nobody asked for it by its pid. */
void wp_snapshot_drop_last(struct wp_snapshot *snapshot);

/* Sample all threads of process PID, but into PROFILE, set of THREADS, which
 * the caller clears in any case; the dump stays as it is.  KIND is THREADS, or
 * GOROUTINE: that set is made as well, and the process must be Go's.  HEAP,
 * BLOCK, MUTEX: that set alone, as the Go program keeps it, and nothing is
 * sampled.  Errors as above; -ENODATA: the program does not keep it. */
WP_MUST_CHECK
int wp_snapshot_profile(struct wp_snapshot *snapshot, pid_t pid,
			enum wp_profile_kind kind, struct wp_profile *profile,
			struct wp_err *err);

/* Add the edges over pipes, unix sockets, file locks and children, and the
 * processes that they lead to as peers; bounded in processes, edges and time.  0
 * or -ENOMEM. */
WP_MUST_CHECK
int wp_snapshot_follow(struct wp_snapshot *snapshot);

/* After the last process: mark a thread that has run since it was sampled, or is about
 * to, as open_ended, as its wait is over, unless it waits for a lock or thread of its
 * process and none of those that hold it has run: a signal woke it.  All other
 * waits held at one moment, when the sampling of the last process began. */
void wp_snapshot_finish(struct wp_snapshot *snapshot);

void wp_snapshot_clear(struct wp_snapshot *snapshot);

/* What the scheduler said of a thread at one moment. */
struct wp_thread_time {
	pid_t tid;
	/* As in schedstat; SLICES is UINT64_MAX if that could not be read. */
	uint64_t run_ns;
	uint64_t slices;
};

struct wp_thread_times {
	/* v[0..len) by tid, owned. */
	struct wp_thread_time *v;
	size_t len;
};

#define WP_THREAD_TIMES_INIT                                                   \
	{                                                                      \
		0                                                              \
	}

/* Read the times of all threads of PROCESS.  0, -ESRCH, -ENOMEM. */
WP_MUST_CHECK
int wp_thread_times_read(struct wp_thread_times *ret_times,
			 const struct wp_process *process);
/* Of thread TID; NULL: it was not there. */
const struct wp_thread_time *
wp_thread_times_find(const struct wp_thread_times *times, pid_t tid);
void wp_thread_times_clear(struct wp_thread_times *times);

#endif
