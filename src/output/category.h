/* SPDX-License-Identifier: Apache-2.0 */
/* category.h - what viewers colour and filter by: a state, of waits the reason. */
#ifndef WP_CATEGORY_H
#define WP_CATEGORY_H

#include "buf.h"
#include "wallprof/profile.h"

/* Numbers of states, and behind them those of wait reasons. */
enum { WP_NCATEGORIES = WP_NSTATES + WP_NWAITS };

static inline unsigned int wp_category_of(const struct wp_sample_key *key)
{
	return key->state == WP_STATE_WAITING ? WP_NSTATES + key->wait :
						key->state;
}

/* Add its name: "running", "waiting: lock", "waiting" for an unknown reason. */
void wp_category_name(struct wp_buf *buf, unsigned int category);
/* A colour of the Firefox Profiler ("green"), and one of CSS ("#7dc98f"). */
const char *wp_category_firefox(unsigned int category);
const char *wp_category_css(unsigned int category);

#endif
