/* SPDX-License-Identifier: Apache-2.0 */
/* exe_name.h - the name that a program was started by.
 *
 * Layer: symbolize.
 */
#ifndef WP_EXE_NAME_H
#define WP_EXE_NAME_H

#include "wallprof/process.h"
#include "wallprof/profile.h"

/* Give the mappings of PROCESS's executable, and the profile's executable, the path of
 * the link that leads to it, where the process bears the link's name and not the file's:
 * /usr/bin/redis-server, not redis-check-rdb, which is the same file.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_exe_name_set(struct wp_profile *profile,
		    const struct wp_process *process);

#endif
