/* SPDX-License-Identifier: Apache-2.0 */
/* heap_sites.h - the allocator functions of a target: where they are, and which are
 * probed.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_HEAP_SITES_H
#define WP_HEAP_SITES_H

#include "wallprof/allocators.h"
#include "wallprof/heap_probe.h"
#include "wallprof/types.h"

struct wp_target;

/* A function in the target's memory. */
struct wp_heap_range {
	uint64_t start_avma;
	uint64_t end_avma;
	bool is_probed;
	enum wp_heap_call call;
	uint32_t mapping;
};

/* A probe in the target's memory, and what the kernel has put there. */
struct wp_heap_place {
	uint64_t avma;
	const struct wp_elf_image *image;
	uint8_t code[4];
	/* What the file has there. */
	uint8_t own[2];
};

/* A mapping that was searched. */
struct wp_heap_mapping {
	/* Of a library that has an allocator. */
	bool is_allocator;
	/* It is mapped. */
	bool is_there;
};

/* The allocator functions of a file, which is borrowed. */
struct wp_heap_functions {
	const struct wp_elf_image *image;
	/* All its symbols were searched. */
	bool is_program;
	/* It has probes, which stay when it is unmapped. */
	bool has_probes;
	/* Owned. */
	struct wp_allocators found;
};

struct wp_heap_sites {
	/* v[0..len) by address; owned. */
	struct wp_heap_range *v;
	size_t len, cap;
	/* The mappings by their ids: searched[0..nsearched); owned. */
	struct wp_heap_mapping *searched;
	size_t nsearched, cap_searched;
	/* What was found: functions[0..nfunctions); owned. */
	struct wp_heap_functions *functions;
	size_t nfunctions, cap_functions;
	/* places[0..nplaces); owned. */
	struct wp_heap_place *places;
	size_t nplaces, cap_places;
	/* Generations of the address space: that whose search succeeded last, and the
	 * last that was searched. */
	uint64_t generation;
	uint64_t tried;
	/* Functions probed; those that the kernel executes one step at a time then, and
	 * which only --heap-anyway has probed; the name of a file whose malloc, calloc,
	 * realloc or free is one of these. */
	size_t nprobed;
	size_t nslow;
	char slow_file[256];
	/* Files that were unmapped before they could be probed; those not all of whose
	 * symbols could be read. */
	size_t nvanished;
	size_t ncut;
	/* Names of the files whose functions are probed: "libc.so.6, ...". */
	char files[256];
	/* Those of them that have an operator new of their own. */
	char throwing[256];
};

/* Forget what is no longer mapped, search the mappings of TARGET that are new since the
 * last call, and have PROBE probe what they have.  0; -ENOENT: a file had gone, which is
 * tried again once the memory map differs; -ENOMEM, or as wp_heap_probe_attach: then the
 * next call tries again. */
WP_MUST_CHECK
int wp_heap_sites_search(struct wp_heap_sites *sites, struct wp_target *target,
			 struct wp_heap_probe *probe, struct wp_err *err);

/* How many probes TARGET has written over: calls of those functions are not seen. */
size_t wp_heap_sites_count_overwritten(const struct wp_heap_sites *sites,
				       const struct wp_target *target);

/* Remove the frames of allocator functions from the top of STACK.  False: below the
 * first is one that is probed as well: it is sampled by itself. */
bool wp_heap_sites_strip(const struct wp_heap_sites *sites,
			 struct wp_stack *stack);

/* Is STACK, of a thread that maps memory, within a function of an allocator or in its
 * library?  What the C library maps in pthread_create is not.  The number of frames
 * from the top down to that one; 0: it is the program's own mapping. */
uint32_t wp_heap_sites_inner(const struct wp_heap_sites *sites,
			     const struct wp_stack *stack);

void wp_heap_sites_clear(struct wp_heap_sites *sites);

#endif
