/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c - from registers to a stack: see wallprof/unwind.h. */
#include "wallprof/unwind.h"

#include <errno.h>
#include <stdlib.h>

#include "arch.h"
#include "go_row.h"
#include "leaf_i386.h"
#include "prover.h"
#include "wallprof/lower_bound.h"

/* What a walk may do, in steps of expressions.  512 frames, each with an expression of
 * two steps and a read, take a third of what a stop has. */
enum { WORK_MAX = 1 << 18, WORK_IN_STOP = 1 << 14 };

/* A back end in use. */
struct stepper {
	const struct wp_step_ops *ops;
	/* Its state, owned; NULL: there is no such back end. */
	void *self;
	/* Generation of the modules that its caches are of. */
	uint64_t generation;
};

struct wp_unwinder {
	struct stepper main;
	/* Makes the steps that MAIN cannot; there may be none. */
	struct stepper fallback;
	/* For code without unwind info; NULL where WP_ARCH_HAS_PROOFS is 0. */
	struct wp_prover *prover;
	struct wp_unwind_stats stats;
};

/* One walk under way. */
struct walk {
	struct wp_unwinder *unwinder;
	const struct wp_unwind_modules *modules;
	struct wp_stack *stack;
	/* The thread's, and those of the frame that the walk has come to. */
	const struct wp_regs *first;
	struct wp_regs regs;
	struct wp_step step;
	/* What module_at found last; NULL: no module. */
	const struct wp_unwind_module *found;
	uint32_t work;
	/* The step's module has a file, which may have unwind info for code of the
	 * step's width. */
	bool may_have_info;
	/* enum wp_frame_flags of the frame that regs are in. */
	uint32_t flags;
	/* The step was a guess. */
	bool is_guess;
	/* Depth at the last run of guesses that began in code of no file, which nobody
	 * has written down where it begins and ends; 0: there was none. */
	uint32_t doubtful_depth;
};

const struct wp_unwind_module *
wp_unwind_find_module(const struct wp_unwind_modules *modules, uint64_t avma)
{
	size_t at = WP_LOWER_BOUND(modules->len, i,
				   modules->v[i].end_avma <= avma);

	if (at == modules->len || avma < modules->v[at].start_avma)
		return NULL;
	if (modules->v[at].is_unopened && modules->open)
		modules->open(modules->ctx, at);
	return &modules->v[at];
}

static int open_stepper(struct stepper *stepper, const struct wp_step_ops *ops,
			struct wp_unwind_stats *stats)
{
	stepper->ops = ops;
	stepper->self = ops->open(stats);
	return stepper->self ? 0 : -ENOMEM;
}

static void close_stepper(struct stepper *stepper)
{
	if (stepper->self)
		stepper->ops->close(stepper->self);
}

int wp_unwinder_new(struct wp_unwinder **ret, enum wp_unwind_backend backend)
{
	struct wp_unwinder *u = calloc(1, sizeof(*u));
	int rc;

	if (!u)
		return -ENOMEM;
	if (backend == WP_UNWIND_LIBUNWIND) {
		rc = open_stepper(&u->main, &wp_step_libunwind, &u->stats);
	} else {
		rc = open_stepper(&u->main, &wp_step_rows, &u->stats);
		if (!rc)
			rc = open_stepper(&u->fallback, &wp_step_libunwind,
					  &u->stats);
	}
	if (!rc && WP_ARCH_HAS_PROOFS) {
		u->prover = wp_prover_new(&u->stats);
		rc = u->prover ? 0 : -ENOMEM;
	}
	if (rc) {
		wp_unwinder_free(u);
		return rc;
	}
	*ret = u;
	return 0;
}

void wp_unwinder_free(struct wp_unwinder *unwinder)
{
	if (!unwinder)
		return;
	close_stepper(&unwinder->fallback);
	close_stepper(&unwinder->main);
	wp_prover_free(unwinder->prover);
	free(unwinder);
}

const struct wp_unwind_stats *
wp_unwinder_stats(const struct wp_unwinder *unwinder)
{
	return &unwinder->stats;
}

/* The next steps are through modules of GENERATION. */
static void set_generation(struct stepper *stepper, uint64_t generation)
{
	if (stepper->generation == generation)
		return;
	if (stepper->ops->flush)
		stepper->ops->flush(stepper->self);
	stepper->generation = generation;
}

static enum wp_step_result step_with(const struct stepper *stepper,
				     struct wp_step *step)
{
	step->cfa_avma = 0;
	step->is_signal = step->is_injected = step->is_switch = false;
	return stepper->ops->step(stepper->self, step);
}

