/* SPDX-License-Identifier: Apache-2.0 */
/* heap_in_use.c - what of sampled allocations is in use: see heap_state.h. */
#include <errno.h>
#include <string.h>

#include "heap_state.h"
#include "sampler_loop.h"
#include "target.h"

/* Say in META that leaks are those of the first HALF_NS; IS_SHORT: of the probes' time, not
 * the recording's.  Of several processes the recording's time and the shortest stand. */
static void note_leaks(struct wp_profile_meta *meta, uint64_t half_ns,
		       bool is_short)
{
	if (half_ns > meta->leaks_ns)
		meta->leaks_ns = half_ns;
	if (is_short && (!meta->watched_ns || 2 * half_ns < meta->watched_ns))
		meta->watched_ns = half_ns ? 2 * half_ns : 1;
}

int wp_heap_in_use_add(struct wp_target *target)
{
	struct wp_sample_set *set = &target->profile->sets[WP_PROFILE_HEAP];
	const struct wp_sampler *loop = target->loop;
	struct wp_heap_samples *h = target->heap_samples;
	uint64_t start_ns = loop->options.many ? loop->start_ns :
						 target->start_ns;
	/* What is freed later is not seen. */
	bool is_short = h->state == WP_HEAP_STOPPED;
	uint64_t end_ns = is_short ? h->stood_ns : loop->tick_ns;
	uint64_t half_ns = end_ns > start_ns ? (end_ns - start_ns) / 2 : 0;
	uint64_t until_ns = loop->options.heap_leaks ? start_ns + half_ns :
						       UINT64_MAX;
	int rc;

	/* It has ended, and others go on: its memory is none of theirs. */
	if (!loop->finishing)
		return 0;
	rc = wp_heap_objects_count(&h->objects, h->probe, set, until_ns);
	wp_heap_maps_count(&h->maps, set, until_ns);
	if (rc && rc != -ENOMEM && !h->why.code)
		(void)!wp_err_set(&h->why, rc,
				  "what is in use is not known: %s",
				  strerror(-rc));
	if (loop->options.heap_leaks)
		note_leaks(&target->profile->meta, half_ns, is_short);
	return rc == -ENOMEM ? rc : 0;
}
