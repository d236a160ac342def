/* SPDX-License-Identifier: Apache-2.0 */
/* rule.c - see rule.h. */
#include "rule.h"

#include <string.h>

#include "arch.h"
#include "go_switch.h"

enum {
	KIND_BITS = 4,
	KIND_MASK = (1 << KIND_BITS) - 1,
	/* WP_CFI_AT: val is AT_REGS * offset + register. */
	AT_REGS = 64,
	WORD = 8,
};

_Static_assert(WP_CFI_NTRACKED *KIND_BITS <= 64, "kinds hold every slot");
_Static_assert((int)WP_CFI_AT <= (int)KIND_MASK, "every kind fits its bits");
_Static_assert(WP_RULE_WORDS + WP_CFI_NTRACKED <= UINT8_MAX, "from[] fits");

struct wp_rule wp_rule_of_result(enum wp_step_result result)
{
	return (struct wp_rule){ .result = (uint8_t)result };
}

static bool fits(int64_t val)
{
	return val >= INT32_MIN && val <= INT32_MAX;
}

static bool is_expr(enum wp_cfi_kind kind)
{
	return kind == WP_CFI_EXPR || kind == WP_CFI_VAL_EXPR;
}

static bool pack_cfa_expr(struct wp_rule *rule, int64_t file_off,
			  struct wp_elf_image *image)
{
	struct wp_reader expr = wp_cfi_expr_at(image, (uint64_t)file_off);
	uint64_t reg;
	int64_t off;

	switch (wp_cfi_expr_shape(expr, image, &reg, &off)) {
	case WP_CFI_SHAPE_PLT:
		rule->cfa_kind = WP_CFI_CFA_PLT;
		rule->cfa_off = (int32_t)off;
		return true;
	case WP_CFI_SHAPE_DEREF:
		if (reg >= WP_NREGS || !fits(off))
			return false;
		rule->cfa_kind = WP_CFI_CFA_DEREF;
		rule->cfa_reg = (uint8_t)reg;
		rule->cfa_off = (int32_t)off;
		return true;
	default:
		rule->cfa_kind = WP_CFI_CFA_EXPR;
		rule->cfa_off = (int32_t)(uint32_t)file_off;
		return file_off <= UINT32_MAX;
	}
}

static bool pack_cfa(struct wp_rule *rule, const struct wp_cfi_row *row,
		     struct wp_elf_image *image)
{
	if (row->cfa_kind == WP_CFI_CFA_EXPR)
		return pack_cfa_expr(rule, row->cfa_expr, image);
	if (row->cfa_reg >= WP_NREGS || !fits(row->cfa_off))
		return false;
	rule->cfa_kind = (uint8_t)row->cfa_kind;
	rule->cfa_reg = (uint8_t)row->cfa_reg;
	rule->cfa_off = (int32_t)row->cfa_off;
	return true;
}

/* PLACE, or the shorter name of its expression if that has one. */
static struct wp_cfi_place simplify(struct wp_cfi_place place,
				    struct wp_elf_image *image)
{
	struct wp_reader expr;
	uint64_t reg;
	int64_t off;

	if (place.kind != WP_CFI_EXPR)
		return place;
	expr = wp_cfi_expr_at(image, (uint64_t)place.val);
	if (wp_cfi_expr_shape(expr, image, &reg, &off) != WP_CFI_SHAPE_SUM ||
	    reg >= WP_NREGS || off < INT32_MIN / AT_REGS ||
	    off > INT32_MAX / AT_REGS)
		return place;
	return (struct wp_cfi_place){ WP_CFI_AT, off * AT_REGS + (int64_t)reg };
}

static bool pack_place(struct wp_rule *rule, unsigned int slot,
		       struct wp_cfi_place place, struct wp_elf_image *image)
{
	place = simplify(place, image);
	rule->kinds |= (uint64_t)place.kind << slot * KIND_BITS;
	if (is_expr(place.kind)) {
		rule->u.val[slot] = (int32_t)(uint32_t)place.val;
		return place.val <= UINT32_MAX;
	}
	rule->u.val[slot] = (int32_t)place.val;
	if (place.kind == WP_CFI_REGISTER)
		return (uint64_t)place.val < WP_NREGS;
	return fits(place.val);
}

static enum wp_cfi_kind kind_of(const struct wp_rule *rule, unsigned int slot)
{
	return (enum wp_cfi_kind)(rule->kinds >> slot * KIND_BITS & KIND_MASK);
}