/* Was there usable unwind info, whatever the step came to? */
static bool had_info(enum wp_step_result result)
{
	return result != WP_STEP_NO_INFO && result != WP_STEP_BAD_INFO;
}

/* Make a step by the unwind info of the module's file. */
static enum wp_step_result step_by_info(struct walk *w)
{
	struct wp_unwinder *u = w->unwinder;
	enum wp_step_result result, other;

	if (!WP_ARCH_SIGRETURN_INFO && w->step.module &&
	    wp_arch_is_sigreturn(w->step.module, w->step.mem,
				 w->regs.v[WP_REG_PC])) {
		w->step.is_injected = w->step.is_switch = false;
		return wp_arch_step_sigreturn(&w->step);
	}
	if (!w->may_have_info)
		return WP_STEP_NO_INFO;
	result = step_with(&u->main, &w->step);
	if (result != WP_STEP_BAD_INFO || !u->fallback.self)
		return result;
	set_generation(&u->fallback, w->modules->generation);
	other = step_with(&u->fallback, &w->step);
	if (!had_info(other))
		return result;
	u->stats.fallbacks++;
	return other;
}

/* The module of the code at AVMA, or NULL. */
static const struct wp_unwind_module *module_at(struct walk *w, uint64_t avma)
{
	/* Most functions are called from their own file. */
	if (!w->found || avma < w->found->start_avma ||
	    avma >= w->found->end_avma)
		w->found = wp_unwind_find_module(w->modules, avma);
	return w->found;
}

/* Does the step that was made from SP lead to code?  A return address of 0 is asked about
 * later. */
static bool leads_on(struct walk *w, uint64_t sp_avma)
{
	uint64_t pc_avma = w->regs.v[WP_REG_PC];

	if (w->step.is_signal || w->step.is_switch || !pc_avma)
		return true;
	return (!w->step.is_32bit || w->step.cfa_avma > sp_avma) &&
	       module_at(w, pc_avma - 1);
}

/* Instead of the step that was made from BEFORE and came to RESULT, make one without
 * unwind info, if there is one. */
static enum wp_step_result step_instead(struct walk *w,
					const struct wp_regs *before,
					enum wp_step_result result)
{
	const struct wp_regs caller = w->regs;
	const struct wp_step made = w->step;
	enum wp_step_result guess;

	w->regs = *before;
	guess = w->step.is_32bit ? wp_leaf_i386_scan(&w->step, w->modules) :
				   wp_step_guess(w->unwinder->prover, &w->step,
						 w->modules);
	if (guess != WP_STEP_OK) {
		w->regs = caller;
		w->step = made;
		return result;
	}
	w->is_guess = true;
	w->unwinder->stats.guessed++;
	return WP_STEP_OK;
}

/* Make a step by unwind info, which may be wrong of single instructions where a thread was
 * interrupted, and in i386 programs.  There a step without it may be better. */
static enum wp_step_result step_by_checked_info(struct walk *w)
{
	const bool is_checked = w->step.is_32bit ||
				(WP_ARCH_HAS_PROOFS && !w->step.is_return);
	const struct wp_regs *before = w->first;
	enum wp_step_result result;
	struct wp_regs copy;
	bool is_wrong;

	/* Most walks ask of their first frame alone. */
	if (is_checked && w->stack->depth > 1) {
		copy = w->regs;
		before = &copy;
	}
	result = step_by_info(w);
	if (!is_checked)
		return result;
	is_wrong = result == WP_STEP_OK ?
			   !leads_on(w, before->v[WP_REG_SP]) :
			   result == WP_STEP_BAD_INFO && w->step.is_32bit;
	return is_wrong ? step_instead(w, before, result) : result;
}

static enum wp_step_result guess_step(struct walk *w)
{
	const bool is_of_file = w->step.module && w->step.module->image;
	enum wp_step_result result = wp_step_guess(w->unwinder->prover,
						   &w->step, w->modules);

	if (result == WP_STEP_NO_INFO)
		return result;
	w->is_guess = true;
	if (result != WP_STEP_OK)
		return result;
	w->unwinder->stats.guessed++;
	if (!is_of_file && !(w->flags & WP_FRAME_GUESSED))
		w->doubtful_depth = w->stack->depth;
	return result;
}

static enum wp_step_result step_once(struct walk *w)
{
	enum wp_step_result result, guess;

