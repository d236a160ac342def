/* SPDX-License-Identifier: Apache-2.0 */
/* prover.c - see prover.h. */
#include "prover.h"

#include <string.h>

#if defined(__x86_64__)

#include "frame_pointer.h"
#include "proof.h"
#include "wallprof/hash.h"
#include "wallprof/pages.h"

enum {
	/* Instructions followed for one frame. */
	BUDGET = 48000,
	/* Of these, for one step of an expression. */
	INSNS_PER_WORK = 16,
	/* Slots of GOTs read for one frame. */
	READS_MAX = 64,
	/* Words of the stack looked at, and read at once. */
	SCAN_WORDS = 512,
	SCAN_STEP = 64,

	CACHE_BITS = 8,
	CACHE_WAYS = 4,
	UNPROVEN_BITS = 12,

	/* A frame pointer is so far below the return address. */
	FP_TO_RETURN = 8,
	/* Bytes of code that tell it from what was there before. */
	CODE_LEN = 16,

	DW_RBX = 3,
	DW_R12 = 12,
	/* The index of rbp. */
	KEPT_FP = 1,
};

/* DWARF numbers of the kept registers, as wp_kept_regs has them. */
static const uint8_t kept_dwarf[WP_NKEPT] = { DW_RBX, WP_REG_FP, DW_R12,
					      13,     14,	 15 };

/* A rule that was proven for a pc and a return address. */
struct proven {
	/* Twice the pc, plus 1 if the pc is a return address itself; 0: the
	 * entry is free. */
	uint64_t key;
	/* Of the modules. */
	uint64_t generation;
	uint64_t return_avma;
	struct wp_proof_rule rule;
};

/* A pc for which there was no proof, and what its code says all the same. */
struct unproven {
	/* As in struct proven. */
	uint64_t key;
	uint64_t generation;
	/* Of the code of a module without a file, which may change; else 0. */
	uint64_t code_hash;
	/* Hash of what the search depended on. */
	uint64_t fingerprint;
	struct wp_proof_exits exits;
	/* The search wanted the frame pointer, which was not known. */
	bool wanted_fp;
};

struct wp_prover {
	/* Borrowed. */
	struct wp_unwind_stats *stats;
	struct wp_flow flow;
	/* Counts entries that were replaced. */
	unsigned int victim;
	/* The stack from sp on, for the proof being searched. */
	uint64_t words[SCAN_WORDS];
	struct proven cache[1 << CACHE_BITS][CACHE_WAYS];
	struct unproven unproven[1 << UNPROVEN_BITS];
};

struct wp_prover *wp_prover_new(struct wp_unwind_stats *stats)
{
	struct wp_prover *prover = wp_pages_new(sizeof(*prover));

	if (prover)
		prover->stats = stats;
	return prover;
}

void wp_prover_free(struct wp_prover *prover)
{
	wp_pages_free(prover, sizeof(*prover));
}

/* Read the stack from sp on, as far as it goes, into P's words. */
static void read_words(struct wp_prover *prover, struct wp_proof *p)
{
	const struct wp_mem *mem = p->step->mem;
	unsigned int got = SCAN_STEP;

	p->words = prover->words;
	for (p->nwords = 0; p->nwords < SCAN_WORDS && got; p->nwords += got) {
		/* The stack may end before. */
		while (got &&
		       mem->read(mem->ctx, p->sp_avma + 8 * (uint64_t)p->nwords,
				 prover->words + p->nwords, 8 * (size_t)got))
			got /= 2;
	}
}

/* A hash of what P's proof depends on: the frame pointer, and those of its
 * words that may be return addresses. */
static uint64_t fingerprint(const struct wp_proof *p)
{
	const struct wp_unwind_modules *m = p->modules;
	uint64_t low = m->len ? m->v[0].start_avma : 0;
	uint64_t high = m->len ? m->v[m->len - 1].end_avma : 0;
	uint64_t hash = p->has_fp ? p->fp_avma - p->sp_avma : 1;

	for (unsigned int n = 0; n < p->nwords; n++)
		if (p->words[n] - low <= high - low &&
		    wp_unwind_find_module(m, p->words[n] - 1))
			hash = wp_hash_u64(hash ^ p->words[n]) + n;
	return hash;
}

static struct proven *set_of(struct wp_prover *prover, uint64_t key)
{
	return prover->cache[wp_hash_u64(key) >> (64 - CACHE_BITS)];
}

/* True, and P has the rule, if one was proven for KEY before and the stack has
 * the same return address in its place. */
