/* SPDX-License-Identifier: Apache-2.0 */
/* pprof_timeline.c - see pprof_timeline.h. */
#include "pprof_timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "lanes.h"
#include "pprof_fields.h"
#include "proto.h"

enum { TIMELINE_VERSION = 1 };

static void put_lane(struct wp_buf *buf, const struct wp_lanes *lanes,
		     uint32_t thread, const uint32_t *number,
		     const uint32_t *number_of_thread)
{
	const struct wp_profile_sample *samples =
		lanes->profile->sets[WP_PROFILE_WALL].samples;
	uint32_t first = lanes->first[thread], end = lanes->first[thread + 1];

	wp_proto_varint(buf, wp_lanes_start_ns(lanes, thread));
	wp_proto_varint(buf, end - first);
	for (uint32_t i = first; i < end; i++) {
		struct wp_lane_row row = wp_lanes_row(lanes, thread, i);

		wp_proto_varint(buf,
				row.sample ? number[row.sample - samples] : 0);
		wp_proto_varint(buf, row.value);
		wp_proto_varint(
			buf, row.holder ? number_of_thread[row.holder - 1] : 0);
	}
}

void wp_pprof_put_timeline(struct wp_buf *buf, const struct wp_profile *profile,
			   const uint32_t *number)
{
	const struct wp_sample_set *set = &profile->sets[WP_PROFILE_WALL];
	uint32_t *of_thread = calloc((size_t)profile->nthreads + 1,
				     sizeof(*of_thread));
	struct wp_lanes lanes;
	int rc = wp_lanes_init(&lanes, profile, WP_PROFILE_WALL);
	size_t begin = wp_proto_begin(buf, PROFILE_WALLPROF_TIMELINE);

	if (!of_thread)
		rc = -ENOMEM;
	for (uint32_t i = 0; i < set->nsamples && !rc; i++)
		if (number[i])
			of_thread[set->samples[i].key.thread] = number[i];
	wp_proto_varint(buf, TIMELINE_VERSION);
	for (uint32_t i = 0; i < profile->nthreads && !rc; i++)
		if (lanes.timed[i])
			put_lane(buf, &lanes, i, number, of_thread);
	wp_proto_end(buf, begin);
	wp_lanes_clear(&lanes);
	free(of_thread);
	if (rc)
		buf->rc = rc;
}
