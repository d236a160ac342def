/* SPDX-License-Identifier: Apache-2.0 */
/* child_hint.c - is the process to be looked at another one? */
#include <stdio.h>

#include "pairs.h"
#include "wallprof/output.h"

/* Sum the waits for children by their description into ROWS; their sum. */
static uint64_t add_up(const struct wp_profile *profile, struct wp_pairs *rows)
{
	const struct wp_sample_set *set = &profile->sets[WP_PROFILE_WALL];
	uint64_t all = 0;

	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];
		uint32_t row;

		if (s->key.wait != WP_WAIT_CHILD)
			continue;
		all += s->wall_ns;
		row = s->key.object ? wp_pairs_add(rows, s->key.object, 0) :
				      UINT32_MAX;
		if (row != UINT32_MAX)
			rows->v[row].self += s->wall_ns;
	}
	return all;
}

bool wp_child_hint(const struct wp_profile *profile, char *text, size_t size)
{
	uint64_t all = profile->sums[WP_PROFILE_WALL].wall_ns, ns, longest;
	struct wp_pairs rows = WP_PAIRS_INIT;
	bool is_other;

	/* Of several, children are among those that are recorded. */
	if (wp_profile_is_of_many(profile))
		return false;
	ns = add_up(profile, &rows);
	is_other = ns > all / 2 && rows.len;
	if (is_other) {
		wp_pairs_sort(&rows);
		longest = rows.v[0].self;
		snprintf(text, size,
			 "%.3g %% of the time this process waited for %s%s: "
			 "record it with wallprof -p PID, or with wallprof -- "
			 "COMMAND",
			 100 * (double)ns / (double)all,
			 longest > ns / 2 ? "" : "children, most for ",
			 wp_profile_str(profile, (uint32_t)rows.v[0].a));
	}
	wp_pairs_clear(&rows);
	return is_other;
}
