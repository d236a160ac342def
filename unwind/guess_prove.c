/* SPDX-License-Identifier: Apache-2.0 */
/* guess_prove.c - see guess_prove.h. */
#include "guess_prove.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)

#include "guess_flow.h"
#include "wallprof/hash.h"

enum {
	/* Instructions looked at: on the ways to a return; from what is called
	 * to the pc; from what looks like a function's start; in all. */
	EXIT_BUDGET = 1500,
	ENTRY_BUDGET = 3000,
	START_BUDGET = 1000,
	ALL_BUDGET = 12000,
	/* Slots of GOTs. */
	READS_MAX = 64,
	EXITS_MAX = 4,
	/* Words of the stack looked through for a return address. */
	SCAN_WORDS = 512,
	SCAN_STEP = 64,
	SCAN_ENTRIES = 8,
	/* How far back, and at how many places, a function may begin. */
	STARTS_BACK = 16384,
	STARTS_STEP = 256,
	START_BEFORE = 5,
	START_AFTER = 4,
	STARTS_MAX = 24,
	ALIGNMENT = 16,
	/* No frame of a library's own is larger. */
	FRAME_MAX = 1 << 20,
	/* A switch: how far its function reaches at most. */
	FUNCTION_MAX = 65536,
	/* Depth of a frame that two ways do not have by chance. */
	TELLING_DEPTH = 24,
	PLT_STUB_MAX = 16,

	CACHE_BITS = 8,
	CACHE_WAYS = 4,

	DW_RBX = 3,
	DW_R12 = 12,
};

static const uint8_t kept_dwarf[WP_NKEPT] = { DW_RBX, WP_REG_FP, DW_R12,
					      13,     14,	 15 };

/* Where a kept register of the caller is. */
enum where {
	LOST,
	KEPT,
	SLOT,
};

/* How to get to the caller. */
struct rule {
	/* The return address is at rsp, or with BY_FP rbp, plus OFF. */
	int32_t off;
	bool by_fp;
	/* enum where; and SLOT's place from the return address's. */
	uint8_t where[WP_NKEPT];
	int32_t rel[WP_NKEPT];
};

/* A way out of the function. */
struct exit {
	struct rule rule;
	bool past_call;
	/* It is a jump to who knows where. */
	bool is_lost;
};

/* A rule that was proven for a return address. */
struct proven {
	/* The pc, doubled, plus 1 for a return address; 0: none. */
	uint64_t key;
	uint64_t return_avma;
	struct rule rule;
};

/* A frame for which there was no proof. */
struct refused {
	/* As in struct proven. */
	uint64_t key;
	/* Of what the search went by. */
	uint64_t fingerprint;
	/* enum wp_step_result. */
	uint8_t result;
};

struct wp_prover {
	/* Borrowed. */
	struct wp_unwind_stats *stats;
	struct wp_flow flow;
	/* Of the modules that CACHE and REFUSED are about. */
	uint64_t generation;
	unsigned int victim;
	/* The stack from sp on. */
	uint64_t words[SCAN_WORDS];
	struct proven cache[1 << CACHE_BITS][CACHE_WAYS];
	struct refused refused[1 << CACHE_BITS];
};

/* One step under way. */
struct proof {
	struct wp_prover *prover;
	struct wp_flow *flow;
	struct wp_step *step;
	const struct wp_unwind_modules *modules;
	uint64_t pc_avma;
	uint64_t sp_avma;
	uint64_t fp_avma;
	bool has_fp;
	/* So many words of the stack are in the prover's. */
	unsigned int nwords;
	/* The frame pointer was asked for and not known. */
	bool wanted_fp;
	unsigned int budget;
	struct exit exits[EXITS_MAX];
	unsigned int nexits;
	/* What was found: */
	uint64_t return_avma;
	struct rule rule;
};

/* What the instruction before a return address calls. */
struct call {
	/* To this address; 0: not known, or no call. */
	uint64_t target_avma;
	/* By pointer, or by the kernel. */
	bool by_pointer;
};

