/* SPDX-License-Identifier: Apache-2.0 */
/* wait_state.c - see wait_state.h. */
#include "wait_state.h"

#include <string.h>

#include "wallprof/call_memory.h"

void wp_wait_state_init(struct wp_wait_state *wait)
{
	/* Of no stack, thread and sample: the first of each is some other thread's. */
	*wait = (struct wp_wait_state){
		.key = { .stack = UINT32_MAX, .thread = UINT32_MAX },
		.sample = UINT32_MAX,
		.look_sample = UINT32_MAX,
		.call_nr = -1,
	};
}

struct wp_thread_state wp_wait_state_begin(struct wp_wait_state *wait,
					   const struct wp_thread_facts *facts)
{
	struct wp_thread_state state = wp_state_classify(facts);

	wait->facts = *facts;
	wait->waiting = state.state != WP_STATE_RUNNING;
	wait->for_child = state.wait == WP_WAIT_CHILD;
	wait->child_looks = 0;
	return state;
}

void wp_wait_state_set_key(struct wp_wait_state *wait,
			   const struct wp_sample_key *key)
{
	if (wait->waiting)
		wait->key = *key;
}

void wp_wait_state_end(struct wp_wait_state *wait)
{
	wait->waiting = false;
	wait->facts = (struct wp_thread_facts){ .running = true,
						.syscall_nr = -1 };
}

void wp_wait_state_distrust(struct wp_wait_state *wait)
{
	wait->waiting = false;
}

/* `mov $NR, %eax; syscall`, or `xor %eax, %eax` for read(2), which is 0. */
long wp_wait_state_call_x86_64(const uint8_t *code, size_t len)
{
	const uint8_t *at = code + len - 7;
	int32_t nr;

	if (len < 7 || at[5] != 0x0f || at[6] != 0x05)
		return -1;
	if (at[3] == 0x31 && at[4] == 0xc0)
		return 0;
	if (at[0] != 0xb8)
		return wp_syscall_restart;
	memcpy(&nr, at + 1, sizeof(nr));
	return nr;
}

/* `mov $NR, %eax`, and `int $0x80`, or a call of the vDSO's __kernel_vsyscall by its
 * address in the thread's header, as glibc has it: `call *%gs:0x10`. */
long wp_wait_state_call_i386(const uint8_t *code, size_t len)
{
	static const uint8_t by_vdso[] = { 0x65, 0xff, 0x15, 0x10, 0, 0, 0 };
	static const uint8_t by_trap[] = { 0xcd, 0x80 };
	const uint8_t *end = code + len, *at;
	int32_t nr;

	if (len >= sizeof(by_vdso) + 5 &&
	    !memcmp(end - sizeof(by_vdso), by_vdso, sizeof(by_vdso)))
		at = end - sizeof(by_vdso) - 5;
	else if (len >= sizeof(by_trap) + 5 &&
		 !memcmp(end - sizeof(by_trap), by_trap, sizeof(by_trap)))
		at = end - sizeof(by_trap) - 5;
	else
		return -1;
	if (at[0] != 0xb8)
		return WP_SYSCALL_RESTART_I386;
	memcpy(&nr, at + 1, sizeof(nr));
	return nr;
}

/* `mov x8, #NR`, some instructions, `svc #0`: Arm ARM, C6.2, MOVZ, SVC, and C4.1,
 * "Branches, Exception Generating and System instructions". */
long wp_wait_state_call_aarch64(const uint8_t *code, size_t len)
{
	uint32_t insn = 0;
	size_t at = len & ~(size_t)3;

	if (at < 4)
		return -1;
	at -= 4;
	memcpy(&insn, code + at, sizeof(insn));
	if (insn != 0xd4000001)
		return -1;
	while (at) {
		at -= 4;
		memcpy(&insn, code + at, sizeof(insn));
		/* Of either width. */
		if ((insn & 0x7fe0001f) == 0x52800008)
			return insn >> 5 & 0xffff;
		/* x8 by another instruction, or one that may go elsewhere. */
		if ((insn & 0x1f) == 8 ||
		    ((insn & 0x1c000000) == 0x14000000 && insn >> 22 != 0x354))
			break;
	}
	return wp_syscall_restart;
}

#if defined(__x86_64__)
enum { CALL_BYTES = 12 };
#define call_of wp_wait_state_call_x86_64
#else
/* glibc sets x8 before the other arguments. */
enum { CALL_BYTES = 40 };
#define call_of wp_wait_state_call_aarch64
#endif

long wp_wait_state_call_before(const struct wp_process *process, bool is_32bit,
			       uint64_t pc_avma)
{
	uint8_t code[CALL_BYTES];

	if (wp_process_read(process, pc_avma - sizeof(code), code,
			    sizeof(code)) != sizeof(code))
		return -1;
	return is_32bit ? wp_wait_state_call_i386(code, sizeof(code)) :
			  call_of(code, sizeof(code));
}

long wp_wait_state_call(struct wp_wait_state *wait,
			const struct wp_process *process, bool is_32bit,
			const struct wp_proc_syscall *call)
{
	long nr;

	if (call->nr != wp_syscall_restart) {
		wait->call_nr = call->nr;
		wait->call_pc_avma = call->pc_avma;
		wait->call_sp_avma = call->sp_avma;
		return call->nr;
	}
	/* All calls of an i386 program have one pc, in the vDSO. */
	if (wait->call_pc_avma == call->pc_avma &&
	    wait->call_sp_avma == call->sp_avma && wait->call_nr >= 0)
		return wait->call_nr;
	if (is_32bit)
		return wp_syscall_restart;
	nr = wp_wait_state_call_before(process, false, call->pc_avma);
	return nr < 0 ? wp_syscall_restart : nr;
}

void wp_wait_state_settle_stop(const struct wp_process *process, bool is_32bit,
			       struct wp_regs *regs,
			       struct wp_stop_facts *facts)
{
	if (facts->is_32bit != is_32bit) {
		regs->known &= UINT64_C(1) << WP_REG_PC | UINT64_C(1)
								  << WP_REG_SP;
		facts->syscall_nr = -1;
		facts->asleep = false;
	} else if (is_32bit && facts->asleep) {
		facts->has_narrow_time = wp_call_memory_make_native(
			process, &facts->syscall_nr, facts->args);
	}
}
