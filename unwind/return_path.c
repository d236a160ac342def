/* SPDX-License-Identifier: Apache-2.0 */
/* return_path.c - see return_path.h. */
#include "return_path.h"

#include "frame_pointer.h"

#if defined(__aarch64__)

#include "a64_state.h"

enum {
	/* Instructions that are followed for one step, of them in a stop, and after the
	 * first return that was found; how many are one step of an expression. */
	INSNS_MAX = 4096,
	INSNS_IN_STOP = 512,
	INSNS_MORE = 256,
	INSNS_PER_WORK = 16,
	/* Places that branches lead to: each is followed once. */
	SEEN = 96,
	PENDING = 32,
	/* Instructions that are read at a time. */
	WINDOW = 32,
	/* Bytes of a frame. */
	FRAME_MAX = 1 << 20,
	/* Instructions in which a thread is ended. */
	EXIT_INSNS = 4,
	INSN_SVC = 0xd4000001,
};

struct way {
	uint64_t pc_avma;
	struct wp_a64_state state;
};

struct caller {
	uint64_t pc_avma;
	/* Its sp, or with HAS_SP false the lowest that that can be. */
	uint64_t sp_avma;
	uint64_t fp_avma;
	bool has_sp;
	bool has_fp;
};

struct search {
	const struct wp_step *step;
	const struct wp_unwind_modules *modules;
	/* Instructions that were followed, and may be. */
	unsigned int ninsns;
	unsigned int limit;
	struct way pending[PENDING];
	unsigned int npending;
	uint64_t seen[SEEN];
	unsigned int nseen;
	/* code[0..ncode) is at CODE_AVMA. */
	uint32_t code[WINDOW];
	uint64_t code_avma;
	unsigned int ncode;
	/* A way changes lr and has not stored it: it is no return address any more. */
	bool changes_lr;
	/* A way uses x29, as it was, for an address. */
	bool uses_fp;
	/* Returns that were found: what the caller is, and that they differ. */
	unsigned int nfound;
	bool differs;
	struct caller caller;
	/* Why the address that a way returns to could not be read; WP_STEP_OK: it could. */
	enum wp_step_result unread;
};

/* VAL by the step's registers and stack. */
static enum wp_step_result value_of(const struct search *s,
				    struct wp_a64_val val, uint64_t *ret)
{
	static const uint8_t regs[] = { [WP_A64_SP] = WP_REG_SP,
					[WP_A64_FP] = WP_REG_FP,
					[WP_A64_LR] = WP_REG_LR };

	if (val.base == WP_A64_LOST)
		return WP_STEP_NO_INFO;
	if (!wp_reg_known(s->step->regs, regs[val.base]))
		return WP_STEP_UNKNOWN_REG;
	*ret = s->step->regs->v[regs[val.base]] + (uint64_t)val.off;
	return val.is_word ? wp_step_word(s->step, *ret, ret) : WP_STEP_OK;
}

/* A way returns with STATE, which reads a record by sp.  That is the frame's own, which
 * x29 points to: where sp is not known, it tells it. */
static void find_sp(struct search *s, const struct wp_a64_state *state)
{
	struct wp_regs *regs = s->step->regs;

	if (!wp_reg_known(regs, WP_REG_SP) && wp_reg_known(regs, WP_REG_FP) &&
	    state->fp.is_word && state->fp.base == WP_A64_SP &&
	    state->lr.is_word && state->lr.base == WP_A64_SP &&
	    state->lr.off == state->fp.off + 8)
		wp_reg_set(regs, WP_REG_SP,
			   regs->v[WP_REG_FP] - (uint64_t)state->fp.off);
}

/* A way returns with STATE: true, and the caller, if it can be one. */
static bool find_caller(struct search *s, const struct wp_a64_state *state,
			struct caller *ret)
{
	const uint64_t sp_avma = s->step->regs->v[WP_REG_SP];
	enum wp_step_result result;

	find_sp(s, state);
	result = value_of(s, state->lr, &ret->pc_avma);
	if (wp_step_is_unread(result) || result == WP_STEP_UNKNOWN_REG)
		s->unread = result;
	if (result != WP_STEP_OK)
		return false;
	ret->pc_avma = wp_arch_code_avma(ret->pc_avma);
	/* 0: the first function of a thread. */
	if (ret->pc_avma && !wp_frame_pointer_may_return(
				    s->modules, s->step->mem, ret->pc_avma))
		return false;
	ret->has_fp = value_of(s, state->fp, &ret->fp_avma) == WP_STEP_OK;
	ret->has_sp = value_of(s, state->sp, &ret->sp_avma) == WP_STEP_OK;
	if (!ret->has_sp)
		ret->sp_avma = sp_avma + (s->step->is_return ? 8 : 0);
	return ret->sp_avma - sp_avma <= FRAME_MAX;
}

