/* SPDX-License-Identifier: Apache-2.0 */
/* sampler_priv.h - what the files of src/sample/ share.
 *
 * Layer: sample.  Private to src/sample/.
 *
 *   sampler.c   ticks, waking and finishing
 *   threads.c   which threads there are
 *   scan.c      which of many threads have run, asked of the kernel at once
 *   look.c      one thread: has it run, is it waiting
 *   waiting.c   one that waits: read without a stop
 *   stop.c      those that run: stop, copy, release
 *   perf_source.c  the perf events of the next three
 *   cpu.c       CPU samples, which also tell the stacks of those that run
 *   block.c     waits, by switches of context and by looks
 *   thread_starts.c    threads that start
 *   mutex.c     waits for locks, by who holds them
 *   record.c    what was seen becomes a sample of the profile
 */
#ifndef WP_SAMPLER_PRIV_H
#define WP_SAMPLER_PRIV_H

#include <sys/resource.h>

#include "pause.h"
#include "perf_source.h"
#include "site_cache.h"
#include "address_space.h"
#include "stack_copy.h"
#include "wallprof/fdinfo.h"
#include "wallprof/kallsyms.h"
#include "wallprof/procfs.h"
#include "wallprof/sampler.h"
#include "wallprof/state.h"
#include "wallprof/task_scan.h"

/* Frames of the kernel that go before a thread's own. */
enum { WP_KERNEL_FRAMES_MAX = 64 };

/* What a look at a thread left to be done by a stop. */
struct wp_ask {
	/* The tick it belongs to. */
	uint64_t tick_ns;
	/* Wall time that the sample stands for, by how the thread spent it if
	 * it ran. */
	uint64_t running_ns;
	uint64_t runnable_ns;
	/* Times it had been put on a CPU when it was asked to stop. */
	uint64_t slices;
	/* It waits, and only its registers are wanted; pc and sp as they were,
	 * and the stack as far as it is known without. */
	bool waiting;
	uint64_t pc_avma;
	uint64_t sp_avma;
	uint32_t partial_stack;
	struct wp_thread_facts facts;
};

/* Of a thread: see block.c. */
struct wp_block_thread {
	/* When it left its CPU to wait; 0: it did not, or is not known to. */
	uint64_t out_ns;
	/* The wait's sample and that it is one of EVERY; 0: it has none. */
	uint32_t every;
	struct wp_sample_key key;
	/* Looks that found it in one wait, and the time they stand for. */
	uint32_t looks;
	uint64_t looks_ns;
	/* The last stop of ours. */
	uint64_t stop_begin_ns, stop_end_ns;
};

/* Of a thread: see mutex.c. */
struct wp_mutex_thread {
	/* The last look that found it waiting, whether in the SAME wait as the
	 * one before, and the time in between. */
	uint64_t tick_ns;
	uint64_t wait_ns;
	bool same;
	/* Waits for locks that it held when last seen, which go with its next
	 * stack. */
	uint64_t owed_count;
	uint64_t owed_ns;
	/* Its number in its own PID namespace; 0: not read. */
	pid_t ns_tid;
};

/* Files of a thread in /proc that are read over and over. */
enum wp_thread_file {
	WP_THREAD_SCHEDSTAT,
	WP_THREAD_SYSCALL,
	WP_THREAD_STAT,
	WP_NTHREAD_FILES
};

/* Where a thread stood that waits. */
struct wp_stand {
	/* Scheduler times of before the rest was read: if they are the same
	 * afterwards, it stood there all the time. */
	struct wp_schedstat before;
	/* As in /proc/TID/stat. */
	char letter;
	struct wp_proc_syscall call;
	/* Those that are known. */
	struct wp_regs regs;
};

struct wp_thread {
	/* Borrowed. */
	struct wp_target *target;
	pid_t tid;
	/* Index in the profile's threads, and whether others have it too. */
	uint32_t index;
	bool shared;
	/* From 1, no other's ever. */
	uint64_t number;
	/* From when it is watched. */
	uint64_t first_ns;
	/* Its name matches the glob. */
	bool watched;
	/* Its files that are kept open: see threads.c. */
	int fds[WP_NTHREAD_FILES];
	/* When it began, as a scan says; 0: none has. */
	uint64_t began_ns;

