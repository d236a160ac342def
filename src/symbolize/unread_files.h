/* SPDX-License-Identifier: Apache-2.0 */
/* unread_files.h - mapped files of which names or lines were not read.
 *
 * Layer: symbolize.
 */
#ifndef WP_UNREAD_FILES_H
#define WP_UNREAD_FILES_H

#include "wallprof/profile.h"

/* Set the counters files_unopened and files_lineless of PROFILE, whose addresses have
 * their names, and meta.lineless_why.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_unread_files_count(struct wp_profile *profile);

#endif
