/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c - see pace.h. */
#include "pace.h"

#include "wallprof/clock.h"

/* What is used is looked at over so much time, before anything is left out sooner. */
#define WINDOW_NS WP_NS_PER_S
#define FIRST_WINDOW_NS (200 * WP_NS_PER_MS)

/* A mean that is nearer to 1 is not told from it. */
#define ALL 1.01

/* Set the mean by what was used, and how, since the last time. */
static void look(struct wp_pace *pace, uint64_t now_ns, uint64_t used_ns,
		 double max_share, double most)
{
	double share = (double)(used_ns - pace->used_ns) /
		       (double)(now_ns - pace->since_ns);
	double mean = pace->mean * share / max_share;

	/* Half of the way down: one cheap second is no proof. */
	if (mean < pace->mean)
		mean = (mean + pace->mean) / 2;
	pace->mean = mean < ALL ? 1 : mean < most ? mean : most;
}

uint64_t wp_pace_stride(struct wp_pace *pace, uint64_t now_ns, uint64_t used_ns,
			double max_share, uint64_t most)
{
	uint64_t window_ns = pace->mean > 1 ? WINDOW_NS : FIRST_WINDOW_NS;
	uint64_t stride;

	if (!pace->since_ns || now_ns - pace->since_ns >= window_ns) {
		if (!pace->since_ns)
			pace->mean = 1;
		else if (max_share > 0)
			look(pace, now_ns, used_ns, max_share, (double)most);
		pace->since_ns = now_ns;
		pace->used_ns = used_ns;
	}
	pace->left += pace->mean;
	stride = (uint64_t)pace->left;
	pace->left -= (double)stride;
	return stride;
}
