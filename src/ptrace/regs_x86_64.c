/* SPDX-License-Identifier: Apache-2.0 */
/* regs_x86_64.c - registers of a stopped thread, and the EINTR repair. */
#if defined(__x86_64__)
#include "regs.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

/* include/linux/errno.h: values that tracers see, and programs do not. */
enum {
	ERESTARTSYS_ = 512,
	ERESTARTNOHAND_ = 514,
	ERESTART_RESTARTBLOCK_ = 516,
};

/* arch/x86/entry/syscalls/syscall_32.tbl; include/uapi/asm/unistd.h: a call of x32. */
enum { CLOSE_32 = 6, X32_BIT = 0x40000000 };

/* The layout of GETREGSET for a thread in 32-bit mode (arch/x86/include/asm/
 * user_32.h). */
struct regs_32 {
	uint32_t ebx, ecx, edx, esi, edi, ebp, eax, ds, es, fs, gs, orig_eax,
		eip, cs, eflags, esp, ss;
};

union any_regs {
	struct user_regs_struct r64;
	struct regs_32 r32;
};

/* syscall; ret */
const uint8_t wp_regs_call_code[WP_REGS_CALL_LEN] = { 0x0f, 0x05, 0xc3 };

/* Does the kernel end a call that sleeps, with RESULT on its way to the program, or
 * restart it? */
static bool is_interrupted(long result)
{
	return result == -EINTR ||
	       (result <= -ERESTARTSYS_ && result >= -ERESTART_RESTARTBLOCK_);
}

static void copy_regs(struct wp_regs *to, const struct user_regs_struct *from)
{
	const unsigned long long v[WP_NREGS] = {
		from->rax, from->rdx, from->rcx, from->rbx, from->rsi,
		from->rdi, from->rbp, from->rsp, from->r8,  from->r9,
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
	*facts = (struct wp_stop_facts){ .syscall_nr = -1 };
	if ((long)r->orig_rax < 0)
		return;
	facts->asleep = is_interrupted((long)r->rax);
	facts->at_call_end = !facts->asleep;
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

static bool needs_repair(pid_t tid, long rax)
{
	return rax == -EINTR ||
	       (rax == -ERESTART_RESTARTBLOCK_ && wp_tracer_has_filter(tid));
}

static int write_regs(pid_t tid, union any_regs *r, size_t size)
{
	struct iovec iov = { r, size };

	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &iov) ? -ESRCH : 0;
}

/* The same of a thread in 32-bit mode. */
static void copy_regs_32(struct wp_regs *to, const struct regs_32 *from)
{
	to->known = 0;
	wp_reg_set(to, 0, from->eax);
	wp_reg_set(to, 1, from->edx);
	wp_reg_set(to, 2, from->ecx);
	wp_reg_set(to, 3, from->ebx);
	wp_reg_set(to, WP_REG_FP, from->ebp);
	wp_reg_set(to, WP_REG_SP, from->esp);
	wp_reg_set(to, WP_REG_ESI, from->esi);
	wp_reg_set(to, WP_REG_EDI, from->edi);
	wp_reg_set(to, WP_REG_PC, from->eip);
}

static void read_facts_32(struct wp_stop_facts *facts, const struct regs_32 *r)
{
	*facts = (struct wp_stop_facts){ .syscall_nr = -1, .is_32bit = true };
	if ((int32_t)r->orig_eax < 0)
		return;
	facts->asleep = is_interrupted((int32_t)r->eax);
	facts->at_call_end = !facts->asleep;
	if (!facts->asleep)
		return;
	facts->syscall_nr = (long)r->orig_eax;
	facts->args[0] = r->ebx;
	facts->args[1] = r->ecx;
	facts->args[2] = r->edx;
	facts->args[3] = r->esi;
	facts->args[4] = r->edi;
	facts->args[5] = r->ebp;
}

static int read_32(pid_t tid, bool repair, union any_regs *r,
		   struct wp_regs *ret_regs, struct wp_stop_facts *ret_facts,
		   struct wp_remade_call *ret_restart)
{
	int32_t eax = (int32_t)r->r32.eax;

	copy_regs_32(ret_regs, &r->r32);
	read_facts_32(ret_facts, &r->r32);
	if (!repair || !ret_facts->asleep || !needs_repair(tid, eax))
		return 0;
	if (eax == -EINTR && ret_facts->syscall_nr == CLOSE_32) {
		ret_restart->lost = true;
		return 0;
	}
	r->r32.eax = (uint32_t)-ERESTARTNOHAND_;
	ret_facts->eintr_repaired = eax == -EINTR;
	return write_regs(tid, r, sizeof(r->r32));
}

void wp_regs_note_call(pid_t tid, struct wp_proc_syscall *ret)
{
	(void)tid;
	*ret = (struct wp_proc_syscall){ 0 };
}

int wp_regs_read(pid_t tid, bool repair, struct wp_regs *ret_regs,
		 struct wp_stop_facts *ret_facts,
		 struct wp_remade_call *ret_restart)
{
	union any_regs r = { 0 };
	struct iovec iov = { &r, sizeof(r) };
	long rax;

	*ret_restart = (struct wp_remade_call){ 0 };
	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov))
		return -ESRCH;
	if (iov.iov_len == sizeof(r.r32))
		return read_32(tid, repair, &r, ret_regs, ret_facts,
			       ret_restart);
	copy_regs(ret_regs, &r.r64);
	read_facts(ret_facts, &r.r64);
	rax = (long)r.r64.rax;
	if (!repair || !ret_facts->asleep || !needs_repair(tid, rax))
		return 0;
	if (rax == -EINTR &&
	    wp_call_is_done(ret_facts->syscall_nr & ~(long)X32_BIT)) {
		ret_restart->lost = true;
		return 0;
	}
	r.r64.rax = (unsigned long long)-ERESTARTNOHAND_;
	ret_facts->eintr_repaired = rax == -EINTR;
	return write_regs(tid, &r, sizeof(r.r64));
}

/* The kernel itself restarts calls, by what the repair has left in rax. */
bool wp_regs_end_restart(pid_t tid, int status, struct wp_remade_call *restart)
{
	(void)tid;
	(void)status;
	(void)restart;
	return false;
}

int wp_regs_set_exec(pid_t tid, const struct wp_exec_call *call)
{
	union any_regs r = { 0 };
	struct iovec iov = { &r, sizeof(r) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov))
		return -ESRCH;
	/* Below the stack, for the return. */
	if (ptrace(PTRACE_POKEDATA, tid, call->sp_avma - 8, call->entry_avma))
		return -ESRCH;
	r.r64.rsp = call->sp_avma - 8;
	r.r64.rip = call->code_avma;
	r.r64.rax = SYS_execve;
	r.r64.rdi = call->path_avma;
	r.r64.rsi = call->argv_avma;
	r.r64.rdx = call->envp_avma;
	/* It is in no call that the kernel might restart. */
	r.r64.orig_rax = (unsigned long long)-1;
	return write_regs(tid, &r, sizeof(r.r64));
}
#endif
