/* SPDX-License-Identifier: Apache-2.0 */
/* common.h - what targets that share a profile have in common.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_COMMON_H
#define WP_COMMON_H

#include "heap_sums.h"
#include "modules.h"
#include "pause.h"

struct wp_block_waits;
struct wp_sampler;
struct wp_start_events;

struct wp_common {
	/* Borrowed. */
	struct wp_profile *profile;
	struct wp_modules modules;
	/* Durations of all stops, and their budget. */
	struct wp_pauses pauses;
	/* How many strings the profile began with: "" and the names of calls. */
	uint32_t ncalls;
	/* Distinct wait objects in the profile's strings. */
	uint32_t nobjects;
	/* Names in the profile's strings that threads and processes took after their
	 * first. */
	uint32_t nnames;
	/* When the first target began, and when the last tick of any began; 0: none
	 * has. */
	uint64_t start_ns;
	uint64_t last_tick_ns;
	/* Our own CPU time at START_NS. */
	uint64_t start_cpu_ns;
	/* Number of the loop's tick that was counted last. */
	uint64_t tick;
	/* NULL when they are not asked for; owned. */
	struct wp_block_waits *block_waits;
	struct wp_start_events *start_events;
	struct wp_heap_sums heap;
	/* Targets have found what can be recorded of running threads. */
	bool wants_running;
};

/* What the targets of LOOP with PROFILE share, made if there is none; NULL without
 * memory. */
struct wp_common *wp_common_find_or_add(struct wp_sampler *loop,
					struct wp_profile *profile);

/* A target begins at NOW_NS: with the first one, describe the recording. */
void wp_common_begin(struct wp_common *common, const struct wp_sampler *loop,
		     uint64_t now_ns);

/* The string id of NAME, which a thread or process takes instead of string WAS (0: it had
 * none); WAS: it is new and there are too many already, or no memory. */
uint32_t wp_common_rename(struct wp_common *common, uint32_t was,
			  const char *name);

/* All targets have been finished: divide what is divided over the whole profile. */
void wp_common_finish(struct wp_common *common, const struct wp_sampler *loop);

/* Fill the counters and figures of the profile that are known at the end. */
void wp_common_fill_counters(struct wp_common *common,
			     const struct wp_sampler *loop);

/* Accepts NULL. */
void wp_common_free(struct wp_common *common);

#endif
