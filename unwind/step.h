/* SPDX-License-Identifier: Apache-2.0 */
/* step.h - what a back end of the unwinder must do: one step.
 *
 * Layer: unwind.  Private to unwind/.
 */
#ifndef WP_STEP_H
#define WP_STEP_H

#include "wallprof/unwind.h"

enum wp_step_result {
	/* REGS are the caller's now. */
	WP_STEP_OK,
	/* The return address is undefined: this was the first function. */
	WP_STEP_ROOT,
	/* No unwind info covers the pc. */
	WP_STEP_NO_INFO,
	/* There is info and it is malformed or beyond this back end. */
	WP_STEP_BAD_INFO,
	/* A register was needed whose value is not known. */
	WP_STEP_UNKNOWN_REG,
	/* It would take too long while the thread is stopped. */
	WP_STEP_TOO_SLOW,
	/* Memory that was needed could not be read: see enum wp_mem_result. */
	WP_STEP_UNREADABLE,
	WP_STEP_BEYOND_COPY,
	WP_STEP_OTHER_STACK,
};

struct wp_step {
	/* The module that holds the pc; has an image. */
	const struct wp_unwind_module *module;
	/* In: the frame's registers.  Out, on WP_STEP_OK only: its caller's;
	 * a callee-saved register of unknown place is not known; caller-saved
	 * ones are not known.  Unchanged on any other result. */
	struct wp_regs *regs;
	const struct wp_mem *mem;
	/* The pc is a return address: rules are looked up at pc - 1. */
	bool is_return;
	/* The thread is stopped until the step is made: nothing slow. */
	bool in_stop;
	/* Out: the CFA of the frame (x86-64: the caller's sp). */
	uint64_t cfa_avma;
	/* Out: the frame's own code is a signal trampoline ('S' augmentation),
	 * so the caller's pc is exact, not a return address. */
	bool is_signal;
	/* Out: the frame is on another stack than its caller. */
	bool is_switch;
};

/* Read STEP's memory: WP_STEP_OK, _UNREADABLE, _BEYOND_COPY or _OTHER_STACK,
 * which are in the order of enum wp_mem_result. */
static inline enum wp_step_result
wp_step_read(const struct wp_step *step, uint64_t avma, void *buf, size_t len)
{
	enum wp_mem_result result = step->mem->read(step->mem->ctx, avma, buf,
						    len);

	return result == WP_MEM_OK ?
		       WP_STEP_OK :
		       (enum wp_step_result)(WP_STEP_UNREADABLE +
					     (result - WP_MEM_UNREADABLE));
}

static inline bool wp_step_is_unread(enum wp_step_result result)
{
	return result >= WP_STEP_UNREADABLE;
}

/* One way to make steps.  Stateless but for caches. */
struct wp_step_ops {
	const char *name;
	/* Returns the back end's state or NULL (no memory). */
	void *(*open)(struct wp_unwind_stats *stats);
	/* Never called with NULL. */
	void (*close)(void *self);
	/* Called before the first step after MODULES has another generation:
	 * anything cached by address is stale.  Images stay valid. */
	void (*set_modules)(void *self,
			    const struct wp_unwind_modules *modules);
	enum wp_step_result (*step)(void *self, struct wp_step *step);
};

extern const struct wp_step_ops wp_step_rows;
extern const struct wp_step_ops wp_step_libunwind;

struct wp_prover;

/* A step without unwind info: a signal trampoline by its bytes; in a file's
 * code what PROVER proves (prover.h); in other code, or without PROVER, a
 * stub by its bytes (system call, PLT) and then the frame pointer.  Only what
 * can be verified: see wp_unwind_walk.  MODULES tells code from data.  Same
 * contract as step(), WP_STEP_NO_INFO when nothing can be verified; the module
 * may be NULL.
 */
enum wp_step_result wp_step_guess(struct wp_prover *prover,
				  struct wp_step *step,
				  const struct wp_unwind_modules *modules);

#endif
