/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - a live process, held open.
 *
 * Layer: proc.
 *
 * The descriptors stay with the process: once it has ended they give ESRCH,
 * even if the kernel gives its pid to another.
 */
#ifndef WP_PROCESS_H
#define WP_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/io.h"
#include "wallprof/maps.h"

/* Room for a thread's name: TASK_COMM_LEN is 16; the kernel has 64 for workqueues. */
enum { WP_COMM_MAX = 80 };

struct wp_process {
	pid_t pid;
	/* pidfd_open(2); -1 on a kernel before 5.3. */
	int pidfd;
	/* Open directories /proc/PID (or /proc/TID of another thread if the
	 * leader has exited) and /proc/PID/task. */
	int proc_fd;
	int task_fd;
	/* /proc/PID/root, O_PATH, which outlives the process; -1: not
	 * permitted. */
	int root_fd;
	/* Clock ticks after boot. */
	uint64_t start_time;
	/* Owner of /proc/PID. */
	uid_t uid;
	/* Tid for process_vm_readv(2): the thread group leader, or another
	 * thread if the leader has exited. */
	pid_t reader_tid;
};

#define WP_PROCESS_INIT                                                        \
	{                                                                      \
		0, -1, -1, -1, -1, 0, 0, 0                                     \
	}

/* Open process PID.  PID may be the tid of any of its threads.
 *
 * Returns 0; -ESRCH when there is none or it is a zombie; -ENOTSUP for a kernel
 * thread or a 32-bit program that is not i386's; -EPERM when access is denied
 * (wp_access_denied finds the reason); -EDEADLK for one that traces wallprof
 * (wp_access_traces_us); -EMFILE.
 */
WP_MUST_CHECK
int wp_process_open(struct wp_process *ret, pid_t pid, struct wp_err *err);
void wp_process_clear(struct wp_process *process);

/* Check again what an exec may have changed since wp_process_open: 0; -ENOTSUP for
 * a 32-bit program that is not i386's; -EPERM when access is denied. */
WP_MUST_CHECK
int wp_process_check_program(struct wp_process *process, struct wp_err *err);

/* Check access to PROCESS again.  Needed where wallprof has capabilities from
 * its own file (AT_SECURE): with those it could read on when the process
 * executes a set-user-ID program.  0, or -EPERM with ERR: then what was read
 * must not be shown. */
WP_MUST_CHECK
int wp_process_recheck(const struct wp_process *process, struct wp_err *err);

/* Whether PROCESS has a thread that has not exited. */
bool wp_process_is_alive(const struct wp_process *process);

/* Whether PROCESS has the thread TID, and that has not exited. */
bool wp_process_has_living(const struct wp_process *process, pid_t tid);

/* Whether PROCESS runs an i386 program, whose words have 32 bits.
 * False when /proc/PID/auxv cannot be read. */
bool wp_process_is_32bit(const struct wp_process *process);

/* CPU time of all threads that PROCESS has had, in ns; 0: it has gone. */
uint64_t wp_process_cpu_ns(const struct wp_process *process);

/* The number of its threads, from one fstat(2): st_nlink of the task directory
 * is that plus 2 (fs/proc/base.c, proc_task_getattr).  A zombie has one; 0: the
 * process has been reaped.  Negative: -errno. */
long wp_process_count_threads(const struct wp_process *process);

/* A list of tids or pids. */
struct wp_tids {
	/* v[0..len), owned. */
	pid_t *v;
	size_t len;
	size_t cap;
};

#define WP_TIDS_INIT                                                           \
	{                                                                      \
		0                                                              \
	}

/* Replace TIDS by the tids of PROCESS's threads, by creation.  0, -ESRCH,
 * -ENOMEM. */
WP_MUST_CHECK
int wp_process_list_threads(const struct wp_process *process,
			    struct wp_tids *tids);
/* Sort TIDS by number. */
void wp_tids_sort(struct wp_tids *tids);
void wp_tids_clear(struct wp_tids *tids);

/* Copy up to LEN bytes of PROCESS's memory at AVMA to BUF (process_vm_readv(2),
 * which stops at the first unreadable page).  Returns the number of bytes, 0 if
 * none is readable, or -EPERM, -ESRCH.
 */
ssize_t wp_process_read(const struct wp_process *process, uint64_t avma,
			void *buf, size_t len);

/* Memory of a process that is to be read. */
struct wp_process_range {
	uint64_t avma;
	/* Room for LEN bytes. */
	void *buf;
	size_t len;
	/* Set when it was read: all of it is in BUF. */
	bool is_read;
};

/* Read the ranges v[0..n), many by one system call; a range that is not all
 * readable costs one more.  0, -EPERM or -ESRCH. */
WP_MUST_CHECK
int wp_process_read_ranges(const struct wp_process *process,
			   struct wp_process_range *v, size_t n);

/* Replace MAPS by PROCESS's memory map; TEXT is a buffer.  What is beyond half of the
 * share of WP_BUDGET_MAP_TEXT is left out: 0, and MAPS->is_cut.  0; -ESRCH: it has
 * ended, and the mappings in MAPS stay; -EPERM, -ENOMEM, -EBADMSG. */
WP_MUST_CHECK
int wp_process_read_maps(const struct wp_process *process, struct wp_text *text,
			 struct wp_maps *maps);

/* Open /proc/PID/maps for the two queries below.  Returns a descriptor that the
 * caller owns; negative when the process has ended or access is denied. */
int wp_process_open_maps(const struct wp_process *process);

/* Open the file behind MAP for reading, if it is a regular one: through
 * /proc/PID/map_files, which also reaches deleted and hidden files but is for the
 * privileged, else through /proc/PID/exe if it is the program, else by path under
 * /proc/PID/root if that is still the same inode.  Anything else, as a fifo laid over
 * it, is not opened.  A descriptor the caller owns, or -errno. */
int wp_process_open_map(const struct wp_process *process,
			const struct wp_maps *maps, const struct wp_map *map);

/* Whether the region that holds AVMA now begins at START_AVMA and shows offset
 * OFF of inode INO.  One ioctl(2) on MAPS_FD, an open /proc/PID/maps
 * (PROCMAP_QUERY, Linux 6.11): 1 yes, 0 no, -ENOTSUP on an older kernel. */
int wp_process_check_map(int maps_fd, uint64_t avma, uint64_t start_avma,
			 uint64_t off, uint64_t ino);

/* Whether AVMA is in an executable region now, by the same ioctl(2): 1 yes, or
 * the address space behind MAPS_FD is gone; 0 no; -ENOTSUP. */
int wp_process_check_code(int maps_fd, uint64_t avma);

/* Where the region at AVMA ends, by MAPS_FD, which wp_process_open_maps gave; 0: there is
 * none, or the kernel cannot be asked (before Linux 6.11). */
uint64_t wp_process_region_end(int maps_fd, uint64_t avma);

/* Put the command line, arguments separated by blanks, into BUF[0..size);
 * "[COMM]" if it is empty. */
void wp_process_command_line(const struct wp_process *process, char *buf,
			     size_t size);

/* Put PROCESS's name (comm), that of its first thread, into BUF[0..size); "" if it has
 * ended. */
void wp_process_name(const struct wp_process *process, char *buf, size_t size);

/* Put the path of PROCESS's program, without " (deleted)", into BUF[0..size);
 * "" if it cannot be read. */
void wp_process_exe(const struct wp_process *process, char *buf, size_t size);

/* The same of process PID, which is not open. */
void wp_process_exe_of(pid_t pid, char *buf, size_t size);

#endif
