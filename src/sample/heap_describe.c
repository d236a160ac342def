/* SPDX-License-Identifier: Apache-2.0 */
/* heap_describe.c - what a heap profile says of how it was made. */
#include <errno.h>
#include <stdio.h>

#include "heap_state.h"
#include "sampler_loop.h"
#include "target.h"

int wp_heap_samples_describe(struct wp_target *target)
{
	const struct wp_heap_samples *h = target->heap_samples;
	struct wp_heap_counts counts = wp_heap_probe_counts(h->probe);
	uint64_t lost = counts.unsent + h->objects.ndropped + h->maps.ndropped +
			h->nbeyond;
	static const char *const tiers[WP_HEAP_NTIERS] = {
		[WP_HEAP_TIER_SESSION] = "uprobe sessions",
		[WP_HEAP_TIER_MULTI] = "uprobes, two for each call",
		[WP_HEAP_TIER_PERF] = "uprobes of perf events",
	};
	char text[sizeof(h->why.msg) + sizeof(h->sites.files) + 1024];
	int n = snprintf(
		text, sizeof(text),
		"%llu calls that allocate, %llu that free and %llu of mmap and "
		"its kin, in %s; one sample "
		"per %llu bytes, %llu in all, %llu of them lost; probes (%s) "
		"took at most %.1f %% of the threads' time",
		(unsigned long long)counts.calls,
		(unsigned long long)counts.frees,
		(unsigned long long)counts.maps,
		h->sites.files[0] ? h->sites.files : "no file",
		(unsigned long long)target->loop->options.heap_rate,
		(unsigned long long)(counts.samples - h->ninner),
		(unsigned long long)lost, tiers[wp_heap_probe_tier(h->probe)],
		h->cost * 100);
	struct wp_counters *c = &target->profile->counters;
	uint32_t id;

	c->heap_samples = counts.samples;
	c->heap_lost = lost + counts.unfollowed;
	c->heap_overwritten = h->noverwritten;
	c->heap_ended = h->why.code != 0;
	if (!wp_heap_probe_can(h->probe, WP_HEAP_MPROTECT))
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      "; memory that mprotect makes usable is not in "
			      "it (these probes want Linux 5.17 for that)");
	if (counts.unfollowed)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      "; %llu objects are not known to be in use, for "
			      "want of room",
			      (unsigned long long)counts.unfollowed);
	if (h->noverwritten)
		n += snprintf(
			text + n, sizeof(text) - (size_t)n,
			"; the process has written over %zu of %zu probes: "
			"what it allocated there since is not known",
			h->noverwritten, h->sites.nplaces);
	if (h->why.code)
		snprintf(text + n, sizeof(text) - (size_t)n,
			 "; ended before the recording: %s", h->why.msg);
	id = wp_intern_add_str(&target->profile->strings, text);
	if (id == UINT32_MAX)
		return -ENOMEM;
	target->profile->meta.source[WP_PROFILE_HEAP] = id;
	target->profile->meta.heap_period =
		(int64_t)target->loop->options.heap_rate;
	return 0;
}
