/* SPDX-License-Identifier: Apache-2.0 */
/* diff.c - what changed between two profiles, by function; of values that grow with the
 * time that was recorded, per second of each.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "errors.h"
#include "escape.h"
#include "report.h"
#include "view.h"
#include "wallprof/output.h"
#include "wallprof/vec.h"

enum { BEFORE, AFTER, NSIDES };

/* Functions with a smaller change than this share of all are left out. */
#define LEAST 0.0005
/* A change of more standard errors than this is no chance. */
#define SURE 3

struct row {
	/* Divided by struct diff's seconds. */
	double self[NSIDES];
	double total[NSIDES];
	/* Number of the last sample that it was in. */
	uint32_t seen;
};

struct diff {
	/* "name\tmodule": the id is the row's index. */
	struct wp_intern names;
	struct row *rows;
	uint32_t cap;
	/* All threads' time, divided as well. */
	double all[NSIDES];
	/* Of each row's own time, and seconds of the recording; 1 unless values are
	 * PER_SECOND. */
	struct wp_errors errors[NSIDES];
	double seconds[NSIDES];
	bool per_second;
	/* They are not, though of time, if a file does not say of how long. */
	bool of_time;
	struct wp_buf name;
	/* The sample that is being added. */
	int side;
	const struct wp_profile_sample *s;
	uint32_t sample;
	double value;
	bool is_leaf;
	int rc;
};

static struct row *row_of(struct diff *d, const struct wp_view *view)
{
	uint32_t n = d->names.len, id;

	wp_buf_reset(&d->name);
	wp_buf_printf(&d->name, "%s\t%s", wp_view_name(view), view->module);
	id = d->name.rc ? UINT32_MAX :
			  wp_intern_add(&d->names, d->name.data, d->name.len);
	if (id == UINT32_MAX || WP_VEC_ROOM(d->rows, id, d->cap, 1)) {
		d->rc = -ENOMEM;
		return NULL;
	}
	if (d->names.len != n)
		d->rows[id] = (struct row){ .seen = UINT32_MAX };
	return &d->rows[id];
}

static bool add_frame(void *ctx, const struct wp_view *view)
{
	struct diff *d = ctx;
	struct row *row = row_of(d, view);

	if (!row)
		return false;
	if (d->is_leaf) {
		row->self[d->side] += d->value;
		if (wp_errors_add(&d->errors[d->side],
				  (uint32_t)(row - d->rows), d->s))
			d->rc = -ENOMEM;
	}
	d->is_leaf = false;
	/* A function that calls itself counts once. */
	if (row->seen != d->sample)
		row->total[d->side] += d->value;
	row->seen = d->sample;
	return true;
}

static void add_profile(struct diff *d, const struct wp_profile *profile,
			int side)
{
	enum wp_profile_kind kind = profile->meta.read_kind;
	const struct wp_sample_set *set = &profile->sets[kind];
	struct wp_columns c = wp_columns_of(&profile->meta, kind);

	d->side = side;
	d->seconds[side] = d->per_second ?
				   (double)profile->meta.duration_ns / 1e9 :
				   1;
	if (wp_errors_init(&d->errors[side], profile, kind))
		d->rc = -ENOMEM;
	for (uint32_t i = 0; i < set->nsamples && !d->rc; i++) {
		d->s = wp_errors_sample(&d->errors[side], i);
		d->value = (double)wp_columns_value(d->s, &c.v[c.main]) /
			   d->seconds[side];
		d->all[side] += d->value;
		d->is_leaf = true;
		d->sample++;
		wp_view_walk(profile, d->s->key.stack, false, add_frame, d);
	}
}

/* What a row is ranked by: its own change, then that of all below it. */
static double weight_of(const struct row *row)
{
	return fabs(row->self[AFTER] - row->self[BEFORE]) +
	       1e-6 * fabs(row->total[AFTER] - row->total[BEFORE]);
}

static int by_change(const void *a, const void *b, void *ctx)
{
	const struct diff *d = ctx;
	double x = weight_of(&d->rows[*(const uint32_t *)a]);
	double y = weight_of(&d->rows[*(const uint32_t *)b]);

	return (x < y) - (x > y);
}

/* Add VALUE, of a second, as "+12.3 ms" or a number. */
static void put_value(struct wp_buf *out, double value, bool is_time, bool sign)
{
	char cell[WP_CELL], text[WP_CELL + 2];

	if (is_time) {
		wp_report_time(cell, (uint64_t)fabs(value));
		snprintf(text, sizeof(text), "%s%s",
			 !sign	   ? "" :
			 value < 0 ? "-" :
				     "+",
			 cell + strspn(cell, " "));
	} else {
		snprintf(text, sizeof(text), sign ? "%+.4g" : "%.4g", value);
	}
	wp_buf_printf(out, " %10s", text);
}

static bool errors_are_known(const struct diff *d)
{
	/* Looks divide time. */
	return d->of_time && d->errors[BEFORE].known && d->errors[AFTER].known;
}

/* Add the standard error of the change of row ID's own time, and a star if the change
 * is beyond chance. */
static void put_error(const struct diff *d, uint32_t id, struct wp_buf *out)
{
	const struct row *row = &d->rows[id];
	double error = hypot(
		wp_errors_of(&d->errors[BEFORE], id) / d->seconds[BEFORE],
		wp_errors_of(&d->errors[AFTER], id) / d->seconds[AFTER]);
	double change = fabs(row->self[AFTER] - row->self[BEFORE]);
	char cell[WP_CELL], text[WP_CELL + 2];

	if (error < 1) {
		wp_buf_fill(out, ' ', 13);
		return;
	}
	wp_report_time(cell, (uint64_t)error);
	snprintf(text, sizeof(text), "\u00b1%s", cell + strspn(cell, " "));
	/* The sign has two bytes. */
	wp_buf_printf(out, " %11s%s", text,
		      change > SURE * error ? " *" : "  ");
}

