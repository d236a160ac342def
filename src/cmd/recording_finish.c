/* SPDX-License-Identifier: Apache-2.0 */
/* recording_finish.c - see wp_recording_finish of recording.h. */
#include <errno.h>

#include "recording.h"
#include "signals.h"
#include "wallprof/block_weight.h"
#include "wallprof/clock.h"
#include "wallprof/merge_threads.h"
#include "wallprof/symbolize.h"

/* Most names of threads in a profile for a collector. */
enum { PUSHED_NAMES = 64 };

/* Waits that records told of are in classes that are to be scaled. */
static int weigh_waits(struct wp_profile *p)
{
	const struct wp_stack none = { .end = WP_END_EMPTY };
	const struct wp_sample_set *set = &p->sets[WP_PROFILE_BLOCK];
	bool in_classes = false;
	uint32_t stack;

	for (uint32_t i = 0; i < set->nsamples; i++)
		in_classes |= (set->samples[i].key.object & 0xff) != 0;
	if (!in_classes)
		return 0;
	stack = wp_profile_add_stack(p, &none, 0);
	return stack == UINT32_MAX ? -ENOMEM : wp_block_weight_finish(p, stack);
}

static bool is_nothing(const struct wp_profile_sample *s)
{
	return !s->count && !s->wall_ns && !s->cpu_count && !s->cpu_ns &&
	       !s->looks && !s->weight_ns;
}

/* Drop from R's profile what is not of the time that is asked for: it needs no names. */
static int drop_others(struct wp_recording *r)
{
	struct wp_profile *p = &r->profile;
	struct wp_renumber to;
	int rc = wp_renumber_begin(&to, p);

	if (rc)
		return rc;
	for (unsigned int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		for (uint32_t i = 0; i < p->sets[kind].nsamples; i++) {
			uint32_t index = i;

			if (!is_nothing(&p->sets[kind].samples[i]))
				wp_renumber_ref(&to, WP_REF_SAMPLE + kind,
						&index);
		}
	rc = wp_renumber_apply(&to, p);
	if (!rc && r->recorded.profile)
		wp_recorded_renumber(&r->recorded, &to);
	wp_renumber_clear(&to);
	return rc;
}

static int name_functions(struct wp_recording *r)
{
	if (!r->options->sampler.many)
		return wp_symbolize(&r->profile, &r->process, &wp_interrupts);
	return r->recorded.nsources ?
		       wp_symbolize_sources(&r->profile, r->recorded.sources,
					    r->recorded.nsources,
					    &wp_interrupts) :
		       0;
}

int wp_recording_finish(struct wp_recording *r,
			const struct wp_recording_job *job, uint64_t from_ns,
			uint64_t to_ns)
{
	struct wp_profile *p = &r->profile;
	uint64_t now = wp_clock_ns();
	bool all_waits = job->ask.endpoint == WP_SERVE_BLOCK && !job->from_ns;
	int rc = 0;

	/* They have been weighed, and are P's. */
	if (!all_waits)
		rc = drop_others(r);
	if (!rc && !all_waits)
		rc = weigh_waits(p);
	if (rc)
		return rc;
	wp_profile_divide_wall(p, false);
	wp_profile_finish_cpu(p);
	p->meta.time_ns = wp_clock_utc_ns() - (int64_t)(now - from_ns);
	p->meta.duration_ns = (int64_t)(to_ns - from_ns);
	p->meta.achieved_hz = to_ns > from_ns ?
				      (double)p->counters.ticks * 1e9 /
					      (double)(to_ns - from_ns) :
				      0;
	if (job->ask.endpoint == WP_SERVE_PROFILE)
		p->meta.has_wall = false;
	if (job->ask.endpoint == WP_SERVE_FGPROF)
		p->meta.has_cpu = false;
	if (job->ask.endpoint == WP_SERVE_PUSH)
		rc = wp_merge_threads(p, PUSHED_NAMES);
	if (!rc)
		rc = name_functions(r);
	if (!rc)
		rc = wp_idle_mark(p);
	wp_profile_add_up(p);
	return rc;
}
