/* SPDX-License-Identifier: Apache-2.0 */
/* prover.h - steps from files without unwind info, by proofs that are cached.
 *
 * Layer: unwind.  Private to unwind/.
 */
#ifndef WP_PROVER_H
#define WP_PROVER_H

#include "arch.h"

struct wp_prover;

/* Returns a prover that counts its searches in STATS, which is borrowed, and
 * that the caller frees.  NULL: no memory, or a machine whose code this module
 * cannot follow. */
struct wp_prover *wp_prover_new(struct wp_unwind_stats *stats);
/* Accepts NULL. */
void wp_prover_free(struct wp_prover *prover);

/* Make a step from a pc in a module, where proof.h has a proof for it, or where
 * the pc's code speaks for the frame pointer, or not against it: see
 * frame_pointer.h.  MODULES tells code from data.
 *
 * Other results: WP_STEP_ROOT, the frame is the first of its thread;
 * WP_STEP_NO_INFO, no step is certain; WP_STEP_UNKNOWN_REG, one needs the frame
 * pointer, which is not known; WP_STEP_TOO_SLOW, only a search can tell, and the
 * thread is stopped; as wp_step_read.
 */
enum wp_step_result wp_prover_step(struct wp_prover *prover,
				   struct wp_step *step,
				   const struct wp_unwind_modules *modules);

#endif
