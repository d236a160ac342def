/* SPDX-License-Identifier: Apache-2.0 */
/* frame_pointer.c - see frame_pointer.h. */
#include "frame_pointer.h"

#include <string.h>

enum {
	/* Words between sp and a frame pointer that are looked at, and how many
	 * at once.  Frames of code without unwind info are smaller. */
	WORDS_MAX = 512,
	WORDS_STEP = 64,
	/* Reads of what a word may point to. */
	READS = 5,
	/* Bytes of a frame whose code says that it has a frame pointer. */
	FRAME_MAX = 1 << 20,
};

bool wp_frame_pointer_may_return(const struct wp_unwind_modules *modules,
				 const struct wp_mem *mem, uint64_t avma)
{
	const struct wp_unwind_module *module =
		avma ? wp_unwind_find_module(modules, avma - 1) : NULL;

	return module &&
	       (wp_arch_follows_call(module, mem, avma) ||
		wp_arch_is_sigreturn(module, mem, avma) ||
		(!module->image && wp_arch_resumes_frame(module, mem, avma)));
}

/* Is VAL, a word of the stack, a return address, or what cannot be told from one?
 * WP_STEP_OK: it is none. */
static enum wp_step_result judge_word(const struct wp_step *step,
				      const struct wp_unwind_modules *modules,
				      uint64_t val)
{
	const struct wp_unwind_module *module =
		val ? wp_unwind_find_module(modules, val - 1) : NULL;

	if (!module)
		return WP_STEP_OK;
	/* Code in no file is read from the process. */
	if (!wp_step_work(step, module->image ? 1 : READS * WP_STEP_READ_WORK))
		return WP_STEP_TOO_SLOW;
	return wp_frame_pointer_may_return(modules, step->mem, val) ?
		       WP_STEP_NO_INFO :
		       WP_STEP_OK;
}

/* Does a step to the frame record at FP leave out no frame: is there no return address
 * between sp and it? */
static enum wp_step_result
leaves_none_out(const struct wp_step *step,
		const struct wp_unwind_modules *modules, uint64_t fp)
{
	const size_t word = wp_step_word_size(step);
	uint64_t left = (fp - step->regs->v[WP_REG_SP]) / word;
	uint64_t avma = step->regs->v[WP_REG_SP];
	uint8_t bytes[WORDS_STEP * 8];

	if (left > WORDS_MAX)
		return WP_STEP_NO_INFO;
	while (left) {
		size_t n = left < WORDS_STEP ? (size_t)left : WORDS_STEP;

		if (wp_step_read(step, avma, bytes, word * n) != WP_STEP_OK)
			return WP_STEP_NO_INFO;
		for (size_t i = 0; i < n; i++) {
			enum wp_step_result result;
			uint64_t val = 0;

			memcpy(&val, bytes + i * word, word);
			result = judge_word(step, modules, val);
			if (result != WP_STEP_OK)
				return result;
		}
		avma += word * n;
		left -= n;
	}
	return WP_STEP_OK;
}

/* The caller's sp: right above the record, unless the frame is an interpreter's
 * whose arguments lie there, and which keeps it below the record (HotSpot,
 * frame_x86.hpp: sender_sp). */
static uint64_t find_caller_sp(const struct wp_step *step, uint64_t fp)
{
	uint64_t above = fp + 2 * wp_step_word_size(step), sp;

	if (step->is_return && !step->is_32bit && step->module &&
	    !step->module->image &&
	    wp_arch_resumes_frame(step->module, step->mem,
				  step->regs->v[WP_REG_PC]) &&
	    wp_mem_u64(step->mem, fp - 8, &sp) && sp >= above &&
	    sp - above < FRAME_MAX && sp % 8 == 0)
		return sp;
	return above;
}