/* ID: of its row; 0: of all, whose sums are known. */
static void put_row(const struct diff *d, uint32_t id, const struct row *row,
		    bool is_time, struct wp_buf *out)
{
	put_value(out, row->self[AFTER] - row->self[BEFORE], is_time, true);
	if (errors_are_known(d) && id)
		put_error(d, id, out);
	else if (errors_are_known(d))
		wp_buf_fill(out, ' ', 13);
	put_value(out, row->self[BEFORE], is_time, false);
	put_value(out, row->self[AFTER], is_time, false);
	put_value(out, row->total[AFTER] - row->total[BEFORE], is_time, true);
	wp_buf_str(out, "  ");
}

/* Add "name (module)" of row ID and end the line. */
static void put_name(struct diff *d, uint32_t id, struct wp_buf *out)
{
	char *module;

	wp_buf_reset(&d->name);
	wp_buf_str(&d->name, wp_intern_str(&d->names, id));
	wp_buf_char(&d->name, '\0');
	module = d->name.rc ? NULL : strrchr(d->name.data, '\t');
	if (!module) {
		d->rc = -ENOMEM;
		return;
	}
	*module++ = '\0';
	wp_escape_terminal(out, d->name.data);
	if (*module) {
		wp_buf_str(out, " (");
		wp_escape_terminal(out, module);
		wp_buf_char(out, ')');
	}
	wp_buf_char(out, '\n');
}

static void put_head(const struct diff *d, struct wp_buf *out)
{
	wp_buf_str(out, d->per_second ? "per second of recording\n" :
			d->of_time ? "sums of each file: one does not say how "
				     "long it was recorded, so they are not "
				     "per second\n" :
				     "sums of each file\n");
	if (errors_are_known(d))
		wp_buf_printf(out,
			      "*: a change of more than %d standard errors\n",
			      SURE);
	wp_buf_printf(out,
		      "      self%s     before      after      total"
		      "  function\n",
		      errors_are_known(d) ? "      error  " : "");
}

static int put_rows(struct diff *d, bool is_time, bool full, struct wp_buf *out)
{
	uint32_t n = d->names.len, shown = 0;
	uint32_t *order = calloc((size_t)n + 1, sizeof(*order));
	double all = d->all[d->all[AFTER] > d->all[BEFORE] ? AFTER : BEFORE];
	double least = full ? 0 : LEAST * all;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), by_change, d);
	put_head(d, out);
	put_row(d, 0,
		&(struct row){ .self = { d->all[BEFORE], d->all[AFTER] },
			       .total = { d->all[BEFORE], d->all[AFTER] } },
		is_time, out);
	wp_buf_str(out, "all\n");
	for (uint32_t i = 0; i < n; i++) {
		/* Id 0 is "", which is no function. */
		if (!order[i] || weight_of(&d->rows[order[i]]) <= least)
			continue;
		put_row(d, order[i], &d->rows[order[i]], is_time, out);
		put_name(d, order[i], out);
		shown++;
	}
	if (shown + 1 < n)
		wp_buf_printf(out, "%" PRIu32 " functions changed less\n",
			      n - 1 - shown);
	free(order);
	return d->rc;
}

int wp_diff_check(const struct wp_profile *before,
		  const struct wp_profile *after, struct wp_err *err)
{
	const char *types[] = { wp_columns_type(before, before->meta.read_kind),
				wp_columns_type(after, after->meta.read_kind) };
	const char *units[] = { wp_columns_unit(before, before->meta.read_kind),
				wp_columns_unit(after, after->meta.read_kind) };

	if (!strcmp(types[BEFORE], types[AFTER]) &&
	    !strcmp(units[BEFORE], units[AFTER]))
		return 0;
	return wp_err_set(err, -EINVAL,
			  "the values before (%s) are %s, those after (%s) are "
			  "%s: there is no difference of them",
			  types[BEFORE], units[BEFORE], types[AFTER],
			  units[AFTER]);
}

int wp_write_diff(const struct wp_profile *before,
		  const struct wp_profile *after, bool full, FILE *out)
{
	bool is_time = !strcmp(wp_columns_unit(after, after->meta.read_kind),
			       "nanoseconds");
	struct wp_buf buf = WP_BUF_INIT;
	struct diff d = { .names = WP_INTERN_INIT };
	bool known = before->meta.duration_ns > 0 &&
		     after->meta.duration_ns > 0;
	int rc;

	d.of_time = wp_columns_are_of_time(after, after->meta.read_kind);
	d.per_second = d.of_time && known;

	if (wp_intern_add(&d.names, "", 0) == UINT32_MAX ||
	    WP_VEC_ROOM(d.rows, 0, d.cap, 1))
		d.rc = -ENOMEM;
	else
		d.rows[0] = (struct row){ 0 };
	add_profile(&d, before, BEFORE);
	add_profile(&d, after, AFTER);
	rc = d.rc;
	if (!rc)
		rc = put_rows(&d, is_time, full, &buf);
	if (!rc)
		rc = wp_buf_finish(&buf, out);
	else
		wp_buf_clear(&buf);
	free(d.rows);
	wp_buf_clear(&d.name);
	wp_intern_clear(&d.names);
	wp_errors_clear(&d.errors[BEFORE]);
	wp_errors_clear(&d.errors[AFTER]);
	return rc;
}
