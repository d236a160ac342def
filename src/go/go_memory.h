/* SPDX-License-Identifier: Apache-2.0 */
/* go_memory.h - reads of a Go program's memory, near ones together.
 *
 * Layer: go.  Private to src/go/.
 *
 * The kernel's cost is by range: what lies close together (goroutines' structs
 * are in one size class, small stacks in one span) is read as one.
 */
#ifndef WP_GO_MEMORY_H
#define WP_GO_MEMORY_H

#include "wallprof/go_program.h"

struct wp_go_memory {
	struct wp_go_reader reader;
	/* Scratch for N_ROOM ranges, owned: their order by address, the ranges
	 * that are read instead, and the place of each in those. */
	uint32_t *order;
	struct wp_process_range *merged;
	uint32_t *place;
	size_t n_room;
	/* Scratch: what is read; owned. */
	uint8_t *bytes;
	size_t bytes_cap;
};

/* Read v[0..n), as one what lies within GAP bytes.  Sets is_read of each.  0,
 * -ENOMEM, -EPERM, -ESRCH. */
WP_MUST_CHECK
int wp_go_memory_read(struct wp_go_memory *memory, struct wp_process_range *v,
		      size_t n, uint64_t gap);

/* Read LEN bytes at AVMA into BUF.  False if they cannot be read. */
bool wp_go_memory_read_at(struct wp_go_memory *memory, uint64_t avma, void *buf,
			  size_t len);

void wp_go_memory_clear(struct wp_go_memory *memory);

#endif
