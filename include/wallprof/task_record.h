/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* task_record.h - what one scan says of one thread.
 *
 * Layer: bpf.  Written by a BPF program and read here, so it has nothing but
 * what both can include.
 */
#ifndef WP_TASK_RECORD_H
#define WP_TASK_RECORD_H

#include <linux/types.h>

/* As many as WP_NREGS. */
#if defined(__x86_64__)
enum { WP_TASK_REGS = 17 };
#elif defined(__aarch64__)
enum { WP_TASK_REGS = 33 };
#endif

/* TASK_COMM_LEN. */
enum { WP_TASK_COMM = 16 };

struct wp_task_record {
	/* As the PID namespace of the reader has it. */
	__s32 tid;
	/* As in /proc/TID/stat: 'S' or 'D' of a thread that was off its CPU and
	 * waiting when its registers were read; 0 of any other, whose NR and
	 * REGS say nothing. */
	char state_char;
	__u8 unused[3];
	/* The three numbers of /proc/TID/schedstat (fs/proc/base.c,
	 * proc_pid_schedstat): ns on a CPU, ns runnable but waiting for one,
	 * times put on one.  Read before the rest: where they are the same
	 * later on, so is the rest. */
	__u64 run_ns;
	__u64 wait_ns;
	__u64 slices;
	/* When it began, ns after boot: tells a thread from a later one with
	 * the same number. */
	__u64 start_ns;
	/* Its system call, -1: none; and the registers with which it came into
	 * the kernel, by DWARF number. */
	__s64 nr;
	__u64 regs[WP_TASK_REGS];
	/* Its name, ended by NUL. */
	char comm[WP_TASK_COMM];
};

#endif
