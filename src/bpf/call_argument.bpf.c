/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* call_argument.bpf.c - runs in the kernel: see wallprof/call_argument.h. */
#include <linux/types.h>

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char wp_license[] SEC("license") = "Dual MIT/GPL";

#if defined(__aarch64__)
#define KERNEL __attribute__((preserve_access_index))

struct pt_regs {
	__u64 orig_x0;
} KERNEL;

struct task_struct;
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} KERNEL;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} KERNEL;

SEC("iter/task")
int wp_tell_argument(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct pt_regs *regs;
	__u64 first;

	if (!task)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	first = regs->orig_x0;
	bpf_seq_write(ctx->meta->seq, &first, sizeof(first));
	return 0;
}
#endif
