/* SPDX-License-Identifier: Apache-2.0 */
/* serve_job.c - see recording.h: one answer, in a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd_dump.h"
#include "cmd_record.h"
#include "exit_status.h"
#include "hang_files.h"
#include "recording.h"
#include "signals.h"
#include "wallprof/clock.h"
#include "wallprof/go_books.h"
#include "wallprof/io.h"
#include "wallprof/profile_processes.h"

WP_PRINTF(3, 4)
static void refuse(struct wp_serve_answer *ret, uint32_t status,
		   const char *fmt, ...)
{
	va_list ap;

	ret->status = status;
	va_start(ap, fmt);
	vsnprintf(ret->text, sizeof(ret->text), fmt, ap);
	va_end(ap);
}

static enum wp_profile_kind kind_of(uint32_t endpoint)
{
	switch (endpoint) {
	case WP_SERVE_BLOCK:
	case WP_SERVE_DELTA_BLOCK:
		return WP_PROFILE_BLOCK;
	case WP_SERVE_MUTEX:
	case WP_SERVE_DELTA_MUTEX:
		return WP_PROFILE_MUTEX;
	case WP_SERVE_THREADCREATE:
		return WP_PROFILE_THREADCREATE;
	default:
		return WP_PROFILE_WALL;
	}
}

static int write_profile(struct wp_recording *r,
			 const struct wp_recording_job *job, FILE *out)
{
	const struct wp_report_options plain = { 0 };
	enum wp_format format = job->ask.endpoint == WP_SERVE_TIMELINE ?
					WP_FORMAT_HTML :
				job->ask.debug ? WP_FORMAT_TEXT :
						 WP_FORMAT_PPROF;

	return wp_write_profile(&r->profile, kind_of(job->ask.endpoint), format,
				&plain, out);
}

/* Leave in R's profile what ASK chooses of its processes.  0; -ENOENT: nothing; -ENOMEM. */
static int choose_processes(struct wp_recording *r,
			    const struct wp_serve_ask *ask)
{
	struct wp_profile *p = &r->profile;
	bool any = false, *stays;

	if (!r->options->sampler.many || (!ask->pid && !ask->name[0]))
		return 0;
	stays = calloc((size_t)p->nprocesses + 1, sizeof(*stays));
	if (!stays)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nprocesses; i++) {
		stays[i] = wp_recording_chooses(
			ask, p->processes[i].pid,
			wp_profile_str(p, p->processes[i].name));
		any |= stays[i];
	}
	wp_profile_keep_processes(p, stays);
	free(stays);
	return any ? 0 : -ENOENT;
}

static void refuse_choice(struct wp_serve_answer *ret)
{
	refuse(ret, 404, "no such process is recorded; /metrics has the names");
}

static void answer_profile(struct wp_recording *r,
			   const struct wp_recording_job *job, int file,
			   struct wp_serve_answer *ret)
{
	uint64_t from_ns = job->from_ns, to_ns = job->to_ns;
	bool html = job->ask.endpoint == WP_SERVE_TIMELINE;
	FILE *out = fdopen(dup(file), "w");
	int rc = out ? 0 : -errno;

	if (!html)
		wp_timeline_clear(&r->profile.timeline);
	if (!rc && from_ns) {
		rc = wp_history_view(&r->history, &r->profile, &from_ns,
				     &to_ns);
		if (rc == -ENOENT) {
			refuse(ret, 404,
			       "nothing was recorded then: the recording goes "
			       "back %.0f s (--keep)",
			       (double)(wp_clock_ns() -
					wp_history_begin_ns(&r->history)) /
				       1e9);
			return;
		}
	}
	if (!from_ns)
		from_ns = r->start_ns;
	if (job->ask.endpoint == WP_SERVE_BLOCK && !job->from_ns)
		r->profile.sets[WP_PROFILE_BLOCK] = r->waits.set;
	if (!rc)
		rc = choose_processes(r, &job->ask);
	if (rc == -ENOENT) {
		refuse_choice(ret);
		return;
	}
	if (!rc)
		rc = wp_recording_finish(r, job, from_ns, to_ns);
	if (!rc)
		rc = write_profile(r, job, out);
	ret->type = html	   ? WP_SERVE_TYPE_HTML :
		    job->ask.debug ? WP_SERVE_TYPE_TEXT :
				     WP_SERVE_TYPE_PPROF;
	if (rc)
		refuse(ret, 500, "cannot make the profile: %s", strerror(-rc));
	if (out && fclose(out) && !rc)
		refuse(ret, 500, "cannot write the profile: %s",
		       strerror(errno));
}

