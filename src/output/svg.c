/* SPDX-License-Identifier: Apache-2.0 */
/* svg.c - a flame graph as a picture, for mails and tickets: no script. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "call_nodes.h"
#include "category.h"
#include "columns.h"
#include "escape.h"
#include "report.h"
#include "wallprof/output.h"

enum {
	WIDTH = 1200,
	ROW = 18,
	MARGIN = 10,
	/* Above the boxes: title, legend. */
	HEAD = 56,
	/* Pixels of an average character of 12 px. */
	CHARACTER = 7,
	CHUNK = 1 << 16,
};

/* Boxes that are narrower are left out. */
#define LEAST 0.3

struct svg {
	const struct wp_profile *profile;
	struct wp_columns columns;
	/* Values are nanoseconds. */
	bool is_time;
	bool has_states;
	struct wp_call_nodes nodes;
	/* sum[node * WP_NCATEGORIES + category], node 0 being the root of all;
	 * total[node]; children by falling total: first[node], next[node] (0:
	 * none); depth[node]; x[node] in pixels.  Owned. */
	uint64_t *sum;
	uint64_t *total;
	uint32_t *first;
	uint32_t *next;
	uint32_t *depth;
	double *x;
	uint32_t deepest;
	struct wp_buf out;
	struct wp_buf text;
	FILE *file;
};

static void add_up(struct svg *s, enum wp_profile_kind kind)
{
	const struct wp_sample_set *set = &s->profile->sets[kind];
	const struct wp_column *c = &s->columns.v[s->columns.main];

	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *one = &set->samples[i];
		uint64_t value = wp_columns_value(one, c);
		uint32_t leaf = s->nodes.leaf[one->key.stack];

		s->sum[(size_t)leaf * WP_NCATEGORIES +
		       wp_category_of(&one->key)] += value;
		s->total[leaf] += value;
	}
	for (uint32_t i = s->nodes.n; i > 0; i--) {
		size_t up = s->nodes.v[i - 1].parent;

		s->total[up] += s->total[i];
		for (unsigned int k = 0; k < WP_NCATEGORIES; k++)
			s->sum[up * WP_NCATEGORIES + k] +=
				s->sum[(size_t)i * WP_NCATEGORIES + k];
	}
}

static int by_total(const void *a, const void *b, void *ctx)
{
	const struct svg *s = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (s->total[x] != s->total[y])
		return s->total[x] < s->total[y] ? -1 : 1;
	return (x < y) - (x > y);
}

/* Link each node's children, the largest first. */
static int link_nodes(struct svg *s)
{
	uint32_t n = s->nodes.n, *order = calloc((size_t)n + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		order[i] = i + 1;
	qsort_r(order, n, sizeof(*order), by_total, s);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t up = s->nodes.v[order[i] - 1].parent;

		s->next[order[i]] = s->first[up];
		s->first[up] = order[i];
	}
	free(order);
	return 0;
}

static double width_of(const struct svg *s, uint32_t node)
{
	return s->total[0] ? (double)s->total[node] / (double)s->total[0] *
				     (WIDTH - 2 * MARGIN) :
			     0;
}

static void put_xml(struct wp_buf *out, const struct wp_buf *text)
{
	for (size_t i = 0; i < text->len; i++) {
		if (text->data[i] == '<')
			wp_buf_str(out, "&lt;");
		else if (text->data[i] == '>')
			wp_buf_str(out, "&gt;");
		else if (text->data[i] == '&')
			wp_buf_str(out, "&amp;");
		else
			wp_buf_char(out, text->data[i]);
	}
}

/* Set s->text to S, without what XML or a reader does not bear. */
static void set_text(struct svg *s, const char *text)
{
	wp_buf_reset(&s->text);
	wp_escape_file(&s->text, text);
}

static void set_name(struct svg *s, uint32_t node)
{
	struct wp_view view;

	if (!node) {
		set_text(s, "all");
		return;
	}
	wp_call_nodes_view(&s->nodes, s->nodes.v[node - 1].frame, &view);
	set_text(s, wp_view_name(&view));
}

static void put_value(struct svg *s, uint64_t value)
{
	char cell[WP_CELL];

	if (!s->is_time) {
		wp_buf_printf(&s->out, "%" PRIu64, value);
		return;
	}
	wp_report_time(cell, value);
	wp_buf_str(&s->out, cell + strspn(cell, " "));
}

/* The box of NODE: a stripe for each category in it, and its name. */
static void put_box(struct svg *s, uint32_t node)
{
	const uint64_t *sum = &s->sum[(size_t)node * WP_NCATEGORIES];
	double x = s->x[node], w = width_of(s, node);
	uint32_t y = HEAD + s->depth[node] * ROW;
	struct wp_buf fit = WP_BUF_INIT;

	wp_buf_str(&s->out, "<g><title>");
	set_name(s, node);
	put_xml(&s->out, &s->text);
	wp_buf_str(&s->out, " - ");
	put_value(s, s->total[node]);
	wp_buf_printf(&s->out, " (%.2f %%)</title>",
		      100 * (double)s->total[node] / (double)s->total[0]);
	for (unsigned int k = 0; k < WP_NCATEGORIES; k++) {
		double part = w * (double)sum[k] / (double)s->total[node];

		if (!sum[k])
			continue;
		wp_buf_printf(&s->out,
			      "<rect x=\"%.2f\" y=\"%" PRIu32
			      "\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>",
			      x, y, part, ROW - 1, wp_category_css(k));
		x += part;
	}
	if (w > 4 * CHARACTER) {
		wp_escape_fit(&fit, s->text.data, s->text.len,
			      (size_t)(w - 6) / CHARACTER);
		wp_buf_printf(&s->out, "<text x=\"%.2f\" y=\"%" PRIu32 "\">",
			      s->x[node] + 3, y + 13);
		put_xml(&s->out, &fit);
		wp_buf_str(&s->out, "</text>");
		wp_buf_clear(&fit);
	}
	wp_buf_str(&s->out, "</g>\n");
	if (s->out.len >= CHUNK)
		wp_buf_write(&s->out, s->file);
}

