/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* heap_probe.bpf.c - runs in the kernel at calls of allocator functions: see
 * wallprof/heap_probe.h.
 *
 * An allocation of SIZE bytes is sampled with the probability of its size class: one
 * random number and one comparison.  Only of a sampled call the return is wanted,
 * which tells the address: LIVE has the addresses of sampled objects that are not freed.
 */
#include <linux/types.h>

#include <stdbool.h>

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "heap_kernel.h"
#include "wallprof/heap_record.h"

char wp_license[] SEC("license") = "Dual MIT/GPL";

/* A call whose return is wanted. */
struct call {
	/* Of its sample; 0: not sampled. */
	__u64 id;
	/* realloc: the object before and its sample; 0: not a sampled one.  mremap: the
	 * address before, how many bytes there are given back, and when it was called:
	 * what another thread maps there is mapped later. */
	__u64 old;
	__u64 old_id;
	__u64 old_ns;
	__u64 size;
	/* posix_memalign: where it writes the address; 0: it returns it. */
	__u64 result;
	/* It maps memory. */
	__u64 maps;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WP_HEAP_CLASSES);
	__type(key, __u32);
	__type(value, __u32);
} thresholds SEC(".maps");

/* By thread and stack pointer, so that a call within a call has its own, and whether it
 * is a realloc, which may jump to malloc.  What a longjmp leaves behind is pushed out. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct call);
} open_calls SEC(".maps");

/* Ids of samples by the object's address. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 262144);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, __u64);
} live SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} output SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wp_heap_counts);
} counts SEC(".maps");

/* [0]: enum wp_heap_mode. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} mode SEC(".maps");

/* WP_HEAP_RETURNS of each CPU, which wallprof reads as they are. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct wp_heap_return);
} returns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} mapped SEC(".maps");

enum {
	/* CPUs have 12 bits of an id. */
	CPU_BITS = 12,
	/* Of the user address space that mmap gives without being asked for a
	 * place above (x86-64; on arm64 it is 48). */
	ADDRESS_BITS = 48,
};

static __always_inline __u32 class_of(__u64 size)
{
	__u32 class = WP_HEAP_FINE;
	__u64 left = size / WP_HEAP_FINE_MAX;

	if (size < WP_HEAP_FINE_MAX)
		return (__u32)(size / 8);
	for (int shift = 32; shift; shift /= 2)
		if (left >> shift) {
			left >>= shift;
			class += shift;
		}
	return class;
}

static __always_inline __u64 key_of(__u64 sp, bool is_realloc)
{
	/* It is a multiple of 8. */
	return bpf_get_current_pid_tgid() << 32 | (__u32)sp | is_realloc;
}

/* Is an allocation of SIZE bytes to be sampled?  The threshold by which it is, or 0. */
static __always_inline __u32 draw(__u64 size)
{
	__u32 class = class_of(size);
	__u32 *threshold = bpf_map_lookup_elem(&thresholds, &class);

	/* No such object fits into an address space: it will fail. */
	if (size >> ADDRESS_BITS)
		return 0;
	if (!threshold || !size || bpf_get_prandom_u32() >= *threshold)
		return 0;
	return *threshold;
}

/* Sample the allocation of SIZE bytes or not: its id or 0. */
static __always_inline __u64 sample(struct wp_probe_regs *regs, __u64 size,
				    __u32 call, struct wp_heap_counts *n)
{
	struct wp_heap_record record = { .threshold = draw(size),
					 .size = size,
					 .call = call };

	if (!record.threshold)
		return 0;
	record.id = ++n->samples << CPU_BITS | bpf_get_smp_processor_id();
	if (bpf_perf_event_output(regs, &output, BPF_F_CURRENT_CPU, &record,
				  sizeof(record)))
		n->unsent++;
	return record.id;
}

/* What was mapped at START at TIME_NS is no more, but for what sample ID is of. */
static __always_inline void say_mapped_then(__u64 time_ns, __u64 start,
					    __u64 size, __u64 id,
					    struct wp_heap_counts *n)
{
	struct wp_heap_mapped range = { .time_ns = time_ns,
					.start = start,
					.end = start + size,
					.id = id };

