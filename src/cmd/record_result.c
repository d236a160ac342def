/* SPDX-License-Identifier: Apache-2.0 */
/* record_result.c - see record_result.h. */
#include "record_result.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exit_status.h"
#include "losses.h"
#include "messages.h"
#include "signals.h"
#include "worker.h"
#include "wallprof/clock.h"
#include "wallprof/symbolize.h"

/* What all answers of servers of debug files may take, in seconds. */
enum { SERVERS_S = 60 };

static int write_report(struct wp_record_result *r, enum wp_profile_kind kind,
			FILE *out)
{
	const struct wp_report_options options = wp_output_file_style(
		NULL, r->options->full);

	return wp_write_text(r->profile, kind, &options, out);
}

static int write_profile(void *ctx, enum wp_profile_kind kind, FILE *out)
{
	struct wp_record_result *r = ctx;
	const struct wp_report_options options = wp_output_file_style(
		r->options->output, r->options->full);

	return wp_write_profile(r->profile, kind, r->options->format, &options,
				out);
}

static int write_reports(struct wp_record_result *r)
{
	int rc = 0;

	for (size_t i = 0; i < r->files.n && !rc; i++)
		rc = write_report(r, r->files.v[i].kind, stdout);
	return rc;
}

static void print_counter(void *ctx, const char *line)
{
	(void)ctx;
	wp_say("  %s", line);
}

/* The same where it tells of a loss. */
static void print_loss(void *ctx, const char *line)
{
	(void)ctx;
	if ((!strncmp(line, "lost: ", 6) && strcmp(line, "lost: nothing")) ||
	    !strncmp(line, "timeline: ", 10))
		wp_say("wallprof: %s", line);
}

/* What is in FILE, in the words of the report; with MOST, where most of it goes. */
static void say_file(const struct wp_profile *p,
		     const struct wp_output_file *file,
		     enum wp_profile_kind kind, bool most)
{
	char line[256], place[512];

	wp_report_sums(p, kind, line, sizeof(line));
	if (!most || wp_report_most(p, kind, place, sizeof(place)))
		place[0] = '\0';
	wp_say("wallprof: %s: %s in %s%s%s", wp_profile_kind_name(kind), line,
	       file->path ? file->path : "standard output",
	       place[0] ? ": " : "", place);
}

void wp_record_result_summarize(const struct wp_record_result *r)
{
	const struct wp_profile *p = r->profile;
	const char *end = wp_profile_str(p, p->meta.target_end);
	/* What a log keeps cannot be asked for again. */
	bool brief = isatty(STDERR_FILENO) && !r->options->verbose;
	char hint[512];

	if (r->options->quiet)
		return;
	if (end[0])
		wp_say("wallprof: process %d %s", p->meta.pid, end);
	if (wp_child_hint(p, hint, sizeof(hint)))
		wp_say("wallprof: %s", hint);
	for (size_t i = 0; i < r->files.n; i++)
		if (p->meta.source[r->files.v[i].kind])
			wp_say("wallprof: %s: %s",
			       wp_profile_kind_name(r->files.v[i].kind),
			       wp_profile_str(
				       p, p->meta.source[r->files.v[i].kind]));
	if (p->counters.spared_ticks)
		wp_say("wallprof: %.1f Hz instead of %.1f: more would take over "
		       "%.3g %% of a core (--max-cpu)",
		       p->meta.achieved_hz, 1e9 / (double)p->meta.period_ns,
		       100 * r->options->sampler.max_cpu);
	if (!r->options->output)
		return;
	/* No allocation is sampled at a tick. */
	if (!brief && r->options->kinds == 1u << WP_PROFILE_HEAP)
		wp_say("wallprof: %.1f s on the clock",
		       (double)p->meta.duration_ns / 1e9);
	else if (!brief)
		wp_say("wallprof: %.1f s at %.1f Hz (asked for %.1f)",
		       (double)p->meta.duration_ns / 1e9, p->meta.achieved_hz,
		       1e9 / (double)p->meta.period_ns);
	for (size_t i = 0; i < r->files.n; i++)
		say_file(p, &r->files.v[i].file, r->files.v[i].kind, brief);
	if (brief)
		wp_counters_lines(p, r->files.v[0].kind, print_loss, NULL);
	else if (!r->options->report || r->options->verbose)
		wp_counters_lines(p, r->files.v[0].kind, print_counter, NULL);
}

