/* SPDX-License-Identifier: Apache-2.0 */
/* tables.c - the tables of the text report: states and functions. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "report.h"
#include "wallprof/lower_bound.h"

enum {
	/* Most rows of a table, without --full. */
	TOP_OBJECTS = 3,
	TOP_FUNCTIONS = 20,
	/* Columns of a time and a share. */
	NUMBERS = 2 + 8 + 2 + 7,
	/* Of an error. */
	ERROR = 6,
};

bool wp_report_hides(const struct wp_report *r, uint32_t shown, uint32_t limit)
{
	return !r->options->full && shown >= limit;
}

/* Write a row: NS, its share of all time, and r->name indented by INDENT. */
static void put_row(struct wp_report *r, uint64_t ns, unsigned int indent)
{
	char time[WP_CELL], share[WP_CELL];

	wp_report_value(r, time, ns);
	wp_report_share(share, ns, r->total_ns);
	wp_buf_printf(&r->out, "  %s  %s", time, share);
	wp_buf_fill(&r->out, ' ', 2 + indent);
	wp_report_end(r, NUMBERS + 2 + indent);
}

void wp_report_row_error(struct wp_report *r, uint64_t ns,
			 const struct wp_errors *errors, uint32_t row)
{
	char time[WP_CELL], share[WP_CELL];

	wp_report_value(r, time, ns);
	wp_report_share_error(share, ns, r->total_ns, errors, row);
	wp_buf_printf(&r->out, "  %s  %s  ", time, share);
	wp_report_end(r, NUMBERS + 2 + (errors->known ? ERROR : 0));
}

void wp_report_rest(struct wp_report *r, const struct wp_pairs *rows,
		    uint32_t first, unsigned int indent)
{
	uint64_t ns = 0;

	if (first >= rows->len)
		return;
	for (uint32_t i = first; i < rows->len; i++)
		ns += rows->v[i].self;
	wp_buf_printf(&r->name, "... %" PRIu32 " more", rows->len - first);
	put_row(r, ns, indent);
}

struct wp_pair *wp_report_add(struct wp_report *r, struct wp_pairs *rows,
			      uint64_t a, uint64_t b, uint64_t ns)
{
	uint32_t i = wp_pairs_add(rows, a, b);

	if (i == UINT32_MAX) {
		wp_report_fail(r, -ENOMEM);
		return NULL;
	}
	rows->v[i].self += ns;
	return &rows->v[i];
}

uint64_t wp_report_reason(const struct wp_sample_key *key)
{
	bool named = key->wait == WP_WAIT_SYSCALL || key->wait == WP_WAIT_GO;
	uint64_t syscall = named ? key->syscall : 0;

	return syscall << 8 | key->wait;
}

/* By reason, of each the longest first. */
static int compare_objects(const void *x, const void *y)
{
	const struct wp_pair *a = x, *b = y;

	if (a->b != b->b)
		return a->b < b->b ? -1 : 1;
	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	return (a->a > b->a) - (a->a < b->a);
}

/* Fill *RET, which is empty, with (object, reason) of threads in STATE. */
static void add_objects(struct wp_report *r, struct wp_pairs *ret,
			uint64_t state)
{
	for (uint32_t i = 0; i < r->set->nsamples; i++) {
		const struct wp_profile_sample *s = &r->set->samples[i];

		if (s->key.state == state && s->key.object &&
		    wp_report_ns(r, s))
			wp_report_add(r, ret, s->key.object,
				      wp_report_reason(&s->key),
				      wp_report_ns(r, s));
	}
	if (ret->len)
		qsort(ret->v, ret->len, sizeof(*ret->v), compare_objects);
}

/* Write those of OBJECTS that threads wait on for REASON. */
static void put_objects(struct wp_report *r, const struct wp_pairs *objects,
			uint64_t reason)
{
	size_t begin = WP_LOWER_BOUND(objects->len, i,
				      objects->v[i].b < reason);
	size_t end = WP_LOWER_BOUND(objects->len, i, objects->v[i].b <= reason);
	const struct wp_pairs rows = { .v = objects->v ? objects->v + begin :
							 NULL,
				       .len = (uint32_t)(end - begin) };
	uint32_t shown = 0;

	for (; shown < rows.len && !wp_report_hides(r, shown, TOP_OBJECTS);
	     shown++) {
		if (r->kind == WP_PROFILE_BLOCK)
			wp_buf_str(&r->name, "woken by ");
		wp_escape_terminal(
			&r->name,
			wp_profile_str(r->profile, (uint32_t)rows.v[shown].a));
		put_row(r, rows.v[shown].self, 4);
	}
	wp_report_rest(r, &rows, shown, 4);
}

/* Write the reasons why threads were in STATE. */
static void put_reasons(struct wp_report *r, uint64_t state)
{
	struct wp_pairs rows = WP_PAIRS_INIT, objects = WP_PAIRS_INIT;

	for (uint32_t i = 0; i < r->set->nsamples; i++) {
		const struct wp_profile_sample *s = &r->set->samples[i];

		if (s->key.state == state && wp_report_ns(r, s) &&
		    (s->key.wait != WP_WAIT_NONE || state == WP_STATE_WAITING))
			wp_report_add(r, &rows, wp_report_reason(&s->key), 0,
				      wp_report_ns(r, s));
	}
	wp_pairs_sort(&rows);
	add_objects(r, &objects, state);
	for (uint32_t i = 0; i < rows.len; i++) {
		wp_report_paint(r, (enum wp_state)state, rows.v[i].a);
		wp_report_wait(r, rows.v[i].a);
		put_row(r, rows.v[i].self, 2);
		put_objects(r, &objects, rows.v[i].a);
	}
	wp_pairs_clear(&objects);
	wp_pairs_clear(&rows);
}

