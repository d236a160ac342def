/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h - sample the threads of processes at ticks.
 *
 * Layer: sample.
 *
 * A sampler is a loop over targets.  A target is one process with the profile
 * that its samples go to, which may be the same for several.  All targets share the
 * ticks, the unwinder and the BPF scan; those with one profile the executable mappings
 * in it.
 */
#ifndef WP_SAMPLER_H
#define WP_SAMPLER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "wallprof/block_weight.h"
#include "wallprof/call_memory.h"
#include "wallprof/err.h"
#include "wallprof/heap_probe.h"
#include "wallprof/perf.h"
#include "wallprof/process.h"
#include "wallprof/procfs.h"
#include "wallprof/profile.h"
#include "wallprof/renumber.h"
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

/* How the sampler learns which threads have run since the last tick. */
enum wp_scan_mode {
	/* BPF scan where it is permitted and there are many threads, or where
	 * a stack needs registers that /proc/TID/syscall does not show;
	 * otherwise one read of schedstat per thread. */
	WP_SCAN_AUTO,
	/* BPF scan, however few threads there are. */
	WP_SCAN_BPF,
	/* One read of schedstat per thread. */
	WP_SCAN_PROC,
	/* BPF scan of those threads only that were put on a CPU since the last tick, as a
	 * program at each context switch notes. */
	WP_SCAN_SWITCHES,
	WP_NSCAN_MODES
};

enum { WP_THREAD_GLOBS_MAX = 16 };

/* Called in a tick, in order of time, with a record FORK of a process that has started,
 * EXIT of one whose first thread has ended, or NAME. */
struct wp_task_watch {
	void (*tell)(void *ctx, const struct wp_perf_record *record);
	void *ctx;
};

struct wp_sampler_options {
	/* Take wall-clock samples; take CPU samples. */
	bool wall;
	bool cpu;
	/* The set of the profile that wall-clock samples are added to: WALL, or
	 * THREADS for a dump. */
	enum wp_profile_kind wall_kind;
	/* Record the goroutines of Go programs in place of their threads; with an
	 * entry of the profile for each. */
	bool goroutines;
	bool goroutine_ids;
	/* Fill the profile's sets BLOCK, WAKE, MUTEX and THREADCREATE. */
	bool block;
	bool wake;
	bool mutex;
	bool thread_starts;
	/* Fill HEAP: one sample for so many bytes allocated, on average, at no more
	 * than this share of the time of the target's threads (0.05 is 5 %; of
	 * one CPU, if they run for less); HEAP_ANYWAY: whatever it costs. */
	bool heap;
	size_t heap_rate;
	double max_overhead;
	bool heap_anyway;
	/* Only memory that the kernel gives: mmap, brk; of at least so many bytes at a
	 * time. */
	bool heap_large;
	size_t heap_least;
	/* No allocation is seen: what glibc's malloc holds is counted at the beginning
	 * and at the end. */
	bool heap_census;
	/* Only what was allocated in the recording's first half is in use: what
	 * lives for a short time only is no leak. */
	bool heap_leaks;
	enum wp_heap_tier heap_tier;
	/* Note in the timeline which thread holds the lock that one waits for. */
	bool note_holders;
	struct wp_block_rate block_rate;
	/* Time between two ticks, and CPU time between two CPU samples. */
	uint64_t interval_ns;
	enum wp_stop_mode stop;
	enum wp_scan_mode scan;
	/* Share of wall time that all stops of a target may take together: 0.01
	 * is 1 %; 0: no limit. */
	double max_stopped;
	/* Share of one core that sampling may take: past it ticks, and CPU samples,
	 * are fewer, and stand for more; 0: no limit. */
	double max_cpu;
	/* Most frames of a stack. */
	uint32_t max_depth;
	/* Most threads with an entry of their own in the profile; later threads
	 * share an entry per name, which bounds memory.  0: no limit. */
	uint32_t own_threads;
	/* Only threads are watched whose name matches (fnmatch(3)) one of these,
	 * if any has no '!' before it, and none that has.  NULL: no more;
	 * borrowed. */
	const char *thread_globs[WP_THREAD_GLOBS_MAX];
	/* Add the kernel's frames to stacks. */
	bool kernel;
	/* Several processes are recorded: events of CPUs bring the CPU samples of
	 * all, where they are permitted, and WATCH is told of tasks (TELL NULL:
	 * nobody is). */
	bool many;
	struct wp_task_watch watch;
	/* Once not 0, late stops are not waited for; borrowed, may be NULL. */
	const volatile sig_atomic_t *interrupts;
	/* Copy what the arguments of the calls refer to that threads sleep in. */
	bool call_memory;
	enum wp_unwind_backend backend;
};

