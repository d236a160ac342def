/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - the text report: its header, and how it writes numbers and names.  All
 * text that comes from a target is escaped.
 */
#include "report.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

void wp_report_time(char cell[WP_CELL], uint64_t ns)
{
	const char *unit = "s";
	double val = (double)ns / 1e9;

	if (ns && ns < 1000000) {
		unit = "us";
		val *= 1e6;
	} else if (ns && ns < 1000000000) {
		unit = "ms";
		val *= 1e3;
	}
	snprintf(cell, WP_CELL, "%*.*f %s", unit[1] ? 5 : 6,
		 val < 9.995 && ns ? 2 :
		 val < 99.95 && ns ? 1 :
				     0,
		 val, unit);
}

void wp_report_bytes(char cell[WP_CELL], uint64_t n)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double val = (double)n;
	size_t i = 0;

	while (val >= 1023.5 && i + 1 < sizeof(units) / sizeof(*units)) {
		val /= 1024;
		i++;
	}
	snprintf(cell, WP_CELL, "%*.*f %s", units[i][1] ? 4 : 6,
		 !i || val >= 99.95 ? 0 :
		 val < 9.995	    ? 2 :
				      1,
		 val, units[i]);
}

void wp_report_value(const struct wp_report *r, char cell[WP_CELL],
		     uint64_t value)
{
	if (r->is_of_bytes)
		wp_report_bytes(cell, value);
	else
		wp_report_time(cell, value);
}

void wp_report_share(char cell[WP_CELL], uint64_t ns, uint64_t all)
{
	snprintf(cell, WP_CELL, "%5.1f %%",
		 all ? 100 * (double)ns / (double)all : 0.0);
}

void wp_report_share_error(char cell[WP_CELL], uint64_t ns, uint64_t all,
			   const struct wp_errors *errors, uint32_t row)
{
	/* From here on tenths of a share, and of an error, would say nothing: two digits of
	 * an error are known, 1 / sqrt(2 n) of it of N looks. */
	static const double coarse = 1.95, coarse_error = 9.95;
	double points = errors->known && all ?
				100 * wp_errors_of(errors, row) / (double)all :
				0;

	wp_report_share(cell, ns, all);
	if (points >= coarse)
		snprintf(cell, WP_CELL, "%5.0f %% \u00b1%-4.*f",
			 100 * (double)ns / (double)all,
			 points < coarse_error ? 1 : 0, points);
	else if (points >= 0.05)
		snprintf(cell + strlen(cell), WP_CELL - strlen(cell),
			 " \u00b1%-4.1f", points);
	else if (errors->known)
		snprintf(cell + strlen(cell), WP_CELL - strlen(cell), "%6s",
			 "");
}

void wp_report_title(struct wp_report *r, const char *title)
{
	wp_buf_printf(&r->out, "\n%s\n", title);
}

void wp_report_paint(struct wp_report *r, enum wp_state state, uint64_t reason)
{
	r->paint_from = r->name.len;
	r->paint = !r->options->colour		   ? NULL :
		   state == WP_STATE_RUNNING	   ? "\033[32m" :
		   state == WP_STATE_RUNNABLE	   ? "\033[33m" :
		   (reason & 0xff) == WP_WAIT_LOCK ? "\033[31m" :
						     NULL;
}

/* Put r->paint before the last N bytes of the report, which may be cut and begin
 * with the rest of a character. */
static void paint_end(struct wp_report *r, size_t n)
{
	size_t len = strlen(r->paint), at = r->out.len - n;

	while (n && (r->out.data[at] & 0xc0) == 0x80) {
		at++;
		n--;
	}
	wp_buf_str(&r->out, r->paint);
	if (r->out.rc)
		return;
	memmove(r->out.data + at + len, r->out.data + at, n);
	memcpy(r->out.data + at, r->paint, len);
	wp_buf_str(&r->out, "\033[0m");
}

void wp_report_end(struct wp_report *r, size_t used)
{
	enum { LEAST = 24 };
	size_t width = r->options->width, begin = r->out.len, painted;

	/* Fewest columns of a name, even if the line gets longer. */
	if (width)
		width = width > used + LEAST ? width - used : LEAST;
	wp_escape_fit(&r->out, r->name.data, r->name.len, width);
	painted = r->name.len - r->paint_from;
	if (r->paint && !r->name.rc && !r->out.rc)
		paint_end(r, painted < r->out.len - begin ? painted :
							    r->out.len - begin);
	r->paint = NULL;
	wp_buf_char(&r->out, '\n');
	wp_report_fail(r, r->name.rc);
	wp_buf_reset(&r->name);
}

