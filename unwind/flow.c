/* SPDX-License-Identifier: Apache-2.0 */
/* flow.c - see flow.h. */
#include "arch.h"

#if defined(__x86_64__)

#include <string.h>

#include "flow.h"
#include "wallprof/hash.h"

enum {
	/* Registers that a call may change, a bit each: rax, rcx, rdx, rsi, rdi,
	 * r8 to r11 (psABI 3.2.1). */
	CALLER_SAVED = 0xfc7,
	/* Windows that are read, each by a system call: code that leaps from one to
	 * another at each instruction costs no more than other code. */
	WINDOWS_MAX = 1024,
};

/* Where an instruction leads to: _NEXT to the next one alone, _END nowhere that
 * a function goes on, _UNKNOWN to an address that is not known. */
enum leads_to {
	LEADS_TO_NEXT,
	LEADS_TO_END,
	LEADS_TO_RETURN,
	LEADS_TO_JUMP,
	LEADS_TO_BRANCH,
	LEADS_TO_UNKNOWN,
	LEADS_TO_CALL,
};

void wp_flow_open(struct wp_flow *flow, const struct wp_unwind_modules *modules,
		  const struct wp_mem *mem, unsigned int reads)
{
	flow->modules = modules;
	flow->mem = mem;
	flow->reads = reads;
	flow->windows = WINDOWS_MAX;
	flow->code_avma = flow->code_end_avma = 0;
}

bool wp_flow_slot(struct wp_flow *flow, uint64_t avma, uint64_t *ret)
{
	if (!flow->reads)
		return false;
	flow->reads--;
	return wp_mem_u64(flow->mem, avma, ret);
}

/* Let [START, END) of module M, which has no file, be the window. */
static bool read_window(struct wp_flow *f, uint64_t start, uint64_t end)
{
	if (!f->windows ||
	    f->mem->read(f->mem->ctx, start, f->room, (size_t)(end - start)))
		return false;
	f->windows--;
	f->code = f->room;
	f->code_avma = start;
	f->code_end_avma = end;
	return true;
}

/* Let the window on the code hold AVMA. */
static bool move_window(struct wp_flow *f, uint64_t avma)
{
	const struct wp_unwind_module *m = wp_unwind_find_module(f->modules,
								 avma);
	uint64_t start, end, off;

	if (!m)
		return false;
	start = avma & ~(uint64_t)(WP_FLOW_WINDOW - 1);
	end = start + WP_FLOW_WINDOW;
	if (start < m->start_avma)
		start = m->start_avma;
	if (end > m->end_avma)
		end = m->end_avma;
	if (!m->image)
		return read_window(f, start, end);
	/* lld begins a segment within a page: the page's first part belongs to
	 * another one. */
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
	wp_flow_state_start(&flow->now, start_avma);
	flow->start_avma = start_avma;
	flow->goal_avma = goal_avma;
	flow->budget = budget;
	flow->fp_use = 0;
	flow->home_reg = 0;
	flow->has_prologue = false;
	flow->has_now = true;
	flow->npending = 0;
	if (!++flow->stamp) {
		memset(flow->visited, 0, sizeof(flow->visited));
		flow->stamp = 1;
	}
}

/* Has the flow not met S's pc with S's rsp before?  Two that share a hash cost a
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

/* True, and *RET, if the address that I, a jump through memory or a register,
 * jumps to is known. */
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
	return wp_flow_state_operand(s, i, &base, &off) &&
	       base == WP_BASE_ZERO && wp_flow_slot(f, (uint64_t)off, ret);
}

static enum leads_to classify_ff(struct wp_flow *f,
				 const struct wp_flow_state *s,
				 const struct wp_insn *i, uint64_t *ret_target)
{
	switch (i->reg & 7) {
	case 2:
		return LEADS_TO_CALL;
	case 4:
		return indirect_target(f, s, i, ret_target) ? LEADS_TO_JUMP :
							      LEADS_TO_UNKNOWN;
	case 3:
	case 5:
		return LEADS_TO_END;
	default:
		return LEADS_TO_NEXT;
	}
}

/* Where I leads to, with *RET_TARGET if to a jump or a branch.  S->pc_avma is
 * already the next instruction's. */