int wp_record_result_judge(const struct wp_record_result *r)
{
	char why[WP_LOSSES_TEXT];

	if (!wp_losses_find(r->profile, r->options, why))
		return WP_EXIT_WHOLE;
	wp_say("wallprof: exit status %d: %s", WP_EXIT_LOSSES, why);
	return WP_EXIT_LOSSES;
}

/* There may be no waits and no thread starts, but there is always a thread. */
static int nothing_seen(const struct wp_record_result *r, struct wp_err *err)
{
	const struct wp_profile *p = r->profile;
	const struct wp_sampler_options *o = &r->options->sampler;
	const char *end = wp_profile_str(p, p->meta.target_end);
	const char *glob =
		o->thread_globs[0] ?
			", or no thread's name is one that -t chooses" :
			"";
	char names[256], of[32];

	snprintf(of, sizeof(of), p->meta.pid ? "process %d" : "the processes",
		 p->meta.pid);
	if (o->thread_globs[0] && !*end) {
		wp_profile_list_names(p, names, sizeof(names));
		return wp_err_set(err, -ENODATA,
				  "no thread of %s had a name that "
				  "-t \"%s\"%s chooses; there are: %s",
				  of, o->thread_globs[0],
				  o->thread_globs[1] ? "..." : "", names);
	}
	if (!o->wall && !*end)
		return wp_err_set(err, -ENODATA,
				  "no CPU sample met %s in %.1f s, so little "
				  "was it on a CPU%s; what it waits for is "
				  "told by --profile wall",
				  of, (double)p->meta.duration_ns / 1e9, glob);
	return wp_err_set(err, -ESRCH, "%s %s before a first sample%s", of,
			  *end ? end : "ended", glob);
}

static bool makes_files(const struct wp_record_result *r)
{
	for (size_t i = 0; i < r->files.n; i++)
		if (wp_output_file_is_kept(&r->files.v[i].file))
			return true;
	return false;
}

static int name_functions(const struct wp_record_result *r)
{
	const struct wp_recorded *recorded = r->recorded;

	r->profile->meta.keeps_names = r->options->keeps_names;
	if (r->options->debuginfod)
		r->profile->meta.servers_ns = SERVERS_S * WP_NS_PER_S;
	if (!r->options->sampler.many)
		return wp_symbolize(r->profile, recorded->first,
				    &wp_interrupts);
	return recorded->nsources ?
		       wp_symbolize_sources(r->profile, recorded->sources,
					    recorded->nsources,
					    &wp_interrupts) :
		       0;
}

/* Is there nothing that a file could be of?  Of threads' creators and waits there may be
 * none, but -t may not choose nobody. */
static bool is_empty(const struct wp_record_result *r)
{
	const struct wp_options *o = r->options;

	if (o->kinds & 1u << WP_PROFILE_WALL)
		return !r->profile->sets[WP_PROFILE_WALL].nsamples;
	return o->sampler.thread_globs[0] &&
	       !(o->kinds & 1u << WP_PROFILE_THREADCREATE) &&
	       !r->profile->counters.threads_seen;
}

int wp_record_result_write(struct wp_record_result *r, struct wp_err *err)
{
	int rc;

	if (is_empty(r))
		return nothing_seen(r, err);
	rc = name_functions(r);
	/* Names tell which waits were for no lock: these count no more. */
	wp_profile_add_up(r->profile);
	if (!rc)
		rc = wp_idle_mark(r->profile);
	if (rc)
		return wp_err_set(err, rc, "cannot name functions: %s",
				  strerror(-rc));
	wp_worker_take_streams();
	wp_say_unnamed(
		r->profile->counters.unnamed,
		wp_profile_str(r->profile, r->profile->meta.unnamed_why));
	wp_say_files_lost(r->profile->counters.files_lost,
			  r->profile->counters.files_unopened);
	wp_say_kernel_denied(r->profile->counters.kernel_denied);
	wp_say_files_lineless(
		r->profile->counters.files_lineless,
		wp_profile_str(r->profile, r->profile->meta.lineless_why));
	wp_say_no_servers(
		wp_profile_str(r->profile, r->profile->meta.no_servers));
	if (!makes_files(r))
		wp_signals_leave();
	rc = wp_profile_files_write(&r->files, write_profile, r, err);
	if (rc || !r->options->report)
		return rc;
	wp_signals_leave();
	rc = write_reports(r);
	if (rc)
		wp_err_set(err, rc, "cannot write standard output: %s",
			   strerror(-rc));
	return rc;
}
