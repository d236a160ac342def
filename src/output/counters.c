/* SPDX-License-Identifier: Apache-2.0 */
/* counters.c - the counters of a recording as lines of text.
 *
 * Counters that are 0 are left out, but for those whose 0 says something.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wallprof/output.h"

/* A line so far: "name: part, part". */
struct line {
	char text[512];
	size_t len;
	unsigned int nparts;
	const char *name;
	/* Gets what is full; the rest is another line of the same name. */
	void (*each)(void *ctx, const char *line);
	void *ctx;
};

static void begin(struct line *line, const char *name)
{
	line->name = name;
	line->nparts = 0;
	line->len = (size_t)snprintf(line->text, sizeof(line->text),
				     "%s:", name);
}

static void more(struct line *line, const char *text)
{
	size_t room = sizeof(line->text) - line->len;
	size_t n = (size_t)snprintf(line->text + line->len, room, "%s", text);

	line->len += n < room ? n : room - 1;
}

static void WP_PRINTF(2, 3) part(struct line *line, const char *fmt, ...)
{
	char text[sizeof(line->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (line->nparts &&
	    line->len + strlen(", ") + strlen(text) >= sizeof(line->text)) {
		line->each(line->ctx, line->text);
		begin(line, line->name);
	}
	more(line, line->nparts++ ? ", " : " ");
	more(line, text);
}

/* Add "N what" unless N is 0. */
static void count(struct line *line, uint64_t n, const char *what)
{
	if (n)
		part(line, "%" PRIu64 " %s", n, what);
}

static void ticks(const struct wp_profile *profile, struct line *line)
{
	const struct wp_profile_meta *meta = &profile->meta;

	begin(line, "ticks");
	part(line, "%" PRIu64, profile->counters.ticks);
	count(line, profile->counters.missed_ticks, "missed");
	count(line, profile->counters.spared_ticks, "left out for --max-cpu");
	if (meta->period_ns > 0)
		part(line, "%.1f Hz asked", 1e9 / (double)meta->period_ns);
	part(line, "%.1f Hz achieved", meta->achieved_hz);
}

/* Each sample of wall time came in one of these ways; the rest had to wait for a
 * later stack of its thread. */
static void samples(const struct wp_counters *c, uint64_t all,
		    bool of_goroutines, struct line *line)
{
	uint64_t known = c->unchanged + c->no_stop + c->stopped + c->sampled +
			 c->no_stack;

	begin(line, "samples");
	part(line, "%" PRIu64, all);
	/* The rest tells of threads. */
	if (of_goroutines)
		return;
	count(line, c->unchanged, "had not run since the last");
	count(line, c->no_stop, "read without a stop");
	count(line, c->stopped, "in a stop");
	count(line, c->sampled, "with the stack of a CPU sample");
	count(line, all > known ? all - known : 0,
	      "with a later stack of the thread");
	count(line, c->no_stack, "without a stack");
	count(line, c->cached_site, "from the wait-site cache");
	count(line, c->partial, "not stopped and perhaps incomplete");
}

/* Add the shares of the measures that stacks with END have; if WITH_NAMES, "2 % of
 * wall time". */
static void shares(struct line *line, const struct wp_profile_sums *sums,
		   unsigned int end, bool with_names)
{
	for (unsigned int i = 0; i < sums->nmeasures; i++) {
		const struct wp_profile_measure *m = &sums->measures[i];
		uint64_t part_of = end == WP_END_ROOT ?
					   m->all - m->ends[WP_END_ROOT] :
					   m->ends[end];

		if (m->all)
			part(line, "%.3g %%%s%s",
			     100 * (double)part_of / (double)m->all,
			     with_names ? " of " : "",
			     with_names ? m->name : "");
	}
}

static bool has_end(const struct wp_profile_sums *sums, unsigned int end)
{
	return sums->measures[0].ends[end] ||
	       (sums->nmeasures > 1 && sums->measures[1].ends[end]);
}

/* "stacks: 2 % of wall time, 64 % of CPU time without a whole stack; no unwind
 * info: 2 %, 63 %; ..." */
static void stacks(const struct wp_profile_sums *sums, struct line *line)
{
	/* The longest reason with its shares is shorter. */
	enum { END_MAX = 128 };

	begin(line, "stacks");
	shares(line, sums, WP_END_ROOT, true);
	if (!line->nparts) {
		part(line, "none");
		return;
	}
	more(line, " without a whole stack");
	for (unsigned int i = 0; i < WP_NSTACK_ENDS; i++) {
		if (i == WP_END_ROOT || !has_end(sums, i))
			continue;
		if (line->len + END_MAX > sizeof(line->text)) {
			line->each(line->ctx, line->text);
			begin(line, line->name);
			more(line, " ");
		} else {
			more(line, "; ");
		}
		more(line, wp_stack_end_text((enum wp_stack_end)i));
		more(line, ":");
		line->nparts = 0;
		shares(line, sums, i, false);
	}
}

static bool has_guess(const struct wp_profile *profile, uint32_t stack)
{
	const struct wp_profile_stack *s = &profile->stacks[stack];

	for (uint32_t i = 0; i < s->depth; i++)
		if (wp_profile_frame(profile, s, i)->flags & WP_FRAME_GUESSED)
			return true;
	return false;
}

static bool guesses(const struct wp_profile *profile, enum wp_profile_kind kind,
		    struct line *line)
{
	const struct wp_sample_set *set = &profile->sets[kind];
	uint64_t n = 0;

	for (uint32_t i = 0; i < set->nsamples; i++)
		if (has_guess(profile, set->samples[i].key.stack))
			n += set->samples[i].count;
	begin(line, "guessed");
	count(line, n, "samples with a frame found without unwind info");
	return n;
}

static void cpu(const struct wp_profile *profile, struct line *line)
{
	const struct wp_counters *c = &profile->counters;

	begin(line, "cpu");
	part(line, "by %s", wp_profile_str(profile, profile->meta.cpu_source));
	count(line, profile->sums[WP_PROFILE_WALL].cpu_count, "samples");
	count(line, c->cpu_lost, "records lost");
}

static void stops(const struct wp_counters *c, struct line *line)
{
	begin(line, "stops");
	part(line, "%" PRIu64 " made", c->stops);
	count(line, c->eintr_repaired, "EINTR repaired");
	count(line, c->eintrs_left,
	      "EINTR left (close, or the kernel does not tell a call's argument)");
	count(line, c->execs_again,
	      "programs executed again for the rights of their files");
	count(line, c->stops_given_up, "not in time");
	count(line, c->stops_refused, "refused by the kernel");
	count(line, c->stops_left_out, "left out where calls are supervised");
	count(line, c->stops_over_budget, "left out for --max-stopped");
}

static void pauses(const struct wp_profile *profile, struct line *line)
{
	const struct wp_counters *c = &profile->counters;
	int64_t duration = profile->meta.duration_ns;

	begin(line, "pauses");
	part(line, "p50 %.1f us", (double)c->pause_p50_ns / 1e3);
	part(line, "p99 %.1f us", (double)c->pause_p99_ns / 1e3);
	part(line, "max %.1f us", (double)c->pause_max_ns / 1e3);
	if (duration > 0)
		part(line, "%.3f %% of the recording in all",
		     100 * (double)c->pause_total_ns / (double)duration);
}

/* What the recording took of the machine and of the target. */
static void cost(const struct wp_profile *profile, struct line *line)
{
	double duration_ns = (double)profile->meta.duration_ns;

	begin(line, "cost");
	part(line, "sampling took %.2f %% of a core",
	     100 * (double)profile->meta.own_cpu_ns / duration_ns);
	part(line, "stops of the target's threads %.2f %% of the time",
	     100 * (double)profile->counters.pause_total_ns / duration_ns);
}

static void threads(const struct wp_profile *profile, enum wp_profile_kind kind,
		    struct line *line)
{
	const struct wp_counters *c = &profile->counters;
	const char *no_scan = wp_profile_str(profile, profile->meta.no_scan);

	begin(line, "threads");
	if (kind != WP_PROFILE_WALL || !profile->meta.is_of_goroutines)
		part(line, "%" PRIu64 " with a sample",
		     profile->sums[kind].threads);
	part(line, "%" PRIu64 " watched", c->threads_seen);
	count(line, c->threads_lost, "ended before a first sample");
	count(line, c->threads_shared, "told by name only, being too many");
	count(line, c->map_reloads, "x memory map read");
	count(line, c->execs, "x exec");
	count(line, c->scans, "ticks by a BPF scan");
	if (no_scan[0])
		part(line, "no BPF scan: %s", no_scan);
}

/* Of a recording of several processes. */
static void processes(const struct wp_profile *profile, struct line *line)
{
	const struct wp_counters *c = &profile->counters;
	uint64_t n = 0;

	begin(line, "processes");
	for (uint32_t i = 0; i < profile->nprocesses; i++)
		n += 1 + (uint64_t)profile->processes[i].nmore;
	part(line, "%" PRIu64 " recorded", n);
	count(line, c->processes_lost, "ended before they could be looked at");
	count(line, c->processes_denied, "could not be looked at");
}

static void losses(const struct wp_profile *profile, struct line *line)
{
	const struct wp_counters *c = &profile->counters;

	begin(line, "lost");
	count(line, c->rights_lost,
	      "times a program got no rights of its file (set-user-ID), as a stop "
	      "came while it was executed");
	count(line, c->samples_lost, "samples could not be taken");
	count(line, c->processes_lost,
	      "processes ended before they could be looked at");
	count(line, c->processes_denied, "processes could not be looked at");
	count(line, wp_profile_is_of_many(profile) ? c->cpu_lost : 0,
	      "records, which tell of CPU samples and of processes that start");
	count(line, c->threads_lost, "threads ended before a first sample");
	count(line, c->kernel_denied,
	      "stacks of the kernel's may not be read (they want CAP_SYS_ADMIN)");
	count(line, c->goroutines_lost, "goroutines were not read");
	count(line, c->inconsistent, "reads dropped as the thread moved");
	count(line, c->stacks_dropped, "stacks left out for --max-memory");
	count(line, c->mappings_dropped, "mappings left out for --max-memory");
	count(line, c->files_dropped,
	      "files with parts left out for --max-memory");
	count(line, c->objects_dropped,
	      "times an object of a wait, or who ended it, was left out, as there "
	      "are too many");
	count(line, c->names_dropped,
	      "new names of threads and processes left out, being too many");
	count(line, c->files_lost,
	      "mapped files whose file server does not answer");
	count(line, c->files_unopened,
	      "names of mapped files that could not be opened, or have changed since");
	count(line, c->perf_map_cut,
	      "bytes at the beginning of perf-PID.map, which is over 64 MiB");
	if (c->files_lineless)
		part(line,
		     "lines or inlined functions of %" PRIu64
		     " mapped file%s (%s)",
		     c->files_lineless, c->files_lineless == 1 ? "" : "s",
		     wp_profile_str(profile, profile->meta.lineless_why));
	if (c->unnamed)
		part(line, "names of %" PRIu64 " addresses as %s", c->unnamed,
		     wp_profile_str(profile, profile->meta.unnamed_why));
	if (*wp_profile_str(profile, profile->meta.no_servers))
		part(line, "names of servers of debug files: %s",
		     wp_profile_str(profile, profile->meta.no_servers));
	if (!line->nparts)
		part(line, "nothing");
}

/* What a full timeline has lost. */
static void timeline(const struct wp_profile *profile, struct line *line)
{
	const struct wp_timeline *t = &profile->timeline;
	uint64_t dropped_ns = 0;

	for (uint32_t i = 0; i < t->nthreads; i++)
		dropped_ns += t->threads[i].dropped_ns;
	begin(line, "timeline");
	part(line, "%" PRIu64 " intervals joined within windows of %.3g s",
	     t->nlost, (double)t->window_ns / 1e9);
	if (dropped_ns)
		part(line, "the oldest %.3g s of thread time not kept",
		     (double)dropped_ns / 1e9);
}

void wp_counters_lines(const struct wp_profile *profile,
		       enum wp_profile_kind kind,
		       void (*each)(void *ctx, const char *line), void *ctx)
{
	const struct wp_profile_sums *sums = &profile->sums[kind];
	enum wp_profile_kind wall = kind == WP_PROFILE_THREADS ?
					    WP_PROFILE_THREADS :
					    WP_PROFILE_WALL;
	struct line line = { .each = each, .ctx = ctx };

	for (uint32_t i = 0; i < profile->ncomments; i++)
		each(ctx, wp_profile_str(profile, profile->comments[i]));
	if (profile->meta.was_read)
		return;
	ticks(profile, &line);
	each(ctx, line.text);
	if (wp_profile_is_of_many(profile)) {
		processes(profile, &line);
		each(ctx, line.text);
	}
	threads(profile, kind, &line);
	each(ctx, line.text);
	if (profile->sums[wall].count) {
		samples(&profile->counters, profile->sums[wall].count,
			profile->meta.is_of_goroutines, &line);
		each(ctx, line.text);
	}
	stacks(sums, &line);
	each(ctx, line.text);
	if (*wp_profile_str(profile, profile->meta.throttled)) {
		begin(&line, "throttled");
		part(&line, "%s",
		     wp_profile_str(profile, profile->meta.throttled));
		each(ctx, line.text);
	}
	if (profile->meta.has_cpu) {
		cpu(profile, &line);
		each(ctx, line.text);
	}
	if (guesses(profile, kind, &line))
		each(ctx, line.text);
	stops(&profile->counters, &line);
	each(ctx, line.text);
	if (profile->counters.pause_max_ns) {
		pauses(profile, &line);
		each(ctx, line.text);
	}
	if (profile->meta.own_cpu_ns && profile->meta.duration_ns > 0) {
		cost(profile, &line);
		each(ctx, line.text);
	}
	if (profile->timeline.nlost) {
		timeline(profile, &line);
		each(ctx, line.text);
	}
	losses(profile, &line);
	each(ctx, line.text);
}
