/* SPDX-License-Identifier: Apache-2.0 */
/* tracer.h - stop threads that run, for as short as the kernel allows.
 *
 * Layer: ptrace.
 *
 * A tracee is held from wp_tracer_interrupt until wp_tracer_release and is in
 * exactly one state:
 *
 *   state         release       read_regs   comes from, goes to
 *   INTERRUPTING  not yet (1)   no          interrupt -> STOPPED or gone
 *   STOPPED       yes           yes         wait; release ends it
 *
 *   (1) the kernel detaches stopped tracees only; release marks it unwanted
 *       and the wait that sees its stop detaches it at once.
 *
 * Nothing stays attached between samples, so signals, gdb and strace are never
 * in the way.  If wallprof dies, the kernel detaches and resumes every tracee
 * (ptrace(2)).  All calls come from one thread: ptrace wants it so.
 */
#ifndef WP_TRACER_H
#define WP_TRACER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/types.h"

struct wp_tracee {
	pid_t tid;
	bool stopped;
	/* Released while it had not stopped. */
	bool unwanted;
	/* Its registers were read, and with it the repair done. */
	bool repaired;
	/* Signal to hand on when it is let go; 0 for none. */
	int signal;
	/* When the stop was asked for, and when it was seen. */
	uint64_t asked_ns;
	uint64_t stopped_ns;
	/* What the caller gave; 0 once unwanted. */
	uint64_t cookie;
};

struct wp_tracer {
	/* v[0..len) in no order, owned. */
	struct wp_tracee *v;
	size_t len;
	size_t cap;
	/* A child of ours to whose end wait must listen too; 0 for none. */
	pid_t child;
	bool child_ended;
	/* As waitpid(2) gives it, once CHILD_ENDED. */
	int child_status;
	/* Waits that do not begin by looking again and again, which did not
	 * help. */
	unsigned int spins_left_out;
};

#define WP_TRACER_INIT                                                         \
	{                                                                      \
		0                                                              \
	}

/* What a stopped thread's registers tell. */
struct wp_stop_facts {
	/* The system call that the stop interrupted, -1 when it ran user code
	 * (or the kernel on its way back to it). */
	long syscall_nr;
	uint64_t args[6];
	/* It was asleep in that call: the kernel means to restart it. */
	bool asleep;
	/* EINTR was on its way to the program and has been replaced. */
	bool eintr_repaired;
};

/* Block SIGCHLD in this thread: wait needs it.  Once per program. */
void wp_tracer_init(struct wp_tracer *tracer);

/* Ask thread TID to stop; wait hands it back with COOKIE.
 *
 * Returns 0; -ESRCH when it is gone or on its way out; -EPERM when the kernel
 * forbids it or another process traces it; -EALREADY when it is held already;
 * -ENOMEM.
 */
WP_MUST_CHECK
int wp_tracer_interrupt(struct wp_tracer *tracer, pid_t tid, uint64_t cookie);

/* Wait until some tracee has stopped, but not past UNTIL_NS (0: only look).
 * Returns the tracee, valid until the next call on TRACER, or NULL when the
 * time is over, none is being interrupted, a signal came, or only the child
 * ended.  Tracees that end are dropped.
 */
struct wp_tracee *wp_tracer_wait(struct wp_tracer *tracer, uint64_t until_ns);

/* Sleep until UNTIL_NS or until something happens to a tracee or child, which
 * is then handed out as by wait. */
struct wp_tracee *wp_tracer_sleep(struct wp_tracer *tracer, uint64_t until_ns);

/* Read the registers of stopped TRACEE, all of them known, and undo what the
 * stop did to a system call it slept in: -EINTR on its way to the program
 * becomes -ERESTARTNOHAND, so that the kernel restarts the call unless a real
 * handler runs (kernel/signal.c, arch/x86/kernel/signal.c).  A call about to
 * go on as restart_syscall in a thread with a seccomp filter, which may punish
 * that number by death, is restarted under its own number instead.
 *
 * Returns 0, or -ESRCH when it died in the stop.
 */
WP_MUST_CHECK
int wp_tracer_read_regs(struct wp_tracee *tracee, struct wp_regs *ret_regs,
			struct wp_stop_facts *ret_facts);

/* Does thread TID have a seccomp filter (proc(5), "Seccomp: 2")? */
bool wp_tracer_has_filter(pid_t tid);

/* Let TRACEE go (see the table above) and forget it; the repair of read_regs
 * is made up for if it was not called. */
void wp_tracer_release(struct wp_tracer *tracer, struct wp_tracee *tracee);

/* The tracee of COOKIE that has not stopped yet, or NULL. */
struct wp_tracee *wp_tracer_find(struct wp_tracer *tracer, uint64_t cookie);

/* Let go of everything; waits up to 100 ms for late stops, whose tracees the
 * kernel frees anyway when wallprof exits.  Idempotent. */
void wp_tracer_clear(struct wp_tracer *tracer);

#endif
