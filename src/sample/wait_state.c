/* SPDX-License-Identifier: Apache-2.0 */
/* wait_state.c - see wait_state.h. */
#include "wait_state.h"

#include <string.h>
#include <sys/syscall.h>

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

#if defined(__x86_64__)
/* `mov $NR, %eax; syscall`, or `xor %eax, %eax` for read(2). */
long wp_wait_state_call_before(const struct wp_process *process,
			       uint64_t pc_avma)
{
	uint8_t code[7];
	int32_t nr;

	if (wp_process_read(process, pc_avma - sizeof(code), code,
			    sizeof(code)) != sizeof(code) ||
	    code[5] != 0x0f || code[6] != 0x05)
		return -1;
	if (code[3] == 0x31 && code[4] == 0xc0)
		return SYS_read;
	if (code[0] != 0xb8)
		return wp_syscall_restart;
	memcpy(&nr, code + 1, sizeof(nr));
	return nr;
}
#else
long wp_wait_state_call_before(const struct wp_process *process,
			       uint64_t pc_avma)
{
	(void)process;
	(void)pc_avma;
	return wp_syscall_restart;
}
#endif

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