static enum leads_to classify(struct wp_flow *f, const struct wp_flow_state *s,
			      const struct wp_insn *i, uint64_t *ret_target)
{
	*ret_target = s->pc_avma + (uint64_t)i->imm;
	if (i->vector)
		return LEADS_TO_NEXT;
	if (i->map == WP_MAP_0F)
		return i->op >> 4 == 8 ? LEADS_TO_BRANCH :
		       i->op == 0x0b || i->op == 0xb9 || i->op == 0xff ?
					 LEADS_TO_END :
					 LEADS_TO_NEXT;
	if (i->map != WP_MAP_ONE_BYTE)
		return LEADS_TO_NEXT;
	if (i->op >> 4 == 7 || (i->op >= 0xe0 && i->op < 0xe4))
		return LEADS_TO_BRANCH;
	switch (i->op) {
	case 0xc2:
	case 0xc3:
		return LEADS_TO_RETURN;
	case 0xe8:
		return LEADS_TO_CALL;
	case 0xe9:
	case 0xeb:
		return LEADS_TO_JUMP;
	case 0xff:
		return classify_ff(f, s, i, ret_target);
	case 0xc8:
	case 0xcc:
	case 0xcd:
	case 0xf4:
		/* No compiler makes enter; int3, int, hlt. */
		return LEADS_TO_END;
	default:
		return LEADS_TO_NEXT;
	}
}

static void add_pending(struct wp_flow *f, uint64_t target_avma)
{
	if (f->npending == WP_FLOW_PENDING)
		return;
	f->pending[f->npending] = f->now;
	f->pending[f->npending++].pc_avma = target_avma;
}

/* Has I just torn down the frame that rbp pointed to at the start? */
static bool has_left_frame(const struct wp_flow_state *s,
			   const struct wp_insn *i)
{
	return (i->op == 0xc9 || (i->op == 0x5d && i->rm == WP_RBP)) &&
	       i->map == WP_MAP_ONE_BYTE && s->base[WP_RSP] == WP_BASE_FP &&
	       s->off[WP_RSP] == 8 && s->base[WP_RBP] == WP_BASE_AT_FP &&
	       !s->off[WP_RBP];
}

/* Does I jump by a register to what a word of the stack says? */
static bool jumps_to_word(const struct wp_flow_state *s,
			  const struct wp_insn *i)
{
	return i->mod == 3 && (s->base[i->rm] == WP_BASE_AT_SP ||
			       s->base[i->rm] == WP_BASE_AT_FP);
}

/* Note it if I uses a word by the start's rbp. */
static void note_fp_use(struct wp_flow *f, const struct wp_insn *i)
{
	if (i->has_modrm && i->mod != 3 && i->base == WP_RBP && !i->has_index &&
	    !i->segment && i->disp % 8 == 0 &&
	    f->now.base[WP_RBP] == WP_BASE_FP && !f->now.off[WP_RBP] &&
	    i->disp < f->fp_use)
		f->fp_use = i->disp;
}

/* Execute I, and note it if it sets up a frame pointer. */
static void execute(struct wp_flow *f, const struct wp_insn *i)
{
	struct wp_flow_state *s = &f->now;
	bool was_callers = s->base[WP_RBP] == WP_BASE_FP && !s->off[WP_RBP];

	wp_flow_state_execute(s, i);
	if (!f->has_prologue && !s->past_call && was_callers &&
	    s->base[WP_RBP] == WP_BASE_SP) {
		f->has_prologue = true;
		f->prologue = *s;
	}
}

/* Does I read rbp back from its home, a word that a kept register leads to?  That
 * is noted. */
static bool reads_fp_home(struct wp_flow *f, const struct wp_insn *i)
{
	uint8_t base;
	int64_t off;

	if (f->code != f->room || i->op != 0x8b || i->map != WP_MAP_ONE_BYTE ||
	    i->vector || i->mod == 3 || !i->wide || i->reg != WP_RBP ||
	    !wp_flow_state_operand(&f->now, i, &base, &off))
		return false;
	for (unsigned int k = 0; k < WP_NKEPT; k++) {
		unsigned int reg = wp_kept_regs[k];

		if (reg == WP_RBP || base != WP_BASE_REG + reg ||
		    (f->home_reg && (f->home_reg != reg || f->home_off != off)))
			continue;
		f->home_reg = (uint8_t)reg;
		f->home_off = off;
		return true;
	}
	return false;
}

/* Does I, just decoded in code of no file, make rbp the frame of the function that is
 * called next, behind one that saves rbp in that frame?  What is called gives rbp
 * back (SBCL). */
