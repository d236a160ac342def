/* SPDX-License-Identifier: Apache-2.0 */
/* task_scan.h - ask the kernel for all threads of a process at once.
 *
 * Layer: bpf.
 *
 * /proc/TID/schedstat costs a system call and a text per thread, and to know
 * where a thread waits takes two more, which give three of its registers and the
 * arguments of its call.  A BPF program (task_scan.bpf.c) walks the thread list
 * instead and leaves a record of each, with all registers of those that wait, in
 * memory that is mapped here: one system call or two a scan, and some tens of
 * nanoseconds a thread.
 *
 * It wants CAP_BPF and CAP_PERFMON (or root) in the first user namespace, Linux
 * 6.7 (task iterators inside a program) and the kernel's BTF.  Nothing is
 * pinned: program, map and link end with their descriptors.
 *
 * A thread that begins or ends during a scan may be left out of it: what is not
 * among the records has to be asked for itself.
 */
#ifndef WP_TASK_SCAN_H
#define WP_TASK_SCAN_H

#include <stddef.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/task_record.h"

struct wp_task_scan;

/* Make ready to scan process PID, which has some NTHREADS threads now (a hint).
 * Takes 10 to 20 ms, most of it reading the kernel's types.
 *
 * 0; -EPERM when BPF is not permitted; -ENOTSUP when it was left out of the
 * build, or the kernel is too old or has no BTF; -ENOMEM.  ERR says why.
 */
WP_MUST_CHECK
int wp_task_scan_open(struct wp_task_scan **ret, pid_t pid, size_t nthreads,
		      struct wp_err *err);

/* Scan: (*RET)[0..*RET_N) is a record per thread, by tid; borrowed until the
 * next scan or the end.  There is none when the process has gone.  0 or
 * -errno, with *RET and *RET_N untouched. */
WP_MUST_CHECK
int wp_task_scan_read(struct wp_task_scan *scan,
		      const struct wp_task_record **ret, size_t *ret_n);

/* Accepts NULL. */
void wp_task_scan_close(struct wp_task_scan *scan);

#endif
