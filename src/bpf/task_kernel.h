/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* task_kernel.h - what task_scan.bpf.c reads and calls of the kernel.
 *
 * Layer: bpf.  Private to src/bpf/task_scan.bpf.c: for the BPF target only.
 *
 * Structures have only the members that are used; libbpf sets their offsets for the
 * running kernel when it loads the program (CO-RE).
 */
#ifndef WP_TASK_KERNEL_H
#define WP_TASK_KERNEL_H

#ifdef __bpf__
#include <linux/types.h>

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "wallprof/task_record.h"

#define KERNEL __attribute__((preserve_access_index))

/* The user registers of a thread, which the kernel saves on every entry:
 * arch/x86/entry/calling.h, PUSH_AND_CLEAR_REGS; arch/arm64/kernel/entry.S,
 * kernel_entry. */
#if defined(__x86_64__)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx,
		si, di, orig_ax, ip, cs, sp;
} KERNEL;

struct thread_info {
	__u32 status;
} KERNEL;

/* arch/x86/include/asm/segment.h: the code segment of 32-bit programs. */
enum { USER32_CS = 0x23 };

static int is_32bit(const struct pt_regs *regs)
{
	return (regs->cs & 0xffff) == USER32_CS;
}

/* arch/x86/include/asm/thread_info.h: the thread is in a 32-bit system call. */
enum { TS_COMPAT = 2 };

static int is_foreign(const struct thread_info *info, int is_32bit)
{
	return !is_32bit && (info->status & TS_COMPAT);
}

static void take_regs(struct wp_task_record *record, const struct pt_regs *regs)
{
	record->nr = (int)regs->orig_ax;
	record->regs[0] = regs->ax;
	record->regs[1] = regs->dx;
	record->regs[2] = regs->cx;
	record->regs[3] = regs->bx;
	record->regs[4] = regs->si;
	record->regs[5] = regs->di;
	record->regs[6] = regs->bp;
	record->regs[7] = regs->sp;
	record->regs[8] = regs->r8;
	record->regs[9] = regs->r9;
	record->regs[10] = regs->r10;
	record->regs[11] = regs->r11;
	record->regs[12] = regs->r12;
	record->regs[13] = regs->r13;
	record->regs[14] = regs->r14;
	record->regs[15] = regs->r15;
	record->regs[16] = regs->ip;
}
#elif defined(__aarch64__)
struct pt_regs {
	__u64 regs[31];
	__u64 sp, pc, orig_x0;
	int syscallno;
} KERNEL;

struct thread_info {
	unsigned long flags;
} KERNEL;

static int is_32bit(const struct pt_regs *regs)
{
	return 0;
}

/* arch/arm64/include/asm/thread_info.h: TIF_32BIT. */
static int is_foreign(const struct thread_info *info, int is_32bit)
{
	return info->flags >> 22 & 1;
}

static void take_regs(struct wp_task_record *record, const struct pt_regs *regs)
{
	record->nr = regs->syscallno;
	/* Register 0 holds the result once the call is over: orig_x0 is the first
	 * argument. */
	record->regs[0] = regs->syscallno < 0 ? regs->regs[0] : regs->orig_x0;
	for (int i = 1; i < 31; i++)
		record->regs[i] = regs->regs[i];
	record->regs[31] = regs->sp;
	record->regs[32] = regs->pc;
}
#endif

struct upid {
	int nr;
	void *ns;
} KERNEL;

struct pid {
	unsigned int level;
	struct upid numbers[1];
} KERNEL;

/* kernel/sched/sched.h.  struct rq is of one CPU. */
struct rq {
	struct task_struct *curr;
} KERNEL;

struct cfs_rq {
	/* With CONFIG_FAIR_GROUP_SCHED. */
	struct rq *rq;
} KERNEL;

struct sched_entity {
	__u64 sum_exec_runtime;
	/* Of the CPU that the thread is on; with CONFIG_FAIR_GROUP_SCHED. */
	struct cfs_rq *cfs_rq;
} KERNEL;

struct sched_info {
	unsigned long pcount;
	unsigned long long run_delay;
} KERNEL;

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	int exit_state;
	/* An int until 7.2, then a u8: libbpf fits the load to the size where both are
	 * unsigned, or of one size. */
	unsigned int on_cpu;
	/* Also where it was preempted on its way to sleep. */
	unsigned int on_rq;
	char comm[WP_TASK_COMM];
	int pid;
	int tgid;
	__u64 start_boottime;
	struct pid *thread_pid;
	struct sched_entity se;
	struct sched_info sched_info;
} KERNEL;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} KERNEL;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} KERNEL;

/* kernel/bpf/task_iter.c, since Linux 6.7. */
struct bpf_iter_task {
	__u64 opaque[3];
} __attribute__((aligned(8)));

enum { ALL_THREADS = 1, PROC_THREADS = 2 };

extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task,
			     unsigned int flags) __ksym;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __ksym;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __ksym;
/* Since Linux 6.2; PID: in the first PID namespace. */
extern struct task_struct *bpf_task_from_pid(int pid) __ksym;
extern void bpf_task_release(struct task_struct *task) __ksym;
/* kernel/bpf/bpf_iter.c, since Linux 6.4. */
struct bpf_iter_num {
	__u64 opaque[1];
} __attribute__((aligned(8)));
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;
#endif
#endif
