/* SPDX-License-Identifier: Apache-2.0 */
/* proof.c - see proof.h. */
#include "arch.h"

#if defined(__x86_64__)

#include <string.h>

#include "proof.h"
#include "proof_call.h"
#include "proof_start.h"

enum {
	/* Instructions followed: on the ways to a return; from a called function
	 * to the pc; from what looks like a function's start to the pc. */
	EXIT_BUDGET = 12000,
	ENTRY_BUDGET = 3000,
	START_BUDGET = 4000,
	/* To find out whether the frame pointer was set up. */
	FP_BUDGET = 8000,
	/* Calls on the stack whose functions are followed. */
	SCAN_ENTRIES = 8,
	/* How far before the pc, and at how many places, a function's start is
	 * looked for. */
	STARTS_BACK = 16384,
	STARTS_STEP = 256,
	STARTS_MAX = 24,
	/* The same of those that make a frame, which are tried first. */
	FRAMES_MAX = 4,
	/* Code aligns its stack for vectors of at most 64 bytes. */
	ALIGNMENT_MAX = 128,
	/* Functions that have a switch are smaller. */
	FUNCTION_MAX = 65536,
	/* Two functions do not have frames of one size by chance from here on. */
	TELLING_DEPTH = 24,
	PLT_STUB_MAX = 16,
	/* A frame pointer is so far below the return address. */
	FP_TO_RETURN = 8,
};

/* Start the flow with at most BUDGET of what is left of P's. */
static void start_flow(struct wp_proof *p, uint64_t start_avma,
		       uint64_t goal_avma, unsigned int budget)
{
	if (budget > p->budget)
		budget = p->budget;
	p->budget -= budget;
	wp_flow_start(p->flow, start_avma, goal_avma, budget);
}

/* Give the instructions that the flow has not used back to P. */
static void end_flow(struct wp_proof *p)
{
	p->budget += p->flow->budget;
}

/* Add the way out that S is at the end of, unless one with this frame is there. */
static void add_exit(struct wp_proof_exits *exits,
		     const struct wp_flow_state *s, bool is_lost)
{
	struct wp_proof_exit *e = &exits->v[exits->len];
	struct wp_proof_rule prologue;

	*e = (struct wp_proof_exit){ .past_call = s->past_call,
				     .is_lost = is_lost };
	e->is_prologue = wp_proof_rule_of_prologue(s, &prologue);
	if (!wp_proof_rule_of_exit(s, &e->rule) ||
	    (is_lost && e->is_prologue)) {
		exits->is_odd |= !is_lost && !e->is_prologue;
		if (!e->is_prologue)
			return;
		e->rule = prologue;
	}
	for (unsigned int i = 0; i < exits->len; i++) {
		const struct wp_proof_exit *o = &exits->v[i];

		if (o->rule.off == e->rule.off &&
		    o->rule.by_fp == e->rule.by_fp &&
		    o->rule.by_word == e->rule.by_word && !o->is_lost)
			return;
	}
	exits->len++;
}

void wp_proof_find_exits(struct wp_proof *p)
{
	const struct wp_flow_state *s;
	enum wp_flow_stop stop;

	start_flow(p, p->pc_avma, 0, EXIT_BUDGET);
	while (p->exits.len < WP_PROOF_EXITS_MAX &&
	       (stop = wp_flow_next(p->flow, &s)) != WP_FLOW_OVER) {
		p->exits.is_odd |= stop == WP_FLOW_JUMPS_BACK;
		add_exit(&p->exits, s, stop != WP_FLOW_RETURNS);
	}
	p->exits.sets_fp = p->flow->has_prologue;
	p->exits.prologue = (struct wp_proof_exit){ .is_prologue = true };
	p->exits.has_prologue = p->exits.sets_fp &&
				wp_proof_rule_of_prologue(
					&p->flow->prologue,
					&p->exits.prologue.rule);
	p->exits.fp_use = p->step->is_return || !p->step->module->image ?
				  (int32_t)p->flow->fp_use :
				  0;
	p->exits.home_reg = p->flow->home_reg;
	p->exits.home_off = (int32_t)p->flow->home_off;
	end_flow(p);
}

/* *AVMA is where a frame that aligns its stack has what rsp was before: let it be the
 * return address's by RULE, which lies above, if it can be. */
