/* SPDX-License-Identifier: Apache-2.0 */
/* regs_aarch64.c - registers of a stopped thread, and the EINTR repair. */
#if defined(__aarch64__)
#include "regs.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

enum {
	ERESTARTSYS_ = 512,
	ERESTARTNOHAND_ = 514,
	ERESTART_RESTARTBLOCK_ = 516,
};

int wp_regs_read(pid_t tid, bool repair, struct wp_regs *ret_regs,
		 struct wp_stop_facts *ret_facts)
{
	struct user_regs_struct r;
	struct iovec iov = { &r, sizeof(r) };
	/* arch/arm64/kernel/ptrace.c: -1 outside a system call. */
	int nr = -1;
	struct iovec nr_iov = { &nr, sizeof(nr) };
	long x0;

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) ||
	    ptrace(PTRACE_GETREGSET, tid, NT_ARM_SYSTEM_CALL, &nr_iov))
		return -ESRCH;
	ret_regs->known = 0;
	for (unsigned int i = 0; i < 31; i++)
		wp_reg_set(ret_regs, i, r.regs[i]);
	wp_reg_set(ret_regs, WP_REG_SP, r.sp);
	wp_reg_set(ret_regs, WP_REG_PC, r.pc);
	x0 = (long)r.regs[0];
	*ret_facts = (struct wp_stop_facts){ .syscall_nr = -1 };
	if (nr < 0 || !(x0 == -EINTR ||
			(x0 <= -ERESTARTSYS_ && x0 >= -ERESTART_RESTARTBLOCK_)))
		return 0;
	ret_facts->asleep = true;
	ret_facts->syscall_nr = nr;
	/* The first argument has been overwritten by the result. */
	for (int i = 1; i < 6; i++)
		ret_facts->args[i] = r.regs[i];
	if (!repair || !(x0 == -EINTR || (x0 == -ERESTART_RESTARTBLOCK_ &&
					  wp_tracer_has_filter(tid))))
		return 0;
	r.regs[0] = (unsigned long long)-ERESTARTNOHAND_;
	iov.iov_len = sizeof(r);
	if (ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &iov))
		return -ESRCH;
	ret_facts->eintr_repaired = x0 == -EINTR;
	return 0;
}
#endif