void wp_report_states(struct wp_report *r)
{
	uint64_t ns[WP_NSTATES] = { 0 };

	for (uint32_t i = 0; i < r->set->nsamples; i++)
		ns[r->set->samples[i].key.state % WP_NSTATES] += wp_report_ns(
			r, &r->set->samples[i]);
	wp_report_title(r, r->kind == WP_PROFILE_BLOCK ?
				   "Delay by state" :
			   r->profile->meta.is_of_goroutines ?
				   "Goroutine time by state" :
				   "Thread time by state");
	wp_buf_str(&r->out, "      time    share\n");
	for (unsigned int state = 0; state < WP_NSTATES; state++) {
		if (!ns[state])
			continue;
		wp_report_paint(r, (enum wp_state)state, WP_WAIT_NONE);
		wp_buf_str(&r->name, wp_types_state_name((enum wp_state)state));
		if (state == WP_STATE_RUNNABLE)
			wp_buf_str(&r->name, " (waits for a CPU)");
		put_row(r, ns[state], 0);
		put_reasons(r, state);
	}
}

/* A sample that is being added to the table of functions. */
struct function_sum {
	struct wp_report *r;
	struct wp_pairs *rows;
	struct wp_errors *errors;
	const struct wp_profile_sample *sample;
	/* Number of the sample: a row with this mark has its time, as a
	 * recursive function is on the stack more than once. */
	uint32_t mark;
	bool leaf;
};

static bool sum_frame(void *ctx, const struct wp_view *view)
{
	struct function_sum *sum = ctx;
	uint64_t ns = wp_report_ns(sum->r, sum->sample);
	struct wp_pair *row = wp_report_add(sum->r, sum->rows, view->id, 0,
					    sum->leaf ? ns : 0);

	if (!row)
		return false;
	row->loc = view->loc;
	row->level = view->level;
	if (sum->leaf)
		wp_report_fail(sum->r,
			       wp_errors_add(sum->errors,
					     (uint32_t)(row - sum->rows->v),
					     sum->sample));
	if (sum->leaf && sum->sample->key.state == WP_STATE_RUNNING)
		row->split += ns;
	if (row->mark != sum->mark)
		row->total += ns;
	row->mark = sum->mark;
	sum->leaf = false;
	return true;
}

static void put_function(struct wp_report *r, const struct wp_pair *row,
			 const struct wp_errors *errors)
{
	char time[WP_CELL], self[WP_CELL], total[WP_CELL], cpu[WP_CELL];
	struct wp_view view;

	wp_report_value(r, time, row->self);
	wp_report_share_error(self, row->self, r->total_ns, errors, row->mark);
	wp_report_share(cpu, row->split, r->total_ns);
	wp_report_share(total, row->total, r->total_ns);
	/* Bytes are on no CPU, nor is what has no state. */
	if (!r->has_states)
		wp_buf_printf(&r->out, "  %s  %s  %s  ", time, self, total);
	else
		wp_buf_printf(&r->out, "  %s  %s  %s  %s  ", time, self, cpu,
			      total);
	wp_view_set(r->profile, row->loc, row->level, &view);
	/* The row is for all lines of the function. */
	view.line = 0;
	view.guessed = view.inlined = false;
	wp_report_name(r, &view);
	wp_report_end(r, NUMBERS + (r->has_states ? 2 : 1) * (2 + 7) + 2 +
				 (errors->known ? ERROR : 0));
}

static void sum_functions(struct wp_report *r, struct wp_pairs *rows,
			  struct wp_errors *errors)
{
	for (uint32_t i = 0; i < r->set->nsamples && !r->rc; i++) {
		struct function_sum sum = {
			.r = r,
			.rows = rows,
			.errors = errors,
			.sample = wp_errors_sample(errors, i),
			.mark = i + 1,
			.leaf = true,
		};

		if (!wp_report_ns(r, sum.sample))
			continue;
		wp_view_walk(r->profile, sum.sample->key.stack, false,
			     sum_frame, &sum);
	}
	for (uint32_t i = 0; i < rows->len; i++)
		rows->v[i].mark = i;
	wp_pairs_sort(rows);
}

void wp_report_functions(struct wp_report *r)
{
	struct wp_pairs rows = WP_PAIRS_INIT;
	uint32_t shown = 0, more = 0;
	struct wp_errors errors;

	wp_report_fail(r, wp_errors_init(&errors, r->profile, r->kind));
	sum_functions(r, &rows, &errors);
	wp_report_title(r, "Functions by their own time");
	wp_buf_printf(&r->out, "      self    share%s%s    total  function\n",
		      errors.known ? " error" : "",
		      r->has_states ? "   on CPU" : "");
	for (uint32_t i = 0; i < rows.len; i++) {
		if (!r->options->full &&
		    (shown >= TOP_FUNCTIONS || !rows.v[i].self)) {
			more++;
			continue;
		}
		put_function(r, &rows.v[i], &errors);
		shown++;
	}
	if (more)
		wp_buf_printf(&r->out,
			      "  ... %" PRIu32 " more functions"
			      " with less or no time of their own\n",
			      more);
	wp_pairs_clear(&rows);
	wp_errors_clear(&errors);
}
