/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - the state and wait reason of a thread, from what /proc says of it.
 *
 * Layer: state.  Pure computation: reads nothing, stops nothing.
 */
#ifndef WP_STATE_H
#define WP_STATE_H

#include "wallprof/fdinfo.h"
#include "wallprof/hold.h"
#include "wallprof/types.h"

enum {
	WP_SYSCALL_ARGS = 6,
	/* Numbers of system calls are below; x86-64 has 470 of them. */
	WP_SYSCALLS_MAX = 600,
	/* Added to the numbers of i386's calls that are not known here. */
	WP_SYSCALL_FOREIGN = 1000000,
	/* fcntl(2)'s F_SETLKW for offsets of 64 bits (include/uapi/asm-generic/
	 * fcntl.h), which only i386 programs have. */
	WP_F_SETLKW64 = 14,
};

/* What becomes of a sleep in a system call that a stop ends and the kernel, or
 * wallprof's repair, restarts. */
enum wp_restart {
	/* Its time limit or its work may start over, or nothing is known of it:
	 * a socket may have a time limit (SO_RCVTIMEO, SO_SNDTIMEO), a write
	 * may be cut short, a file server be told twice. */
	WP_RESTART_OVER,
	/* It waits on for the same; its time limit starts over. */
	WP_RESTART_WAITS,
	/* The same, by what is behind its descriptor: a pipe or an event
	 * source, but no socket, terminal or file. */
	WP_RESTART_BY_FD,
	/* The kernel keeps the time that is left; the call may go on as
	 * restart_syscall. */
	WP_RESTART_KEEPS_TIME,
};

/* What a system call that can block waits for. */
struct wp_syscall_info {
	/* As in the kernel's table, "epoll_wait"; NULL for a free number. */
	const char *name;
	/* Reason if a thread sleeps in it; WP_WAIT_SYSCALL when nothing more is
	 * known.  A call on a descriptor is refined by what is behind it. */
	enum wp_wait wait;
	/* Index of the argument that is the descriptor it waits for, -1 if
	 * none.
	 */
	int8_t fd_arg;
	enum wp_restart restart;
	/* Index of the argument that is its time limit: a pointer, NULL for
	 * none; -1: it has none. */
	int8_t limit_arg;
	/* That argument is milliseconds instead, negative for none. */
	bool limit_is_ms;
	/* It only waits: made again, it does no work twice. */
	bool only_waits;
};

/* The row of system call NR of this machine's kind, or NULL if the number is
 * not known. */
const struct wp_syscall_info *wp_syscall_find(long nr);
/* Its name, or "syscall_NR" (i386_syscall_NR) written to BUF[0..len). */
const char *wp_syscall_name(long nr, char *buf, size_t len);

/* A call of an i386 program, as this machine's own programs would make it. */
struct wp_native_call {
	/* The number of the same call here; of one that there is none of,
	 * WP_SYSCALL_FOREIGN + NR. */
	long nr;
	uint64_t args[WP_SYSCALL_ARGS];
	/* Its times are of two words of 32 bits: a call from before time64. */
	bool has_narrow_time;
};

/* Call NR with ARGS[0..6) of an i386 program, in RET.  socketcall(2) has its arguments
 * in BLOCK[0..6), which is at args[1]; NULL: it could not be read. */
void wp_syscall_of_i386(struct wp_native_call *ret, long nr,
			const uint64_t *args, const uint32_t *block);
/* Is NR socketcall(2) of i386? */
bool wp_syscall_is_i386_socketcall(long nr);

/* The number of restart_syscall, behind which an interrupted call hides. */
extern const long wp_syscall_restart;
/* The registers (DWARF numbers) that hold a call's arguments, and go on to hold
 * them while it sleeps (syscall(2)). */
extern const uint8_t wp_syscall_arg_regs[WP_SYSCALL_ARGS];
/* The same of an i386 program: ebx, ecx, edx, esi, edi, ebp. */
extern const uint8_t wp_syscall_i386_arg_regs[WP_SYSCALL_ARGS];