struct wp_cfi_place wp_rule_place(const struct wp_rule *rule, unsigned int slot)
{
	struct wp_cfi_place place = { kind_of(rule, slot), 0 };

	if (!(rule->flags & WP_RULE_BLOCK))
		place.val = rule->u.val[slot];
	else if (place.kind == WP_CFI_OFFSET)
		place.val = rule->u.block.lo + 8 * rule->u.block.from[slot];
	if (is_expr(place.kind))
		place.val = (uint32_t)place.val;
	return place;
}

/* Find the stretch of stack, from CFA + LO to the word at CFA + HI, that has all
 * registers that RULE does not keep: false if there is none so short. */
static bool find_block(const struct wp_rule *rule, int32_t *ret_lo,
		       int32_t *ret_hi)
{
	int32_t lo = rule->u.val[WP_CFI_RA_SLOT], hi = lo;

	for (unsigned int i = 0; i < WP_CFI_NTRACKED; i++) {
		enum wp_cfi_kind kind = kind_of(rule, i);
		int32_t val = rule->u.val[i];

		if (i == WP_CFI_SP_SLOT) {
			if (kind != WP_CFI_VAL_OFFSET || val)
				return false;
		} else if (kind == WP_CFI_OFFSET) {
			if ((val ^ hi) & 7)
				return false;
			lo = val < lo ? val : lo;
			hi = val > hi ? val : hi;
		} else if (kind != WP_CFI_SAME) {
			return false;
		}
	}
	*ret_lo = lo;
	*ret_hi = hi;
	return rule->cfa_kind == WP_CFI_CFA_REG &&
	       kind_of(rule, WP_CFI_RA_SLOT) == WP_CFI_OFFSET &&
	       (int64_t)hi - lo < 8 * WP_RULE_WORDS;
}

/* Turn RULE into one with WP_RULE_BLOCK, if it can be. */
static void make_block(struct wp_rule *rule)
{
	struct wp_rule made = *rule;
	int32_t lo, hi;

	if (!find_block(rule, &lo, &hi))
		return;
	memset(&made.u, 0, sizeof(made.u));
	made.flags |= WP_RULE_BLOCK;
	made.u.block.lo = lo;
	made.u.block.len = (uint8_t)((hi - lo) / 8 + 1);
	made.u.block.set = UINT64_C(1) << WP_REG_SP | UINT64_C(1) << WP_REG_PC;
	for (unsigned int i = 0; i < WP_CFI_NTRACKED; i++) {
		uint64_t bit = UINT64_C(1) << wp_cfi_tracked[i];

		if (kind_of(rule, i) == WP_CFI_OFFSET) {
			made.u.block.set |= bit;
			made.u.block.from[i] = (uint8_t)((rule->u.val[i] - lo) /
							 8);
		} else {
			made.u.block.from[i] = (uint8_t)(WP_RULE_WORDS + i);
			if (i != WP_CFI_SP_SLOT)
				made.u.block.kept |= bit;
		}
	}
	*rule = made;
}

struct wp_rule wp_rule_pack(const struct wp_cfi_row *row, bool is_signal,
			    struct wp_elf_image *image)
{
	struct wp_rule rule = { 0 };

	if (!pack_cfa(&rule, row, image))
		return wp_rule_of_result(WP_STEP_BAD_INFO);
	for (unsigned int i = 0; i < WP_CFI_NTRACKED; i++)
		if (!pack_place(&rule, i, row->reg[i], image))
			return wp_rule_of_result(WP_STEP_BAD_INFO);
	if (is_signal)
		rule.flags |= WP_RULE_SIGNAL;
	if (row->is_ra_signed)
		rule.flags |= WP_RULE_RA_SIGNED;
	if (row->is_injected)
		rule.flags |= WP_RULE_INJECTED;
	rule.result = WP_STEP_OK;
	if (kind_of(&rule, WP_CFI_RA_SLOT) == WP_CFI_UNDEFINED)
		rule.result = WP_STEP_ROOT;
	/* A frame that keeps its pc is its own caller. */
	if (kind_of(&rule, WP_CFI_RA_SLOT) == WP_CFI_SAME &&
	    (int)WP_CFI_RA_REG == (int)WP_REG_PC)
		rule.result = WP_STEP_BAD_INFO;
	/* A block is of words of 8 bytes. */
	if (!wp_elf_image_is_32bit(image))
		make_block(&rule);
	return rule;
}

