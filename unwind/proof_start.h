/* SPDX-License-Identifier: Apache-2.0 */
/* proof_start.h - by its bytes, where a function seems to begin.
 *
 * Layer: unwind.  Private to unwind/; x86-64.
 */
#ifndef WP_PROOF_START_H
#define WP_PROOF_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Bytes before a place, and from it on, that are looked at. */
	WP_START_BEFORE = 5,
	WP_START_AFTER = 4,
};

/* Is CODE push %rbp; mov %rsp,%rbp, in either of its forms? */
bool wp_proof_sets_fp(const uint8_t *code);

/* Does CODE push a register that a function must keep, or make room on the stack? */
bool wp_proof_makes_frame(const uint8_t *code);

/* Does a function seem to begin at CODE[at], the byte at AVMA?  What is before it ends
 * another, or fills up to where it is aligned; one that is not aligned is behind a
 * return or makes a frame. */
bool wp_proof_may_start(const uint8_t *code, size_t at, uint64_t avma);

#endif