static bool makes_callees_frame(struct wp_flow *f, const struct wp_insn *i)
{
	/* mov %rbp,(%rsp); mov %rsp,%rbp, in one of two ways; a call, which its
	 * target may be put into a register for. */
	static const uint8_t save[] = { 0x48, 0x89, 0x2c, 0x24 };
	uint8_t code[sizeof(save) + 3 + 5 + 2];
	const uint8_t *set = code + sizeof(save), *call = set + 3;

	if (f->code != f->room || (i->op != 0x8b && i->op != 0x89) ||
	    i->mod != 3 || i->len != 3 ||
	    wp_flow_code(f, f->now.pc_avma - i->len - sizeof(save), code,
			 sizeof(code)) != sizeof(code) ||
	    memcmp(code, save, sizeof(save)) != 0 ||
	    (memcmp(set, "\x48\x8b\xec", 3) != 0 &&
	     memcmp(set, "\x48\x89\xe5", 3) != 0))
		return false;
	if ((*call & 0xf8) == 0xb8)
		call += 5;
	return call[0] == 0xe8 || (call[0] == 0xff && (call[1] >> 3 & 7) == 2);
}

/* Is S, on its way from a function's start, at a start again with a frame behind it?
 * The way led on behind a call that never returns. */
static bool is_in_another(const struct wp_flow *f,
			  const struct wp_flow_state *s)
{
	return f->goal_avma && s->pc_avma == f->start_avma &&
	       (s->base[WP_RSP] != WP_BASE_SP || s->off[WP_RSP]);
}

/* Does I make a frame pointer where S has made one: another function's start? */
static bool makes_second_frame(struct wp_flow *f, const struct wp_flow_state *s,
			       const struct wp_insn *i)
{
	bool is_to_fp = (i->op == 0x89 && i->reg == WP_RSP &&
			 i->rm == WP_RBP) ||
			(i->op == 0x8b && i->reg == WP_RBP && i->rm == WP_RSP);
	uint8_t before;

	/* push %rbp; mov %rsp,%rbp. */
	return is_to_fp && i->mod == 3 && i->wide &&
	       i->map == WP_MAP_ONE_BYTE && !i->vector && s->past_call &&
	       s->base[WP_RBP] == WP_BASE_SP &&
	       wp_flow_code(f, s->pc_avma - i->len - 1, &before, 1) == 1 &&
	       before == 0x55;
}

/* Follow the way by one instruction.  WP_FLOW_OVER: there is nothing to report;
 * the way goes on if F->has_now. */
static enum wp_flow_stop follow(struct wp_flow *f)
{
	struct wp_flow_state *s = &f->now;
	uint8_t code[WP_INSN_MAX + 1];
	struct wp_insn insn;
	uint64_t target_avma;
	bool is_home;

	f->has_now = false;
	if (!f->budget || !visit(f, s) || is_in_another(f, s))
		return WP_FLOW_OVER;
	f->budget--;
	if (!wp_insn_decode(&insn, code,
			    wp_flow_code(f, s->pc_avma, code, WP_INSN_MAX)))
		return WP_FLOW_OVER;
	s->pc_avma += insn.len;
	note_fp_use(f, &insn);
	switch (classify(f, s, &insn, &target_avma)) {
	case LEADS_TO_NEXT:
		if (makes_second_frame(f, s, &insn))
			return WP_FLOW_OVER;
		if (makes_callees_frame(f, &insn))
			break;
		is_home = reads_fp_home(f, &insn);
		execute(f, &insn);
		if (is_home) {
			s->base[WP_RBP] = WP_BASE_FP;
			s->off[WP_RBP] = 0;
		}
		if (!f->goal_avma && has_left_frame(s, &insn))
			return WP_FLOW_RETURNS;
		break;
	case LEADS_TO_CALL:
		wp_flow_state_forget(s, CALLER_SAVED);
		s->past_call = true;
		break;
	case LEADS_TO_BRANCH:
		/* loop, loope and loopne count in rcx. */
		if (insn.op >= 0xe0 && insn.op < 0xe3)
			wp_flow_state_forget(s, 1u << WP_RCX);
		add_pending(f, target_avma);
		break;
	case LEADS_TO_JUMP:
		s->pc_avma = target_avma;
		break;
	case LEADS_TO_RETURN:
		return f->goal_avma ? WP_FLOW_OVER : WP_FLOW_RETURNS;
	case LEADS_TO_UNKNOWN:
		return !f->goal_avma && jumps_to_word(s, &insn) ?
			       WP_FLOW_JUMPS_BACK :
			       WP_FLOW_LOST;
	case LEADS_TO_END:
		return WP_FLOW_OVER;
	}
	f->has_now = true;
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
			stop = follow(flow);
		}
		if (stop != WP_FLOW_OVER) {
			*ret = &flow->now;
			return stop;
		}
	}
}

#endif
