/* SPDX-License-Identifier: Apache-2.0 */
/* guess.c - steps without unwind info: see step.h. */
#include "frame_pointer.h"
#include "leaf_i386.h"
#include "prover.h"
#include "return_path.h"
#include "vdso_i386.h"

/* Step out of a stub (system call, PLT), known by its bytes. */
static enum wp_step_result step_stub(struct wp_step *step,
				     const struct wp_unwind_modules *modules)
{
	uint64_t return_avma, sp_avma;

	if (!wp_arch_find_stub_return(step, &return_avma, &sp_avma) ||
	    !wp_frame_pointer_may_return(modules, step->mem, return_avma))
		return WP_STEP_NO_INFO;
	step->regs->known &= WP_ARCH_CALLEE_SAVED;
	wp_reg_set(step->regs, WP_REG_PC, return_avma);
	wp_reg_set(step->regs, WP_REG_SP, sp_avma);
	step->cfa_avma = sp_avma;
	return WP_STEP_OK;
}

bool wp_step_is_new_thread(const struct wp_step *step,
			   const struct wp_unwind_modules *modules)
{
	uint64_t return_avma, sp_avma;

	/* The register is asked first: it spares most walks the look at the code. */
	if (!wp_step_may_be_new(step) || !wp_arch_is_behind_clone(step))
		return false;
	return wp_reg_known(step->regs, WP_REG_RESULT) ||
	       (wp_arch_find_stub_return(step, &return_avma, &sp_avma) &&
		!wp_frame_pointer_may_return(modules, step->mem, return_avma));
}

enum wp_step_result wp_step_guess(struct wp_prover *prover,
				  struct wp_step *step,
				  const struct wp_unwind_modules *modules)
{
	uint64_t pc_avma = step->regs->v[WP_REG_PC];
	enum wp_step_result result = WP_STEP_NO_INFO;

	step->is_signal = step->is_injected = step->is_switch = false;
	step->cfa_avma = 0;
	/* The prover follows 64-bit code alone. */
	if (step->is_32bit)
		prover = NULL;
	if (step->module && !step->is_32bit &&
	    wp_arch_is_sigreturn(step->module, step->mem, pc_avma))
		return wp_arch_step_sigreturn(step);
	if (wp_arch_is_context_start(step))
		return WP_STEP_ROOT;
	/* Stubs make no calls, so no frame returns into one.  Those of files the
	 * prover knows, and a return path is a stub's, too. */
	if (!WP_ARCH_HAS_RETURN_PATHS && step->module && !step->is_return &&
	    !(prover && step->module->image))
		result = step_stub(step, modules);
	if (result == WP_STEP_NO_INFO)
		result = wp_leaf_i386_step(step, modules);
	if (result == WP_STEP_NO_INFO)
		result = wp_vdso_i386_step(step, modules);
	if (result != WP_STEP_NO_INFO)
		return result;
	return prover && step->module ? wp_prover_step(prover, step, modules) :
					wp_return_path_step(step, modules);
}
