/* SPDX-License-Identifier: Apache-2.0 */
/* step.h - one step, from a frame to its caller, and what can make it.
 *
 * Layer: unwind.  Private to unwind/.
 */
#ifndef WP_STEP_H
#define WP_STEP_H

#include "wallprof/unwind.h"

enum wp_step_result {
	/* The registers are the caller's now. */
	WP_STEP_OK,
	/* The frame is the first of its thread: it has no return address. */
	WP_STEP_ROOT,
	/* No unwind info covers the pc. */
	WP_STEP_NO_INFO,
	/* Unwind info covers the pc and is malformed, or of a kind that this
	 * back end does not handle. */
	WP_STEP_BAD_INFO,
	/* A register is needed whose value is not known. */
	WP_STEP_UNKNOWN_REG,
	/* The step takes too long for a thread that is stopped, or the walk has used up
	 * what it may do. */
	WP_STEP_TOO_SLOW,
	/* Memory is needed that cannot be read: see enum wp_mem_result. */
	WP_STEP_UNREADABLE,
	WP_STEP_BEYOND_COPY,
	WP_STEP_OTHER_STACK,
	WP_STEP_PROBED,
};

struct wp_step {
	/* The module that holds the pc; a back end needs one with an image. */
	const struct wp_unwind_module *module;
	/* In: the frame's registers.  Out, on WP_STEP_OK alone: its caller's, of
	 * which caller-saved registers, and those whose place is not known, are
	 * not known. */
	struct wp_regs *regs;
	const struct wp_mem *mem;
	/* The process is of 32 bits: as wide are a register and a word of the
	 * stack. */
	bool is_32bit;
	/* The pc is a return address: rules are looked up at pc - 1. */
	bool is_return;
	/* The thread stays stopped until the step is made: WP_STEP_TOO_SLOW
	 * rather than a search. */
	bool in_stop;
	/* How much the walk may do yet, in steps of an expression; borrowed.  NULL: as
	 * much as it takes. */
	uint32_t *work;
	/* Out: the CFA of the frame (x86-64: the caller's sp). */
	uint64_t cfa_avma;
	/* Out: the frame's code is a signal trampoline ('S' augmentation): the
	 * caller's pc is exact, not a return address. */
	bool is_signal;
	/* Out: the caller did not call the frame's code, a signal handler did in
	 * its name: its pc is exact as well. */
	bool is_injected;
	/* Out: the frame is on another stack than its caller. */
	bool is_switch;
};

/* What a read of memory costs that is made for a step of an expression: it may be a
 * system call. */
enum { WP_STEP_READ_WORK = 8 };

/* Take N of what STEP's walk may do.  False: so much is not left. */
static inline bool wp_step_work(const struct wp_step *step, uint32_t n)
{
	if (!step->work)
		return true;
	if (*step->work < n)
		return false;
	*step->work -= n;
	return true;
}

/* Read STEP's memory: WP_STEP_OK, _UNREADABLE, _BEYOND_COPY, _OTHER_STACK or
 * _PROBED, which are in the order of enum wp_mem_result. */
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

/* VAL as wide as STEP's registers are. */
static inline uint64_t wp_step_narrow(const struct wp_step *step, uint64_t val)
{
	return step->is_32bit ? (uint32_t)val : val;
}

/* Bytes of a word of STEP's stack. */
static inline uint8_t wp_step_word_size(const struct wp_step *step)
{
	return step->is_32bit ? 4 : 8;
}

/* Read STEP's word at AVMA: as wp_step_read. */
static inline enum wp_step_result wp_step_word(const struct wp_step *step,
					       uint64_t avma, uint64_t *ret)
{
	*ret = 0;
	/* Both supported machines are little-endian. */
	return wp_step_read(step, avma, ret, wp_step_word_size(step));
}

static inline bool wp_step_is_unread(enum wp_step_result result)
{
	return result >= WP_STEP_UNREADABLE;
}

/* A back end.  Its state is caches alone. */
struct wp_step_ops {
	/* Returns the back end's state, which counts in STATS (borrowed), or
	 * NULL: no memory. */
	void *(*open)(struct wp_unwind_stats *stats);
	/* SELF is not NULL. */
	void (*close)(void *self);
	/* Forget what is cached by address, for the modules have changed.  NULL:
	 * nothing is, but by image. */
	void (*flush)(void *self);
	enum wp_step_result (*step)(void *self, struct wp_step *step);
};

extern const struct wp_step_ops wp_step_rows;
extern const struct wp_step_ops wp_step_libunwind;

/* May STEP's thread be one just made, to which clone returned 0? */
static inline bool wp_step_may_be_new(const struct wp_step *step)
{
	return !wp_reg_known(step->regs, WP_REG_RESULT) ||
	       !step->regs->v[WP_REG_RESULT];
}

/* Has STEP's thread just been made, and is right behind clone, which returned 0 to it?
 * Where that is not known: the caller's stack has a return address, the new one has
 * none. */
bool wp_step_is_new_thread(const struct wp_step *step,
			   const struct wp_unwind_modules *modules);

struct wp_prover;

/* Make a step without unwind info, if it can be verified: see wp_unwind_walk.
 *
 * Signal trampolines are known by their bytes.  In a file's code PROVER finds the
 * step; in other code, or if PROVER is NULL, stubs (system calls, PLT) are known by
 * their bytes, and elsewhere the frame pointer is followed.  MODULES tells code
 * from data.  STEP's module may be NULL.  Results as of a back end;
 * WP_STEP_NO_INFO if no step can be verified.
 */
enum wp_step_result wp_step_guess(struct wp_prover *prover,
				  struct wp_step *step,
				  const struct wp_unwind_modules *modules);

#endif
