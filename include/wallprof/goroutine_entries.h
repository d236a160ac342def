/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_entries.h - the entries of a profile's threads that stand for
 * goroutines.
 *
 * Layer: profile.
 */
#ifndef WP_GOROUTINE_ENTRIES_H
#define WP_GOROUTINE_ENTRIES_H

#include "wallprof/index.h"
#include "wallprof/profile.h"

enum {
	WP_GOROUTINE_LABELS_MAX = 64,
	/* Sets of labels with an entry of their own, as labels can be told apart
	 * without end. */
	WP_GOROUTINE_ENTRIES_MAX = 4096,
};

/* What an entry stands for: all goroutines of which all of it is true. */
struct wp_goroutine_entry {
	enum wp_goroutine_part part;
	/* Index of processes[]. */
	uint32_t process;
	/* 0: not told apart. */
	uint64_t goroutine;
	/* String id of the entry's name; 0: it has its labels'. */
	uint32_t name;
	/* labels[0..nlabels), at most WP_GOROUTINE_LABELS_MAX; borrowed. */
	const struct wp_profile_label *labels;
	uint32_t nlabels;
	/* CLOCK_MONOTONIC: when it begins if it is new. */
	uint64_t first_ns;
};

struct wp_goroutine_entries {
	/* v[0..n), indices of the profile's threads, owned. */
	uint32_t *v;
	uint32_t n, cap;
	/* By what they stand for. */
	struct wp_index index;
	/* Of those, entries of one goroutine each. */
	uint32_t nown;
};

#define WP_GOROUTINE_ENTRIES_INIT                                              \
	{                                                                      \
		.index = WP_INDEX_INIT                                         \
	}

/* The entry of WHAT in PROFILE; UINT32_MAX: there is none. */
uint32_t wp_goroutine_entries_find(const struct wp_goroutine_entries *entries,
				   const struct wp_profile *profile,
				   const struct wp_goroutine_entry *what);

/* Find or add the entry of WHAT in PROFILE: its index, or UINT32_MAX when there is
 * no memory.  Past WP_GOROUTINE_ENTRIES_MAX it is that of all with other labels. */
uint32_t
wp_goroutine_entries_find_or_add(struct wp_goroutine_entries *entries,
				 struct wp_profile *profile,
				 const struct wp_goroutine_entry *what);

/* The name of entries of PART without labels. */
const char *wp_goroutine_part_name(enum wp_goroutine_part part);

/* ENTRY stands for one goroutine more. */
void wp_goroutine_entries_count(struct wp_profile *profile, uint32_t entry);

void wp_goroutine_entries_clear(struct wp_goroutine_entries *entries);

#endif