static void set_caller(struct wp_step *step,
		       const struct wp_frame_record *record, uint64_t sp)
{
	/* Where the frame saved other registers is not known. */
	step->regs->known = 0;
	wp_reg_set(step->regs, WP_REG_PC, record->return_avma);
	wp_reg_set(step->regs, WP_REG_SP, sp);
	wp_reg_set(step->regs, WP_REG_FP, record->caller_fp);
	/* The record is anywhere in the frame: the caller's sp is not below its end. */
	if (WP_ARCH_KEEPS_FRAME_POINTER)
		wp_reg_forget_sp(step->regs);
	step->cfa_avma = sp;
}

/* Is RECORD a thread's first, by the psABI (3.4.1) or as runtimes make it that
 * have their own stacks: no frame pointer before it, and a return to nothing or to
 * code that no call is before (Erlang's normal_exit)? */
static bool is_first(const struct wp_unwind_modules *modules,
		     const struct wp_frame_record *record)
{
	return !record->caller_fp &&
	       (!record->return_avma ||
		wp_unwind_find_module(modules, record->return_avma));
}

static bool may_be_record(const struct wp_step *step, uint64_t fp)
{
	return fp % wp_step_word_size(step) == 0 &&
	       fp + sizeof(struct wp_frame_record) >= fp;
}

static enum wp_step_result read_record(const struct wp_step *step, uint64_t fp,
				       struct wp_frame_record *ret)
{
	uint32_t narrow[2];
	enum wp_step_result result;

	if (!step->is_32bit)
		return wp_step_read(step, fp, ret, sizeof(*ret));
	result = wp_step_read(step, fp, narrow, sizeof(narrow));
	if (result == WP_STEP_OK)
		*ret = (struct wp_frame_record){ narrow[0], narrow[1] };
	return result;
}

/* Read the frame record at FP, which is of another stack: only where the pc's code
 * is certain of it, and frames go on upwards there. */
static enum wp_step_result read_elsewhere(const struct wp_step *step,
					  uint64_t fp, bool is_certain,
					  struct wp_frame_record *ret)
{
	enum wp_step_result result;

	if (!is_certain || !fp || !may_be_record(step, fp))
		return WP_STEP_NO_INFO;
	result = read_record(step, fp, ret);
	if (result != WP_STEP_OK)
		return result;
	return !ret->caller_fp || ret->caller_fp > fp ? WP_STEP_OK :
							WP_STEP_NO_INFO;
}

/* Read the frame record at FP, which is above SP. */
static enum wp_step_result read_above(const struct wp_step *step,
				      const struct wp_unwind_modules *modules,
				      uint64_t fp, bool is_certain,
				      struct wp_frame_record *ret)
{
	enum wp_step_result result;

	if (!may_be_record(step, fp))
		return WP_STEP_NO_INFO;
	result = read_record(step, fp, ret);
	if (result != WP_STEP_OK || is_certain)
		return result;
	/* Words that look like a record may be in a frame, too. */
	if (ret->caller_fp ?
		    ret->caller_fp <= fp || ret->caller_fp - fp > FRAME_MAX :
		    step->module && step->module->image)
		return WP_STEP_NO_INFO;
	return leaves_none_out(step, modules, fp);
}

enum wp_step_result
wp_frame_pointer_step(struct wp_step *step,
		      const struct wp_unwind_modules *modules, bool is_certain)
{
	uint64_t fp = step->regs->v[WP_REG_FP], sp = step->regs->v[WP_REG_SP];
	bool is_here = fp >= sp && fp - sp <= FRAME_MAX;
	struct wp_frame_record record;
	enum wp_step_result result;

	if (!wp_reg_known(step->regs, WP_REG_FP))
		return WP_STEP_UNKNOWN_REG;
	result = is_here ? read_above(step, modules, fp, is_certain, &record) :
			   read_elsewhere(step, fp, is_certain, &record);
	if (result != WP_STEP_OK)
		return result;
	record.return_avma = wp_arch_code_avma(record.return_avma);
	if (!wp_frame_pointer_may_return(modules, step->mem,
					 record.return_avma))
		return is_first(modules, &record) ? WP_STEP_ROOT :
						    WP_STEP_NO_INFO;
	set_caller(step, &record, find_caller_sp(step, fp));
	step->is_switch = !is_here;
	return WP_STEP_OK;
}