	if (bpf_ringbuf_output(&mapped, &range, sizeof(range), 0))
		n->unsent++;
}

/* The same, and it is now. */
static __always_inline void say_mapped(__u64 start, __u64 size, __u64 id,
				       struct wp_heap_counts *n)
{
	say_mapped_then(bpf_ktime_get_ns(), start, size, id, n);
}

/* The process makes memory usable that it had reserved: sample that or not. */
static __always_inline void enter_mprotect(struct wp_probe_regs *regs,
					   struct wp_heap_counts *n)
{
	__u64 start = ARG0(regs), size = ARG1(regs), id;
	__u32 access;

	if (!(ARG2(regs) & PROT_WRITE_BIT))
		return;
	access = access_at(start);
	/* As many as would have been sampled, had they been new memory. */
	if (access == NOT_KNOWN && draw(size))
		n->unknown++;
	if (access)
		return;
	id = sample(regs, size, WP_HEAP_MPROTECT, n);
	if (id)
		say_mapped(start, size, id, n);
}

/* The process asks the kernel for memory, or gives it back.  The sample's id, if the
 * address is still to come; else 0. */
static __always_inline __u64 enter_map(struct wp_probe_regs *regs, __u32 kind,
				       struct wp_heap_counts *n)
{
	__u64 arg0 = ARG0(regs), size = ARG1(regs);

	if (kind == WP_HEAP_MUNMAP) {
		say_mapped(arg0, size, 0, n);
		return 0;
	}
	if (kind == WP_HEAP_SBRK)
		return (__s64)arg0 > 0 ? sample(regs, arg0, kind, n) : 0;
	if (kind == WP_HEAP_MREMAP)
		return sample(regs, ARG2(regs), kind, n);
	if (kind == WP_HEAP_MPROTECT) {
		enter_mprotect(regs, n);
		return 0;
	}
	if (ARG3(regs) & MAP_FIXED_BIT)
		say_mapped(arg0, size, 0, n);
	if (!(ARG3(regs) & MAP_ANONYMOUS_BIT) || !(ARG2(regs) & PROT_WRITE_BIT))
		return 0;
	return sample(regs, size, kind, n);
}

/* Bytes that a call of KIND asks for. */
static __always_inline __u64 size_of(struct wp_probe_regs *regs, __u32 kind)
{
	switch (kind) {
	case WP_HEAP_CALLOC:
	case WP_HEAP_NEW_N:
		return ARG0(regs) * ARG1(regs);
	case WP_HEAP_REALLOC:
	case WP_HEAP_REGROW:
	case WP_HEAP_NEW_REALLOC:
	case WP_HEAP_MEMALIGN:
	case WP_HEAP_MMAP:
		return ARG1(regs);
	case WP_HEAP_POSIX_MEMALIGN:
	case WP_HEAP_MREMAP:
		return ARG2(regs);
	default:
		return ARG0(regs);
	}
}

/* Have CALL say what is given back; false: it is no memory. */
static __always_inline bool enter_mremap(struct wp_probe_regs *regs,
					 struct call *call)
{
	__u64 old = ARG0(regs);

	/* Where that is not known, it is memory: else the old place would stay in use. */
	if (!(access_at(old) & (VM_WRITE_BIT | NOT_KNOWN)))
		return false;
	call->old = old;
	call->old_ns = bpf_ktime_get_ns();
	call->old_id = ARG3(regs) & MREMAP_DONTUNMAP_BIT ? 0 : ARG1(regs);
	return true;
}

