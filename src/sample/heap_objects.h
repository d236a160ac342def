/* SPDX-License-Identifier: Apache-2.0 */
/* heap_objects.h - sampled objects that may be in use.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_HEAP_OBJECTS_H
#define WP_HEAP_OBJECTS_H

#include "wallprof/heap_probe.h"
#include "wallprof/index.h"
#include "wallprof/profile.h"

struct wp_heap_object {
	/* Of its record. */
	uint64_t id;
	uint64_t time_ns;
	/* Index of its sample in the profile, and its part of that. */
	uint32_t at;
	uint32_t count;
	uint64_t bytes;
	/* Of BYTES, as in the profile. */
	uint64_t variance;
	bool is_live;
};

struct wp_heap_objects {
	/* v[0..n), and an index of their ids; owned. */
	struct wp_heap_object *v;
	size_t n, cap;
	struct wp_index index;
	/* At so many, those are looked for that are freed; 0: at a first number. */
	size_t sweep_at;
	/* Left out for want of memory. */
	uint64_t ndropped;
};

/* Keep OBJECT; at times, forget those that PROBE says are freed.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_heap_objects_add(struct wp_heap_objects *objects,
			struct wp_heap_probe *probe,
			const struct wp_heap_object *object);

/* The allocation of object ID failed: it is taken out of SET, the profile's.  Returns its
 * bytes; 0: it is none of these. */
uint64_t wp_heap_objects_take_back(struct wp_heap_objects *objects,
				   struct wp_sample_set *set, uint64_t id);

/* The memory of all objects so far is gone, as by an exec. */
void wp_heap_objects_forget(struct wp_heap_objects *objects);

/* Enter into SET which objects of before UNTIL_NS are in use by PROBE.  0, or -errno:
 * it is not known. */
WP_MUST_CHECK
int wp_heap_objects_count(struct wp_heap_objects *objects,
			  struct wp_heap_probe *probe,
			  struct wp_sample_set *set, uint64_t until_ns);

void wp_heap_objects_clear(struct wp_heap_objects *objects);

#endif