/* What /proc said of a thread. */
struct wp_thread_facts {
	/* State character of /proc/PID/stat (proc(5)), 0 if not read. */
	char state_char;
	/* /proc/TID/syscall said "running". */
	bool running;
	/* The system call that it sleeps in; -1: it sleeps outside of one (a
	 * page fault). */
	long syscall_nr;
	uint64_t args[WP_SYSCALL_ARGS];
	/* See struct wp_native_call. */
	bool has_narrow_time;
	/* It is a worker of the kernel's, which is in no call and on no page of the
	 * program's (io_uring, vhost). */
	bool is_worker;
	/* What holds it up, where that was asked. */
	enum wp_hold hold;
	/* Kind of the call's descriptor argument; WP_FD_UNKNOWN: not read. */
	enum wp_fd_kind fd_kind;
};

struct wp_thread_state {
	enum wp_state state;
	enum wp_wait wait;
};

/* The state and, when waiting, the reason as far as FACTS tell: WP_WAIT_FUTEX
 * for any futex, which wp_state_refine_stack refines. */
struct wp_thread_state wp_state_classify(const struct wp_thread_facts *facts);

/* Refine WAIT of call NR, if that reads or writes any file (WP_WAIT_FILE,
 * WP_WAIT_DISK), by the KIND of its descriptor: pipe, socket, tty; timer for a
 * timerfd, signal for a signalfd, poll for sources of events (eventfd, inotify,
 * pidfd, ...).  Any other WAIT is returned as it is, and that of a sendfile(2) for
 * the disk that it reads. */
enum wp_wait wp_state_refine_fd(enum wp_wait wait, long nr,
				enum wp_fd_kind kind);

/* May a thread that sleeps as FACTS say, or that a signal has stopped, be stopped by
 * ptrace and let go on, and neither its time limit nor anything else start over?
 * HAS_FILTER: the thread has a seccomp filter, which may kill it for
 * restart_syscall, or tell a supervisor of each call that is restarted
 * (seccomp_unotify(2)). */
bool wp_state_may_stop(const struct wp_thread_facts *facts, bool has_filter);

/* May call NR with ARGS end by a time limit of its own?  One in memory, which is not
 * read, counts whatever it is.  Not by those of a socket (SO_RCVTIMEO), or of
 * recvmmsg(2), which looks at the time only when something came. */
bool wp_state_is_timed(long nr, const uint64_t args[WP_SYSCALL_ARGS]);

/* The wait reason by the arguments of futex(2) alone: LOCK for a PI lock, JOIN
 * for the form that pthread_join uses (as does a shared condvar of glibc 2.41), else
 * FUTEX. */
enum wp_wait wp_state_refine_futex(const uint64_t args[WP_SYSCALL_ARGS]);

/* A frame with names. */
struct wp_named_frame {
	/* Function as in the file (mangled), and demangled. */
	const char *system_name;
	const char *function;
	/* Base name of the file it is in, "" if none. */
	const char *module;
};

/* Refine WAIT (WP_WAIT_FUTEX or WP_WAIT_JOIN) by the waiting thread's frames[0..n),
 * innermost first: lock, condvar, semaphore, join, barrier, or WAIT as it is. */
enum wp_wait wp_state_refine_stack(enum wp_wait wait,
				   const struct wp_named_frame *frames,
				   size_t n);

/* Is FRAME waiting machinery: of a C library, or of how another library or a language
 * waits (the table in src/state/wait_site.c)? */
bool wp_state_is_machinery(const struct wp_named_frame *frame);

/* The site of a wait: the index of the innermost of frames[0..n) that is not
 * waiting machinery; 0 if all are; N if there is no frame. */
size_t wp_state_wait_site(const struct wp_named_frame *frames, size_t n);

#endif
