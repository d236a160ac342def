/* SPDX-License-Identifier: Apache-2.0 */
/* go_target.h - the Go program that a target runs.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_GO_TARGET_H
#define WP_GO_TARGET_H

#include "stack_walk.h"
#include "wallprof/go_program.h"
#include "wallprof/types.h"

struct wp_target;

struct wp_go_target {
	/* Borrowed. */
	struct wp_target *target;
	/* Owned; NULL: not open. */
	struct wp_go_program *program;
};

/* Open the Go program in GO->target, the address of GO being kept until it is
 * closed.  0; -ENOENT: there is none; else as wp_go_program_open. */
WP_MUST_CHECK
int wp_go_target_open(struct wp_go_target *go, struct wp_err *err);
void wp_go_target_close(struct wp_go_target *go);

/* Set TEXT[0..size) to which more of Go's runtimes GO's target has, as libraries that Go
 * has built have one each: "those of 1 more Go runtime (/lib/libx.so)"; "": none.  Of
 * these nothing is read. */
void wp_go_target_say_more(struct wp_go_target *go, char *text, size_t size);

/* Walk STACK, the copy of G's. */
struct wp_stack_walk wp_go_target_walk(struct wp_target *target,
				       const struct wp_goroutine *g,
				       const struct wp_goroutine_stack *stack);

/* A frame that returns to PC. */
struct wp_frame wp_go_target_caller(struct wp_target *target, uint64_t pc_avma);

#endif
