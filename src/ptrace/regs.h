/* SPDX-License-Identifier: Apache-2.0 */
/* regs.h - the registers of a stopped thread, by architecture.
 *
 * Layer: ptrace.  Private to src/ptrace/.
 */
#ifndef WP_REGS_H
#define WP_REGS_H

#include <sys/syscall.h>

#include "wallprof/tracer.h"

/* Has call NR, a native one, done its work where it ends by EINTR?  close(2) has given up
 * the descriptor, which may be another file's by now ("Dealing with error returns"):
 * it is not to be made again. */
static inline bool wp_call_is_done(long nr)
{
	return nr == SYS_close;
}

/* Note in RET the system call that TID, which is about to be stopped, sleeps in, where
 * wp_regs_read wants it (aarch64). */
void wp_regs_note_call(pid_t tid, struct wp_proc_syscall *ret);

/* As wp_tracer_read_regs, of stopped thread TID.  REPAIR false: the thread's
 * registers are not written, for a signal's handler is about to be called.
 *
 * RET_RESTART has what wp_regs_note_call noted.  If its PENDING is set, the repair takes
 * another stop: the caller lets the thread go on by PTRACE_SYSEMU and calls
 * wp_regs_end_restart at its next stop. */
int wp_regs_read(pid_t tid, bool repair, struct wp_regs *ret_regs,
		 struct wp_stop_facts *ret_facts,
		 struct wp_remade_call *ret_restart);

/* TID, whose call was to be made again as RESTART says, has stopped with STATUS
 * (waitpid(2)): on its way into the call, on its way out, or because a signal came
 * first, which then ends the call as if there had been no stop.  True: it has to stop
 * once more, and the caller lets it go on by PTRACE_SYSCALL. */
bool wp_regs_end_restart(pid_t tid, int status, struct wp_remade_call *restart);

#if defined(__x86_64__)
enum { WP_REGS_CALL_LEN = 3, WP_REGS_CODE_ALIGN = 1 };
#else
enum { WP_REGS_CALL_LEN = 8, WP_REGS_CODE_ALIGN = 4 };
#endif
/* A system call, and a return behind it. */
extern const uint8_t wp_regs_call_code[WP_REGS_CALL_LEN];

/* An execve(2) that a thread is to make before the first instruction of its program. */
struct wp_exec_call {
	uint64_t path_avma;
	uint64_t argv_avma;
	uint64_t envp_avma;
	/* Where wp_regs_call_code is. */
	uint64_t code_avma;
	/* Where the thread goes on, with this stack pointer, if the call fails. */
	uint64_t entry_avma;
	uint64_t sp_avma;
};

/* Set the registers of stopped thread TID so that it makes CALL.  0, or -ESRCH. */
int wp_regs_set_exec(pid_t tid, const struct wp_exec_call *call);

#endif
