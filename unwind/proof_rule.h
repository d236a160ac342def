/* SPDX-License-Identifier: Apache-2.0 */
/* proof_rule.h - how to get from a frame to its caller, by what its code does.
 *
 * Layer: unwind.  Private to unwind/; x86-64.
 */
#ifndef WP_PROOF_RULE_H
#define WP_PROOF_RULE_H

#include "flow_state.h"

/* Where a kept register of the caller is. */
enum wp_proof_where {
	WP_PROOF_LOST,
	/* In the register itself. */
	WP_PROOF_KEPT,
	/* In a word of the stack. */
	WP_PROOF_SLOT,
};

struct wp_proof_rule {
	/* The return address is at rsp, or with BY_FP rbp, plus OFF; with BY_WORD at
	 * the word there plus PAST_WORD. */
	int32_t off;
	bool by_fp;
	bool by_word;
	int32_t past_word;
	/* By kept register: enum wp_proof_where; and of a slot its offset from
	 * the return address's. */
	uint8_t where[WP_NKEPT];
	int32_t rel[WP_NKEPT];
};

/* STATE is at a return, where rsp points to the return address.  True, and the
 * rule of the place where the flow started, if there is one. */
bool wp_proof_rule_of_exit(const struct wp_flow_state *state,
			   struct wp_proof_rule *ret);

/* STATE is anywhere.  True, and the rule of the place where the flow started, if
 * a frame pointer was set up since: none was there before.  Where rbp is in its
 * slot, it was pushed before: it is in the register, too. */
bool wp_proof_rule_of_prologue(const struct wp_flow_state *state,
			       struct wp_proof_rule *ret);

/* The flow started where a function does.  True, and the rule of the place that
 * STATE is at, if there is one. */
bool wp_proof_rule_of_entry(const struct wp_flow_state *state,
			    struct wp_proof_rule *ret);

/* Let RET be B with what A knows of the kept registers: false if they differ. */
bool wp_proof_rule_merge(struct wp_proof_rule *ret,
			 const struct wp_proof_rule *a,
			 const struct wp_proof_rule *b);

#endif