static enum wp_step_result reg_sum(const struct wp_step *step, unsigned int reg,
				   int64_t off, uint64_t *ret)
{
	if (!wp_reg_known(step->regs, reg))
		return WP_STEP_UNKNOWN_REG;
	*ret = wp_step_narrow(step, step->regs->v[reg] + (uint64_t)off);
	return WP_STEP_OK;
}

static enum wp_step_result word_at_reg(const struct wp_step *step,
				       unsigned int reg, int64_t off,
				       uint64_t *ret)
{
	enum wp_step_result result = reg_sum(step, reg, off, ret);

	return result == WP_STEP_OK ? wp_step_word(step, *ret, ret) : result;
}

/* See is_plt() in cfi_expr.c. */
static enum wp_step_result plt_cfa(const struct wp_step *step, int32_t pushed,
				   uint64_t *ret)
{
	uint64_t pc_avma;
	enum wp_step_result result = reg_sum(step, WP_REG_PC, 0, &pc_avma);

	if (result != WP_STEP_OK)
		return result;
	return reg_sum(step, WP_REG_SP,
		       (int32_t)(pc_avma & 15) >= pushed ? 16 : 8, ret);
}

static enum wp_step_result cfa_of(const struct wp_rule *rule,
				  struct wp_step *step, uint64_t *ret)
{
	switch (rule->cfa_kind) {
	case WP_CFI_CFA_REG:
		return reg_sum(step, rule->cfa_reg, rule->cfa_off, ret);
	case WP_CFI_CFA_DEREF:
		return word_at_reg(step, rule->cfa_reg, rule->cfa_off, ret);
	case WP_CFI_CFA_PLT:
		return plt_cfa(step, rule->cfa_off, ret);
	case WP_CFI_CFA_EXPR:
		return wp_cfi_expr(wp_cfi_expr_at(step->module->image,
						  (uint32_t)rule->cfa_off),
				   step, NULL, ret);
	default:
		return WP_STEP_BAD_INFO;
	}
}

static enum wp_step_result eval_expr(const struct wp_step *step,
				     int64_t file_off, uint64_t cfa_avma,
				     uint64_t *ret)
{
	return wp_cfi_expr(
		wp_cfi_expr_at(step->module->image, (uint64_t)file_off), step,
		&cfa_avma, ret);
}

/* The caller's value of the register in SLOT. */
static enum wp_step_result value_of(const struct wp_rule *rule,
				    unsigned int slot,
				    const struct wp_step *step,
				    uint64_t cfa_avma, uint64_t *ret)
{
	struct wp_cfi_place place = wp_rule_place(rule, slot);
	enum wp_step_result result;

	switch (place.kind) {
	case WP_CFI_SAME:
		return reg_sum(step, wp_cfi_tracked[slot], 0, ret);
	case WP_CFI_UNDEFINED:
		return WP_STEP_UNKNOWN_REG;
	case WP_CFI_OFFSET:
		return wp_step_word(
			step,
			wp_step_narrow(step, cfa_avma + (uint64_t)place.val),
			ret);
	case WP_CFI_VAL_OFFSET:
		*ret = wp_step_narrow(step, cfa_avma + (uint64_t)place.val);
		return WP_STEP_OK;
	case WP_CFI_REGISTER:
		return reg_sum(step, (unsigned int)place.val, 0, ret);
	case WP_CFI_AT:
		/* Shift, not division: offsets are negative too. */
		return word_at_reg(step, (unsigned int)place.val % AT_REGS,
				   place.val >> 6, ret);
	case WP_CFI_VAL_EXPR:
		return eval_expr(step, place.val, cfa_avma, ret);
	case WP_CFI_EXPR:
		result = eval_expr(step, place.val, cfa_avma, ret);
		return result == WP_STEP_OK ? wp_step_word(step, *ret, ret) :
					      result;
	}
	return WP_STEP_BAD_INFO;
}

/* Finish STEP, whose registers are the caller's but for the pc. */
static enum wp_step_result finish_step(const struct wp_rule *rule,
				       struct wp_step *step, uint64_t cfa_avma)
{
	uint64_t pc_avma = step->regs->v[WP_CFI_RA_REG];

	if (rule->flags & WP_RULE_RA_SIGNED)
		pc_avma = wp_arch_code_avma(pc_avma);
	/* The return address has a column of its own on aarch64. */
	wp_reg_set(step->regs, WP_REG_PC, pc_avma);
	step->cfa_avma = cfa_avma;
	return WP_STEP_OK;
}

/* Execute RULE register by register. */
static enum wp_step_result execute_places(const struct wp_rule *rule,
					  struct wp_step *step)
{
	struct wp_regs caller = { 0 };
	enum wp_step_result result;
	uint64_t cfa_avma;

