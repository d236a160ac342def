/* SPDX-License-Identifier: Apache-2.0 */
/* perf.h - what the kernel itself records of a process: its CPU samples, its
 * context switches, its threads' beginnings and ends.
 *
 * Layer: perf.
 *
 * perf_event_open(2) without perf: no thread is stopped, nothing is traced.
 * Records lie in one ring per CPU until wp_perf_next hands them out.
 *
 * There are two ways to open a process's events, which differ in more than
 * permissions:
 *
 *   CPU    one event per CPU that sees every process; what is not ours is
 *          dropped when read.  Wants CAP_PERFMON or perf_event_paranoid <= 0.
 *          Next to nothing per switch, few descriptors, no thread is missed.
 *          CPU samples are taken by wall clock: a share of it, not an
 *          account.
 *   TASK   one event per thread and CPU, inherited by threads that start
 *          later.  The owner of the process may do it.  The kernel changes
 *          events at each switch of a thread, which is dear for threads that
 *          switch often.  CPU samples are taken by each thread's own time:
 *          their periods add up to it, but for a part of a period per thread
 *          and CPU.
 */
#ifndef WP_PERF_H
#define WP_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/process.h"
#include "wallprof/types.h"

enum wp_perf_scope {
	/* TASK for CPU samples; CPU for switches, and for tasks without
	 * samples, where permitted, else TASK. */
	WP_PERF_AUTO,
	WP_PERF_TASK,
	WP_PERF_CPU,
};

enum {
	/* attr.sample_stack_user is a multiple of 8 below 64 KiB, as is the
	 * whole record. */
	WP_PERF_STACK_MAX = 65528,
	WP_PERF_RING_DEFAULT = 512 * 1024,
};

struct wp_perf_options {
	enum wp_perf_scope scope;
	/* CPU time between two samples (in scope CPU 2.9 % less, which keeps
	 * it out of step with the scheduler); 0: no CPU samples. */
	uint64_t period_ns;
	/* Record each switch to and from a CPU. */
	bool switches;
	/* A sample at every Nth time that a thread leaves a CPU (per CPU in
	 * scope CPU, per thread and CPU in scope TASK); 0: none.  Threads that
	 * take turns are in step with an N that has a divisor in common with
	 * their number: a prime above it is not. */
	uint64_t switch_sample_every;
	/* Bytes of user stack in a sample: a multiple of 8, at most
	 * WP_PERF_STACK_MAX; 0: none.  A sample takes that much of the ring
	 * however little is copied. */
	uint32_t stack_bytes;
	/* User registers in a sample. */
	bool user_regs;
	/* The kernel's part of the stack in a sample. */
	bool kernel_chain;
	/* Record threads that start, end and change their name. */
	bool tasks;
	/* A sample of each thread that starts another, right after its record.
	 * Not with CPU samples. */
	bool thread_starts;
	/* Size of each ring, rounded up to a power of two of pages; 0:
	 * WP_PERF_RING_DEFAULT, which is what the kernel lets everybody lock
	 * (perf_event_mlock_kb). */
	size_t ring_bytes;
};

enum wp_perf_type {
	/* A thread on a CPU. */
	WP_PERF_SAMPLE_CPU,
	/* A thread that is about to leave its CPU. */
	WP_PERF_SAMPLE_SWITCH,
	/* A thread that has just started another. */
	WP_PERF_SAMPLE_THREAD_START,
	/* They take turns, but a thread that ends does not tell its last
	 * SWITCH_OUT. */
	WP_PERF_SWITCH_OUT,
	WP_PERF_SWITCH_IN,
	/* A thread was started: TID by PARENT_TID. */
	WP_PERF_FORK,
	WP_PERF_EXIT,
	WP_PERF_COMM,
	/* LOST records found no room; of which thread is not known. */
	WP_PERF_LOST,
	/* Samples end here, and begin again: they came faster than
	 * kernel.perf_event_max_sample_rate. */
	WP_PERF_THROTTLE,
	WP_PERF_UNTHROTTLE,
};

/* Borrowed parts are valid until the next call of wp_perf_next. */
struct wp_perf_record {
	enum wp_perf_type type;
	/* CLOCK_MONOTONIC. */
	uint64_t time_ns;
	/* Whom it is about; of LOST, THROTTLE and UNTHROTTLE who ran when it
	 * was written. */
	pid_t pid;
	pid_t tid;
	uint32_t cpu;
	/* Of the event that gave it (PERF_SAMPLE_IDENTIFIER). */
	uint64_t id;

