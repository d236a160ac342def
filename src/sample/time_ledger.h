/* SPDX-License-Identifier: Apache-2.0 */
/* time_ledger.h - the wall time of one thread: the scheduler's books of it, what
 * is paid and what is owed.
 *
 * Layer: sample.  Private to src/sample/.  Pure: reads no /proc, no clock and no
 * profile.
 *
 * schedstat tells how long the thread has run, and how long it has waited for a CPU;
 * the rest of the time that it is watched it waited for something.  Each nanosecond
 * is in one of three places:
 *
 *   ahead      later than the last look
 *   owed       running, runnable or waiting, but no stack has come for it yet
 *   paid       handed out by a function called pay, to be added to the profile
 *
 * No function loses a nanosecond or hands one out twice, whatever schedstat says:
 * it may stand still, jump, or go back (another thread with the same tid).  Only
 * wp_time_ledger_skip drops time.
 *
 * The kernel tells late: run time at its ticks and when the thread leaves its CPU,
 * a wait for a CPU when it ends.  What it has not told yet is owed as waiting, and
 * paid only when the thread is found waiting, when all has been told.  It can tell too
 * much: since Linux 6.12, time that a thread slept after it was moved to another CPU
 * while its dequeue was delayed is told as a wait for a CPU (kernel/sched/stats.h,
 * sched_info_enqueue); no more of that is believed than looks leave room for.
 *
 * A look stands for a region of time that was fixed before the look was drawn from
 * it at random (a stratum of ticks); region_ns has its length, which is
 * the weight of what the look found beside other looks.
 *
 * The ledger also keeps what goes with that time: looks without a stack, CPU samples
 * without a stack, and time that others waited for a lock which the thread held.
 */
#ifndef WP_TIME_LEDGER_H
#define WP_TIME_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "wallprof/procfs.h"
#include "wallprof/types.h"

/* Which stacks a CPU sample is like whose own goes on where it was not copied.
 */
enum wp_aside_kind {
	/* Those that are longer than a sample's copy. */
	WP_ASIDE_DEEP,
	/* Those on two stacks, the first of which is of a file's code; or of other
	 * code. */
	WP_ASIDE_FILE,
	WP_ASIDE_CODE,
	WP_NASIDES,
};

struct wp_time_ledger {
	/* When the thread was looked at last: all time before is paid or owed. */
	uint64_t accounted_ns;
	/* Time before that in which the thread was not watched, and of which
	 * the profile's timeline has not been told. */
	uint64_t unwatched_ns;
	/* schedstat at the last look; valid if HAS_BASE. */
	struct wp_schedstat base;
	bool has_base;
	/* Number of looks since the thread is watched. */
	uint64_t looks;
	/* End of the last look's region, and its length. */
	uint64_t region_end_ns;
	uint64_t region_ns;
	/* The last look found it ready to run. */
	bool ready;
	/* The first look since which the thread was ready to run at each and
	 * BASE stood still; 0: none, or the last one found it waiting. */
	uint64_t still_since_ns;
	/* What has been owed as runnable since then. */
	uint64_t still_owed_ns;

	/* Time owed.  WAITING_NS: and what the kernel has not told yet. */
	uint64_t running_ns;
	uint64_t runnable_ns;
	uint64_t waiting_ns;
	/* Paid by wp_time_ledger_pay_same for the last wait, and how much of that is owed
	 * as something else, and to be taken back. */
	uint64_t same_ns;
	uint64_t overpaid_ns;
	/* The part of RUNNING_NS that the last look, the first one, gave it for
	 * what it found. */
	uint64_t first_ns;
	/* Running and runnable time that was owed before the kernel told it. */
	uint64_t running_early_ns;
	uint64_t runnable_early_ns;
	/* The part of WAITING_NS that the kernel may yet tell to be running or
	 * runnable. */
	uint64_t untold_ns;
	/* Run time that was told of and is not of the time watched, less what was
	 * told before and is no longer, modulo 2^64: see execve(2). */
	uint64_t run_refused_ns;
	/* All running, all runnable time, and all that was ever watched. */
	uint64_t all_running_ns;
	uint64_t all_runnable_ns;
	uint64_t all_ns;
	/* Looks that found it ready to run and have no stack yet, and what they stand
	 * for. */
	uint64_t count;
	uint64_t weight_ns;
	/* CPU samples that have no stack yet. */
	uint64_t cpu_count;
	uint64_t cpu_ns;
	/* Owed for a stack of a kind. */
	struct wp_time_aside {
		uint64_t running_ns;
		uint64_t runnable_ns;
		uint64_t count;
		uint64_t weight_ns;
		uint64_t cpu_count;
		uint64_t cpu_ns;
	} aside[WP_NASIDES];
	/* What CPU samples have told of in all, and run time that none has told of;
	 * and that since the last one. */
	uint64_t sampled_ns;
	int64_t unsampled_ns;
	int64_t silent_ns;
	/* Run time since wp_time_ledger_stop_unsampled was called last, and how much was
	 * unsampled when that was known not to be by chance; 0: it is not. */
	int64_t since_stop_ns;
	uint64_t backlog_ns;
	/* Waits of others for locks that the thread held. */
	uint64_t lock_count;
	uint64_t lock_ns;

