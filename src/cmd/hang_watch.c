/* SPDX-License-Identifier: Apache-2.0 */
/* hang_watch.c - see hang_watch.h. */
#include "hang_watch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exit_status.h"
#include "messages.h"
#include "wallprof/clock.h"

/* Between two checks of threads that wait on; where nobody waits for a lock and files
 * are wanted; and between two times that files are written. */
#define FIRST_PAUSE_NS (2 * WP_NS_PER_S)
#define LAST_PAUSE_NS (60 * WP_NS_PER_S)
#define KEEP_PAUSE_NS (60 * WP_NS_PER_S)
/* So long before a hang is kept. */
#define KEPT_NS (60 * WP_NS_PER_S)

void wp_hang_watch_init(struct wp_hang_watch *w)
{
	*w = (struct wp_hang_watch){ .writer = { .result = -1, .file = -1 },
				     .report = -1 };
}

bool wp_hang_watch_is_over(const struct wp_options *o,
			   const struct wp_digest *d, uint64_t now_ns,
			   char *text, size_t size)
{
	uint64_t idle_ns = now_ns - d->ran_ns;

	if (o->hang_lock && d->nthreads &&
	    100 * (uint64_t)d->nlocked > (uint64_t)o->hang_lock * d->nthreads)
		snprintf(text, size,
			 "threads in wait=lock: %u of %u (over %u %%)",
			 d->nlocked, d->nthreads, o->hang_lock);
	else if (o->hang_idle_ns && idle_ns > o->hang_idle_ns)
		snprintf(text, size,
			 "no thread%s has run for %.0f s (over %.0f s)",
			 o->sampler.thread_globs[0] ? " that -t chooses" : "",
			 (double)idle_ns / 1e9, (double)o->hang_idle_ns / 1e9);
	else if (o->hang_runnable_ns && d->starved_ns > o->hang_runnable_ns)
		snprintf(text, size,
			 "a thread that was ready to run had no CPU for %.1f s "
			 "(over %.0f s)",
			 (double)d->starved_ns / 1e9,
			 (double)o->hang_runnable_ns / 1e9);
	else
		return false;
	return true;
}

bool wp_hang_watch_is_due(struct wp_hang_watch *w, const struct wp_options *o,
			  const struct wp_digest *d, uint64_t now_ns)
{
	bool suspects = d->nsuspects != 0;

	if (!suspects && !w->is_hung) {
		w->pause_ns = 0;
		if (!o->on_hang)
			return false;
		if (!w->next_ns || w->next_ns > now_ns + LAST_PAUSE_NS)
			w->next_ns = now_ns + LAST_PAUSE_NS;
	} else if (!w->pause_ns) {
		w->pause_ns = FIRST_PAUSE_NS;
		w->next_ns = now_ns;
	}
	if (now_ns < w->next_ns)
		return false;
	if (w->pause_ns && w->pause_ns < LAST_PAUSE_NS / 2)
		w->pause_ns *= 2;
	else
		w->pause_ns = LAST_PAUSE_NS;
	w->next_ns = now_ns + w->pause_ns;
	return true;
}

static void drop_report(struct wp_hang_watch *w)
{
	if (w->report >= 0)
		close(w->report);
	w->report = -1;
}

static void start(struct wp_hang_watch *w, struct wp_recording *r, int state,
		  enum wp_serve_endpoint endpoint)
{
	uint64_t now = wp_clock_ns();
	const struct wp_recording_job job = {
		.ask = { .endpoint = endpoint },
		.from_ns = wp_clock_before(now, KEPT_NS),
		.to_ns = now,
		.reason = w->reason,
		.report = w->report,
	};

	w->state = WP_HANG_WATCH_IDLE;
	if (!wp_writer_start(&w->writer, r, &job))
		w->state = state;
}

static void take_kept(struct wp_hang_watch *w, const struct wp_recording *r,
		      const struct wp_serve_answer *a,
		      struct wp_recorder_status *status)
{
	char who[32] = "";

