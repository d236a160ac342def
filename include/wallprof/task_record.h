/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* task_record.h - the record of one thread in a BPF scan.
 *
 * Layer: bpf.  The BPF program writes it and wallprof reads it: this file includes
 * only what both can include.
 */
#ifndef WP_TASK_RECORD_H
#define WP_TASK_RECORD_H

#include <linux/types.h>

/* WP_NREGS of wallprof/types.h. */
#if defined(__x86_64__)
enum { WP_TASK_REGS = 17 };
#elif defined(__aarch64__)
enum { WP_TASK_REGS = 33 };
#endif

/* A number that no process has. */
enum { WP_TASK_SCAN_MANY = 0 };

/* TASK_COMM_LEN. */
enum { WP_TASK_COMM = 16 };

struct wp_task_record {
	/* Of its process, and its own, in wallprof's PID namespace. */
	__s32 pid;
	__s32 tid;
	/* State as in /proc/TID/stat: 'S', 'D', 'T' or 't' if the thread was
	 * waiting or stopped, off its CPU, when its registers were read; 0:
	 * otherwise, and NR and REGS are not valid. */
	char state_char;
	/* x86-64: the thread was in 32-bit code. */
	__u8 is_32bit;
	/* The thread is ready to run, may be so, or moved while it was read: it may run
	 * without being put on a CPU after that. */
	__u8 is_ready;
	/* It dumps core, or waits for the end of that: see struct wp_proc_stat. */
	__u8 dumps_core;
	/* Its tid in the first PID namespace. */
	__u32 outer_tid;
	/* The three numbers of /proc/TID/schedstat (fs/proc/base.c,
	 * proc_pid_schedstat): ns on a CPU, ns runnable but waiting for a CPU,
	 * times put on a CPU.  Read before the other fields: if they are the
	 * same later on, the other fields still hold. */
	__u64 run_ns;
	__u64 wait_ns;
	__u64 slices;
	/* CLOCK_MONOTONIC after that, and before the state was read. */
	__u64 time_ns;
	/* Start of the thread, ns after boot: tells it from a later thread with
	 * the same tid. */
	__u64 start_ns;
	/* Number of its system call, -1: none; and its user registers, by DWARF
	 * number. */
	__s64 nr;
	__u64 regs[WP_TASK_REGS];
	/* Name of the thread, ended by NUL. */
	char comm[WP_TASK_COMM];
};

/* The threads of one list, and of one reading. */
enum { WP_TASK_LIST = 1024, WP_TASK_MOVED = 1024 };

/* Threads that were put on one CPU or left it, by their tids in the first PID namespace. */
struct wp_task_list {
	/* The address of the kernel's struct rq of the CPU, which tells what runs there;
	 * 0: not known. */
	__u64 rq;
	/* Context switches of the CPU, of whatever thread. */
	__u64 switches;
	/* pids[TAIL..HEAD), each modulo WP_TASK_LIST, are to be read. */
	__u32 head, tail;
	/* Threads that had no room in it, and those of which the reader knows. */
	__u32 lost, lost_known;
	__u32 pids[WP_TASK_LIST];
};

struct wp_task_moved {
	/* Set by the reader: how many CPUs there are; tids asked[0..NASKED) of the first
	 * PID namespace are read too. */
	__u32 ncpus;
	__u32 nasked;
	__u32 asked[WP_TASK_MOVED];
	/* What was found: records[0..N); threads that have ended, are of no process asked
	 * for or have no room; all CPUs' switches. */
	__u32 n;
	__u32 unknown;
	/* A process asked for has a tid over pid_max, as it was when this was loaded. */
	__u32 is_beyond;
	__u64 switches;
	struct wp_task_record records[WP_TASK_MOVED];
};

#endif
