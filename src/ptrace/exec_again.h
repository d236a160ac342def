/* SPDX-License-Identifier: Apache-2.0 */
/* exec_again.h - a program that was executed while its thread was traced gets the rights of
 * its file.
 *
 * Layer: ptrace.  Private to src/ptrace/.
 *
 * The kernel gives a traced thread neither the owner of a set-user-ID or set-group-ID
 * file nor its capabilities, unless the tracer has CAP_SYS_PTRACE
 * (security/commoncap.c, cap_bprm_creds_from_file).  A thread that is asked to stop while
 * it runs may be at the beginning of execve(2), and stops at its end.  Then it makes that
 * call once more, with the path, arguments and environment that the new program has on
 * its stack, when nobody traces it: the new program has not done anything yet, and
 * what else an execve changes has changed already.
 */
#ifndef WP_EXEC_AGAIN_H
#define WP_EXEC_AGAIN_H

#include <stdbool.h>

#include "wallprof/tracer.h"

/* Has a thread with REGS just begun with a program?  The kernel clears all but sp and pc
 * (ELF_PLAT_INIT of asm/elf.h, start_thread of asm/processor.h). */
bool wp_exec_is_new(const struct wp_regs *regs);

/* TRACEE, which is stopped and new in its program, is about to be detached: have it execute
 * that once more if tracing has cost it rights, and say in TRACEE what has become of it.
 * Without them goes on the interpreter of a script, one whose path leads to another file by
 * now, a static program, and one that does not let itself be read. */
void wp_exec_again(struct wp_tracee *tracee);

#endif
