/* SPDX-License-Identifier: Apache-2.0 */
/* go_buckets.h - the books that Go's runtime keeps for its heap, block and
 * mutex profiles, read from a live program's memory.
 *
 * Layer: go.
 */
#ifndef WP_GO_BUCKETS_H
#define WP_GO_BUCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "wallprof/err.h"

struct wp_go_program;

/* By runtime/mprof.go, bucketType. */
enum wp_go_book {
	WP_GO_BOOK_HEAP = 1,
	WP_GO_BOOK_BLOCK,
	WP_GO_BOOK_MUTEX,
	WP_NGO_BOOKS,
};

/* What one stack has done. */
struct wp_go_bucket {
	/* pcs[first_pc..first_pc + npcs), innermost first: return addresses, of
	 * inlined calls as well (see wp_go_program_stack). */
	uint64_t first_pc;
	uint32_t npcs;
	/* HEAP: the objects' size; objects sampled and freed as of the last
	 * garbage collection that has ended, and their bytes. */
	uint64_t size;
	uint64_t alloc_objects, alloc_bytes;
	uint64_t free_objects, free_bytes;
	/* BLOCK, MUTEX: waits, and their time in ticks of the CPU's clock. */
	double waits;
	int64_t ticks;
};

struct wp_go_buckets {
	/* v[0..len), owned. */
	struct wp_go_bucket *v;
	uint32_t len, cap;
	/* pcs[0..npcs), owned. */
	uint64_t *pcs;
	uint64_t npcs, cap_pcs;
	/* Buckets that were not read, being malformed or too many for
	 * --max-memory. */
	uint64_t nunread;
	/* HEAP: a collection ended each time that they were read: they are of two
	 * moments. */
	bool is_mixed;
	/* What is taken of the budget. */
	uint64_t taken;
};

#define WP_GO_BUCKETS_INIT                                                     \
	{                                                                      \
		0                                                              \
	}

/* Add the buckets of BOOK to *RET, which the caller clears in any case.  0;
 * -ENODATA: the program has none; -ENOMEM, -EPERM, -ESRCH. */
WP_MUST_CHECK
int wp_go_buckets_read(struct wp_go_program *program, enum wp_go_book book,
		       struct wp_go_buckets *ret);

void wp_go_buckets_clear(struct wp_go_buckets *buckets);

/* Set *RET to runtime.MemProfileRate, by the code that uses it: bytes, of which 0 and
 * less sample nothing.  0; -ENOENT: it is not found. */
WP_MUST_CHECK
int wp_go_heap_rate(struct wp_go_program *program, int64_t *ret);

/* Make PCS[0..n), a bucket's, those of a stack of frames: without the pcs that stand
 * for the callers of inlined functions, without runtime.goexit, and for HIDES_RUNTIME
 * without the runtime's own functions on top, unless there are no others, as
 * runtime/pprof does.  Returns their number. */
uint32_t wp_go_program_stack(const struct wp_go_program *program, uint64_t *pcs,
			     uint32_t n, bool hides_runtime);

/* Ticks per second of the clock that Go's runtime counts waits by: on x86-64 of the TSC,
 * for which it sleeps for 20 ms; on aarch64 they are nanoseconds. */
double wp_go_ticks_per_second(void);

#endif
