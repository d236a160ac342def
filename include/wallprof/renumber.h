/* SPDX-License-Identifier: Apache-2.0 */
/* renumber.h - drop from a profile that grows what nothing refers to any more.
 *
 * Layer: profile.
 *
 * All that keep indices into the profile pass each of them to wp_renumber_ref twice: first
 * to say that the entry stays; then, after wp_renumber_apply has dropped the others,
 * to have the index replaced by the new one.  What the entries themselves refer to
 * stays without being asked for.
 */
#ifndef WP_RENUMBER_H
#define WP_RENUMBER_H

#include "wallprof/err.h"
#include "wallprof/profile.h"

/* What an index is of. */
enum wp_ref {
	WP_REF_STRING,
	WP_REF_MAPPING,
	WP_REF_THREAD,
	WP_REF_PROCESS,
	WP_REF_STACK,
	WP_REF_FRAME,
	/* + enum wp_profile_kind: a sample of that kind. */
	WP_REF_SAMPLE,
	WP_NREFS = WP_REF_SAMPLE + WP_NPROFILE_KINDS
};

struct wp_renumber {
	/* to[ref][0..n[ref]), owned: 0: the entry goes; else it stays, and once
	 * IS_NUMBERED its new index plus 1. */
	uint32_t *to[WP_NREFS];
	uint32_t n[WP_NREFS];
	/* The entries have their new indices. */
	bool is_numbered;
	/* is_idle[0..n[WP_REF_MAPPING]), owned: nothing refers to the mapping, which
	 * stays since most others do: its file may go. */
	bool *is_idle;
};

/* What the entries of PROFILE take, in bytes. */
uint64_t wp_renumber_size(const struct wp_profile *profile);

/* 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_renumber_begin(struct wp_renumber *renumber,
		      const struct wp_profile *profile);
void wp_renumber_clear(struct wp_renumber *renumber);

/* The entry *INDEX of REF stays; or *INDEX is set to its new index, UINT32_MAX: it has
 * gone.  An index of no entry stays as it is. */
void wp_renumber_ref(struct wp_renumber *renumber, enum wp_ref ref,
		     uint32_t *index);

/* The same for all that KEY, of a sample of KIND, refers to. */
void wp_renumber_key(struct wp_renumber *renumber, enum wp_profile_kind kind,
		     struct wp_sample_key *key);

/* Does entry INDEX of REF stay? */
bool wp_renumber_stays(const struct wp_renumber *renumber, enum wp_ref ref,
		       uint32_t index);

/* Drop all of PROFILE that was not said to stay and that its timeline does not refer to;
 * give what it took back to the budget.  The profile has no locations.  0; -ENOMEM, and
 * nothing is dropped. */
WP_MUST_CHECK
int wp_renumber_apply(struct wp_renumber *renumber, struct wp_profile *profile);

#endif