struct wp_prover *wp_prover_new(struct wp_unwind_stats *stats)
{
	struct wp_prover *prover = calloc(1, sizeof(*prover));

	if (prover)
		prover->stats = stats;
	return prover;
}

void wp_prover_free(struct wp_prover *prover)
{
	free(prover);
}

static const struct wp_unwind_module *find_code(const struct proof *p,
						uint64_t avma)
{
	return wp_unwind_find_module(p->modules, avma);
}

/* The call before RETURN_AVMA. */
static struct call find_call(struct proof *p, uint64_t return_avma)
{
	const struct wp_unwind_module *m = return_avma ?
						   find_code(p,
							     return_avma - 1) :
						   NULL;
	struct call call = { 0 };
	uint8_t code[6];
	uint64_t target;
	int32_t disp;

	if (!m)
		return call;
	/* The kernel calls signal handlers and has them return there. */
	if (wp_arch_is_sigreturn(m, p->step->mem, return_avma)) {
		call.by_pointer = true;
		return call;
	}
	if (!wp_arch_follows_call(m, p->step->mem, return_avma) ||
	    wp_code_read(m, p->step->mem, return_avma - 6, code, 6))
		return call;
	memcpy(&disp, code + 2, sizeof(disp));
	target = return_avma + (uint64_t)(int64_t)disp;
	if (code[1] == 0xe8 && find_code(p, target))
		call.target_avma = target;
	/* *disp(%rip), a slot of the GOT. */
	else if (code[0] == 0xff && code[1] == 0x15 &&
		 wp_flow_slot(p->flow, target, &target) && find_code(p, target))
		call.target_avma = target;
	else
		call.by_pointer = wp_arch_calls_by_pointer(m, p->step->mem,
							   return_avma);
	return call;
}

/* Start the flow, on what is left of the budget. */
static void start(struct proof *p, uint64_t start_avma, uint64_t goal_avma,
		  unsigned int budget)
{
	if (budget > p->budget)
		budget = p->budget;
	p->budget -= budget;
	wp_flow_start(p->flow, start_avma, goal_avma, budget);
}

/* Give back what the flow has not used. */
static void finish(struct proof *p)
{
	p->budget += p->flow->budget;
}

/* S is where its rsp points to the return address: how it came there. */
static bool rule_of_exit(const struct wp_flow_state *s, struct rule *ret)
{
	bool by_fp = s->base[WP_RSP] == WP_BASE_FP;

	if ((!by_fp && s->base[WP_RSP] != WP_BASE_SP) || s->off[WP_RSP] < 0 ||
	    s->off[WP_RSP] > FRAME_MAX)
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->off = (int32_t)s->off[WP_RSP];
	ret->by_fp = by_fp;
	for (unsigned int i = 0; i < WP_NKEPT; i++) {
		unsigned int r = wp_kept_regs[i];

		if (s->base[r] == WP_BASE_REG + r && !s->off[r]) {
			ret->where[i] = KEPT;
		} else if (!(s->stored >> i & 1) &&
			   s->base[r] ==
				   (by_fp ? WP_BASE_AT_FP : WP_BASE_AT_SP) &&
			   s->off[r] < ret->off &&
			   s->off[r] >= (by_fp ? -FRAME_MAX : 0)) {
			ret->where[i] = SLOT;
			ret->rel[i] = (int32_t)s->off[r] - ret->off;
		}
	}
	return true;
}

static void add_exit(struct proof *p, const struct wp_flow_state *s,
		     bool is_lost)
{
	struct exit *e = &p->exits[p->nexits];

	if (p->nexits == EXITS_MAX || !rule_of_exit(s, &e->rule))
		return;
	e->past_call = s->past_call;
	e->is_lost = is_lost;
	for (unsigned int i = 0; i < p->nexits; i++) {
		const struct exit *o = &p->exits[i];

		if (o->rule.off == e->rule.off &&
		    o->rule.by_fp == e->rule.by_fp && !o->is_lost)
			return;
	}
	p->nexits++;
}