static void add_return(struct search *s, const struct wp_a64_state *state)
{
	struct caller c = { 0 };

	if (!find_caller(s, state, &c))
		return;
	if (!s->nfound++) {
		s->caller = c;
		if (s->limit > s->ninsns + INSNS_MORE)
			s->limit = s->ninsns + INSNS_MORE;
		return;
	}
	s->differs |= c.pc_avma != s->caller.pc_avma;
	s->caller.has_sp &= c.has_sp && c.sp_avma == s->caller.sp_avma;
	s->caller.has_fp &= c.has_fp && c.fp_avma == s->caller.fp_avma;
}

/* The instruction at AVMA: false if it cannot be read. */
static bool fetch(struct search *s, uint64_t avma, uint32_t *ret)
{
	const struct wp_step *step = s->step;
	uint64_t i = (avma - s->code_avma) / sizeof(*s->code);

	if (avma % sizeof(*s->code))
		return false;
	if (i >= s->ncode) {
		s->code_avma = avma;
		s->ncode = WINDOW;
		if (wp_code_read(step->module, step->mem, avma, s->code,
				 sizeof(s->code)))
			s->ncode = !wp_code_read(step->module, step->mem, avma,
						 s->code, sizeof(*s->code));
		i = 0;
	}
	*ret = s->code[i];
	return i < s->ncode;
}

/* Is AVMA the target of a branch for the first time?  False too if there are too many. */
static bool is_new(struct search *s, uint64_t avma)
{
	for (unsigned int i = 0; i < s->nseen; i++)
		if (s->seen[i] == avma)
			return false;
	if (s->nseen == SEEN)
		return false;
	s->seen[s->nseen++] = avma;
	return true;
}

/* Does a jump by INSN, through a register, leave the function?  So it does where lr was
 * read back before, and in a slot of the PLT or a veneer (AAPCS64, 6.1.1: x16, x17). */
static bool is_tail_call(const struct wp_a64_state *state, uint32_t insn)
{
	return state->lr.is_word || (insn >> 5 & 31) == 16 ||
	       (insn >> 5 & 31) == 17;
}

/* Follow WAY over one instruction: false at its end. */
static bool follow_insn(struct search *s, struct way *way)
{
	uint64_t next_avma = way->pc_avma + 4, target_avma;
	uint32_t insn;

	if (!fetch(s, way->pc_avma, &insn))
		return false;
	switch (wp_a64_kind(insn, way->pc_avma, &target_avma)) {
	case WP_A64_PLAIN:
		s->uses_fp |= way->state.fp.base == WP_A64_FP &&
			      wp_a64_is_by_fp(insn);
		wp_a64_execute(&way->state, insn);
		break;
	case WP_A64_CALL:
		way->state.lr = (struct wp_a64_val){ 0 };
		way->state.const_reg = 0;
		break;
	case WP_A64_JUMP_REG:
		if (!is_tail_call(&way->state, insn))
			return false;
		add_return(s, &way->state);
		return false;
	case WP_A64_RETURN:
		add_return(s, &way->state);
		return false;
	case WP_A64_BRANCH:
		if (s->npending < PENDING && is_new(s, target_avma)) {
			s->pending[s->npending] = *way;
			s->pending[s->npending++].pc_avma = target_avma;
		}
		break;
	case WP_A64_JUMP:
		next_avma = target_avma;
		if (!is_new(s, target_avma))
			return false;
		break;
	case WP_A64_END:
		return false;
	}
	way->pc_avma = next_avma;
	s->changes_lr |= way->state.lr.base != WP_A64_LR &&
			 way->state.stored[1].base != WP_A64_LR;
	return true;
}

static void find_returns(struct search *s)
{
	const bool is_return = s->step->is_return;

	s->pending[0] = (struct way){
		.pc_avma = s->step->regs->v[WP_REG_PC],
		.state = { .sp = { .base = WP_A64_SP },
			   .fp = { .base = WP_A64_FP },
			   /* The call has put another address there. */
			   .lr = { .base = is_return ? WP_A64_LOST :
						       WP_A64_LR } },
	};
	s->npending = 1;
	while (s->npending && s->ninsns < s->limit) {
		struct way way = s->pending[--s->npending];

		while (s->ninsns < s->limit && follow_insn(s, &way))
			s->ninsns++;
	}
}

