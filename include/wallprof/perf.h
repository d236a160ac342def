/* SPDX-License-Identifier: Apache-2.0 */
/* perf.h - records of a process by the kernel: CPU samples, context switches,
 * threads that start and end.
 *
 * Layer: perf.
 *
 * perf_event_open(2) without perf(1): no thread is stopped or traced.  The kernel
 * writes records to one ring buffer per CPU; wp_perf_next reads them.
 *
 * The events of a process are opened in one of two scopes:
 *
 *   CPU    One event per CPU, which sees every process; records of other
 *          processes are dropped when read.  Needs CAP_PERFMON or
 *          perf_event_paranoid <= 0.  Costs next to nothing per context switch
 *          and few descriptors, and misses no thread.  CPU samples are taken by
 *          wall clock: the share of samples is an estimate of the CPU time.
 *   TASK   One event per thread and CPU, inherited by threads that start later.
 *          The owner of the process may open them.  The kernel exchanges events
 *          at each context switch, which costs threads that switch often.  CPU
 *          samples are taken by each thread's own CPU time: their periods add up
 *          to it, except for a part of one period per thread and CPU.
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
	/* CPU samples in scope TASK; context switches, and threads without CPU
	 * samples, in scope CPU where permitted, otherwise in scope TASK. */
	WP_PERF_AUTO,
	WP_PERF_TASK,
	WP_PERF_CPU,
};

enum {
	/* Most bytes of a stack copy: attr.sample_stack_user is a multiple of 8
	 * below 64 KiB, and so is the whole record. */
	WP_PERF_STACK_MAX = 65528,
	WP_PERF_RING_DEFAULT = 512 * 1024,
};

struct wp_perf_options {
	enum wp_perf_scope scope;
	/* CPU time between two CPU samples, on average: a thread with a rhythm of
	 * its own would be in step with periods that are all the same (a
	 * share of 0.50 was measured as 0.32 to 0.58).  0: no CPU samples. */
	uint64_t period_ns;
	/* Where the random numbers begin that periods are drawn from. */
	uint64_t seed;
	/* Record each context switch. */
	bool switches;
	/* N: a sample at every Nth time that a thread leaves a CPU (counted per
	 * CPU in scope CPU, per thread and CPU in scope TASK); 0: none.  Threads
	 * that take turns are in step with an N that has a divisor in common
	 * with their number; a prime above their number is not. */
	uint64_t switch_sample_every;
	/* Bytes of user stack copied into a sample: a multiple of 8, at most
	 * WP_PERF_STACK_MAX; 0: none.  A sample takes that much of the ring
	 * buffer, however little is copied. */
	uint32_t stack_bytes;
	/* Samples hold the user registers. */
	bool user_regs;
	/* Samples hold the kernel's return addresses. */
	bool kernel_chain;
	/* Record threads that start and end; of all processes also their names. */
	bool tasks;
	/* Record each time that a thread is woken, in scope CPU: threads of other
	 * processes too, but for those that wp_perf_filter_wakes leaves out. */
	bool wakes;
	/* With WAKES, N: besides, a sample of who wakes at every Nth wake (counted per
	 * CPU), not in a hardware interrupt or by an idle CPU; 0: none. */
	uint64_t wake_sample_every;
	/* A sample of each thread that starts another, right after the record of
	 * that start.  Not together with CPU samples. */
	bool thread_starts;
	/* Samples that a BPF program makes by bpf_perf_event_output, in scope CPU
	 * (see wp_perf_each_output).  Not together with CPU samples or samples of
	 * thread starts. */
	bool bpf_output;
	/* Size of each ring buffer, rounded up to a power of two of pages; 0:
	 * WP_PERF_RING_DEFAULT, which the kernel lets everybody lock
	 * (perf_event_mlock_kb). */
	size_t ring_bytes;
};