	/* As of the end of the last look, and when that was. */
	struct wp_schedstat base;
	uint64_t base_ns;
	/* As of the last time that was divided between running and runnable,
	 * and how much has been called runnable since. */
	struct wp_schedstat divided;
	uint64_t called_runnable_ns;
	/* All its time up to here has been accounted for or is owed. */
	uint64_t last_ns;
	/* At the last look it was waiting, as KEY says, and has been waiting
	 * since if BASE still holds. */
	bool asleep;
	struct wp_sample_key key;
	/* What the last look that found it changed gave. */
	struct wp_thread_facts facts;

	/* Time that goes with the next stack seen on a CPU, and with the next
	 * seen waiting for one; and samples that were not taken. */
	uint64_t owed_running_ns;
	uint64_t owed_runnable_ns;
	uint64_t owed_count;
	/* Time owed of which it is not known yet whether it ran. */
	uint64_t undecided_ns;
	/* CPU samples whose stack was not all in their copy: a stop tells it. */
	uint64_t owed_cpu_count;
	uint64_t owed_cpu_ns;
	/* Run time when it was first looked at, once it was, and what it has
	 * added to its entry since. */
	uint64_t first_run_ns;
	uint64_t cpu_ns;
	/* Times put on a CPU as of the last look. */
	uint64_t slices;
	bool run_known;
	/* The last stack it was seen running with, which takes what is still
	 * owed when the thread or the recording ends; UINT32_MAX: none. */
	uint32_t last_running_stack;
	/* That stack was taken at BASE: if BASE still holds, so does it. */
	bool stack_holds;

	/* A stop has been asked for and has not come. */
	bool asked;
	struct wp_ask ask;
	/* --stop=all: to be looked at while those that run are stopped. */
	bool later;
	/* A stop wants the walk made before it ends: the stack is in more than
	 * one piece. */
	bool walk_in_stop;

	/* Bytes that copies of its stack take. */
	uint32_t copy_len_waiting;
	uint32_t copy_len_running;
	/* Real number of a call that goes on as restart_syscall. */
	long wait_nr;
	uint64_t wait_pc_avma;
	/* Looks that found it changed; its name is read again at some. */
	uint32_t looks;
	/* NULL until needed; owned. */
	struct wp_site_cache *sites;
	struct wp_block_thread block;
	struct wp_mutex_thread mutex;
};

/* A waiting sample whose object is looked up after the tick. */
struct wp_deferred {
	struct wp_thread *thread;
	struct wp_sample_key key;
	uint64_t wall_ns;
	struct wp_thread_facts facts;
};

/* See scan.c. */
struct wp_bpf_scan_state {
	/* NULL when none is wanted or to be had. */
	struct wp_task_scan *scan;
	/* Why there is none where one was wanted. */
	struct wp_err why;
	bool tried;
	/* A stack of a waiting thread lacked a register. */
	bool wants_regs;
	/* Of this tick: v[0..n) by tid, borrowed from SCAN; what was last found
	 * was before v[NEXT]. */
	const struct wp_task_record *v;
	size_t n, next;
};

/* The loop: what all targets share.  Holds no state of one process. */
struct wp_sampler {
	struct wp_sampler_options options;
	/* Borrowed. */
	struct wp_tracer *tracer;
	/* targets[0..ntargets), each owned. */
	struct wp_target **targets;
	size_t ntargets, cap_targets;

	struct wp_unwinder *unwinder;
	/* Generations of module lists given out, by all targets' address
	 * spaces. */
	uint64_t generations;
	struct wp_bpf_scan_state scan;
	struct wp_stack_copy copy;
	struct wp_kallsyms kallsyms;
	struct wp_frame kernel_room[WP_KERNEL_FRAMES_MAX];
	/* The stack of the walk at hand: room for the kernel's frames too. */
	struct wp_stack stack;
	struct wp_frame *frame_room;
	uint64_t *cfa_room;

	/* When the first tick was due. */
	uint64_t start_ns;
	/* When the tick at hand began. */
	uint64_t tick_ns;
	/* Index, from 0, of the tick to come. */
	uint64_t next_index;
	uint64_t random;
	/* The kernel counts in /proc/TID/schedstat. */
	bool schedstat_works;
	/* The last walk met an address that the map does not have, and the map
	 * was not read again because that was done just before. */
	bool map_is_stale;
	/* --stop=all, first pass: those that wait are looked at in the second. */
	bool wait_for_runners;
	/* The last tick, which pays what is owed. */
	bool finishing;
	rlim_t fd_limit;
};