/* Does the code that the frame returns to end the thread: the system call exit, inline?
 * So does what a C library has clone return to. */
static bool ends_thread(struct search *s)
{
	uint64_t avma = s->step->regs->v[WP_REG_PC];
	bool is_exit = false;
	uint32_t insn;

	for (int i = 0; i < EXIT_INSNS; i++, avma += 4) {
		if (!fetch(s, avma, &insn))
			return false;
		if (insn == INSN_SVC)
			return is_exit;
		/* mov x8 or w8, #93 (__NR_exit) or #94 (__NR_exit_group). */
		is_exit |= (insn & 0x7fffffff) == 0x52800ba8 ||
			   (insn & 0x7fffffff) == 0x52800bc8;
	}
	return false;
}

/* Is the frame record the frame's own?  One that has called has stored its return
 * address: between sp and the caller's record, if it has none itself. */
static bool is_own_record(const struct search *s, const struct wp_regs *regs)
{
	return s->step->is_return &&
	       (s->uses_fp || !wp_reg_known(regs, WP_REG_SP) ||
		regs->v[WP_REG_FP] == regs->v[WP_REG_SP]);
}

/* Make STEP by the frame record, where S has found no return. */
static enum wp_step_result step_by_record(struct search *s,
					  struct wp_step *step)
{
	const struct wp_regs before = *step->regs;
	enum wp_step_result result;
	uint64_t lr_avma;

	/* AAPCS64, 6.4.6: 0 ends the chain. */
	if (step->is_return &&
	    ((wp_reg_known(&before, WP_REG_FP) && !before.v[WP_REG_FP]) ||
	     ends_thread(s)))
		return WP_STEP_ROOT;
	/* Of another stack is what musl leaves in a new thread's x29. */
	if (before.v[WP_REG_FP] - before.v[WP_REG_SP] > FRAME_MAX &&
	    wp_reg_known(&before, WP_REG_FP))
		return WP_STEP_NO_INFO;
	result = wp_frame_pointer_step(step, s->modules,
				       is_own_record(s, &before));
	if (step->is_return || s->changes_lr ||
	    !wp_reg_known(&before, WP_REG_LR) ||
	    (result != WP_STEP_OK && result != WP_STEP_ROOT))
		return result;
	/* The record may be the caller's. */
	lr_avma = wp_arch_code_avma(before.v[WP_REG_LR]);
	if (result == WP_STEP_OK && step->regs->v[WP_REG_PC] == lr_avma)
		return result;
	*step->regs = before;
	return WP_STEP_NO_INFO;
}

enum wp_step_result wp_return_path_step(struct wp_step *step,
					const struct wp_unwind_modules *modules)
{
	const unsigned int limit = step->in_stop ? INSNS_IN_STOP : INSNS_MAX;
	struct search s = { .step = step, .modules = modules, .limit = limit };

	/* Compilers that write into memory keep the frame pointer. */
	if (step->is_return && !(step->module && step->module->image))
		return wp_frame_pointer_step(step, modules, true);
	if (!wp_step_work(step, limit / INSNS_PER_WORK))
		return WP_STEP_TOO_SLOW;
	find_returns(&s);
	if (step->work)
		*step->work += (limit - s.ninsns) / INSNS_PER_WORK;
	if (step->in_stop && !s.nfound && s.ninsns == limit)
		return WP_STEP_TOO_SLOW;
	if (s.unread != WP_STEP_OK && !s.nfound)
		return s.unread;
	if (!s.nfound || s.differs)
		return step_by_record(&s, step);
	step->regs->known = 0;
	wp_reg_set(step->regs, WP_REG_PC, s.caller.pc_avma);
	wp_reg_set(step->regs, WP_REG_SP, s.caller.sp_avma);
	if (!s.caller.has_sp)
		wp_reg_forget_sp(step->regs);
	if (s.caller.has_fp)
		wp_reg_set(step->regs, WP_REG_FP, s.caller.fp_avma);
	step->cfa_avma = s.caller.sp_avma;
	return WP_STEP_OK;
}

#else

enum wp_step_result wp_return_path_step(struct wp_step *step,
					const struct wp_unwind_modules *modules)
{
	return wp_frame_pointer_step(step, modules, false);
}

#endif
