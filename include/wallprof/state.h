/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - the state and wait reason of a thread, from what /proc says of it.
 *
 * Layer: state.  Pure computation: reads nothing, stops nothing.
 */
#ifndef WP_STATE_H
#define WP_STATE_H

#include "wallprof/fdinfo.h"
#include "wallprof/types.h"

enum {
	WP_SYSCALL_ARGS = 6,
	/* Numbers of system calls are below; x86-64 has 470 of them. */
	WP_SYSCALLS_MAX = 600,
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
	/* A stop makes it return EINTR though no signal came (signal(7), "by
	 * stop signals"); some only with a timeout on the socket. */
	bool eintr_on_stop;
	/* A stop makes it go on through restart_syscall. */
	bool restart_block;
};

/* The row of system call NR of this machine's kind, or NULL if the number is
 * not known. */
const struct wp_syscall_info *wp_syscall_find(long nr);
/* Its name, or "syscall_NR" written to BUF[0..len). */
const char *wp_syscall_name(long nr, char *buf, size_t len);
/* The number of restart_syscall, behind which an interrupted call hides. */
extern const long wp_syscall_restart;
/* The registers (DWARF numbers) that hold a call's arguments, and go on to hold
 * them while it sleeps (syscall(2)). */
extern const uint8_t wp_syscall_arg_regs[WP_SYSCALL_ARGS];

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

/* Refine WAIT, if it is of a call that reads or writes any file (WP_WAIT_FILE,
 * WP_WAIT_DISK), by the KIND of its descriptor: pipe, socket, tty; timer for a
 * timerfd, signal for a signalfd, poll for sources of events (eventfd, inotify,
 * pidfd, ...).  Any other WAIT is returned as it is. */
enum wp_wait wp_state_refine_fd(enum wp_wait wait, enum wp_fd_kind kind);

/* The wait reason by the arguments of futex(2) alone: LOCK for a PI lock, JOIN
 * for the form that pthread_join uses, else FUTEX. */
enum wp_wait wp_state_refine_futex(const uint64_t args[WP_SYSCALL_ARGS]);

/* A frame with names. */
struct wp_named_frame {
	/* Function as in the file (mangled), and demangled. */
	const char *system_name;
	const char *function;
	/* Base name of the file it is in, "" if none. */
	const char *module;
};

/* Refine WAIT (WP_WAIT_FUTEX) by the waiting thread's frames[0..n), innermost
 * first: lock, condvar, semaphore, join, barrier, or WAIT as it is. */
enum wp_wait wp_state_refine_stack(enum wp_wait wait,
				   const struct wp_named_frame *frames,
				   size_t n);

/* Whether FRAME is waiting machinery: of libc, pthread or a std:: wrapper. */
bool wp_state_is_machinery(const struct wp_named_frame *frame);

/* The site of a wait: the index of the innermost of frames[0..n) that is not
 * waiting machinery; 0 if all are; N if there is no frame. */
size_t wp_state_wait_site(const struct wp_named_frame *frames, size_t n);

#endif
