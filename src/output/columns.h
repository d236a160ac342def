/* SPDX-License-Identifier: Apache-2.0 */
/* columns.h - the values that a sample of each kind of profile has in pprof. */
#ifndef WP_COLUMNS_H
#define WP_COLUMNS_H

#include "wallprof/profile.h"

struct wp_column {
	/* As pprof names them: "wall", "nanoseconds". */
	const char *type;
	const char *unit;
	/* Offset of its uint64_t in struct wp_profile_sample. */
	size_t off;
};

struct wp_columns {
	/* v[0..n), static. */
	const struct wp_column *v;
	unsigned int n;
	/* Which of them is shown by default, and which the period is of. */
	unsigned int main;
	unsigned int period;
};

struct wp_columns wp_columns_of(const struct wp_profile_meta *meta,
				enum wp_profile_kind kind);

/* The type and the unit of what is shown by default: "wall", "nanoseconds". */
const char *wp_columns_type(const struct wp_profile *profile,
			    enum wp_profile_kind kind);
const char *wp_columns_unit(const struct wp_profile *profile,
			    enum wp_profile_kind kind);

/* Does what is shown by default grow with the time that was recorded?  Numbers of threads
 * and bytes in use do not. */
bool wp_columns_are_of_time(const struct wp_profile *profile,
			    enum wp_profile_kind kind);

/* Have the samples of KIND states? */
bool wp_columns_have_states(const struct wp_profile *profile,
			    enum wp_profile_kind kind);

/* Is THREAD idle, and of no use to who reads a profile of KIND?  Not where it is who held
 * a lock, woke others, or made threads or objects: what it waits for tells nothing of
 * these. */
bool wp_columns_is_idle(const struct wp_profile_thread *thread,
			enum wp_profile_kind kind);

/* The value of SAMPLE in COLUMN. */
static inline uint64_t wp_columns_value(const struct wp_profile_sample *sample,
					const struct wp_column *column)
{
	return *(const uint64_t *)((const char *)sample + column->off);
}

#endif
