/* SPDX-License-Identifier: Apache-2.0 */
/* switch_sample.c - see switch_sample.h. */
#include "switch_sample.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "stack_walk.h"
#include "target.h"
#include "threads.h"
#include "wait_object.h"
#include "wallprof/call_memory.h"
#include "wallprof/hash.h"

long wp_switch_sample_call(struct wp_switch_sample_calls *calls,
			   struct wp_target *target, uint64_t pc_avma)
{
	size_t i = wp_hash_u64(pc_avma) % WP_SWITCH_SAMPLE_CALLS;
	uint64_t generation = target->space.view.generation;

	if (calls->v[i].pc_avma != pc_avma ||
	    calls->v[i].pid != target->process->pid ||
	    calls->v[i].generation != generation) {
		calls->v[i].pc_avma = pc_avma;
		calls->v[i].pid = target->process->pid;
		calls->v[i].generation = generation;
		calls->v[i].nr = wp_wait_state_call_before(
			target->process, target->space.is_32bit, pc_avma);
	}
	return calls->v[i].nr;
}

/* The system call that T is in, which its user registers at a switch do not hold.
 * Where the code before pc does not tell it either (syscall(2)), T's last sample
 * by a tick may, or the arguments ARGS: a futex(2) operation on a private word
 * looks like the argument of no other call. */
static long find_call(struct wp_switch_sample_calls *calls,
		      const struct wp_thread *t, const struct wp_regs *regs,
		      const uint64_t *args)
{
	uint64_t pc_avma = regs->v[WP_REG_PC];
	long nr = wp_switch_sample_call(calls, t->target, pc_avma);

	if (nr != wp_syscall_restart)
		return nr;
	if (t->wait.call_pc_avma == pc_avma && t->wait.call_nr >= 0)
		return t->wait.call_nr;
	switch (args[1]) {
	case FUTEX_WAIT_PRIVATE:
	case FUTEX_LOCK_PI_PRIVATE:
	case FUTEX_WAIT_BITSET_PRIVATE:
	case FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME:
		return SYS_futex;
	default:
		return nr;
	}
}

/* Set FACTS' call, which is i386's: by the code before pc, or in the vDSO before
 * RETURN_AVMA, the return address of the function that is there; 0: not known. */
static void find_call_32(struct wp_switch_sample_calls *calls,
			 const struct wp_thread *t, const struct wp_regs *regs,
			 uint64_t return_avma, struct wp_thread_facts *facts)
{
	long nr = wp_switch_sample_call(calls, t->target, regs->v[WP_REG_PC]);

	for (int i = 0; i < WP_SYSCALL_ARGS; i++)
		facts->args[i] = regs->v[wp_syscall_i386_arg_regs[i]];
	facts->syscall_nr = nr;
	if (nr < 0)
		return;
	if (nr == WP_SYSCALL_RESTART_I386 && return_avma)
		nr = wp_switch_sample_call(calls, t->target, return_avma);
	facts->syscall_nr = nr < 0 ? WP_SYSCALL_RESTART_I386 : nr;
	(void)wp_call_memory_make_native(t->target->process, &facts->syscall_nr,
					 facts->args);
}

bool wp_switch_sample_is_worker(struct wp_thread *t, const struct wp_regs *regs)
{
	return !regs->v[WP_REG_PC] && wp_stop_guard_is_worker(t);
}

void wp_switch_sample_wait(struct wp_switch_sample_calls *calls,
			   struct wp_thread *t, const struct wp_regs *regs,
			   uint64_t return_avma, struct wp_sample_key *key)
{
	struct wp_thread_facts facts = { .state_char = 'S', .syscall_nr = -1 };

	if (wp_switch_sample_is_worker(t, regs)) {
		/* The switch does not tell what for, nor whether in D state. */
		facts.is_worker = true;
	} else if (t->target->space.is_32bit) {
		find_call_32(calls, t, regs, return_avma, &facts);
	} else {
		for (int i = 0; i < WP_SYSCALL_ARGS; i++)
			facts.args[i] = regs->v[wp_syscall_arg_regs[i]];
		facts.syscall_nr = find_call(calls, t, regs, facts.args);
	}
	/* One that is short is over by now. */
	if (facts.syscall_nr < 0)
		facts.hold = wp_hold_read(t->target->process->task_fd, t->tid);
	key->state = WP_STATE_WAITING;
	key->wait = (uint8_t)wp_state_classify(&facts).wait;
	wp_wait_object_refine(t->target, t->tid, key, &facts);
}

int wp_switch_sample_key(struct wp_switch_sample_calls *calls,
			 struct wp_thread *t, struct wp_perf_source *source,
			 const struct wp_perf_record *record,
			 struct wp_sample_key *ret)
{
	struct wp_stack_walk walk =
		wp_switch_sample_is_worker(t, &record->regs) ?
			wp_stack_walk_none(t->target, WP_END_WORKER) :
			wp_stack_walk_sample(t->target, source, record);
	struct wp_sample_key key = {
		.stack = wp_stack_walk_intern(t->target, &walk),
		.thread = t->index,
	};

	if (key.stack == UINT32_MAX)
		return -ENOMEM;
	wp_switch_sample_wait(
		calls, t, &record->regs,
		walk.stack.depth > 1 ? walk.stack.frames[1].pc_avma : 0, &key);
	*ret = key;
	return 0;
}