static void find_exits(struct proof *p)
{
	const struct wp_flow_state *s;
	enum wp_flow_stop stop;

	start(p, p->pc_avma, 0, EXIT_BUDGET);
	while (p->nexits < EXITS_MAX &&
	       (stop = wp_flow_next(p->flow, &s)) != WP_FLOW_OVER)
		add_exit(p, s, stop == WP_FLOW_LOST);
	finish(p);
}

/* S has come from a function's start to the pc: the way back. */
static bool rule_of_entry(const struct wp_flow_state *s, struct rule *ret)
{
	bool by_fp = s->base[WP_RSP] != WP_BASE_SP;
	unsigned int r = by_fp ? WP_RBP : WP_RSP;

	if (s->base[r] != WP_BASE_SP || s->off[r] > 0 || s->off[r] < -FRAME_MAX)
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->off = (int32_t)-s->off[r];
	ret->by_fp = by_fp;
	for (unsigned int i = 0; i < WP_NKEPT; i++) {
		unsigned int kept = wp_kept_regs[i];

		if (s->saved >> i & 1) {
			ret->where[i] = SLOT;
			ret->rel[i] = (int32_t)s->saved_off[i];
		} else if (s->base[kept] == WP_BASE_REG + kept &&
			   !s->off[kept]) {
			ret->where[i] = KEPT;
		}
	}
	return true;
}

/* Where RULE says that the return address is: false if that can not be. */
static bool place(struct proof *p, const struct rule *rule, uint64_t *ret_avma)
{
	uint64_t from = rule->by_fp ? p->fp_avma : p->sp_avma;

	if (rule->by_fp && !p->has_fp) {
		p->wanted_fp = true;
		return false;
	}
	*ret_avma = from + (uint64_t)rule->off;
	return from >= p->sp_avma && *ret_avma >= from && *ret_avma % 8 == 0;
}

/* rbp, if S has it point into the frame, does so. */
static bool agrees_on_fp(const struct proof *p, const struct wp_flow_state *s,
			 uint64_t slot_avma)
{
	return !p->has_fp || s->base[WP_RBP] != WP_BASE_SP ||
	       p->fp_avma == slot_avma + (uint64_t)s->off[WP_RBP];
}

/* What A and B know of the kept registers, in RET: false if they differ. */
static bool merge(struct rule *ret, const struct rule *a, const struct rule *b)
{
	*ret = *b;
	for (unsigned int i = 0; i < WP_NKEPT; i++) {
		if (a->where[i] == LOST)
			continue;
		if (b->where[i] != LOST &&
		    (a->where[i] != b->where[i] || a->rel[i] != b->rel[i]))
			return false;
		ret->where[i] = a->where[i];
		ret->rel[i] = a->rel[i];
	}
	return true;
}

/* How a search from a function's start ended. */
enum entry {
	/* It never comes to the pc with a frame that fits. */
	ENTRY_WRONG,
	ENTRY_FITS,
	/* It may, through a switch that has the frame in question. */
	ENTRY_OPEN,
	/* It jumps on by pointer, with no frame of its own left: to a function
	 * that finds the stack as one called by pointer does. */
	ENTRY_HANDED_ON,
};

/* S is on its way in a function with a frame as RULE, a way out of it, has. */
static bool has_frame_of(const struct wp_flow_state *s, const struct rule *rule)
{
	unsigned int r = rule->by_fp ? WP_RBP : WP_RSP;

	return s->base[r] == WP_BASE_SP && -s->off[r] == rule->off &&
	       (rule->by_fp || rule->off >= TELLING_DEPTH);
}

/* S has come from a function's start and has nothing on the stack. */
static bool has_no_frame(const struct wp_flow_state *s)
{
	return s->base[WP_RSP] == WP_BASE_SP && !s->off[WP_RSP];
}

/* Does the function at START_AVMA have its return address at SLOT_AVMA when it
 * is at the pc, and its registers as EXIT, which may be NULL, says?  With
 * *RET_RULE if it fits.
 */