void wp_report_name(struct wp_report *r, const struct wp_view *view)
{
	const char *place = *view->file ? view->file : view->module;
	const char *name = wp_view_name(view);

	wp_escape_terminal(&r->name, name);
	if (view->guessed)
		wp_buf_char(&r->name, '?');
	if (view->kernel)
		wp_buf_str(&r->name, " (kernel)");
	/* "libfoo.so+0x12" has the module in it. */
	if (*place && strncmp(name, place, strlen(place))) {
		wp_buf_str(&r->name, " (");
		wp_escape_terminal(&r->name, place);
		if (*view->file && view->line)
			wp_buf_printf(&r->name, ":%" PRIu32, view->line);
		wp_buf_char(&r->name, ')');
	}
	if (view->inlined)
		wp_buf_str(&r->name, " [inlined]");
}

void wp_report_wait(struct wp_report *r, uint64_t reason)
{
	unsigned int wait = reason & 0xff;
	const char *name = wp_profile_str(r->profile, (uint32_t)(reason >> 8));

	if (wait == WP_WAIT_GO && *name) {
		wp_escape_terminal(&r->name, name);
		return;
	}
	wp_buf_str(&r->name, wait == WP_WAIT_NONE ?
				     "not known" :
				     wp_wait_name((enum wp_wait)wait));
	if (*name) {
		wp_buf_char(&r->name, ':');
		wp_escape_terminal(&r->name, name);
	}
}

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " ");
}

/* Begin the next part of a list whose line began at BEGIN. */
static void next_part(struct wp_report *r, size_t begin)
{
	if (r->out.len > begin)
		wp_buf_str(&r->out, ", ");
}

/* When and how often samples were taken, as far as that is known: a line, or none. */
static void put_when(struct wp_report *r)
{
	const struct wp_profile_meta *meta = &r->profile->meta;
	/* No allocation is sampled at a tick. */
	bool of_ticks = r->kind != WP_PROFILE_HEAP;
	time_t t = (time_t)(meta->time_ns / 1000000000);
	size_t begin = r->out.len;
	char text[64];
	struct tm tm;

	if (meta->time_ns && gmtime_r(&t, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm))
		wp_buf_str(&r->out, text);
	if (meta->duration_ns > 0 || !meta->was_read) {
		next_part(r, begin);
		wp_report_time(text, (uint64_t)meta->duration_ns);
		wp_buf_printf(&r->out, "%s on the clock", skip_blanks(text));
	}
	if (of_ticks && meta->period_ns > 0) {
		next_part(r, begin);
		wp_buf_printf(&r->out, "%.4g Hz asked",
			      1e9 / (double)meta->period_ns);
	}
	if (of_ticks && meta->achieved_hz > 0) {
		next_part(r, begin);
		wp_buf_printf(&r->out, "%.4g Hz achieved", meta->achieved_hz);
	}
	if (r->out.len > begin)
		wp_buf_char(&r->out, '\n');
}

/* The words for the numbers of a kind of profile. */
struct words {
	const char *samples;
	const char *time;
	const char *note;
	/* Instead of tables, if there are no samples. */
	const char *none;
};

/* CPU time is all that was recorded. */
static bool is_of_cpu(const struct wp_profile *profile,
		      enum wp_profile_kind kind)
{
	return kind == WP_PROFILE_WALL && !profile->meta.has_wall;
}

static const struct words census = {
	"objects", "bytes",
	"Shares are of the bytes that malloc holds, by what the program asked "
	"for; malloc's own\n8 bytes of each object are among them.",
	"Of no size there is more than at first"
};

/* The type of a file's values is their name. */
static const struct words others = { "samples", NULL,
				     "Shares are of all samples of the file.",
				     "The file has no samples" };