/* The commands write to standard output, and why they cannot to standard error. */
static void run_command(const struct wp_options *o,
			int (*command)(const struct wp_options *options),
			int file, struct wp_serve_answer *ret)
{
	int why = memfd_create("why", MFD_CLOEXEC);
	char text[WP_SERVE_TEXT_SIZE];
	ssize_t n;
	int status;

	dup2(file, STDOUT_FILENO);
	if (why >= 0)
		dup2(why, STDERR_FILENO);
	status = command(o);
	fflush(stdout);
	ret->exit_status = (uint32_t)status;
	ret->type = WP_SERVE_TYPE_TEXT;
	if (status != WP_EXIT_NOTHING)
		return;
	n = wp_io_pread(why, text, sizeof(text));
	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = '\0';
	for (ssize_t i = 0; i < n && text[i]; i++)
		if (text[i] == '\n')
			text[i] = ' ';
	refuse(ret, 500, "%s", n > 0 ? text : "no answer");
}

/* Write the profile of KIND of this moment. */
static void answer_now(const struct wp_options *o,
		       const struct wp_recording_job *job,
		       enum wp_profile_kind kind, int file,
		       struct wp_serve_answer *ret)
{
	struct wp_snapshot snapshot = wp_cmd_dump_snapshot(o);
	const struct wp_report_options plain = { 0 };
	struct wp_err err = WP_ERR_INIT;
	FILE *out = fdopen(dup(file), "w");
	struct wp_profile profile;
	bool lacks;
	int rc;

	/* A service may write nowhere. */
	snapshot.keeps_names = false;
	rc = wp_snapshot_profile(&snapshot, o->pid, kind, &profile, &err);
	lacks = rc == -ENOTSUP || rc == -ENODATA || rc == -EAGAIN;
	profile.meta.is_of_allocations = job->ask.endpoint == WP_SERVE_ALLOCS;
	ret->type = job->ask.debug ? WP_SERVE_TYPE_TEXT : WP_SERVE_TYPE_PPROF;
	if (rc)
		refuse(ret, lacks ? 404 : 500, "%s", err.msg);
	else if (!out || wp_write_profile(&profile, kind,
					  job->ask.debug ? WP_FORMAT_TEXT :
							   WP_FORMAT_PPROF,
					  &plain, out))
		refuse(ret, 500, "cannot write the profile");
	if (out && fclose(out))
		refuse(ret, 500, "cannot write the profile: %s",
		       strerror(errno));
}

/* Set the processes of O to those that live and that ASK chooses. */
static void choose_pids(const struct wp_recording *r,
			const struct wp_serve_ask *ask, struct wp_options *o)
{
	o->pid = 0;
	o->npids = o->nleft_out = 0;
	for (size_t i = 0; i < r->recorded.n; i++) {
		const struct wp_process *process = r->recorded.v[i];
		char name[WP_SERVE_NAME_SIZE];

		wp_process_name(process, name, sizeof(name));
		if (!wp_recording_chooses(ask, process->pid, name) ||
		    !wp_process_is_alive(process))
			continue;
		if (o->npids < WP_PIDS_MAX)
			o->pids[o->npids++] = process->pid;
		else
			o->nleft_out++;
	}
	if (o->npids)
		o->pid = o->pids[0];
	o->pids_may_end = true;
	o->children = o->tree = o->all = false;
	o->globs[0] = o->cgroups[0] = NULL;
}

