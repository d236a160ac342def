/* SPDX-License-Identifier: Apache-2.0 */
/* top_text.c - see wallprof/top.h: lines for a terminal. */
#include <inttypes.h>
#include <string.h>

#include "report.h"
#include "wallprof/top.h"

/* Columns of a line of the table of threads before the wait. */
enum { COLUMNS = 15 + 1 + 8 + 3 * 6 + 11 };

static struct wp_report begin(const struct wp_top *top,
			      const struct wp_profile *profile,
			      const struct wp_report_options *options)
{
	struct wp_report r = {
		.profile = profile,
		.kind = WP_PROFILE_WALL,
		.set = &top->set,
		.options = options,
	};

	return r;
}

static int finish(struct wp_report *r, FILE *out)
{
	int rc;

	wp_report_fail(r, r->name.rc);
	wp_buf_clear(&r->name);
	if (r->rc)
		wp_buf_clear(&r->out);
	rc = wp_buf_finish(&r->out, out);
	return r->rc ? r->rc : rc;
}

static double percent(uint64_t ns, uint64_t all)
{
	return all ? 100 * (double)ns / (double)all : 0;
}

int wp_top_write_sums(const struct wp_top *top,
		      const struct wp_profile *profile, unsigned int width,
		      FILE *out)
{
	const struct wp_report_options options = { .full = true,
						   .width = width };
	struct wp_report r = begin(top, profile, &options);
	uint64_t ns[WP_NSTATES] = { 0 };
	double window = top->mean_ns ? (double)top->mean_ns : 1;

	for (uint32_t i = 0; i < top->set.nsamples; i++)
		ns[top->set.samples[i].key.state] +=
			top->set.samples[i].wall_ns;
	wp_buf_printf(&r.name,
		      "%" PRIu32 " of %" PRIu32
		      " threads; of all on average %.1f ran, %.1f waited for "
		      "a CPU, %.1f for something else",
		      top->n, top->nall, (double)ns[WP_STATE_RUNNING] / window,
		      (double)ns[WP_STATE_RUNNABLE] / window,
		      (double)ns[WP_STATE_WAITING] / window);
	wp_report_end(&r, 0);
	return finish(&r, out);
}

/* "worker-0" in 15 columns. */
static void put_thread_name(struct wp_report *r,
			    const struct wp_profile_thread *t)
{
	enum { NAME = 15 };
	size_t len;

	wp_escape_terminal(&r->name, wp_profile_str(r->profile, t->name));
	wp_escape_fit(&r->out, r->name.data, r->name.len, NAME);
	len = wp_utf8_length(r->name.data, r->name.len);
	wp_buf_fill(&r->out, ' ', len < NAME ? NAME - len : 0);
	wp_buf_reset(&r->name);
}

/* "12.3 s", and whether it may be more. */
static void put_since(struct wp_report *r, const struct wp_top_thread *v)
{
	char cell[WP_CELL];
	size_t blanks;

	wp_report_time(cell, v->since_ns);
	blanks = strspn(cell, " ");
	if (!v->since_ns)
		wp_buf_fill(&r->out, ' ', 11);
	else
		wp_buf_printf(&r->out, "%*s%s%s  ", (int)blanks, "",
			      v->from_begin ? ">" : " ", cell + blanks);
}

/* What V does: "waiting: lock 0x1234 held by ..., at nap (shares.c:53)". */
static void put_place(struct wp_report *r, const struct wp_sample_key *key)
{
	const char *object = wp_profile_str(r->profile, key->object);
	struct wp_view view;

	if (key->state == WP_STATE_WAITING)
		wp_report_wait(r, wp_report_reason(key));
	else
		wp_buf_str(&r->name,
			   wp_types_state_name((enum wp_state)key->state));
	if (*object) {
		wp_buf_char(&r->name, ' ');
		wp_escape_terminal(&r->name, object);
	}
	if (key->stack >= r->profile->nlocated)
		return;
	wp_sites_view(r->profile, key, &view);
	wp_buf_str(&r->name, "  ");
	wp_report_name(r, &view);
}

