/* regs_x86_64.c - registers of a stopped thread, and the EINTR repair. */
#if defined(__x86_64__)
#include "regs.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

/* include/linux/errno.h: never seen by programs, only by tracers. */
enum {
	ERESTARTSYS_ = 512,
	ERESTARTNOHAND_ = 514,
	ERESTART_RESTARTBLOCK_ = 516,
};

static void copy_regs(struct wp_regs *to, const struct user_regs_struct *from)
{
	const unsigned long long v[WP_NREGS] = {
		from->rax, from->rdx, from->rcx, from->rbx, from->rsi,
		from->rdi, from->rbp, from->rsp, from->r8, from->r9,
		from->r10, from->r11, from->r12, from->r13, from->r14,
		from->r15, from->rip,
	};

	to->known = 0;
	for (unsigned int i = 0; i < WP_NREGS; i++)
		wp_reg_set(to, i, v[i]);
}

/* orig_rax is the call's number on the way out of an interrupted call, and
 * rax what the kernel is about to do with it; busy code has orig_rax -1.
 */
static void read_facts(struct wp_stop_facts *facts,
		       const struct user_regs_struct *r)
{
	long rax = (long)r->rax;

	*facts = (struct wp_stop_facts){ .syscall_nr = -1 };
	if ((long)r->orig_rax < 0)
		return;
	facts->asleep = rax == -EINTR || (rax <= -ERESTARTSYS_ &&
					  rax >= -ERESTART_RESTARTBLOCK_);
	if (!facts->asleep)
		return;
	facts->syscall_nr = (long)r->orig_rax;
	facts->args[0] = r->rdi;
	facts->args[1] = r->rsi;
	facts->args[2] = r->rdx;
	facts->args[3] = r->r10;
	facts->args[4] = r->r8;
	facts->args[5] = r->r9;
}

int wp_regs_read(pid_t tid, bool repair, struct wp_regs *ret_regs,
		 struct wp_stop_facts *ret_facts)
{
	struct user_regs_struct r;
	struct iovec iov = { &r, sizeof(r) };
	long rax;

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov))
		return -ESRCH;
	copy_regs(ret_regs, &r);
	read_facts(ret_facts, &r);
	rax = (long)r.rax;
	if (!repair || !ret_facts->asleep ||
	    !(rax == -EINTR || (rax == -ERESTART_RESTARTBLOCK_ &&
				wp_tracer_has_filter(tid))))
		return 0;
	r.rax = (unsigned long long)-ERESTARTNOHAND_;
	iov.iov_len = sizeof(r);
	if (ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &iov))
		return -ESRCH;
	ret_facts->eintr_repaired = rax == -EINTR;
	return 0;
}
#endif
