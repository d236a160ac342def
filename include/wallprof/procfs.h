/* SPDX-License-Identifier: Apache-2.0 */
/* procfs.h - parsers of the files of one thread in /proc.
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
	/* Number of times that it was put on a CPU. */
	uint64_t slices;
};

/* /proc/TID/syscall. */
struct wp_proc_syscall {
	/* "running": on a CPU or runnable; the rest is not set. */
	bool running;
	/* Number of the system call that the thread is in; -1: blocked outside
	 * of one. */
	long nr;
	/* The call's arguments; 0 when NR is -1. */
	uint64_t args[6];
	uint64_t sp_avma;
	uint64_t pc_avma;
};

/* Some fields of /proc/TID/stat. */
struct wp_proc_stat {
	char state_char;
	int32_t ppid;
	/* Clock ticks after boot: distinguishes processes that had the same pid
	 * one after the other. */
	uint64_t start_time;
	/* CPU that it last ran on. */
	int32_t cpu;
	/* Of its process; one that has ended has its first, a zombie, until its parent
	 * asks. */
	int64_t nthreads;
	/* PF_KTHREAD is set in the flags. */
	bool kernel_thread;
	/* PF_IO_WORKER or PF_USER_WORKER is: the kernel's, for io_uring or vhost. */
	bool user_worker;
	/* PF_DUMPCORE or, from Linux 5.16 on, PF_POSTCOREDUMP is: it dumps core, or
	 * waits for the end of that. */
	bool dumps_core;
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
/* Read and parse /proc/PID/stat, of a process or a thread; also the -errno of reading,
 * -ENOENT or -ESRCH if there is none. */
WP_MUST_CHECK
int wp_proc_stat_read(struct wp_proc_stat *ret, int32_t pid);
/* The same of the file at PATH, below DIRFD. */
WP_MUST_CHECK
int wp_proc_stat_read_at(struct wp_proc_stat *ret, int dirfd, const char *path);
/* STAT is of /proc/PID: has the process ended?  A zombie has, but for a first thread
 * that has left the others by pthread_exit(3). */
bool wp_proc_stat_has_ended(const struct wp_proc_stat *stat);

/* Parse the first value of line "NAME:" of /proc/TID/status, a number in base
 * BASE, such as ("TracerPid", 10).  -EBADMSG when there is no such line, or the
 * value is no number. */
WP_MUST_CHECK
int wp_proc_status_parse(uint64_t *ret, const char *text, size_t len,
			 const char *name, int base);
/* Read and parse that line of /proc/PID/status, 0: of this process's, however much comes
 * before it; also the -errno of reading. */
WP_MUST_CHECK
int wp_proc_status_read(uint64_t *ret, int32_t pid, const char *name, int base);
/* The same of file PATH relative to DIRFD. */
WP_MUST_CHECK
int wp_proc_status_read_at(uint64_t *ret, int dirfd, const char *path,
			   const char *name, int base);
/* Is WORD one of those that line "NAME:" of that file has, with blanks between?  A line
 * that there is not has none.  1, 0, or the -errno of reading. */
WP_MUST_CHECK
int wp_proc_status_has_word_at(int dirfd, const char *path, const char *name,
			       const char *word);

/* The signals that the timers in TEXT[0..len), of /proc/PID/timers, send
 * (timer_create(2)), whether set or not: bit N - 1 is for signal N. */
uint64_t wp_proc_timers_parse(const char *text, size_t len);

enum { WP_PID_LEVELS = 32 };

/* Parse line "NSpid:" of /proc/PID/status: the pids of the process in the PID
 * namespace of the reader's /proc and in each one below, its own last
 * (pid_namespaces(7); at most 32 deep).  Returns their number, at least 1; or
 * -EBADMSG, with RET untouched. */
WP_MUST_CHECK
int wp_proc_nspid_parse(int32_t ret[WP_PID_LEVELS], const char *text,
			size_t len);
/* Read and parse file PATH relative to DIRFD; also the -errno of reading. */
WP_MUST_CHECK
int wp_proc_nspid_read(int32_t ret[WP_PID_LEVELS], int dirfd, const char *path);

/* 1 if this process is in the first PID namespace, 0 if it is in one below it: the first
 * has a fixed inode number (include/linux/proc_ns.h, PROC_PID_INIT_INO).  -errno where
 * /proc does not tell. */
WP_MUST_CHECK
int wp_proc_is_in_first_pid_namespace(void);

/* Is the process at PROC_FD, a /proc/PID, in this one's namespace NAME ("net", "time":
 * namespaces(7))?  False if that cannot be read. */
bool wp_proc_shares_namespace(int proc_fd, const char *name);

#endif
