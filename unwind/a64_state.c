/* SPDX-License-Identifier: Apache-2.0 */
/* a64_state.c - see a64_state.h. */
#include "a64_state.h"

#include <stddef.h>

enum { FP = 29, LR = 30, SP = 31 };

static const struct wp_a64_val lost = { 0 };

/* NBITS of INSN from bit AT on, as a signed number. */
static int64_t field(uint32_t insn, int at, int nbits)
{
	return (int32_t)(insn << (32 - at - nbits)) >> (32 - nbits);
}

enum wp_a64_kind wp_a64_kind(uint32_t insn, uint64_t pc_avma,
			     uint64_t *ret_target_avma)
{
	/* ret; retaa and retab. */
	if (insn == 0xd65f03c0 || (insn & 0xfffffbff) == 0xd65f0bff)
		return WP_A64_RETURN;
	/* bl; blr, and its authenticated forms. */
	if ((insn & 0xfc000000) == 0x94000000 ||
	    (insn & 0xfefff000) == 0xd63f0000)
		return WP_A64_CALL;
	/* br, and its authenticated forms. */
	if ((insn & 0xfefff000) == 0xd61f0000)
		return WP_A64_JUMP_REG;
	/* brk; ret by another register; eret and drps; udf. */
	if ((insn & 0xffe00000) == 0xd4200000 ||
	    (insn & 0xfe000000) == 0xd6000000 || insn < 0x10000)
		return WP_A64_END;
	*ret_target_avma = pc_avma;
	if ((insn & 0xfc000000) == 0x14000000) {
		*ret_target_avma += (uint64_t)field(insn, 0, 26) * 4;
		return WP_A64_JUMP;
	}
	/* tbz and tbnz; b.cond; cbz and cbnz. */
	if ((insn & 0x7e000000) == 0x36000000)
		*ret_target_avma += (uint64_t)field(insn, 5, 14) * 4;
	else if ((insn & 0xff000000) == 0x54000000 ||
		 (insn & 0x7e000000) == 0x34000000)
		*ret_target_avma += (uint64_t)field(insn, 5, 19) * 4;
	else
		return WP_A64_PLAIN;
	return WP_A64_BRANCH;
}

bool wp_a64_is_by_fp(uint32_t insn)
{
	/* A literal's address has its distance there. */
	return (insn >> 25 & 5) == 4 && (insn >> 5 & 31) == FP &&
	       (insn & 0x3b000000) != 0x18000000;
}

/* Register N of STATE; NULL: none that is kept.  31 is sp or no register. */
static struct wp_a64_val *reg_of(struct wp_a64_state *state, unsigned int n,
				 bool has_sp)
{
	switch (n) {
	case FP:
		return &state->fp;
	case LR:
		return &state->lr;
	case SP:
		return has_sp ? &state->sp : NULL;
	default:
		return NULL;
	}
}

static struct wp_a64_val get(struct wp_a64_state *state, unsigned int n)
{
	struct wp_a64_val *reg = reg_of(state, n, true);

	return reg ? *reg : lost;
}

static void set(struct wp_a64_state *state, unsigned int n, bool has_sp,
		struct wp_a64_val val)
{
	struct wp_a64_val *reg = reg_of(state, n, has_sp);

	if (reg)
		*reg = val;
}

static struct wp_a64_val sum(struct wp_a64_val val, int64_t off)
{
	if (val.is_word || val.base == WP_A64_LOST || val.base == WP_A64_LR)
		return lost;
	val.off += off;
	return val;
}

static bool is_same(struct wp_a64_val a, struct wp_a64_val b)
{
	return a.base == b.base && a.off == b.off && a.is_word == b.is_word;
}

/* What is read at AT: nothing that lies below sp, where the flow begins, is left by
 * then. */
static struct wp_a64_val word_at(const struct wp_a64_state *state,
				 struct wp_a64_val at)
{
	for (int i = 0; i < 2; i++)
		if (at.base && is_same(state->stored_at[i], at))
			return state->stored[i];
	if (at.base != WP_A64_FP && (at.base != WP_A64_SP || at.off < 0))
		return lost;
	at.is_word = true;
	return at;
}

/* Register N is loaded from AT or stored there; IS_WHOLE: all of it. */
static void transfer(struct wp_a64_state *state, unsigned int n,
		     struct wp_a64_val at, bool is_load, bool is_whole)
{
	if (is_load) {
		set(state, n, false, is_whole ? word_at(state, at) : lost);
	} else if (is_whole && (n == FP || n == LR) && at.base) {
		state->stored_at[n - FP] = at;
		state->stored[n - FP] = get(state, n);
	}
}

/* ldp, stp and their like. */
static void execute_pair(struct wp_a64_state *state, uint32_t insn)
{
	const bool is_simd = insn >> 26 & 1, is_load = insn >> 22 & 1;
	const unsigned int size = insn >> 30, index = insn >> 23 & 3;
	const unsigned int base = insn >> 5 & 31;
	/* stgp, which has the opcode of ldpsw, whose words are of 4 bytes. */
	const bool is_tag = !is_simd && size == 1 && !is_load;
	const bool is_whole = !is_simd && (size == 2 || is_tag);
	const int shift = is_simd  ? 2 + (int)size :
			  is_tag   ? 4 :
			  is_whole ? 3 :
				     2;
	int64_t off = field(insn, 15, 7) * (1 << shift);
	struct wp_a64_val from = get(state, base);
	/* 1: the base is changed afterwards; 3: before. */
	struct wp_a64_val at = index == 1 ? from : sum(from, off);

	if (!is_simd) {
		transfer(state, insn & 31, at, is_load, is_whole);
		transfer(state, insn >> 10 & 31, sum(at, 8), is_load, is_whole);
	}
	if (index & 1)
		set(state, base, true, sum(from, off));
}

