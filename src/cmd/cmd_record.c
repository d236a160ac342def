/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_record.c - see cmd_record.h. */
#include "cmd_record.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "child.h"
#include "choose.h"
#include "cmd_top.h"
#include "exit_status.h"
#include "follow.h"
#include "messages.h"
#include "record_result.h"
#include "signals.h"
#include "worker.h"
#include "wallprof/access.h"
#include "wallprof/clock.h"
#include "wallprof/throttle.h"

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
	struct wp_recorded recorded;
	struct wp_follow follow;
	struct wp_record_result result;
	/* Of the first process. */
	struct wp_throttle throttle;
	uint64_t start_ns;
	/* Our own CPU time then. */
	uint64_t start_cpu_ns;
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

/* Write TEXT to the terminal, or what it takes of it: one that is stopped, as by Ctrl-S
 * or by a connection that hangs, holds up no recording. */
static void put_progress(const char *text)
{
	struct pollfd fd = { STDERR_FILENO, POLLOUT, 0 };
	/* Opened anew: the user's shell shares the flags of the other. */
	int own = open("/proc/self/fd/2",
		       O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (poll(&fd, 1, 0) > 0)
		(void)!write(own >= 0 ? own : STDERR_FILENO, text,
			     strlen(text));
	if (own >= 0)
		close(own);
}

/* "" while it is too early to say. */
static void describe_cost(const struct recording *r, uint64_t now, char *text,
			  size_t size)
{
	uint64_t cpu_ns = wp_clock_used_ns(RUSAGE_SELF) - r->start_cpu_ns;

	text[0] = '\0';
	if (now - r->start_ns >= PROGRESS_NS)
		snprintf(text, size, ", %.2f %% of a core",
			 100 * (double)cpu_ns / (double)(now - r->start_ns));
}

static void show_progress(struct recording *r, uint64_t now)
{
	const struct wp_counters *c = &r->profile.counters;
	const struct wp_profile_sums *sums = &r->profile.sums[WP_PROFILE_WALL];
	char left[48] = "", cost[32], line[256], text[sizeof(line) + 8];
	struct winsize size;

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
	/* Without memory the next tick fails. */
	(void)!wp_sampler_settle(r->sampler);
	wp_profile_add_up(&r->profile);
	describe_cost(r, now, cost, sizeof(cost));
	snprintf(line, sizeof(line),
		 "wallprof: %s, %zu threads, %llu samples, %llu lost%s", left,
		 wp_sampler_count_threads(r->sampler),
		 (unsigned long long)(sums->count + sums->cpu_count),
		 (unsigned long long)(c->missed_ticks + c->samples_lost), cost);
	/* A line that wraps is not taken back: the terminal would scroll. */
	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col &&
	    size.ws_col <= strlen(line))
		line[size.ws_col - 1] = '\0';
	snprintf(text, sizeof(text), "\r\033[K%s", line);
	put_progress(text);
}