	if (rule->cfa_kind == WP_CFI_CFA_SWITCH)
		return wp_go_switch_step(step, (uint32_t)rule->cfa_off - WORD);
	result = cfa_of(rule, step, &cfa_avma);
	if (result != WP_STEP_OK)
		return result;
	for (unsigned int i = 0; i < WP_CFI_NTRACKED; i++) {
		uint64_t val;

		result = value_of(rule, i, step, cfa_avma, &val);
		if (result == WP_STEP_OK)
			wp_reg_set(&caller, wp_cfi_tracked[i], val);
		else if (i == WP_CFI_RA_SLOT || i == WP_CFI_SP_SLOT ||
			 result == WP_STEP_BAD_INFO)
			return result;
	}
	*step->regs = caller;
	return finish_step(rule, step, cfa_avma);
}

/* Registers without a rule, which a call may change, are not known. */
static inline void forget_untracked(struct wp_regs *regs)
{
#pragma GCC unroll 64
	for (unsigned int i = 0; i < WP_NREGS; i++)
		if (wp_cfi_slot(i) < 0)
			regs->v[i] = 0;
}

/* Execute RULE, which has a block, by one read and without a branch on the kinds
 * of its places: they differ from frame to frame and would be mispredicted. */
static enum wp_step_result execute_block(const struct wp_rule *rule,
					 struct wp_step *step)
{
	uint64_t src[WP_RULE_WORDS + WP_CFI_NTRACKED];
	struct wp_regs *regs = step->regs;
	enum wp_step_result result;
	uint64_t cfa_avma;

	if (!wp_reg_known(regs, rule->cfa_reg))
		return WP_STEP_UNKNOWN_REG;
	cfa_avma = regs->v[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_off;
	result = wp_step_read(step,
			      cfa_avma + (uint64_t)(int64_t)rule->u.block.lo,
			      src, rule->u.block.len * sizeof(src[0]));
	if (result != WP_STEP_OK)
		return result;
		/* Unrolled, each register's place is a constant. */
#pragma GCC unroll 16
	for (unsigned int i = 0; i < WP_CFI_NTRACKED; i++)
		src[WP_RULE_WORDS + i] = regs->v[wp_cfi_tracked[i]];
	src[WP_RULE_WORDS + WP_CFI_SP_SLOT] = cfa_avma;
#pragma GCC unroll 16
	for (unsigned int i = 0; i < WP_CFI_NTRACKED; i++)
		regs->v[wp_cfi_tracked[i]] = src[rule->u.block.from[i]];
	forget_untracked(regs);
	regs->known = (regs->known & rule->u.block.kept) | rule->u.block.set;
	return finish_step(rule, step, cfa_avma);
}

/* A frame that was found by a frame record has no sp so far.  Where its own code has
 * stored one too, the frame pointer leads to that, and the rule from there to sp. */
static void find_sp(const struct wp_rule *rule, struct wp_regs *regs)
{
	struct wp_cfi_place fp = wp_rule_place(rule, WP_CFI_FP_SLOT);
	struct wp_cfi_place ra = wp_rule_place(rule, WP_CFI_RA_SLOT);

	if (rule->cfa_kind == WP_CFI_CFA_REG && rule->cfa_reg == WP_REG_SP &&
	    fp.kind == WP_CFI_OFFSET && ra.kind == WP_CFI_OFFSET &&
	    ra.val == fp.val + WORD && wp_reg_known(regs, WP_REG_FP))
		wp_reg_set(regs, WP_REG_SP,
			   regs->v[WP_REG_FP] - (uint64_t)fp.val -
				   (uint64_t)(int64_t)rule->cfa_off);
}

enum wp_step_result wp_rule_execute(const struct wp_rule *rule,
				    struct wp_step *step)
{
	enum wp_step_result result;

	if (WP_ARCH_KEEPS_FRAME_POINTER && !wp_reg_known(step->regs, WP_REG_SP))
		find_sp(rule, step->regs);
	step->is_signal = rule->flags & WP_RULE_SIGNAL;
	step->is_injected = rule->flags & WP_RULE_INJECTED;
	step->is_switch = false;
	if (rule->flags & WP_RULE_BLOCK) {
		result = execute_block(rule, step);
		/* The word of the return address may be readable by itself. */
		if (!wp_step_is_unread(result))
			return result;
	}
	if (rule->result != WP_STEP_OK)
		return (enum wp_step_result)rule->result;
	return execute_places(rule, step);
}