/* An allocator function is called: is its return wanted? */
static __always_inline bool enter(struct wp_probe_regs *regs, __u32 kind)
{
	__u32 zero = 0;
	__u32 *now = bpf_map_lookup_elem(&mode, &zero);
	struct wp_heap_counts *n = bpf_map_lookup_elem(&counts, &zero);
	struct call call = {};
	__u64 arg0 = ARG0(regs), size = size_of(regs, kind), key, *id;

	if (!now || !n || *now == WP_HEAP_IGNORE)
		return false;
	if (kind == WP_HEAP_REGROW) {
		/* malloc comes next, as if called. */
		if (!arg0)
			return false;
		kind = WP_HEAP_REALLOC;
	}
	if (wp_heap_call_is_map(kind))
		n->maps++;
	else if (kind == WP_HEAP_FREE)
		n->frees++;
	else if (kind == WP_HEAP_TRIAL)
		n->trials++;
	else
		n->calls++;
	if (*now != WP_HEAP_SAMPLE || kind == WP_HEAP_TRIAL)
		return false;
	if (kind == WP_HEAP_FREE) {
		if (arg0)
			bpf_map_delete_elem(&live, &arg0);
		return false;
	}
	if ((kind == WP_HEAP_REALLOC || kind == WP_HEAP_NEW_REALLOC) && arg0) {
		id = bpf_map_lookup_elem(&live, &arg0);
		if (id) {
			call.old = arg0;
			call.old_id = *id;
			bpf_map_delete_elem(&live, &arg0);
		}
	}
	call.maps = kind == WP_HEAP_MMAP || kind == WP_HEAP_SBRK ||
		    kind == WP_HEAP_MREMAP;
	if (kind == WP_HEAP_MREMAP && !enter_mremap(regs, &call))
		return false;
	call.id = wp_heap_call_is_map(kind) ? enter_map(regs, kind, n) :
					      sample(regs, size, kind, n);
	if ((!call.id && !call.old &&
	     (kind != WP_HEAP_SBRK || (__s64)size >= 0)) ||
	    wp_heap_call_may_throw(kind))
		return false;
	call.size = size;
	call.result = kind == WP_HEAP_POSIX_MEMALIGN ? arg0 : 0;
	key = key_of(regs->sp, kind == WP_HEAP_REALLOC);
	if (bpf_map_update_elem(&open_calls, &key, &call, 0))
		n->unfollowed++;
	return true;
}

/* A call returns: if it was a sampled one, the object lives. */
static __always_inline void leave(struct wp_probe_regs *regs, bool is_realloc)
{
	__u32 zero = 0;
	__u32 *now = bpf_map_lookup_elem(&mode, &zero);
	struct wp_heap_counts *n = bpf_map_lookup_elem(&counts, &zero);
	__u64 key = key_of(regs->sp - POPPED, is_realloc),
	      address = RESULT(regs);
	struct call *call = bpf_map_lookup_elem(&open_calls, &key);
	__u64 id;

	if (!call || !n || !now || *now == WP_HEAP_IGNORE)
		return;
	if (call->result &&
	    ((int)address || bpf_probe_read_user(&address, sizeof(address),
						 (void *)call->result)))
		address = 0;
	if (call->maps && address >= (__u64)-ERRNO_MAX)
		address = 0;
	id = call->id;
	if (!address && id) {
		struct wp_heap_record failed = { .id = id,
						 .call = WP_HEAP_FAILED };

		if (bpf_perf_event_output(regs, &output, BPF_F_CURRENT_CPU,
					  &failed, sizeof(failed)))
			n->unsent++;
	}
	if (!address && call->old && call->size && !call->maps) {
		/* The realloc failed: the object is still what it was. */
		address = call->old;
		id = call->old_id;
	}
	if (call->maps) {
		if (address && call->old_id)
			say_mapped_then(call->old_ns, call->old, call->old_id,
					0, n);
		if (address && (__s64)call->size < 0)
			say_mapped(address + call->size, -call->size, 0, n);
		else if (address)
			say_mapped(address, call->size, id, n);
	} else if (address && id &&
		   bpf_map_update_elem(&live, &address, &id, 0)) {
		n->unfollowed++;
	}
	bpf_map_delete_elem(&open_calls, &key);
}

/* An allocator function is called, the probe of whose return is about to replace the
 * address that it returns to. */
