/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_reader.h - reads goroutines with their stacks, a piece at a time.
 *
 * Layer: go.  Private to src/go/.
 */
#ifndef WP_GOROUTINE_READER_H
#define WP_GOROUTINE_READER_H

#include "go_program_priv.h"

/* A goroutine that is being read. */
struct wp_goroutine_reading {
	uint64_t avma;
	/* Its struct, before and after its stack was read. */
	uint8_t before[WP_GO_G_MAX];
	uint8_t after[WP_GO_G_MAX];
	/* SP_AVMA 0: there is no stack to read. */
	struct wp_goroutine_stack stack;
	/* Its place in the list of all. */
	uint32_t index;
	/* Not to be read again: it was given to the user, or has ended. */
	bool is_done;
	/* The stack is not whole within STACK_MAX. */
	bool is_deep;
};

struct wp_goroutine_reader {
	/* Borrowed. */
	struct wp_go_program *program;
	/* Borrowed for the call that reads. */
	const struct wp_goroutine_user *user;
	struct wp_goroutines *all;
	/* v[0..PIECE), owned, with room for their ranges. */
	struct wp_goroutine_reading *v;
	struct wp_process_range *ranges;
	uint32_t *of_range;
	/* Copies of the stacks of a piece, owned. */
	uint8_t *stacks;
	size_t stacks_cap;
	/* The budget has no room for more. */
	bool is_full;
	/* Bytes of deep stacks that may still be read. */
	uint64_t deep_left;
	/* The labels read last, which many goroutines share. */
	uint64_t labels_avma;
	uint32_t first_label, nlabels;
};

/* 0 or -ENOMEM; cleared in any case. */
WP_MUST_CHECK
int wp_goroutine_reader_init(struct wp_goroutine_reader *reader,
			     struct wp_go_program *program);
void wp_goroutine_reader_clear(struct wp_goroutine_reader *reader);

/* Add the goroutines whose structs are at AVMAS[0..n) to GOROUTINES, as
 * wp_goroutines_read does.  INDICES: their places in the list of all, NULL: from 0
 * on. */
WP_MUST_CHECK
int wp_goroutine_reader_read(struct wp_goroutine_reader *reader,
			     const struct wp_goroutine_user *user,
			     const uint64_t *avmas, const uint32_t *indices,
			     size_t n, struct wp_goroutines *goroutines);

/* goroutine_objects.c: add what G waits for, which R is the reading of, to the
 * goroutines; nothing of one that runs meanwhile.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_goroutine_objects_read(const struct wp_goroutine_reader *reader,
			      const struct wp_goroutine_reading *r,
			      struct wp_goroutine *g);

#endif
