/* SPDX-License-Identifier: Apache-2.0 */
/* look.c - one look at one thread: see sampler_priv.h. */
#include <errno.h>

#include "sampler_priv.h"
#include "wallprof/clock.h"

enum {
	/* A thread that moves while it is read is read once more; more often
	 * where no stop can settle what it does. */
	TRIES = 2,
	TRIES_NEVER = 6,
};

/* A thread on a CPU for this long has been counted as running: the slowest
 * kernel tick is 100 Hz. */
#define COUNTED_NS (10 * WP_NS_PER_MS)

uint64_t wp_look_take_time(struct wp_target *target, struct wp_thread *t)
{
	uint64_t ns = target->loop->tick_ns - t->last_ns;

	t->last_ns = target->loop->tick_ns;
	return ns;
}

static void walk(struct wp_target *target, const struct wp_regs *regs,
		 enum wp_unwind_pace pace)
{
	struct wp_mem mem = wp_stack_copy_mem(&target->loop->copy);

	target->loop->stack.frames = target->loop->frame_room +
				     WP_KERNEL_FRAMES_MAX;
	target->loop->stack.cfa_avma = target->loop->cfa_room +
				       WP_KERNEL_FRAMES_MAX;
	target->loop->stack.cap = target->loop->options.max_depth;
	wp_unwind_walk(target->loop->unwinder, &target->space.view, regs, &mem,
		       pace, &target->loop->stack);
}

/* Did the walk meet an address that is in no mapping? */
static bool met_unknown(const struct wp_target *target)
{
	for (uint32_t i = 0; i < target->loop->stack.depth; i++)
		if (target->loop->stack.frames[i].mapping == WP_MAPPING_NONE)
			return true;
	return false;
}

/* Is such an address code only since the map was read, or another frame in a
 * mapping that is another by now: dlopen, dlclose, exec? */
static bool is_stale(struct wp_target *target)
{
	for (uint32_t i = 0; i < target->loop->stack.depth; i++)
		if (target->loop->stack.frames[i].mapping == WP_MAPPING_NONE &&
		    wp_address_space_misses(
			    &target->space,
			    target->loop->stack.frames[i].pc_avma))
			return true;
	return !wp_address_space_check(&target->space, &target->loop->stack,
				       target->tick);
}

void wp_look_walk(struct wp_target *target, const struct wp_regs *regs,
		  enum wp_unwind_pace pace)
{
	bool stale;

	target->loop->map_is_stale = false;
	walk(target, regs, pace);
	stale = is_stale(target);
	if (!stale && !met_unknown(target))
		return;
	if (wp_address_space_reload(&target->space, stale) == 1)
		walk(target, regs, pace);
	else
		target->loop->map_is_stale = true;
}

/* How much of the time since it was last divided T was on a CPU. */
static double divide(struct wp_thread *t, const struct wp_schedstat *now)
{
	/* Below what they were: another thread has the number. */
	uint64_t run = now->run_ns < t->divided.run_ns ?
			       0 :
			       now->run_ns - t->divided.run_ns;
	uint64_t wait = now->wait_ns < t->divided.wait_ns ?
				0 :
				now->wait_ns - t->divided.wait_ns;

	/* A wait for a CPU is counted by the kernel when it ends. */
	wait -= wait < t->called_runnable_ns ? wait : t->called_runnable_ns;
	t->divided = *now;
	t->called_runnable_ns = 0;
	/* Both may be 0 still: the kernel counts time on a CPU at its ticks. */
	return run + wait ? (double)run / (double)(run + wait) : 1.0;
}

void wp_look_settle(struct wp_thread *t, const struct wp_schedstat *now)
{
	uint64_t running_ns = t->undecided_ns;

	if (!t->undecided_ns)
		return;
	running_ns = (uint64_t)((double)running_ns * divide(t, now));
	t->owed_running_ns += running_ns;
	t->owed_runnable_ns += t->undecided_ns - running_ns;
	t->undecided_ns = 0;
}

/* Looks at a running thread without a CPU sample until it is stopped instead. */
enum { PATIENCE = 5 };

/* May T's stack come from its next CPU sample?  One that MOVED while it was
 * read is hardly on a CPU, and may have none for long. */
static bool comes_by_cpu_sample(const struct wp_target *target,
				const struct wp_thread *t, bool moved)
{
	if (!target->cpu_events.perf ||
	    target->loop->options.stop == WP_STOP_ALL)
		return false;
	if (target->loop->options.stop == WP_STOP_NEVER)
		return true;
	/* One that hardly runs may have none at all: a first stack is had by
	 * a stop. */
	if (t->owed_cpu_count || moved || t->last_running_stack == UINT32_MAX)
		return false;
	return target->loop->finishing || t->owed_count < PATIENCE;
}

/* NS that T was ready to run are owed to its next CPU sample.  Unless it has run
 * meanwhile it waits for a CPU; that it has not is known after COUNTED_NS. */
static int owe(struct wp_target *target, struct wp_thread *t,
	       const struct wp_schedstat *now, uint64_t ns)
{
	t->owed_count++;
	t->undecided_ns += ns;
	if (wp_has_run(&t->base, now)) {
		wp_look_settle(t, now);
		t->base = *now;
		t->base_ns = target->loop->tick_ns;
	} else if (target->loop->tick_ns - t->base_ns >= COUNTED_NS) {
		t->called_runnable_ns += t->undecided_ns;
		t->owed_runnable_ns += t->undecided_ns;
		t->undecided_ns = 0;
	}
	return 0;
}

