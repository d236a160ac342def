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
	/* Its addresses: start_avma <= pc < end_avma. */
	uint64_t start_avma;
	uint64_t end_avma;
	/* avma - svma. */
	uint64_t bias;
	/* Id of the mapping, which its frames get. */
	uint32_t mapping;
	/* Its file; NULL: none (JIT code).  Borrowed until the unwinders that
	 * were given the module are freed. */
	struct wp_elf_image *image;
	/* Its file has not been opened so far: IMAGE and BIAS are not known. */
	bool is_unopened;
};

/* The executable mappings of a target, by address, not overlapping. */
struct wp_unwind_modules {
	/* v[0..len), borrowed. */
	const struct wp_unwind_module *v;
	size_t len;
	/* Another number for each content of v: what was cached for one
	 * generation does not hold for the next. */
	uint64_t generation;
	/* The process is of 32 bits: words of its stacks have 4 bytes.  Unwind info
	 * counts of files of the process's own width alone. */
	bool is_32bit;
	/* Opens the file of v[I], which is unopened, for good; NULL: none is. */
	void (*open)(void *ctx, size_t i);
	void *ctx;
};

/* The module that holds AVMA, or NULL.  Its file is opened if it has not been. */
const struct wp_unwind_module *
wp_unwind_find_module(const struct wp_unwind_modules *modules, uint64_t avma);

/* What makes the steps from frame to frame. */
enum wp_unwind_backend {
	/* Our own evaluation of CFI; libunwind where that cannot. */
	WP_UNWIND_ROWS,
	/* libunwind alone: the reference. */
	WP_UNWIND_LIBUNWIND,
};

/* How long a walk may take. */
enum wp_unwind_pace {
	/* As long as it takes, up to some hundredths of a second of expressions, CFI
	 * programs, proofs and tables that no program needs: past that it ends with
	 * WP_END_TOO_SLOW. */
	WP_UNWIND_THOROUGH,
	/* Microseconds: the thread stays stopped until the walk has ended.  A step that needs
	 * a search not made before (the proof of a frame without unwind info,
	 * an index of a file that has none, opening a file) ends it with
	 * WP_END_TOO_SLOW.  A
	 * thorough walk over the same frame makes that search for good. */
	WP_UNWIND_IN_STOP,
};

struct wp_unwinder;

/* Counts of what walks did since the unwinder was made. */
struct wp_unwind_stats {
	uint64_t walks;
	uint64_t frames;
	/* Steps by frame pointer or byte pattern. */
	uint64_t guessed;
	/* Searches for the proof of a frame without unwind info. */
	uint64_t proofs;
	/* Steps that the rows could not do and libunwind did. */
	uint64_t fallbacks;
	/* Steps whose rule was cached; was not. */
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
 * REGS are the thread's, of which pc and sp must be known.  Sets
 * STACK->frames[0..depth): frames[0] is the pc itself, the others are return
 * addresses (WP_FRAME_RETURN) but for the caller of a signal trampoline, whose pc
 * is exact.  STACK->end is why the walk ended; the frames found until then are
 * kept.  A step that needs a register which is not known ends it with
 * WP_END_UNKNOWN_REG; a step whose read of MEM fails with WP_END_UNREADABLE,
 * _BEYOND_COPY, _OTHER_STACK or _PROBED, as MEM says.
 *
 * From a pc in no module, or in one without unwind info, a step is made only
 * where it can be verified: by the code, or by a frame pointer where the return
 * address follows a call in a module and no frame can have been left out; its
 * frame is marked WP_FRAME_GUESSED.
 */
void wp_unwind_walk(struct wp_unwinder *unwinder,
		    const struct wp_unwind_modules *modules,
		    const struct wp_regs *regs, const struct wp_mem *mem,
		    enum wp_unwind_pace pace, struct wp_stack *stack);

/* The counts so far; borrowed until the unwinder is freed. */
const struct wp_unwind_stats *
wp_unwinder_stats(const struct wp_unwinder *unwinder);

#endif
