/* SPDX-License-Identifier: Apache-2.0 */
/* recorder.c - see recorder.h. */
#include "recorder.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "digest.h"
#include "exit_status.h"
#include "forget.h"
#include "hang_watch.h"
#include "messages.h"
#include "parts.h"
#include "recording.h"
#include "serve_writer.h"
#include "signals.h"
#include "wallprof/clock.h"
#include "wallprof/packet.h"

enum {
	JOBS_MAX = 64,
	/* Clients of one job. */
	CLIENTS_MAX = 128,
	/* Answers that are made at the same time. */
	WRITERS_MAX = 2,
	/* Of these that record, which takes time but little else. */
	RECORDINGS_MAX = 4,
	/* Jobs that may begin in a second. */
	STARTS_MAX = 32,
	/* Clients that ask within so much time share a recording. */
	SHARED_MS = 100,
	/* Memory of unread messages past which no status is sent (max_dgram_qlen: 10). */
	UNREAD_MAX = 8192,
};
/* Time between two marks, and two looks at the socket. */
#define STEP_NS WP_NS_PER_S
#define LOOK_NS (50 * WP_NS_PER_MS)
/* Time of each part of the waits that are added up, but where they are asked for; and
 * least time. */
#define WAITS_NS (15 * WP_NS_PER_S)
#define LEAST_WAITS_NS WP_NS_PER_S

enum job_state { FREE, WAITS, READY, RUNS };

struct job {
	enum job_state state;
	struct wp_recording_job what;
	uint32_t ids[CLIENTS_MAX];
	uint32_t nids;
	/* While it runs. */
	struct wp_writer writer;
};

struct recorder {
	struct wp_recording r;
	struct wp_recorder_status status;
	struct wp_digest digest;
	struct wp_parts parts;
	struct wp_forget forget;
	struct wp_hang_watch watch;
	int sock;
	bool is_over;
	/* It is said that not all can be looked at. */
	bool many_is_said;
	struct job jobs[JOBS_MAX];
	/* Jobs that began in the second from STARTS_NS on. */
	unsigned int nstarts;
	uint64_t starts_ns;
	/* Ends of the last delta profiles that were answered. */
	uint64_t delta_ns[WP_NPROFILE_KINDS];
	uint64_t told_ns;
	/* The next tick, which is asked for once. */
	uint64_t next_ns;
};

static int mark(struct recorder *c)
{
	const struct wp_history_mark *m;
	int rc = c->r.sampler ? wp_sampler_settle(c->r.sampler) : 0;

	if (rc)
		return rc;
	if (c->r.ended_ns && c->r.history.end_ns >= c->r.ended_ns) {
		/* What was begun before is still to be taken. */
		wp_hang_watch_step(&c->watch, &c->r, &c->digest, &c->status);
		return 0;
	}
	m = wp_history_add(&c->r.history, &c->r.profile, wp_clock_ns());
	if (!m)
		return -ENOMEM;
	rc = wp_digest_add(&c->digest, &c->r.profile, m, c->r.options->keep_ns,
			   &c->status);
	if (!rc && wp_forget_is_due(&c->forget, &c->r, m->end_ns))
		rc = wp_forget_old(&c->forget, &c->r, &c->digest);
	if (!rc && m->end_ns - c->r.waits.until_ns >= WAITS_NS)
		rc = wp_cumulative_add(&c->r.waits, &c->r.history,
				       &c->r.profile);
	if (!rc)
		wp_hang_watch_step(&c->watch, &c->r, &c->digest, &c->status);
	return rc;
}

static void tell(struct recorder *c)
{
	struct wp_recorder_status *s = &c->status;

	s->processes = c->r.recorded.n + (c->r.target && !s->has_ended);
	if (c->r.recorded.n > WP_PIDS_MAX && !c->many_is_said)
		wp_say("wallprof: %zu processes are recorded: dumps and checks "
		       "of them, also for --on-hang, are of %d",
		       c->r.recorded.n, WP_PIDS_MAX);
	c->many_is_said |= c->r.recorded.n > WP_PIDS_MAX;
	s->has_ended = c->r.ended_ns != 0;
	s->history_ns = wp_clock_ns() - wp_history_begin_ns(&c->r.history);
	s->history_bytes = c->r.history.bytes;
	s->history_dropped = c->r.history.ndropped;
	wp_digest_own(s);
	/* One that is not taken is followed by another; there is room for answers, which
	 * are not, where nobody reads for a while (Ctrl-Z). */
	if (wp_packet_unread(c->sock) < UNREAD_MAX)
		(void)!wp_packet_send(c->sock, s, sizeof(*s), NULL, 0);
	c->told_ns = wp_clock_ns();
}

