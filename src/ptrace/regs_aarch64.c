/* SPDX-License-Identifier: Apache-2.0 */
/* regs_aarch64.c - registers of a stopped thread, and the EINTR repair.
 *
 * Before the stop the kernel has made up its mind (arch/arm64/kernel/signal.c,
 * do_signal): a call that it will restart has its pc back at the svc and its first
 * argument in x0, a call that ends by EINTR has its pc behind the svc, -EINTR in x0
 * and the first argument in orig_x0, which no register set has; the call's number is
 * forgotten, but for x8.  What the kernel does if a signal comes is decided by then as
 * well, so that a call which is to go on, and which a signal is to end all the same,
 * takes two more stops: the thread makes the call again, which PTRACE_SYSEMU leaves
 * out, and which returns what makes the kernel restart it unless there is a signal.
 * That is said on the way out: on 6.12.117, not on 6.1, to set the call's number
 * (NT_ARM_SYSTEM_CALL) makes what x0 holds then the first argument.  So there only a BPF
 * program tells the argument of a call that EINTR has ended; where BPF is not permitted it
 * is what the thread slept in before the stop was asked for, if all else of that is the
 * same, or the call ends, which is counted.
 * (To detach a thread on its way into a call would end that: it sets TIF_SIGPENDING.)
 */
#if defined(__aarch64__)
#include "regs.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "signal_frame.h"
#include "wallprof/io.h"
#include "wallprof/procfs.h"

enum {
	INSN_SVC = 0xd4000001,
	INSN_LEN = 4,
	/* include/linux/errno.h. */
	ERESTARTSYS_ = 512,
	ERESTARTNOHAND_ = 514,
	REG_NR = 8,
	REG_LR = 30,
};

/* svc #0; ret */
const uint8_t wp_regs_call_code[WP_REGS_CALL_LEN] = { 0x01, 0x00, 0x00, 0xd4,
						      0xc0, 0x03, 0x5f, 0xd6 };

/* Is the instruction at AVMA `svc #0`? */
static bool is_svc(pid_t tid, uint64_t avma)
{
	uint32_t insn = 0;
	struct iovec local = { &insn, sizeof(insn) };
	struct iovec remote = { (void *)(uintptr_t)avma, sizeof(insn) };

	return process_vm_readv(tid, &local, 1, &remote, 1, 0) ==
		       (ssize_t)sizeof(insn) &&
	       insn == INSN_SVC;
}

static int get_regs(pid_t tid, struct user_regs_struct *ret)
{
	struct iovec iov = { ret, sizeof(*ret) };

	return ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) ? -ESRCH : 0;
}

static int set_regs(pid_t tid, struct user_regs_struct *r)
{
	struct iovec iov = { r, sizeof(*r) };

	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &iov) ? -ESRCH : 0;
}

static int set_call(pid_t tid, int nr)
{
	struct iovec iov = { &nr, sizeof(nr) };

	return ptrace(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &iov) ?
		       -ESRCH :
		       0;
}