/* One process that is sampled. */
struct wp_target {
	/* Borrowed. */
	struct wp_sampler *loop;
	struct wp_process *process;
	struct wp_profile *profile;

	/* The process has no thread left. */
	bool gone;
	struct wp_address_space space;
	struct wp_pauses pauses;
	struct wp_fdinfo fdinfo;
	/* CPU samples; no events are open where they are not asked for or not
	 * to be had. */
	struct wp_perf_source cpu_events;
	/* Times that threads were put on a CPU, since when. */
	uint64_t switches;
	uint64_t switches_ns;
	/* NULL when waits are not asked for. */
	struct wp_block *block;
	/* NULL when holders are not asked for. */
	struct wp_mutex *mutex;
	/* NULL when threads that start are not asked for. */
	struct wp_thread_starts *thread_starts;
	/* threads[0..nthreads) by tid; each owned. */
	struct wp_thread **threads;
	size_t nthreads, cap_threads;
	size_t nwatched;
	/* Numbers given out. */
	uint64_t nnumbers;
	struct wp_tids tids;
	/* Threads to be stopped in this tick; room for all. */
	struct wp_thread **askers;
	size_t naskers, cap_askers;
	struct wp_deferred *deferred;
	size_t ndeferred, cap_deferred;

	/* When the process was added, and when its last tick began. */
	uint64_t start_ns;
	uint64_t last_tick_ns;
	/* Ticks that it has had, the one at hand included. */
	uint64_t tick;
	/* String ids of distinct wait objects, to bound what a target that
	 * never waits twice on one thing can make us keep. */
	uint32_t nobjects;
	/* Ticks look at what threads do, those that run too; else only CPU
	 * samples are wanted. */
	bool looks_at_all;
	bool wants_running;
};

/* target.c */
/* Make a target of PROCESS in LOOP.  0, -ENOMEM, -ESRCH or -EPERM. */
WP_MUST_CHECK
int wp_target_new(struct wp_target **ret, struct wp_sampler *loop,
		  struct wp_process *process, struct wp_profile *profile,
		  struct wp_err *err);
/* Accepts NULL. */
void wp_target_free(struct wp_target *target);
/* A tick of TARGET: first what came since the last one, then, once the loop has
 * made its BPF scan, a sample of each thread.  0, -ESRCH when the process has no
 * thread left, -ENOMEM. */
WP_MUST_CHECK
int wp_target_begin_tick(struct wp_target *target);
WP_MUST_CHECK
int wp_target_sample(struct wp_target *target);
/* Between ticks.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_target_drain(struct wp_target *target);
/* Give up stops that have not come, and make all samples.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_target_settle_stops(struct wp_target *target);
/* After the last tick: account for what is left.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_target_finish(struct wp_target *target);
void wp_target_fill_counters(struct wp_target *target);
/* Sample the thread whose stop TRACEE is.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_target_take_stop(struct wp_tracee *tracee);
/* After the last tick, before its late stops.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_target_end_perf(struct wp_target *target);

/* A pseudo-random number, for jitter and fairness only. */
uint64_t wp_sampler_random(struct wp_sampler *loop);

/* threads.c */
/* Bring the table up to date if the number of threads differs from it.  0,
 * -ESRCH when there is none, -ENOMEM. */
int wp_threads_update(struct wp_target *target);
/* Read T's FILE into BUF[0..size): bytes, ended by NUL, or -errno. */
ssize_t wp_thread_read(struct wp_target *target, struct wp_thread *t,
		       enum wp_thread_file file, char *buf, size_t size);
/* The same of file NAME of thread TID, which is not kept open. */
ssize_t wp_thread_read_once(struct wp_target *target, pid_t tid,
			    const char *name, char *buf, size_t size);
/* 0 and the numbers, -ESRCH when T is gone, or another -errno. */
int wp_thread_schedstat(struct wp_target *target, struct wp_thread *t,
			struct wp_schedstat *ret);
/* The thread with this number, NULL if it is not in the table. */
struct wp_thread *wp_threads_find(struct wp_target *target, pid_t tid);
/* The same, added if new; NULL when there is no memory. */
struct wp_thread *wp_threads_get(struct wp_target *target, pid_t tid);
/* threads[I] is gone. */
void wp_threads_drop(struct wp_target *target, size_t i);
/* T was looked at and has run: its name may be another now, as RECORD says if
 * there is one. */