static bool recall(struct wp_prover *prover, struct wp_proof *p, uint64_t key)
{
	const struct proven *set = set_of(prover, key);

	for (unsigned int i = 0; i < CACHE_WAYS; i++) {
		uint64_t slot_avma, return_avma;

		if (set[i].key == key &&
		    set[i].generation == p->modules->generation &&
		    wp_proof_slot(p, &set[i].rule, &slot_avma) &&
		    wp_mem_u64(p->step->mem, slot_avma, &return_avma) &&
		    return_avma == set[i].return_avma) {
			p->return_avma = return_avma;
			p->rule = set[i].rule;
			return true;
		}
	}
	return false;
}

static void remember(struct wp_prover *prover, const struct wp_proof *p,
		     uint64_t key)
{
	struct proven *set = set_of(prover, key);
	unsigned int i = 0;

	while (i < CACHE_WAYS && set[i].key)
		i++;
	if (i == CACHE_WAYS)
		i = prover->victim++ % CACHE_WAYS;
	set[i] = (struct proven){ key, p->modules->generation, p->return_avma,
				  p->rule };
}

/* Is kept register I rbp, and the frame's own: right below the return address
 * in SLOT?  No caller's points there, so the caller's is the word that it
 * points to. */
static bool is_own_fp(const struct wp_proof *p, unsigned int i,
		      uint64_t slot_avma)
{
	return i == KEPT_FP && p->has_fp &&
	       p->fp_avma == slot_avma - FP_TO_RETURN;
}

/* Make STEP by RULE, which leads to RETURN_AVMA. */
static enum wp_step_result make_step(struct wp_proof *p, struct wp_step *step,
				     const struct wp_proof_rule *rule,
				     uint64_t return_avma)
{
	struct wp_regs *regs = step->regs;
	uint64_t slot_avma, val;

	if (!wp_proof_slot(p, rule, &slot_avma))
		return WP_STEP_NO_INFO;
	regs->known &= WP_ARCH_CALLEE_SAVED;
	for (unsigned int i = 0; i < WP_NKEPT; i++) {
		unsigned int reg = kept_dwarf[i];
		bool is_own = is_own_fp(p, i, slot_avma);
		int32_t rel = is_own ? -FP_TO_RETURN : rule->rel[i];

		/* Other registers than rbp a JIT compiler's code may change. */
		if (rule->where[i] == WP_PROOF_KEPT && !is_own &&
		    (step->module->image || reg == WP_REG_FP))
			continue;
		if ((rule->where[i] == WP_PROOF_SLOT || is_own) &&
		    wp_mem_u64(step->mem, slot_avma + (uint64_t)(int64_t)rel,
			       &val))
			wp_reg_set(regs, reg, val);
		else
			regs->known &= ~(UINT64_C(1) << reg);
	}
	wp_reg_set(regs, WP_REG_PC, return_avma);
	wp_reg_set(regs, WP_REG_SP, slot_avma + 8);
	step->cfa_avma = slot_avma + 8;
	return WP_STEP_OK;
}

static uint64_t hash_code(const struct wp_proof *p)
{
	uint64_t code[CODE_LEN / 8];

	if (p->step->module->image ||
	    wp_code_read(p->step->module, p->step->mem, p->pc_avma, code,
			 sizeof(code)))
		return 0;
	return wp_hash_u64(code[0] ^ wp_hash_u64(code[1]));
}

/* What is known of KEY, whose code has CODE_HASH; NULL: it was not searched
 * for. */
static struct unproven *find_unproven(struct wp_prover *prover,
				      const struct wp_proof *p, uint64_t key,
				      uint64_t code_hash)
{
	struct unproven *u =
		&prover->unproven[wp_hash_u64(key) >> (64 - UNPROVEN_BITS)];

	return u->key == key && u->generation == p->modules->generation &&
			       u->code_hash == code_hash ?
		       u :
		       NULL;
}

/* Does EXIT tear down the frame that rbp points to, or come to a return address
 * that is right above where rbp points? */
static bool is_by_fp(const struct wp_proof *p, const struct wp_proof_exit *exit)
{
	if (exit->is_lost || exit->rule.by_word)
		return false;
	if (exit->rule.by_fp)
		return exit->rule.off == FP_TO_RETURN;
	return p->has_fp && p->sp_avma + (uint64_t)exit->rule.off ==
				    p->fp_avma + FP_TO_RETURN;
}

