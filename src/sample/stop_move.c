/* SPDX-License-Identifier: Apache-2.0 */
/* stop_move.c - see stop_move.h. */
#include "stop_move.h"

#include <string.h>

#include "thread.h"
#include "thread_files.h"

/* T stands still: has it gone to sleep since its sample to stop and to go back only?
 * After a stop before this one it may not have gone back yet. */
static bool has_slept_to_stop(const struct wp_thread *t)
{
	return t->stop.sleeps != UINT64_MAX &&
	       wp_thread_files_sleeps(t) <= t->stop.sleeps + 1;
}

/* A thread that slept was put on a CPU once, to stop, or once more for each time
 * that another thread took that CPU meanwhile: else, by TIMES, read at the stop, it
 * has moved since it was interrupted, perhaps to another call with the same
 * arguments. */
static void settle_slices(struct wp_thread *t, const struct wp_schedstat *times,
			  const struct wp_stop_facts *facts)
{
	if (!facts->asleep || times->slices <= t->stop.slices + 1 ||
	    has_slept_to_stop(t))
		return;
	t->stop.moved = true;
	t->stop.slices = times->slices - 1;
}

/* Has T, which waited and was stopped for its registers, moved since its sample?
 * One that does not sleep was woken, and is where it was if its stack is. */
static void settle_move(struct wp_thread *t, const struct wp_regs *regs,
			const struct wp_stop_facts *facts)
{
	if (!t->stop.for_registers)
		return;
	t->stop.moved |= regs->v[WP_REG_SP] != t->stop.sp_avma ||
			 (facts->asleep &&
			  memcmp(facts->args, t->stop.facts.args,
				 sizeof(facts->args)) != 0);
	t->at_instant &= !t->stop.moved && facts->asleep;
	if (t->stop.moved || !facts->asleep)
		t->stop.sleeps = UINT64_MAX;
}

void wp_stop_move_settle(struct wp_thread *t, const struct wp_schedstat *times,
			 const struct wp_regs *regs,
			 const struct wp_stop_facts *facts)
{
	settle_slices(t, times, facts);
	settle_move(t, regs, facts);
}