/* T is ready to run, or MOVED while it was read. */
static int look_running(struct wp_target *target, struct wp_thread *t,
			const struct wp_schedstat *now, bool moved)
{
	uint64_t ns = wp_look_take_time(target, t), running_ns;

	t->asleep = false;
	t->facts = (struct wp_thread_facts){ .running = true,
					     .syscall_nr = -1 };
	/* Only what waits is of interest, or a stack for CPU samples that have
	 * none. */
	if (!target->wants_running && !t->owed_cpu_count) {
		t->base = t->divided = *now;
		return 0;
	}
	/* Ready, and it has not run since its stack was taken: it waits for a
	 * CPU, and stopping it would tell nothing new. */
	if (t->stack_holds && !wp_has_run(&t->base, now) &&
	    target->loop->tick_ns - t->base_ns >= COUNTED_NS) {
		t->called_runnable_ns += ns;
		t->ask = (struct wp_ask){ .runnable_ns = ns };
		target->profile->counters.unchanged++;
		return wp_record_running(target, t, t->last_running_stack,
					 WP_STATE_RUNNABLE);
	}
	t->stack_holds = false;
	if (comes_by_cpu_sample(target, t, moved))
		return owe(target, t, now, ns);
	ns += t->undecided_ns;
	t->undecided_ns = 0;
	t->base = *now;
	t->base_ns = target->loop->tick_ns;
	running_ns = (uint64_t)((double)ns * divide(t, now));
	t->ask = (struct wp_ask){ .tick_ns = target->loop->tick_ns,
				  .running_ns = running_ns,
				  .runnable_ns = ns - running_ns,
				  .slices = now->slices };
	target->askers[target->naskers++] = t;
	return 0;
}

/* T has run since the last look, or was not waiting then. */
static int look_again(struct wp_target *target, struct wp_thread *t,
		      struct wp_schedstat *now)
{
	int tries = target->loop->options.stop == WP_STOP_NEVER ? TRIES_NEVER :
								  TRIES;

	for (int try = 0; try < tries; try++) {
		struct wp_stand stand = { .before = *now };
		char text[256];
		ssize_t n = wp_thread_read(target, t, WP_THREAD_SYSCALL, text,
					   sizeof(text));
		int rc;

		if (n < 0)
			return (int)n;
		if (wp_proc_syscall_parse(&stand.call, text, (size_t)n))
			return -EBADMSG;
		if (stand.call.running)
			return look_running(target, t, now, false);
		if (target->loop->wait_for_runners) {
			t->later = true;
			return 0;
		}
		rc = wp_waiting_stand(target, t, &stand);
		if (rc > 0)
			rc = wp_waiting_look(target, t, &stand);
		if (rc)
			return rc < 0 ? rc : 0;
		target->profile->counters.inconsistent++;
		rc = wp_thread_schedstat(target, t, now);
		if (rc)
			return rc;
	}
	return look_running(target, t, now, true);
}

/* T stands as a scan says: as wp_waiting_look. */
static int look_where_it_stood(struct wp_target *target, struct wp_thread *t,
			       const struct wp_stand *stand)
{
	int rc = 1;

	if (target->loop->wait_for_runners)
		t->later = true;
	else
		rc = wp_waiting_look(target, t, stand);
	target->profile->counters.inconsistent += rc == 0;
	return rc;
}

static int look_changed(struct wp_target *target, struct wp_thread *t,
			const struct wp_stand *stand, struct wp_schedstat *now)
{
	if (stand) {
		int rc = look_where_it_stood(target, t, stand);

		if (rc)
			return rc < 0 ? rc : 0;
		rc = wp_thread_schedstat(target, t, now);
		if (rc)
			return rc;
	}
	return look_again(target, t, now);
}

/* As T was at its last look? */
static bool holds(const struct wp_target *target, const struct wp_thread *t,
		  const struct wp_schedstat *now)
{
	return (t->asleep || !target->looks_at_all) &&
	       target->loop->schedstat_works && !wp_has_run(&t->base, now);
}

static int look_unchanged(struct wp_target *target, struct wp_thread *t)
{
	if (!target->looks_at_all)
		return 0;
	wp_cpu_account(target, t, &t->base);
	return wp_record_unchanged(target, t, wp_look_take_time(target, t));
}

/* Its number is another thread's by now. */
static bool is_another(struct wp_thread *t, const struct wp_task_record *record)
{
	if (!t->began_ns)
		t->began_ns = record->start_ns;
	return t->began_ns != record->start_ns;
}

/* By RECORD, if there is one, which says that T has run. */
static int look(struct wp_target *target, struct wp_thread *t,
		const struct wp_task_record *record)
{
	struct wp_stand stand;
	struct wp_schedstat now;
	bool stands = record && wp_waiting_stand_of(target, record, &stand);

	if (stands) {
		now = stand.before;
	} else {
		int rc = wp_thread_schedstat(target, t, &now);

		if (rc)
			return rc;
		if (holds(target, t, &now))
			return look_unchanged(target, t);
	}
	if (target->loop->schedstat_works)
		wp_cpu_account(target, t, &now);
	if (!target->looks_at_all && !t->owed_cpu_count) {
		t->base = now;
		return 0;
	}
	wp_threads_name(target, t, record);
	if (!t->watched)
		return 0;
	return look_changed(target, t, stands ? &stand : NULL, &now);
}

int wp_look(struct wp_target *target, struct wp_thread *t)
{
	const struct wp_task_record *record = wp_bpf_scan_find(target->loop,
							       t->tid);

	t->later = false;
	if (t->asked) {
		/* It may have ended under the stop. */
		if (wp_tracer_find(target->loop->tracer, (uintptr_t)t))
			return 0;
		t->asked = false;
	}
	if (record && is_another(t, record))
		return -ESRCH;
	if (record) {
		struct wp_schedstat then = wp_bpf_scan_times(record);

		if (holds(target, t, &then))
			return look_unchanged(target, t);
	}
	return look(target, t, record);
}
