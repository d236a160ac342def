/* options.h - the command line.
 *
 * Layer: main.
 */
#ifndef WP_OPTIONS_H
#define WP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/output.h"
#include "wallprof/sampler.h"

enum wp_action {
	WP_ACTION_RECORD,
	WP_ACTION_HELP,
	WP_ACTION_VERSION,
};

struct wp_options {
	enum wp_action action;
	/* 0 when COMMAND is given. */
	pid_t pid;
	/* NULL-ended, borrowed from argv; NULL when PID is given. */
	char **command;
	/* 0: until the target ends or Ctrl-C. */
	uint64_t duration_ns;
	/* NULL: the text report on standard output; "-": standard output. */
	const char *output;
	enum wp_format format;
	/* The text report too, on standard output, beside OUTPUT. */
	bool report;
	/* Whole tree in the text report. */
	bool full;
	bool quiet;
	bool verbose;
	struct wp_sampler_options sampler;
};

/* Read ARGV into *RET.  0, or -EINVAL with ERR saying what is wrong. */
WP_MUST_CHECK
int wp_options_parse(struct wp_options *ret, int argc, char **argv,
		     struct wp_err *err);

/* The text of --help. */
extern const char wp_options_help[];

#endif
