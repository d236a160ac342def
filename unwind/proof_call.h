/* SPDX-License-Identifier: Apache-2.0 */
/* proof_call.h - what the code around a return address does.
 *
 * Layer: unwind.  Private to unwind/; x86-64.
 */
#ifndef WP_PROOF_CALL_H
#define WP_PROOF_CALL_H

#include "proof.h"

/* What the instruction before a return address calls. */
struct wp_proof_call {
	/* The called address; 0: not known, or the instruction is no call. */
	uint64_t target_avma;
	/* The call is by pointer, or the kernel's. */
	bool by_pointer;
};

/* What the instruction before RETURN_AVMA calls. */
struct wp_proof_call wp_proof_find_call(struct wp_proof *proof,
					uint64_t return_avma);

/* Does the code at RETURN_AVMA end the thread: the system call exit, inline? */
bool wp_proof_ends_thread(struct wp_proof *proof, uint64_t return_avma);

#endif