static int read_call(pid_t tid, struct wp_proc_syscall *ret)
{
	char path[32], text[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	n = wp_io_read_at(AT_FDCWD, path, text, sizeof(text));
	return n < 0 ? (int)n : wp_proc_syscall_parse(ret, text, (size_t)n);
}

void wp_regs_note_call(pid_t tid, struct wp_proc_syscall *ret)
{
	if (read_call(tid, ret))
		*ret = (struct wp_proc_syscall){ .running = true };
}

/* Can R be that of a thread that has come back from the call that it was in BEFORE?  All
 * but the first argument is the same. */
static bool is_same_call(const struct wp_proc_syscall *before,
			 const struct user_regs_struct *r)
{
	return !before->running && before->nr == (long)r->regs[REG_NR] &&
	       before->pc_avma == r->pc && before->sp_avma == r->sp &&
	       !memcmp(before->args + 1, r->regs + 1, 5 * sizeof(r->regs[1]));
}

/* What call NR, which TID has just come back from, had as its first argument: the
 * kernel tells those of the call that a thread is in.  Negative errno. */
static int read_first_argument(pid_t tid, long nr, uint64_t *ret)
{
	struct wp_proc_syscall call;
	int rc = set_call(tid, (int)nr), failed;

	if (rc)
		return rc;
	failed = read_call(tid, &call);
	rc = set_call(tid, -1);
	if (rc || failed)
		return rc ? rc : failed;
	if (call.running || call.nr != nr)
		return -EIO;
	*ret = call.args[0];
	return 0;
}

/* What the call that TID, with registers R, has just come back from had as its first
 * argument, by the kernel.  Negative errno: it does not tell. */
static int ask_first_argument(pid_t tid, const struct user_regs_struct *r,
			      const struct wp_remade_call *restart,
			      uint64_t *ret)
{
	int rc = -ENOTSUP;

	/* First, for to set the call's number may end what it reads. */
	if (restart->argument)
		rc = wp_call_argument_read(restart->argument, tid, ret);
	if (rc)
		rc = read_first_argument(tid, (long)r->regs[REG_NR], ret);
	/* x0 as it is is the result: to make the call with it were worse than its
	 * EINTR. */
	return !rc && *ret == r->regs[0] ? -ENODATA : rc;
}

/* TID sleeps in a call that the kernel will make again. */
static void see_restarted(pid_t tid, bool repair,
			  const struct user_regs_struct *r,
			  struct wp_stop_facts *facts,
			  struct wp_remade_call *restart)
{
	facts->asleep = true;
	facts->syscall_nr = (long)r->regs[REG_NR];
	for (int i = 0; i < 6; i++)
		facts->args[i] = r->regs[i];
	/* It may be by restart_syscall, which a filter may forbid. */
	restart->pending = repair && wp_tracer_has_filter(tid);
	restart->nr = facts->syscall_nr;
}

/* The first argument of a call that a stop has ended; RC negative: not known. */
struct ended_call {
	uint64_t first;
	int rc;
};

/* TID sleeps in a call that the kernel ends by EINTR: have it made again. */
static int see_ended(pid_t tid, bool repair, struct user_regs_struct *r,
		     const struct ended_call *call, struct wp_stop_facts *facts,
		     struct wp_remade_call *restart)
{
	facts->asleep = true;
	facts->syscall_nr = (long)r->regs[REG_NR];
	for (int i = 1; i < 6; i++)
		facts->args[i] = r->regs[i];
	if (!repair)
		return 0;
	if (wp_call_is_done(facts->syscall_nr) || call->rc) {
		restart->lost = true;
		return 0;
	}
	facts->args[0] = call->first;
	*restart = (struct wp_remade_call){ .pending = true,
					    .ended = true,
					    .nr = facts->syscall_nr };
	r->pc -= INSN_LEN;
	r->regs[0] = call->first;
	facts->eintr_repaired = true;
	return set_regs(tid, r);
}

/* Is R that of a call which EINTR ended because of this stop, not of one whose
 * handler of a signal has just returned?  That leaves a frame below the stack, where an
 * old one may be as well; but then the kernel tells as the first argument that of
 * rt_sigreturn(2), what the handler has left in x0. */
static bool is_ended_by_stop(pid_t tid, const struct user_regs_struct *r,
			     bool repair, const struct wp_remade_call *restart,
			     struct ended_call *ret)
{
	const struct wp_signal_frame frame = { .sp_avma = r->sp,
					       .pc_avma = r->pc,
					       .result = r->regs[0] };

	if ((long)r->regs[0] != -EINTR || !is_svc(tid, r->pc - INSN_LEN))
		return false;
	ret->rc = repair ? ask_first_argument(tid, r, restart, &ret->first) :
			   -ENODATA;
	if (is_same_call(&restart->before, r)) {
		if (!ret->rc && ret->first == restart->before.args[0])
			return true;
		/* A thread that makes the same call of one descriptor after the other
		 * may be in the next one by now: the kernel was asked first. */
		if (ret->rc)
			ret->first = restart->before.args[0];
		ret->rc = 0;
	}
	return !wp_signal_frame_is_below(tid, &frame);
}

int wp_regs_read(pid_t tid, bool repair, struct wp_regs *ret_regs,
		 struct wp_stop_facts *ret_facts,
		 struct wp_remade_call *ret_restart)
{
	struct ended_call call = { .rc = -ENODATA };
	struct user_regs_struct r;
	int rc = get_regs(tid, &r);

	*ret_restart = (struct wp_remade_call){
		.before = ret_restart->before,
		.argument = ret_restart->argument,
	};
	if (rc)
		return rc;
	ret_regs->known = 0;
	for (unsigned int i = 0; i < 31; i++)
		wp_reg_set(ret_regs, i, r.regs[i]);
	wp_reg_set(ret_regs, WP_REG_SP, r.sp);
	wp_reg_set(ret_regs, WP_REG_PC, r.pc);
	*ret_facts = (struct wp_stop_facts){ .syscall_nr = -1 };
	if (is_ended_by_stop(tid, &r, repair, ret_restart, &call))
		return see_ended(tid, repair, &r, &call, ret_facts,
				 ret_restart);
	if (!is_svc(tid, r.pc)) {
		ret_facts->at_call_end = is_svc(tid, r.pc - INSN_LEN);
		return 0;
	}
	see_restarted(tid, repair, &r, ret_facts, ret_restart);
	/* Where it sleeps, its pc is behind the svc. */
	wp_reg_set(ret_regs, WP_REG_PC, r.pc + INSN_LEN);
	return 0;
}

/* TID, with registers R, is on its way into the call, then out of it. */
static bool pass_call(pid_t tid, struct user_regs_struct *r,
		      struct wp_remade_call *restart)
{
	if (!restart->is_made) {
		restart->is_made = true;
		restart->by_restart = restart->nr != SYS_restart_syscall &&
				      r->regs[REG_NR] == SYS_restart_syscall;
		r->regs[REG_NR] = (uint64_t)restart->nr;
		return !set_regs(tid, r) && !set_call(tid, (int)restart->nr);
	}
	/* A handler with SA_RESTART ends calls of the first two kinds. */
	r->regs[0] = restart->ended || restart->by_restart ?
			     (uint64_t)-ERESTARTNOHAND_ :
			     (uint64_t)-ERESTARTSYS_;
	(void)!set_regs(tid, r);
	return false;
}

bool wp_regs_end_restart(pid_t tid, int status, struct wp_remade_call *restart)
{
	struct user_regs_struct r;

	if (status >> 16 || get_regs(tid, &r))
		return false;
	if (WSTOPSIG(status) == (SIGTRAP | 0x80))
		return pass_call(tid, &r, restart);
	/* A signal came first. */
	if (!restart->ended || !is_svc(tid, r.pc))
		return false;
	r.pc += INSN_LEN;
	r.regs[0] = (uint64_t)-EINTR;
	(void)!set_regs(tid, &r);
	return false;
}

int wp_regs_set_exec(pid_t tid, const struct wp_exec_call *call)
{
	struct user_regs_struct r;

	if (get_regs(tid, &r))
		return -ESRCH;
	r.pc = call->code_avma;
	r.regs[REG_LR] = call->entry_avma;
	r.regs[REG_NR] = SYS_execve;
	r.regs[0] = call->path_avma;
	r.regs[1] = call->argv_avma;
	r.regs[2] = call->envp_avma;
	return set_regs(tid, &r);
}
#endif