	drop_report(w);
	status->hangs_kept += a->status == 200;
	status->hangs_failed += a->status != 200;
	if (r->process.pid)
		snprintf(who, sizeof(who), "process %d: ", r->process.pid);
	wp_say("wallprof: %s%s; %s %s", who, w->reason,
	       a->status == 200 ? "kept in" : "cannot keep it:", a->text);
}

static void keep(struct wp_hang_watch *w, struct wp_recording *r,
		 struct wp_recorder_status *status)
{
	static const struct wp_serve_answer unwritten = {
		.status = 503,
		.text = "no process can be started to write it",
	};

	w->kept_ns = wp_clock_ns();
	start(w, r, WP_HANG_WATCH_KEEPS, WP_SERVE_KEEP);
	if (w->state == WP_HANG_WATCH_KEEPS)
		return;
	take_kept(w, r, &unwritten, status);
	/* What is so at a later look is kept then. */
	w->is_hung = w->is_over = false;
}

/* The verdict of the check that A is of: what is bad and was not is kept. */
static void take_verdict(struct wp_hang_watch *w, struct wp_recording *r,
			 const struct wp_serve_answer *a,
			 struct wp_recorder_status *status)
{
	bool was_hung = w->is_hung;
	ssize_t n;

	if (a->status != 200)
		return;
	status->checks++;
	status->deadlocks = a->exit_status == WP_EXIT_DEADLOCK;
	status->no_progress = a->exit_status == WP_EXIT_NO_PROGRESS;
	w->is_hung = status->deadlocks || status->no_progress;
	if (!w->is_hung || was_hung || !r->options->on_hang)
		return;
	drop_report(w);
	w->report = dup(w->writer.file);
	/* The verdict is the first line of what it printed. */
	n = pread(w->report, w->reason, sizeof(w->reason) - 1, 0);
	w->reason[n > 0 ? n : 0] = '\0';
	w->reason[strcspn(w->reason, "\n")] = '\0';
	wp_writer_clear(&w->writer);
	keep(w, r, status);
}

static void take_result(struct wp_hang_watch *w, struct wp_recording *r,
			struct wp_recorder_status *status)
{
	struct wp_serve_answer a = { 0 };
	int was = w->state;

	if (wp_writer_take(&w->writer, &a))
		return;
	w->state = WP_HANG_WATCH_IDLE;
	if (was == WP_HANG_WATCH_CHECKS)
		take_verdict(w, r, &a, status);
	else
		take_kept(w, r, &a, status);
	if (w->state == WP_HANG_WATCH_IDLE)
		wp_writer_clear(&w->writer);
}

/* Keep what is over a threshold and was not. */
static void watch_thresholds(struct wp_hang_watch *w, struct wp_recording *r,
			     const struct wp_digest *d,
			     struct wp_recorder_status *status)
{
	uint64_t now = wp_clock_ns();
	bool was_over = w->is_over;
	char text[sizeof(w->reason)];

	w->is_over = wp_hang_watch_is_over(r->options, d, now, text,
					   sizeof(text));
	if (!w->is_over || was_over || !r->options->on_hang)
		return;
	/* If it is so after the pause, it is new then. */
	if (w->kept_ns && now - w->kept_ns < KEEP_PAUSE_NS) {
		w->is_over = false;
		return;
	}
	memcpy(w->reason, text, sizeof(text));
	keep(w, r, status);
}

void wp_hang_watch_step(struct wp_hang_watch *w, struct wp_recording *r,
			const struct wp_digest *d,
			struct wp_recorder_status *status)
{
	if (w->state != WP_HANG_WATCH_IDLE)
		take_result(w, r, status);
	/* Who has ended hangs no more. */
	if (r->ended_ns)
		status->deadlocks = status->no_progress = 0;
	if (w->state == WP_HANG_WATCH_IDLE && !r->ended_ns)
		watch_thresholds(w, r, d, status);
	/* Many processes are many snapshots: only where files are wanted. */
	if (r->options->sampler.many && !r->options->on_hang)
		return;
	if (w->state == WP_HANG_WATCH_IDLE && !r->ended_ns &&
	    wp_hang_watch_is_due(w, r->options, d, wp_clock_ns()))
		start(w, r, WP_HANG_WATCH_CHECKS, WP_SERVE_CHECK);
}
