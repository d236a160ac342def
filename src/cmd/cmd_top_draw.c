/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_top_draw.c - see cmd_top_draw.h. */
#include "cmd_top_draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "screen.h"
#include "wallprof/utf8.h"

/* Show the lines of TEXT, from its line FIRST on, in rows [ROW..END).  Returns the
 * row behind the last. */
static unsigned int draw_text(const char *text, uint32_t first,
			      unsigned int row, unsigned int end)
{
	char line[512];

	for (; *text && row < end; text += strcspn(text, "\n") + 1) {
		size_t n = strcspn(text, "\n");

		if (first) {
			first--;
		} else {
			snprintf(line, sizeof(line), "%.*s", (int)n, text);
			wp_screen_line(row++, line, WP_LOOK_PLAIN, false);
		}
		if (!text[n])
			break;
	}
	return row;
}

/* Show the text of T in ROWS rows, or its last page if it is scrolled past that. */
static void draw_whole_text(struct wp_cmd_top *t, unsigned int rows)
{
	const char *text = t->text ? t->text : "";
	uint32_t n = 0;

	for (const char *at = text; (at = strchr(at, '\n')); at++)
		n++;
	n = n > rows ? n - rows : 0;
	if (t->text_first > n)
		t->text_first = n;
	draw_text(text, t->text_first, 0, rows);
}

static enum wp_screen_look look_of(const struct wp_cmd_top *t,
				   const struct wp_top_thread *v)
{
	const struct wp_sample_key *key = &t->top.set.samples[v->sample].key;

	if (key->state == WP_STATE_RUNNING)
		return WP_LOOK_RUNNING;
	if (key->state == WP_STATE_RUNNABLE)
		return WP_LOOK_RUNNABLE;
	return key->wait == WP_WAIT_LOCK ? WP_LOOK_LOCK : WP_LOOK_PLAIN;
}

/* The table, in rows [ROW..END). */
static void draw_threads(struct wp_cmd_top *t, unsigned int row,
			 unsigned int end, const char *text)
{
	char line[512];
	uint32_t i = t->first;
	bool heading = true;

	for (; *text && row < end; text += strcspn(text, "\n") + 1) {
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\n"),
			 text);
		if (heading)
			wp_screen_line(row, line, WP_LOOK_HEADING, false);
		else
			wp_screen_line(row, line, look_of(t, &t->top.v[i]),
				       i == t->at);
		i += !heading;
		heading = false;
		row++;
	}
}

enum part {
	PART_SUMS,
	PART_THREADS,
	PART_WAITS,
	PART_FUNCTIONS,
	PART_STACK,
};

/* A part of the picture as text, which the caller owns; NULL: no memory. */
static char *write_part(struct wp_cmd_top *t, enum part part, uint32_t rows,
			unsigned int width)
{
	const struct wp_top *top = &t->top;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	int rc = 0;

	if (!out)
		return NULL;
	switch (part) {
	case PART_SUMS:
		rc = wp_top_write_sums(top, t->profile, width, out);
		break;
	case PART_THREADS:
		rc = wp_top_write_threads(top, t->profile, t->first, rows,
					  width, out);
		break;
	case PART_WAITS:
		rc = wp_top_write_places(top, t->profile, true, rows, width,
					 out);
		break;
	case PART_FUNCTIONS:
		rc = wp_top_write_places(top, t->profile, false, rows, width,
					 out);
		break;
	case PART_STACK:
		rc = top->n ? wp_top_write_stack(top, t->profile,
						 &top->v[t->at], width, out) :
			      0;
		break;
	}
	fclose(out);
	if (rc) {
		free(text);
		return NULL;
	}
	return text;
}

/* Show part PART in rows [ROW..END). */
static void draw_part(struct wp_cmd_top *t, enum part part, unsigned int row,
		      unsigned int end, unsigned int width)
{
	char *text = row < end ? write_part(t, part, end - row - 1, width) :
				 NULL;

	if (!text)
		return;
	if (part == PART_THREADS)
		draw_threads(t, row, end, text);
	else
		draw_text(text, 0, row, end);
	free(text);
}

static void draw_head(struct wp_cmd_top *t)
{
	char line[256];

	snprintf(
		line, sizeof(line),
		"wallprof top %d %.60s, by %s%s%s%s  wallprof: %.1f %% of a core",
		t->process->pid,
		wp_profile_str(t->profile, t->profile->meta.command_line),
		wp_top_sort_name(t->top.sort), t->top.filter[0] ? ", /" : "",
		t->top.filter, t->frozen ? ", FROZEN" : "", t->cost);
	wp_utf8_tame(line);
	wp_screen_line(0, line, WP_LOOK_HEADING, false);
}

void wp_cmd_top_draw(struct wp_cmd_top *t)
{
	static const char keys[] =
		"s sort  / filter  space freeze  enter stack  f follow  d dump  q quit";
	unsigned int rows, width, lower;
	char line[128];

	wp_screen_begin(&rows, &width);
	t->dirty = false;
	if (rows < 4 || width < 20)
		return;
	if (t->mode == MODE_TEXT) {
		draw_whole_text(t, rows - 1);
		wp_screen_line(rows - 1, "escape: back", WP_LOOK_DIM, false);
		wp_screen_end();
		return;
	}
	draw_head(t);
	draw_part(t, PART_SUMS, 1, 3, width);
	lower = rows >= 16 ? rows - 2 - rows / 3 : rows - 1;
	if (t->at < t->first)
		t->first = t->at;
	if (t->at >= t->first + (lower - 3))
		t->first = t->at - (lower - 3) + 1;
	draw_part(t, PART_THREADS, 2, lower, width);
	if (t->follows) {
		draw_part(t, PART_STACK, lower + 1, rows - 1, width);
	} else {
		unsigned int half = lower + 1 + (rows - 1 - lower) / 2;

		draw_part(t, PART_WAITS, lower + 1, half, width);
		draw_part(t, PART_FUNCTIONS, half, rows - 1, width);
	}
	if (t->mode == MODE_FILTER)
		snprintf(line, sizeof(line), "filter: %s_", t->top.filter);
	else
		snprintf(line, sizeof(line), "%s", keys);
	wp_screen_line(rows - 1, line, WP_LOOK_DIM, false);
	wp_screen_end();
}

char *wp_cmd_top_draw_stack(struct wp_cmd_top *t)
{
	return write_part(t, PART_STACK, 0, 0);
}
