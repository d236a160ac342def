/* SPDX-License-Identifier: Apache-2.0 */
/* guess_flow.c - see guess_flow.h. */
#include "arch.h"

#if defined(__x86_64__)

#include <string.h>

#include "guess_flow.h"
#include "wallprof/hash.h"

enum {
	CODE_WINDOW = 4096,
	/* rax, rcx, rdx, rsi, rdi, r8 to r11 (psABI 3.2.1). */
	CALLER_SAVED = 0xfc7,
};

const uint8_t wp_kept_regs[WP_NKEPT] = { WP_RBX, WP_RBP, 12, 13, 14, 15 };

/* What an instruction leads to. */
enum step {
	STEP_NEXT,
	STEP_END,
	STEP_RETURN,
	STEP_JUMP,
	STEP_BRANCH,
	STEP_LOST,
	STEP_CALL,
};

void wp_flow_open(struct wp_flow *flow, const struct wp_unwind_modules *modules,
		  const struct wp_mem *mem, unsigned int reads)
{
	flow->modules = modules;
	flow->mem = mem;
	flow->reads = reads;
	flow->code_avma = flow->code_end_avma = 0;
}

bool wp_flow_slot(struct wp_flow *flow, uint64_t avma, uint64_t *ret)
{
	if (!flow->reads)
		return false;
	flow->reads--;
	return wp_mem_u64(flow->mem, avma, ret);
}

/* Make the window hold AVMA. */
static bool move_window(struct wp_flow *f, uint64_t avma)
{
	const struct wp_unwind_module *m = wp_unwind_find_module(f->modules,
								 avma);
	uint64_t start, end, off;

	if (!m || !m->image)
		return false;
	start = avma & ~(uint64_t)(CODE_WINDOW - 1);
	end = start + CODE_WINDOW;
	if (start < m->start_avma)
		start = m->start_avma;
	if (end > m->end_avma)
		end = m->end_avma;
	/* lld begins a segment within a page: what is before is not its. */
	if (!wp_elf_image_offset(m->image, start - m->bias, &off)) {
		start = avma;
		if (!wp_elf_image_offset(m->image, start - m->bias, &off))
			return false;
	}
	if (wp_elf_image_left(m->image, off) < end - start)
		end = start + wp_elf_image_left(m->image, off);
	f->code = wp_elf_image_at(m->image, off, end - start);
	if (!f->code || avma >= end)
		return false;
	f->code_avma = start;
	f->code_end_avma = end;
	return true;
}

size_t wp_flow_code(struct wp_flow *f, uint64_t avma, uint8_t *buf, size_t len)
{
	size_t got = 0;

	while (got < len) {
		uint64_t at = avma + got, left;

		if ((at < f->code_avma || at >= f->code_end_avma) &&
		    !move_window(f, at)) {
			f->code_avma = f->code_end_avma = 0;
			break;
		}
		left = f->code_end_avma - at;
		if (left > len - got)
			left = len - got;
		memcpy(buf + got, f->code + (at - f->code_avma), left);
		got += left;
	}
	return got;
}

void wp_flow_start(struct wp_flow *flow, uint64_t start_avma,
		   uint64_t goal_avma, unsigned int budget)
{
	struct wp_flow_state *s = &flow->now;

	memset(s, 0, sizeof(*s));
	s->pc_avma = start_avma;
	for (unsigned int r = 0; r < WP_NGPRS; r++)
		s->base[r] = (uint8_t)(WP_BASE_REG + r);
	flow->goal_avma = goal_avma;
	flow->budget = budget;
	flow->has_now = true;
	flow->npending = 0;
	if (!++flow->stamp) {
		memset(flow->visited, 0, sizeof(flow->visited));
		flow->stamp = 1;
	}
}

/* S has not been here with this stack before.  Two that share a hash cost a
 * way, no more. */