static void put_thread(struct wp_report *r, const struct wp_top *top,
		       const struct wp_top_thread *v)
{
	const struct wp_profile_thread *t = &r->profile->threads[v->thread];

	put_thread_name(r, t);
	wp_buf_printf(&r->out, " %7" PRId32 " %5.1f %5.1f %5.1f", t->tid,
		      percent(v->ns[WP_STATE_RUNNING], v->all_ns),
		      percent(v->ns[WP_STATE_RUNNABLE], v->all_ns),
		      percent(v->ns[WP_STATE_WAITING], v->all_ns));
	put_since(r, v);
	put_place(r, &top->set.samples[v->sample].key);
	wp_report_end(r, COLUMNS);
}

int wp_top_write_threads(const struct wp_top *top,
			 const struct wp_profile *profile, uint32_t first,
			 uint32_t n, unsigned int width, FILE *out)
{
	const struct wp_report_options options = { .full = true,
						   .width = width };
	struct wp_report r = begin(top, profile, &options);

	wp_buf_str(
		&r.name,
		"THREAD              TID  %RUN  %RDY %WAIT      FOR  WAITS FOR, AT");
	wp_report_end(&r, 0);
	for (uint32_t i = first; i < top->n && i - first < n; i++)
		put_thread(&r, top, &top->v[i]);
	return finish(&r, out);
}

static void put_places(struct wp_report *r, const struct wp_top *top,
		       struct wp_pairs *rows, bool waiting, uint32_t n)
{
	wp_pairs_sort(rows);
	wp_buf_str(&r->name, waiting ? "threads  where they wait" :
				       "threads  functions that run");
	wp_report_end(r, 0);
	for (uint32_t i = 0; i < rows->len && i < n; i++) {
		const struct wp_pair *row = &rows->v[i];
		struct wp_view view;

		wp_buf_printf(
			&r->out, "%7.2f  ",
			(double)row->self /
				(double)(top->mean_ns ? top->mean_ns : 1));
		if (waiting) {
			wp_report_wait(r, row->b);
			wp_buf_str(&r->name, "  ");
		}
		wp_view_set(r->profile, row->loc, row->level, &view);
		wp_report_name(r, &view);
		wp_report_end(r, 9);
	}
}

int wp_top_write_places(const struct wp_top *top,
			const struct wp_profile *profile, bool waiting,
			uint32_t n, unsigned int width, FILE *out)
{
	const struct wp_report_options options = { .full = true,
						   .width = width };
	struct wp_report r = begin(top, profile, &options);
	struct wp_pairs rows = WP_PAIRS_INIT;

	for (uint32_t i = 0; i < top->set.nsamples && !r.rc; i++) {
		const struct wp_profile_sample *s = &top->set.samples[i];
		struct wp_view view;
		struct wp_pair *row;

		if (!s->wall_ns || s->key.stack >= profile->nlocated ||
		    s->key.state !=
			    (waiting ? WP_STATE_WAITING : WP_STATE_RUNNING))
			continue;
		if (waiting)
			wp_sites_view(profile, &s->key, &view);
		else
			wp_view_set(
				profile,
				profile->loc_pool[profile->stacks[s->key.stack]
							  .loc_first],
				0, &view);
		row = wp_report_add(
			&r, &rows,
			view.id | (waiting ? (uint64_t)view.line << 34 : 0),
			waiting ? wp_report_reason(&s->key) : 0, s->wall_ns);
		if (!row)
			break;
		row->loc = view.loc;
		row->level = view.level;
	}
	if (!r.rc)
		put_places(&r, top, &rows, waiting, n);
	wp_pairs_clear(&rows);
	return finish(&r, out);
}

static bool put_frame(void *ctx, const struct wp_view *view)
{
	struct wp_report *r = ctx;

	wp_buf_str(&r->out, "  ");
	wp_report_name(r, view);
	wp_report_end(r, 2);
	return true;
}

int wp_top_write_stack(const struct wp_top *top,
		       const struct wp_profile *profile,
		       const struct wp_top_thread *v, unsigned int width,
		       FILE *out)
{
	const struct wp_report_options options = { .full = true,
						   .width = width };
	const struct wp_sample_key *key = &top->set.samples[v->sample].key;
	struct wp_report r = begin(top, profile, &options);

	put_thread_name(&r, &profile->threads[v->thread]);
	wp_buf_printf(&r.out, " %7" PRId32 "  ",
		      profile->threads[v->thread].tid);
	put_place(&r, key);
	wp_report_end(&r, 25);
	if (key->stack < profile->nlocated)
		wp_view_walk(profile, key->stack, false, put_frame, &r);
	return finish(&r, out);
}
