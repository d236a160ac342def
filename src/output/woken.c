/* SPDX-License-Identifier: Apache-2.0 */
/* woken.c - who wakes whom, of the wake profile. */
#include <inttypes.h>

#include "report.h"

enum {
	TOP_WOKEN = 20,
	/* Columns before the names. */
	NUMBERS = 2 + 8 + 2 + 7 + 2 + 8 + 2,
};

/* Of a row: a location, not a thread, tells who wakes. */
#define IS_TEXT (UINT64_C(1) << 32)

/* Who made the wakes of KEY, as a number. */
static uint64_t waker_of(const struct wp_profile *profile,
			 const struct wp_sample_key *key)
{
	const struct wp_profile_stack *stack = &profile->stacks[key->stack];
	uint32_t loc = profile->loc_pool[stack->loc_first];
	struct wp_view view;

	wp_view_set(profile, loc, 0, &view);
	return view.text && stack->depth == 1 ? IS_TEXT | loc : key->thread;
}

static void put_waker(struct wp_report *r, uint64_t waker)
{
	const struct wp_profile *p = r->profile;
	struct wp_view view;

	if (waker & IS_TEXT) {
		wp_view_set(p, (uint32_t)waker, 0, &view);
		wp_report_name(r, &view);
		return;
	}
	wp_escape_terminal(&r->name, wp_profile_str(p, p->threads[waker].name));
	wp_buf_printf(&r->name, " (%" PRId32 ")", p->threads[waker].tid);
}

static void put_row(struct wp_report *r, const struct wp_pair *row)
{
	char time[WP_CELL], share[WP_CELL];

	wp_report_value(r, time, row->self);
	wp_report_share(share, row->self, r->total_ns);
	wp_buf_printf(&r->out, "  %s  %s  %8" PRIu64 "  ", time, share,
		      row->total);
	put_waker(r, row->a);
	wp_buf_str(&r->name, " wakes ");
	wp_escape_terminal(&r->name,
			   wp_profile_str(r->profile, (uint32_t)row->b));
	wp_report_end(r, NUMBERS);
}

void wp_report_woken(struct wp_report *r)
{
	struct wp_pairs rows = WP_PAIRS_INIT;
	uint32_t shown = 0;

	for (uint32_t i = 0; i < r->set->nsamples && !r->rc; i++) {
		const struct wp_profile_sample *s = &r->set->samples[i];
		struct wp_pair *row = wp_report_add(
			r, &rows, waker_of(r->profile, &s->key), s->key.object,
			wp_report_ns(r, s));

		if (row)
			row->total += s->count;
	}
	wp_pairs_sort(&rows);
	wp_report_title(r, "Who wakes whom");
	wp_buf_str(&r->out, "     delay    share     wakes\n");
	for (; shown < rows.len && !wp_report_hides(r, shown, TOP_WOKEN);
	     shown++)
		put_row(r, &rows.v[shown]);
	wp_report_rest(r, &rows, shown, 10);
	wp_pairs_clear(&rows);
}