static __always_inline void note_return(struct wp_probe_regs *regs, __u32 kind)
{
	__u32 zero = 0, at;
	struct wp_heap_counts *n = bpf_map_lookup_elem(&counts, &zero);
	volatile struct wp_heap_return *entry;
	__u64 pc;

	if (!WP_HEAP_NOTES_RETURNS || !n ||
	    !wp_heap_call_returns_memory(kind) ||
	    bpf_probe_read_user(&pc, sizeof(pc), (void *)regs->sp))
		return;
	at = bpf_get_smp_processor_id() * WP_HEAP_RETURNS +
	     n->returns++ % WP_HEAP_RETURNS;
	entry = bpf_map_lookup_elem(&returns, &at);
	if (!entry)
		return;
	/* The time first: who reads it meanwhile finds it too late. */
	entry->time_ns = bpf_ktime_get_ns();
	entry->sp = regs->sp;
	entry->pc = pc;
}

static __always_inline bool is_realloc(__u64 kind)
{
	return kind == WP_HEAP_REALLOC || kind == WP_HEAP_REGROW;
}

/* Calls and returns by one probe (Linux 6.13): the value says whether the return is
 * not wanted.  At a call the thread stands at the probe, behind a return it does not:
 * bpf_session_is_return() has no prototype that all kernels have (Linux 7.0). */
SEC("kprobe/session")
int wp_session(struct wp_probe_regs *regs)
{
	if (PC(regs) != bpf_get_func_ip(regs)) {
		leave(regs, is_realloc(bpf_get_attach_cookie(regs)));
		return 0;
	}
	return !enter(regs, (__u32)bpf_get_attach_cookie(regs));
}

/* The same by two (Linux 6.6); every call takes the probe of the return too. */
SEC("kprobe/multi")
int wp_enter(struct wp_probe_regs *regs)
{
	note_return(regs, (__u32)bpf_get_attach_cookie(regs));
	enter(regs, (__u32)bpf_get_attach_cookie(regs));
	return 0;
}

SEC("kprobe/multi")
int wp_return(struct wp_probe_regs *regs)
{
	leave(regs, is_realloc(bpf_get_attach_cookie(regs)));
	return 0;
}

/* See wp_heap_links_spare_children. */
SEC("kprobe/multi")
int wp_nothing(struct wp_probe_regs *regs)
{
	(void)regs;
	return 0;
}

/* Of older kernels, which know no cookies: a program for each kind of call. */
SEC("kprobe/perf")
int wp_leave(struct wp_probe_regs *regs)
{
	leave(regs, false);
	return 0;
}

SEC("kprobe/perf")
int wp_leave_realloc(struct wp_probe_regs *regs)
{
	leave(regs, true);
	return 0;
}

#define ENTER(section, name, kind)                                             \
	SEC(section)                                                           \
	int name(struct wp_probe_regs *regs)                                   \
	{                                                                      \
		note_return(regs, kind);                                       \
		enter(regs, kind);                                             \
		return 0;                                                      \
	}

ENTER("kprobe/perf", wp_malloc, WP_HEAP_MALLOC)
ENTER("kprobe/perf", wp_calloc, WP_HEAP_CALLOC)
ENTER("kprobe/perf", wp_realloc, WP_HEAP_REALLOC)
ENTER("kprobe/perf", wp_new, WP_HEAP_NEW)
ENTER("kprobe/perf", wp_new_n, WP_HEAP_NEW_N)
ENTER("kprobe/perf", wp_new_realloc, WP_HEAP_NEW_REALLOC)
ENTER("kprobe/perf", wp_memalign, WP_HEAP_MEMALIGN)
ENTER("kprobe/perf", wp_posix_memalign, WP_HEAP_POSIX_MEMALIGN)
ENTER("kprobe/perf", wp_free, WP_HEAP_FREE)
ENTER("kprobe/perf", wp_mmap, WP_HEAP_MMAP)
ENTER("kprobe/perf", wp_sbrk, WP_HEAP_SBRK)
ENTER("kprobe/perf", wp_munmap, WP_HEAP_MUNMAP)
ENTER("kprobe/perf", wp_trial, WP_HEAP_TRIAL)
/* They look at the process's memory areas (Linux 5.17). */
ENTER("kprobe/areas", wp_mprotect, WP_HEAP_MPROTECT)
ENTER("kprobe/areas", wp_mremap, WP_HEAP_MREMAP)
