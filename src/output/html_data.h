/* SPDX-License-Identifier: Apache-2.0 */
/* html_data.h - a profile as the data of a page.
 *
 * One line of JSON (html/model.js reads it: "decode"), then unsigned LEB128
 * numbers: for each node the distance to its caller's (its own index + 1 for a
 * root) and its frame; for each deed, the most frequent first, its stack (node + 1; 0:
 * none) and its kind + 1 (0: not watched); for each thread its rows' deeds, the low
 * seven bits of all first, then their values in units of "quantum".  At the end, for
 * each thread, stacks (node + 1) and the waits of them that are known exactly; of a heap
 * profile the variance of their bytes, in bytes * "bytes_per_sample".
 */
#ifndef WP_HTML_DATA_H
#define WP_HTML_DATA_H

#include "buf.h"
#include "wallprof/profile.h"

/* Add the data of PROFILE's samples of KIND to OUT.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_html_data_write(const struct wp_profile *profile,
		       enum wp_profile_kind kind, struct wp_buf *out);

#endif