	/* Run time before the thread's entry in the profile began; valid if
	 * RUN_IS_KNOWN. */
	uint64_t run_before_ns;
	/* Run time that has been added to the entry, and when schedstat told of it last. */
	uint64_t run_ns;
	uint64_t told_ns;
	/* How much of it only CPU samples have told of since. */
	uint64_t guessed_ns;
	/* schedstat's slices at the last wp_time_ledger_count_run. */
	uint64_t slices;
	bool run_is_known;
	/* Not all that it has run since it began is the entry's. */
	bool was_skipped;
};

/* Samples and their time. */
struct wp_payment {
	uint64_t count;
	uint64_t ns;
};

/* The thread is watched from SINCE_NS on, where its first look's region begins.
 * BORN: it began since then, so that schedstat tells its whole life. */
void wp_time_ledger_init(struct wp_time_ledger *ledger, uint64_t since_ns,
			 bool born);

/* NS, a part of all time, are not in the scheduler's books, and only NWAITING looks found the
 * thread waiting, the others ready to run: was it held up, by stops that took STOPPED_NS in
 * all, by the host of a virtual machine, or in a queue of which the kernel has not told
 * yet?  Otherwise it may have waited: so long a wait can be missed by so many looks. */
bool wp_time_ledger_was_held_up(const struct wp_time_ledger *ledger,
				uint64_t ns, uint64_t stopped_ns,
				uint64_t nwaiting);

/* Drop the time up to NOW_NS, and what was run in it: the thread was not watched. */
void wp_time_ledger_skip(struct wp_time_ledger *ledger, uint64_t now_ns);

/* Has the thread been on a CPU between A and B? */
static inline bool wp_time_ledger_differs(const struct wp_schedstat *a,
					  const struct wp_schedstat *b)
{
	return a->run_ns != b->run_ns || a->slices != b->slices;
}

/* Has the thread been on a CPU since its last look, by schedstat NOW? */
static inline bool wp_time_ledger_has_run(const struct wp_time_ledger *ledger,
					  const struct wp_schedstat *now)
{
	return wp_time_ledger_differs(&ledger->base, now);
}

/* A look at NOW_NS with schedstat NOW finds the thread READY to run, or else
 * waiting: all time up to then is owed.  REGION_END_NS: end of its region. */
void wp_time_ledger_look(struct wp_time_ledger *ledger,
			 const struct wp_schedstat *now, uint64_t now_ns,
			 uint64_t region_end_ns, bool ready);

/* The same where schedstat tells nothing: all time goes to what the look found. */
void wp_time_ledger_look_blind(struct wp_time_ledger *ledger, uint64_t now_ns,
			       uint64_t region_end_ns, bool ready);

/* The stop that a look asked for found the thread waiting. */
void wp_time_ledger_found_waiting(struct wp_time_ledger *ledger);

/* Schedstat was NOW at NOW_NS, between two looks (after a stop). */
void wp_time_ledger_read(struct wp_time_ledger *ledger,
			 const struct wp_schedstat *now, uint64_t now_ns);

/* A look at NOW_NS finds what the last look found, a wait, and schedstat as it was:
 * the time since then, all of it in that wait, is paid.  *RET_LEFT_NS: by how much
 * less the last look stands for, as that is known now; *RET_WEIGHT_NS: what this
 * one stands for. */
uint64_t wp_time_ledger_pay_same(struct wp_time_ledger *ledger, uint64_t now_ns,
				 uint64_t region_end_ns, uint64_t *ret_left_ns,
				 uint64_t *ret_weight_ns);

/* How much of what wp_time_ledger_pay_same paid was a wait for a CPU, as is known
 * now: the caller takes it from the wait that it was paid to. */
uint64_t wp_time_ledger_take_back(struct wp_time_ledger *ledger);

/* Pay what is owed as waiting to the wait that the last look found. */
uint64_t wp_time_ledger_pay_wait(struct wp_time_ledger *ledger);

/* Is the thread known to wait for a CPU, by its last looks? */
bool wp_time_ledger_waits_for_cpu(const struct wp_time_ledger *ledger);

/* Pay what is owed as running, but KEEP_NS if it is more than that, and as
 * runnable. */
