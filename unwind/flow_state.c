/* SPDX-License-Identifier: Apache-2.0 */
/* flow_state.c - see flow_state.h. */
#include "flow_state.h"

#if defined(__x86_64__)

#include <string.h>

const uint8_t wp_kept_regs[WP_NKEPT] = { WP_RBX, WP_RBP, 12, 13, 14, 15 };

void wp_flow_state_start(struct wp_flow_state *s, uint64_t pc_avma)
{
	memset(s, 0, sizeof(*s));
	s->pc_avma = pc_avma;
	for (unsigned int r = 0; r < WP_NGPRS; r++)
		s->base[r] = (uint8_t)(WP_BASE_REG + r);
}

void wp_flow_state_forget(struct wp_flow_state *s, uint32_t regs)
{
	for (; regs; regs &= regs - 1)
		s->base[__builtin_ctz(regs)] = WP_BASE_NONE;
}

/* Does REG hold what it held at the start? */
static bool is_own(const struct wp_flow_state *s, unsigned int reg)
{
	return s->base[reg] == WP_BASE_REG + reg && !s->off[reg];
}

/* Register REG, or with WP_NGPRS something else, is put into memory. */
static void note_store(struct wp_flow_state *s, unsigned int reg)
{
	for (unsigned int i = 0; i < WP_NKEPT; i++)
		if (reg == wp_kept_regs[i] && is_own(s, wp_kept_regs[i]))
			s->stored |= (uint8_t)(1u << i);
}

static struct wp_flow_range *range_of(struct wp_flow_state *s, uint8_t base)
{
	return base == WP_BASE_SP   ? &s->over_sp :
	       base == WP_BASE_FP   ? &s->over_fp :
	       base == WP_BASE_WORD ? &s->over_word :
				      NULL;
}

/* The word at BASE + OFF is written.  A function that another one ends with a jump
 * to writes where that one had its own. */
static void note_written(struct wp_flow_state *s, uint8_t base, int64_t off)
{
	struct wp_flow_range *r = range_of(s, base);

	if (!r)
		return;
	if (r->lo == r->hi)
		*r = (struct wp_flow_range){ off, off };
	if (off < r->lo)
		r->lo = off;
	if (off + 8 > r->hi)
		r->hi = off + 8;
}

static bool is_written(struct wp_flow_state *s, uint8_t base, int64_t off)
{
	const struct wp_flow_range *r = range_of(s, base);

	return r && off < r->hi && off + 8 > r->lo;
}

/* Register REG, or with WP_NGPRS something else, is put into the word at BASE +
 * OFF. */
static void store(struct wp_flow_state *s, uint8_t base, int64_t off,
		  unsigned int reg)
{
	note_written(s, base, off);
	if (base != WP_BASE_SP)
		return;
	for (unsigned int i = 0; i < WP_NKEPT; i++) {
		if ((s->saved >> i & 1) && s->saved_off[i] < off + 8 &&
		    off < s->saved_off[i] + 8)
			s->saved &= (uint8_t) ~(1u << i);
		if (reg == wp_kept_regs[i] && is_own(s, reg) &&
		    !(s->saved >> i & 1)) {
			s->saved |= (uint8_t)(1u << i);
			s->saved_off[i] = off;
		}
	}
}

/* Register REG is set to the word at BASE + OFF. */
static void load(struct wp_flow_state *s, uint8_t base, int64_t off,
		 unsigned int reg)
{
	s->off[reg] = off;
	s->base[reg] = WP_BASE_NONE;
	if (!is_written(s, base, off))
		s->base[reg] = base == WP_BASE_FP   ? WP_BASE_AT_FP :
			       base == WP_BASE_SP   ? WP_BASE_AT_SP :
			       base == WP_BASE_WORD ? WP_BASE_AT_WORD :
						      WP_BASE_NONE;
	if (base != WP_BASE_SP)
		return;
	for (unsigned int i = 0; i < WP_NKEPT; i++) {
		if ((s->saved >> i & 1) && s->saved_off[i] == off) {
			s->base[reg] = (uint8_t)(WP_BASE_REG + wp_kept_regs[i]);
			s->off[reg] = 0;
		}
	}
}

/* Register REG, which is not rsp, is set to BASE + OFF. */
static void set(struct wp_flow_state *s, unsigned int reg, uint8_t base,
		int64_t off)
{
	s->base[reg] = base;
	s->off[reg] = off;
}

static bool is_sum(uint8_t base)
{
	return base == WP_BASE_ZERO || base >= WP_BASE_REG;
}

/* rsp is set to BASE + OFF.  Words below it hold nothing any more. */
static void set_sp(struct wp_flow_state *s, uint8_t base, int64_t off)
{
	if (base == WP_BASE_SP)
		for (unsigned int i = 0; i < WP_NKEPT; i++)
			if ((s->saved >> i & 1) && off > s->off[WP_RSP] &&
			    s->saved_off[i] < off)
				s->saved &= (uint8_t) ~(1u << i);
	/* Other offsets are not a stack's. */
	if (base < WP_BASE_REG || off > INT32_MAX || off < INT32_MIN)
		base = WP_BASE_NONE;
	set(s, WP_RSP, base, off);
}

static void move_sp(struct wp_flow_state *s, int64_t by)
{
	if (s->base[WP_RSP] != WP_BASE_NONE)
		set_sp(s, s->base[WP_RSP], s->off[WP_RSP] + by);
}

/* rsp is set to the word at BASE + OFF. */
static void load_sp(struct wp_flow_state *s, uint8_t base, int64_t off)
{
	bool is_of_start = base == WP_BASE_SP || base == WP_BASE_FP;

	s->base[WP_RSP] = WP_BASE_NONE;
	if (!is_of_start || s->word_base || is_written(s, base, off))
		return;
	s->word_base = base;
	s->word_off = off;
	set_sp(s, WP_BASE_WORD, 0);
}

