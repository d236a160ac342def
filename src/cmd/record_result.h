/* SPDX-License-Identifier: Apache-2.0 */
/* record_result.h - what comes of a recording: files, the report, a summary.
 *
 * Layer: cmd.
 */
#ifndef WP_RECORD_RESULT_H
#define WP_RECORD_RESULT_H

#include "options.h"
#include "profile_files.h"
#include "recorded.h"

struct wp_record_result {
	/* Borrowed. */
	const struct wp_options *options;
	struct wp_profile *profile;
	const struct wp_recorded *recorded;
	struct wp_profile_files files;
};

/* Name the functions, and write the files and the report.  0, or -errno with ERR. */
WP_MUST_CHECK
int wp_record_result_write(struct wp_record_result *result, struct wp_err *err);

/* Say what was recorded, and where it is. */
void wp_record_result_summarize(const struct wp_record_result *result);

/* The exit status. */
int wp_record_result_judge(const struct wp_record_result *result);

#endif
