/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_record.c - see cmd_record.h. */
#include "cmd_record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "cmd_top.h"
#include "profile_files.h"
#include "exit_status.h"
#include "losses.h"
#include "messages.h"
#include "signals.h"
#include "worker.h"
#include "wallprof/access.h"
#include "wallprof/symbolize.h"
#include "wallprof/clock.h"

#define PROGRESS_NS (250 * WP_NS_PER_MS)
/* Time between two looks at whether wallprof is stopped. */
#define SUSPEND_NS (20 * WP_NS_PER_MS)

struct recording {
	const struct wp_options *options;
	struct wp_process process;
	struct wp_profile profile;
	struct wp_tracer tracer;
	struct wp_sampler *sampler;
	struct wp_target *target;
	struct wp_profile_files out;
	uint64_t start_ns;
	/* UINT64_MAX: until the target ends or Ctrl-C. */
	uint64_t end_ns;
	uint64_t progress_ns;
	uint64_t suspend_check_ns;
	bool progress_shown;
	/* NULL: no `top`. */
	struct wp_cmd_top *top;
	bool quit;
	/* The command; its pid is 0 if there is none, or it was reaped. */
	struct wp_child child;
};

static void show_progress(struct recording *r, uint64_t now)
{
	const struct wp_counters *c = &r->profile.counters;
	const struct wp_profile_sums *sums = &r->profile.sums[WP_PROFILE_WALL];
	char left[48] = "";

	if (r->options->quiet || now < r->progress_ns ||
	    !wp_worker_has_terminal())
		return;
	r->progress_ns = now + PROGRESS_NS;
	r->progress_shown = true;
	if (r->end_ns != UINT64_MAX)
		snprintf(left, sizeof(left), "%.0f s left",
			 r->end_ns > now ? (double)(r->end_ns - now) / 1e9 : 0);
	else
		snprintf(left, sizeof(left), "%.0f s, Ctrl-C ends",
			 (double)(now - r->start_ns) / 1e9);
	wp_profile_add_up(&r->profile);
	fprintf(stderr,
		"\r\033[Kwallprof: %s, %zu threads, %llu samples, %llu lost",
		left, wp_sampler_count_threads(r->target),
		(unsigned long long)(sums->count + sums->cpu_count),
		(unsigned long long)(c->missed_ticks + c->samples_lost));
	fflush(stderr);
}

static void clear_progress(struct recording *r)
{
	if (r->progress_shown)
		fputs("\r\033[K", stderr);
	r->progress_shown = false;
}

static bool is_over(const struct recording *r, uint64_t now)
{
	return wp_interrupts || now >= r->end_ns || r->tracer.child_ended ||
	       r->quit;
}

/* While wallprof is stopped, as by Ctrl-Z, nothing is sampled; stops that are
 * still to come are taken. */
static int pause_while_suspended(struct recording *r, uint64_t now)
{
	int rc = 0;

	if (now < r->suspend_check_ns)
		return 0;
	while (!rc && wp_worker_is_suspended() && !wp_interrupts) {
		if (r->top)
			wp_cmd_top_pause(r->top);
		rc = wp_sampler_sleep(r->sampler, wp_clock_ns() + SUSPEND_NS);
	}
	r->suspend_check_ns = wp_clock_ns() + SUSPEND_NS;
	return rc;
}

/* If the target has gained privileges, wallprof may not keep what it read. */
static int tick(struct recording *r, struct wp_err *err)
{
	int rc = wp_sampler_tick(r->sampler);

	return rc ? rc : wp_process_recheck(&r->process, err);
}