static const struct words *words_of(const struct wp_profile *profile,
				    enum wp_profile_kind kind)
{
	static const struct words words[WP_NPROFILE_KINDS] = {
		[WP_PROFILE_WALL] = { "samples", "thread time",
				      "Thread time adds up the time of every thread: two "
				      "threads that wait for 10 s\nmake 20 s.  Shares are of "
				      "all thread time; in a call tree, of its threads'.",
				      "No thread was seen for any time" },
		[WP_PROFILE_THREADS] = { "threads", "time", "Each thread once.",
					 "No thread was seen" },
		[WP_PROFILE_BLOCK] = { "waits", "delay",
				       "Delay adds up the time that threads were off the CPU "
				       "because they waited: until\nthey were woken (waiting), "
				       "and from then until they ran (runnable).",
				       "No thread waited" },
		[WP_PROFILE_MUTEX] = { "waits", "delay",
				       "Delay adds up the time that threads waited for a lock."
				       "  The stacks are of the\nthread that held it then.",
				       "No thread was seen waiting for a lock" },
		[WP_PROFILE_THREADCREATE] = { "threads created", "life",
					      "Threads that were created, how long they have lived, "
					      "and the stacks that\ncreated them.",
					      "No thread was created" },
		[WP_PROFILE_GOROUTINE] = { "goroutines", "time",
					   "Each goroutine once.",
					   "No goroutine was seen" },
		[WP_PROFILE_HEAP] = { "objects", "bytes",
				      "Shares are of the bytes that were allocated "
				      "while it was recorded and are in use at\nits "
				      "end, or of all that was allocated where "
				      "nothing is in use.",
				      "No object was sampled" },
		[WP_PROFILE_WAKE] = { "wakes", "delay",
				      "Delay adds up the time that threads had waited when they "
				      "were woken.  The stacks\nare of the thread that woke them.",
				      "No thread was woken" },
	};
	static const struct words goroutines = {
		"samples", "goroutine time",
		"Goroutine time adds up the time of every goroutine: two "
		"goroutines that wait for\n10 s make 20 s.  Shares are of all "
		"goroutine time; in a call tree, of its\ngoroutines'.",
		"No goroutine was seen for any time"
	};
	static const struct words cpu = {
		"CPU samples", "CPU time",
		"CPU time adds up the time of every thread on a CPU.",
		"No thread was on a CPU"
	};

	if (kind == WP_PROFILE_HEAP && profile->meta.is_census)
		return &census;
	if (profile->meta.value_type)
		return &others;
	if (kind == WP_PROFILE_WALL && profile->meta.is_of_goroutines &&
	    !is_of_cpu(profile, kind))
		return &goroutines;
	return is_of_cpu(profile, kind) ? &cpu : &words[kind];
}

static void put_heap_sums(const struct wp_profile_meta *meta,
			  const struct wp_profile_sums *sums, char *line,
			  size_t size)
{
	char all[WP_CELL], in_use[WP_CELL];

	wp_report_bytes(all, sums->wall_ns);
	wp_report_bytes(in_use, sums->cpu_ns);
	if (meta->is_census) {
		snprintf(line, size, "%" PRIu64 " objects of %s %s",
			 sums->cpu_count, skip_blanks(in_use),
			 meta->leaks_ns ? "more than at first" :
					  "in use at the end");
		return;
	}
	snprintf(line, size,
		 "%" PRIu64 " %s, %" PRIu64 " objects of %s allocated, %" PRIu64
		 " of %s in use at the end",
		 sums->threads, sums->threads == 1 ? "thread" : "threads",
		 sums->count, skip_blanks(all), sums->cpu_count,
		 skip_blanks(in_use));
}

void wp_report_sums(const struct wp_profile *profile, enum wp_profile_kind kind,
		    char *line, size_t size)
{
	const struct wp_profile_sums *sums = &profile->sums[kind];
	bool cpu = is_of_cpu(profile, kind);
	const struct words *words = words_of(profile, kind);
	bool goroutines = kind == WP_PROFILE_WALL &&
			  profile->meta.is_of_goroutines;
	char all[WP_CELL];

	if (kind == WP_PROFILE_HEAP) {
		put_heap_sums(&profile->meta, sums, line, size);
		return;
	}
	wp_report_time(all, cpu ? sums->cpu_ns : sums->wall_ns);
	snprintf(line, size, "%" PRIu64 " %s%s, %" PRIu64 " %s, %s of %s",
		 sums->threads, goroutines ? "goroutine" : "thread",
		 sums->threads == 1 ? "" : "s",
		 cpu ? sums->cpu_count : sums->count, words->samples,
		 skip_blanks(all),
		 words->time ? words->time : wp_columns_type(profile, kind));
}

static void put_header(struct wp_report *r)
{
	const struct wp_profile_meta *meta = &r->profile->meta;
	const char *end = wp_profile_str(r->profile, meta->target_end);
	const struct words *words = words_of(r->profile, r->kind);
	const char *source = wp_profile_str(r->profile, meta->source[r->kind]);
	char sums[256], hint[512];

	if (meta->pid)
		wp_buf_printf(&r->name, "pid %" PRId32 ": ", meta->pid);
	wp_escape_terminal(&r->name,
			   wp_profile_str(r->profile, meta->command_line));
	if (wp_profile_is_of_many(r->profile))
		wp_buf_str(&r->name, " and others");
	wp_report_end(r, 0);
	put_when(r);
	wp_report_sums(r->profile, r->kind, sums, sizeof(sums));
	/* Of another tool's file it has the type's name. */
	wp_escape_terminal(&r->out, sums);
	wp_buf_char(&r->out, '\n');
	if (*end) {
		wp_buf_str(&r->name, "the target ");
		wp_escape_terminal(&r->name, end);
		wp_report_end(r, 0);
	}
	if (wp_child_hint(r->profile, hint, sizeof(hint))) {
		wp_escape_terminal(&r->name, hint);
		/* Not cut to the width: the pid would be lost. */
		wp_buf_add(&r->out, r->name.data, r->name.len);
		wp_buf_reset(&r->name);
		wp_buf_char(&r->out, '\n');
	}
	if (*source) {
		wp_buf_printf(&r->out, "%s: ", wp_profile_kind_name(r->kind));
		wp_escape_terminal(&r->out, source);
		wp_buf_char(&r->out, '\n');
	}
	wp_buf_printf(&r->out, "\n%s\n", words->note);
}