	w->is_guess = false;
	/* Before its info, which may be that of the caller's stack alone (Go).  A
	 * thread just made has called nobody: most frames have, and are spared the
	 * question. */
	if (!w->step.is_return && wp_step_may_be_new(&w->step) &&
	    w->step.module && w->step.module->image &&
	    wp_step_is_new_thread(&w->step, w->modules))
		return WP_STEP_ROOT;
	result = step_by_checked_info(w);
	if (had_info(result))
		return result;
	guess = guess_step(w);
	return guess == WP_STEP_NO_INFO ? result : guess;
}

static enum wp_stack_end end_of(enum wp_step_result result,
				const struct wp_step *step)
{
	switch (result) {
	case WP_STEP_ROOT:
		return WP_END_ROOT;
	case WP_STEP_BAD_INFO:
		return WP_END_BAD_INFO;
	case WP_STEP_UNKNOWN_REG:
		return WP_END_UNKNOWN_REG;
	case WP_STEP_TOO_SLOW:
		return WP_END_TOO_SLOW;
	case WP_STEP_UNREADABLE:
		return WP_END_UNREADABLE;
	case WP_STEP_BEYOND_COPY:
		return WP_END_BEYOND_COPY;
	case WP_STEP_OTHER_STACK:
		return WP_END_OTHER_STACK;
	case WP_STEP_PROBED:
		return WP_END_PROBED;
	case WP_STEP_NO_INFO:
	case WP_STEP_OK:
		break;
	}
	return step->module ? WP_END_NO_INFO : WP_END_NO_MODULE;
}

/* Has the step from a frame at PC and SP made progress?  If all steps do, no walk
 * is endless. */
static bool has_advanced(const struct walk *w, uint64_t pc_avma,
			 uint64_t sp_avma)
{
	uint64_t next_sp_avma = w->regs.v[WP_REG_SP];

	/* The caller may be on any other stack. */
	if (w->step.is_signal || w->step.is_switch)
		return next_sp_avma != sp_avma ||
		       w->regs.v[WP_REG_PC] != pc_avma;
	if (next_sp_avma > sp_avma)
		return true;
	/* Leaf functions may have their return address in a register: all of
	 * them on aarch64, glibc's vfork on x86-64. */
	return !w->step.is_return && next_sp_avma == sp_avma &&
	       w->regs.v[WP_REG_PC] != pc_avma;
}

/* Add the frame that the registers are in. */
static void add_frame(struct walk *w)
{
	struct wp_stack *stack = w->stack;

	stack->frames[stack->depth] = (struct wp_frame){
		.pc_avma = w->regs.v[WP_REG_PC],
		.mapping = w->step.module ? w->step.module->mapping :
					    WP_MAPPING_NONE,
		.flags = w->flags,
	};
	stack->cfa_avma[stack->depth] = 0;
	stack->depth++;
}

/* The frame's rule is searched for when the thread goes on: what a step by it may
 * read, memory that keeps what was read of another stack is to have by then. */
static void read_ahead(const struct walk *w)
{
	uint64_t left = w->regs.known & WP_ARCH_CALLEE_SAVED;
	uint64_t word;

	for (unsigned int reg = 0; left; reg++, left >>= 1)
		if (left & 1)
			(void)!wp_mem_u64(w->step.mem,
					  w->regs.v[reg] & ~UINT64_C(7), &word);
}

/* Set the step's module to that of the code at AVMA. */
static void find_module(struct walk *w, uint64_t avma)
{
	const struct wp_unwind_module *m = module_at(w, avma);

	if (m && m == w->step.module)
		return;
	w->step.module = m;
	w->may_have_info = m && m->image &&
			   wp_elf_image_is_32bit(m->image) == w->step.is_32bit;
}

/* Add the frame that the registers are in and step to its caller.  False, with
 * *RET_END, if the walk has ended. */