/* Read the word in rbp's home: WP_STEP_UNKNOWN_REG, or as wp_step_read. */
static enum wp_step_result read_home(const struct wp_proof *p,
				     const struct wp_proof_exits *exits,
				     uint64_t *ret)
{
	const struct wp_regs *regs = p->step->regs;

	for (unsigned int i = 0; i < WP_NKEPT; i++)
		if (wp_kept_regs[i] == exits->home_reg &&
		    wp_reg_known(regs, kept_dwarf[i]))
			return wp_step_read(
				p->step,
				regs->v[kept_dwarf[i]] +
					(uint64_t)(int64_t)exits->home_off,
				ret, sizeof(*ret));
	return WP_STEP_UNKNOWN_REG;
}

/* Is rbp what EXITS take it for: the word in its home, if it has one? */
static bool is_at_home(const struct wp_proof *p,
		       const struct wp_proof_exits *exits)
{
	uint64_t home;

	return !exits->home_reg ||
	       (p->has_fp && read_home(p, exits, &home) == WP_STEP_OK &&
		home == p->fp_avma);
}

/* Is rbp the frame's own at P's pc, out of which EXITS lead? */
static bool is_certain(const struct wp_proof *p,
		       const struct wp_proof_exits *exits)
{
	if (!is_at_home(p, exits))
		return false;
	if (exits->has_set_fp ||
	    (exits->fp_use &&
	     p->fp_avma - p->sp_avma >= (uint64_t) - (int64_t)exits->fp_use))
		return true;
	for (unsigned int i = 0; i < exits->len; i++)
		if (is_by_fp(p, &exits->v[i]))
			return true;
	return false;
}

/* True, and *RET, if RULE leads P to what may be a return address. */
static bool find_return(struct wp_proof *p, const struct wp_proof_rule *rule,
			uint64_t *ret_slot_avma, uint64_t *ret)
{
	return wp_proof_slot(p, rule, ret_slot_avma) &&
	       wp_mem_u64(p->step->mem, *ret_slot_avma, ret) &&
	       wp_frame_pointer_may_return(p->modules, p->step->mem, *ret);
}

/* Make STEP, whose pc is exact, by EXIT where that passes nothing that could be
 * another function: it returns from here, or goes on by pointer with nothing on
 * the stack, or the function has just begun. */
static enum wp_step_result step_straight(struct wp_proof *p,
					 struct wp_step *step,
					 const struct wp_proof_exit *exit)
{
	const struct wp_proof_rule *rule = &exit->rule;
	uint64_t slot_avma, return_avma, fp_avma;

	if ((exit->past_call && !exit->is_prologue) ||
	    !find_return(p, rule, &slot_avma, &return_avma))
		return WP_STEP_NO_INFO;
	/* It is on the stack already and still in the register. */
	if (exit->is_prologue && rule->where[KEPT_FP] == WP_PROOF_SLOT &&
	    !(p->has_fp && wp_mem_u64(step->mem, slot_avma - 8, &fp_avma) &&
	      fp_avma == p->fp_avma))
		return WP_STEP_NO_INFO;
	return make_step(p, step, rule, return_avma);
}

/* Make STEP, whose pc is exact, by what its code says of ways OUT. */
static enum wp_step_result step_out(struct wp_proof *p, struct wp_step *step,
				    const struct wp_proof_exits *out)
{
	struct wp_proof_rule bare = { 0 };
	enum wp_step_result result;
	uint64_t slot_avma, return_avma;

	if (out->has_prologue) {
		result = step_straight(p, step, &out->prologue);
		if (result != WP_STEP_NO_INFO)
			return result;
	}
	for (unsigned int i = 0; i < out->len; i++) {
		result = step_straight(p, step, &out->v[i]);
		if (result != WP_STEP_NO_INFO)
			return result;
	}
	bare.where[KEPT_FP] = WP_PROOF_KEPT;
	if (out->is_bare && find_return(p, &bare, &slot_avma, &return_avma))
		return make_step(p, step, &bare, return_avma);
	return out->is_odd ? WP_STEP_NO_INFO :
			     wp_frame_pointer_step(step, p->modules, false);
}

/* Make STEP without a proof: U has what its code says. */
static enum wp_step_result step_unproven(struct wp_proof *p,
					 struct wp_step *step,
					 const struct unproven *u)
{
	uint64_t home;

	if (is_certain(p, &u->exits))
		return wp_frame_pointer_step(step, p->modules, true);
	if (u->exits.home_reg &&
	    wp_step_is_unread(read_home(p, &u->exits, &home)))
		return read_home(p, &u->exits, &home);
	if (!step->is_return)
		return step_out(p, step, &u->exits);
	return wp_frame_pointer_step(step, p->modules, false);
}

