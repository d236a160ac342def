/* SPDX-License-Identifier: Apache-2.0 */
/* wait_state.c - see wait_state.h. */
#include "wait_state.h"

#include <string.h>

enum {
	/* Added to the numbers of 32-bit programs' calls. */
	FOREIGN_CALLS = 1000000,
};

void wp_wait_state_init(struct wp_wait_state *wait)
{
	*wait = (struct wp_wait_state){ .look_sample = UINT32_MAX,
					.call_nr = -1 };
}

struct wp_thread_state wp_wait_state_begin(struct wp_wait_state *wait,
					   const struct wp_thread_facts *facts)
{
	struct wp_thread_state state = wp_state_classify(facts);

	wait->facts = *facts;
	wait->waiting = state.state != WP_STATE_RUNNING;
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
enum { CALL_BYTES = 7 };
#define call_of wp_wait_state_call_x86_64
#else
/* glibc sets x8 before the other arguments. */
enum { CALL_BYTES = 40 };
#define call_of wp_wait_state_call_aarch64
#endif

long wp_wait_state_call_before(const struct wp_process *process,
			       uint64_t pc_avma)
{
	uint8_t code[CALL_BYTES];

	if (wp_process_read(process, pc_avma - sizeof(code), code,
			    sizeof(code)) != sizeof(code))
		return -1;
	return call_of(code, sizeof(code));
}

long wp_wait_state_call(struct wp_wait_state *wait,
			const struct wp_process *process, bool is_32bit,
			const struct wp_proc_syscall *call)
{
	long nr;

	if (is_32bit)
		return call->nr < 0 ? call->nr : FOREIGN_CALLS + call->nr;
	if (call->nr != wp_syscall_restart) {
		wait->call_nr = call->nr;
		wait->call_pc_avma = call->pc_avma;
		return call->nr;
	}
	if (wait->call_pc_avma == call->pc_avma && wait->call_nr >= 0)
		return wait->call_nr;
	nr = wp_wait_state_call_before(process, call->pc_avma);
	return nr < 0 ? wp_syscall_restart : nr;
}