static bool follow_word(const struct wp_proof *p,
			const struct wp_proof_rule *rule, uint64_t *avma)
{
	uint64_t word;

	if (!wp_mem_u64(p->step->mem, *avma, &word) || word <= *avma ||
	    word - *avma > ALIGNMENT_MAX)
		return false;
	*avma = word + (uint64_t)rule->past_word;
	return true;
}

bool wp_proof_slot(struct wp_proof *p, const struct wp_proof_rule *rule,
		   uint64_t *ret_avma)
{
	uint64_t from = rule->by_fp ? p->fp_avma : p->sp_avma;

	if (rule->by_fp && !p->has_fp) {
		p->wanted_fp = true;
		return false;
	}
	*ret_avma = from + (uint64_t)rule->off;
	return from >= p->sp_avma && *ret_avma >= from &&
	       (!rule->by_word || follow_word(p, rule, ret_avma)) &&
	       *ret_avma % 8 == 0;
}

/* Does rbp point where S says, if it points into the frame? */
static bool agrees_on_fp(const struct wp_proof *p,
			 const struct wp_flow_state *s, uint64_t slot_avma)
{
	return !p->has_fp || s->base[WP_RBP] != WP_BASE_SP ||
	       p->fp_avma == slot_avma + (uint64_t)s->off[WP_RBP];
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

/* Does S, on its way through a function, have a frame as large as RULE's? */
static bool has_frame_of(const struct wp_flow_state *s,
			 const struct wp_proof_rule *rule)
{
	unsigned int r = rule->by_fp ? WP_RBP : WP_RSP;

	return !rule->by_word && s->base[r] == WP_BASE_SP &&
	       -s->off[r] == rule->off &&
	       (rule->by_fp || rule->off >= TELLING_DEPTH);
}

/* Has S, on its way from a function's start, nothing on the stack? */
static bool has_no_frame(const struct wp_flow_state *s)
{
	return s->base[WP_RSP] == WP_BASE_SP && !s->off[WP_RSP];
}

/* Does the function at START_AVMA, when it comes to the pc, have its return
 * address at SLOT_AVMA, and its registers as EXIT, which may be NULL, says?
 * *RET_RULE is set on ENTRY_FITS, and on ENTRY_OPEN to EXIT's: the frame is the same
 * on both sides of a switch.
 */
static enum entry try_start(struct wp_proof *p, uint64_t start_avma,
			    uint64_t slot_avma,
			    const struct wp_proof_exit *exit,
			    unsigned int budget, struct wp_proof_rule *ret_rule)
{
	enum entry result = ENTRY_WRONG;
	const struct wp_flow_state *s;
	enum wp_flow_stop stop;
	struct wp_proof_rule rule;
	uint64_t avma;

	start_flow(p, start_avma, p->pc_avma, budget);
	while ((stop = wp_flow_next(p->flow, &s)) != WP_FLOW_OVER) {
		if (stop == WP_FLOW_LOST) {
			if (exit && has_frame_of(s, &exit->rule)) {
				result = ENTRY_OPEN;
				*ret_rule = exit->rule;
			} else if (result == ENTRY_WRONG && has_no_frame(s)) {
				result = ENTRY_HANDED_ON;
			}
			continue;
		}
		if (wp_proof_rule_of_entry(s, &rule) &&
		    wp_proof_slot(p, &rule, &avma) && avma == slot_avma &&
		    agrees_on_fp(p, s, slot_avma) &&
		    (!exit || wp_proof_rule_merge(&rule, &exit->rule, &rule))) {
			*ret_rule = rule;
			end_flow(p);
			return ENTRY_FITS;
		}
	}
	end_flow(p);
	return result;
}

/* The search for the start of the function that the pc is in. */
struct starts {
	/* As of try_start. */
	uint64_t slot_avma;
	const struct wp_proof_exit *exit;
	/* Only where a frame pointer is set up; where a frame is made. */
	bool by_fp;
	bool by_frame;
	/* Places that may still be tried. */
	unsigned int left;
};

/* Try the places in [AVMA, AVMA + STARTS_STEP), the last first. */
static bool try_starts_within(struct wp_proof *p, struct starts *s,
			      uint64_t avma, struct wp_proof_rule *ret_rule)
{
	enum entry entry;
	uint8_t code[WP_START_BEFORE + STARTS_STEP + WP_START_AFTER];

	/* Code that cannot be read looks like padding. */
	memset(code, 0xcc, sizeof(code));
	wp_flow_code(p->flow, avma - WP_START_BEFORE, code, WP_START_BEFORE);
	wp_flow_code(p->flow, avma, code + WP_START_BEFORE,
		     sizeof(code) - WP_START_BEFORE);
	for (unsigned int n = STARTS_STEP; n-- && s->left && p->budget;) {
		if (avma + n > p->pc_avma - p->step->is_return ||
		    !(s->by_fp ? wp_proof_sets_fp(code + WP_START_BEFORE + n) :
				 wp_proof_may_start(code, WP_START_BEFORE + n,
						    avma + n)) ||
		    (s->by_frame &&
		     !wp_proof_makes_frame(code + WP_START_BEFORE + n)))
			continue;
		s->left--;
		entry = try_start(p, avma + n, s->slot_avma, s->exit,
				  START_BUDGET, ret_rule);
		if (entry == ENTRY_FITS || entry == ENTRY_OPEN)
			return true;
	}
	return false;
}

/* Try the places that S says before the pc. */
static bool try_starts_before(struct wp_proof *p, struct starts s,
			      struct wp_proof_rule *ret_rule)
{
	uint64_t avma = p->pc_avma & ~(uint64_t)(STARTS_STEP - 1);

	for (unsigned int n = 0; n < STARTS_BACK / STARTS_STEP; n++) {
		if (try_starts_within(p, &s, avma, ret_rule))
			return true;
		avma -= STARTS_STEP;
		if (!s.left || !p->budget ||
		    !wp_unwind_find_module(p->modules, avma))
			return false;
	}
	return false;
}

/* As try_start, for the function that the pc is in, whose start is looked for:
 * true if one fits.  A large function has many places that look like a start, and
 * hardly one that makes a frame but its own. */
static bool try_starts(struct wp_proof *p, struct starts s,
		       struct wp_proof_rule *ret_rule)
{
	s.left = FRAMES_MAX;
	s.by_frame = !s.by_fp && s.slot_avma > p->sp_avma;
	if (s.by_frame && try_starts_before(p, s, ret_rule))
		return true;
	s.left = STARTS_MAX;
	s.by_frame = false;
	return try_starts_before(p, s, ret_rule);
}

/* The return address is RETURN_AVMA, found by RULE. */
static bool accept(struct wp_proof *p, uint64_t return_avma,
		   const struct wp_proof_rule *rule)
{
	p->return_avma = return_avma;
	p->rule = *rule;
	return true;
}

/* Prove the return address in SLOT_AVMA, where a call by pointer, or a jump by
 * pointer from what was called, led to the pc's function. */
static bool prove_start(struct wp_proof *p, uint64_t slot_avma,
			uint64_t return_avma, const struct wp_proof_exit *exit)
{
	struct wp_proof_rule rule;

	if (exit->is_lost)
		return false;
	/* Straight on to a return: nothing that might be another function. */
	if (!exit->past_call && !p->step->is_return)
		return accept(p, return_avma, &exit->rule);
	/* At a call the stack is aligned (psABI 3.2.2), for who keeps to it;
	 * code that has a frame pointer is proven by that. */
	if (!exit->rule.by_fp && (slot_avma + 8) % 16)
		return false;
	return try_starts(
		       p,
		       (struct starts){ .slot_avma = slot_avma, .exit = exit },
		       &rule) &&
	       accept(p, return_avma, &rule);
}

/* Prove the return address in SLOT_AVMA, where the function at TARGET_AVMA was
 * called, by the ways from there to the pc. */
static bool prove_target(struct wp_proof *p, uint64_t target_avma,
			 uint64_t slot_avma, uint64_t return_avma,
			 const struct wp_proof_exit *exit)
{
	struct wp_proof_rule rule;
	enum entry result = try_start(p, target_avma, slot_avma, exit,
				      ENTRY_BUDGET, &rule);
	bool near = target_avma <= p->pc_avma &&
		    p->pc_avma - target_avma < FUNCTION_MAX;

	if (result == ENTRY_FITS)
		return accept(p, return_avma, &rule);
	if (result == ENTRY_HANDED_ON)
		return prove_start(p, slot_avma, return_avma, exit);
	return result == ENTRY_OPEN && !exit->is_lost && near &&
	       accept(p, return_avma, &rule);
}

/* Is EXIT the next thing that the function does, by its own code?  Then what is in
 * its slot is where it returns to, whatever way led to the pc. */
static bool returns_straight(const struct wp_proof *p,
			     const struct wp_proof_exit *exit)
{
	return !p->step->is_return && !exit->past_call && !exit->is_lost &&
	       !exit->is_prologue;
}

/* Prove the return address that EXIT leads to. */
static bool prove_exit(struct wp_proof *p, const struct wp_proof_exit *exit)
{
	uint64_t slot_avma, return_avma;
	struct wp_proof_call call;

	if (!wp_proof_slot(p, &exit->rule, &slot_avma) ||
	    !wp_mem_u64(p->step->mem, slot_avma, &return_avma))
		return false;
	call = wp_proof_find_call(p, return_avma);
	if (call.target_avma && returns_straight(p, exit))
		return accept(p, return_avma, &exit->rule);
	return (call.target_avma && prove_target(p, call.target_avma, slot_avma,
						 return_avma, exit)) ||
	       (call.by_pointer &&
		prove_start(p, slot_avma, return_avma, exit));
}

/* Prove the word RETURN_AVMA at SLOT_AVMA of the stack to be the return address, by
 * a call before it that leads to the pc with this very frame.  LEFT: calls whose
 * functions may still be followed. */
static bool prove_word(struct wp_proof *p, uint64_t slot_avma,
		       uint64_t return_avma, unsigned int *left)
{
	struct wp_proof_call call = wp_proof_find_call(p, return_avma);
	struct wp_proof_rule rule;

	if (call.target_avma && *left) {
		--*left;
		if (try_start(p, call.target_avma, slot_avma, NULL,
			      ENTRY_BUDGET, &rule) == ENTRY_FITS)
			return accept(p, return_avma, &rule);
	}
	if (!call.by_pointer || (slot_avma + 8) % 16 ||
	    (!wp_proof_ends_thread(p, return_avma) && !*left))
		return false;
	*left -= *left > 0;
	return try_starts(p, (struct starts){ .slot_avma = slot_avma },
			  &rule) &&
	       accept(p, return_avma, &rule);
}

/* Where no way leads to a return, for the function ends the thread: prove a word
 * of the stack. */
static bool scan_stack(struct wp_proof *p)
{
	unsigned int left = SCAN_ENTRIES;

	for (unsigned int n = 0; n < p->nwords && p->budget; n++)
		if (prove_word(p, p->sp_avma + 8 * (uint64_t)n, p->words[n],
			       &left))
			return true;
	return false;
}

/* Prove the return address of a PLT stub, whose function cannot be followed. */
static bool prove_stub(struct wp_proof *p)
{
	struct wp_proof_rule rule = { 0 };
	uint64_t return_avma, sp_avma;
	struct wp_proof_call call;

	if (p->step->is_return ||
	    !wp_arch_find_plt_return(p->step, &return_avma, &sp_avma))
		return false;
	call = wp_proof_find_call(p, return_avma);
	if (!call.target_avma || call.target_avma > p->pc_avma ||
	    p->pc_avma - call.target_avma >= PLT_STUB_MAX)
		return false;
	rule.off = (int32_t)(sp_avma - 8 - p->sp_avma);
	memset(rule.where, WP_PROOF_KEPT, sizeof(rule.where));
	return accept(p, return_avma, &rule);
}

/* Does the code from the pc on say that rbp is not the frame's own there: not yet,
 * or not any more? */
static bool has_no_fp(const struct wp_proof *p)
{
	for (unsigned int i = 0; i < p->exits.len; i++)
		if (returns_straight(p, &p->exits.v[i]) &&
		    !p->exits.v[i].rule.by_fp)
			return true;
	return p->exits.sets_fp;
}

void wp_proof_find_fp(struct wp_proof *p)
{
	const struct starts starts = { .slot_avma = p->fp_avma + FP_TO_RETURN,
				       .by_fp = true };
	struct wp_proof_rule rule;

	/* Whatever the search for a proof has left. */
	if (p->budget < FP_BUDGET)
		p->budget = FP_BUDGET;
	p->exits.has_set_fp = p->has_fp && !has_no_fp(p) &&
			      try_starts(p, starts, &rule);
}

void wp_proof_find_bare(struct wp_proof *p)
{
	const struct starts starts = { .slot_avma = p->sp_avma };
	struct wp_proof_rule rule;

	p->exits.is_bare = try_starts(p, starts, &rule) && !rule.by_fp;
}

bool wp_proof_search(struct wp_proof *p)
{
	for (unsigned int i = 0; i < p->exits.len; i++)
		if (prove_exit(p, &p->exits.v[i]))
			return true;
	return prove_stub(p) || scan_stack(p);
}

#endif