enum wp_perf_type {
	/* Sample of a thread on a CPU. */
	WP_PERF_SAMPLE_CPU,
	/* Sample of a thread that is about to leave its CPU. */
	WP_PERF_SAMPLE_SWITCH,
	/* Sample of a thread that has just started another. */
	WP_PERF_SAMPLE_THREAD_START,
	/* Sample by a BPF program; its data is RAW. */
	WP_PERF_SAMPLE_OUTPUT,
	/* Sample of a thread that wakes another, with what WAKE tells of that. */
	WP_PERF_SAMPLE_WAKE,
	/* The thread leaves, or enters, a CPU.  OUT and IN alternate, but the
	 * last OUT of a thread that ends is not recorded. */
	WP_PERF_SWITCH_OUT,
	WP_PERF_SWITCH_IN,
	/* Thread TID, of any process, was woken. */
	WP_PERF_WAKE,
	/* Thread PARENT_TID started thread TID: of its own process, or the first one
	 * of process PID. */
	WP_PERF_FORK,
	WP_PERF_EXIT,
	/* Thread TID has another name. */
	WP_PERF_NAME,
	/* LOST records found no room in the ring buffer; whose is not known. */
	WP_PERF_LOST,
	/* The kernel stops, and resumes, taking samples: they came faster than
	 * kernel.perf_event_max_sample_rate. */
	WP_PERF_THROTTLE,
	WP_PERF_UNTHROTTLE,
};

/* Borrowed parts are valid until the next call of wp_perf_next. */
struct wp_perf_record {
	enum wp_perf_type type;
	/* CLOCK_MONOTONIC. */
	uint64_t time_ns;
	/* The thread that the record is about; for LOST, THROTTLE and UNTHROTTLE
	 * the thread that was on the CPU. */
	pid_t pid;
	pid_t tid;
	/* Id of the event (PERF_SAMPLE_IDENTIFIER). */
	uint64_t id;

	/* Samples: CPU time in ns (the period of its event then, and the sample's
	 * part of what a thread runs unsampled while periods are drawn), or number
	 * of switches, that the sample stands for. */
	uint64_t period;
	/* None known: not asked for, or a kernel thread. */
	struct wp_regs regs;
	/* The registers are those of 32-bit code (see WP_REG_ESI). */
	bool is_32bit;
	/* Stack copy: stack[0..stack_len) from the stack pointer upwards; NULL:
	 * none. */
	const uint8_t *stack;
	size_t stack_len;
	/* STACK_LEN is all that was asked for: the stack may go on. */
	bool stack_full;
	/* kernel_chain[0..kernel_len), innermost first; all but the first are
	 * return addresses; NULL: none. */
	const uint64_t *kernel_chain;
	size_t kernel_len;

	/* SWITCH_OUT: the thread was still ready to run (since Linux 4.17). */
	bool preempted;
	/* FORK, EXIT. */
	pid_t parent_pid;
	pid_t parent_tid;
	/* NAME: the thread's new name, borrowed; it got it by executing a
	 * program. */
	const char *name;
	bool by_exec;
	/* WAKE, SAMPLE_WAKE: the thread that was on the CPU (0: none was), and
	 * whether it was in an interrupt, in which it may have no part. */
	pid_t waker_pid;
	pid_t waker_tid;
	bool hard_interrupt;
	bool soft_interrupt;
	/* The data of a tracepoint or BPF program: raw[0..raw_len), with what
	 * pads it; NULL: none. */
	const uint8_t *raw;
	size_t raw_len;
	/* LOST: number of records. */
	uint64_t lost;
};

/* What was opened. */
struct wp_perf_facts {
	/* TASK or CPU: scope of CPU samples and threads, and of switches. */
	enum wp_perf_scope main_scope;
	enum wp_perf_scope switch_scope;
	/* Events of the kernel are not permitted: no kernel chain, no sample
	 * while a thread is in the kernel, no samples of switches. */
	bool user_only;
	/* Samples of switches are taken. */
	bool switch_samples;
	/* 0, or why wakes were asked for and are not recorded: -EREMOTE: in another
	 * PID namespace than the first one, as the kernel tells of them in the
	 * numbers of that one; else -errno of reading the tracepoint's number in
	 * tracefs, or of opening its event. */
	int wake_rc;
	/* 0, or why samples of thread starts were asked for and are not taken:
	 * -errno of reading the tracepoint's number in tracefs, or of opening
	 * its event. */
	int thread_start_rc;
	/* The kernel counts what was lost after a ring buffer's last record,
	 * too (since Linux 6.0). */
	bool counts_lost;
	size_t ring_bytes;
	size_t nrings;
	size_t nevents;
};