static enum entry enter(struct proof *p, uint64_t start_avma,
			uint64_t slot_avma, const struct exit *exit,
			unsigned int budget, struct rule *ret_rule)
{
	enum entry result = ENTRY_WRONG;
	const struct wp_flow_state *s;
	enum wp_flow_stop stop;
	struct rule rule;
	uint64_t avma;

	start(p, start_avma, p->pc_avma, budget);
	while ((stop = wp_flow_next(p->flow, &s)) != WP_FLOW_OVER) {
		if (stop == WP_FLOW_LOST) {
			if (exit && has_frame_of(s, &exit->rule))
				result = ENTRY_OPEN;
			else if (result == ENTRY_WRONG && has_no_frame(s))
				result = ENTRY_HANDED_ON;
			continue;
		}
		if (rule_of_entry(s, &rule) && place(p, &rule, &avma) &&
		    avma == slot_avma && agrees_on_fp(p, s, slot_avma) &&
		    (!exit || merge(&rule, &exit->rule, &rule))) {
			*ret_rule = rule;
			finish(p);
			return ENTRY_FITS;
		}
	}
	finish(p);
	return result;
}

/* Does a function seem to begin at CODE[at]?  Where AVMA is aligned, and what
 * is before it ends another or fills up; or by setting up rbp. */
static bool may_start(const uint8_t *code, size_t at, uint64_t avma)
{
	static const uint8_t by_fp[] = { 0x55, 0x48, 0x89, 0xe5 };
	const uint8_t *before = code + at - START_BEFORE;

	if (!memcmp(code + at, by_fp, sizeof(by_fp)))
		return true;
	if (avma % ALIGNMENT)
		return false;
	/* ret, nop, int3, hlt, a long nop's displacement; jmp; call of what
	 * does not return; ud2. */
	return memchr("\xc3\x90\xcc\xf4\x00", before[4], 5) ||
	       before[3] == 0xeb || before[0] == 0xe9 || before[0] == 0xe8 ||
	       (before[3] == 0x0f && before[4] == 0x0b);
}

/* The search for the beginning of the function that the pc is in. */
struct starts {
	uint64_t slot_avma;
	const struct exit *exit;
	/* At so many places it may still be. */
	unsigned int left;
};

/* Try the places in [AVMA, AVMA + STARTS_STEP), the last first. */
static bool enter_within(struct proof *p, struct starts *s, uint64_t avma,
			 struct rule *ret_rule)
{
	uint8_t code[START_BEFORE + STARTS_STEP + START_AFTER];

	/* What is not there fills up. */
	memset(code, 0xcc, sizeof(code));
	wp_flow_code(p->flow, avma - START_BEFORE, code, START_BEFORE);
	wp_flow_code(p->flow, avma, code + START_BEFORE,
		     sizeof(code) - START_BEFORE);
	for (unsigned int n = STARTS_STEP; n-- && s->left && p->budget;) {
		if (avma + n > p->pc_avma - p->step->is_return ||
		    !may_start(code, START_BEFORE + n, avma + n))
			continue;
		s->left--;
		if (enter(p, avma + n, s->slot_avma, s->exit, START_BUDGET,
			  ret_rule) == ENTRY_FITS)
			return true;
	}
	return false;
}

/* As enter, for the function that the pc is in, wherever that begins. */
static bool enter_somewhere(struct proof *p, uint64_t slot_avma,
			    const struct exit *exit, struct rule *ret_rule)
{
	struct starts s = { slot_avma, exit, STARTS_MAX };
	uint64_t avma = p->pc_avma & ~(uint64_t)(STARTS_STEP - 1);

	for (unsigned int n = 0; n < STARTS_BACK / STARTS_STEP; n++) {
		if (enter_within(p, &s, avma, ret_rule))
			return true;
		avma -= STARTS_STEP;
		if (!s.left || !p->budget || !find_code(p, avma))
			return false;
	}
	return false;
}

