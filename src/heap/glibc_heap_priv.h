/* SPDX-License-Identifier: Apache-2.0 */
/* glibc_heap_priv.h - arenas and chunks of glibc's malloc.
 *
 * Layer: heap.  Private to src/heap/.
 */
#ifndef WP_GLIBC_HEAP_PRIV_H
#define WP_GLIBC_HEAP_PRIV_H

#include "wallprof/glibc_heap.h"

enum {
	WP_NFASTBINS = 10,
	WP_CHUNK_MIN = 32,
	/* Bits of a chunk's size. */
	WP_PREV_INUSE = 1,
	WP_CHUNK_FLAGS = 7,
	/* struct tcache_perthread_struct as a chunk, of 2.30 to 2.41. */
	WP_TCACHE_BINS = 64,
	WP_TCACHE_CHUNK = 16 + 10 * WP_TCACHE_BINS,
	/* Keys and sizes of chunks together; those of a true key are some hundred. */
	WP_KEPT_MAX = 1 << 14,
};

/* struct malloc_state */
struct wp_arena {
	uint64_t avma;
	/* Where it ends: behind it is its heap's first chunk. */
	uint64_t end_avma;
	uint64_t top;
	/* Bytes of the chunk TOP, which is free. */
	uint64_t top_size;
	uint64_t system_mem;
	uint64_t fastbins[WP_NFASTBINS];
};

/* A word of libc's data that may be the number in chunks of tcaches.  In a static program
 * that is the program's data too: then objects may have its words. */
struct wp_key {
	uint64_t word;
	/* How many chunks have it behind a link that is mixed with its address, as
	 * all have that threads keep; behind another word. */
	uint32_t nmixed, nplain;
};

/* Chunks of SIZE bytes that are kept for a thread if KEY is the number. */
struct wp_kept {
	size_t key;
	uint64_t size, chunks;
};

/* v[0..len) by key and size; owned. */
struct wp_kepts {
	struct wp_kept *v;
	size_t len, cap;
};

/* Add one; what is more than WP_KEPT_MAX is left out.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_kepts_add(struct wp_kepts *to, const struct wp_kept *kept);

struct wp_arenas {
	/* v[0..len), the main arena first; owned. */
	struct wp_arena *v;
	size_t len, cap;
	/* keys[0..nkeys), sorted; owned. */
	struct wp_key *keys;
	size_t nkeys;
	bool knows_mapped;
	uint64_t mapped_bytes;
};

/* Find the arenas.  0; -ENOENT; -EBADMSG; -ENOMEM: as wp_census_take. */
WP_MUST_CHECK
int wp_arenas_find(struct wp_arenas *ret,
		   const struct wp_census_memory *memory);
void wp_arenas_clear(struct wp_arenas *arenas);

/* The walk over one piece of memory that chunks tile. */
struct wp_chunk_walk {
	const struct wp_census_memory *memory;
	/* Its keys' chunks are counted. */
	const struct wp_arenas *arenas;
	/* The first chunk, and where the last ends. */
	uint64_t start_avma, end_avma;
	/* That is top, else fenceposts are before it. */
	bool ends_at_top;
	/* Room for WP_WINDOW bytes; borrowed. */
	uint8_t *window;
	/* window[0..len) is what was at AVMA. */
	uint64_t avma;
	size_t len;
	/* What is found: in use or kept, and what of it may be kept; owned. */
	struct wp_census_count heap[WP_CENSUS_CLASSES];
	struct wp_kepts kept;
	uint64_t torn_bytes;
	bool is_cut;
	/* Chunks that may be tables of a thread: tables[0..ntables); owned. */
	uint64_t *tables;
	size_t ntables, cap_tables;
};

enum { WP_WINDOW = 1 << 20, WP_TABLES_MAX = 1 << 16 };

/* Walk, with START_AVMA to WINDOW set and all else 0.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_chunk_walk(struct wp_chunk_walk *w);

/* Does the memory of no file hold AVMA? */
bool wp_census_holds(const struct wp_census_memory *memory, uint64_t avma);

/* Read the word at AVMA.  False: it cannot be read. */
bool wp_census_word(const struct wp_census_memory *memory, uint64_t avma,
		    uint64_t *ret);

/* Where the chunk after CHUNK in a list is; 0: there is none.  LINK is CHUNK's word that
 * leads there, plain or mixed with its own address (safe-linking, 2.32 and later), to AT
 * bytes behind where that chunk begins. */
uint64_t wp_chunk_next(const struct wp_census_memory *memory, uint64_t chunk,
		       uint64_t link, uint64_t at);

#endif