static void answer(struct recorder *c, struct job *job,
		   struct wp_serve_answer *a, int file)
{
	for (uint32_t i = 0; i < job->nids; i++) {
		a->id = job->ids[i];
		(void)!wp_packet_send(c->sock, a, sizeof(*a), &file, file >= 0);
	}
	if (a->status == 200)
		c->status.answers += job->nids;
	else
		c->status.refused += job->nids;
}

WP_PRINTF(4, 5)
static void refuse(struct recorder *c, uint32_t id, uint32_t status,
		   const char *fmt, ...)
{
	struct wp_serve_answer a = { .id = id, .status = status };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(a.text, sizeof(a.text), fmt, ap);
	va_end(ap);
	(void)!wp_packet_send(c->sock, &a, sizeof(a), NULL, 0);
	c->status.refused++;
}

static bool is_same(const struct job *job, const struct wp_recording_job *what)
{
	return job->what.ask.endpoint == what->ask.endpoint &&
	       job->what.ask.debug == what->ask.debug &&
	       job->what.ask.pid == what->ask.pid &&
	       !strcmp(job->what.ask.name, what->ask.name) &&
	       job->what.from_ns == what->from_ns &&
	       job->what.to_ns == what->to_ns &&
	       /* Of a recording that is still to be made. */
	       (what->to_ns || job->what.ask.seconds == what->ask.seconds);
}

/* A job that makes the same is joined, unless it has begun. */
static struct job *find_job(struct recorder *c,
			    const struct wp_recording_job *what)
{
	struct job *unused = NULL;

	for (size_t i = 0; i < JOBS_MAX; i++) {
		struct job *job = &c->jobs[i];

		if (job->state == FREE)
			unused = unused ? unused : job;
		else if (job->state != RUNS && job->nids < CLIENTS_MAX &&
			 is_same(job, what))
			return job;
	}
	if (wp_clock_ns() - c->starts_ns > WP_NS_PER_S) {
		c->starts_ns = wp_clock_ns();
		c->nstarts = 0;
	}
	if (!unused || c->nstarts >= STARTS_MAX)
		return NULL;
	c->nstarts++;
	unused->what = *what;
	unused->nids = 0;
	unused->state = WAITS;
	return unused;
}

/* Where the end of the last profile is kept that ASK goes on from; NULL: from none. */
static uint64_t *delta_of(struct recorder *c, const struct wp_serve_ask *ask)
{
	return ask->seconds ? NULL :
	       ask->endpoint == WP_SERVE_DELTA_BLOCK ?
			      &c->delta_ns[WP_PROFILE_BLOCK] :
	       ask->endpoint == WP_SERVE_DELTA_MUTEX ?
			      &c->delta_ns[WP_PROFILE_MUTEX] :
			      NULL;
}

/* The times of a profile that begins now; what has just begun is shared. */
static int set_times(struct recorder *c, struct wp_recording_job *what)
{
	const struct wp_serve_ask *ask = &what->ask;
	const uint64_t *delta = delta_of(c, ask);
	uint64_t length_ns = ask->seconds * WP_NS_PER_S, ago_ns;
	int rc = 0;

	if (wp_clock_ns() - c->r.history.end_ns > SHARED_MS * WP_NS_PER_MS)
		rc = mark(c);
	if (!rc && ask->endpoint == WP_SERVE_BLOCK && !ask->seconds &&
	    c->r.history.end_ns - c->r.waits.until_ns >= LEAST_WAITS_NS)
		rc = wp_cumulative_add(&c->r.waits, &c->r.history,
				       &c->r.profile);
	what->to_ns = c->r.history.end_ns;
	if (ask->to_ns) {
		what->from_ns = ask->from_ns;
		what->to_ns = ask->to_ns;
		return rc;
	}
	if (delta) {
		what->from_ns = *delta ? *delta : c->r.start_ns;
	} else if (ask->seconds) {
		ago_ns = ask->ago * WP_NS_PER_S;
		what->from_ns = wp_clock_before(what->to_ns, ago_ns);
		what->to_ns = what->from_ns + length_ns;
	}
	return rc;
}