/* Of processes of which only what is of this moment is wanted. */
static struct wp_options options_of_now(const struct wp_recording *r,
					const struct wp_serve_ask *ask)
{
	struct wp_options o = *r->options;
	struct wp_sampler_options *s = &o.sampler;

	if (s->many)
		choose_pids(r, ask, &o);
	else
		o.pid = r->process.pid;
	o.output = NULL;
	o.quiet = true;
	if (s->stop != WP_STOP_NEVER)
		s->stop = WP_STOP_ALL;
	s->wall = true;
	s->cpu = s->block = s->mutex = s->thread_starts = false;
	s->note_holders = false;
	return o;
}

/* Say in FILE that not all were looked at. */
static void say_left_out(const struct wp_options *o, int file)
{
	if (o->nleft_out)
		dprintf(file,
			"%zu of %zu processes were looked at; ?pid= and ?name= "
			"choose others\n\n",
			o->npids, o->npids + o->nleft_out);
}

static void answer_threads(const struct wp_options *now,
			   const struct wp_recording *r,
			   const struct wp_recording_job *job, int file,
			   struct wp_serve_answer *ret)
{
	bool is_go = r->target && wp_go_books_can_read(r->target);
	struct wp_options o = *now;

	if (!job->ask.debug) {
		answer_now(&o, job,
			   is_go ? WP_PROFILE_GOROUTINE : WP_PROFILE_THREADS,
			   file, ret);
		return;
	}
	o.action = WP_ACTION_DUMP;
	o.group = job->ask.debug == 1;
	o.format = is_go && !o.group ? WP_FORMAT_GO : WP_FORMAT_TEXT;
	say_left_out(&o, file);
	run_command(&o, wp_cmd_dump, file, ret);
}

bool wp_recording_is_of_goroutines(const struct wp_recording *recording,
				   const struct wp_serve_ask *ask)
{
	return ask->endpoint == WP_SERVE_FGPROF && ask->seconds && !ask->ago &&
	       !recording->ended_ns && !wp_interrupts && recording->target &&
	       wp_process_is_alive(&recording->process) &&
	       wp_go_books_can_read(recording->target);
}

/* The recording that goes on is over threads, of which it stops some: this one stops
 * none. */
static void answer_goroutine_times(const struct wp_recording *r,
				   const struct wp_recording_job *job, int file,
				   struct wp_serve_answer *ret)
{
	struct wp_options o = options_of_now(r, &job->ask);

	o.action = WP_ACTION_RECORD;
	o.kinds = 1u << WP_PROFILE_WALL;
	o.duration_ns = job->ask.seconds * WP_NS_PER_S;
	o.format = WP_FORMAT_PPROF;
	o.sampler.stop = WP_STOP_NEVER;
	o.sampler.goroutines = true;
	o.sampler.cpu = r->options->sampler.cpu;
	run_command(&o, wp_cmd_record, file, ret);
	if (ret->status == 200)
		ret->type = WP_SERVE_TYPE_PPROF;
}

void wp_recording_dump(struct wp_recording *r, int file,
		       struct wp_serve_answer *ret)
{
	const struct wp_serve_ask all = { 0 };
	struct wp_options o = options_of_now(r, &all);

	o.action = WP_ACTION_DUMP;
	o.format = WP_FORMAT_TEXT;
	say_left_out(&o, file);
	run_command(&o, wp_cmd_dump, file, ret);
}

static void answer_check(const struct wp_options *now, int file,
			 struct wp_serve_answer *ret)
{
	struct wp_options o = *now;