/* Place NODE's children; the node that comes next in a walk of all boxes, 0: no
 * more. */
static uint32_t next_box(struct svg *s, uint32_t node)
{
	uint32_t child = s->first[node];
	double x = s->x[node];

	for (; child && width_of(s, child) >= LEAST; child = s->next[child]) {
		s->x[child] = x;
		s->depth[child] = s->depth[node] + 1;
		x += width_of(s, child);
	}
	child = s->first[node];
	if (child && width_of(s, child) >= LEAST)
		return child;
	while (node) {
		uint32_t sibling = s->next[node];

		if (sibling && width_of(s, sibling) >= LEAST)
			return sibling;
		node = s->nodes.v[node - 1].parent;
	}
	return 0;
}

static void put_legend(struct svg *s)
{
	int x = MARGIN;

	for (unsigned int k = 0; k < WP_NCATEGORIES; k++) {
		if (!s->sum[k] || x > WIDTH - 150 || !s->has_states)
			continue;
		wp_buf_reset(&s->text);
		wp_category_name(&s->text, k);
		wp_buf_printf(&s->text, " %.1f %%",
			      100 * (double)s->sum[k] / (double)s->total[0]);
		wp_buf_printf(
			&s->out,
			"<rect x=\"%d\" y=\"34\" width=\"11\" height=\"11\" "
			"fill=\"%s\"/><text class=\"out\" x=\"%d\" y=\"44\">",
			x, wp_category_css(k), x + 15);
		put_xml(&s->out, &s->text);
		wp_buf_str(&s->out, "</text>\n");
		x += 15 + CHARACTER * ((int)s->text.len + 2);
	}
}

static void put_head(struct svg *s)
{
	const struct wp_profile_meta *meta = &s->profile->meta;
	uint32_t height = HEAD + (s->deepest + 1) * ROW + MARGIN;
	struct wp_buf fit = WP_BUF_INIT;

	wp_buf_printf(&s->out,
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		      "height=\"%" PRIu32 "\" viewBox=\"0 0 %d %" PRIu32
		      "\" font-family=\"sans-serif\" font-size=\"12\">\n"
		      "<style>text{fill:#1b1f24}"
		      "@media(prefers-color-scheme:dark){.back{fill:#0d1117}"
		      ".out{fill:#e6edf3}}</style>\n"
		      "<rect class=\"back\" width=\"100%%\" height=\"100%%\" "
		      "fill=\"#fff\"/>\n<text class=\"out\" x=\"%d\" y=\"20\" "
		      "font-size=\"14\">",
		      WIDTH, height, WIDTH, height, MARGIN);
	set_text(s, wp_profile_str(s->profile, meta->command_line));
	wp_escape_fit(&fit, s->text.data ? s->text.data : "", s->text.len, 110);
	put_xml(&s->out, &fit);
	wp_buf_clear(&fit);
	if (meta->pid)
		wp_buf_printf(&s->out, " (%d)", meta->pid);
	wp_buf_str(&s->out, ": ");
	put_value(s, s->total[0]);
	wp_buf_str(&s->out, " in all</text>\n");
	put_legend(s);
}

static void put_all(struct svg *s)
{
	uint32_t node = 0;

	s->x[0] = MARGIN;
	do {
		if (s->depth[node] > s->deepest)
			s->deepest = s->depth[node];
		node = next_box(s, node);
	} while (node);
	put_head(s);
	do {
		if (s->total[0])
			put_box(s, node);
		node = next_box(s, node);
	} while (node);
	wp_buf_str(&s->out, "</svg>\n");
}

static int make_arrays(struct svg *s)
{
	size_t n = (size_t)s->nodes.n + 1;

	s->sum = calloc(n * WP_NCATEGORIES, sizeof(*s->sum));
	s->total = calloc(n, sizeof(*s->total));
	s->first = calloc(n, sizeof(*s->first));
	s->next = calloc(n, sizeof(*s->next));
	s->depth = calloc(n, sizeof(*s->depth));
	s->x = calloc(n, sizeof(*s->x));
	return s->sum && s->total && s->first && s->next && s->depth && s->x ?
		       0 :
		       -ENOMEM;
}

int wp_write_svg(const struct wp_profile *profile, enum wp_profile_kind kind,
		 FILE *out)
{
	struct svg s = { .profile = profile,
			 .columns = wp_columns_of(&profile->meta, kind),
			 .has_states = wp_columns_have_states(profile, kind),
			 .is_time = !strcmp(wp_columns_unit(profile, kind),
					    "nanoseconds"),
			 .file = out };
	int rc = wp_call_nodes_init(&s.nodes, profile, kind);

	if (!rc)
		rc = make_arrays(&s);
	if (!rc) {
		add_up(&s, kind);
		rc = link_nodes(&s);
	}
	if (!rc) {
		put_all(&s);
		rc = wp_buf_finish(&s.out, out);
	} else {
		wp_buf_clear(&s.out);
	}
	wp_buf_clear(&s.text);
	free(s.sum);
	free(s.total);
	free(s.first);
	free(s.next);
	free(s.depth);
	free(s.x);
	wp_call_nodes_clear(&s.nodes);
	return rc;
}