/* Make ticks until the time is over, the target ends, or a signal comes. */
static int sample_until_end(struct recording *r, struct wp_err *err)
{
	uint64_t now = wp_clock_ns();
	int rc = tick(r, err);

	wp_signals_put_off(1);
	while (!rc && !is_over(r, now)) {
		uint64_t next = wp_sampler_next_tick(r->sampler, now);

		rc = pause_while_suspended(r, now);
		if (r->top && !rc)
			rc = wp_cmd_top_step(r->top, now, &r->quit);
		else
			show_progress(r, now);
		if (next > r->end_ns)
			next = r->end_ns;
		while (!rc && (now = wp_clock_ns()) < next && !is_over(r, now))
			rc = wp_sampler_sleep(r->sampler, next);
		if (!rc && !is_over(r, now))
			rc = tick(r, err);
	}
	return rc;
}

static void warn_of_tracer(const struct recording *r)
{
	pid_t tracer = wp_access_tracer(r->process.pid);

	if (tracer && !r->options->quiet)
		wp_say("wallprof: process %d is traced by process %d (a debugger "
		       "or strace): threads that run cannot be stopped and will "
		       "have no stack; end that first",
		       r->process.pid, tracer);
}

/* Note in the profile what is recorded, and how. */
static void describe_target(struct recording *r)
{
	struct wp_profile_meta *meta = &r->profile.meta;
	struct wp_intern *strings = &r->profile.strings;
	char text[4096];

	meta->pid = r->process.pid;
	wp_process_command_line(&r->process, text, sizeof(text));
	meta->command_line = wp_intern_add_str(strings, text);
	wp_process_exe(&r->process, text, sizeof(text));
	meta->exe = wp_intern_add_str(strings, text);
	meta->stop_mode = wp_intern_add_str(
		strings, wp_stop_mode_name(r->options->sampler.stop));
}

/* Sample the process that runs, or hold the command until thread starts are
 * recorded: it may make its threads at once. */
static int add_target(struct recording *r, struct wp_err *err)
{
	int rc;

	if (!r->child.pid)
		return wp_sampler_add_target(r->sampler, &r->process,
					     &r->profile, &r->target, err);
	rc = wp_sampler_add_held_target(r->sampler, &r->process, &r->profile,
					&r->target, err);
	if (!rc)
		rc = wp_child_exec(&r->child, err);
	if (rc)
		return rc;
	r->tracer.child = r->child.pid;
	rc = wp_process_check_program(&r->process, err);
	if (rc == -EPERM)
		wp_access_denied(r->process.pid, err);
	return rc ? rc : wp_sampler_begin(r->target, err);
}

/* `top` shows the recording, which is not written. */
static int open_top(struct recording *r, struct wp_err *err)
{
	wp_worker_take_streams();
	return wp_cmd_top_open(&r->top, r->options, &r->profile, &r->process,
			       err);
}

/* Until there is a sample, nothing is lost if a signal ends it at once; a command
 * that was started would be left. */
static void catch_signals(struct recording *r)
{
	if (r->child.pid || r->options->action == WP_ACTION_TOP)
		wp_signals_catch(1);
	else
		wp_signals_end_at_once(wp_profile_files_remove, &r->out);
}

static int start_recording(struct recording *r, struct wp_err *err)
{
	const struct wp_options *o = r->options;
	pid_t pid = o->pid;
	int rc = wp_profile_init(&r->profile);

	if (rc)
		return wp_err_set(err, rc, "no memory");
	if (o->sampler.note_holders)
		wp_timeline_start(&r->profile.timeline, o->timeline_size);
	rc = wp_profile_files_open(&r->out, o->kinds, o->output, err);
	if (!rc && o->command) {
		rc = wp_child_hold(&r->child, o->command, err);
		pid = r->child.pid;
	}
	if (rc)
		return rc;
	wp_worker_part(o->command || o->action == WP_ACTION_TOP);
	catch_signals(r);
	wp_limits_raise();
	wp_tracer_init(&r->tracer);
	rc = wp_process_open(&r->process, pid, err);
	if (rc == -EPERM)
		wp_access_denied(pid, err);
	if (!rc)
		rc = wp_sampler_new(&r->sampler, &o->sampler, &r->tracer, err);
	if (!rc)
		rc = add_target(r, err);
	if (rc)
		return rc;
	warn_of_tracer(r);
	describe_target(r);
	rc = o->action == WP_ACTION_TOP ? open_top(r, err) : 0;
	if (rc)
		return rc;
	r->start_ns = wp_clock_ns();
	r->end_ns = o->duration_ns ? r->start_ns + o->duration_ns : UINT64_MAX;
	return 0;
}

