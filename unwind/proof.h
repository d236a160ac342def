/* SPDX-License-Identifier: Apache-2.0 */
/* proof.h - prove by its code where a frame's return address is.
 *
 * Layer: unwind.  Private to unwind/; x86-64.
 *
 * A return address is accepted only where two of three agree on its place to the
 * byte: the ways from the pc to a return; the ways to the pc from the function
 * that the call before the return address calls; and (where that function is not
 * known, the call being by pointer, or jumps on by pointer) the ways to the pc
 * from where a function seems to begin.
 */
#ifndef WP_PROOF_H
#define WP_PROOF_H

#include "flow.h"
#include "proof_rule.h"
#include "step.h"

enum { WP_PROOF_EXITS_MAX = 4 };

/* A way from the pc out of the function. */
struct wp_proof_exit {
	struct wp_proof_rule rule;
	/* It passes a call. */
	bool past_call;
	/* It sets up a frame pointer, and RULE is by where that is. */
	bool is_prologue;
	/* It ends in a jump to an address that is not known. */
	bool is_lost;
};

/* The ways from a pc out of its function, by the code alone. */
struct wp_proof_exits {
	struct wp_proof_exit v[WP_PROOF_EXITS_MAX];
	uint8_t len;
	/* A way returns from where the stack cannot be told. */
	bool is_odd;
	/* A way sets up a frame pointer before it calls anything, so none is there
	 * yet; and PROLOGUE, which says by that where the return address is, if
	 * it does it as functions do. */
	bool sets_fp;
	bool has_prologue;
	struct wp_proof_exit prologue;
	/* The code behind a call, and all code of no file, uses words by rbp down to
	 * this offset, 0: it does not.  A function that has called has a frame of its
	 * own, and no compiler of code as it runs has functions that use another's. */
	int32_t fp_use;
	/* See struct wp_flow: the ways above hold where the word at kept
	 * register HOME_REG + HOME_OFF is the frame pointer. */
	uint8_t home_reg;
	int32_t home_off;
	/* A way to the pc from where a function seems to begin comes with the
	 * frame pointer set up. */
	bool has_set_fp;
	/* One comes with nothing on the stack. */
	bool is_bare;
};

/* The search for the caller of one frame. */
struct wp_proof {
	/* Open; borrowed. */
	struct wp_flow *flow;
	const struct wp_step *step;
	const struct wp_unwind_modules *modules;
	uint64_t pc_avma;
	uint64_t sp_avma;
	/* Known if HAS_FP. */
	uint64_t fp_avma;
	bool has_fp;
	/* The stack from sp on, as far as it could be read: words[0..nwords),
	 * borrowed. */
	const uint64_t *words;
	unsigned int nwords;
	/* Instructions that may still be followed. */
	unsigned int budget;
	struct wp_proof_exits exits;
	/* Out: the frame pointer was needed and is not known. */
	bool wanted_fp;
	/* Out, where a proof was found. */
	uint64_t return_avma;
	struct wp_proof_rule rule;
};

/* Set PROOF's exits. */
void wp_proof_find_exits(struct wp_proof *proof);

/* Set the exits' has_set_fp, where the frame pointer is known. */
void wp_proof_find_fp(struct wp_proof *proof);

/* Set the exits' is_bare. */
void wp_proof_find_bare(struct wp_proof *proof);

/* Search for a proof by the exits that were found: true if there is one, then in
 * PROOF's last members.  Takes up to 1.4 ms. */
bool wp_proof_search(struct wp_proof *proof);

/* Does the code before the pc, a return address, clear rbp before the call?  So code
 * begins that has a stack of its own, where the frame pointer is 0 (psABI 3.4.1). */
bool wp_proof_clears_fp(struct wp_proof *proof);

/* True, and the address of the return address by RULE, if there can be one. */
bool wp_proof_slot(struct wp_proof *proof, const struct wp_proof_rule *rule,
		   uint64_t *ret_avma);

/* Is the frame the first of its thread: does the code that it returns to end the
 * thread, or is its pc in the first code of a program? */
bool wp_proof_is_first_frame(struct wp_proof *proof);

#endif
