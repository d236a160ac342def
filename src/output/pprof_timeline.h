/* SPDX-License-Identifier: Apache-2.0 */
/* pprof_timeline.h - the timeline as a field of a pprof file. */
#ifndef WP_PPROF_TIMELINE_H
#define WP_PPROF_TIMELINE_H

#include "buf.h"
#include "wallprof/profile.h"

/* Add PROFILE's timeline to BUF as the field PROFILE_WALLPROF_TIMELINE (see
 * pprof_fields.h).  NUMBER says by sample of WALL which one it is in the file, from 1;
 * 0: it is not there. */
void wp_pprof_put_timeline(struct wp_buf *buf, const struct wp_profile *profile,
			   const uint32_t *number);

#endif
