/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - write a profile or a dump.
 *
 * Layer: output.  The profile's locations have lines, the dump's graph is built;
 * neither is changed.
 */
#ifndef WP_OUTPUT_H
#define WP_OUTPUT_H

#include <stdio.h>

#include "wallprof/dump.h"
#include "wallprof/err.h"
#include "wallprof/profile.h"

#define WP_FORMATS(X)                                                          \
	X(PPROF, "pprof")                                                      \
	X(FOLDED, "folded")                                                    \
	X(TEXT, "text")                                                        \
	X(HTML, "html")                                                        \
	X(SPEEDSCOPE, "speedscope")                                            \
	X(FIREFOX, "firefox")                                                  \
	X(SVG, "svg")                                                          \
	/* Only for a dump; the second as Go's own traceback. */               \
	X(JSON, "json")                                                        \
	X(GO, "go")

enum wp_format {
#define X(name, text) WP_FORMAT_##name,
	WP_FORMATS(X)
#undef X
		WP_NFORMATS
};

/* Does FORMAT show what happened when? */
static inline bool wp_format_shows_time(enum wp_format format)
{
	return format == WP_FORMAT_HTML || format == WP_FORMAT_SPEEDSCOPE ||
	       format == WP_FORMAT_FIREFOX;
}

struct wp_report_options {
	/* Show every node and function, however small. */
	bool full;
	/* Most columns of a line; 0: no limit, it is for no terminal. */
	unsigned int width;
	/* States have the colours that top gives them. */
	bool colour;
};

/* Each writes PROFILE's samples of KIND to OUT, which is flushed and not closed.
 * Returns 0, -ENOMEM, or the -errno of a write that failed.
 *
 * pprof: profile.proto (github.com/google/pprof, proto/profile.proto), compressed
 * by gzip.  folded: lines "thread;root;...;leaf MICROSECONDS", where values are no
 * times with a number of threads or bytes.  html: a page with the timeline, if one was
 * kept, and a flame graph.  speedscope, firefox: JSON of these viewers, each thread by
 * time as far as the timeline has it; firefox only of values that are times.  svg: a
 * flame graph.  text: the report for a terminal.
 */
WP_MUST_CHECK
int wp_write_pprof(const struct wp_profile *profile, enum wp_profile_kind kind,
		   FILE *out);
WP_MUST_CHECK
int wp_write_folded(const struct wp_profile *profile, enum wp_profile_kind kind,
		    FILE *out);
WP_MUST_CHECK
int wp_write_html(const struct wp_profile *profile, enum wp_profile_kind kind,
		  FILE *out);
WP_MUST_CHECK
int wp_write_speedscope(const struct wp_profile *profile,
			enum wp_profile_kind kind, FILE *out);
WP_MUST_CHECK
int wp_write_firefox(const struct wp_profile *profile,
		     enum wp_profile_kind kind, FILE *out);
WP_MUST_CHECK
int wp_write_svg(const struct wp_profile *profile, enum wp_profile_kind kind,
		 FILE *out);
WP_MUST_CHECK
int wp_write_text(const struct wp_profile *profile, enum wp_profile_kind kind,
		  const struct wp_report_options *options, FILE *out);

/* The same in any FORMAT but JSON; OPTIONS are those of text. */
WP_MUST_CHECK
int wp_write_profile(const struct wp_profile *profile,
		     enum wp_profile_kind kind, enum wp_format format,
		     const struct wp_report_options *options, FILE *out);

/* Have BEFORE's and AFTER's samples, of the kinds that were read (meta.read_kind), values
 * of one type and unit?  0; -EINVAL: not,
 * and there is no difference of them; ERR names both. */
WP_MUST_CHECK
int wp_diff_check(const struct wp_profile *before,
		  const struct wp_profile *after, struct wp_err *err);

/* Write what changed from BEFORE to AFTER, which are alike (wp_diff_check), each per
 * second of its recording if its values grow with that and both say how long it was:
 * a table of functions (all of them if FULL), or a page. */
WP_MUST_CHECK
int wp_write_diff(const struct wp_profile *before,
		  const struct wp_profile *after, bool full, FILE *out);
WP_MUST_CHECK
int wp_write_html_diff(const struct wp_profile *before,
		       const struct wp_profile *after, FILE *out);

/* Add to PROFILE, which is empty, what the pprof file DATA[0..n) has, whoever wrote
 * it, packed by gzip or not: its default sample type, else the last; our timeline.
 * The samples are of kind meta.read_kind.
 * 0; -EBADMSG: it is malformed; -EOVERFLOW: it is too large; -ENOMEM; ERR says
 * more. */
WP_MUST_CHECK
int wp_pprof_read(struct wp_profile *profile, const void *data, size_t n,
		  struct wp_err *err);

/* Set LINE to what PROFILE's samples of KIND add up to: "5 threads, 1000 samples,
 * 10 s of thread time". */
void wp_report_sums(const struct wp_profile *profile, enum wp_profile_kind kind,
		    char *line, size_t size);

/* Once functions have names: set LINE to where most of the time of PROFILE's samples of
 * KIND went, idle threads left out: "62.1 % waiting: lock at work (demo.c)", "" if
 * there is none.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_report_most(const struct wp_profile *profile, enum wp_profile_kind kind,
		   char *line, size_t size);

/* Once functions have names: mark the threads of PROFILE that waited at one place in
 * their outermost loop all the time, unless all did.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_idle_mark(struct wp_profile *profile);

/* Did PROFILE's threads wait for children for more than half of their time?  Then set
 * TEXT to a sentence that says for which most, "99 % of the time this process waited
 * for child 4711 (git repack): ...". */
bool wp_child_hint(const struct wp_profile *profile, char *text, size_t size);

/* Call EACH for every line of PROFILE's counters as text, "name: value, value", without
 * newline: for the end of the text report, the summary after a recording and the comments
 * of a pprof file.  What takes more than 511 bytes has several lines of its name. */
void wp_counters_lines(const struct wp_profile *profile,
		       enum wp_profile_kind kind,
		       void (*each)(void *ctx, const char *line), void *ctx);

struct wp_write_dump_options {
	/* Print threads with equal stacks and waits once, with their names. */
	bool group;
	/* Print peers too. */
	bool peers;
};

/* Write DUMP as text: deadlocks first, then each process with its header, its main
 * thread and the others.  0, -ENOMEM, or the -errno of a write that failed. */
WP_MUST_CHECK
int wp_write_dump_text(const struct wp_dump *dump,
		       const struct wp_write_dump_options *options, FILE *out);

/* Write DUMP as JSON (test/data/dump.schema.json), in ASCII.  Returns as
 * above. */
WP_MUST_CHECK
int wp_write_dump_json(const struct wp_dump *dump, FILE *out);

/* Write the goroutines of DUMP's first process as Go's runtime prints them in a
 * traceback of all (goroutine?debug=2), without arguments and without those that
 * only the runtime's functions are in.  Returns as above. */
WP_MUST_CHECK
int wp_write_dump_go(const struct wp_dump *dump, FILE *out);

#endif