static void clear_progress(struct recording *r)
{
	if (r->progress_shown)
		put_progress("\r\033[K");
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

/* If a target has gained privileges, wallprof may not keep what it read. */
static int recheck(struct recording *r, struct wp_err *err)
{
	if (!r->options->sampler.many)
		return wp_process_recheck(&r->process, err);
	wp_recorded_recheck(&r->recorded, &r->follow.why);
	return 0;
}

static int tick(struct recording *r, struct wp_err *err)
{
	int rc = wp_sampler_tick(r->sampler);

	/* More may come. */
	if (rc == -ESRCH && wp_choose_is_asked(r->options))
		rc = 0;
	if (!rc && r->options->sampler.many)
		rc = wp_follow_step(&r->follow);
	return rc ? rc : recheck(r, err);
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
			rc = wp_cmd_top_step(r->top, r->sampler, now, &r->quit);
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

/* Sample the process that runs, or hold the command until thread starts are
 * recorded: it may make its threads at once. */
static int add_target(struct recording *r, struct wp_err *err)
{
	return r->child.pid ?
		       wp_sampler_add_held_target(r->sampler, &r->process,
						  &r->profile, &r->target,
						  err) :
		       wp_sampler_add_target(r->sampler, &r->process,
					     &r->profile, &r->target, err);
}

/* Wait until the command has ended, a signal ends wallprof, or UNTIL_NS has come. */
static void await_end(struct recording *r, uint64_t until_ns)
{
	/* A second at a time: a signal may come just before the sleep. */
	while (!wp_interrupts && !r->tracer.child_ended &&
	       wp_clock_ns() < until_ns)
		wp_tracer_sleep(&r->tracer, wp_clock_ns() + WP_NS_PER_S);
}

/* The command has ended before it could be sampled. */
static int say_ended(struct recording *r, struct wp_err *err)
{
	char text[96] = "ended";

	/* A process loses its memory before its status can be read (kernel/exit.c,
	 * do_exit), long before if it has much. */
	await_end(r, wp_clock_ns() + WP_NS_PER_S);
	if (r->tracer.child_ended) {
		wp_child_describe(r->tracer.child_status, text, sizeof(text));
		r->child.pid = 0;
	}
	return wp_err_set(err, -ESRCH, "process %d %s before a first sample",
			  r->process.pid, text);
}

/* Let the held command run, and sample it. */
static int start_command(struct recording *r, struct wp_err *err)
{
	int rc = wp_child_exec(&r->child, err);

	if (rc)
		return rc;
	r->tracer.child = r->child.pid;
	rc = wp_process_check_program(&r->process, err);
	if (rc == -EPERM)
		wp_access_denied(r->process.pid, err);
	if (!rc)
		rc = wp_sampler_begin(r->target, err);
	return rc == -ESRCH ? say_ended(r, err) : rc;
}

/* `top` shows the recording, which is not written. */
static int open_top(struct recording *r, struct wp_err *err)
{
	wp_worker_take_streams();
	return wp_cmd_top_open(&r->top, r->options, &r->profile, &r->process,
			       err);
}

/* Hold the command, if there is one, and open the files.  Until there is a sample,
 * nothing is lost if a signal ends it at once, as while open(2) waits for who reads a
 * pipe; a command that was started would be left. */
static int open_files(struct recording *r, struct wp_err *err)
{
	const struct wp_options *o = r->options;
	int rc = o->command ? wp_child_hold(&r->child, o->command, err) : 0;

	if (rc)
		return rc;
	wp_signals_end_at_once(wp_profile_files_remove, &r->result.files);
	rc = wp_profile_files_open(&r->result.files, o->kinds, o->output, err);
	if (o->command || o->action == WP_ACTION_TOP)
		wp_signals_put_off(1);
	return rc;
}

/* Make the sampler, and sample what is there. */
static int start_sampler(struct recording *r, struct wp_err *err)
{
	struct wp_sampler_options options = r->options->sampler;
	int rc;

	if (options.many)
		wp_follow_init(&r->follow, r->options, &r->recorded,
			       &options.watch);
	rc = wp_sampler_new(&r->sampler, &options, &r->tracer, err);
	if (rc)
		return rc;
	wp_sampler_prepare(r->sampler,
			   wp_follow_count_threads(r->options, r->process.pid));
	r->recorded.sampler = r->sampler;
	r->recorded.profile = &r->profile;
	rc = add_target(r, err);
	r->recorded.first = &r->process;
	if (!rc && options.many) {
		rc = wp_recorded_note(&r->recorded, &r->process);
		rc = rc ? wp_err_set(err, rc, "no memory") :
			  wp_follow_begin(&r->follow, r->process.pid, err);
	}
	return rc || !r->child.pid ? rc : start_command(r, err);
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
	rc = open_files(r, err);
	if (rc)
		return rc;
	if (r->child.pid)
		pid = r->child.pid;
	wp_worker_part(o->command || o->action == WP_ACTION_TOP);
	wp_limits_raise();
	wp_tracer_init(&r->tracer);
	rc = pid ? wp_process_open(&r->process, pid, err) :
		   wp_follow_first(o, &r->process, err);
	if (rc == -EPERM && pid)
		wp_access_denied(pid, err);
	if (!rc)
		rc = start_sampler(r, err);
	if (rc)
		return rc;
	warn_of_tracer(r);
	wp_sampler_describe(&r->profile, &r->process, r->options->sampler.stop);
	if (!pid)
		wp_follow_describe(&r->follow);
	rc = o->action == WP_ACTION_TOP ? open_top(r, err) : 0;
	if (rc)
		return rc;
	wp_throttle_begin(&r->throttle, r->process.proc_fd, "/sys/fs/cgroup");
	r->start_ns = wp_clock_ns();
	r->start_cpu_ns = wp_clock_used_ns(RUSAGE_SELF);
	r->end_ns = o->duration_ns ? r->start_ns + o->duration_ns : UINT64_MAX;
	return 0;
}

/* Note how the target ended, if it did, and whether a limit kept it from the CPUs. */
static void note_end(struct recording *r)
{
	bool is_alive = wp_process_is_alive(&r->process);
	char text[96] = "", why[256] = "";

	/* A sample may have met the command's end before the tracer did. */
	if (r->child.pid && !is_alive)
		(void)wp_tracer_wait(&r->tracer, 0);
	if (r->tracer.child_ended) {
		wp_child_describe(r->tracer.child_status, text, sizeof(text));
		r->child.pid = 0;
	} else if (!is_alive && r->profile.meta.pid) {
		snprintf(text, sizeof(text), "exited while being recorded");
	}
	r->profile.meta.target_end = wp_intern_add_str(&r->profile.strings,
						       text);
	(void)wp_throttle_tell(&r->throttle, why, sizeof(why));
	r->profile.meta.throttled = wp_intern_add_str(&r->profile.strings, why);
}

/* Wait for a command that outlives its recording: if wallprof ended, the command
 * would be left in the terminal's background. */
static void wait_for_child(struct recording *r)
{
	/* Takes late stops of its threads, too. */
	wp_tracer_init(&r->tracer);
	r->tracer.child = r->child.pid;
	wp_tracer_wait(&r->tracer, 0);
	if (r->tracer.child_ended)
		return;
	wp_signals_catch(1);
	wp_worker_take_streams();
	if (!r->options->quiet && !wp_interrupts)
		wp_say("wallprof: the command (pid %d) goes on; waiting for it to "
		       "end",
		       r->child.pid);
	await_end(r, UINT64_MAX);
}

/* Wait for the command, and tell how it ended, unless that has been told. */
static void end_child(struct recording *r)
{
	char text[96];

	wp_child_discard(&r->child);
	if (!r->child.pid)
		return;
	if (!r->tracer.child_ended)
		wait_for_child(r);
	if (!r->tracer.child_ended || r->options->quiet)
		return;
	wp_child_describe(r->tracer.child_status, text, sizeof(text));
	wp_say("wallprof: the command %s", text);
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
	int rc;

	r.result = (struct wp_record_result){ .options = options,
					      .profile = &r.profile,
					      .recorded = &r.recorded };
	rc = start_recording(&r, &err);

	if (!rc) {
		err = (struct wp_err)WP_ERR_INIT;
		rc = sample_until_end(&r, &err);
		/* -ESRCH: the target ended, as it may. */
		if (!rc || rc == -ESRCH)
			rc = wp_sampler_finish(r.sampler);
		if (!rc)
			rc = recheck(&r, &err);
		if (rc == -ESRCH)
			rc = 0;
		else if (rc && !err.code)
			wp_err_set(&err, rc, "sampling: %s", strerror(-rc));
		wp_priority_lower_soon();
		clear_progress(&r);
		note_end(&r);
	}
	wp_cmd_top_close(r.top);
	if (!rc && options->action == WP_ACTION_RECORD)
		rc = wp_record_result_write(&r.result, &err);
	if (rc) {
		wp_say("wallprof: %s", err.msg);
	} else {
		wp_record_result_summarize(&r.result);
		if (r.follow.why.code && !options->quiet)
			wp_say("wallprof: %s", r.follow.why.msg);
		status = options->action == WP_ACTION_TOP ?
				 WP_EXIT_WHOLE :
				 wp_record_result_judge(&r.result);
	}
	wp_profile_files_discard(&r.result.files);
	wp_signals_forget_files();
	wp_sampler_free(r.sampler);
	wp_follow_clear(&r.follow);
	wp_recorded_clear(&r.recorded);
	wp_tracer_clear(&r.tracer);
	wp_process_clear(&r.process);
	end_child(&r);
	wp_profile_clear(&r.profile);
	return status;
}
