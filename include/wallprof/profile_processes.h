/* SPDX-License-Identifier: Apache-2.0 */
/* profile_processes.h - the processes of a profile of many.
 *
 * Layer: profile.
 */
#ifndef WP_PROFILE_PROCESSES_H
#define WP_PROFILE_PROCESSES_H

#include "wallprof/profile.h"

/* Add process PID, called NAME; from MOST entries on (0: no limit) the entry that
 * all further processes called NAME share, and beyond WP_SHARED_NAMES names one for
 * all others.  Its index, or UINT32_MAX when there is no memory. */
uint32_t wp_profile_share_process(struct wp_profile *profile, int32_t pid,
				  const char *name, uint32_t most);

/* Drop all samples of the process with INDEX, and of those that share its entry. */
void wp_profile_forget_process(struct wp_profile *profile, uint32_t index);

/* Drop all samples but those of the processes whose STAYS[index] holds. */
void wp_profile_keep_processes(struct wp_profile *profile, const bool *stays);

#endif
