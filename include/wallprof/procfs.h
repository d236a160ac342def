/* SPDX-License-Identifier: Apache-2.0 */
/* procfs.h - what /proc says of one thread, parsed.
 *
 * Layer: proc.  Texts are as in proc(5); parsers take LEN bytes that need not
 * end in NUL and allocate nothing, so they may be used in the sampling path.
 */
#ifndef WP_PROCFS_H
#define WP_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"

/* /proc/TID/schedstat (Documentation/scheduler/sched-stats.rst). */
struct wp_schedstat {
	/* Time on a CPU, and runnable but waiting for one. */
	uint64_t run_ns;
	uint64_t wait_ns;
	/* Times it was put on a CPU. */
	uint64_t slices;
};

/* /proc/TID/syscall. */
struct wp_proc_syscall {
	/* On a CPU or runnable: the rest is not set. */
	bool running;
	/* -1: blocked outside a system call. */
	long nr;
	/* The call's arguments; 0 when NR is -1. */
	uint64_t args[6];
	uint64_t sp_avma;
	uint64_t pc_avma;
};

/* The fields of /proc/TID/stat that are used. */
struct wp_proc_stat {
	char state_char;
	int32_t ppid;
	/* Clock ticks after boot: tells a process from a later one with the
	 * same number. */
	uint64_t start_time;
	/* CPU it last ran on. */
	int32_t cpu;
	/* PF_KTHREAD is set in the flags. */
	bool kernel_thread;
};

/* Each returns 0 or -EBADMSG, and touches *RET on success only. */
WP_MUST_CHECK
int wp_schedstat_parse(struct wp_schedstat *ret, const char *text, size_t len);
WP_MUST_CHECK
int wp_proc_syscall_parse(struct wp_proc_syscall *ret, const char *text,
			  size_t len);
/* The command name in it may hold any byte, ") R (" included: the last ')'
 * ends it. */
WP_MUST_CHECK
int wp_proc_stat_parse(struct wp_proc_stat *ret, const char *text, size_t len);

/* The number behind "NAME:" of /proc/TID/status in base BASE, such as
 * ("TracerPid", 10).  -EBADMSG when there is no such line. */
WP_MUST_CHECK
int wp_proc_status_parse(uint64_t *ret, const char *text, size_t len,
			 const char *name, int base);

enum { WP_PID_LEVELS = 32 };

/* The numbers behind "NSpid:" of /proc/PID/status: what the process is called
 * in the PID namespace of the reader's /proc and in each one inside it, down to
 * its own, which comes last (pid_namespaces(7); at most 32 deep).  Returns how
 * many, at least 1, in ret[0..); -EBADMSG, with nothing touched. */
WP_MUST_CHECK
int wp_proc_nspid_parse(int32_t ret[WP_PID_LEVELS], const char *text,
			size_t len);
/* The same of file PATH of DIRFD; also the -errno of reading it. */
WP_MUST_CHECK
int wp_proc_nspid_read(int32_t ret[WP_PID_LEVELS], int dirfd, const char *path);

#endif
