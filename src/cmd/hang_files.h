/* SPDX-License-Identifier: Apache-2.0 */
/* hang_files.h - what is kept of a process that hangs.
 *
 * Layer: cmd.
 */
#ifndef WP_HANG_FILES_H
#define WP_HANG_FILES_H

#include "recording.h"

/* Most hangs of which files are kept in a directory, three each. */
enum { WP_HANG_FILES_MAX = 32 };

/* Remove the oldest files in DIR that were kept of hangs, until MOST are left. */
void wp_hang_files_prune(int dir, size_t most);

/* In a process of its own: write JOB's reason and dump, the page and the profile of
 * JOB's time to the directory of --on-hang.  RET has the names, or why not. */
void wp_hang_files_write(struct wp_recording *r,
			 const struct wp_recording_job *job,
			 struct wp_serve_answer *ret);

#endif
