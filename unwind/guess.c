/* SPDX-License-Identifier: Apache-2.0 */
/* guess.c - steps without unwind info: see step.h. */
#include "prover.h"

/* Does AVMA, in a module, follow a call? */
static bool is_return_address(const struct wp_unwind_modules *modules,
			      const struct wp_mem *mem, uint64_t avma)
{
	const struct wp_unwind_module *module =
		avma ? wp_unwind_find_module(modules, avma - 1) : NULL;

	return module && wp_arch_follows_call(module, mem, avma);
}

/* Set STEP's registers to the caller's, which has PC and SP. */
static void set_caller(struct wp_step *step, uint64_t pc_avma, uint64_t sp_avma)
{
	step->regs->known &= WP_ARCH_CALLEE_SAVED;
	wp_reg_set(step->regs, WP_REG_PC, pc_avma);
	wp_reg_set(step->regs, WP_REG_SP, sp_avma);
	step->cfa_avma = sp_avma;
}

/* Step out of a stub (system call, PLT), known by its bytes. */
static enum wp_step_result step_stub(struct wp_step *step,
				     const struct wp_unwind_modules *modules)
{
	uint64_t return_avma, sp_avma;

	if (!wp_arch_find_stub_return(step, &return_avma, &sp_avma) ||
	    !is_return_address(modules, step->mem, return_avma))
		return WP_STEP_NO_INFO;
	set_caller(step, return_avma, sp_avma);
	return WP_STEP_OK;
}

static enum wp_step_result
step_frame_pointer(struct wp_step *step,
		   const struct wp_unwind_modules *modules)
{
	uint64_t fp_avma = step->regs->v[WP_REG_FP];
	struct wp_frame_record record;
	enum wp_step_result result;

	if (!wp_reg_known(step->regs, WP_REG_FP))
		return WP_STEP_UNKNOWN_REG;
	if (fp_avma < step->regs->v[WP_REG_SP] || fp_avma % 8 ||
	    fp_avma + sizeof(record) < fp_avma)
		return WP_STEP_NO_INFO;
	result = wp_step_read(step, fp_avma, &record, sizeof(record));
	if (result != WP_STEP_OK)
		return result;
	/* psABI 3.4.1: the deepest frame is marked by a frame pointer of 0. */
	if (!record.caller_fp && !record.return_avma)
		return WP_STEP_ROOT;
	record.return_avma = wp_arch_code_avma(record.return_avma);
	if (!is_return_address(modules, step->mem, record.return_avma))
		return WP_STEP_NO_INFO;
	set_caller(step, record.return_avma, fp_avma + sizeof(record));
	/* Where the frame saved other registers is not known. */
	step->regs->known &= UINT64_C(1) << WP_REG_PC | UINT64_C(1)
								<< WP_REG_SP;
	wp_reg_set(step->regs, WP_REG_FP, record.caller_fp);
	return WP_STEP_OK;
}

enum wp_step_result wp_step_guess(struct wp_prover *prover,
				  struct wp_step *step,
				  const struct wp_unwind_modules *modules)
{
	uint64_t pc_avma = step->regs->v[WP_REG_PC];
	enum wp_step_result result = WP_STEP_NO_INFO;

	step->is_signal = step->is_switch = false;
	step->cfa_avma = 0;
	if (step->module &&
	    wp_arch_is_sigreturn(step->module, step->mem, pc_avma))
		return wp_arch_step_sigreturn(step);
	if (wp_arch_is_new_thread(step))
		return WP_STEP_ROOT;
	/* Code in a file can be read ahead and follows the psABI; a JIT
	 * compiler's code follows rules of its own. */
	if (prover && step->module && step->module->image)
		return wp_prover_step(prover, step, modules);
	/* Stubs make no calls, so no frame returns into one. */
	if (step->module && !step->is_return)
		result = step_stub(step, modules);
	return result == WP_STEP_NO_INFO ? step_frame_pointer(step, modules) :
					   result;
}
