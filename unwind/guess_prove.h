/* SPDX-License-Identifier: Apache-2.0 */
/* guess_prove.h - the caller of a frame in a file without unwind info, proven
 * by the code around the pc, the stack and the call that led there.
 *
 * Layer: unwind.  Private to unwind/.
 */
#ifndef WP_GUESS_PROVE_H
#define WP_GUESS_PROVE_H

#include "arch.h"

struct wp_prover;

/* Returns a prover that counts its searches in STATS, which is borrowed, and
 * that the caller frees.  NULL: no memory, or a machine whose code this module
 * cannot follow. */
struct wp_prover *wp_prover_new(struct wp_unwind_stats *stats);
/* Accepts NULL. */
void wp_prover_free(struct wp_prover *prover);

/* A step from a pc in a module that has an image.
 *
 * Accepted is a return address only where two of three agree on its place to
 * the byte: the ways from the pc to a return, the ways to the pc from what the
 * call before the return address calls, and (where that is not known, the call
 * being by pointer, or what it calls jumping on by pointer) the ways to the pc
 * from where a function seems to begin.
 * WP_STEP_NO_INFO where there is no proof; WP_STEP_UNKNOWN_REG where it needs
 * the frame pointer, which is not known; WP_STEP_TOO_SLOW where only a search,
 * which may take a millisecond, can tell, and the thread is stopped.  MODULES:
 * see wp_step_guess.
 */
enum wp_step_result wp_prove_step(struct wp_prover *prover,
				  struct wp_step *step,
				  const struct wp_unwind_modules *modules);

#endif