/* The loop, and one process in it. */
struct wp_sampler;
struct wp_target;
struct wp_maps;

/* Make a sampler without targets.  TRACER is borrowed for its life.  0 or -ENOMEM.
 * After 0 ERR may say why there are no perf events of all processes (options.many). */
WP_MUST_CHECK
int wp_sampler_new(struct wp_sampler **ret,
		   const struct wp_sampler_options *options,
		   struct wp_tracer *tracer, struct wp_err *err);

/* Before targets are added that have NTHREADS: load what they want.  That takes up to
 * 0.2 s; what is wanted later is loaded beside the ticks. */
void wp_sampler_prepare(struct wp_sampler *sampler, size_t nthreads);

/* Sample PROCESS from the next tick on, into PROFILE.  Both are borrowed for
 * the life of SAMPLER, which owns *RET.
 *
 * 0; -ENOMEM, -ESRCH, -EPERM; -EBADMSG: its memory map cannot be parsed; with
 * options.heap also the errors of wp_heap_samples_open.  ERR, not NULL, says why; after
 * 0 it may say why there are no perf events. */
WP_MUST_CHECK
int wp_sampler_add_target(struct wp_sampler *sampler,
			  struct wp_process *process,
			  struct wp_profile *profile, struct wp_target **ret,
			  struct wp_err *err);

/* The same of a PROCESS that is held before it executes a program: until
 * wp_sampler_begin, only the threads that it starts are recorded. */
WP_MUST_CHECK
int wp_sampler_add_held_target(struct wp_sampler *sampler,
			       struct wp_process *process,
			       struct wp_profile *profile,
			       struct wp_target **ret, struct wp_err *err);

/* The same of a PROCESS that started at SINCE_NS (CLOCK_MONOTONIC), while SAMPLER was
 * recording: all that it has done since is recorded. */
WP_MUST_CHECK
int wp_sampler_add_born_target(struct wp_sampler *sampler,
			       struct wp_process *process,
			       struct wp_profile *profile, uint64_t since_ns,
			       struct wp_err *err);

/* Is SAMPLER told of processes that start? */
bool wp_sampler_sees_tasks(const struct wp_sampler *sampler);

/* Records lost by which it is told. */
uint64_t wp_sampler_lost_tasks(const struct wp_sampler *sampler);

/* After the last tick of targets that have ended, once: have the profile hold all of
 * their time.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_sampler_finish_ended(struct wp_sampler *sampler);

/* Between ticks: finish the targets that have ended, and free them; ENDED is called
 * with the process of each, which is not borrowed any more.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_sampler_retire(struct wp_sampler *sampler,
		      void (*ended)(void *ctx, struct wp_process *process),
		      void *ctx);

/* PROCESS, a target's, may not be looked at any more: it is sampled no longer, and the
 * samples of it are dropped when it is let go of, or SAMPLER finishes.  The profile's
 * counters tell of it. */
void wp_sampler_forget(struct wp_sampler *sampler,
		       const struct wp_process *process);

/* TARGET was held and has executed its program: sample it from the next tick on.
 * Returns, and ERR says, what they do of wp_sampler_add_target. */
WP_MUST_CHECK
int wp_sampler_begin(struct wp_target *target, struct wp_err *err);

/* Deadline of the next tick.  Ticks before it whose interval is over by NOW_NS
 * are counted as missed. */
uint64_t wp_sampler_next_tick(struct wp_sampler *sampler, uint64_t now_ns);

