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
#include "wallprof/merge_threads.h"
#include "wallprof/symbolize.h"

/* Most names of threads in a profile for a collector. */
enum { PUSHED_NAMES = 64 };

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

int wp_recording_finish(struct wp_recording *r,
			const struct wp_recording_job *job, uint64_t from_ns,
			uint64_t to_ns)
{
	struct wp_profile *p = &r->profile;
	uint64_t now = wp_clock_ns();
	bool all_waits = job->ask.endpoint == WP_SERVE_BLOCK && !job->from_ns;
	int rc = 0;

	/* They have been weighed. */
	if (all_waits)
		p->sets[WP_PROFILE_BLOCK] = r->waits.set;
	else
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
		rc = wp_symbolize(p, &r->process, &wp_interrupts);
	if (!rc)
		rc = wp_idle_mark(p);
	wp_profile_add_up(p);
	return rc;
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
	int rc = wp_snapshot_profile(&snapshot, o->pid, kind, &profile, &err);
	bool lacks = rc == -ENOTSUP || rc == -ENODATA || rc == -EAGAIN;

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

/* Of a process of which only what is of this moment is wanted. */
static struct wp_options options_of_now(const struct wp_recording *r)
{
	struct wp_options o = *r->options;
	struct wp_sampler_options *s = &o.sampler;

	o.pid = r->process.pid;
	o.output = NULL;
	o.quiet = true;
	s->stop = WP_STOP_ALL;
	s->wall = true;
	s->cpu = s->block = s->mutex = s->thread_starts = false;
	s->note_holders = false;
	return o;
}

static void answer_goroutine(struct wp_recording *r,
			     const struct wp_recording_job *job, int file,
			     struct wp_serve_answer *ret)
{
	struct wp_options o = options_of_now(r);
	bool is_go = wp_go_books_can_read(r->target);

	if (!job->ask.debug) {
		answer_now(&o, job,
			   is_go ? WP_PROFILE_GOROUTINE : WP_PROFILE_THREADS,
			   file, ret);
		return;
	}
	o.action = WP_ACTION_DUMP;
	o.group = job->ask.debug == 1;
	o.format = is_go && !o.group ? WP_FORMAT_GO : WP_FORMAT_TEXT;
	run_command(&o, wp_cmd_dump, file, ret);
}

bool wp_recording_is_of_goroutines(const struct wp_recording *recording,
				   const struct wp_serve_ask *ask)
{
	return ask->endpoint == WP_SERVE_FGPROF && ask->seconds && !ask->ago &&
	       !recording->ended_ns && !wp_interrupts &&
	       wp_go_books_can_read(recording->target);
}

/* The recording that goes on is over threads, of which it stops some: this one stops
 * none. */
static void answer_goroutine_times(const struct wp_recording *r,
				   const struct wp_recording_job *job, int file,
				   struct wp_serve_answer *ret)
{
	struct wp_options o = options_of_now(r);

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
	struct wp_options o = options_of_now(r);

	o.action = WP_ACTION_DUMP;
	o.format = WP_FORMAT_TEXT;
	run_command(&o, wp_cmd_dump, file, ret);
}

static void answer_check(struct wp_recording *r, int file,
			 struct wp_serve_answer *ret)
{
	struct wp_options o = options_of_now(r);

	o.action = WP_ACTION_CHECK;
	o.format = WP_FORMAT_TEXT;
	run_command(&o, wp_cmd_check, file, ret);
}

/* The arguments, parted by NULs, as Go's. */
static void answer_cmdline(struct wp_recording *r, int file,
			   struct wp_serve_answer *ret)
{
	struct wp_text text = WP_TEXT_INIT;
	int rc = wp_text_read(&text, r->process.proc_fd, "cmdline", 1 << 21);

	while (text.len && !text.data[text.len - 1])
		text.len--;
	ret->type = WP_SERVE_TYPE_TEXT;
	if (rc || write(file, text.data, text.len) != (ssize_t)text.len)
		refuse(ret, 500, "cannot read the command line: %s",
		       strerror(rc ? -rc : errno));
	wp_text_clear(&text);
}

void wp_recording_answer(struct wp_recording *recording,
			 const struct wp_recording_job *job, int file,
			 struct wp_serve_answer *ret)
{
	struct wp_options now = options_of_now(recording);

	ret->status = 200;
	if (!job->to_ns &&
	    wp_recording_is_of_goroutines(recording, &job->ask)) {
		answer_goroutine_times(recording, job, file, ret);
		return;
	}
	switch (job->ask.endpoint) {
	case WP_SERVE_GOROUTINE:
		answer_goroutine(recording, job, file, ret);
		break;
	case WP_SERVE_HEAP:
	case WP_SERVE_ALLOCS:
		answer_now(&now, job, WP_PROFILE_HEAP, file, ret);
		break;
	case WP_SERVE_CHECK:
		answer_check(recording, file, ret);
		break;
	case WP_SERVE_KEEP:
		wp_hang_files_write(recording, job, ret);
		break;
	case WP_SERVE_CMDLINE:
		answer_cmdline(recording, file, ret);
		break;
	default:
		answer_profile(recording, job, file, ret);
		break;
	}
}