static bool visit(struct wp_flow *f, const struct wp_flow_state *s)
{
	uint64_t hash = wp_hash_u64(s->pc_avma ^
				    (uint64_t)s->off[WP_RSP] << 40 ^
				    (uint64_t)s->base[WP_RSP] << 58);
	uint32_t key = (uint32_t)(hash >> 32);
	unsigned int mask = (1u << WP_FLOW_VISITED_BITS) - 1;

	for (unsigned int n = 0; n < 8; n++) {
		unsigned int i = ((unsigned int)hash + n) & mask;

		if (f->visited[i].stamp != f->stamp) {
			f->visited[i].stamp = f->stamp;
			f->visited[i].key = key;
			return true;
		}
		if (f->visited[i].key == key)
			return false;
	}
	return false;
}

static void forget(struct wp_flow_state *s, uint32_t regs)
{
	for (; regs; regs &= regs - 1)
		s->base[__builtin_ctz(regs)] = WP_BASE_NONE;
}

static bool is_own(const struct wp_flow_state *s, unsigned int reg)
{
	return s->base[reg] == WP_BASE_REG + reg && !s->off[reg];
}

/* Register REG, WP_NGPRS for something else, goes to memory. */
static void note_store(struct wp_flow_state *s, unsigned int reg)
{
	for (unsigned int i = 0; i < WP_NKEPT; i++)
		if (reg == wp_kept_regs[i] && is_own(s, wp_kept_regs[i]))
			s->stored |= (uint8_t)(1u << i);
}

static struct wp_flow_range *range_of(struct wp_flow_state *s, uint8_t base)
{
	return base == WP_BASE_SP ? &s->over_sp :
	       base == WP_BASE_FP ? &s->over_fp :
				    NULL;
}

/* What is jumped to at the end of a function writes where that had its own. */
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

/* The same, to the word at BASE + OFF. */
static void store(struct wp_flow_state *s, uint8_t base, int64_t off,
		  unsigned int reg)
{
	note_written(s, base, off);
	if (base != WP_BASE_SP)
		return;
	for (unsigned int i = 0; i < WP_NKEPT; i++) {
		if ((s->saved >> i & 1) && s->saved_off[i] < off + 8 &&
		    off < s->saved_off[i] + 8 &&
		    !(reg == wp_kept_regs[i] && is_own(s, reg)))
			s->saved &= (uint8_t) ~(1u << i);
		if (reg == wp_kept_regs[i] && is_own(s, reg) &&
		    !(s->saved >> i & 1)) {
			s->saved |= (uint8_t)(1u << i);
			s->saved_off[i] = off;
		}
	}
}

static void load(struct wp_flow_state *s, uint8_t base, int64_t off,
		 unsigned int reg)
{
	s->off[reg] = off;
	s->base[reg] = WP_BASE_NONE;
	if (!is_written(s, base, off))
		s->base[reg] = base == WP_BASE_FP ? WP_BASE_AT_FP :
			       base == WP_BASE_SP ? WP_BASE_AT_SP :
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

/* rsp is now BASE + OFF: what lies below is free for anybody. */
static void set_sp(struct wp_flow_state *s, uint8_t base, int64_t off)
{
	if (base == WP_BASE_SP)
		for (unsigned int i = 0; i < WP_NKEPT; i++)
			if ((s->saved >> i & 1) && off > s->off[WP_RSP] &&
			    s->saved_off[i] < off)
				s->saved &= (uint8_t) ~(1u << i);
	/* Only offsets of a stack make sense. */
	if (base < WP_BASE_REG || off > INT32_MAX || off < INT32_MIN)
		base = WP_BASE_NONE;
	set(s, WP_RSP, base, off);
}

static void move_sp(struct wp_flow_state *s, int64_t by)
{
	if (s->base[WP_RSP] != WP_BASE_NONE)
		set_sp(s, s->base[WP_RSP], s->off[WP_RSP] + by);
}

/* REG is WP_NGPRS for anything but a register. */
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
		s->base[WP_RSP] = WP_BASE_NONE;
		return;
	}
	if (reg < WP_NGPRS)
		load(s, base, off, reg);
	move_sp(s, 8);
}