void wp_threads_name(struct wp_target *target, struct wp_thread *t,
		     const struct wp_task_record *record);
void wp_threads_clear(struct wp_target *target);

/* scan.c */
/* Before looks: ask for all threads, if that is wanted. */
void wp_bpf_scan_take(struct wp_sampler *loop);
static inline struct wp_schedstat
wp_bpf_scan_times(const struct wp_task_record *record)
{
	return (struct wp_schedstat){ record->run_ns, record->wait_ns,
				      record->slices };
}

/* What this tick's scan says of a thread, NULL if nothing. */
const struct wp_task_record *wp_bpf_scan_find(struct wp_sampler *loop,
					      pid_t tid);
/* Is there one for the next tick? */
bool wp_bpf_scan_is_next(const struct wp_sampler *loop);
/* What was taken is too old for looks from now on. */
void wp_bpf_scan_forget(struct wp_sampler *loop);
void wp_bpf_scan_close(struct wp_sampler *loop);

/* look.c */
/* One look at T: record it, or put it among the askers.  0, -ESRCH when it is
 * gone, -ENOMEM, or another -errno: no look could be had. */
int wp_look(struct wp_target *target, struct wp_thread *t);
/* Walk the copy with REGS into the stack; a stale map is read anew. */
void wp_look_walk(struct wp_target *target, const struct wp_regs *regs,
		  enum wp_unwind_pace pace);
static inline bool wp_has_run(const struct wp_schedstat *a,
			      const struct wp_schedstat *b)
{
	return a->run_ns != b->run_ns || a->slices != b->slices;
}

/* T's time since the last look, which this look accounts for. */
uint64_t wp_look_take_time(struct wp_target *target, struct wp_thread *t);
/* T's owed time, up to NOW, is running or runnable. */
void wp_look_settle(struct wp_thread *t, const struct wp_schedstat *now);

/* waiting.c */
/* Where T stands by its files of /proc, RET->before and RET->call being filled:
 * 1; 0, it runs; -errno. */
int wp_waiting_stand(struct wp_target *target, struct wp_thread *t,
		     struct wp_stand *ret);
/* The same by a scan: false if RECORD does not tell. */
bool wp_waiting_stand_of(const struct wp_target *target,
			 const struct wp_task_record *record,
			 struct wp_stand *ret);
/* Read T where it stands and see whether it stood still.  1 done, 0 it moved,
 * or -errno. */
int wp_waiting_look(struct wp_target *target, struct wp_thread *t,
		    const struct wp_stand *stand);
/* The number of the system call that the code just before PC makes, which one
 * that goes on as restart_syscall hides; wp_syscall_restart if that is not
 * known, -1 if it makes none. */
long wp_waiting_call_before(struct wp_target *target, uint64_t pc_avma);
/* Put the kernel's frames of waiting T before those of the stack. */
void wp_waiting_add_kernel(struct wp_target *target, struct wp_thread *t);

/* stop.c */
/* Stop the askers as the mode says; what does not stop soon comes by
 * wp_stop_arrived later. */
int wp_stop_askers(struct wp_target *target);
/* --stop=all: ask the askers to stop, and forget them; they are taken when
 * wp_stop_askers is called. */
int wp_stop_ask(struct wp_target *target);
int wp_stop_arrived(struct wp_target *target, struct wp_tracee *tracee);
/* Threads whose stop has not come. */
size_t wp_stop_count_asked(const struct wp_target *target);
/* Give up stops that have been asked for too long, unless the thread has been
 * waiting for a CPU since: its stop and its stack are to come (0: all of them;
 * what such a thread is owed goes with its last stack). */
int wp_stop_expire(struct wp_target *target, uint64_t max_age_ns);

/* cpu.c */
/* Open perf events; without them ERR says why, and CPU time is divided over the
 * samples of running threads. */
void wp_cpu_open(struct wp_target *target, struct wp_err *err);
/* Take the CPU samples there are.  0 or -ENOMEM. */
int wp_cpu_drain(struct wp_target *target);
/* The same at the end, when no more is to be taken. */
WP_MUST_CHECK
int wp_cpu_finish(struct wp_target *target);
/* Walk the stack of RECORD, a sample of SOURCE, into the loop's stack; if it goes
 * on past its copy, SOURCE's stack_was_cut is set. */
