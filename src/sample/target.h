/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - one process that is sampled.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * A waiting sample, a running sample and a CPU sample, from tick to profile;
 * each file calls only files further right:
 *
 *   sampler - target - sample_thread - wait_sample - stack_walk, wait_queue
 *                    - stop_window - stack_walk, wait_queue or record
 *                    - cpu_samples - stack_walk, record
 *   books (which all that look at a thread keep)
 *                    - record (queued waits) - wait_object, block_waits, lock_holders
 */
#ifndef WP_TARGET_H
#define WP_TARGET_H

#include "address_space.h"
#include "common.h"
#include "pause.h"
#include "perf_source.h"
#include "stop_request.h"
#include "stop_together.h"
#include "wait_queue.h"
#include "wallprof/fdinfo.h"
#include "wallprof/sampler.h"

struct wp_target {
	/* Borrowed. */
	struct wp_sampler *loop;
	struct wp_process *process;
	struct wp_profile *profile;
	struct wp_common *common;
	/* Index of the profile's processes. */
	uint32_t index;

	/* The process has no thread left. */
	bool gone;
	/* Its samples are to be dropped: then it counts as gone. */
	bool forgotten;
	/* The process was held before it executed its program when it was added:
	 * it had one thread. */
	bool held;
	/* When its recording began, and when its last tick began. */
	uint64_t start_ns;
	uint64_t last_tick_ns;
	/* Ticks stand for the time up to here. */
	uint64_t region_end_ns;
	/* Number of the tick at hand: the first tick of this target is 1. */
	uint64_t tick;
	/* Ticks read threads; otherwise only CPU samples are wanted. */
	bool samples_threads;
	/* Wall-clock samples of running threads are wanted. */
	bool wants_running;

	struct wp_address_space space;
	/* Durations of its stops, and their budget. */
	struct wp_pauses pauses;
	struct wp_fdinfo fdinfo;

	/* threads[0..nthreads) by tid; each owned. */
	struct wp_thread **threads;
	size_t nthreads, cap_threads;
	/* Threads that have ended in this tick, and whose time is to be paid at its end:
	 * ended[0..nended); each owned. */
	struct wp_thread **ended;
	size_t nended, cap_ended;
	/* Threads that are watched now, and threads there have been. */
	size_t nwatched;
	uint64_t nserials;
	/* As they were listed last: when, and the CPU time that it took. */
	struct wp_tids tids;
	uint64_t listed_ns;
	uint64_t list_cost_ns;
	/* Threads are taken to end and begin until this tick. */
	uint64_t churn_until;
	/* Threads to look at in the next tick, whatever the scan says, by tid; and those
	 * of the tick before. */
	struct wp_tids restless, was_restless;
	/* All threads are to be looked at: one has not been yet. */
	bool has_new;
	/* The last tick whose looks are over, when it was, and the end of its region:
	 * threads of which it is known that they did not move are paid up to then when
	 * that is asked for. */
	struct wp_tick_over {
		uint64_t tick, tick_ns, region_end_ns;
	} over;
	/* No memory for a payment. */
	bool no_memory;

	struct wp_stop_requests stop_requests;
	struct wp_stop_together together;
	struct wp_wait_queue wait_queue;

	/* CPU samples, of OWN_EVENTS or of the loop's for all processes; no events are
	 * open where they are not asked for or not permitted. */
	struct wp_perf_source own_events;
	struct wp_perf_source *cpu_events;
	/* Records that OWN_EVENTS have lost, as they are counted. */
	uint64_t cpu_lost;
	/* Times that threads were put on a CPU since SWITCHES_NS. */
	uint64_t switches;
	uint64_t switches_ns;
	/* NULL when the profile is not asked for; COMMON's, and owned. */
	struct wp_block_waits *block_waits;
	struct wp_lock_holders *lock_holders;
	struct wp_thread_starts *thread_starts;
	struct wp_heap_samples *heap_samples;
	/* NULL: its threads are recorded; owned.  It is not a Go program; both as of
	 * exec GO_EXECS; when that is next looked at. */
	struct wp_goroutine_times *goroutines;
	bool go_is_none;
	uint32_t go_execs;
	uint64_t go_retry_ns;
	/* It has books of Go's, as of exec GO_BOOKS_EXECS, until GO_BOOKS_NS
	 * (CLOCK_MONOTONIC). */
	bool has_go_books;
	uint32_t go_books_execs;
	uint64_t go_books_ns;
};

/* Make a target of PROCESS in LOOP, and record the threads that it starts, if that is
 * asked for.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_target_new(struct wp_target **ret, struct wp_sampler *loop,
		  struct wp_process *process, struct wp_profile *profile,
		  bool held);
/* Begin all else.  Returns, and ERR says, what they do of wp_sampler_add_target. */
WP_MUST_CHECK
int wp_target_begin(struct wp_target *target, struct wp_err *err);
/* TARGET, which has begun, is a process that started at SINCE_NS: all that it has done
 * is recorded. */
void wp_target_begin_born(struct wp_target *target, uint64_t since_ns);
/* TARGET's process is called NAME now. */
void wp_target_rename(struct wp_target *target, const char *name);
/* Accepts NULL. */
void wp_target_free(struct wp_target *target);

/* Begin a tick: list the threads, take what perf events recorded since the last
 * tick but for CPU samples.  0, -ESRCH when the process has no thread left,
 * -ENOMEM. */
WP_MUST_CHECK
int wp_target_begin_tick(struct wp_target *target);

/* The rest of the tick, after the loop's BPF scan: sample each thread, make the
 * stops.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_target_sample(struct wp_target *target);

/* End the tick: take the CPU samples since the last one, and at last let go of the
 * threads that have ended.  Each sample takes long, and most are of threads that ran
 * just now: looks that came after them would meet these threads where they go on to, too
 * often.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_target_end_tick(struct wp_target *target);

/* Take the stop of TRACEE, a thread of some target.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_target_take_stop(struct wp_tracee *tracee);

/* Before records of CPU samples are taken: give up late stops, record the waits that
 * are queued.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_target_settle(struct wp_target *target);

/* After the last tick: give up stops that have not come.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_target_end_stops(struct wp_target *target);

/* After that, once: pay all time up to the last tick.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_target_finish(struct wp_target *target);

#endif