/* Register REG gets BASE + OFF, of which nothing may be known. */
static void assign(struct wp_flow_state *s, unsigned int reg, uint8_t base,
		   int64_t off)
{
	if (reg == WP_RSP)
		set_sp(s, base, off);
	else
		set(s, reg, base, off);
}

/* add and sub of a constant: a sum stays one. */
static void add(struct wp_flow_state *s, const struct wp_insn *i, int64_t by)
{
	if (i->wide && is_sum(s->base[i->rm]))
		assign(s, i->rm, s->base[i->rm],
		       (int64_t)((uint64_t)s->off[i->rm] + (uint64_t)by));
	else
		forget(s, 1u << i->rm);
}

/* Where the operand in memory of I is, as a sum: false if that is not known.
 * S->pc_avma is that of the next instruction. */
static bool operand_place(const struct wp_flow_state *s,
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
			forget(s, 1u << i->rm);
		return;
	}
	note_store(s, i->wide ? i->reg : WP_NGPRS);
	if (operand_place(s, i, &base, &off))
		store(s, base, off, i->wide ? i->reg : WP_NGPRS);
}

static void move_to_reg(struct wp_flow_state *s, const struct wp_insn *i)
{
	uint8_t base;
	int64_t off;

	if (i->mod == 3 && i->wide)
		assign(s, i->reg, s->base[i->rm], s->off[i->rm]);
	else if (i->mod != 3 && i->wide && i->reg != WP_RSP &&
		 operand_place(s, i, &base, &off))
		load(s, base, off, i->reg);
	else
		forget(s, 1u << i->reg);
}

static void load_address(struct wp_flow_state *s, const struct wp_insn *i)
{
	uint8_t base;
	int64_t off;

	if (i->wide && operand_place(s, i, &base, &off))
		assign(s, i->reg, base, off);
	else
		forget(s, 1u << i->reg);
}

/* Everything but control flow. */
static void execute(struct wp_flow_state *s, const struct wp_insn *i)
{
	if (i->map != WP_MAP_ONE_BYTE || i->vector) {
		forget(s, wp_insn_writes(i));
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
		forget(s, wp_insn_writes(i));
	}
}

/* `jmp` and `call` through memory or a register: where to. */
static bool indirect_target(struct wp_flow *f, const struct wp_flow_state *s,
			    const struct wp_insn *i, uint64_t *ret)
{
	uint8_t base;
	int64_t off;

	if (i->mod == 3) {
		*ret = (uint64_t)s->off[i->rm];
		return s->base[i->rm] == WP_BASE_ZERO;
	}
	/* A slot of the GOT. */
	return operand_place(s, i, &base, &off) && base == WP_BASE_ZERO &&
	       wp_flow_slot(f, (uint64_t)off, ret);
}

static enum step classify_ff(struct wp_flow *f, const struct wp_flow_state *s,
			     const struct wp_insn *i, uint64_t *ret_target)
{
	switch (i->reg & 7) {
	case 2:
		return STEP_CALL;
	case 4:
		return indirect_target(f, s, i, ret_target) ? STEP_JUMP :
							      STEP_LOST;
	case 3:
	case 5:
		return STEP_END;
	default:
		return STEP_NEXT;
	}
}

