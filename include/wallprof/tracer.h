/* SPDX-License-Identifier: Apache-2.0 */
/* tracer.h - stops running threads, for as short as the kernel allows.
 *
 * Layer: ptrace.
 *
 * A tracee is held from wp_tracer_interrupt until wp_tracer_release and is in
 * exactly one state:
 *
 *   state         release       read_regs   comes from, goes to
 *   INTERRUPTING  not yet (1)   no          interrupt -> STOPPED or gone
 *   STOPPED       yes           yes         wait; release -> gone or REMAKING
 *   REMAKING      no            no          makes its call again (2) -> gone
 *
 *   (1) the kernel detaches stopped tracees only: release marks the tracee
 *       unwanted, and the wait that sees its stop detaches it at once.
 *   (2) aarch64: it runs, unwanted, until its call is made, and is detached then.
 *
 * No thread stays attached between samples, so wallprof is not in the way of
 * signals, gdb and strace.  If wallprof dies, the kernel detaches and resumes every tracee
 * (ptrace(2)).  All calls must come from one thread, as ptrace(2) demands.
 */
#ifndef WP_TRACER_H
#define WP_TRACER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/call_argument.h"
#include "wallprof/err.h"
#include "wallprof/procfs.h"
#include "wallprof/types.h"

/* A system call that a stopped thread is to make again, and that has to be watched
 * until it is made (aarch64). */
struct wp_remade_call {
	bool pending;
	/* It would have ended by EINTR. */
	bool ended;
	/* It ends by EINTR: it has done its work (close), or the kernel does not tell what
	 * it was called with. */
	bool lost;
	/* What the thread slept in before the stop: see wp_regs_note_call. */
	struct wp_proc_syscall before;
	/* Tells its first argument where nothing else does; borrowed from the tracer,
	 * NULL: there is none. */
	struct wp_call_argument *argument;
	/* It was made, and left out; the kernel had made it as restart_syscall. */
	bool is_made;
	bool by_restart;
	/* Its number, under which it is made again. */
	long nr;
};

struct wp_tracee {
	pid_t tid;
	bool stopped;
	/* Released, but not detached yet: it had not stopped, or RESTART is pending. */
	bool unwanted;
	/* Its registers were read, which includes the repair. */
	bool repaired;
	/* Where it is, with this stack pointer, if it is new in a program (execve(2)) that it
	 * has not begun; 0: it is not. */
	uint64_t entry_avma;
	uint64_t entry_sp_avma;
	/* Released, it executes that program again, and gets the rights of its file; or
	 * goes on without them: see src/ptrace/exec_again.h. */
	bool executes_again;
	bool lost_rights;
	struct wp_remade_call restart;
	/* Signal to pass on when it is detached; 0: none. */
	int signal;
	/* Times of PTRACE_INTERRUPT and of the stop. */
	uint64_t asked_ns;
	uint64_t stopped_ns;
	/* The caller's value; 0 once unwanted. */
	uint64_t cookie;
};

struct wp_tracer {
	/* v[0..len) in no order, owned. */
	struct wp_tracee *v;
	size_t len;
	size_t cap;
	/* A child of wallprof whose end ends a wait, too; 0: none. */
	pid_t child;
	bool child_ended;
	/* Status by waitpid(2), valid if CHILD_ENDED. */
	int child_status;
	/* Number of waits to come that do not poll before they sleep, because
	 * polling was in vain. */
	unsigned int spins_left_out;
	/* When tracees that have gone without a status are looked for next. */
	uint64_t lost_ns;
	/* Calls that ended by EINTR because of a stop, of tracees that were let go. */
	uint64_t eintrs_left;
	/* Programs that a stop would have cost the rights of their files (set-user-ID,
	 * capabilities): executed again, and those that went on without. */
	uint64_t execs_again;
	uint64_t rights_lost;
	struct wp_call_argument argument;
	/* Told when thread TID, which was released before it stopped, has stopped and gone
	 * on: since STOPPED_NS it was off its CPU for that alone.  NULL: nobody is. */
	void (*on_late)(void *ctx, pid_t tid, uint64_t stopped_ns);
	void *late_ctx;
};

#define WP_TRACER_INIT                                                         \
	{                                                                      \
		0                                                              \
	}