static bool accept(struct proof *p, uint64_t return_avma,
		   const struct rule *rule)
{
	p->return_avma = return_avma;
	p->rule = *rule;
	return true;
}

/* The function of the pc was called, or jumped to, by pointer. */
static bool prove_start(struct proof *p, uint64_t slot_avma,
			uint64_t return_avma, const struct exit *exit)
{
	struct rule rule;

	if (exit->is_lost)
		return false;
	/* Straight on to a return: nothing that might be another function. */
	if (!exit->past_call && !p->step->is_return)
		return accept(p, return_avma, &exit->rule);
	/* At a call the stack is aligned (psABI 3.2.2), for who keeps to it;
	 * code that has a frame pointer is proven by that. */
	if (!exit->rule.by_fp && (slot_avma + 8) % 16)
		return false;
	return enter_somewhere(p, slot_avma, exit, &rule) &&
	       accept(p, return_avma, &rule);
}

/* The function at TARGET_AVMA was called: is it the one of the pc? */
static bool prove_target(struct proof *p, uint64_t target_avma,
			 uint64_t slot_avma, uint64_t return_avma,
			 const struct exit *exit)
{
	struct rule rule;
	enum entry result = enter(p, target_avma, slot_avma, exit, ENTRY_BUDGET,
				  &rule);
	bool near = target_avma <= p->pc_avma &&
		    p->pc_avma - target_avma < FUNCTION_MAX;

	if (result == ENTRY_FITS)
		return accept(p, return_avma, &rule);
	if (result == ENTRY_HANDED_ON)
		return prove_start(p, slot_avma, return_avma, exit);
	/* The frame is the same on both sides of a switch. */
	return result == ENTRY_OPEN && !exit->is_lost && near &&
	       accept(p, return_avma, &exit->rule);
}

static bool prove_exit(struct proof *p, const struct exit *exit)
{
	uint64_t slot_avma, return_avma;
	struct call call;

	if (!place(p, &exit->rule, &slot_avma) ||
	    !wp_mem_u64(p->step->mem, slot_avma, &return_avma))
		return false;
	call = find_call(p, return_avma);
	return (call.target_avma && prove_target(p, call.target_avma, slot_avma,
						 return_avma, exit)) ||
	       (call.by_pointer &&
		prove_start(p, slot_avma, return_avma, exit));
}

/* The code that a thread returns to ends it: exit of the thread or the
 * process, inline. */
static bool is_root_call(struct proof *p, uint64_t return_avma)
{
	/* mov %eax,%edi or mov %rax,%rdi; then xor %eax,%eax; mov $60,%al;
	 * syscall (musl's clone), or mov $60,%eax; syscall (glibc's). */
	static const uint8_t by_byte[] = { 0x31, 0xc0, 0xb0, 60, 0x0f, 0x05 };
	static const uint8_t at_once[] = { 0xb8, 60, 0, 0, 0, 0x0f, 0x05 };
	uint8_t code[10], *c = code;

	if (wp_flow_code(p->flow, return_avma, code, sizeof(code)) !=
	    sizeof(code))
		return false;
	c += c[0] == 0x48;
	if (c[0] == 0x89 && c[1] == 0xc7)
		c += 2;
	return !memcmp(c, by_byte, sizeof(by_byte)) ||
	       !memcmp(c, at_once, sizeof(at_once));
}

/* The code before a return address is a program's entry point: it clears rbp,
 * aligns the stack and calls (psABI 3.4.1; musl's arch/x86_64/crt_arch.h). */
static bool is_entry_point(struct proof *p, uint64_t return_avma)
{
	static const uint8_t align[] = { 0x48, 0x83, 0xe4, 0xf0, 0xe8 };
	uint8_t code[24];

	if (wp_flow_code(p->flow, return_avma - sizeof(code), code,
			 sizeof(code)) != sizeof(code) ||
	    memcmp(code + sizeof(code) - 9, align, sizeof(align)))
		return false;
	return memmem(code, sizeof(code) - 9, "\x31\xed", 2);
}

