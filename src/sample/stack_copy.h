/* SPDX-License-Identifier: Apache-2.0 */
/* stack_copy.h - the memory that a walk reads.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * One system call copies the stack from sp up; the walk then reads the copy.
 * What is not in it is read from the live target while the thread is known to
 * stand still (LIVE), and is otherwise missing, be it more of the stack or another
 * stack.  Code and what else files hold is read as it is needed.
 */
#ifndef WP_STACK_COPY_H
#define WP_STACK_COPY_H

#include "address_space.h"
#include "wallprof/types.h"

enum {
	/* The psABI lets leaf functions use this much below sp. */
	WP_RED_ZONE = 128,
	WP_COPY_MAX = 8 << 20,
};

struct wp_stack_copy {
	/* Whose stack was copied last; borrowed. */
	const struct wp_address_space *space;
	/* Reserved memory of WP_COPY_MAX bytes, owned. */
	uint8_t *buf;
	/* buf[0..len) is the target's memory at START. */
	uint64_t start_avma;
	size_t len;
	/* End of the region that START is in. */
	uint64_t region_end_avma;
	/* The thread cannot move: missing parts may be read. */
	bool live;
	/* Set by reads: the stack goes on past the copy; another stack was
	 * wanted. */
	bool beyond;
	bool elsewhere;
};

/* 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_stack_copy_init(struct wp_stack_copy *copy);
void wp_stack_copy_clear(struct wp_stack_copy *copy);

/* Copy from SP in SPACE (less the red zone) up to LEN bytes or WP_COPY_MAX, not
 * past the end of the stack's region.  Bytes copied, 0 when nothing could be
 * read, or -errno. */
ssize_t wp_stack_copy_take(struct wp_stack_copy *copy,
			   const struct wp_address_space *space,
			   uint64_t sp_avma, size_t len);

/* Let COPY be DATA[0..len), which the kernel copied from SP in SPACE. */
void wp_stack_copy_set(struct wp_stack_copy *copy,
		       const struct wp_address_space *space, uint64_t sp_avma,
		       const void *data, size_t len);

/* A reader of COPY, borrowed. */
struct wp_mem wp_stack_copy_mem(struct wp_stack_copy *copy);

#endif
