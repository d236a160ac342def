/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* task_scan.bpf.c - runs in the kernel: see wallprof/task_scan.h.
 *
 * A task iterator over one process runs the program once; the program walks the
 * threads of that process, or those of all, itself and writes a record of each that is
 * asked for, unless the last record still holds.  An iterator over the threads would
 * find each by its tid, which takes ten times as long (with 10,000 threads: 470 ns
 * instead of 40 ns per thread).
 *
 * Structures have only the members that are used; libbpf sets their offsets for the
 * running kernel when it loads the program (CO-RE).
 */
#include <linux/types.h>

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "wallprof/task_record.h"

/* The kernel lets only programs under a licence compatible with the GPL read
 * its structures (kernel/bpf/verifier.c, check_ptr_to_btf_access). */
char wp_license[] SEC("license") = "Dual MIT/GPL";

#define KERNEL __attribute__((preserve_access_index))

/* The user registers of a thread, which the kernel saves on every entry: arch/x86/entry/calling.h, PUSH_AND_CLEAR_REGS;
 * arch/arm64/kernel/entry.S, kernel_entry. */
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

struct sched_entity {
	__u64 sum_exec_runtime;
} KERNEL;

struct sched_info {
	unsigned long pcount;
	unsigned long long run_delay;
} KERNEL;

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	int exit_state;
	/* An int until 7.2, then a u8: libbpf fits the load to the size where both are
	 * unsigned, or of one size. */
	unsigned int on_cpu;
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

/* Its size is set before it is made. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wp_task_record);
} wp_records SEC(".maps");

/* Keys: the processes asked for, by their numbers in the reader's namespace, and
 * WP_TASK_SCAN_MANY if they are to be found among all. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u8);
} wp_processes SEC(".maps");

/* A PID namespace, LEVEL below the first. */
struct place {
	unsigned int level;
	void *ns;
};

/* Read what PID is in the namespace LEVEL below the first that it is in. */
static void read_upid(const struct pid *pid, unsigned int level, int *nr,
		      void **ns)
{
	const char *upid = (const char *)pid +
			   bpf_core_field_offset(pid->numbers) +
			   level * bpf_core_type_size(struct upid);

	bpf_probe_read_kernel(nr, sizeof(*nr),
			      upid + bpf_core_field_offset(struct upid, nr));
	bpf_probe_read_kernel(ns, sizeof(*ns),
			      upid + bpf_core_field_offset(struct upid, ns));
}

/* TASK's number at PLACE; 0 when it has none there, or is gone. */
static int number_of(struct task_struct *task, const struct place *place)
{
	int outer = task->pid, nr = 0;
	void *ns = 0;
	struct pid *pid;

	/* One load for both numbers would have pointers of two kinds, which
	 * the kernel refuses. */
	barrier_var(outer);
	if (!place->level)
		return outer;
	pid = task->thread_pid;
	if (pid && pid->level >= place->level)
		read_upid(pid, place->level, &nr, &ns);
	return ns == place->ns ? nr : 0;
}

/* include/linux/sched.h. */
enum {
	TASK_INTERRUPTIBLE = 1,
	TASK_UNINTERRUPTIBLE = 2,
	TASK_STOPPED = 4,
	TASK_TRACED = 8,
	TASK_REPORT = 0x7f,
};

/* As fs/proc/array.c has it, of threads that wait or are stopped only. */
static char letter_of(const struct task_struct *task, int is_32bit)
{
	unsigned int state = task->__state & TASK_REPORT;

	if (task->on_cpu || task->exit_state ||
	    is_foreign(&task->thread_info, is_32bit))
		return 0;
	return state == TASK_INTERRUPTIBLE   ? 'S' :
	       state == TASK_UNINTERRUPTIBLE ? 'D' :
	       state == TASK_STOPPED	     ? 'T' :
	       state == TASK_TRACED	     ? 't' :
					       0;
}

static void take(struct wp_task_record *record, struct task_struct *task,
		 int pid, int tid)
{
	__u64 run_ns = task->se.sum_exec_runtime;
	__u64 slices = task->sched_info.pcount;
	struct pt_regs *regs;

	record->wait_ns = task->sched_info.run_delay;
	if (record->state_char && record->tid == tid &&
	    record->slices == slices && record->run_ns == run_ns)
		return;
	record->pid = pid;
	record->tid = tid;
	record->run_ns = run_ns;
	record->slices = slices;
	record->start_ns = task->start_boottime;
	barrier();
	record->time_ns = bpf_ktime_get_ns();
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	record->is_32bit = is_32bit(regs);
	record->state_char = letter_of(task, record->is_32bit);
	barrier();
	if (record->state_char)
		take_regs(record, regs);
	bpf_core_read(record->comm, sizeof(record->comm), &task->comm);
}

SEC("iter/task")
int wp_scan_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *first = ctx->task, *task;
	/* The reader: it runs this. */
	struct task_struct *reader = bpf_get_current_task_btf();
	struct place place = { .level = reader->thread_pid->level };
	int own;
	struct bpf_iter_task it;
	/* Threads found, those without room too. */
	__u32 n = 0, many = WP_TASK_SCAN_MANY;
	/* The process whose threads come now; 0: it is not asked for. */
	__u32 pid = 0;

	if (!first)
		return 0;
	read_upid(reader->thread_pid, place.level, &own, &place.ns);
	bpf_iter_task_new(&it, first,
			  bpf_map_lookup_elem(&wp_processes, &many) ?
				  ALL_THREADS :
				  PROC_THREADS);
	while ((task = bpf_iter_task_next(&it))) {
		struct wp_task_record *record;
		int tid;

		/* Each process begins with its first thread. */
		if (task->pid == task->tgid) {
			pid = number_of(task, &place);
			if (!bpf_map_lookup_elem(&wp_processes, &pid))
				pid = 0;
		}
		if (!pid || task->exit_state)
			continue;
		record = bpf_map_lookup_elem(&wp_records, &n);
		tid = number_of(task, &place);
		if (tid && record)
			take(record, task, pid, tid);
		n += !!tid;
	}
	bpf_iter_task_destroy(&it);
	bpf_seq_write(ctx->meta->seq, &n, sizeof(n));
	return 0;
}
