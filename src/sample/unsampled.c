/* SPDX-License-Identifier: Apache-2.0 */
/* unsampled.c - see unsampled.h. */
#include "unsampled.h"

#include "record.h"
#include "sampler_loop.h"
#include "stack_walk.h"
#include "target.h"
#include "thread.h"

enum {
	/* Stops that share what was unsampled before that was known. */
	BACKLOG_STOPS = 64,
	/* What is more than that, and than these, is time in the kernel that stops at
	 * the end of calls do not stand for: of page faults. */
	KEPT_INTERVALS = 20,
};

/* Of events of CPUs no thread's samples are the same part of its run time. */
static uint64_t unsampled(const struct wp_thread *t)
{
	const struct wp_perf *perf = t->target->cpu_events->perf;

	if (!perf || wp_perf_facts(perf)->main_scope == WP_PERF_CPU ||
	    !t->target->loop->schedstat_works || t->target->goroutines)
		return 0;
	if (!wp_perf_facts(perf)->user_only &&
	    !wp_time_ledger_is_silent(&t->time,
				      wp_sampler_period(t->target->loop)))
		return 0;
	return wp_time_ledger_unsampled(&t->time,
					wp_sampler_period(t->target->loop),
					wp_perf_facts(perf)->nrings);
}

static bool can_be_stopped(struct wp_thread *t)
{
	return t->target->wants_running &&
	       t->target->loop->options.stop != WP_STOP_NEVER &&
	       !wp_stop_guard_has_filter(t) && !wp_stop_guard_is_worker(t);
}

bool wp_unsampled_wants_stop(struct wp_thread *t)
{
	return unsampled(t) && can_be_stopped(t);
}

/* What is left of the backlog is at most NS: 0 would be that none is known. */
static void limit_backlog(struct wp_time_ledger *ledger, int64_t ns)
{
	if ((int64_t)ledger->backlog_ns > ns)
		ledger->backlog_ns = ns > 1 ? (uint64_t)ns : 1;
}

void wp_unsampled_stop(struct wp_thread *t, bool at_call)
{
	const uint64_t interval_ns = wp_sampler_period(t->target->loop);
	struct wp_time_ledger *ledger = &t->time;
	uint64_t ns = unsampled(t), most_ns, keep_ns;

	if (!ns)
		return;
	most_ns = wp_time_ledger_stop_unsampled(ledger, ns, interval_ns);
	keep_ns = ledger->backlog_ns + KEPT_INTERVALS * interval_ns;
	if (at_call || wp_time_ledger_is_silent(ledger, interval_ns)) {
		uint64_t part_ns = ledger->backlog_ns / BACKLOG_STOPS;

		most_ns += part_ns;
		keep_ns = 0;
		ledger->backlog_ns -= part_ns;
	}
	if (ns > keep_ns)
		wp_time_ledger_owe_unsampled(ledger, ns - keep_ns < most_ns ?
							     ns - keep_ns :
							     most_ns);
	limit_backlog(ledger, ledger->unsampled_ns);
}

uint64_t wp_unsampled_kept(struct wp_thread *t)
{
	const struct wp_perf *perf = t->target->cpu_events->perf;
	uint64_t ns = perf && wp_perf_facts(perf)->user_only &&
				      can_be_stopped(t) ?
			      unsampled(t) :
			      0;

	/* The backlog's running time was paid before it was known. */
	return ns > t->time.backlog_ns ? ns - t->time.backlog_ns : 0;
}

int wp_unsampled_record(struct wp_thread *t, bool ended)
{
	uint64_t ns = unsampled(t);
	const struct wp_perf *perf = t->target->cpu_events->perf;

	if (!ns ||
	    (can_be_stopped(t) && !(ended && wp_perf_facts(perf)->user_only)))
		return 0;
	wp_time_ledger_owe_unsampled(&t->time, ns);
	return wp_record_cpu(
		t, wp_stack_walk_intern_none(t->target, WP_END_NOT_SAMPLED));
}
