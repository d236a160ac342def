/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* heap_kernel.h - what heap_probe.bpf.c reads and calls of the kernel.
 *
 * Layer: bpf.  Private to src/bpf/heap_probe.bpf.c: for the BPF target only.
 *
 * Structures have only the members that are used; libbpf sets their offsets for the
 * running kernel when it loads the program (CO-RE).
 */
#ifndef WP_HEAP_KERNEL_H
#define WP_HEAP_KERNEL_H

#ifdef __bpf__
#include <linux/types.h>

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* The registers at a probe: struct pt_regs of arch/x86/include/asm/ptrace.h and
 * user_pt_regs of arm64's uapi, which programs of this type read as they are. */
#if defined(__x86_64__)
struct wp_probe_regs {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di,
		orig_ax, ip, cs, flags, sp, ss;
};
#define ARG0(regs) ((regs)->di)
#define ARG1(regs) ((regs)->si)
#define ARG2(regs) ((regs)->dx)
#define ARG3(regs) ((regs)->cx)
#define RESULT(regs) ((regs)->ax)
#define PC(regs) ((regs)->ip)
/* Behind the return the address is popped. */
enum { POPPED = 8 };
#elif defined(__aarch64__)
struct wp_probe_regs {
	__u64 x[31], sp, pc, pstate;
};
#define ARG0(regs) ((regs)->x[0])
#define ARG1(regs) ((regs)->x[1])
#define ARG2(regs) ((regs)->x[2])
#define ARG3(regs) ((regs)->x[3])
#define RESULT(regs) ((regs)->x[0])
#define PC(regs) ((regs)->pc)
enum { POPPED = 0 };
#endif

enum {
	/* asm-generic/mman-common.h, linux/mman.h. */
	PROT_WRITE_BIT = 2,
	MAP_FIXED_BIT = 0x10,
	MAP_ANONYMOUS_BIT = 0x20,
	MREMAP_DONTUNMAP_BIT = 4,
	/* linux/mm.h; VM_READ | VM_WRITE | VM_EXEC. */
	VM_WRITE_BIT = 2,
	VM_ACCESS = 7,
	/* None of these: a file's, or nothing is there; the memory map was locked. */
	NOT_OWN = 8,
	NOT_KNOWN = 16,
	/* asm-generic/errno-base.h, ENOENT. */
	NO_ENTRY = 2,
	/* linux/err.h, MAX_ERRNO; libc returns MAP_FAILED. */
	ERRNO_MAX = 4095,
};

struct file;
struct vm_area_struct {
	unsigned long vm_flags;
	struct file *vm_file;
} __attribute__((preserve_access_index));
struct task_struct;

static long look_at_area(struct task_struct *task, struct vm_area_struct *area,
			 void *ctx)
{
	(void)task;
	*(__u32 *)ctx = area->vm_file ? NOT_OWN : area->vm_flags & VM_ACCESS;
	return 0;
}

/* What is allowed at ADDRESS (VM_ACCESS), of the process's own memory; else NOT_OWN, or
 * NOT_KNOWN: the kernel does not wait for the lock (kernel/bpf/task_iter.c). */
static __always_inline __u32 access_at(__u64 address)
{
	__u32 access = NOT_OWN;
	long rc = bpf_find_vma((struct task_struct *)bpf_get_current_task_btf(),
			       address, look_at_area, &access, 0);

	if (!rc)
		return access;
	return rc == -NO_ENTRY ? NOT_OWN : NOT_KNOWN;
}
#endif

#endif