/* The system call of a stopped thread, by its registers. */
struct wp_stop_facts {
	/* Number of the system call that the stop interrupted; -1: the thread
	 * was in user code, or on its way back to it. */
	long syscall_nr;
	uint64_t args[6];
	/* The stop took effect when a system call returned that did not sleep. */
	bool at_call_end;
	/* The thread was in 32-bit code: its call is one of i386's.  See
	 * WP_REG_ESI. */
	bool is_32bit;
	/* Of the call, where that is made a native one: see struct
	 * wp_native_call. */
	bool has_narrow_time;
	/* The thread slept in that call, which the kernel is going to restart. */
	bool asleep;
	/* -EINTR on its way to the program was replaced. */
	bool eintr_repaired;
};

/* Tracees of all tracers: 0 says that no thread is held.  For signal handlers. */
extern volatile sig_atomic_t wp_tracer_nheld;

/* Called each time that wp_tracer_nheld becomes 0; may be NULL. */
extern void (*wp_tracer_on_release)(void);

/* Block SIGCHLD in this thread: wait needs it.  Once per program. */
void wp_tracer_init(struct wp_tracer *tracer);

/* Send PTRACE_INTERRUPT to thread TID; wp_tracer_wait hands out its stop, with
 * COOKIE.  If TID was released before it stopped, that stop is handed out.
 *
 * Returns 0; -ESRCH: the thread has ended; -EPERM: not permitted, another process
 * traces it, or it is ending (see wp_process_has_living); -EALREADY: its stop is waited
 * for already, or a call that it was stopped in is still to be made again; -ENOMEM.
 */
WP_MUST_CHECK
int wp_tracer_interrupt(struct wp_tracer *tracer, pid_t tid, uint64_t cookie);

/* Wait until a tracee has stopped, but not past UNTIL_NS (0: do not wait).
 * Returns the tracee, valid until the next call on TRACER; NULL: the time is over,
 * no tracee is INTERRUPTING, a signal came, or only the child ended.  Tracees that
 * end are dropped.
 */
struct wp_tracee *wp_tracer_wait(struct wp_tracer *tracer, uint64_t until_ns);

/* As wp_tracer_wait, but sleep until UNTIL_NS even if no tracee is INTERRUPTING.  Drops
 * tracees that an exec has ended, of which the kernel tells nothing. */
struct wp_tracee *wp_tracer_sleep(struct wp_tracer *tracer, uint64_t until_ns);

/* Read the registers of stopped TRACEE, all of them known, and repair the system
 * call that it slept in: -EINTR on its way to the program
 * becomes -ERESTARTNOHAND, so that the kernel restarts the call unless a real
 * handler runs (kernel/signal.c, arch/x86/kernel/signal.c).  On aarch64, where the
 * kernel has decided before the stop, the thread is put back to before its call, and
 * let go when it makes it: see src/ptrace/regs_aarch64.c.  A call that would go on
 * as restart_syscall in a thread with a seccomp filter, which may kill the thread
 * for that number, is restarted under its own number instead.
 *
 * Of a thread in 32-bit code the registers of x86-64 alone are not known.
 *
 * Returns 0, or -ESRCH when TRACEE died in the stop.
 */
WP_MUST_CHECK
int wp_tracer_read_regs(struct wp_tracee *tracee, struct wp_regs *ret_regs,
			struct wp_stop_facts *ret_facts);

/* Has thread TID a seccomp filter (proc(5), "Seccomp: 2")?  True also where that cannot
 * be read; false of a thread that has ended. */
bool wp_tracer_has_filter(pid_t tid);

/* Let TRACEE go (see the table above): it is dropped, or kept as unwanted until it has
 * stopped, or has made its call again.  The repair of wp_tracer_read_regs is made if
 * that was not called. */
void wp_tracer_release(struct wp_tracer *tracer, struct wp_tracee *tracee);

/* Was TID released before it stopped?  Then a trace stop that it is in is TRACER's own,
 * come late, and is ended: the thread ran, and goes on. */
bool wp_tracer_end_late(struct wp_tracer *tracer, pid_t tid);

/* The tracee with COOKIE that is not unwanted; NULL: none. */
struct wp_tracee *wp_tracer_find(struct wp_tracer *tracer, uint64_t cookie);

/* Detach all tracees.  Wait up to 100 ms for stops that have not come, up to 30 s
 * while one has yet to get a CPU for it.  Of the rest, such as a thread in D state, each
 * is detached as soon as it stops, by a handler of SIGCHLD, which is unblocked for that;
 * the kernel detaches those that are left when wallprof exits, without a repair.
 * Idempotent.
 *
 * Until then waitpid(2) of another, without WUNTRACED too, may take such a stop, and has
 * to leave it to wp_tracer_wait of a tracer, if only an empty one. */
void wp_tracer_clear(struct wp_tracer *tracer);

#endif
