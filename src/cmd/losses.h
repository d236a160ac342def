/* SPDX-License-Identifier: Apache-2.0 */
/* losses.h - is so much missing that a profile may mislead?
 *
 * Layer: cmd.
 */
#ifndef WP_LOSSES_H
#define WP_LOSSES_H

#include "options.h"
#include "wallprof/profile.h"

/* Room for what is missing. */
enum { WP_LOSSES_TEXT = 256 };

/* Is over a tenth of the wall time, of the CPU time (and as much of it as three
 * sampling intervals), or of what another kind of
 * OPTIONS->kinds measures, without a whole stack; were more ticks missed than
 * made, or over a tenth of the samples; have functions no name?  Stacks that
 * OPTIONS exclude are no loss.
 *
 * TEXT is set to the first of these ("64 % of CPU time has no whole stack"), or
 * to "". */
bool wp_losses_find(const struct wp_profile *profile,
		    const struct wp_options *options,
		    char text[WP_LOSSES_TEXT]);

#endif