uint64_t wp_time_ledger_pay_running(struct wp_time_ledger *ledger,
				    uint64_t keep_ns);
uint64_t wp_time_ledger_pay_runnable(struct wp_time_ledger *ledger);
/* Drop what is owed as running and runnable: it is not wanted. */
static inline void wp_time_ledger_drop_ready(struct wp_time_ledger *ledger)
{
	ledger->running_ns = ledger->runnable_ns = 0;
}

/* A look, which stands for WEIGHT_NS, found the thread ready to run and has no stack
 * yet; pay all such looks, with what they stand for. */
void wp_time_ledger_owe_look(struct wp_time_ledger *ledger, uint64_t weight_ns);
struct wp_payment wp_time_ledger_pay_looks(struct wp_time_ledger *ledger);

/* The thread or the recording has ended.  What the kernel has not told of a thread
 * that is ready to run is shared out as its time so far was: returns how much of it
 * as running.  ENDED: the thread has, and had the rest of its last look's region in
 * the state of that look; of being ready it ran as much as before. */
uint64_t wp_time_ledger_close(struct wp_time_ledger *ledger, bool ended);

/* Is any time but waiting, any CPU sample, or any wait of others owed? */
static inline bool wp_time_ledger_owes(const struct wp_time_ledger *ledger)
{
	return ledger->running_ns || ledger->runnable_ns || ledger->count ||
	       ledger->cpu_count || ledger->lock_ns || ledger->lock_count;
}

/* How much of the run time no CPU sample covers: 0 while that may be by chance, where a
 * sample comes each INTERVAL_NS of run time on each of NCPUS. */
uint64_t wp_time_ledger_unsampled(const struct wp_time_ledger *ledger,
				  uint64_t interval_ns, size_t ncpus);

/* A stop has found the thread running, and NS are unsampled: returns how much of the run
 * time that stop stands for, all since the last one, or INTERVAL_NS if that is not known. */
uint64_t wp_time_ledger_stop_unsampled(struct wp_time_ledger *ledger,
				       uint64_t ns, uint64_t interval_ns);

/* Owe NS of it as a CPU sample for the next stack; what is unsampled from then on is not by
 * chance. */
void wp_time_ledger_owe_unsampled(struct wp_time_ledger *ledger, uint64_t ns);

/* Has it run through many INTERVALs since its last CPU sample? */
bool wp_time_ledger_is_silent(const struct wp_time_ledger *ledger,
			      uint64_t interval_ns);

/* Has the thread run through many INTERVALs without a CPU sample?  Then its perf
 * event is lost, as an exec of a set-user-ID program ends it, and where the
 * thread ran is not known. */
bool wp_time_ledger_lost_event(const struct wp_time_ledger *ledger,
			       uint64_t interval_ns);

/* A CPU sample of PERIOD_NS lacks its stack; pay all such samples. */
void wp_time_ledger_owe_cpu(struct wp_time_ledger *ledger, uint64_t period_ns);
struct wp_payment wp_time_ledger_pay_cpu(struct wp_time_ledger *ledger);

/* Set aside what is owed as running and runnable (but for 1 ns, as other
 * samples may have come with this one) and all CPU samples for a stack of KIND,
 * as the next may be of another; and owe it again, as one of KIND has come. */
void wp_time_ledger_set_aside(struct wp_time_ledger *ledger,
			      enum wp_aside_kind kind);
void wp_time_ledger_take_aside(struct wp_time_ledger *ledger,
			       enum wp_aside_kind kind);

/* Others waited NS for locks of the thread, COUNT of them for the first time;
 * pay all such waits. */
void wp_time_ledger_owe_lock(struct wp_time_ledger *ledger, uint64_t count,
			     uint64_t ns);
struct wp_payment wp_time_ledger_pay_lock(struct wp_time_ledger *ledger);

/* The run time to add to the thread's entry in the profile, modulo 2^64 (CPU
 * samples may have told more), by schedstat NOW.  FROM_BIRTH: the thread began
 * during the recording; otherwise what NOW says at the first call was before it, as
 * it was at the first after wp_time_ledger_skip.
 * *RET_SLICES: times the thread was put on a CPU since the last call. */
uint64_t wp_time_ledger_count_run(struct wp_time_ledger *ledger,
				  const struct wp_schedstat *now,
				  bool from_birth, uint64_t *ret_slices);

/* A CPU sample told of NS of run time, which the caller adds to the entry. */
void wp_time_ledger_add_run(struct wp_time_ledger *ledger, uint64_t ns);

/* The thread goes on in another entry of the profile. */
static inline void wp_time_ledger_begin_entry(struct wp_time_ledger *ledger)
{
	ledger->run_before_ns += ledger->run_ns;
	ledger->run_ns = ledger->guessed_ns = 0;
}

#endif
