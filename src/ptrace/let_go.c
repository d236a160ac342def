/* SPDX-License-Identifier: Apache-2.0 */
/* let_go.c - see let_go.h. */
#include "let_go.h"

#include <sys/ptrace.h>
#include <sys/wait.h>

#include "exec_again.h"
#include "regs.h"
#include "wallprof/clock.h"
#include "wallprof/procfs.h"

int wp_signal_of_stop(int status)
{
	/* PTRACE_EVENT_STOP: by PTRACE_INTERRUPT, or a group-stop, in which a
	 * detach leaves the thread (ptrace(2), "Group-stop"). */
	if (status >> 16 || WSTOPSIG(status) == (SIGTRAP | 0x80))
		return 0;
	/* Signal-delivery-stop: the tracer passes the signal on. */
	return WSTOPSIG(status);
}

static void detach(pid_t tid, int sig)
{
	ptrace(PTRACE_DETACH, tid, 0, (void *)(intptr_t)sig);
}

/* Has thread TID a handler for SIG?  True also if that cannot be known. */
static bool has_handler(pid_t tid, int sig)
{
	uint64_t caught;

	return wp_proc_status_read(&caught, tid, "SigCgt", 16) ||
	       (caught >> (sig - 1) & 1);
}

/* Is the call that TRACEE stopped in to go on?  Not before a handler: then EINTR is the
 * program's due, and the kernel itself decides between handler and restart. */
static bool is_to_go_on(const struct wp_tracee *tracee)
{
	return !tracee->signal || !has_handler(tracee->tid, tracee->signal);
}

int wp_tracer_read_regs(struct wp_tracee *tracee, struct wp_regs *ret_regs,
			struct wp_stop_facts *ret_facts)
{
	int rc = wp_regs_read(tracee->tid, is_to_go_on(tracee), ret_regs,
			      ret_facts, &tracee->restart);

	tracee->repaired = true;
	if (rc || ret_facts->is_32bit || !wp_exec_is_new(ret_regs))
		return rc;
	tracee->entry_avma = ret_regs->v[WP_REG_PC];
	tracee->entry_sp_avma = ret_regs->v[WP_REG_SP];
	return 0;
}

/* Let TRACEE, which has stopped with STATUS on its way through its call, go.  False: it
 * will stop once more. */
static bool end_call(struct wp_tracee *tracee, int status)
{
	int sig = wp_signal_of_stop(status);

	if (sig && !has_handler(tracee->tid, sig) &&
	    !ptrace(PTRACE_SYSEMU, tracee->tid, 0, (void *)(intptr_t)sig))
		return false;
	if (wp_regs_end_restart(tracee->tid, status, &tracee->restart) &&
	    !ptrace(PTRACE_SYSCALL, tracee->tid, 0, 0))
		return false;
	detach(tracee->tid, sig);
	return true;
}

/* TRACEE, which is stopped, has to make its call again: it is let go when it has,
 * or a signal comes first.  True: it has been. */
static bool end_restart(struct wp_tracee *tracee)
{
	uint64_t until_ns = wp_clock_ns() + WP_SPIN_NS;
	int status;
	pid_t tid;

	tracee->stopped = false;
	tracee->unwanted = true;
	tracee->cookie = 0;
	if (ptrace(PTRACE_SYSEMU, tracee->tid, 0,
		   (void *)(intptr_t)tracee->signal))
		return true;
	do {
		tid = waitpid(tracee->tid, &status, __WALL | WNOHANG);
		if (tid == tracee->tid &&
		    (!WIFSTOPPED(status) || end_call(tracee, status)))
			return true;
	} while (tid >= 0 && wp_clock_ns() < until_ns);
	return false;
}

bool wp_let_go(struct wp_tracee *tracee)
{
	struct wp_stop_facts facts;
	struct wp_regs regs;

	/* It may have died; then there is nothing to undo. */
	if (!tracee->repaired)
		(void)!wp_tracer_read_regs(tracee, &regs, &facts);
	if (tracee->restart.pending)
		return end_restart(tracee);
	if (tracee->entry_avma)
		wp_exec_again(tracee);
	detach(tracee->tid, tracee->signal);
	return true;
}

bool wp_let_go_to_entry(pid_t tid, int status)
{
	if (status >> 8 != (SIGTRAP | PTRACE_EVENT_EXEC << 8))
		return false;
	/* TID may have had another number when it was asked to stop: ask again. */
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	ptrace(PTRACE_CONT, tid, 0, 0);
	return true;
}

bool wp_let_unwanted_go(struct wp_tracee *tracee, int status)
{
	tracee->signal = wp_signal_of_stop(status);
	if (!tracee->restart.pending)
		return wp_let_go(tracee);
	return end_call(tracee, status);
}
