/* SPDX-License-Identifier: Apache-2.0 */
/* time_ledger.h - the wall time of one thread: what is paid and what is owed.
 *
 * Layer: sample.  Private to src/sample/.  Pure: reads no /proc, no clock and no
 * profile.
 *
 * From the moment that a thread is watched, each nanosecond of it is in one of
 * four places:
 *
 *   ahead      later than the last sample accounted for
 *   owed       ready to run, but no stack has come for it yet: running,
 *              runnable, or undecided between the two
 *   set aside  promised to the stack of a stop that was requested
 *   paid       handed out by a function called pay, to be added to the profile
 *
 * No function loses a nanosecond or hands one out twice, whatever schedstat
 * says: it may stand still, jump, or go back (another thread with the same tid).
 * Only wp_time_ledger_skip and wp_time_ledger_skip_running drop time.
 *
 * The ledger also keeps what goes with that time: samples not taken, CPU samples
 * without a stack, and time that others waited for a lock which the thread held.
 */
#ifndef WP_TIME_LEDGER_H
#define WP_TIME_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "wallprof/procfs.h"
#include "wallprof/types.h"

struct wp_time_ledger {
	/* All time before this is paid, owed or set aside. */
	uint64_t accounted_ns;
	/* Time before that in which the thread was not watched, and of which
	 * the profile's timeline has not been told. */
	uint64_t unwatched_ns;
	/* schedstat at the end of the last sample, and its time. */
	struct wp_schedstat base;
	uint64_t base_ns;
	/* schedstat when time was last divided between running and runnable,
	 * and the time since that was called runnable without dividing. */
	struct wp_schedstat divided;
	uint64_t called_runnable_ns;

	/* Time owed, and the samples not taken in it. */
	uint64_t running_ns;
	uint64_t runnable_ns;
	uint64_t undecided_ns;
	uint64_t count;
	/* Time set aside for a stop. */
	uint64_t stop_running_ns;
	uint64_t stop_runnable_ns;
	/* CPU samples whose stack copy was cut: a ptrace stop supplies the
	 * stack. */
	uint64_t cpu_count;
	uint64_t cpu_ns;
	/* Waits of others for locks that the thread held. */
	uint64_t lock_count;
	uint64_t lock_ns;

	/* Run time before the thread's entry in the profile began; valid if
	 * RUN_IS_KNOWN. */
	uint64_t run_before_ns;
	/* Run time that has been added to the entry. */
	uint64_t run_ns;
	/* schedstat's slices at the last wp_time_ledger_count_run. */
	uint64_t slices;
	bool run_is_known;
};

/* Samples and their time. */
struct wp_payment {
	uint64_t count;
	uint64_t ns;
};

/* What goes to a stack in state running, and to the same in state runnable. */
struct wp_payments {
	struct wp_payment running;
	struct wp_payment runnable;
};

/* The thread is watched from SINCE_NS on. */
void wp_time_ledger_init(struct wp_time_ledger *ledger, uint64_t since_ns);

/* Drop the time up to NOW_NS: the thread was not watched. */
void wp_time_ledger_skip(struct wp_time_ledger *ledger, uint64_t now_ns);

/* The same of a thread that ran, with schedstat NOW, in a recording that wants
 * no running time. */
void wp_time_ledger_skip_running(struct wp_time_ledger *ledger,
				 const struct wp_schedstat *now,
				 uint64_t now_ns);

/* Has the thread been on a CPU between A and B? */
static inline bool wp_time_ledger_differs(const struct wp_schedstat *a,
					  const struct wp_schedstat *b)
{
	return a->run_ns != b->run_ns || a->slices != b->slices;
}

/* Has the thread been on a CPU since its last sample, by schedstat NOW? */
static inline bool wp_time_ledger_has_run(const struct wp_time_ledger *ledger,
					  const struct wp_schedstat *now)
{
	return wp_time_ledger_differs(&ledger->base, now);
}

/* Has the thread been ready to run, and not run, for so long that it is known to
 * wait for a CPU? */
bool wp_time_ledger_waits_for_cpu(const struct wp_time_ledger *ledger,
				  const struct wp_schedstat *now,
				  uint64_t now_ns);

/* A sample ends with schedstat NOW at NOW_NS. */
void wp_time_ledger_end_sample(struct wp_time_ledger *ledger,
			       const struct wp_schedstat *now, uint64_t now_ns);