static bool is_of_now(uint32_t endpoint)
{
	return endpoint == WP_SERVE_GOROUTINE || endpoint == WP_SERVE_CHECK ||
	       endpoint == WP_SERVE_CMDLINE || endpoint == WP_SERVE_HEAP ||
	       endpoint == WP_SERVE_ALLOCS;
}

static bool is_recording(const struct job *job)
{
	return job->what.ask.endpoint == WP_SERVE_FGPROF && !job->what.to_ns;
}

/* Nobody waits for the answer to question ID. */
static void cancel(struct recorder *c, uint32_t id)
{
	for (size_t i = 0; i < JOBS_MAX; i++) {
		struct job *job = &c->jobs[i];
		uint32_t at = 0;

		while (at < job->nids && job->ids[at] != id)
			at++;
		if (job->state == FREE || at == job->nids)
			continue;
		job->ids[at] = job->ids[--job->nids];
		if (!job->nids && job->state != RUNS)
			job->state = FREE;
		else if (!job->nids && is_recording(job))
			wp_writer_stop(&job->writer);
	}
}

static int take_ask(struct recorder *c, const struct wp_serve_ask *ask)
{
	struct wp_recording_job what = { .ask = *ask, .report = -1 };
	const uint64_t keep_ns = c->r.options->keep_ns;
	struct job *job;
	int rc = 0;

	if (ask->endpoint == WP_SERVE_CANCEL) {
		cancel(c, ask->id);
		return 0;
	}
	if (is_of_now(ask->endpoint) && c->r.ended_ns) {
		refuse(c, ask->id, 404, WP_RECORDING_HAS_ENDED);
		return 0;
	}
	if (!is_of_now(ask->endpoint) &&
	    !wp_recording_is_of_goroutines(&c->r, ask)) {
		/* Its begin would be gone when it ends. */
		if (ask->seconds > ask->ago &&
		    ask->seconds * WP_NS_PER_S > keep_ns) {
			refuse(c, ask->id, 400,
			       "the last %g s are kept (--keep), %u were asked "
			       "for: ask for less, or serve with a longer "
			       "--keep",
			       (double)keep_ns / WP_NS_PER_S, ask->seconds);
			return 0;
		}
		rc = set_times(c, &what);
	}
	if (rc)
		return rc;
	job = find_job(c, &what);
	if (job)
		job->ids[job->nids++] = ask->id;
	else
		refuse(c, ask->id, 503,
		       "too many recordings at once: try again");
	return 0;
}

static int take_asks(struct recorder *c)
{
	struct wp_serve_ask ask = { 0 };
	ssize_t n = -EAGAIN;
	int fd, rc = 0;

	/* Ticks have their turn, however many come. */
	for (int i = 0; !rc && i < JOBS_MAX &&
			(n = wp_packet_take(c->sock, &ask, sizeof(ask), false,
					    &fd, 1)) > 0;
	     i++) {
		if (fd >= 0)
			close(fd);
		if (n == sizeof(ask))
			rc = take_ask(c, &ask);
	}
	c->is_over |= !rc && n <= 0 && n != -EAGAIN;
	return rc;
}

static void end_job(struct recorder *c, struct job *job,
		    struct wp_serve_answer *a)
{
	uint64_t *delta = delta_of(c, &job->what.ask);

	/* What nobody got comes with the next. */
	if (delta && a->status == 200 && job->nids && job->what.to_ns > *delta)
		*delta = job->what.to_ns;
	answer(c, job, a, a->status == 200 ? job->writer.file : -1);
	wp_writer_clear(&job->writer);
	job->state = FREE;
}

static void start_writer(struct recorder *c, struct job *job)
{
	struct wp_serve_answer failed = {
		.status = 503, .text = "no memory or process for the answer"
	};

	job->state = RUNS;
	if (wp_writer_start(&job->writer, &c->r, &job->what))
		end_job(c, job, &failed);
}

static void take_result(struct recorder *c, struct job *job)
{
	struct wp_serve_answer a = { 0 };

	if (!wp_writer_take(&job->writer, &a))
		end_job(c, job, &a);
}

