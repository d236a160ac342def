/* SPDX-License-Identifier: Apache-2.0 */
/* profile_files.h - the output files of a recording, one per kind of profile.
 *
 * Layer: cmd.
 */
#ifndef WP_PROFILE_FILES_H
#define WP_PROFILE_FILES_H

#include "output_file.h"
#include "wallprof/profile.h"

/* Threads and goroutines are of a dump, which is one file. */
enum { WP_PROFILE_FILES_MAX = WP_NPROFILE_KINDS - 2 };

struct wp_profile_files {
	struct {
		enum wp_profile_kind kind;
		struct wp_output_file file;
		char path[PATH_MAX];
	} v[WP_PROFILE_FILES_MAX];
	size_t n;
};

/* Open a file for each kind in KINDS (bits 1 << kind; not of threads, goroutines).
 * A single kind, and wall among several, goes to PATH, the others to PATH with
 * their name in it: "out.pb.gz", "out.block.pb.gz".  If PATH is a stream (NULL,
 * "-", a device) it gets all kinds, one after another.  0 or -errno with ERR; the caller discards
 * in both cases. */
WP_MUST_CHECK
int wp_profile_files_open(struct wp_profile_files *set, unsigned int kinds,
			  const char *path, struct wp_err *err);

/* Call WRITE for each kind, and give each file its name once it is written, up
 * to the first error.  0 or -errno with ERR. */
WP_MUST_CHECK
int wp_profile_files_write(struct wp_profile_files *set,
			   int (*write)(void *ctx, enum wp_profile_kind kind,
					FILE *out),
			   void *ctx, struct wp_err *err);

/* Remove those of SET, a struct wp_profile_files, in a signal handler before the end. */
void wp_profile_files_remove(const void *set);

/* Remove the files that were not written.  Idempotent. */
void wp_profile_files_discard(struct wp_profile_files *set);

#endif
