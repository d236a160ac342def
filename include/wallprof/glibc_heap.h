/* SPDX-License-Identifier: Apache-2.0 */
/* glibc_heap.h - what the malloc of glibc holds, by size of its chunks, read from outside.
 *
 * Layer: heap.  Touches no process: memory comes by a callback, and all of it may lie.
 *
 * Of glibc 2.31 to 2.44 on 64-bit machines.  No symbol is wanted: the main arena is where
 * the heads of most bins point to themselves (malloc/malloc.c, malloc_init_state), and its
 * list of arenas comes back to it; the offsets of all else follow from these.  Before 2.43
 * an arena has fastbins, which tells where it begins.
 *
 * Chunks tile each heap up to its top, and one is in use if the next says so.  Chunks that
 * a thread keeps for itself (tcache) and those in fastbins say that too, though they are
 * free: the first have a random number of the process in their second word (2.34 and
 * later), or are in the lists of their thread's table, which is a chunk itself (before);
 * the others are in lists of their arena.
 */
#ifndef WP_GLIBC_HEAP_H
#define WP_GLIBC_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"

/* Sizes of chunks up to 1 KiB are classes of their own; above, each doubling has eight, up
 * to 256 TiB. */
enum { WP_CENSUS_CLASSES = 65 + 8 * 38 };

/* The class of a chunk of SIZE bytes, and the largest size of CLASS. */
size_t wp_census_class(uint64_t size);
uint64_t wp_census_class_max(size_t class);

struct wp_census_count {
	uint64_t chunks;
	/* With malloc's own 8 bytes of each. */
	uint64_t bytes;
};

/* What is in use: in heaps, and in chunks that have a mapping each. */
struct wp_census {
	struct wp_census_count heap[WP_CENSUS_CLASSES];
	struct wp_census_count mapped[WP_CENSUS_CLASSES];
	/* The sums of these. */
	struct wp_census_count in_use, in_mapped;
	/* Chunks that threads and fastbins keep: not in use. */
	struct wp_census_count cached;
	uint32_t narenas;
	/* What the arenas say they have of the kernel, and how much of that was read. */
	uint64_t system_bytes;
	uint64_t walked_bytes;
	/* Of what was read: bytes that no chunks tile, as the program changed them just
	 * then, or had them of the kernel itself. */
	uint64_t torn_bytes;
	/* What malloc says it has mapped; false: its account was not found. */
	bool knows_mapped;
	uint64_t mapped_bytes;
	/* It took too long: the rest was not read. */
	bool is_cut;
	/* There are more pages than are searched for mapped chunks. */
	bool is_search_cut;
};

struct wp_census_area {
	uint64_t start_avma;
	uint64_t end_avma;
};

/* The memory of a process; all is borrowed. */
struct wp_census_memory {
	/* Copy up to LEN bytes at AVMA to BUF; returns the number, as many as are
	 * readable in one piece. */
	size_t (*read)(void *ctx, uint64_t avma, void *buf, size_t len);
	void *ctx;
	/* Bytes of a page, of which malloc maps whole ones. */
	uint64_t page;
	/* data[0..ndata): writable data of files, with the zeroed memory behind. */
	const struct wp_census_area *data;
	size_t ndata;
	/* anon[0..nanon), by address: writable memory of no file, brk's too. */
	const struct wp_census_area *anon;
	size_t nanon;
	/* What brk(2) has made; START_AVMA 0: none. */
	struct wp_census_area brk;
	/* CLOCK_MONOTONIC: read nothing more then. */
	uint64_t until_ns;
};

/* Count what is in use.  Takes some MiB, however large the heap is.
 *
 * 0 and *RET; -ENOENT: there is no arena with memory, so the malloc of glibc is not used;
 * -EBADMSG: there is one, and the list that it is in is not as glibc has it; -ENOMEM. */
WP_MUST_CHECK
int wp_census_take(struct wp_census *ret,
		   const struct wp_census_memory *memory);

#endif