/* The thread was found waiting with schedstat NOW: undecided time is divided. */
void wp_time_ledger_found_waiting(struct wp_time_ledger *ledger,
				  const struct wp_schedstat *now);

/* Account for the time up to NOW_NS: the caller pays it to a waiting stack. */
uint64_t wp_time_ledger_pay_wait(struct wp_time_ledger *ledger,
				 uint64_t now_ns);

/* Account for the time up to NOW_NS of a thread that is ready to run: owed as
 * undecided to the next CPU sample; divided once schedstat NOW shows that the
 * thread has run, runnable once that is known. */
void wp_time_ledger_owe_ready(struct wp_time_ledger *ledger,
			      const struct wp_schedstat *now, uint64_t now_ns);

/* Account for the time up to NOW_NS, in which the thread waited for a CPU. */
void wp_time_ledger_owe_runnable(struct wp_time_ledger *ledger,
				 uint64_t now_ns);

/* Account for the time up to NOW_NS of a thread that is ready to run, with
 * schedstat NOW, and set it aside for a stop together with undecided time. */
void wp_time_ledger_set_aside(struct wp_time_ledger *ledger,
			      const struct wp_schedstat *now, uint64_t now_ns);

/* The same of a thread that waits and is stopped for its registers. */
void wp_time_ledger_set_aside_wait(struct wp_time_ledger *ledger,
				   uint64_t now_ns);

/* No stop came: what was set aside is owed, as one sample not taken. */
void wp_time_ledger_owe_stop(struct wp_time_ledger *ledger);

/* The stop found the thread waiting: what was set aside goes to that stack. */
uint64_t wp_time_ledger_pay_stop(struct wp_time_ledger *ledger);

/* A stack came of a thread in STATE (running or runnable): what is owed in STATE,
 * what was set aside included, goes to it, with this sample and all samples not
 * taken.  Time in the other state stays owed. */
struct wp_payment wp_time_ledger_pay(struct wp_time_ledger *ledger,
				     enum wp_state state);

/* Pay all owed time but undecided.  The samples not taken go to the state with
 * more time. */
struct wp_payments wp_time_ledger_pay_all(struct wp_time_ledger *ledger);

/* Account for the time up to UNTIL_NS, if it is not: the thread waited for a
 * CPU. */
void wp_time_ledger_owe_rest(struct wp_time_ledger *ledger, uint64_t until_ns);

/* The thread or the recording has ended: undecided time was runnable, and what
 * was set aside is owed. */
void wp_time_ledger_close(struct wp_time_ledger *ledger);

/* Is any time, or any CPU sample, owed? */
static inline bool wp_time_ledger_owes(const struct wp_time_ledger *ledger)
{
	return ledger->running_ns || ledger->runnable_ns || ledger->cpu_count;
}

/* Has the thread run through many INTERVALs without a CPU sample?  Then its perf
 * event is lost, as an exec of a set-user-ID program ends it, and where the
 * thread ran is not known. */
bool wp_time_ledger_lost_event(const struct wp_time_ledger *ledger,
			       uint64_t interval_ns);

/* A CPU sample of PERIOD_NS lacks its stack; pay all such samples. */
void wp_time_ledger_owe_cpu(struct wp_time_ledger *ledger, uint64_t period_ns);
struct wp_payment wp_time_ledger_pay_cpu(struct wp_time_ledger *ledger);

/* Others waited NS for locks of the thread, COUNT of them for the first time;
 * pay all such waits. */
void wp_time_ledger_owe_lock(struct wp_time_ledger *ledger, uint64_t count,
			     uint64_t ns);
struct wp_payment wp_time_ledger_pay_lock(struct wp_time_ledger *ledger);

/* The run time to add to the thread's entry in the profile, modulo 2^64 (CPU
 * samples may have told more), by schedstat NOW.  FROM_BIRTH: the thread began
 * during the recording; otherwise what NOW says at the first call was before it.
 * *RET_SLICES: times the thread was put on a CPU since the last call. */
uint64_t wp_time_ledger_count_run(struct wp_time_ledger *ledger,
				  const struct wp_schedstat *now,
				  bool from_birth, uint64_t *ret_slices);

/* A CPU sample told of NS of run time, which the caller adds to the entry. */
void wp_time_ledger_add_run(struct wp_time_ledger *ledger, uint64_t ns);

/* The thread goes on in another entry of the profile. */
void wp_time_ledger_begin_entry(struct wp_time_ledger *ledger);

#endif
