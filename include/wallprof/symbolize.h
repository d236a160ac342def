/* SPDX-License-Identifier: Apache-2.0 */
/* symbolize.h - names for a recorded profile.
 *
 * Layer: symbolize.
 */
#ifndef WP_SYMBOLIZE_H
#define WP_SYMBOLIZE_H

#include <signal.h>

#include "wallprof/process.h"
#include "wallprof/profile.h"
#include "wallprof/sampler.h"

/* Turn the stacks of PROFILE into locations with lines, and sharpen wait
 * reasons by what the stacks say.  Names are looked for in the modules that
 * SAMPLER knows and under the root directory of PROCESS, by a process that can
 * do nothing else (namer.h).  What it fails to name gets module and offset and
 * is counted as unnamed, with the reason in PROFILE->meta.  Once *HURRY is over
 * 1, the rest gets no better names, either.
 *
 * Returns 0 or -ENOMEM.
 */
WP_MUST_CHECK
int wp_symbolize(struct wp_profile *profile, struct wp_sampler *sampler,
		 const struct wp_process *process,
		 const volatile sig_atomic_t *hurry);

#endif
