/* SPDX-License-Identifier: Apache-2.0 */
/* recording.c - see recording.h: what is recorded, from begin to end. */
#include "recording.h"

#include <errno.h>
#include <string.h>

#include "choose.h"
#include "signals.h"
#include "wallprof/access.h"
#include "wallprof/clock.h"

static int begin_one(struct wp_recording *r, pid_t pid, struct wp_err *err)
{
	const struct wp_options *o = r->options;
	int rc = wp_process_open(&r->process, pid, err);

	if (rc == -EPERM)
		wp_access_denied(pid, err);
	if (!rc)
		rc = wp_sampler_new(&r->sampler, &o->sampler, &r->tracer, err);
	if (rc)
		return rc;
	wp_sampler_prepare(r->sampler, wp_follow_count_threads(o, pid));
	rc = wp_sampler_add_target(r->sampler, &r->process, &r->profile,
				   &r->target, err);
	if (!rc)
		wp_sampler_describe(&r->profile, &r->process, o->sampler.stop);
	return rc;
}

static int begin_many(struct wp_recording *r, struct wp_err *err)
{
	struct wp_sampler_options options = r->options->sampler;
	uint32_t stop_mode;
	int rc;

	wp_follow_init(&r->follow, r->options, &r->recorded, &options.watch);
	rc = wp_sampler_new(&r->sampler, &options, &r->tracer, err);
	if (rc)
		return rc;
	wp_sampler_prepare(r->sampler, wp_follow_count_threads(r->options, 0));
	r->recorded.sampler = r->sampler;
	r->recorded.profile = &r->profile;
	r->profile.meta.is_of_many = true;
	rc = wp_follow_begin(&r->follow, 0, err);
	if (rc)
		return rc;
	wp_follow_describe(&r->follow);
	stop_mode = wp_intern_add_str(&r->profile.strings,
				      wp_stop_mode_name(options.stop));
	if (stop_mode != UINT32_MAX)
		r->profile.meta.stop_mode = stop_mode;
	return 0;
}

int wp_recording_begin(struct wp_recording *r, pid_t pid, struct wp_err *err)
{
	const struct wp_options *o = r->options;
	int rc = wp_profile_init(&r->profile);

	if (rc)
		return wp_err_set(err, rc, "no memory");
	r->process = (struct wp_process)WP_PROCESS_INIT;
	wp_timeline_start(&r->profile.timeline, o->timeline_size / 2);
	wp_limits_raise();
	wp_tracer_init(&r->tracer);
	rc = pid ? begin_one(r, pid, err) : begin_many(r, err);
	if (rc)
		return rc;
	r->start_ns = r->waits.until_ns = wp_clock_ns();
	wp_history_init(&r->history, o->keep_ns, o->timeline_size / 2,
			r->start_ns);
	return 0;
}

int wp_recording_tick(struct wp_recording *r, struct wp_err *err)
{
	uint64_t denied = r->profile.counters.processes_denied;
	int rc = wp_sampler_tick(r->sampler);

	if (!r->options->sampler.many)
		return rc ? rc : wp_process_recheck(&r->process, err);
	/* More may come. */
	if (rc == -ESRCH && wp_choose_is_asked(r->options))
		rc = 0;
	if (rc)
		return rc;
	wp_recorded_recheck(&r->recorded, &r->follow.why);
	rc = wp_follow_step(&r->follow);
	if (rc || r->profile.counters.processes_denied == denied)
		return rc;
	wp_history_forget(&r->history, &r->profile);
	wp_cumulative_forget(&r->waits, &r->profile);
	return 0;
}

bool wp_recording_chooses(const struct wp_serve_ask *ask, int32_t pid,
			  const char *name)
{
	return (!ask->pid || ask->pid == pid) &&
	       (!ask->name[0] || !strcmp(ask->name, name));
}

void wp_recording_end(struct wp_recording *r)
{
	wp_sampler_free(r->sampler);
	wp_follow_clear(&r->follow);
	wp_recorded_clear(&r->recorded);
	wp_tracer_clear(&r->tracer);
}