/* Where I, behind which S->pc_avma is, leads to. */
static enum step classify(struct wp_flow *f, const struct wp_flow_state *s,
			  const struct wp_insn *i, uint64_t *ret_target)
{
	*ret_target = s->pc_avma + (uint64_t)i->imm;
	if (i->vector)
		return STEP_NEXT;
	if (i->map == WP_MAP_0F)
		return i->op >> 4 == 8 ? STEP_BRANCH :
		       i->op == 0x0b || i->op == 0xb9 || i->op == 0xff ?
					 STEP_END :
					 STEP_NEXT;
	if (i->map != WP_MAP_ONE_BYTE)
		return STEP_NEXT;
	if (i->op >> 4 == 7 || (i->op >= 0xe0 && i->op < 0xe4))
		return STEP_BRANCH;
	switch (i->op) {
	case 0xc3:
		return STEP_RETURN;
	case 0xe8:
		return STEP_CALL;
	case 0xe9:
	case 0xeb:
		return STEP_JUMP;
	case 0xff:
		return classify_ff(f, s, i, ret_target);
	case 0xc2:
	case 0xc8:
	case 0xcc:
	case 0xcd:
	case 0xf4:
		/* No compiler makes enter, nor pops arguments at a return;
		 * int3, int, hlt. */
		return STEP_END;
	default:
		return STEP_NEXT;
	}
}

static void add_pending(struct wp_flow *f, uint64_t target_avma)
{
	if (f->npending == WP_FLOW_PENDING)
		return;
	f->pending[f->npending] = f->now;
	f->pending[f->npending++].pc_avma = target_avma;
}

/* The frame that rbp pointed to at the start has just been left. */
static bool has_left_frame(const struct wp_flow_state *s,
			   const struct wp_insn *i)
{
	return (i->op == 0xc9 || (i->op == 0x5d && i->rm == WP_RBP)) &&
	       i->map == WP_MAP_ONE_BYTE && s->base[WP_RSP] == WP_BASE_FP &&
	       s->off[WP_RSP] == 8 && s->base[WP_RBP] == WP_BASE_AT_FP &&
	       !s->off[WP_RBP];
}

/* Go over one instruction.  WP_FLOW_OVER: nothing to report. */
static enum wp_flow_stop step(struct wp_flow *f)
{
	struct wp_flow_state *s = &f->now;
	uint8_t code[WP_INSN_MAX + 1];
	struct wp_insn insn;
	uint64_t target_avma;

	if (!f->budget || !visit(f, s))
		goto end;
	f->budget--;
	if (!wp_insn_decode(&insn, code,
			    wp_flow_code(f, s->pc_avma, code, WP_INSN_MAX)))
		goto end;
	s->pc_avma += insn.len;
	switch (classify(f, s, &insn, &target_avma)) {
	case STEP_NEXT:
		execute(s, &insn);
		if (!f->goal_avma && has_left_frame(s, &insn)) {
			f->has_now = false;
			return WP_FLOW_RETURNS;
		}
		return WP_FLOW_OVER;
	case STEP_CALL:
		forget(s, CALLER_SAVED);
		s->past_call = true;
		return WP_FLOW_OVER;
	case STEP_BRANCH:
		forget(s, insn.op >= 0xe0 && insn.op < 0xe3 ? 1u << WP_RCX : 0);
		add_pending(f, target_avma);
		return WP_FLOW_OVER;
	case STEP_JUMP:
		s->pc_avma = target_avma;
		return WP_FLOW_OVER;
	case STEP_RETURN:
		f->has_now = false;
		return f->goal_avma ? WP_FLOW_OVER : WP_FLOW_RETURNS;
	case STEP_LOST:
		f->has_now = false;
		return WP_FLOW_LOST;
	case STEP_END:
		break;
	}
end:
	f->has_now = false;
	return WP_FLOW_OVER;
}

enum wp_flow_stop wp_flow_next(struct wp_flow *flow,
			       const struct wp_flow_state **ret)
{
	enum wp_flow_stop stop;

	for (;;) {
		if (!flow->has_now) {
			if (!flow->npending)
				return WP_FLOW_OVER;
			flow->now = flow->pending[--flow->npending];
			flow->has_now = true;
		}
		if (flow->goal_avma && flow->now.pc_avma == flow->goal_avma) {
			flow->has_now = false;
			stop = WP_FLOW_AT_GOAL;
		} else {
			stop = step(flow);
		}
		if (stop != WP_FLOW_OVER) {
			*ret = &flow->now;
			return stop;
		}
	}
}

#endif
