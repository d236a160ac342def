/* SPDX-License-Identifier: Apache-2.0 */
/* firefox.h - a file for the Firefox Profiler that is being written. */
#ifndef WP_FIREFOX_H
#define WP_FIREFOX_H

#include "buf.h"
#include "call_nodes.h"
#include "lanes.h"

/* Category 0 is "Other"; those of category.h follow. */
enum { WP_FIREFOX_CATEGORY = 1 };

struct wp_firefox {
	const struct wp_profile *profile;
	struct wp_lanes lanes;
	struct wp_call_nodes nodes;
	/* (node, category) and (frame, category): stacks and frames of the file
	 * behind those of the nodes. */
	struct wp_pairs leaves;
	struct wp_pairs leaf_frames;
	/* Strings of the file: "", the categories' names, then those of frames
	 * and their files, whose ids are in these arrays; owned. */
	struct wp_intern strings;
	uint32_t *frame_name;
	uint32_t *frame_file;
	/* What is not written yet. */
	struct wp_buf out;
	FILE *file;
	/* The array that was begun has an element. */
	bool comma;
};

/* Begin the array NAME; BEFORE stands before it.  Then wp_firefox_next before each
 * element that is not put by a function here. */
void wp_firefox_begin(struct wp_firefox *f, const char *before,
		      const char *name);
void wp_firefox_next(struct wp_firefox *f);
void wp_firefox_end(struct wp_firefox *f);

void wp_firefox_uint(struct wp_firefox *f, uint64_t n);
/* NS as milliseconds, to the nanosecond. */
void wp_firefox_ms(struct wp_firefox *f, uint64_t ns);

/* The stack of KEY, which may be NULL; UINT32_MAX: none. */
uint32_t wp_firefox_stack(struct wp_firefox *f,
			  const struct wp_sample_key *key);

/* Put thread THREAD. */
void wp_firefox_thread(struct wp_firefox *f, uint32_t thread);

#endif
