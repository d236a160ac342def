/* SPDX-License-Identifier: Apache-2.0 */
/* sites.c - where in the program threads wait.
 *
 * The leaf of a waiting stack is a wrapper of a system call; the site is the
 * first frame of the program's own.
 */
#include <string.h>

#include "columns.h"
#include "errors.h"
#include "report.h"
#include "wallprof/state.h"

enum {
	TOP_SITES = 20,
};

struct site {
	/* Name of the blocking system call; "": none. */
	const char *syscall;
	struct wp_view view;
	bool found;
};

static bool is_machinery(const struct wp_view *view, const char *syscall)
{
	const char *name = wp_view_name(view);
	const struct wp_named_frame frame = { name, name, view->module };

	/* In a static program the wrapper has the call's name. */
	return view->kernel || wp_state_is_machinery(&frame) ||
	       (*syscall && !strcmp(name, syscall));
}

static bool find_own_frame(void *ctx, const struct wp_view *view)
{
	struct site *site = ctx;

	/* "[truncated: ...]": no more frames are known. */
	if (view->text)
		return false;
	if (is_machinery(view, site->syscall))
		return true;
	site->view = *view;
	site->found = true;
	return false;
}

void wp_sites_view(const struct wp_profile *profile,
		   const struct wp_sample_key *key, struct wp_view *view)
{
	const struct wp_profile_stack *stack = &profile->stacks[key->stack];
	struct site site = { .syscall = wp_profile_str(profile, key->syscall) };

	wp_view_walk(profile, key->stack, false, find_own_frame, &site);
	if (!site.found)
		wp_view_set(profile, profile->loc_pool[stack->loc_first], 0,
			    &site.view);
	*view = site.view;
}

struct wp_sites_id wp_sites_find(const struct wp_profile *profile,
				 const struct wp_sample_key *key)
{
	struct wp_view view;

	wp_sites_view(profile, key, &view);
	return (struct wp_sites_id){ view.id, view.line };
}

bool wp_sites_equal(const struct wp_sites_id *a, const struct wp_sites_id *b)
{
	return a->function == b->function && a->line == b->line;
}

/* How wide reasons are: Go's words are longer. */
static size_t column_of(const struct wp_report *r)
{
	return r->profile->meta.is_of_goroutines ? 20 : 12;
}

static void put_site(struct wp_report *r, const struct wp_pair *row,
		     const struct wp_errors *errors)
{
	const size_t column = column_of(r);
	struct wp_view view;
	size_t len;

	wp_report_paint(r, WP_STATE_WAITING, row->b);
	wp_report_wait(r, row->b);
	len = wp_utf8_length(r->name.data, r->name.len);
	wp_buf_fill(&r->name, ' ', len < column ? column - len : 1);
	wp_view_set(r->profile, row->loc, row->level, &view);
	wp_report_name(r, &view);
	wp_report_row_error(r, row->self, errors, row->mark);
}

/* Set VIEW to where the thread of KEY is: its wait's site, or the function that it
 * runs in. */
static void view_place(const struct wp_profile *profile,
		       const struct wp_sample_key *key, struct wp_view *view)
{
	const struct wp_profile_stack *stack = &profile->stacks[key->stack];

	if (key->state == WP_STATE_WAITING)
		wp_sites_view(profile, key, view);
	else
		wp_view_set(profile, profile->loc_pool[stack->loc_first], 0,
			    view);
}

/* Add the time of R's samples by function, and by state and reason, to ROWS; all of
 * it to r->total_ns. */
static void sum_places(struct wp_report *r, struct wp_pairs *rows)
{
	for (uint32_t i = 0; i < r->set->nsamples && !r->rc; i++) {
		const struct wp_profile_sample *s = &r->set->samples[i];
		uint64_t ns = wp_report_ns(r, s);
		struct wp_view view;
		struct wp_pair *row;

		if (!ns)
			continue;
		view_place(r->profile, &s->key, &view);
		row = wp_report_add(
			r, rows, view.id,
			wp_report_reason(&s->key) << 8 | s->key.state, ns);
		if (!row)
			break;
		row->loc = view.loc;
		row->level = view.level;
		r->total_ns += ns;
	}
}

