/* look.h - one look at the threads of some processes, as a dump.
 *
 * Layer: main.
 */
#ifndef WP_LOOK_H
#define WP_LOOK_H

#include <signal.h>

#include "wallprof/dump.h"
#include "wallprof/fdinfo.h"
#include "wallprof/process.h"
#include "wallprof/profile.h"
#include "wallprof/sampler.h"
#include "wallprof/sched.h"

/* A thread's number in the target's own PID namespace, and in ours. */
struct wp_own_tid {
	pid_t own;
	pid_t tid;
};

/* A process that was looked at, held open until the looks are cleared. */
struct wp_look {
	struct wp_process process;
	struct wp_fdinfo fdinfo;
	/* How many PID namespaces it is below ours. */
	int level;
	/* Its threads, made when LEVEL is not 0 and one is asked for:
	 * own_tids[0..nown_tids), owned. */
	struct wp_own_tid *own_tids;
	size_t nown_tids;
};

struct wp_looks {
	struct wp_dump dump;
	/* v[i] is of dump.processes[i]; each owned. */
	struct wp_look **v;
	uint32_t cap;
	struct wp_sched_clock clock;
	/* Borrowed. */
	const struct wp_sampler_options *options;
	/* Stop threads of peers that run, too: else those have no stack. */
	bool stop_peers;
	/* Over 1: no names any more, only addresses. */
	const volatile sig_atomic_t *hurry;
	/* Addresses that a failure left without a name, in all looks. */
	uint64_t nunnamed;
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
int wp_looks_add(struct wp_looks *looks, pid_t pid, bool peer,
		 struct wp_profile *keep, struct wp_err *err);

/* Put into *RET what call THREAD of PROCESS sleeps in, with its arguments;
 * OBJECT: what a descriptor among them is, "" if there is none.  A string id
 * of DUMP's; 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_look_call(uint32_t *ret, struct wp_dump *dump, struct wp_look *look,
		 const struct wp_dump_thread *thread, const char *object);

/* pidns.c: numbers of a target in a PID namespace of its own. */
/* Set LOOK->level; its process is open. */
void wp_look_find_level(struct wp_look *look);
/* The thread that the target numbers OWN, as numbered here; 0: none. */
pid_t wp_look_thread(struct wp_look *look, pid_t own);
/* The same for a child of the process. */
pid_t wp_look_child(const struct wp_look *look, pid_t own);
/* P_PIDFD of linux/wait.h, which C libraries have only lately. */
enum { WP_LOOK_P_PIDFD = 3 };
/* The process that the target's descriptor FD, a pidfd, is of; 0: not known, or
 * it has been waited for. */
pid_t wp_look_pidfd(const struct wp_look *look, int fd);

/* Add the edges that lead over pipes, unix sockets, file locks and children,
 * and look at the processes where they lead to.  Bounded in processes and time.
 * 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_looks_follow(struct wp_looks *looks);

/* After all looks: a thread that has run since it was looked at is marked
 * open_ended, since what it waited for is over.  All others were waiting at one
 * moment: when the last look began. */
void wp_looks_settle(struct wp_looks *looks);

void wp_looks_clear(struct wp_looks *looks);

#endif