/* REG: WP_NGPRS for anything but a register. */
static void push(struct wp_flow_state *s, unsigned int reg)
{
	move_sp(s, -8);
	note_store(s, reg);
	store(s, s->base[WP_RSP], s->off[WP_RSP], reg);
}

static void pop(struct wp_flow_state *s, unsigned int reg)
{
	uint8_t base = s->base[WP_RSP];
	int64_t off = s->off[WP_RSP];

	if (reg == WP_RSP) {
		load_sp(s, base, off);
		return;
	}
	if (reg < WP_NGPRS)
		load(s, base, off, reg);
	move_sp(s, 8);
}

/* Register REG, which may be rsp, is set to BASE + OFF; BASE may be
 * WP_BASE_NONE. */
static void assign(struct wp_flow_state *s, unsigned int reg, uint8_t base,
		   int64_t off)
{
	if (reg == WP_RSP)
		set_sp(s, base, off);
	else
		set(s, reg, base, off);
}

/* I adds BY to register rm: a sum stays one. */
static void add(struct wp_flow_state *s, const struct wp_insn *i, int64_t by)
{
	if (i->wide && is_sum(s->base[i->rm]))
		assign(s, i->rm, s->base[i->rm],
		       (int64_t)((uint64_t)s->off[i->rm] + (uint64_t)by));
	else
		wp_flow_state_forget(s, 1u << i->rm);
}

bool wp_flow_state_operand(const struct wp_flow_state *s,
			   const struct wp_insn *i, uint8_t *ret_base,
			   int64_t *ret_off)
{
	if (i->has_index || i->segment || i->mod == 3)
		return false;
	if (i->base >= WP_NO_BASE) {
		*ret_base = WP_BASE_ZERO;
		*ret_off = i->disp +
			   (i->base == WP_RIP_BASE ? (int64_t)s->pc_avma : 0);
		return true;
	}
	if (!is_sum(s->base[i->base]))
		return false;
	*ret_base = s->base[i->base];
	*ret_off = (int64_t)((uint64_t)s->off[i->base] + (uint64_t)i->disp);
	return true;
}

static void move_to_rm(struct wp_flow_state *s, const struct wp_insn *i)
{
	uint8_t base;
	int64_t off;

	if (i->mod == 3) {
		if (i->wide)
			assign(s, i->rm, s->base[i->reg], s->off[i->reg]);
		else
			wp_flow_state_forget(s, 1u << i->rm);
		return;
	}
	note_store(s, i->wide ? i->reg : WP_NGPRS);
	if (wp_flow_state_operand(s, i, &base, &off))
		store(s, base, off, i->wide ? i->reg : WP_NGPRS);
}

static void move_to_reg(struct wp_flow_state *s, const struct wp_insn *i)
{
	uint8_t base;
	int64_t off;

	if (i->mod == 3 && i->wide)
		assign(s, i->reg, s->base[i->rm], s->off[i->rm]);
	else if (i->mod == 3 || !i->wide ||
		 !wp_flow_state_operand(s, i, &base, &off))
		wp_flow_state_forget(s, 1u << i->reg);
	else if (i->reg == WP_RSP)
		load_sp(s, base, off);
	else
		load(s, base, off, i->reg);
}

static void load_address(struct wp_flow_state *s, const struct wp_insn *i)
{
	uint8_t base;
	int64_t off;

	if (i->wide && wp_flow_state_operand(s, i, &base, &off))
		assign(s, i->reg, base, off);
	else
		wp_flow_state_forget(s, 1u << i->reg);
}

void wp_flow_state_execute(struct wp_flow_state *s, const struct wp_insn *i)
{
	if (i->map != WP_MAP_ONE_BYTE || i->vector) {
		wp_flow_state_forget(s, wp_insn_writes(i));
	} else if (i->op >= 0x50 && i->op < 0x58) {
		push(s, i->rm);
	} else if (i->op >= 0x58 && i->op < 0x60) {
		pop(s, i->rm);
	} else if (i->op == 0x68 || i->op == 0x6a || i->op == 0x9c ||
		   (i->op == 0xff && (i->reg & 7) == 6)) {
		push(s, WP_NGPRS);
	} else if (i->op == 0x9d || i->op == 0x8f) {
		pop(s, i->op == 0x8f && i->mod == 3 ? i->rm : WP_NGPRS);
	} else if (i->op == 0x89) {
		move_to_rm(s, i);
	} else if (i->op == 0x8b) {
		move_to_reg(s, i);
	} else if (i->op == 0x8d) {
		load_address(s, i);
	} else if ((i->op == 0x81 || i->op == 0x83) && i->mod == 3 &&
		   ((i->reg & 7) == 0 || (i->reg & 7) == 5)) {
		/* No overflow: imm has 32 bits. */
		add(s, i, (i->reg & 7) ? -i->imm : i->imm);
	} else if (i->op >= 0xb8 && i->op < 0xc0 && !i->narrow) {
		set(s, i->rm, WP_BASE_ZERO,
		    i->wide ? i->imm : (int64_t)(uint32_t)i->imm);
	} else if (i->op == 0xc7 && i->mod == 3 && i->wide) {
		assign(s, i->rm, WP_BASE_ZERO, i->imm);
	} else if (i->op == 0xc9) {
		set_sp(s, s->base[WP_RBP], s->off[WP_RBP]);
		pop(s, WP_RBP);
	} else {
		wp_flow_state_forget(s, wp_insn_writes(i));
	}
}

#endif