/* Sleep until UNTIL_NS, a signal, or the end of the tracer's child, and take
 * samples of threads whose stops arrive meanwhile.  May return earlier.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_sampler_sleep(struct wp_sampler *sampler, uint64_t until_ns);

/* Sample every watched thread of every target.  0; -ESRCH when no target has a
 * thread left; -ENOMEM. */
WP_MUST_CHECK
int wp_sampler_tick(struct wp_sampler *sampler);

/* Make the only tick there is: sample every thread, take late stops or give
 * them up, release all tracees, fill the profiles' counters.  0, -ESRCH,
 * -ENOMEM. */
WP_MUST_CHECK
int wp_sampler_sample_once(struct wp_sampler *sampler);

/* Between ticks: have the profiles hold all time up to the last tick, also of threads that
 * were passed over since they did not move, and the number of files of which parts were
 * left out for --max-memory.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_sampler_settle(struct wp_sampler *sampler);

/* Files that are open and that no process has mapped which is recorded now. */
size_t wp_sampler_count_idle_files(const struct wp_sampler *sampler);

/* Between ticks: say to RENUMBER, of PROFILE, what SAMPLER keeps of it; or, after it has been
 * applied, go on with the new indices, and close the files that no mapping is of any
 * more.  Not of a sampler of goroutines, which keeps more.  0; -ENOMEM: SAMPLER is of
 * no use. */
WP_MUST_CHECK
int wp_sampler_renumber(struct wp_sampler *sampler, struct wp_profile *profile,
			struct wp_renumber *renumber);

/* Make the last tick: account for all time up to now, release all tracees, fill
 * the profiles' counters.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_sampler_finish(struct wp_sampler *sampler);

/* Accepts NULL. */
void wp_sampler_free(struct wp_sampler *sampler);

/* What the scheduler said of a thread when it was looked at, before any stop. */
struct wp_thread_look {
	struct wp_schedstat times;
	/* CPU that it last ran on; -1: not known. */
	int32_t cpu;
	/* That CPU's time when its wait began, in /proc/TID/sched; 0: it did not
	 * wait, or that is not known. */
	uint64_t exec_start_ns;
};

/* What the last sample of a thread found besides what the profile holds. */
struct wp_thread_view {
	pid_t tid;
	/* Index in the profile's threads. */
	uint32_t index;
	/* The system call that the thread is blocked in and its arguments; -1:
	 * none. */
	long syscall_nr;
	uint64_t args[6];
	/* Valid with the option CALL_MEMORY. */
	struct wp_thread_look look;
	/* schedstat at the sample, before any stop by wallprof; after a stop
	 * RUN_NS is UINT64_MAX, not known. */
	struct wp_schedstat times;
	/* After a stop in the wait that the sample found: how often the thread had
	 * gone to sleep before, this wait counted.  UINT64_MAX: not known. */
	uint64_t sleeps;
	/* Descriptors of its schedstat and syscall, borrowed from the sampler;
	 * negative: not kept open. */
	int schedstat_fd;
	int syscall_fd;
	/* Valid if SYSCALL_NR is a call; borrowed from the sampler.  NULL: not
	 * asked for. */
	const struct wp_call_memory *memory;
	/* The thread did not move while the others were sampled: what is found
	 * of all such threads, and what lock words say of them, is true of one
	 * moment. */
	bool at_instant;
	/* It moved, and waits for the same futex again, at the same place. */
	bool waits_again;
};

/* Do GLOBS, thread_globs of the options, choose a thread called NAME? */
bool wp_sampler_wants(const char *const *globs, const char *name);

/* Call EACH for every watched thread of TARGET. */
void wp_sampler_each_thread(const struct wp_target *target,
			    void (*each)(void *ctx,
					 const struct wp_thread_view *view),
			    void *ctx);

/* TARGET's memory map as it was last read, for a stack or a tick: borrowed until the
 * target is sampled again. */
const struct wp_maps *wp_sampler_maps(const struct wp_target *target);

/* Number of threads that are watched now. */
size_t wp_sampler_count_threads(const struct wp_sampler *sampler);

/* Note in PROFILE's meta that it is of PROCESS, whose threads are stopped as STOP
 * says. */
void wp_sampler_describe(struct wp_profile *profile,
			 const struct wp_process *process,
			 enum wp_stop_mode stop);

#endif
