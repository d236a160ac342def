/* SPDX-License-Identifier: Apache-2.0 */
/* stop_late.c - stops that have not come: see stop_window.h. */
#include "sampler_loop.h"
#include "stop_window.h"
#include "target.h"
#include "threads.h"
#include "unstopped.h"
#include "wallprof/clock.h"

static struct wp_tracee *tracee_of(const struct wp_thread *t)
{
	return wp_tracer_find(t->target->loop->tracer, (uintptr_t)t);
}

bool wp_stop_window_is_open(struct wp_thread *t)
{
	if (!t->stop.pending)
		return false;
	if (tracee_of(t))
		return true;
	wp_unstopped_end(t);
	return false;
}

size_t wp_stop_window_count(const struct wp_target *target)
{
	return target->stop_requests.npending;
}

void wp_stop_window_note_late(void *sampler, pid_t tid, uint64_t stopped_ns)
{
	struct wp_sampler *loop = sampler;

	for (size_t k = 0; k < loop->ntargets; k++) {
		struct wp_target *target = loop->targets[k];
		size_t i = wp_threads_place(target, tid);

		if (i == target->nthreads || target->threads[i]->tid != tid)
			continue;
		target->threads[i]->waits.stop_begin_ns = stopped_ns;
		target->threads[i]->waits.stop_end_ns = wp_clock_ns();
	}
}

/* A stop takes effect when the thread is next put on a CPU.  T has not been, or once:
 * between the read of its slices and the interrupt, which may be long where we wait
 * for a CPU ourselves. */
static bool waits_for_cpu(struct wp_thread *t)
{
	struct wp_schedstat now;
	struct wp_proc_stat stat;
	char text[1024];
	ssize_t n;

	if (wp_thread_files_schedstat(t, &now) ||
	    now.slices > t->stop.slices + 1)
		return false;
	n = wp_thread_files_read(t, WP_THREAD_STAT, text, sizeof(text));
	return n > 0 && !wp_proc_stat_parse(&stat, text, (size_t)n) &&
	       stat.state_char == 'R';
}

bool wp_stop_window_may_come(const struct wp_target *target,
			     uint64_t max_age_ns)
{
	for (size_t i = 0; i < target->nthreads; i++) {
		struct wp_thread *t = target->threads[i];
		const struct wp_tracee *tracee = t->stop.pending ?
							 tracee_of(t) :
							 NULL;

		if (tracee && (wp_clock_ns() - tracee->asked_ns < max_age_ns ||
			       waits_for_cpu(t)))
			return true;
	}
	return false;
}

/* WAITS: T waits for a CPU. */
static int give_up(struct wp_thread *t, bool waits)
{
	struct wp_tracee *tracee = tracee_of(t);

	if (tracee)
		wp_tracer_release(t->target->loop->tracer, tracee);
	/* It is still where its last stack was read. */
	if (waits && t->last_running_stack != UINT32_MAX)
		return wp_unstopped_owe(t);
	t->target->profile->counters.stops_given_up++;
	return wp_unstopped_record(t,
				   waits ? WP_END_NO_CPU : WP_END_NOT_STOPPED);
}

int wp_stop_window_expire(struct wp_target *target, uint64_t max_age_ns)
{
	uint64_t tick_ns = target->loop->tick_ns;
	int rc = 0;

	if (!target->stop_requests.npending)
		return 0;
	for (size_t i = 0; i < target->nthreads && !rc; i++) {
		struct wp_thread *t = target->threads[i];
		bool waits;

		if (!t->stop.pending ||
		    (max_age_ns && tick_ns - t->stop.tick_ns < max_age_ns))
			continue;
		waits = waits_for_cpu(t);
		if (!max_age_ns || !waits)
			rc = give_up(t, waits);
	}
	return rc;
}
