/* SPDX-License-Identifier: Apache-2.0 */
/* arch_aarch64.c - see arch.h. */
#include "arch.h"

#if defined(__aarch64__)

enum {
	/* mov x8, #139 (__NR_rt_sigreturn); svc #0. */
	INSN_MOV_X8_SIGRETURN = 0xd2801168,
	INSN_SVC = 0xd4000001,
	/* mov x8, #220 and #435. */
	INSN_MOV_X8_CLONE = 0xd2801b88,
	INSN_MOV_X8_CLONE3 = 0xd2803668,
	/* cmp x0, #0 (C libraries) and cmp x0, xzr (Go). */
	INSN_CMP_X0_0 = 0xf100001f,
	INSN_CMP_X0_XZR = 0xeb1f001f,
	/* blr xN and its authenticated forms blraaz, blrabz, blraa, blrab. */
	INSN_BLR = 0xd63f0000,
	/* struct rt_sigframe (arch/arm64/kernel/signal.c): siginfo, then
	 * struct ucontext (uapi/asm/ucontext.h), whose sigcontext is aligned
	 * to 16 behind 168 bytes and starts with fault_address. */
	SIGINFO_LEN = 128,
	UC_SIGCONTEXT = 176,
	SIGCONTEXT_REGS = SIGINFO_LEN + UC_SIGCONTEXT + 8,
};

uint64_t wp_arch_code_avma(uint64_t avma)
{
	/* Pointer authentication signs the bits above the address, which has 36 to
	 * 52 bits as the kernel was built (NT_ARM_PAC_MASK tells a tracer of a
	 * stopped thread).  `xpaclri` strips them by what the kernel has told
	 * the CPU, which is one for all its processes, and does nothing on a
	 * CPU that does not sign. */
	register uint64_t lr __asm__("x30") = avma;

	__asm__("hint #7" : "+r"(lr));
	return lr;
}

static bool read_insn(const struct wp_unwind_module *module,
		      const struct wp_mem *mem, uint64_t avma, uint32_t *ret)
{
	return !(avma & 3) &&
	       !wp_code_read(module, mem, avma, ret, sizeof(*ret));
}

bool wp_arch_follows_call(const struct wp_unwind_module *module,
			  const struct wp_mem *mem, uint64_t avma)
{
	uint32_t insn;

	if (avma - module->start_avma < 4 ||
	    !read_insn(module, mem, avma - 4, &insn))
		return false;
	/* bl; blr; blraaz and blrabz; blraa and blrab. */
	return (insn & 0xfc000000) == 0x94000000 ||
	       (insn & 0xfffffc1f) == INSN_BLR ||
	       (insn & 0xfffff81f) == 0xd63f081f ||
	       (insn & 0xfffff800) == 0xd73f0800;
}

bool wp_arch_resumes_frame(const struct wp_unwind_module *module,
			   const struct wp_mem *mem, uint64_t avma)
{
	/* No interpreter's such code is known here. */
	(void)module;
	(void)mem;
	(void)avma;
	return false;
}

bool wp_arch_is_behind_clone(const struct wp_step *step)
{
	uint64_t avma = step->regs->v[WP_REG_PC];
	uint32_t insn, other;

	if (step->is_return || !step->module ||
	    !read_insn(step->module, step->mem, avma - 4, &insn))
		return false;
	if (insn == INSN_CMP_X0_0 || insn == INSN_CMP_X0_XZR)
		avma -= 4;
	if (!read_insn(step->module, step->mem, avma - 4, &insn) ||
	    !read_insn(step->module, step->mem, avma - 8, &other) ||
	    insn != INSN_SVC)
		return false;
	/* x1 is the new stack. */
	return other == INSN_MOV_X8_CLONE3 ||
	       (other == INSN_MOV_X8_CLONE &&
		!(wp_reg_known(step->regs, 1) && !step->regs->v[1]));
}

bool wp_arch_is_context_start(const struct wp_step *step)
{
	(void)step;
	return false;
}

bool wp_arch_is_sigreturn(const struct wp_unwind_module *module,
			  const struct wp_mem *mem, uint64_t pc_avma)
{
	uint32_t insn, other;

	if (!read_insn(module, mem, pc_avma, &insn))
		return false;
	if (insn == INSN_MOV_X8_SIGRETURN)
		return read_insn(module, mem, pc_avma + 4, &other) &&
		       other == INSN_SVC;
	/* Stopped between the two. */
	return insn == INSN_SVC &&
	       read_insn(module, mem, pc_avma - 4, &other) &&
	       other == INSN_MOV_X8_SIGRETURN;
}

enum wp_step_result wp_arch_step_sigreturn(struct wp_step *step)
{
	/* regs[31], sp, pc: in the order of their DWARF numbers. */
	uint64_t frame_avma = step->regs->v[WP_REG_SP];
	uint64_t saved[WP_NREGS];
	enum wp_step_result result;

	if (!wp_reg_known(step->regs, WP_REG_SP))
		return WP_STEP_UNKNOWN_REG;
	result = wp_step_read(step, frame_avma + SIGCONTEXT_REGS, saved,
			      sizeof(saved));
	if (result != WP_STEP_OK)
		return result;
	for (unsigned int i = 0; i < WP_NREGS; i++)
		wp_reg_set(step->regs, i, saved[i]);
	step->cfa_avma = step->regs->v[WP_REG_SP];
	step->is_signal = true;
	return WP_STEP_OK;
}

bool wp_arch_find_stub_return(const struct wp_step *step,
			      uint64_t *ret_return_avma, uint64_t *ret_sp_avma)
{
	uint32_t insn;

	if (!wp_reg_known(step->regs, WP_REG_LR))
		return false;
	*ret_return_avma = wp_arch_code_avma(step->regs->v[WP_REG_LR]);
	*ret_sp_avma = step->regs->v[WP_REG_SP];
	return read_insn(step->module, step->mem, step->regs->v[WP_REG_PC] - 4,
			 &insn) &&
	       insn == INSN_SVC;
}

#endif
