/* SPDX-License-Identifier: Apache-2.0 */
/* profile_processes.c - see wallprof/profile_processes.h. */
#include "wallprof/profile_processes.h"

#include <string.h>

static bool goes(uint32_t process, uint32_t index, const bool *stays)
{
	return stays ? !stays[process] : process == index;
}

/* Drop the samples of process INDEX or, with STAYS, of all for which that does not hold. */
static void forget(struct wp_profile *profile, uint32_t index,
		   const bool *stays)
{
	struct wp_timeline *timeline = &profile->timeline;
	struct wp_profile_thread *threads = profile->threads;

	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		for (uint32_t i = 0; i < profile->sets[kind].nsamples; i++) {
			struct wp_profile_sample *s =
				&profile->sets[kind].samples[i];

			if (goes(threads[s->key.thread].process, index, stays))
				*s = (struct wp_profile_sample){
					.key = s->key
				};
		}
	for (uint32_t i = 0; i < timeline->n; i++)
		if (goes(threads[timeline->v[i].thread].process, index, stays))
			timeline->v[i].ns = 0;
	for (uint32_t i = 0; i < profile->nthreads; i++)
		if (goes(threads[i].process, index, stays))
			threads[i].cpu_ns = 0;
}

void wp_profile_forget_process(struct wp_profile *profile, uint32_t index)
{
	profile->processes[index].is_forgotten = true;
	forget(profile, index, NULL);
}

void wp_profile_keep_processes(struct wp_profile *profile, const bool *stays)
{
	forget(profile, UINT32_MAX, stays);
}

static const char other_processes[] = "[other processes]";

/* The entry that processes called NAME share. */
static uint32_t find_process(const struct wp_profile *profile, const char *name)
{
	for (uint32_t i = 0; i < profile->nshared_processes; i++) {
		uint32_t index = profile->shared_processes[i];

		if (!strcmp(wp_profile_str(profile,
					   profile->processes[index].name),
			    name))
			return index;
	}
	return UINT32_MAX;
}

uint32_t wp_profile_share_process(struct wp_profile *profile, int32_t pid,
				  const char *name, uint32_t most)
{
	struct wp_profile_process process = {
		.pid = pid, .is_shared = most && profile->nprocesses >= most
	};
	uint32_t index = UINT32_MAX;

	if (process.is_shared) {
		index = find_process(profile, name);
		if (index == UINT32_MAX &&
		    profile->nshared_processes >= WP_SHARED_NAMES) {
			name = other_processes;
			index = find_process(profile, name);
		}
	}
	if (index != UINT32_MAX) {
		profile->processes[index].nmore++;
		return index;
	}
	process.name = wp_intern_add_str(&profile->strings, name);
	if (process.name == UINT32_MAX)
		return UINT32_MAX;
	index = wp_profile_add_process(profile, &process);
	if (process.is_shared && index != UINT32_MAX)
		profile->shared_processes[profile->nshared_processes++] = index;
	return index;
}