	/* Those that -t leaves out may end what others wait for. */
	o.sampler.thread_globs[0] = NULL;
	o.action = WP_ACTION_CHECK;
	o.format = WP_FORMAT_TEXT;
	run_command(&o, wp_cmd_check, file, ret);
	if (!o.nleft_out)
		return;
	/* Of the others nobody knows; elsewhere the verdict is the first line. */
	if (ret->exit_status == WP_EXIT_WHOLE && !ftruncate(file, 0) &&
	    !lseek(file, 0, SEEK_SET))
		dprintf(file, "no verdict: those looked at are healthy, but ");
	say_left_out(&o, file);
}

/* The arguments, parted by NULs, as Go's. */
static void answer_cmdline(pid_t pid, int file, struct wp_serve_answer *ret)
{
	struct wp_text text = WP_TEXT_INIT;
	char path[32];
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	rc = wp_text_read(&text, AT_FDCWD, path, 1 << 21);
	while (text.len && !text.data[text.len - 1])
		text.len--;
	ret->type = WP_SERVE_TYPE_TEXT;
	if (rc || write(file, text.data, text.len) != (ssize_t)text.len)
		refuse(ret, 500, "cannot read the command line: %s",
		       strerror(rc ? -rc : errno));
	wp_text_clear(&text);
}

/* What there is of a single process only. */
static bool is_of_one(const struct wp_serve_ask *ask)
{
	return ask->endpoint == WP_SERVE_HEAP ||
	       ask->endpoint == WP_SERVE_ALLOCS ||
	       ask->endpoint == WP_SERVE_CMDLINE ||
	       (ask->endpoint == WP_SERVE_GOROUTINE && !ask->debug);
}

static void answer_of_now(struct wp_recording *r,
			  const struct wp_recording_job *job, int file,
			  struct wp_serve_answer *ret)
{
	struct wp_options now = options_of_now(r, &job->ask);

	/* Its pid may be another's since it was asked for. */
	if (!r->options->sampler.many && !wp_process_is_alive(&r->process)) {
		refuse(ret, 404, WP_RECORDING_HAS_ENDED);
		return;
	}
	if (r->options->sampler.many && !now.npids) {
		refuse_choice(ret);
		return;
	}
	if (r->options->sampler.many && now.npids > 1 && is_of_one(&job->ask)) {
		refuse(ret, 400,
		       "there are %zu processes: choose one by ?pid= or ?name=",
		       now.npids);
		return;
	}
	switch (job->ask.endpoint) {
	case WP_SERVE_GOROUTINE:
		answer_threads(&now, r, job, file, ret);
		break;
	case WP_SERVE_CHECK:
		answer_check(&now, file, ret);
		break;
	case WP_SERVE_CMDLINE:
		answer_cmdline(now.pid, file, ret);
		break;
	default:
		answer_now(&now, job, WP_PROFILE_HEAP, file, ret);
		break;
	}
}

void wp_recording_answer(struct wp_recording *recording,
			 const struct wp_recording_job *job, int file,
			 struct wp_serve_answer *ret)
{
	ret->status = 200;
	if (!job->to_ns &&
	    wp_recording_is_of_goroutines(recording, &job->ask)) {
		answer_goroutine_times(recording, job, file, ret);
		return;
	}
	/* Its recording was still to begin, and has no time. */
	if (job->ask.endpoint == WP_SERVE_FGPROF && !job->to_ns) {
		refuse(ret, 404, WP_RECORDING_HAS_ENDED);
		return;
	}
	switch (job->ask.endpoint) {
	case WP_SERVE_GOROUTINE:
	case WP_SERVE_HEAP:
	case WP_SERVE_ALLOCS:
	case WP_SERVE_CHECK:
	case WP_SERVE_CMDLINE:
		answer_of_now(recording, job, file, ret);
		break;
	case WP_SERVE_KEEP:
		wp_hang_files_write(recording, job, ret);
		break;
	default:
		if (kind_of(job->ask.endpoint) != WP_PROFILE_BLOCK ||
		    recording->options->sampler.block)
			answer_profile(recording, job, file, ret);
		else
			refuse(ret, 404,
			       "waits of all processes are recorded by "
			       "wallprof serve --all --block-rate 1/100");
		break;
	}
}