/* Search for a proof, unless the same search has failed before.  True, and P
 * has the rule, or false and *RET_UNPROVEN. */
static bool search(struct wp_prover *prover, struct wp_proof *p, uint64_t key,
		   uint64_t code_hash, const struct unproven **ret_unproven)
{
	struct unproven *u = find_unproven(prover, p, key, code_hash);
	bool is_foreign = !p->step->module->image;
	uint64_t print;

	*ret_unproven = u;
	/* Its frame pointer will do. */
	if (u && is_certain(p, &u->exits))
		return false;
	read_words(prover, p);
	print = fingerprint(p);
	if (u && u->fingerprint == print)
		return false;
	prover->stats->proofs++;
	wp_proof_find_exits(p);
	/* A compiler's own code keeps to its own rules, most often one for all
	 * frames. */
	if (is_foreign && !is_certain(p, &p->exits))
		wp_proof_find_fp(p);
	if (!(is_foreign && is_certain(p, &p->exits)) && !p->exits.home_reg &&
	    wp_proof_search(p)) {
		remember(prover, p, key);
		return true;
	}
	if (!is_foreign && !is_certain(p, &p->exits))
		wp_proof_find_fp(p);
	if (!p->step->is_return && !is_certain(p, &p->exits))
		wp_proof_find_bare(p);
	u = &prover->unproven[wp_hash_u64(key) >> (64 - UNPROVEN_BITS)];
	*u = (struct unproven){ key,	   p->modules->generation,
				code_hash, print,
				p->exits,  p->wanted_fp };
	*ret_unproven = u;
	return false;
}

enum wp_step_result wp_prover_step(struct wp_prover *prover,
				   struct wp_step *step,
				   const struct wp_unwind_modules *modules)
{
	const struct wp_regs *regs = step->regs;
	struct wp_proof p = {
		.flow = &prover->flow,
		.step = step,
		.modules = modules,
		.pc_avma = regs->v[WP_REG_PC],
		.sp_avma = regs->v[WP_REG_SP],
		.fp_avma = regs->v[WP_REG_FP],
		.has_fp = wp_reg_known(regs, WP_REG_FP),
		.budget = BUDGET,
	};
	uint64_t key = p.pc_avma << 1 | step->is_return;
	const struct unproven *u;
	uint64_t code_hash;
	bool is_proven;

	if (recall(prover, &p, key))
		return make_step(&p, step, &p.rule, p.return_avma);
	/* Its code would have to be read anew for each frame. */
	if (step->in_stop && !step->module->image)
		return WP_STEP_TOO_SLOW;
	wp_flow_open(p.flow, modules, step->mem, READS_MAX);
	if (step->module->image && wp_proof_is_first_frame(&p))
		return WP_STEP_ROOT;
	/* No frame's: makecontext(3) puts the start of a function there.  Its
	 * frame pointer, which a stop would tell, is nobody's either. */
	if (step->is_return && step->module->image &&
	    !wp_frame_pointer_may_return(modules, step->mem, p.pc_avma))
		return WP_STEP_NO_INFO;
	if (step->is_return && !step->module->image &&
	    wp_arch_resumes_frame(step->module, step->mem, p.pc_avma))
		return wp_frame_pointer_step(step, modules, true);
	if (step->is_return && !step->module->image && p.has_fp && !p.fp_avma &&
	    wp_proof_clears_fp(&p))
		return WP_STEP_ROOT;
	code_hash = hash_code(&p);
	if (step->in_stop) {
		u = find_unproven(prover, &p, key, code_hash);
		return u && is_certain(&p, &u->exits) ?
			       step_unproven(&p, step, u) :
			       WP_STEP_TOO_SLOW;
	}
	if (!wp_step_work(step, BUDGET / INSNS_PER_WORK))
		return WP_STEP_TOO_SLOW;
	is_proven = search(prover, &p, key, code_hash, &u);
	if (step->work)
		*step->work += p.budget / INSNS_PER_WORK;
	if (is_proven)
		return make_step(&p, step, &p.rule, p.return_avma);
	return u->wanted_fp && !p.has_fp ? WP_STEP_UNKNOWN_REG :
					   step_unproven(&p, step, u);
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

enum wp_step_result wp_prover_step(struct wp_prover *prover,
				   struct wp_step *step,
				   const struct wp_unwind_modules *modules)
{
	(void)prover;
	(void)step;
	(void)modules;
	return WP_STEP_NO_INFO;
}

#endif