static bool walk_frame(struct walk *w, enum wp_stack_end *ret_end)
{
	struct wp_stack *stack = w->stack;
	uint64_t pc_avma = w->regs.v[WP_REG_PC];
	uint64_t sp_avma = w->regs.v[WP_REG_SP];
	enum wp_step_result result;

	if (stack->depth == stack->cap) {
		*ret_end = WP_END_DEPTH_LIMIT;
		return false;
	}
	w->step.is_return = w->flags & WP_FRAME_RETURN;
	find_module(w, pc_avma - (w->step.is_return ? 1 : 0));
	add_frame(w);
	if (w->step.module && w->step.module->is_unopened) {
		*ret_end = WP_END_TOO_SLOW;
		return false;
	}

	result = step_once(w);
	if (result != WP_STEP_OK) {
		if (result == WP_STEP_TOO_SLOW)
			read_ahead(w);
		/* No code is there: the frame record above ends another stack. */
		if (result == WP_STEP_ROOT && w->step.is_return &&
		    !w->step.module)
			result = WP_STEP_NO_INFO;
		*ret_end = end_of(result, &w->step);
		return false;
	}
	if (w->step.is_signal)
		stack->frames[stack->depth - 1].flags |= WP_FRAME_SIGNAL;
	if (!has_advanced(w, pc_avma, sp_avma)) {
		*ret_end = WP_END_NO_PROGRESS;
		return false;
	}
	stack->cfa_avma[stack->depth - 1] = w->step.cfa_avma;
	w->flags = (w->step.is_signal || w->step.is_injected ?
			    0 :
			    WP_FRAME_RETURN) |
		   (w->is_guess ? WP_FRAME_GUESSED : 0);
	return true;
}

/* Was the last step out of a function of Go's?  The first function of a goroutine returns
 * to runtime.goexit. */
static bool came_from_go(const struct walk *w)
{
	const struct wp_unwind_module *m = w->step.module;
	uint64_t pc_avma = w->stack->frames[w->stack->depth - 1].pc_avma;
	struct wp_cfi_row row;

	return w->may_have_info &&
	       wp_go_row(m->image, pc_avma - w->step.is_return - m->bias,
			 &row) == WP_STEP_OK;
}

/* Has the last step found a return address of 0?  With a frame pointer of 0 it
 * marks the first function (psABI 3.4.1), else it is no code address. */
static bool is_past_end(const struct walk *w, enum wp_stack_end *ret_end)
{
	if (w->regs.v[WP_REG_PC])
		return false;
	*ret_end = wp_reg_known(&w->regs, WP_REG_FP) && !w->regs.v[WP_REG_FP] &&
				   !came_from_go(w) ?
			   WP_END_ROOT :
			   WP_END_NO_MODULE;
	return true;
}

/* Behind a guess the walk has come to where no code is: the guess was wrong, as of an old
 * return address that lay where one may be.  Its frames are nobody's.  A return address of
 * 0 is what a stack may end with. */
static void take_guess_back(const struct walk *w)
{
	struct wp_stack *stack = w->stack;

	if (stack->end != WP_END_NO_MODULE || !w->doubtful_depth ||
	    !w->regs.v[WP_REG_PC])
		return;
	stack->depth = w->doubtful_depth;
	stack->cfa_avma[stack->depth - 1] = 0;
	stack->end = WP_END_NO_INFO;
}

void wp_unwind_walk(struct wp_unwinder *unwinder,
		    const struct wp_unwind_modules *modules,
		    const struct wp_regs *regs, const struct wp_mem *mem,
		    enum wp_unwind_pace pace, struct wp_stack *stack)
{
	struct wp_unwind_modules own;
	struct walk w;

	/* One by one: to clear it all first would take as long as half a frame. */
	w.unwinder = unwinder;
	w.modules = modules;
	w.stack = stack;
	w.first = regs;
	w.regs = *regs;
	w.step = (struct wp_step){ .mem = mem,
				   .regs = &w.regs,
				   .is_32bit = modules->is_32bit,
				   .in_stop = pace == WP_UNWIND_IN_STOP,
				   .work = &w.work };
	w.found = NULL;
	w.work = pace == WP_UNWIND_IN_STOP ? WORK_IN_STOP : WORK_MAX;
	w.may_have_info = false;
	w.flags = 0;
	w.is_guess = false;
	w.doubtful_depth = 0;
	if (pace == WP_UNWIND_IN_STOP && modules->open) {
		own = *modules;
		own.open = NULL;
		w.modules = &own;
	}
	set_generation(&unwinder->main, modules->generation);
	unwinder->stats.walks++;
	stack->depth = 0;
	stack->end = WP_END_EMPTY;
	if (!wp_reg_known(&w.regs, WP_REG_PC) ||
	    !wp_reg_known(&w.regs, WP_REG_SP))
		return;
	while (walk_frame(&w, &stack->end) && !is_past_end(&w, &stack->end))
		w.regs.v[WP_REG_PC] = wp_arch_code_avma(w.regs.v[WP_REG_PC]);
	take_guess_back(&w);
	unwinder->stats.frames += stack->depth;
}
