/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* heap_record.h - what the BPF program on allocator functions and wallprof share.
 *
 * Layer: bpf.  This file includes only what both can include.
 */
#ifndef WP_HEAP_RECORD_H
#define WP_HEAP_RECORD_H

#include <linux/types.h>

/* What a function does, by its arguments. */
enum wp_heap_call {
	/* malloc(size) */
	WP_HEAP_MALLOC,
	/* calloc(n, size) */
	WP_HEAP_CALLOC,
	/* realloc(old, size) */
	WP_HEAP_REALLOC,
	/* The same, that jumps to malloc where there is no old one: glibc's.  That is
	 * probed, and is seen to be called by another probed function only where that
	 * returns through a probe: in a session those that are not sampled do not. */
	WP_HEAP_REGROW,
	/* As malloc, calloc and realloc, but C++'s: they may throw, and libgcc's unwinder
	 * does not get past a return address that a probe has replaced (it calls
	 * std::terminate).  So they have no probe on the return, and where their objects
	 * are, or whether there are any, is not known. */
	WP_HEAP_NEW,
	WP_HEAP_NEW_N,
	WP_HEAP_NEW_REALLOC,
	/* aligned_alloc(alignment, size), memalign */
	WP_HEAP_MEMALIGN,
	/* posix_memalign(&ret, alignment, size) */
	WP_HEAP_POSIX_MEMALIGN,
	/* free(old) */
	WP_HEAP_FREE,
	/* Of the kernel, not of an allocator, which calls them too: mmap(address,
	 * size, prot, flags); mremap(old, old size, size, flags), a realloc;
	 * mprotect(address, size, prot), where addresses that were reserved become
	 * memory; sbrk(size), which gives back if that is negative; munmap(address,
	 * size). */
	WP_HEAP_MMAP,
	WP_HEAP_MREMAP,
	WP_HEAP_MPROTECT,
	WP_HEAP_SBRK,
	WP_HEAP_MUNMAP,
	/* No function, but the record of one that gave no memory. */
	WP_HEAP_FAILED,
	/* Nothing, but what is mapped in it is for a thread: pthread_create. */
	WP_HEAP_THREAD,
	/* Nothing: what a probe costs is measured on wallprof itself. */
	WP_HEAP_TRIAL,
	WP_HEAP_NCALLS
};

/* Is CALL one of the kernel's? */
static inline int wp_heap_call_is_map(__u32 call)
{
	return call >= WP_HEAP_MMAP && call <= WP_HEAP_MUNMAP;
}

/* May CALL end in an exception? */
static inline int wp_heap_call_may_throw(__u32 call)
{
	return call >= WP_HEAP_NEW && call <= WP_HEAP_NEW_REALLOC;
}

/* Is the return of CALL's function probed? */
static inline int wp_heap_call_returns_memory(__u32 call)
{
	return !wp_heap_call_may_throw(call) && call != WP_HEAP_FREE &&
	       call != WP_HEAP_MUNMAP && call != WP_HEAP_MPROTECT;
}

/* Size classes, each with a probability: of 8 bytes below WP_HEAP_FINE_MAX, above it
 * of one power of two. */
enum {
	WP_HEAP_FINE_MAX = 128 * 1024,
	WP_HEAP_FINE = WP_HEAP_FINE_MAX / 8,
	WP_HEAP_CLASSES = WP_HEAP_FINE + 64,
};

/* What a call of a probed function does. */
enum wp_heap_mode {
	/* It is counted only. */
	WP_HEAP_COUNT,
	/* It may be sampled. */
	WP_HEAP_SAMPLE,
	/* Nothing. */
	WP_HEAP_IGNORE,
};

/* The data of the sample of one allocation; or, with the call WP_HEAP_FAILED and the same
 * id, that it failed. */
struct wp_heap_record {
	__u64 id;
	/* Bytes asked for. */
	__u64 size;
	/* It was sampled with probability THRESHOLD / 2^32, so it stands for
	 * 2^32 / THRESHOLD allocations. */
	__u32 threshold;
	/* enum wp_heap_call. */
	__u32 call;
};

/* From TIME_NS on (CLOCK_MONOTONIC) nothing of before is mapped at [START, END), but what
 * the sample ID is of (0: none). */
struct wp_heap_mapped {
	__u64 time_ns;
	__u64 start;
	__u64 end;
	__u64 id;
};

/* Where a call of a probed function returns to, whose return address a probe on the return
 * replaces: PC, which was at SP in the process's memory at TIME_NS (CLOCK_MONOTONIC). */
struct wp_heap_return {
	__u64 time_ns;
	__u64 sp;
	__u64 pc;
};

/* Calls of each CPU that are kept, the oldest of which makes room for the next. */
enum { WP_HEAP_RETURNS = 16384 };

/* Whether calls are kept: where a call puts its return address on the stack. */
#if defined(__x86_64__)
enum { WP_HEAP_NOTES_RETURNS = 1 };
#else
enum { WP_HEAP_NOTES_RETURNS = 0 };
#endif

/* Counted by each CPU. */
struct wp_heap_counts {
	/* Calls of allocating functions, of freeing ones. */
	__u64 calls;
	__u64 frees;
	/* Calls that have the kernel map and unmap memory. */
	__u64 maps;
	/* Calls of WP_HEAP_TRIAL. */
	__u64 trials;
	/* Samples; those for which the ring had no room, and those that are not
	 * followed to their end for want of room. */
	__u64 samples;
	__u64 unsent;
	__u64 unfollowed;
	/* Calls of mprotect that would have been sampled, had it been known whether they
	 * make memory: the memory map was locked. */
	__u64 unknown;
	/* Calls that were kept as a wp_heap_return. */
	__u64 returns;
};

#endif
