/* SPDX-License-Identifier: Apache-2.0 */
/* forget.h - a recording that goes on for days takes no more memory than its last
 * minutes need.
 *
 * Layer: cmd.
 */
#ifndef WP_FORGET_H
#define WP_FORGET_H

#include "digest.h"
#include "recording.h"

struct wp_forget {
	/* When stacks, threads and samples were dropped last, the size of what was
	 * left, and the losses for want of memory until then. */
	uint64_t at_ns;
	uint64_t kept;
	uint64_t losses;
};

/* Is it time, at NOW_NS, to look what of R's profile is not needed any more?  So seldom
 * that it costs little, so often that memory does not grow and that files of programs
 * that have ended do not stay open. */
bool wp_forget_is_due(const struct wp_forget *forget,
		      const struct wp_recording *r, uint64_t now_ns);

/* Between ticks, right after a mark: drop from R's profile what neither a mark nor the
 * sampler refers to, and close the files that are of no mapping then.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_forget_old(struct wp_forget *forget, struct wp_recording *r,
		  struct wp_digest *digest);

#endif
