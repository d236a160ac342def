/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c - see pace.h. */
#include "pace.h"

#include "wallprof/clock.h"

/* What is used is looked at over so much time, before anything is left out sooner. */
#define WINDOW_NS WP_NS_PER_S
#define FIRST_WINDOW_NS (200 * WP_NS_PER_MS)

/* A shorter stride is taken up if it leaves so much of what may be used. */
#define EASE 0.8

uint64_t wp_pace_stride(struct wp_pace *pace, uint64_t now_ns, uint64_t used_ns,
			double max_share, uint64_t most)
{
	uint64_t passed_ns = now_ns - pace->since_ns;
	uint64_t window_ns = pace->stride > 1 ? WINDOW_NS : FIRST_WINDOW_NS;
	double share, wanted;

	pace->stride += !pace->stride;
	if (max_share <= 0 || (pace->since_ns && passed_ns < window_ns))
		return pace->stride;
	if (pace->since_ns) {
		share = (double)(used_ns - pace->used_ns) / (double)passed_ns;
		wanted = (double)pace->stride * share / max_share;
		if (wanted > (double)most)
			wanted = (double)most;
		if (wanted > (double)pace->stride ||
		    wanted < EASE * (double)pace->stride)
			pace->stride = 1 + (uint64_t)wanted;
		if (pace->stride > most)
			pace->stride = most;
	}
	pace->since_ns = now_ns;
	pace->used_ns = used_ns;
	return pace->stride;
}
