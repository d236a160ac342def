/* SPDX-License-Identifier: Apache-2.0 */
/* unstopped.c - see unstopped.h. */
#include "unstopped.h"

#include <errno.h>

#include "record.h"
#include "target.h"

int wp_unstopped_record(struct wp_thread *t, enum wp_stack_end why)
{
	wp_stop_request_done(t);
	if (!t->stop.for_registers)
		return wp_record_without_stack(t, why, t->stop.weight_ns);
	t->target->profile->counters.partial++;
	t->target->profile->counters.no_stop++;
	return wp_wait_queue_add(t, &t->stop.facts, t->stop.partial_stack,
				 t->stop.weight_ns);
}

int wp_unstopped_record_all(struct wp_target *target)
{
	struct wp_stop_requests *list = &target->stop_requests;
	int rc = 0;

	while (list->n && !rc)
		rc = wp_unstopped_record(
			wp_stop_requests_take(list, list->n - 1),
			WP_END_NO_STOPS);
	return rc;
}

void wp_unstopped_end(struct wp_thread *t)
{
	wp_stop_request_done(t);
	/* What a wait stands for is not of the time that it is ready to run. */
	wp_time_ledger_owe_look(&t->time,
				t->stop.for_registers ? 0 : t->stop.weight_ns);
}

int wp_unstopped_owe(struct wp_thread *t)
{
	if (t->stop.for_registers)
		return wp_unstopped_record(t, WP_END_UNKNOWN_REG);
	wp_unstopped_end(t);
	return 0;
}

int wp_unstopped_put_off(struct wp_thread *t)
{
	t->target->profile->counters.stops_over_budget++;
	return wp_unstopped_owe(t);
}

int wp_unstopped_refuse(struct wp_thread *t, int rc)
{
	struct wp_counters *counters = &t->target->profile->counters;
	uint64_t tracer;

	if (rc == -ENOMEM)
		return rc;
	/* A thread on its way out gives EPERM too (ptrace(2)). */
	if (!wp_process_has_living(t->target->process, t->tid)) {
		wp_unstopped_end(t);
		return 0;
	}
	if (rc == -EALREADY) {
		counters->stops_given_up++;
		return wp_unstopped_record(t, WP_END_NOT_STOPPED);
	}
	counters->stops_refused++;
	return wp_unstopped_record(
		t, !wp_thread_files_status(&tracer, t, "TracerPid") && tracer ?
			   WP_END_REFUSED :
			   WP_END_DENIED);
}