/* Where no way leads to a return (the function ends the thread): look the
 * stack through for a call that leads to the pc with this very frame. */
static bool prove_word(struct proof *p, uint64_t slot_avma,
		       uint64_t return_avma, unsigned int *left)
{
	struct call call = find_call(p, return_avma);
	struct rule rule;

	if (call.target_avma && *left) {
		--*left;
		if (enter(p, call.target_avma, slot_avma, NULL, ENTRY_BUDGET,
			  &rule) == ENTRY_FITS)
			return accept(p, return_avma, &rule);
	}
	return call.by_pointer && is_root_call(p, return_avma) &&
	       (slot_avma + 8) % 16 == 0 &&
	       enter_somewhere(p, slot_avma, NULL, &rule) &&
	       accept(p, return_avma, &rule);
}

static bool scan(struct proof *p)
{
	unsigned int left = SCAN_ENTRIES;

	for (unsigned int n = 0; n < p->nwords && p->budget; n++)
		if (prove_word(p, p->sp_avma + 8 * (uint64_t)n,
			       p->prover->words[n], &left))
			return true;
	return false;
}

/* A stub of a PLT whose function nobody can follow. */
static bool prove_stub(struct proof *p)
{
	struct rule rule = { 0 };
	uint64_t return_avma, sp_avma;
	struct call call;

	if (p->step->is_return ||
	    !wp_arch_find_plt_return(p->step, &return_avma, &sp_avma))
		return false;
	call = find_call(p, return_avma);
	if (!call.target_avma || call.target_avma > p->pc_avma ||
	    p->pc_avma - call.target_avma >= PLT_STUB_MAX)
		return false;
	rule.off = (int32_t)(sp_avma - 8 - p->sp_avma);
	memset(rule.where, KEPT, sizeof(rule.where));
	return accept(p, return_avma, &rule);
}

static void read_words(struct proof *p)
{
	const struct wp_mem *mem = p->step->mem;
	unsigned int got = SCAN_STEP;

	for (p->nwords = 0; p->nwords < SCAN_WORDS && got == SCAN_STEP;
	     p->nwords += got) {
		/* The stack may end before. */
		while (got &&
		       mem->read(mem->ctx, p->sp_avma + 8 * (uint64_t)p->nwords,
				 p->prover->words + p->nwords, 8 * (size_t)got))
			got /= 2;
	}
}

/* What a proof depends on, but for words beyond those that were read: they
 * that may be return addresses, and the frame pointer. */
static uint64_t fingerprint(const struct proof *p)
{
	const struct wp_unwind_modules *m = p->modules;
	uint64_t low = m->len ? m->v[0].start_avma : 0;
	uint64_t high = m->len ? m->v[m->len - 1].end_avma : 0;
	uint64_t hash = p->has_fp ? p->fp_avma - p->sp_avma : 1;

	for (unsigned int n = 0; n < p->nwords; n++)
		if (p->prover->words[n] - low <= high - low &&
		    find_code(p, p->prover->words[n] - 1))
			hash = wp_hash_u64(hash ^ p->prover->words[n]) + n;
	return hash;
}

static bool prove(struct proof *p)
{
	find_exits(p);
	for (unsigned int i = 0; i < p->nexits; i++)
		if (prove_exit(p, &p->exits[i]))
			return true;
	return prove_stub(p) || scan(p);
}

static struct proven *set_of(struct wp_prover *prover, uint64_t key)
{
	return prover->cache[wp_hash_u64(key) >> (64 - CACHE_BITS)];
}

/* Proven before, for the same code: what is left is that the stack says so. */
static bool recall(struct proof *p, uint64_t key)
{
	const struct proven *set = set_of(p->prover, key);

	for (unsigned int i = 0; i < CACHE_WAYS; i++) {
		uint64_t slot_avma, return_avma;

		if (set[i].key == key && place(p, &set[i].rule, &slot_avma) &&
		    wp_mem_u64(p->step->mem, slot_avma, &return_avma) &&
		    return_avma == set[i].return_avma)
			return accept(p, return_avma, &set[i].rule);
	}
	return false;
}

