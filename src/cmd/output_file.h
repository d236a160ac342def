/* SPDX-License-Identifier: Apache-2.0 */
/* output_file.h - an output file that appears complete or not at all.
 *
 * Layer: cmd.
 */
#ifndef WP_OUTPUT_FILE_H
#define WP_OUTPUT_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "wallprof/err.h"
#include "wallprof/output.h"

struct wp_output_file {
	/* NULL: closed. */
	FILE *stream;
	/* Final name, borrowed; NULL: standard output. */
	const char *path;
	/* Name until committed; "": PATH is written directly. */
	char temporary[PATH_MAX];
	/* PATH is a file of its own, to be cut to the length of what is
	 * written. */
	bool is_cut;
};

#define WP_OUTPUT_FILE_INIT                                                    \
	{                                                                      \
		NULL, NULL, "", false                                          \
	}

/* PATH stands for standard output: NULL, "-", or /dev/stdout and its like. */
bool wp_output_file_is_stdout(const char *path);

/* Several files cannot be made of PATH: a descriptor, or a device. */
bool wp_output_file_is_stream(const char *path);

/* Would a part of OUT stay behind, at a name, if wallprof ended now? */
bool wp_output_file_is_kept(const struct wp_output_file *out);

/* Open a temporary file beside PATH, readable by its owner only.  What no file
 * can take the place of is opened itself: a descriptor (wp_own_descriptor_find,
 * which is written at where it is), a device or fifo, what is mounted at PATH.
 * A signal handler may call wp_output_file_remove meanwhile.  0 or -errno with ERR. */
WP_MUST_CHECK
int wp_output_file_open(struct wp_output_file *ret, const char *path,
			struct wp_err *err);

/* Flush OUT and rename it to its path.  RC is the writer's result: if it, or
 * anything here, is an error, the temporary file is removed.  0 or -errno with
 * ERR. */
WP_MUST_CHECK
int wp_output_file_commit(struct wp_output_file *out, int rc,
			  struct wp_err *err);

/* Remove an uncommitted temporary file, in a signal handler before the end. */
void wp_output_file_remove(const struct wp_output_file *out);

/* Remove an uncommitted temporary file.  Idempotent. */
void wp_output_file_discard(struct wp_output_file *out);

/* How a report is written to PATH, as of wp_output_file_open: what standard output
 * is given has the columns of the terminal that it is, and colours, unless
 * NO_COLOR (no-color.org) or a dumb terminal forbids them. */
struct wp_report_options wp_output_file_style(const char *path, bool full);

#endif
