/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - writers of a finished profile, and of a dump.
 *
 * Layer: output.  Read a profile whose locations have lines, or a dump whose
 * graph is built; change nothing.
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
	/* Of a dump only. */                                                  \
	X(JSON, "json")

enum wp_format {
#define X(name, text) WP_FORMAT_##name,
	WP_FORMATS(X)
#undef X
		WP_NFORMATS
};

struct wp_text_options {
	/* Show every node and function, not only what matters. */
	bool full;
	/* Columns to keep lines within; 0 for no limit. */
	unsigned int width;
};

/* Each writes PROFILE's samples of KIND to OUT, which is flushed and not closed.
 * Returns 0, -ENOMEM, or the -errno of a write that failed.
 *
 * pprof: gzip-compressed profile.proto (github.com/google/pprof,
 * proto/profile.proto).  folded: "thread;root;...;leaf MICROSECONDS" lines,
 * or the number of threads for a threads profile.
 * text: the report for a terminal; control characters in names are escaped.
 */
WP_MUST_CHECK
int wp_write_pprof(const struct wp_profile *profile, enum wp_profile_kind kind,
		   FILE *out);
WP_MUST_CHECK
int wp_write_folded(const struct wp_profile *profile, enum wp_profile_kind kind,
		    FILE *out);
WP_MUST_CHECK
int wp_write_text(const struct wp_profile *profile, enum wp_profile_kind kind,
		  const struct wp_text_options *options, FILE *out);

/* Write PROFILE's counters as lines of "name: value" text for people: the end of the
 * text report, the summary after a recording, and the profile's comment.  EACH
 * is called once per line, without newline. */
void wp_counters_lines(const struct wp_profile *profile,
		       enum wp_profile_kind kind,
		       void (*each)(void *ctx, const char *line), void *ctx);

struct wp_write_dump_options {
	/* Identical stacks once, with count and names. */
	bool group;
	/* Print the processes that waits led to as well. */
	bool peers;
};

/* Write DUMP for people: deadlocks first, then for each process its header, its
 * main thread and the rest.  Control characters are escaped.  0 or the -errno
 * of the stream, -ENOMEM. */
WP_MUST_CHECK
int wp_write_dump_text(const struct wp_dump *dump,
		       const struct wp_write_dump_options *options, FILE *out);

/* All of DUMP as JSON (schema: test/data/dump.schema.json), always valid
 * UTF-8. */
WP_MUST_CHECK
int wp_write_dump_json(const struct wp_dump *dump, FILE *out);

#endif