/* Begin what is due, and hand out what is done. */
static int step_jobs(struct recorder *c)
{
	uint64_t now = wp_clock_ns();
	unsigned int running[2] = { 0, 0 };
	static const unsigned int most[2] = { WRITERS_MAX, RECORDINGS_MAX };
	int rc = 0;

	for (size_t i = 0; i < JOBS_MAX && !rc; i++) {
		struct job *job = &c->jobs[i];

		if (job->state == RUNS)
			take_result(c, job);
		running[is_recording(job)] += job->state == RUNS;
		if (job->state != WAITS ||
		    (job->what.to_ns > now && !c->r.ended_ns))
			continue;
		job->state = READY;
		if (job->what.to_ns <= c->r.history.end_ns)
			continue;
		rc = mark(c);
	}
	for (size_t i = 0; i < JOBS_MAX && !rc; i++) {
		bool records = is_recording(&c->jobs[i]);

		if (c->jobs[i].state != READY ||
		    running[records] >= most[records])
			continue;
		start_writer(c, &c->jobs[i]);
		running[records]++;
	}
	return rc;
}

static void sleep_until(uint64_t until_ns)
{
	uint64_t now = wp_clock_ns(), ns = until_ns > now ? until_ns - now : 0;
	const struct timespec ts = { (time_t)(ns / WP_NS_PER_S),
				     (long)(ns % WP_NS_PER_S) };

	nanosleep(&ts, NULL);
}

/* Until the next tick, or the next look at the socket. */
static int sleep_and_tick(struct recorder *c, struct wp_err *err)
{
	struct wp_recording *r = &c->r;
	uint64_t now = wp_clock_ns(), look = now + LOOK_NS, next;
	struct wp_tracee *late;
	int rc = 0;

	if (r->ended_ns) {
		sleep_until(look);
		/* The sampler takes no ends of children any more. */
		while ((late = wp_tracer_wait(&r->tracer, 0)))
			wp_tracer_release(&r->tracer, late);
		return 0;
	}
	if (!c->next_ns)
		c->next_ns = wp_sampler_next_tick(r->sampler, now);
	next = c->next_ns;
	while (!rc && (now = wp_clock_ns()) < next && now < look)
		rc = wp_sampler_sleep(r->sampler, next < look ? next : look);
	if (rc || now < next)
		return rc;
	c->next_ns = 0;
	rc = wp_recording_tick(r, err);
	if (rc != -ESRCH)
		return rc;
	rc = wp_sampler_finish_ended(r->sampler);
	if (!rc)
		rc = mark(c);
	r->ended_ns = wp_clock_ns();
	memset(c->status.threads, 0, sizeof(c->status.threads));
	c->status.longest_wait_ns = 0;
	return rc;
}

static int record(struct recorder *c, struct wp_err *err)
{
	int rc = wp_recording_tick(&c->r, err);

	while (!rc && !c->is_over && !wp_interrupts) {
		uint64_t now = wp_clock_ns();

		/* Its last minutes are over, too. */
		if (c->r.ended_ns &&
		    now - c->r.ended_ns > c->r.options->keep_ns)
			break;
		if (now - c->r.history.end_ns >= STEP_NS)
			rc = mark(c);
		if (now - c->told_ns >= STEP_NS)
			tell(c);
		if (!rc)
			rc = take_asks(c);
		if (!rc)
			rc = step_jobs(c);
		if (!rc)
			rc = sleep_and_tick(c, err);
	}
	return rc == -ESRCH ? 0 : rc;
}

int wp_recorder_run(const struct wp_options *options, pid_t pid, int sock,
		    struct wp_parts_told *parts)
{
	static struct recorder recorder;
	struct recorder *c = &recorder;
	struct wp_err err = WP_ERR_INIT;
	int rc;

	prctl(PR_SET_NAME, "wp-recorder");
	/* It ends between two ticks, when no thread is held. */
	wp_signals_catch(1);
	c->r.options = options;
	if (parts) {
		wp_parts_init(&c->parts, parts);
		c->digest.parts = &c->parts;
	}
	c->sock = sock;
	wp_hang_watch_init(&c->watch);
	rc = wp_recording_begin(&c->r, pid, &err);
	if (!rc)
		wp_digest_describe(&c->status, &c->r);
	if (!rc)
		rc = record(c, &err);
	if (rc && !err.code)
		wp_err_set(&err, rc, "sampling %s (%d): %s", c->status.name,
			   pid, strerror(-rc));
	if (rc)
		wp_say("wallprof: %s", err.msg);
	wp_recording_end(&c->r);
	if (wp_interrupts) {
		signal(SIGTERM, SIG_DFL);
		raise(SIGTERM);
	}
	return rc ? WP_EXIT_NOTHING : WP_EXIT_WHOLE;
}