/* Note how the target ended, if it did. */
static void note_end(struct recording *r)
{
	char text[96] = "";

	if (r->tracer.child_ended) {
		wp_child_describe(r->tracer.child_status, text, sizeof(text));
		r->child.pid = 0;
	} else if (!wp_process_is_alive(&r->process)) {
		snprintf(text, sizeof(text), "exited while being recorded");
	}
	r->profile.meta.target_end = wp_intern_add_str(&r->profile.strings,
						       text);
}

static int write_report(struct recording *r, enum wp_profile_kind kind,
			FILE *out)
{
	const struct wp_report_options options = wp_output_file_style(
		NULL, r->options->full);

	return wp_write_text(&r->profile, kind, &options, out);
}

static int write_profile(void *ctx, enum wp_profile_kind kind, FILE *out)
{
	struct recording *r = ctx;
	const struct wp_report_options options = wp_output_file_style(
		r->options->output, r->options->full);

	return wp_write_profile(&r->profile, kind, r->options->format, &options,
				out);
}

static int write_reports(struct recording *r)
{
	int rc = 0;

	for (size_t i = 0; i < r->out.n && !rc; i++)
		rc = write_report(r, r->out.v[i].kind, stdout);
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

static void summarize(const struct recording *r)
{
	const struct wp_profile *p = &r->profile;
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
	for (size_t i = 0; i < r->out.n; i++)
		if (p->meta.source[r->out.v[i].kind])
			wp_say("wallprof: %s: %s",
			       wp_profile_kind_name(r->out.v[i].kind),
			       wp_profile_str(
				       p, p->meta.source[r->out.v[i].kind]));
	if (!r->options->output)
		return;
	if (!brief)
		wp_say("wallprof: %.1f s at %.1f Hz (asked for %.1f)",
		       (double)p->meta.duration_ns / 1e9, p->meta.achieved_hz,
		       1e9 / (double)p->meta.period_ns);
	for (size_t i = 0; i < r->out.n; i++)
		say_file(p, &r->out.v[i].file, r->out.v[i].kind, brief);
	if (brief)
		wp_counters_lines(p, r->out.v[0].kind, print_loss, NULL);
	else if (!r->options->report || r->options->verbose)
		wp_counters_lines(p, r->out.v[0].kind, print_counter, NULL);
}

static int judge(const struct recording *r)
{
	char why[WP_LOSSES_TEXT];

	if (!wp_losses_find(&r->profile, r->options, why))
		return WP_EXIT_WHOLE;
	if (!r->options->quiet)
		wp_say("wallprof: exit status %d: %s", WP_EXIT_LOSSES, why);
	return WP_EXIT_LOSSES;
}

/* There may be no waits and no thread starts, but there is always a thread. */
static int nothing_seen(const struct recording *r, struct wp_err *err)
{
	const struct wp_profile *p = &r->profile;
	const struct wp_sampler_options *o = &r->options->sampler;
	const char *end = wp_profile_str(p, p->meta.target_end);
	const char *glob =
		o->thread_globs[0] ?
			", or no thread's name is one that -t chooses" :
			"";
	char names[256];

	if (o->thread_globs[0] && !*end) {
		wp_profile_list_names(p, names, sizeof(names));
		return wp_err_set(err, -ENODATA,
				  "no thread of process %d had a name that "
				  "-t \"%s\"%s chooses; there are: %s",
				  r->process.pid, o->thread_globs[0],
				  o->thread_globs[1] ? "..." : "", names);
	}
	if (!o->wall && !*end)
		return wp_err_set(err, -ENODATA,
				  "process %d was on a CPU for so little of "
				  "%.1f s that no CPU sample met it%s; what it "
				  "waits for is told by --profile wall",
				  r->process.pid,
				  (double)p->meta.duration_ns / 1e9, glob);
	return wp_err_set(err, -ESRCH,
			  "process %d ended before a first sample%s",
			  r->process.pid, glob);
}

static bool makes_files(const struct recording *r)
{
	for (size_t i = 0; i < r->out.n; i++)
		if (wp_output_file_is_kept(&r->out.v[i].file))
			return true;
	return false;
}

static int write_profiles(struct recording *r, struct wp_err *err)
{
	int rc;

	if ((r->options->kinds & 1u << WP_PROFILE_WALL) &&
	    !r->profile.sets[WP_PROFILE_WALL].nsamples)
		return nothing_seen(r, err);
	rc = wp_symbolize(&r->profile, &r->process, &wp_interrupts);
	if (!rc)
		rc = wp_idle_mark(&r->profile);
	if (rc)
		return wp_err_set(err, rc, "cannot name functions: %s",
				  strerror(-rc));
	wp_worker_take_streams();
	wp_say_unnamed(
		r->profile.counters.unnamed,
		wp_profile_str(&r->profile, r->profile.meta.unnamed_why));
	if (!makes_files(r))
		wp_signals_leave();
	rc = wp_profile_files_write(&r->out, write_profile, r, err);
	if (rc || !r->options->report)
		return rc;
	wp_signals_leave();
	rc = write_reports(r);
	if (rc)
		wp_err_set(err, rc, "cannot write standard output: %s",
			   strerror(-rc));
	return rc;
}

/* Wait for a command that outlives its recording: if wallprof ended, the command
 * would be left in the terminal's background. */
static void wait_for_child(struct recording *r)
{
	int status;

	wp_child_discard(&r->child);
	if (!r->child.pid || waitpid(r->child.pid, &status, WNOHANG) > 0)
		return;
	wp_signals_catch(1);
	wp_worker_take_streams();
	if (!r->options->quiet && !wp_interrupts)
		wp_say("wallprof: the command (pid %d) goes on; waiting for it to "
		       "end",
		       r->child.pid);
	while (!wp_interrupts && waitpid(r->child.pid, &status, 0) < 0 &&
	       errno == EINTR)
		;
}

int wp_cmd_record(const struct wp_options *options)
{
	struct recording r = {
		.options = options,
		.process = WP_PROCESS_INIT,
		.child = WP_CHILD_INIT,
	};
	struct wp_err err = WP_ERR_INIT;
	int status = WP_EXIT_NOTHING;
	int rc = start_recording(&r, &err);

	if (!rc) {
		err = (struct wp_err)WP_ERR_INIT;
		rc = sample_until_end(&r, &err);
		/* -ESRCH: the target ended, as it may. */
		if (!rc || rc == -ESRCH)
			rc = wp_sampler_finish(r.sampler);
		if (!rc)
			rc = wp_process_recheck(&r.process, &err);
		if (rc == -ESRCH)
			rc = 0;
		else if (rc && !err.code)
			wp_err_set(&err, rc, "sampling: %s", strerror(-rc));
		wp_priority_lower();
		clear_progress(&r);
		note_end(&r);
	}
	wp_cmd_top_close(r.top);
	if (!rc && options->action == WP_ACTION_RECORD)
		rc = write_profiles(&r, &err);
	if (rc) {
		wp_say("wallprof: %s", err.msg);
	} else {
		summarize(&r);
		status = options->action == WP_ACTION_TOP ? WP_EXIT_WHOLE :
							    judge(&r);
	}
	wp_profile_files_discard(&r.out);
	wp_sampler_free(r.sampler);
	wp_tracer_clear(&r.tracer);
	wp_process_clear(&r.process);
	wait_for_child(&r);
	wp_profile_clear(&r.profile);
	return status;
}
