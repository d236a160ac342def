/* SPDX-License-Identifier: Apache-2.0 */
/* wait_state.h - what a thread waits for, as its last sample found.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_WAIT_STATE_H
#define WP_WAIT_STATE_H

#include "wallprof/process.h"
#include "wallprof/procfs.h"
#include "wallprof/profile.h"
#include "wallprof/state.h"
#include "wallprof/tracer.h"

/* i386's number of restart_syscall: the native one is another call's there. */
enum { WP_SYSCALL_RESTART_I386 = 0 };

struct wp_wait_state {
	/* The last sample found the thread off its CPU: it has been so since,
	 * in the way of KEY, if schedstat has not moved. */
	bool waiting;
	/* For a child; KEY says so only once the wait is recorded. */
	bool for_child;
	struct wp_sample_key key;
	/* Index of the sample that was added to last, UINT32_MAX: none yet. */
	uint32_t sample;
	/* The same of the last wait that a look found, UINT32_MAX: none yet; and the
	 * weight that this look gave it. */
	uint32_t look_sample;
	uint64_t look_weight_ns;
	/* How often the thread was found in this wait for a child again. */
	uint32_t child_looks;
	/* What the last sample that read the thread found. */
	struct wp_thread_facts facts;
	/* The last system call that the thread was blocked in, and its pc and sp, for
	 * when the call goes on as restart_syscall; -1: none. */
	long call_nr;
	uint64_t call_pc_avma;
	uint64_t call_sp_avma;
};

void wp_wait_state_init(struct wp_wait_state *wait);

/* A sample found the thread off its CPU as FACTS say.  Returns its state. */
struct wp_thread_state wp_wait_state_begin(struct wp_wait_state *wait,
					   const struct wp_thread_facts *facts);

/* KEY describes the wait, unless it is over. */
void wp_wait_state_set_key(struct wp_wait_state *wait,
			   const struct wp_sample_key *key);

/* A sample found the thread ready to run. */
void wp_wait_state_end(struct wp_wait_state *wait);

/* The next sample must read the thread, whatever schedstat says. */
void wp_wait_state_distrust(struct wp_wait_state *wait);

/* The number of CALL, a native one.  If that is restart_syscall: of the call that it goes
 * on with, where WAIT remembers it or, unless IS_32BIT, the code of PROCESS tells it. */
long wp_wait_state_call(struct wp_wait_state *wait,
			const struct wp_process *process, bool is_32bit,
			const struct wp_proc_syscall *call);

/* Let REGS and FACTS of a stop be those of PROCESS, an i386 program if IS_32BIT: its call
 * is made a native one.  A thread may go to code of another width than its program's: of
 * its registers only pc and sp are known then, and of its call nothing. */
void wp_wait_state_settle_stop(const struct wp_process *process, bool is_32bit,
			       struct wp_regs *regs,
			       struct wp_stop_facts *facts);

/* The number of the system call that the instructions before PC make;
 * wp_syscall_restart if they do not tell, -1 if they make none.  IS_32BIT: they are
 * i386's, and so is the number: WP_SYSCALL_RESTART_I386 if they do not tell. */
long wp_wait_state_call_before(const struct wp_process *process, bool is_32bit,
			       uint64_t pc_avma);

/* The same, by the LEN bytes of CODE that end at the pc, of each machine. */
long wp_wait_state_call_x86_64(const uint8_t *code, size_t len);
long wp_wait_state_call_i386(const uint8_t *code, size_t len);
long wp_wait_state_call_aarch64(const uint8_t *code, size_t len);

#endif
