/* SPDX-License-Identifier: Apache-2.0 */
/* thread_files.h - files of /proc/PID/task/TID that are read over and over.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_THREAD_FILES_H
#define WP_THREAD_FILES_H

#include <stddef.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/procfs.h"

struct wp_target;
struct wp_thread;

enum wp_thread_file {
	WP_THREAD_SCHEDSTAT,
	WP_THREAD_SYSCALL,
	WP_THREAD_STAT,
	WP_NTHREAD_FILES
};

/* Part of a thread. */
struct wp_thread_files {
	/* An open descriptor, owned, or see thread_files.c. */
	int fds[WP_NTHREAD_FILES];
};

void wp_thread_files_init(struct wp_thread_files *files);
void wp_thread_files_close(struct wp_thread_files *files);

/* Read T's FILE into BUF[0..size): bytes, with a NUL behind them, or -errno. */
ssize_t wp_thread_files_read(struct wp_thread *t, enum wp_thread_file file,
			     char *buf, size_t size);

/* The same of file NAME of thread TID, which is not kept open. */
ssize_t wp_thread_files_read_once(const struct wp_target *target, pid_t tid,
				  const char *name, char *buf, size_t size);

/* Read T's schedstat.  0, -ESRCH or -ENOENT when T is gone, or another -errno. */
WP_MUST_CHECK
int wp_thread_files_schedstat(struct wp_thread *t, struct wp_schedstat *ret);

/* Does T sleep in a system call or a page fault?  A thread that was woken and waits
 * for a CPU does not. */
bool wp_thread_files_waits(struct wp_thread *t);

/* The same, and *RET is where. */
bool wp_thread_files_call(struct wp_thread *t, struct wp_proc_syscall *ret);

/* Read the number in line NAME of T's status: 0 or -errno. */
WP_MUST_CHECK
int wp_thread_files_status(uint64_t *ret, const struct wp_thread *t,
			   const char *name);

/* How often T has slept (voluntary_ctxt_switches of proc(5)); UINT64_MAX: not known. */
uint64_t wp_thread_files_sleeps(const struct wp_thread *t);

/* Its CPU's time when T last began to run or to wait (/proc/TID/sched); 0: not known. */
uint64_t wp_thread_files_exec_start(const struct wp_thread *t);

/* The CPU that T last ran on; -1: not known. */
int32_t wp_thread_files_cpu(struct wp_thread *t);

/* Is T still the thread that its descriptors were opened on?  A later thread
 * with the same tid cannot be read through them. */
bool wp_thread_files_answer(struct wp_thread *t);

#endif