void wp_cpu_walk(struct wp_target *target, struct wp_perf_source *source,
		 const struct wp_perf_record *record);
/* What T has used of CPUs in its life is NOW. */
void wp_cpu_account(struct wp_target *target, struct wp_thread *t,
		    const struct wp_schedstat *now);
void wp_cpu_close(struct wp_target *target);

/* block.c */
/* Begin to record waits.  0 or -ENOMEM; without perf events looks tell. */
int wp_block_open(struct wp_target *target);
/* Before the looks of a tick, and after the last.  0 or -ENOMEM. */
int wp_block_tick(struct wp_target *target);
int wp_block_finish(struct wp_target *target);
/* A look found T waiting as KEY says, in the SAME wait as the last look;
 * WALL_NS is the time in between.  0 or -ENOMEM. */
int wp_block_look(struct wp_target *target, struct wp_thread *t,
		  const struct wp_sample_key *key, bool same, uint64_t wall_ns);
void wp_block_close(struct wp_target *target);

/* thread_starts.c */
/* Begin to record threads that start.  0 or -ENOMEM; without perf events the
 * ticks' lists of threads tell. */
int wp_thread_starts_open(struct wp_target *target);
/* In a tick, once it has its list, and after the last.  0 or -ENOMEM. */
int wp_thread_starts_tick(struct wp_target *target);
/* Between ticks. */
int wp_thread_starts_drain(struct wp_target *target);
int wp_thread_starts_finish(struct wp_target *target);
void wp_thread_starts_close(struct wp_target *target);

/* mutex.c */
/* Begin to look for holders of locks.  0 or -ENOMEM. */
int wp_mutex_open(struct wp_target *target);
/* A look found T waiting, in the SAME wait as the last look. */
void wp_mutex_look(struct wp_target *target, struct wp_thread *t, bool same,
		   uint64_t wall_ns);
/* After the looks of a tick, before its stops.  0 or -ENOMEM. */
int wp_mutex_tick(struct wp_target *target);
/* T was seen with the stack of KEY: what it held others up for goes there.  0
 * or -ENOMEM. */
int wp_mutex_pay(struct wp_target *target, struct wp_thread *t,
		 const struct wp_sample_key *key);
int wp_mutex_finish(struct wp_target *target);
void wp_mutex_close(struct wp_target *target);

/* record.c */
/* T was seen waiting (or stopped, exiting) as FACTS say, with stack STACK: its
 * sample is made when the tick is over. */
int wp_record_waiting(struct wp_target *target, struct wp_thread *t,
		      const struct wp_thread_facts *facts, uint32_t stack,
		      uint64_t wall_ns);
/* The sample of T that nothing has changed since. */
int wp_record_unchanged(struct wp_target *target, struct wp_thread *t,
			uint64_t wall_ns);
/* T was ready to run, with stack STACK, and was in STATE (running or runnable)
 * at that moment.  The time that ASK holds is divided already: what belongs to
 * STATE goes with this stack, with what was owed before; the rest is owed to a
 * stack of the other state. */
int wp_record_running(struct wp_target *target, struct wp_thread *t,
		      uint32_t stack, enum wp_state state);
/* A CPU sample with STACK; T's owed CPU time and wall time go with it. */
int wp_record_cpu(struct wp_target *target, struct wp_thread *t,
		  uint32_t stack);
/* The same without a stack or a look at the moment: all of it goes. */
int wp_record_unseen(struct wp_target *target, struct wp_thread *t);
/* Give what T is still owed to the last stack it ran with. */
int wp_record_owed(struct wp_target *target, struct wp_thread *t);
/* Intern the stack; UINT32_MAX without memory. */
uint32_t wp_record_stack(struct wp_target *target);
/* The id of the stack that has no frame. */
uint32_t wp_record_no_stack(struct wp_target *target);
/* What a thread with FACTS waits on: KEY's wait sharpened, its object and call
 * set.  The object is UINT32_MAX without memory. */
void wp_record_describe(struct wp_target *target, struct wp_sample_key *key,
			const struct wp_thread_facts *facts);
/* Make the samples that were put off. */
int wp_record_deferred(struct wp_target *target);

#endif
