/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - what a recording of many processes says of them in numbers, by their names.
 *
 * Layer: cmd.
 *
 * The names are bounded, whatever the processes call themselves: further ones share the
 * last part.  The recorder tells the server of a mark when all of it is added.
 */
#ifndef WP_PARTS_H
#define WP_PARTS_H

#include "recording.h"

enum { WP_PARTS_MAX = 64 };

struct wp_digest_thread;

/* The processes of one name. */
struct wp_part {
	/* "": there are none. */
	char name[WP_SERVE_NAME_SIZE];
	/* In the last mark: processes, threads by what they did most, and for how long
	 * one has been in its wait. */
	uint32_t processes;
	uint32_t threads[WP_NSTATES];
	uint64_t longest_wait_ns;
	/* Thread time since the part began, and when there was some last. */
	uint64_t ns[WP_NSTATES][WP_NWAITS];
	uint64_t seen_ns;
};

/* What the recorder tells the server, in memory that both have. */
struct wp_parts_told {
	/* How many marks were told: v[n % 2] is the last.  The other is written
	 * meanwhile, so that one who is killed or stopped leaves a whole one. */
	uint32_t n;
	struct wp_part v[2][WP_PARTS_MAX];
};

struct wp_parts {
	struct wp_parts_told *told;
	struct wp_part v[WP_PARTS_MAX];
	/* Of each the time that its NS are the most of. */
	int64_t sums[WP_PARTS_MAX][WP_NSTATES][WP_NWAITS];
	/* By the profile's processes: the part of each in the last mark, and the threads
	 * that were counted in it; owned. */
	uint8_t *of;
	uint32_t *counted;
	size_t n, cap_of, cap_counted;
};

/* TOLD are counters: time that is taken back, as it was another's, does not make them
 * fall.  Where SUMS, time by the end of a mark, are more than TOLD, make TOLD so. */
void wp_parts_raise(uint64_t told[WP_NSTATES][WP_NWAITS],
		    int64_t sums[WP_NSTATES][WP_NWAITS]);

/* Go on with what TOLD has. */
void wp_parts_init(struct wp_parts *parts, struct wp_parts_told *told);

/* Begin a mark of PROFILE that ends at NOW_NS: nothing is known of its threads.  A name
 * that has not been met for KEEP_NS makes room for others.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_parts_begin(struct wp_parts *parts, const struct wp_profile *profile,
		   uint64_t now_ns, uint64_t keep_ns);

/* NS is time of an entry of PROFILE in KEY's state and wait; less than 0 is taken back.
 */
void wp_parts_add(struct wp_parts *parts, const struct wp_profile *profile,
		  const struct wp_sample_key *key, int64_t ns, uint64_t now_ns);

/* N threads that share THREAD, with time in the mark, were in STATE most of it, and one
 * has waited for WAIT_NS.  Of processes that share an entry no more than these have
 * threads are counted. */
void wp_parts_count(struct wp_parts *parts, const struct wp_profile *profile,
		    uint32_t thread, uint32_t n, enum wp_state state,
		    uint64_t wait_ns);

/* All of the mark is added: tell it. */
void wp_parts_end(struct wp_parts *parts);

/* Copy the last mark that was told to V[0..WP_PARTS_MAX). */
void wp_parts_read(const struct wp_parts_told *told, struct wp_part *v);

#endif
