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
#include <string.h>

#include "wallprof/err.h"

struct wp_output_file {
	/* NULL: closed. */
	FILE *stream;
	/* Final name, borrowed; NULL: standard output. */
	const char *path;
	/* Name until committed; "": PATH is written directly. */
	char temporary[PATH_MAX];
};

#define WP_OUTPUT_FILE_INIT                                                    \
	{                                                                      \
		NULL, NULL, ""                                                 \
	}

/* PATH stands for standard output: NULL or "-". */
static inline bool wp_output_file_is_stdout(const char *path)
{
	return !path || !strcmp(path, "-");
}

/* Several files cannot be made of PATH: standard output, or a device. */
static inline bool wp_output_file_is_stream(const char *path)
{
	return wp_output_file_is_stdout(path) || !strncmp(path, "/dev/", 5);
}

/* Open a temporary file beside PATH, readable by its owner only; if PATH is a
 * device or fifo, PATH itself, or standard output.  0 or -errno with ERR. */
WP_MUST_CHECK
int wp_output_file_open(struct wp_output_file *ret, const char *path,
			struct wp_err *err);

/* Flush OUT and rename it to its path.  RC is the writer's result: if it, or
 * anything here, is an error, the temporary file is removed.  0 or -errno with
 * ERR. */
WP_MUST_CHECK
int wp_output_file_commit(struct wp_output_file *out, int rc,
			  struct wp_err *err);

/* Remove an uncommitted temporary file.  Idempotent. */
void wp_output_file_discard(struct wp_output_file *out);

#endif
