/* SPDX-License-Identifier: Apache-2.0 */
/* output_file.h - a result file that is there whole or not at all.
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
	/* Where to write; NULL when closed. */
	FILE *stream;
	/* Final name, borrowed; NULL for standard output. */
	const char *path;
	/* Name while it is being written, "" when PATH is written directly. */
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

/* Open a file beside PATH (NULL or "-": standard output; a device or fifo: the
 * thing itself), readable by its owner only.  0 or -errno with ERR. */
WP_MUST_CHECK
int wp_output_file_open(struct wp_output_file *ret, const char *path,
			struct wp_err *err);

/* Write it out and give it its name.  RC is what the writer returned; if that
 * or anything here fails, nothing is left under PATH.  0 or -errno with ERR. */
WP_MUST_CHECK
int wp_output_file_commit(struct wp_output_file *out, int rc,
			  struct wp_err *err);

/* Remove what was not committed.  Idempotent. */
void wp_output_file_discard(struct wp_output_file *out);

#endif
