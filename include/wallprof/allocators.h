/* SPDX-License-Identifier: Apache-2.0 */
/* allocators.h - the functions of a file that allocate memory, and where probes on them
 * stand.
 *
 * Layer: heap.
 *
 * They are known by name: malloc and its kin in glibc, musl, jemalloc, tcmalloc and
 * mimalloc, with their prefixes; and mmap and its kin, which get memory of the kernel.
 * pthread_create is among them, as memory that the C library maps in it is not its
 * allocator's.  C++'s operators are probed only in a file that has a malloc of its own, as
 * elsewhere they call malloc; and in such a one, those that may throw only if they do not
 * call a probed function first (wallprof/heap_record.h, WP_HEAP_NEW).
 */
#ifndef WP_ALLOCATORS_H
#define WP_ALLOCATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/elf_image.h"
#include "wallprof/heap_record.h"

/* A function, by its place in its file. */
struct wp_allocator {
	uint64_t svma;
	uint64_t size;
	enum wp_heap_call call;
	/* It is malloc, calloc, realloc or free itself. */
	bool is_usual;
	/* Else it only calls another (operator new of libstdc++).  The frames of
	 * all of them are left out of stacks. */
	bool is_probed;
	/* File offset of the instruction that the probe replaces, and whether the
	 * kernel emulates it. */
	uint64_t probe_off;
	bool is_cheap;
};

/* The functions of one file: v[0..len) by svma, each address once; owned. */
struct wp_allocators {
	struct wp_allocator *v;
	size_t len, cap;
	/* There may be more: not all symbols could be read. */
	bool is_cut;
	/* Those to be probed that the kernel would execute one step at a time; one that is
	 * usual is among them. */
	size_t nslow;
	bool has_slow_usual;
};

/* Fill *RET, which is empty, with the allocator functions that IMAGE exports or, if
 * ALL, has a symbol of.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_allocators_find(struct wp_allocators *ret, struct wp_elf_image *image,
		       bool all);
/* Is there a malloc in FOUND that is probed? */
static inline bool wp_allocators_have_malloc(const struct wp_allocators *found)
{
	for (size_t i = 0; i < found->len; i++)
		if (found->v[i].is_probed && found->v[i].call == WP_HEAP_MALLOC)
			return true;
	return false;
}
void wp_allocators_clear(struct wp_allocators *allocators);

/* What the function NAME does: true and *RET_CALL.  *RET_IS_OPERATOR: it is one of
 * C++'s. */
bool wp_allocator_of_name(const char *name, enum wp_heap_call *ret_call,
			  bool *ret_is_operator);

#endif
