/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - a live process, held open.
 *
 * Layer: proc.
 *
 * The descriptors pin the process: once it is gone they give ESRCH, even when
 * its number has been given to another.
 */
#ifndef WP_PROCESS_H
#define WP_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/io.h"
#include "wallprof/maps.h"

struct wp_process {
	pid_t pid;
	/* pidfd_open(2); -1 on a kernel before 5.3. */
	int pidfd;
	/* /proc/PID (/proc/TID of another thread where the first has exited)
	 * and /proc/PID/task, open directories. */
	int proc_fd;
	int task_fd;
	/* /proc/PID/root, O_PATH: the target's files even after it has gone;
	 * -1 where not permitted. */
	int root_fd;
	/* Clock ticks after boot. */
	uint64_t start_time;
	/* Owner, for messages. */
	uid_t uid;
	/* The thread whose memory is read: the first, if it had not exited. */
	pid_t reader_tid;
};

#define WP_PROCESS_INIT                                                        \
	{                                                                      \
		0, -1, -1, -1, -1, 0, 0, 0                                     \
	}

/* Open process PID; the number of one of its other threads will do.
 *
 * Returns 0; -ESRCH when there is none or it is a zombie; -ENOTSUP for a kernel
 * thread or a 32-bit program; -EPERM when it may not be looked at (ERR then
 * says only that; wp_access_denied knows why); -EMFILE.
 */
WP_MUST_CHECK
int wp_process_open(struct wp_process *ret, pid_t pid, struct wp_err *err);
void wp_process_clear(struct wp_process *process);

/* May it still be looked at?  Asked where wallprof has capabilities from its
 * file, with which a process can be read that has executed a set-user-ID
 * program since.  0, or -EPERM with ERR: what was read is not to be shown. */
WP_MUST_CHECK
int wp_process_recheck(const struct wp_process *process, struct wp_err *err);

/* Still there, and not a zombie all through. */
bool wp_process_is_alive(const struct wp_process *process);

/* Does it run a 32-bit program, of which neither calls nor registers are known
 * here?  False when that cannot be told. */
bool wp_process_is_32bit(const struct wp_process *process);

/* How many threads it has now, from one fstat(2): a zombie has one, and once
 * there are none its number may be another's.  The kernel makes the link count
 * of the task directory from it (fs/proc/base.c, proc_task_getattr). */
long wp_process_count_threads(const struct wp_process *process);

/* Thread ids, in the kernel's order (by creation). */
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

/* Replace TIDS by the threads there are.  0, -ESRCH, -ENOMEM. */
WP_MUST_CHECK
int wp_process_list_threads(const struct wp_process *process,
			    struct wp_tids *tids);
void wp_tids_clear(struct wp_tids *tids);

/* Copy up to LEN bytes of its memory at AVMA to BUF (process_vm_readv(2), which
 * stops at the first page it cannot read).  Bytes read, 0 if none, or -EPERM,
 * -ESRCH.
 */
ssize_t wp_process_read(const struct wp_process *process, uint64_t avma,
			void *buf, size_t len);

/* Read its memory map into MAPS by way of TEXT.  0, -ESRCH, -EPERM, -ENOMEM,
 * -EBADMSG, -EOVERFLOW (over 256 MiB of text). */
WP_MUST_CHECK
int wp_process_read_maps(const struct wp_process *process, struct wp_text *text,
			 struct wp_maps *maps);

/* A descriptor of the memory map, for the two questions below, which the caller
 * owns; negative when the process is gone or it is not permitted. */
int wp_process_open_maps(const struct wp_process *process);

/* Open the file behind MAP for reading: through /proc/PID/map_files, which
 * also reaches deleted and hidden files, else by path under /proc/PID/root if
 * that is still the same inode.  A descriptor the caller owns, or -errno. */
int wp_process_open_map(const struct wp_process *process,
			const struct wp_maps *maps, const struct wp_map *map);

/* Is the region that now holds AVMA the one of START, OFF, INO?  One ioctl on
 * the open /proc/PID/maps MAPS_FD (PROCMAP_QUERY, Linux 6.11): 1 yes, 0 no,
 * -ENOTSUP on an older kernel. */
int wp_process_check_map(int maps_fd, uint64_t avma, uint64_t start_avma,
			 uint64_t off, uint64_t ino);

/* Is there code at AVMA now?  Asked in the same way: 1 yes (or the address
 * space of MAPS_FD is gone), 0 no, -ENOTSUP. */
int wp_process_check_code(int maps_fd, uint64_t avma);

/* The command line as one line, arguments parted by blanks, into BUF[0..size);
 * "[comm]" style name when it has none. */
void wp_process_command_line(const struct wp_process *process, char *buf,
			     size_t size);

/* The path of the program it runs, without " (deleted)", "" if not known. */
void wp_process_exe(const struct wp_process *process, char *buf, size_t size);

#endif
