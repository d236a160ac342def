/* SPDX-License-Identifier: Apache-2.0 */
/* push_confine.h - what the process that talks to the collector gives up.
 *
 * Layer: serve.  Private to src/serve/.
 */
#ifndef WP_PUSH_CONFINE_H
#define WP_PUSH_CONFINE_H

#include <sys/types.h>

#include "wallprof/err.h"

/* Give up for good: all capabilities, root's user id, and where the kernel has Landlock all
 * rights over processes outside, all writing of files, and all reading but of what
 * names and certificates take.  It ends with PARENT.  0 or -errno. */
WP_MUST_CHECK
int wp_push_confine(pid_t parent);

#endif
