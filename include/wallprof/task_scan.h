/* SPDX-License-Identifier: Apache-2.0 */
/* task_scan.h - reads schedstat, registers and name of all threads of some processes
 * by one BPF program.
 *
 * Layer: bpf.
 *
 * /proc costs one system call per thread for schedstat, and two more for the
 * system call in which a thread waits, with its arguments, pc and sp.  The BPF
 * program (task_scan.bpf.c) walks the thread list instead and writes a record of
 * each thread, with all registers of threads that wait, to memory that wallprof
 * maps: one system call or two per scan, and some tens of nanoseconds per thread.
 *
 * Needs CAP_BPF and CAP_PERFMON (or root) in the initial user namespace, Linux 6.7
 * (task iterators in a program) and the kernel's BTF.  Nothing is pinned: program,
 * map and link end with their descriptors.
 *
 * A thread that starts or ends during a scan may have no record, and one that has
 * exited has none: the caller reads it from /proc.
 */
#ifndef WP_TASK_SCAN_H
#define WP_TASK_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/task_record.h"

struct wp_task_scan;

/* Load the program, with room for twice as many threads as NTHREADS, and for 1,024.  Takes
 * some 100 ms, mostly the kernel's verifier: not while a thread is held.
 *
 * 0; -EPERM: BPF is not permitted; -ENOTSUP: BPF was left out of the build, or the
 * kernel is too old or has no BTF; -ENOMEM; -errno of mmap.  ERR says why.
 */
WP_MUST_CHECK
int wp_task_scan_open(struct wp_task_scan **ret, size_t nthreads,
		      struct wp_err *err);

/* Scan process PID too from now on; no longer.  From the second process on the
 * program walks the threads of all processes to find theirs, 5 to 40 ns each.  0, or
 * -errno: its threads will have no records.  PID need not be scanned to be dropped. */
WP_MUST_CHECK
int wp_task_scan_add(struct wp_task_scan *scan, pid_t pid);
void wp_task_scan_drop(struct wp_task_scan *scan, pid_t pid);

/* Scan all threads that there is room for: (*RET)[0..*RET_N) are their records by
 * ascending pid, and for each process by tid, borrowed until the next call on SCAN;
 * none of a process that has ended.  0, or -errno and *RET and *RET_N are untouched. */
WP_MUST_CHECK
int wp_task_scan_read(struct wp_task_scan *scan,
		      const struct wp_task_record *const **ret, size_t *ret_n);

/* How many threads the last scan of all found, if they were more than there is room for
 * and another scan could have more; else 0. */
size_t wp_task_scan_lacks_room(const struct wp_task_scan *scan);

/* Have a program at each context switch of the machine note which threads of these
 * processes are put on a CPU or leave it, some 60 ns each; or no longer.  0 or -errno. */
WP_MUST_CHECK
int wp_task_scan_note_switches(struct wp_task_scan *scan, bool on);

/* Scan only the threads that may have run since the last scan of either kind: those that
 * were put on a CPU or left it since then, or were ready to run at it.  *RET and *RET_N as of
 * wp_task_scan_read; *RET_SWITCHES: context switches of the machine since the noting
 * began first, of whatever thread.
 *
 * 0; -EAGAIN: all threads are to be scanned, since none are noted yet, not all were, or
 * threads have ended; or another -errno.
 */
WP_MUST_CHECK
int wp_task_scan_read_moved(struct wp_task_scan *scan,
			    const struct wp_task_record *const **ret,
			    size_t *ret_n, uint64_t *ret_switches);

/* Accepts NULL. */
void wp_task_scan_close(struct wp_task_scan *scan);

#endif