int wp_report_most(const struct wp_profile *profile, enum wp_profile_kind kind,
		   char *line, size_t size)
{
	static const struct wp_report_options options = { 0 };
	struct wp_report r = { .profile = profile,
			       .kind = kind,
			       .set = &profile->sets[kind],
			       .options = &options };
	bool has_states = wp_columns_have_states(profile, kind);
	struct wp_pairs rows = WP_PAIRS_INIT;
	struct wp_view view;

	line[0] = '\0';
	sum_places(&r, &rows);
	wp_pairs_sort(&rows);
	if (rows.len && !r.rc) {
		wp_buf_printf(&r.name, "%.1f %%%s%s",
			      100 * (double)rows.v[0].self / (double)r.total_ns,
			      has_states ? " " : "",
			      has_states ? wp_types_state_name((enum wp_state)(
						   rows.v[0].b & 0xff)) :
					   "");
		if ((rows.v[0].b & 0xff) == WP_STATE_WAITING) {
			wp_buf_str(&r.name, ": ");
			wp_report_wait(&r, rows.v[0].b >> 8);
		}
		wp_buf_str(&r.name,
			   kind == WP_PROFILE_WAKE ? " ended by " : " at ");
		wp_view_set(profile, rows.v[0].loc, rows.v[0].level, &view);
		/* The row is for all lines of the function. */
		view.line = 0;
		wp_report_name(&r, &view);
		wp_report_fail(&r, r.name.rc);
	}
	if (!r.rc)
		snprintf(line, size, "%.*s", (int)r.name.len,
			 r.name.len ? r.name.data : "");
	wp_buf_clear(&r.name);
	wp_pairs_clear(&rows);
	return r.rc;
}

void wp_report_sites(struct wp_report *r)
{
	struct wp_pairs rows = WP_PAIRS_INIT;
	struct wp_errors errors;
	uint32_t shown = 0;

	wp_report_fail(r, wp_errors_init(&errors, r->profile, r->kind));
	for (uint32_t i = 0; i < r->set->nsamples && !r->rc; i++) {
		const struct wp_profile_sample *s = wp_errors_sample(&errors,
								     i);
		struct wp_view view;
		struct wp_pair *row;

		if (s->key.state != WP_STATE_WAITING || !wp_report_ns(r, s))
			continue;
		wp_sites_view(r->profile, &s->key, &view);
		row = wp_report_add(
			r, &rows, view.id | (uint64_t)view.line << 34,
			wp_report_reason(&s->key), wp_report_ns(r, s));
		if (!row)
			break;
		row->loc = view.loc;
		row->level = view.level;
		row->mark = (uint32_t)(row - rows.v);
		wp_report_fail(r, wp_errors_add(&errors, row->mark, s));
	}
	wp_pairs_sort(&rows);
	if (rows.len) {
		wp_report_title(r, r->kind == WP_PROFILE_WAKE ?
					   "What ends waits" :
				   r->profile->meta.is_of_goroutines ?
					   "Where goroutines wait" :
					   "Where threads wait");
		wp_buf_printf(&r->out, "      time    share%s  %-*s%s\n",
			      errors.known ? " error" : "", (int)column_of(r),
			      "for", r->kind == WP_PROFILE_WAKE ? "by" : "at");
	}
	for (; shown < rows.len && !wp_report_hides(r, shown, TOP_SITES);
	     shown++)
		put_site(r, &rows.v[shown], &errors);
	wp_report_rest(r, &rows, shown, 0);
	wp_pairs_clear(&rows);
	wp_errors_clear(&errors);
}
