/* SPDX-License-Identifier: Apache-2.0 */
/* arch.h - what the unwinder knows about the machine and its kernel's ABI.
 *
 * Layer: unwind.  Private to unwind/; one arch_MACHINE.c implements it.
 */
#ifndef WP_ARCH_H
#define WP_ARCH_H

#include "step.h"

/* Registers that a call leaves as they were, a bit per DWARF number. */
#if defined(__x86_64__)
/* System V psABI, figure 3.4: rbx, rbp, r12 to r15. */
#define WP_ARCH_CALLEE_SAVED (UINT64_C(0xf) << 12 | 1u << 6 | 1u << 3)
/* A call pushes its return address: every frame has a stack slot. */
#define WP_ARCH_FRAMES_TAKE_STACK 1
/* Code can be followed: see prover.h. */
#define WP_ARCH_HAS_PROOFS 1
/* What unwind info says of a signal trampoline leaves no frame out. */
#define WP_ARCH_SIGRETURN_INFO 1
/* Whoever makes a call has a frame record. */
#define WP_ARCH_KEEPS_FRAME_POINTER 0
/* Code without unwind info is followed to where it returns: see return_path.h. */
#define WP_ARCH_HAS_RETURN_PATHS 0
#elif defined(__aarch64__)
/* AAPCS64, 6.1.1: x19 to x29. */
#define WP_ARCH_CALLEE_SAVED (UINT64_C(0x7ff) << 19)
#define WP_ARCH_FRAMES_TAKE_STACK 0
#define WP_ARCH_HAS_PROOFS 0
/* The kernel's leads to the caller of what was interrupted
 * (arch/arm64/kernel/vdso/sigreturn.S). */
#define WP_ARCH_SIGRETURN_INFO 0
/* AAPCS64, 6.4.6; its record is at the bottom of the frame. */
#define WP_ARCH_KEEPS_FRAME_POINTER 1
#define WP_ARCH_HAS_RETURN_PATHS 1
#endif

/* The two words that a frame pointer points to, on either machine. */
struct wp_frame_record {
	uint64_t caller_fp;
	uint64_t return_avma;
};

/* Read LEN bytes of code at AVMA: out of MODULE's file where it has one, else
 * out of MEM.  MODULE may be NULL.  0 or -EFAULT.
 */
WP_MUST_CHECK
int wp_code_read(const struct wp_unwind_module *module,
		 const struct wp_mem *mem, uint64_t avma, void *buf,
		 size_t len);

/* The word at AVMA: true, and *RET, if it can be read. */
static inline bool wp_mem_u64(const struct wp_mem *mem, uint64_t avma,
			      uint64_t *ret)
{
	return mem->read(mem->ctx, avma, ret, sizeof(*ret)) == WP_MEM_OK;
}

/* AVMA, a return address from the stack, without its pointer-authentication bits. */
uint64_t wp_arch_code_avma(uint64_t avma);

/* Is the instruction before AVMA, which MODULE holds, a call? */
bool wp_arch_follows_call(const struct wp_unwind_module *module,
			  const struct wp_mem *mem, uint64_t avma);

/* Does the code at AVMA, in MODULE, set sp from the frame pointer first thing?  So
 * it does where an interpreter goes on that has jumped to a function, with this
 * as its return address: no call is before it, but its frame is by the frame
 * pointer (HotSpot, templateInterpreterGenerator_x86.cpp: return entries). */
bool wp_arch_resumes_frame(const struct wp_unwind_module *module,
			   const struct wp_mem *mem, uint64_t avma);

#if WP_ARCH_HAS_PROOFS
/* Is the instruction before AVMA a call by pointer, in a register or memory? */
bool wp_arch_calls_by_pointer(const struct wp_unwind_module *module,
			      const struct wp_mem *mem, uint64_t avma);

/* STEP's pc is exact and in a PLT stub: true, with the return address and the
 * caller's sp. */
bool wp_arch_find_plt_return(const struct wp_step *step,
			     uint64_t *ret_return_avma, uint64_t *ret_sp_avma);
#endif

/* Is the code at PC_AVMA a signal trampoline, which calls sigreturn? */
bool wp_arch_is_sigreturn(const struct wp_unwind_module *module,
			  const struct wp_mem *mem, uint64_t pc_avma);

/* Make STEP, whose pc is in a signal trampoline: all registers are in the kernel's
 * frame at sp.  WP_STEP_OK, or as wp_step_read.
 */
enum wp_step_result wp_arch_step_sigreturn(struct wp_step *step);

/* Is STEP's pc exact and behind the system call clone or clone3, before the jump by what
 * it returned?  C libraries have no unwind info there, for the same code runs on the
 * caller's stack and on the new one.  False if clone was given no new stack (fork): the
 * child's is a copy of the caller's, with the same unwind info. */
bool wp_arch_is_behind_clone(const struct wp_step *step);

/* Is STEP's pc where the first function of a context of makecontext returns to
 * (glibc's __start_context)?  That is the address of a function, not behind a call,
 * and has no unwind info before it.  False on aarch64, where CFI says it. */
bool wp_arch_is_context_start(const struct wp_step *step);

/* STEP's pc is exact and behind a bare system call, or on x86-64 in a PLT stub too,
 * whose code keeps nothing on the stack: true, with the return address and the caller's
 * sp.  On aarch64 functions that have stored theirs make system calls too.
 */
bool wp_arch_find_stub_return(const struct wp_step *step,
			      uint64_t *ret_return_avma, uint64_t *ret_sp_avma);

#endif