/* ldr, str and their like. */
static void execute_single(struct wp_a64_state *state, uint32_t insn)
{
	const bool is_simd = insn >> 26 & 1;
	const unsigned int size = insn >> 30, opc = insn >> 22 & 3;
	const unsigned int base = insn >> 5 & 31;
	struct wp_a64_val from = get(state, base), at;
	/* 1: the base is changed afterwards; 3: before. */
	unsigned int index = 0;
	int64_t off;

	if (insn >> 24 & 1) {
		off = (int64_t)(insn >> 10 & 0xfff) << size;
	} else if (insn >> 21 & 1) {
		/* At a sum of registers; atomic; ldraa. */
		from = lost;
		off = 0;
		index = insn >> 10 & 1 ? insn >> 11 & 1 : 0;
	} else {
		off = field(insn, 12, 9);
		index = insn >> 10 & 3;
	}
	at = index == 1 ? from : sum(from, off);
	if (!is_simd)
		transfer(state, insn & 31, at,
			 opc || (insn & 0x01200c00) == 0x00200000,
			 size == 3 && opc < 2);
	if (index & 1)
		set(state, base, true, sum(from, off));
}

static void execute_memory(struct wp_a64_state *state, uint32_t insn)
{
	if ((insn & 0x3a000000) == 0x28000000) {
		execute_pair(state, insn);
	} else if ((insn & 0x3a000000) == 0x38000000) {
		execute_single(state, insn);
	} else if ((insn & 0xbe800000) == 0x0c800000 ||
		   ((insn & 0xff200000) == 0xd9200000 &&
		    (insn & 0xc00) != 0x800)) {
		/* Of vectors and of tags, which change the base. */
		set(state, insn >> 5 & 31, true, lost);
	} else if (!(insn >> 26 & 1)) {
		/* Literals; exclusive, of which a store writes what came of it. */
		set(state, insn & 31, false, lost);
		if ((insn & 0x3f000000) == 0x08000000)
			set(state, insn >> 16 & 31, false, lost);
	}
}

static void execute_immediate(struct wp_a64_state *state, uint32_t insn)
{
	const unsigned int to = insn & 31;
	/* Add and subtract without flags; logical without flags. */
	const bool may_be_sp = (insn & 0x3f000000) == 0x11000000 ||
			       ((insn & 0x1f800000) == 0x12000000 &&
				(insn >> 29 & 3) != 3);
	struct wp_a64_val val = lost;

	if ((insn & 0xbf800000) == 0x91000000) {
		int64_t off = (int64_t)(insn >> 10 & 0xfff)
			      << (insn >> 22 & 1 ? 12 : 0);

		val = sum(get(state, insn >> 5 & 31),
			  insn >> 30 & 1 ? -off : off);
	}
	set(state, to, may_be_sp, val);
}

/* mov and movk keep a constant, whatever else may write its register loses it. */
static void follow_constant(struct wp_a64_state *state, uint32_t insn)
{
	const unsigned int to = insn & 31, shift = (insn >> 21 & 3) * 16;
	const uint64_t val = (uint64_t)(insn >> 5 & 0xffff) << shift;

	if ((insn & 0x7f800000) == 0x52800000) {
		state->const_reg = (uint8_t)to;
		state->constant = val;
	} else if (to == state->const_reg &&
		   (insn & 0xff800000) == 0xf2800000) {
		state->constant &= ~(UINT64_C(0xffff) << shift);
		state->constant |= val;
	} else if (to == state->const_reg ||
		   (insn >> 10 & 31) == state->const_reg) {
		state->const_reg = 0;
	}
}

static void execute_registers(struct wp_a64_state *state, uint32_t insn)
{
	/* Add and subtract an extended register may be sp. */
	const bool may_be_sp = (insn & 0x3fe00000) == 0x0b200000;
	struct wp_a64_val val = lost;

	/* Of these, with all of the register as it is. */
	if ((insn & 0xbfe0fc00) == 0x8b206000 && state->const_reg &&
	    (insn >> 16 & 31) == state->const_reg)
		val = sum(get(state, insn >> 5 & 31),
			  insn >> 30 & 1 ? -(int64_t)state->constant :
					   (int64_t)state->constant);
	set(state, insn & 31, may_be_sp, val);
}

void wp_a64_execute(struct wp_a64_state *state, uint32_t insn)
{
	const unsigned int group = insn >> 25 & 0xf;

	if ((group & 5) == 4)
		execute_memory(state, insn);
	else if ((group & 0xe) == 8)
		execute_immediate(state, insn);
	/* Of registers; those that sign and check a pointer leave it what it is. */
	else if ((group & 7) == 5 && (insn & 0xffff0000) != 0xdac10000)
		execute_registers(state, insn);
	/* addvl, addpl; mrs. */
	else if ((insn & 0xffa0f800) == 0x04205000)
		set(state, insn & 31, true, lost);
	else if ((insn & 0xfff00000) == 0xd5300000)
		set(state, insn & 31, false, lost);
	follow_constant(state, insn);
}
