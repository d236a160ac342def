/* SPDX-License-Identifier: Apache-2.0 */
/* forget.c - see forget.h. */
#include "forget.h"

#include <malloc.h>

#include "wallprof/clock.h"

/* What is left may double, and grow by so much, before it is looked through. */
enum { FREE_BYTES = 1 << 20 };
/* Least time between two looks, and where something is lost for want of memory. */
#define EVERY_NS (5 * WP_NS_PER_S)
#define LOSS_NS (30 * WP_NS_PER_S)
/* Files of programs that have ended may wait for such a part of the time that is kept. */
enum { FILES_PART = 4 };

static uint64_t losses_of(const struct wp_profile *p)
{
	return wp_counters_dropped(&p->counters) + p->counters.threads_shared +
	       p->counters.objects_dropped + p->counters.names_dropped;
}

static bool has_idle_files(const struct wp_recording *r, uint64_t since_ns)
{
	return r->sampler && since_ns >= LOSS_NS &&
	       since_ns >= r->options->keep_ns / FILES_PART &&
	       wp_sampler_count_idle_files(r->sampler);
}

bool wp_forget_is_due(const struct wp_forget *f, const struct wp_recording *r,
		      uint64_t now_ns)
{
	const struct wp_profile *p = &r->profile;
	uint64_t since_ns = now_ns - f->at_ns;

	if (since_ns < EVERY_NS)
		return false;
	if (since_ns >= LOSS_NS && losses_of(p) != f->losses)
		return true;
	return wp_renumber_size(p) > 2 * f->kept + FREE_BYTES ||
	       has_idle_files(r, since_ns);
}

/* To say what stays, and then to go on with what it is called. */
static int renumber(struct wp_recording *r, struct wp_renumber *to)
{
	int rc = r->sampler ? wp_sampler_renumber(r->sampler, &r->profile, to) :
			      0;

	wp_history_renumber(&r->history, &r->profile, to);
	return rc ? rc :
		    wp_cumulative_renumber(
			    &r->waits, wp_history_begin_ns(&r->history), to);
}

int wp_forget_old(struct wp_forget *f, struct wp_recording *r,
		  struct wp_digest *digest)
{
	struct wp_renumber to;
	uint64_t before_ns = wp_history_begin_ns(&r->history);
	int rc = wp_history_forget_timeline(&r->profile, before_ns);

	if (!rc)
		rc = wp_renumber_begin(&to, &r->profile);
	if (rc)
		return rc;
	rc = renumber(r, &to);
	if (!rc)
		rc = wp_renumber_apply(&to, &r->profile);
	if (!rc)
		rc = renumber(r, &to);
	if (!rc && r->recorded.profile)
		wp_recorded_renumber(&r->recorded, &to);
	if (!rc)
		wp_digest_renumber(digest, &to);
	wp_renumber_clear(&to);
	f->at_ns = r->history.end_ns;
	f->kept = wp_renumber_size(&r->profile);
	f->losses = losses_of(&r->profile);
	/* To the system: fragments of what came and went add up over days. */
	malloc_trim(0);
	return rc;
}
