/* SPDX-License-Identifier: Apache-2.0 */
/* instant.c - see instant.h. */
#include "instant.h"

#include "target.h"
#include "thread.h"
#include "wallprof/clock.h"
#include "wallprof/syscall_nr.h"

/* What T waits for, as its sample found it. */
static const struct wp_thread_facts *facts_of(const struct wp_thread *t)
{
	if (t->stop.pending)
		return t->stop.for_registers ? &t->stop.facts : NULL;
	return t->wait.waiting ? &t->wait.facts : NULL;
}

/* Has T, which waits, done so without a break since its sample?  One that was
 * woken and has not had a CPU yet has the same schedstat. */
static bool still_waits(struct wp_thread *t)
{
	struct wp_schedstat now;

	return wp_thread_files_waits(t) &&
	       !wp_thread_files_schedstat(t, &now) &&
	       !wp_time_ledger_has_run(&t->time, &now);
}

static bool is_still(struct wp_thread *t)
{
	return t->stop.pending ? !t->stop.moved :
				 t->wait.waiting && still_waits(t);
}

static void copy_lock(struct wp_thread *t)
{
	const struct wp_thread_facts *facts = facts_of(t);
	struct wp_call_memory memory;

	if (!facts || facts->syscall_nr != SYS_futex)
		return;
	wp_call_memory_take(&memory, t->target->process, facts,
			    t->memory->sp_avma);
	if (is_still(t))
		*t->memory = memory;
}

void wp_instant_take(struct wp_target *target)
{
	uint64_t now_ns;

	for (size_t i = 0; i < target->nthreads; i++)
		if (target->threads[i]->memory)
			copy_lock(target->threads[i]);
	now_ns = wp_clock_ns();
	for (size_t i = 0; i < target->nthreads; i++) {
		struct wp_thread *t = target->threads[i];

		t->at_instant = is_still(t);
		if (t->at_instant && t->memory)
			t->memory->time_ns = now_ns;
	}
}
