/* SPDX-License-Identifier: Apache-2.0 */
/* proof_rule.c - see proof_rule.h. */
#include "proof_rule.h"

#if defined(__x86_64__)

#include <string.h>

enum {
	/* Frames of libraries without unwind info are smaller. */
	FRAME_MAX = 1 << 20,
	/* Its index in wp_kept_regs. */
	RBP = 1,
};

/* Let RET say where the return address of S, which is at a return, is.  A word of the
 * frame is at *RET_BASE plus an offset that is less than *RET_OFF, the return
 * address's. */
static bool find_slot(const struct wp_flow_state *s, struct wp_proof_rule *ret,
		      uint8_t *ret_base, int32_t *ret_off)
{
	uint8_t base = s->base[WP_RSP];
	int64_t off = s->off[WP_RSP];

	memset(ret, 0, sizeof(*ret));
	if (off < 0 || off > FRAME_MAX)
		return false;
	*ret_off = (int32_t)off;
	*ret_base = WP_BASE_AT_WORD;
	if (base == WP_BASE_WORD) {
		ret->by_word = true;
		ret->past_word = (int32_t)off;
		base = s->word_base;
		off = s->word_off;
	} else {
		*ret_base = base == WP_BASE_FP ? WP_BASE_AT_FP : WP_BASE_AT_SP;
	}
	ret->by_fp = base == WP_BASE_FP;
	ret->off = (int32_t)off;
	return (ret->by_fp || base == WP_BASE_SP) && off >= 0 &&
	       off <= FRAME_MAX;
}

bool wp_proof_rule_of_exit(const struct wp_flow_state *s,
			   struct wp_proof_rule *ret)
{
	int32_t slot_off;
	uint8_t base;

	if (!find_slot(s, ret, &base, &slot_off))
		return false;
	for (unsigned int i = 0; i < WP_NKEPT; i++) {
		unsigned int r = wp_kept_regs[i];

		if (s->base[r] == WP_BASE_REG + r && !s->off[r]) {
			ret->where[i] = WP_PROOF_KEPT;
		} else if (!(s->stored >> i & 1) && s->base[r] == base &&
			   s->off[r] < slot_off &&
			   s->off[r] >=
				   (base == WP_BASE_AT_FP ? -FRAME_MAX : 0)) {
			ret->where[i] = WP_PROOF_SLOT;
			ret->rel[i] = (int32_t)s->off[r] - slot_off;
		}
	}
	return true;
}

bool wp_proof_rule_of_prologue(const struct wp_flow_state *s,
			       struct wp_proof_rule *ret)
{
	bool was_pushed = !(s->saved >> RBP & 1) && !s->off[WP_RBP];
	bool is_pushed = s->saved >> RBP & 1 &&
			 s->saved_off[RBP] == s->off[WP_RBP];

	/* push %rbp; mov %rsp,%rbp. */
	if (s->base[WP_RBP] != WP_BASE_SP || (!was_pushed && !is_pushed) ||
	    s->off[WP_RBP] < -8 || s->off[WP_RBP] > FRAME_MAX)
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->off = (int32_t)s->off[WP_RBP] + 8;
	ret->where[RBP] = is_pushed ? WP_PROOF_KEPT : WP_PROOF_SLOT;
	ret->rel[RBP] = is_pushed ? 0 : -8;
	return true;
}

bool wp_proof_rule_of_entry(const struct wp_flow_state *s,
			    struct wp_proof_rule *ret)
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
			ret->where[i] = WP_PROOF_SLOT;
			ret->rel[i] = (int32_t)s->saved_off[i];
		} else if (s->base[kept] == WP_BASE_REG + kept &&
			   !s->off[kept]) {
			ret->where[i] = WP_PROOF_KEPT;
		}
	}
	return true;
}

bool wp_proof_rule_merge(struct wp_proof_rule *ret,
			 const struct wp_proof_rule *a,
			 const struct wp_proof_rule *b)
{
	*ret = *b;
	for (unsigned int i = 0; i < WP_NKEPT; i++) {
		if (a->where[i] == WP_PROOF_LOST)
			continue;
		if (b->where[i] != WP_PROOF_LOST &&
		    (a->where[i] != b->where[i] || a->rel[i] != b->rel[i]))
			return false;
		ret->where[i] = a->where[i];
		ret->rel[i] = a->rel[i];
	}
	return true;
}

#endif
