/* SPDX-License-Identifier: Apache-2.0 */
/* prover.c - see prover.h. */
#include "prover.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)

#include "proof.h"
#include "wallprof/hash.h"

enum {
	/* Instructions followed for one frame. */
	BUDGET = 12000,
	/* Slots of GOTs read for one frame. */
	READS_MAX = 64,
	/* Words of the stack looked at, and read at once. */
	SCAN_WORDS = 512,
	SCAN_STEP = 64,

	CACHE_BITS = 8,
	CACHE_WAYS = 4,

	DW_RBX = 3,
	DW_R12 = 12,
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

/* A frame for which there was no proof. */
struct refused {
	/* As in struct proven. */
	uint64_t key;
	uint64_t generation;
	/* Hash of what the search depended on. */
	uint64_t fingerprint;
	/* What the step came to, enum wp_step_result. */
	uint8_t result;
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
	struct refused refused[1 << CACHE_BITS];
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

/* Read the stack from sp on, as far as it goes, into P's words. */
static void read_words(struct wp_prover *prover, struct wp_proof *p)
{
	const struct wp_mem *mem = p->step->mem;
	unsigned int got = SCAN_STEP;

	p->words = prover->words;
	for (p->nwords = 0; p->nwords < SCAN_WORDS && got == SCAN_STEP;
	     p->nwords += got) {
		/* The stack may end before. */
		while (got &&
		       mem->read(mem->ctx, p->sp_avma + 8 * (uint64_t)p->nwords,
				 prover->words + p->nwords, 8 * (size_t)got))
			got /= 2;
	}
}

/* A hash of what P's proof depends on: the frame pointer, and those of its words
 * that may be return addresses. */
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

/* True, and P has the rule, if one was proven for KEY before and the stack has the
 * same return address in its place. */
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

/* Make STEP by P's rule. */
static enum wp_step_result make_step(struct wp_proof *p, struct wp_step *step)
{
	const struct wp_proof_rule *rule = &p->rule;
	struct wp_regs *regs = step->regs;
	uint64_t slot_avma, val;

	if (!wp_proof_slot(p, rule, &slot_avma))
		return WP_STEP_NO_INFO;
	regs->known &= WP_ARCH_CALLEE_SAVED;
	for (unsigned int i = 0; i < WP_NKEPT; i++) {
		unsigned int reg = kept_dwarf[i];

		if (rule->where[i] == WP_PROOF_KEPT)
			continue;
		if (rule->where[i] == WP_PROOF_SLOT &&
		    wp_mem_u64(step->mem,
			       slot_avma + (uint64_t)(int64_t)rule->rel[i],
			       &val))
			wp_reg_set(regs, reg, val);
		else
			regs->known &= ~(UINT64_C(1) << reg);
	}
	wp_reg_set(regs, WP_REG_PC, p->return_avma);
	wp_reg_set(regs, WP_REG_SP, slot_avma + 8);
	step->cfa_avma = slot_avma + 8;
	return WP_STEP_OK;
}

/* Search for a proof, unless the same search has failed before.  WP_STEP_OK, or
 * why there is none. */
static enum wp_step_result search(struct wp_prover *prover, struct wp_proof *p,
				  uint64_t key)
{
	struct refused *r =
		&prover->refused[wp_hash_u64(key) >> (64 - CACHE_BITS)];
	uint64_t print;

	read_words(prover, p);
	print = fingerprint(p);
	if (r->key == key && r->generation == p->modules->generation &&
	    r->fingerprint == print)
		return r->result;
	prover->stats->proofs++;
	if (wp_proof_search(p)) {
		remember(prover, p, key);
		return WP_STEP_OK;
	}
	*r = (struct refused){ key, p->modules->generation, print,
			       p->wanted_fp ? WP_STEP_UNKNOWN_REG :
					      WP_STEP_NO_INFO };
	return r->result;
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
	enum wp_step_result result;

	if (recall(prover, &p, key))
		return make_step(&p, step);
	wp_flow_open(p.flow, modules, step->mem, READS_MAX);
	if (step->is_return && wp_proof_is_first_frame(&p))
		return WP_STEP_ROOT;
	if (step->in_stop)
		return WP_STEP_TOO_SLOW;
	result = search(prover, &p, key);
	return result == WP_STEP_OK ? make_step(&p, step) : result;
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
