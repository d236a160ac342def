/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h - sample all threads of a process by wall clock.
 *
 * Layer: sample.
 *
 * One tick looks at every thread: has it run since, is it waiting, is its stack
 * known from its wait site, and only then is it stopped.  Threads that could
 * not be stopped at once are sampled when their stop arrives, in the time
 * until the next tick.
 */
#ifndef WP_SAMPLER_H
#define WP_SAMPLER_H

#include "wallprof/block_weight.h"
#include "wallprof/elf_image.h"
#include "wallprof/err.h"
#include "wallprof/process.h"
#include "wallprof/profile.h"
#include "wallprof/tracer.h"
#include "wallprof/unwind.h"

#define WP_STOP_MODES(X)                                                       \
	X(AUTO, "auto")                                                        \
	X(ALL, "all")                                                          \
	X(NEVER, "never")

enum wp_stop_mode {
#define X(name, text) WP_STOP_##name,
	WP_STOP_MODES(X)
#undef X
		WP_NSTOP_MODES
};

const char *wp_stop_mode_name(enum wp_stop_mode mode);

/* How threads are asked whether they have run. */
enum wp_scan_mode {
	/* All at once by BPF where it may be had and there are many, or where a
	 * stack wants registers that /proc does not tell. */
	WP_SCAN_AUTO,
	/* All at once in any case. */
	WP_SCAN_BPF,
	/* One by one. */
	WP_SCAN_PROC,
	WP_NSCAN_MODES
};

struct wp_sampler_options {
	/* Take wall-clock samples, and CPU samples. */
	bool wall;
	bool cpu;
	/* Waits; who holds what is waited for; threads that start. */
	bool block;
	bool mutex;
	bool thread_starts;
	struct wp_block_rate block_rate;
	uint64_t interval_ns;
	enum wp_stop_mode stop;
	enum wp_scan_mode scan;
	/* Share of wall time that all stops together may cost the target:
	 * 0.01 is 1 %.  0: no limit. */
	double max_stopped;
	uint32_t max_depth;
	/* So many threads are told apart; those that come later share by name,
	 * so that memory is bounded.  0: all. */
	uint32_t own_threads;
	/* Only threads whose name matches (fnmatch(3)); NULL: all.  Borrowed. */
	const char *thread_glob;
	/* Add the kernel's stack of waiting threads. */
	bool kernel;
	enum wp_unwind_backend backend;
};

struct wp_sampler;

/* Make a sampler of PROCESS that fills PROFILE and stops by TRACER; all three
 * are borrowed for its life.  0, -ENOMEM, -ESRCH or -EPERM.
 */
WP_MUST_CHECK
int wp_sampler_new(struct wp_sampler **ret, struct wp_process *process,
		   struct wp_profile *profile, struct wp_tracer *tracer,
		   const struct wp_sampler_options *options,
		   struct wp_err *err);

/* Deadline of the next tick: the ticks before it that are over by NOW_NS are
 * counted as missed. */
uint64_t wp_sampler_next_tick(struct wp_sampler *sampler, uint64_t now_ns);

/* Sleep until UNTIL_NS, a signal, or the end of the tracer's child, or not so
 * long, taking samples of threads whose stops arrive.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_sampler_sleep(struct wp_sampler *sampler, uint64_t until_ns);

/* Look at every thread once.  0; -ESRCH when the process has no thread left;
 * -ENOMEM. */
WP_MUST_CHECK
int wp_sampler_tick(struct wp_sampler *sampler);

/* One look that is all there is: a tick, late stops taken or given up, nothing
 * held any more, the profile's counters filled.  0, -ESRCH, -ENOMEM. */
WP_MUST_CHECK
int wp_sampler_look(struct wp_sampler *sampler);

/* What the last look at a thread gave beside its sample. */
struct wp_thread_view {
	pid_t tid;
	/* Index in the profile's threads. */
	uint32_t index;
	/* The call it is in and its arguments; -1: none. */
	long syscall_nr;
	uint64_t args[6];
	/* Times it had been put on a CPU, before any stop of ours. */
	uint64_t slices;
};

void wp_sampler_each_thread(const struct wp_sampler *sampler,
			    void (*each)(void *ctx,
					 const struct wp_thread_view *view),
			    void *ctx);

/* The last look: account for time up to now, hold nothing any more, fill the
 * profile's counters.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_sampler_finish(struct wp_sampler *sampler);

/* Threads watched at the moment. */
size_t wp_sampler_count_threads(const struct wp_sampler *sampler);

/* Accepts NULL. */
void wp_sampler_free(struct wp_sampler *sampler);

#endif
