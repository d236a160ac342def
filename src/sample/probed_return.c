/* SPDX-License-Identifier: Apache-2.0 */
/* probed_return.c - see probed_return.h. */
#include "probed_return.h"

#include <string.h>

#include "wallprof/heap_probe.h"
#include "wallprof/kernel.h"

/* A thread has up to 64 calls whose return is probed (kernel/events/uprobes.c,
 * MAX_URETPROBE_DEPTH). */
enum { ASKED_MAX = 128 };

/* The return address that was at SLOT of COPY's stack; 0: not known. */
static uint64_t find(struct wp_stack_copy *copy, uint64_t slot_avma)
{
	const struct wp_heap_return call = {
		.time_ns = copy->time_ns,
		.sp = slot_avma,
		.pc = copy->space->uprobes_avma,
	};

	return copy->space->probe && copy->nasked++ < ASKED_MAX ?
		       wp_heap_probe_find_return(copy->space->probe, &call) :
		       0;
}

enum wp_mem_result wp_probed_return_restore(struct wp_stack_copy *copy,
					    uint64_t avma, void *buf,
					    size_t len)
{
	uint64_t word = 0, found = 1;
	size_t at = 0;

	if (avma % sizeof(word))
		return WP_MEM_OK;
	for (; at + sizeof(word) <= len; at += sizeof(word)) {
		found = 1;
		memcpy(&word, (uint8_t *)buf + at, sizeof(word));
		if (word != copy->space->uprobes_avma ||
		    avma + at == copy->kept_avma)
			continue;
		found = find(copy, avma + at);
		if (found)
			memcpy((uint8_t *)buf + at, &found, sizeof(found));
	}
	return found ? WP_MEM_OK : WP_MEM_PROBED;
}

#if defined(__x86_64__)
/* DWARF's numbers. */
enum { RAX = 0, RCX = 2, R11 = 11 };
/* Behind the call of the trampoline, and within it; its end; bytes that it pushes. */
enum { CALL_OFF = 13, END_OFF = 16, PUSHED = 24 };

/* Is what the trampoline pushes on top of the stack, and in the registers as well?  In its
 * call the kernel gives the thread those that it had before, and moves sp, then pc, there
 * and back (arch/x86/kernel/uprobes.c, sys_uretprobe). */
static bool has_both(struct wp_stack_copy *copy, const struct wp_regs *regs)
{
	const struct wp_mem mem = wp_stack_copy_mem(copy);
	uint64_t saved[PUSHED / 8];

	return mem.read(mem.ctx, regs->v[WP_REG_SP], saved, sizeof(saved)) ==
		       WP_MEM_OK &&
	       (saved[0] || saved[1] || saved[2]) && saved[0] == regs->v[R11] &&
	       saved[1] == regs->v[RCX] &&
	       (saved[2] == regs->v[RAX] || saved[2] == regs->v[WP_REG_PC]);
}

/* How many bytes the trampoline has on the stack of COPY's thread, which is at OFF in it:
 * push rax, rcx, r11; mov; syscall; pop r11, rcx; ret (arch_uretprobe_trampoline).
 * Negative: not known. */
static int count_pushed(struct wp_stack_copy *copy, const struct wp_regs *regs,
			uint64_t off)
{
	switch (off) {
	case 0:
		return 0;
	case 1:
		/* Before Linux 6.11 the trampoline is int3, behind which its trap is, and
		 * who reads it is refused. */
		return wp_kernel_is_before(6, 11) ? 0 : 8;
	case 2:
	case 15:
		return 16;
	case 4:
	case 11:
		return PUSHED;
	case CALL_OFF:
		return regs->v[RCX] == regs->v[WP_REG_PC] ||
				       has_both(copy, regs) ?
			       PUSHED :
			       0;
	case END_OFF:
		return 8;
	default:
		return -1;
	}
}

void wp_probed_return_leave(struct wp_stack_copy *copy, struct wp_regs *regs)
{
	uint64_t off = regs->v[WP_REG_PC] - copy->space->uprobes_avma,
		 caller_avma, sp_avma;
	int pushed;

	/* Those of a sample or of a stop: they are all known, or none. */
	if (!wp_probed_return_may_be(copy) || !wp_reg_known(regs, WP_REG_SP) ||
	    !wp_reg_known(regs, WP_REG_PC) || !wp_reg_known(regs, RCX))
		return;
	if (off <= END_OFF)
		pushed = count_pushed(copy, regs, off);
	else
		pushed = has_both(copy, regs) ? PUSHED : -1;
	if (pushed < 0)
		return;
	sp_avma = regs->v[WP_REG_SP] + (uint64_t)pushed;
	caller_avma = find(copy, sp_avma - sizeof(caller_avma));
	if (!caller_avma) {
		/* Back in the caller sp may be too low, and no note tells. */
		if (off > END_OFF)
			wp_reg_forget_sp(regs);
		return;
	}
	if (off > END_OFF && caller_avma != regs->v[WP_REG_PC])
		return;
	wp_reg_set(regs, WP_REG_PC, caller_avma);
	wp_reg_set(regs, WP_REG_SP, sp_avma);
}
#else
void wp_probed_return_leave(struct wp_stack_copy *copy, struct wp_regs *regs)
{
	(void)copy;
	(void)regs;
}
#endif
