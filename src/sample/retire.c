/* SPDX-License-Identifier: Apache-2.0 */
/* retire.c - targets that are let go of while the others go on: see
 * wallprof/sampler.h. */
#include "sampler_loop.h"
#include "target.h"
#include "wallprof/profile_processes.h"

void wp_sampler_forget(struct wp_sampler *loop,
		       const struct wp_process *process)
{
	for (size_t i = 0; i < loop->ntargets; i++) {
		struct wp_target *target = loop->targets[i];

		if (target->process != process || target->forgotten)
			continue;
		target->gone = target->forgotten = true;
		target->profile->counters.processes_denied++;
		if (loop->finishing)
			wp_profile_forget_process(target->profile,
						  target->index);
	}
}

/* Take the stops that targets which have ended still hold, and pay their time. */
static int finish_ended(struct wp_target *target)
{
	int rc;

	if (!target->gone)
		return 0;
	wp_bpf_scan_drop(target->loop, target->process->pid);
	rc = wp_target_end_stops(target);
	return rc ? rc : wp_target_finish(target);
}

int wp_sampler_retire(struct wp_sampler *loop,
		      void (*ended)(void *ctx, struct wp_process *process),
		      void *ctx)
{
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < loop->ntargets && !rc; i++)
		rc = finish_ended(loop->targets[i]);
	for (size_t i = 0; i < loop->ntargets; i++) {
		struct wp_target *target = loop->targets[i];
		struct wp_process *process = target->process;

		if (rc || !target->gone) {
			loop->targets[n++] = target;
			continue;
		}
		wp_target_free(target);
		ended(ctx, process);
	}
	loop->ntargets = n;
	return rc;
}
