/* SPDX-License-Identifier: Apache-2.0 */
/* targets.c - which targets there are, and those that are let go of while the others go
 * on: see wallprof/sampler.h. */
#include <errno.h>

#include "sampler_loop.h"
#include "target.h"
#include "thread_starts.h"
#include "threads.h"
#include "wallprof/profile_processes.h"

struct wp_target *wp_sampler_find_last(struct wp_sampler *loop, pid_t pid)
{
	uint32_t *hint = &loop->hints[(size_t)pid % WP_SAMPLER_HINTS];

	if (*hint < loop->ntargets && !loop->targets[*hint]->gone &&
	    loop->targets[*hint]->process->pid == pid)
		return loop->targets[*hint];
	for (size_t i = loop->ntargets; i-- > 0;)
		if (loop->targets[i]->process->pid == pid) {
			*hint = (uint32_t)i;
			return loop->targets[i];
		}
	return NULL;
}

struct wp_target *wp_sampler_find(struct wp_sampler *loop, pid_t pid)
{
	struct wp_target *target = wp_sampler_find_last(loop, pid);

	return target && !target->gone ? target : NULL;
}

int wp_sampler_settle(struct wp_sampler *loop)
{
	bool no_memory = false;

	for (size_t i = 0; i < loop->ntargets; i++) {
		struct wp_target *target = loop->targets[i];

		for (size_t k = 0; k < target->nthreads; k++)
			wp_threads_settle(target->threads[k]);
		no_memory |= target->no_memory ||
			     wp_thread_starts_settle(target);
	}
	for (size_t i = 0; i < loop->ncommons; i++)
		loop->commons[i]->profile->counters.files_dropped =
			wp_image_cache_count_dropped(&loop->images);
	return no_memory ? -ENOMEM : 0;
}

size_t wp_sampler_count_threads(const struct wp_sampler *loop)
{
	size_t n = 0;

	for (size_t i = 0; i < loop->ntargets; i++)
		n += loop->targets[i]->nwatched;
	return n;
}

void wp_sampler_describe(struct wp_profile *profile,
			 const struct wp_process *process,
			 enum wp_stop_mode stop)
{
	struct wp_profile_meta *meta = &profile->meta;
	struct wp_intern *strings = &profile->strings;
	char text[4096];

	meta->pid = process->pid;
	wp_process_command_line(process, text, sizeof(text));
	meta->command_line = wp_intern_add_str(strings, text);
	wp_process_exe(process, text, sizeof(text));
	meta->exe = wp_intern_add_str(strings, text);
	meta->stop_mode = wp_intern_add_str(strings, wp_stop_mode_name(stop));
}

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

int wp_sampler_finish_ended(struct wp_sampler *loop)
{
	int rc = 0;

	for (size_t i = 0; i < loop->ntargets && !rc; i++)
		rc = finish_ended(loop->targets[i]);
	return rc;
}

int wp_sampler_retire(struct wp_sampler *loop,
		      void (*ended)(void *ctx, struct wp_process *process),
		      void *ctx)
{
	size_t n = 0;
	int rc = wp_sampler_finish_ended(loop);

	for (size_t i = 0; i < loop->ntargets; i++) {
		struct wp_target *target = loop->targets[i];
		struct wp_process *process = target->process;

		if (rc || !target->gone) {
			loop->targets[n++] = target;
			continue;
		}
		wp_target_free(target);
		wp_image_cache_forget(&loop->images, process);
		ended(ctx, process);
	}
	loop->ntargets = n;
	return rc;
}