static void put_counter(void *ctx, const char *line)
{
	struct wp_report *r = ctx;

	wp_buf_str(&r->out, "  ");
	wp_escape_terminal(&r->name, line);
	/* Not cut to the width: numbers would be lost. */
	wp_buf_add(&r->out, r->name.data, r->name.len);
	wp_buf_reset(&r->name);
	wp_buf_char(&r->out, '\n');
}

/* What a person should know first. */
static void put_summary(struct wp_report *r)
{
	put_header(r);
	wp_report_idle(r);
	/* Threads of this moment have no life yet. */
	if (!r->total_ns && (r->kind != WP_PROFILE_THREADCREATE ||
			     !r->profile->sums[r->kind].count)) {
		wp_buf_printf(
			&r->out, "\n%s.\n",
			r->profile->meta.leaks_ns &&
					!r->profile->meta.is_census ?
				(r->profile->meta.watched_ns ?
					 "Nothing that was allocated in the first half of the time that the probes stood is in use" :
					 "Nothing that was allocated in its first half is in use") :
				words_of(r->profile, r->kind)->none);
		return;
	}
	wp_report_processes(r);
	if ((r->kind == WP_PROFILE_WALL || r->kind == WP_PROFILE_BLOCK) &&
	    r->has_states)
		wp_report_states(r);
	if (r->kind == WP_PROFILE_WAKE ||
	    (r->kind != WP_PROFILE_MUTEX && r->has_states))
		wp_report_sites(r);
	if (r->kind == WP_PROFILE_WAKE)
		wp_report_woken(r);
	if (r->kind == WP_PROFILE_HEAP)
		wp_report_leaks(r);
}

static void put_details(struct wp_report *r)
{
	if (r->total_ns) {
		wp_report_functions(r);
		wp_report_trees(r);
	}
	wp_report_title(r, "How it was recorded");
	wp_counters_lines(r->profile, r->kind, put_counter, r);
}

/* What to type next, for a process that is still there. */
static void put_next(struct wp_report *r)
{
	const struct wp_profile_meta *meta = &r->profile->meta;

	if (meta->was_read || !meta->pid ||
	    *wp_profile_str(r->profile, meta->target_end))
		return;
	wp_buf_printf(&r->name,
		      "next: wallprof dump %" PRId32 ", wallprof %" PRId32
		      " -d 30 -o out.html, wallprof top %" PRId32,
		      meta->pid, meta->pid, meta->pid);
	wp_buf_char(&r->out, '\n');
	wp_report_end(r, 0);
}

int wp_write_text(const struct wp_profile *profile, enum wp_profile_kind kind,
		  const struct wp_report_options *options, FILE *out)
{
	struct wp_report r = {
		.profile = profile,
		.kind = kind,
		.set = &profile->sets[kind],
		.options = options,
	};
	struct wp_buf summary = WP_BUF_INIT;
	int rc;

	r.is_of_bytes = kind == WP_PROFILE_HEAP;
	r.has_states = wp_columns_have_states(profile, kind);
	r.total_ns = wp_profile_total(profile, kind);
	put_summary(&r);
	/* On a terminal the end is what stays in sight. */
	if (options->width) {
		summary = r.out;
		r.out = (struct wp_buf)WP_BUF_INIT;
	}
	put_details(&r);
	if (options->width) {
		wp_buf_char(&r.out, '\n');
		wp_buf_add(&r.out, summary.data, summary.len);
		wp_report_fail(&r, summary.rc);
		wp_buf_clear(&summary);
		put_next(&r);
	}
	wp_report_fail(&r, r.name.rc);
	wp_buf_clear(&r.name);
	if (r.rc)
		wp_buf_clear(&r.out);
	rc = wp_buf_finish(&r.out, out);
	return r.rc ? r.rc : rc;
}