	/* Samples: nanoseconds of CPU time, or number of switches, that it
	 * stands for. */
	uint64_t period;
	/* Where it was, in the kernel if IN_KERNEL. */
	uint64_t ip_avma;
	bool in_kernel;
	/* It runs 32-bit code: no register is known. */
	bool regs_32bit;
	/* Known where asked for and the thread has a user part. */
	struct wp_regs regs;
	/* stack[0..stack_len) from the stack pointer upwards; NULL if none. */
	const uint8_t *stack;
	size_t stack_len;
	/* All that was asked for was copied: there may be more. */
	bool stack_full;
	/* kernel_chain[0..kernel_len), innermost first: return addresses but
	 * the first; NULL if none. */
	const uint64_t *kernel_chain;
	size_t kernel_len;

	/* SWITCH_OUT: it could have gone on (since Linux 4.17). */
	bool preempted;
	/* SWITCH_OUT, SWITCH_IN in scope CPU: who ran next, who before; -1:
	 * not told. */
	pid_t other_tid;
	/* FORK, EXIT. */
	pid_t parent_tid;
	/* COMM: the new name, and whether by execve(2). */
	char comm[16];
	bool exec;
	/* LOST. */
	uint64_t lost;
};

/* What was opened. */
struct wp_perf_facts {
	/* TASK or CPU: of CPU samples and tasks, and of switches. */
	enum wp_perf_scope main_scope;
	enum wp_perf_scope switch_scope;
	/* The kernel's part is not permitted: no kernel chain, no sample while
	 * a thread is in the kernel, no samples of switches. */
	bool user_only;
	/* Samples of switches are taken. */
	bool switch_samples;
	/* Births were asked for and are not sampled: -errno of tracefs, where
	 * their tracepoint has its number, or of opening it. */
	int thread_start_rc;
	/* What was lost after a ring's last record is known, too (since Linux
	 * 6.0). */
	bool counts_lost;
	size_t ring_bytes;
	size_t nrings;
	size_t nevents;
};

/* What records were, summed since open. */
struct wp_perf_stats {
	uint64_t records;
	/* Of other processes, or of a second event on the same thread. */
	uint64_t foreign;
	/* Samples of switches, foreign ones included. */
	uint64_t switch_samples;
	/* Records that the kernel had no room for, foreign ones included.  It
	 * says so in the next record that has room, or, if facts.counts_lost,
	 * when all is off. */
	uint64_t lost;
	/* Samples whose stack did not fit. */
	uint64_t truncated;
	uint64_t throttled;
	/* Not to be understood: dropped. */
	uint64_t malformed;
	/* Handed out with a time before that of a record handed out earlier. */
	uint64_t late;
};

struct wp_perf;

/* Open the events of all threads of PROCESS, those that start later included,
 * not yet recording: see wp_perf_enable.  Another process that gets its number
 * is not told of.
 *
 * 0 and *RET, which the caller closes, and which borrows PROCESS until then.
 * -EINVAL: options that make no sense; -ESRCH: it has ended; -EPERM: forbidden; -ENOTSUP: this kernel has no
 * such events; -EMFILE: too few descriptors; -ENOMEM.  ERR says why, and what
 * to do about it.
 */
WP_MUST_CHECK
int wp_perf_open(struct wp_perf **ret, const struct wp_process *process,
		 const struct wp_perf_options *options, struct wp_err *err);

enum wp_perf_part {
	/* CPU samples, and tasks. */
	WP_PERF_PART_MAIN = 1,
	/* Switches and their samples. */
	WP_PERF_PART_SWITCHES = 2,
	WP_PERF_PART_ALL = 3,
};

/* Begin, or end, to record PARTS (enum wp_perf_part).  Parts can be turned on
 * and off at any time, so that what is dear can be done for a share of the
 * time; one call per event (in scope CPU: per CPU).  What was recorded stays
 * in the rings. */
void wp_perf_enable(struct wp_perf *perf, unsigned int parts);
void wp_perf_disable(struct wp_perf *perf, unsigned int parts);

/* From now on a sample at every Nth switch: the period of samples of before is
 * not N, and by their times the caller knows them.  A no-op where no samples of
 * switches are taken. */
void wp_perf_set_switch_samples(struct wp_perf *perf, uint64_t every);

/* Fill *RET with the earliest record that has not been handed out, if its time
 * is before UNTIL_NS (UINT64_MAX: any).  False: there is none; *RET is undefined.
 *
 * Call it until it returns false: what the kernel wrote meanwhile is seen from
 * the call after that on.  A record gets its time before it is visible, so with
 * UNTIL_NS some milliseconds in the past records come in order of time, over all
 * rings and calls; one that comes too late all the same is handed out and
 * counted (wp_perf_stats.late).
 */
WP_MUST_CHECK
bool wp_perf_next(struct wp_perf *perf, uint64_t until_ns,
		  struct wp_perf_record *ret);

/* Borrowed for the life of PERF. */
const struct wp_perf_facts *wp_perf_facts(const struct wp_perf *perf);
const struct wp_perf_stats *wp_perf_stats(const struct wp_perf *perf);

/* Accepts NULL. */
void wp_perf_close(struct wp_perf *perf);

#endif
