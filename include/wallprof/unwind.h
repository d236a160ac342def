/* SPDX-License-Identifier: Apache-2.0 */
/* unwind.h - recover return addresses from a stack.
 *
 * Layer: unwind.  Pure computation over registers, a module list and a read
 * callback: knows no pid, file system, clock or symbol.
 *
 * A walk in steady state (every pc met before) allocates nothing.
 */
#ifndef WP_UNWIND_H
#define WP_UNWIND_H

#include "wallprof/elf_image.h"
#include "wallprof/err.h"
#include "wallprof/types.h"

/* One executable mapping of the target. */
struct wp_unwind_module {
	/* Range is START <= pc < END. */
	uint64_t start_avma;
	uint64_t end_avma;
	/* avma - svma. */
	uint64_t bias;
	/* What frames in it carry as their mapping. */
	uint32_t mapping;
	/* Borrowed for as long as an unwinder has seen the module; NULL: no
	 * ELF file (JIT code), frame pointers only. */
	struct wp_elf_image *image;
};

/* Sorted by start_avma, not overlapping: v[0..len), borrowed. */
struct wp_unwind_modules {
	const struct wp_unwind_module *v;
	size_t len;
	/* Changes whenever v does, never repeats; caches obey it. */
	uint64_t generation;
};

/* The module that holds AVMA, or NULL. */
const struct wp_unwind_module *
wp_unwind_find_module(const struct wp_unwind_modules *modules, uint64_t avma);

/* Which rules make a step. */
enum wp_unwind_backend {
	/* Our CFI rows; what they cannot do is asked of libunwind. */
	WP_UNWIND_ROWS,
	/* libunwind for every step: the reference. */
	WP_UNWIND_LIBUNWIND,
};

/* What a walk may take time for. */
enum wp_unwind_pace {
	WP_UNWIND_THOROUGH,
	/* The thread stays stopped until the walk has ended.  A step that needs
	 * a search not made before (the proof of a frame without unwind info,
	 * an index of a file that has none) ends it with WP_END_TOO_SLOW.  A
	 * thorough walk over the same frame makes that search for good. */
	WP_UNWIND_IN_STOP,
};

struct wp_unwinder;

/* What the walks did, summed since the unwinder was made. */
struct wp_unwind_stats {
	uint64_t walks;
	uint64_t frames;
	/* Steps by frame pointer or byte pattern. */
	uint64_t guessed;
	/* Searches for the proof of a frame without unwind info. */
	uint64_t proofs;
	/* Steps that the rows could not do and libunwind did. */
	uint64_t fallbacks;
	/* Steps whose rule was at hand, and was not. */
	uint64_t cache_hits;
	uint64_t cache_misses;
};

/* Returns 0 and an unwinder that the caller frees, or -ENOMEM. */
WP_MUST_CHECK
int wp_unwinder_new(struct wp_unwinder **ret, enum wp_unwind_backend backend);

/* Accepts NULL. */
void wp_unwinder_free(struct wp_unwinder *unwinder);

/* Walk one stack, innermost frame first.
 *
 * REGS are the thread's, some of them perhaps not known; pc and sp must be.
 * On return STACK->frames[0..depth) is filled: frames[0] is the pc itself,
 * the rest return addresses (WP_FRAME_RETURN), except the frame under a
 * signal trampoline, whose pc is exact.  STACK->end says why the walk ended;
 * the frames found until then are always kept.  WP_END_UNKNOWN_REG: a step
 * needed a register that is not known.  MEM may fail for any address; the walk
 * then ends with WP_END_UNREADABLE, _BEYOND_COPY or _OTHER_STACK, as MEM says.
 *
 * A code address in no module, or in one without unwind info, is passed by
 * frame pointer only where that can be verified (the return address follows a
 * call instruction inside a module, the frame lies above the last one), and
 * such frames are marked WP_FRAME_GUESSED.
 */
void wp_unwind_walk(struct wp_unwinder *unwinder,
		    const struct wp_unwind_modules *modules,
		    const struct wp_regs *regs, const struct wp_mem *mem,
		    enum wp_unwind_pace pace, struct wp_stack *stack);

/* Counters so far; borrowed until the next walk. */
const struct wp_unwind_stats *
wp_unwinder_stats(const struct wp_unwinder *unwinder);

#endif