static void remember(struct proof *p, uint64_t key)
{
	struct proven *set = set_of(p->prover, key);
	unsigned int i = 0;

	while (i < CACHE_WAYS && set[i].key)
		i++;
	if (i == CACHE_WAYS)
		i = p->prover->victim++ % CACHE_WAYS;
	set[i] = (struct proven){ key, p->return_avma, p->rule };
}

/* Make the step that was found. */
static enum wp_step_result take(struct proof *p)
{
	const struct rule *rule = &p->rule;
	struct wp_regs *regs = p->step->regs;
	uint64_t slot_avma, val;

	if (!place(p, rule, &slot_avma))
		return WP_STEP_NO_INFO;
	regs->known &= WP_ARCH_CALLEE_SAVED;
	for (unsigned int i = 0; i < WP_NKEPT; i++) {
		unsigned int reg = kept_dwarf[i];

		if (rule->where[i] == KEPT)
			continue;
		if (rule->where[i] == SLOT &&
		    wp_mem_u64(p->step->mem,
			       slot_avma + (uint64_t)(int64_t)rule->rel[i],
			       &val))
			wp_reg_set(regs, reg, val);
		else
			regs->known &= ~(UINT64_C(1) << reg);
	}
	wp_reg_set(regs, WP_REG_PC, p->return_avma);
	wp_reg_set(regs, WP_REG_SP, slot_avma + 8);
	p->step->cfa_avma = slot_avma + 8;
	return WP_STEP_OK;
}

/* Nothing is known of KEY with such a stack: find out, or remember that it
 * cannot be. */
static enum wp_step_result search(struct proof *p, uint64_t key)
{
	struct refused *r =
		&p->prover->refused[wp_hash_u64(key) >> (64 - CACHE_BITS)];
	uint64_t print;

	read_words(p);
	print = fingerprint(p);
	if (r->key == key && r->fingerprint == print)
		return r->result;
	p->prover->stats->proofs++;
	if (prove(p)) {
		remember(p, key);
		return take(p);
	}
	*r = (struct refused){ key, print,
			       p->wanted_fp ? WP_STEP_UNKNOWN_REG :
					      WP_STEP_NO_INFO };
	return r->result;
}

enum wp_step_result wp_prove_step(struct wp_prover *prover,
				  struct wp_step *step,
				  const struct wp_unwind_modules *modules)
{
	const struct wp_regs *regs = step->regs;
	struct proof p = {
		.prover = prover,
		.flow = &prover->flow,
		.step = step,
		.modules = modules,
		.pc_avma = regs->v[WP_REG_PC],
		.sp_avma = regs->v[WP_REG_SP],
		.fp_avma = regs->v[WP_REG_FP],
		.has_fp = wp_reg_known(regs, WP_REG_FP),
		.budget = ALL_BUDGET,
	};
	uint64_t key = p.pc_avma << 1 | step->is_return;

	if (prover->generation != modules->generation) {
		memset(prover->cache, 0, sizeof(prover->cache));
		memset(prover->refused, 0, sizeof(prover->refused));
		prover->generation = modules->generation;
	}
	if (recall(&p, key))
		return take(&p);
	wp_flow_open(p.flow, modules, step->mem, READS_MAX);
	if (step->is_return &&
	    (is_root_call(&p, p.pc_avma) || is_entry_point(&p, p.pc_avma)))
		return WP_STEP_ROOT;
	return step->in_stop ? WP_STEP_TOO_SLOW : search(&p, key);
}

#else

struct wp_prover *wp_prover_new(struct wp_unwind_stats *stats)
{
	(void)stats;
	return NULL;
}

void wp_prover_free(struct wp_prover *prover)
{
	(void)prover;
}

enum wp_step_result wp_prove_step(struct wp_prover *prover,
				  struct wp_step *step,
				  const struct wp_unwind_modules *modules)
{
	(void)prover;
	(void)step;
	(void)modules;
	return WP_STEP_NO_INFO;
}

#endif
