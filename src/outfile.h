/* outfile.h - a result file that is there whole or not at all.
 *
 * Layer: main.
 */
#ifndef WP_OUTFILE_H
#define WP_OUTFILE_H

#include <limits.h>
#include <stdio.h>

#include "wallprof/err.h"

struct wp_outfile {
	/* Where to write; NULL when closed. */
	FILE *stream;
	/* Final name, borrowed; NULL for standard output. */
	const char *path;
	/* Name while it is being written, "" when PATH is written directly. */
	char temporary[PATH_MAX];
};

#define WP_OUTFILE_INIT { NULL, NULL, "" }

/* Open a file beside PATH (NULL or "-": standard output; a device or fifo: the
 * thing itself), readable by its owner only.  0 or -errno with ERR. */
WP_MUST_CHECK
int wp_outfile_open(struct wp_outfile *ret, const char *path,
		    struct wp_err *err);

/* Write it out and give it its name.  RC is what the writer returned; if that
 * or anything here fails, nothing is left under PATH.  0 or -errno with ERR. */
WP_MUST_CHECK
int wp_outfile_commit(struct wp_outfile *out, int rc, struct wp_err *err);

/* Remove what was not committed.  Idempotent. */
void wp_outfile_discard(struct wp_outfile *out);

#endif