/* Numbers of records since wp_perf_open. */
struct wp_perf_stats {
	/* Handed out. */
	uint64_t records;
	/* Of other processes, or of a second event on the same thread. */
	uint64_t foreign;
	/* Samples of switches, and of wakes, foreign ones included. */
	uint64_t switch_samples;
	uint64_t wake_samples;
	/* Lost for want of room, foreign ones included.  The kernel tells their
	 * number in the next record that finds room or, if facts.counts_lost,
	 * when all events are disabled. */
	uint64_t lost;
	/* Samples whose stack copy is full. */
	uint64_t truncated;
	uint64_t throttled;
	/* Malformed, and dropped. */
	uint64_t malformed;
	/* Handed out after a record with a later time. */
	uint64_t late;
};

struct wp_perf;

/* Open events on all threads of PROCESS, including threads that start later; NULL: of
 * all processes, which wants scope CPU, and the caller tells by their pids.
 * They record from wp_perf_enable on.  Another process that gets PROCESS's pid
 * later is not recorded.
 *
 * 0 and *RET, which the caller closes, and which borrows PROCESS until then.
 * -EINVAL: OPTIONS contradict each other; -ESRCH: PROCESS has ended; -EPERM: not
 * permitted; -ENOTSUP: the kernel has no such events; -EMFILE: too few
 * descriptors; -ENOMEM.  ERR says why, and what to do about it.
 */
WP_MUST_CHECK
int wp_perf_open(struct wp_perf **ret, const struct wp_process *process,
		 const struct wp_perf_options *options, struct wp_err *err);

/* Start, and stop, recording; records that were not read stay.  One system call
 * per event. */
void wp_perf_enable(struct wp_perf *perf);
void wp_perf_disable(struct wp_perf *perf);

/* Draw anew the periods, of PERIOD_NS on average, of those events that took some CPU
 * samples since theirs were drawn: one system call for each.  A thread that inherited
 * its event keeps the period that it began with. */
void wp_perf_draw_periods(struct wp_perf *perf, uint64_t period_ns);

/* Take a sample at every EVERYth switch from now on.  The period of samples taken
 * before is not EVERY: the caller tells them by their times.  Does nothing where no
 * samples of switches are taken. */
void wp_perf_set_switch_samples(struct wp_perf *perf, uint64_t every);
/* The same of wakes. */
void wp_perf_set_wake_samples(struct wp_perf *perf, uint64_t every);

/* Call EACH with the event of each CPU to which a BPF program may write, enabled or not;
 * the descriptor is PERF's.  Stops when EACH returns another value than 0, and returns
 * it. */
int wp_perf_each_output(const struct wp_perf *perf,
			int (*each)(void *ctx, int cpu, int fd), void *ctx);

/* The tids from FIRST to LAST. */
struct wp_tid_range {
	pid_t first;
	pid_t last;
};

enum { WP_PERF_RANGES_MAX = 8 };

/* Record wakes only of threads in RANGES[0..n), sorted, or up to NEXT tids behind the
 * last; sample only those that a thread in RANGES makes.  N is 1 to
 * WP_PERF_RANGES_MAX.  An event takes one filter for good
 * (kernel/trace/trace_events_filter.c, ftrace_profile_set_filter: -EEXIST), so where it
 * has one this opens another event, some 20 us for each, and a wake meanwhile may be
 * recorded twice.  Records by the former event that are in the ring buffers stay until
 * the next call, which forgets those that were not handed out.  Where the kernel
 * refuses a filter, more are recorded; where it refuses the event, as before. */
void wp_perf_filter_wakes(struct wp_perf *perf,
			  const struct wp_tid_range *ranges, size_t n,
			  pid_t next);

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

/* Borrowed until wp_perf_close. */
const struct wp_perf_facts *wp_perf_facts(const struct wp_perf *perf);
const struct wp_perf_stats *wp_perf_stats(const struct wp_perf *perf);

/* Accepts NULL. */
void wp_perf_close(struct wp_perf *perf);

#endif
