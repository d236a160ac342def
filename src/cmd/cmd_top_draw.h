/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_top_draw.h - what `top` shows, and how.
 *
 * Layer: cmd.
 */
#ifndef WP_CMD_TOP_DRAW_H
#define WP_CMD_TOP_DRAW_H

#include "options.h"
#include "wallprof/process.h"
#include "wallprof/profile.h"
#include "wallprof/top.h"

enum wp_cmd_top_mode {
	MODE_THREADS,
	/* A text fills the screen: a stack, a dump. */
	MODE_TEXT,
	/* The filter is typed. */
	MODE_FILTER,
};

struct wp_cmd_top {
	const struct wp_options *options;
	/* Borrowed. */
	struct wp_profile *profile;
	const struct wp_process *process;
	struct wp_top top;
	enum wp_cmd_top_mode mode;
	bool frozen;
	/* The lower part is the stack of the selected thread. */
	bool follows;
	/* Index of the profile's threads; and its place, the first shown. */
	uint32_t selected;
	uint32_t at;
	uint32_t first;
	/* Of MODE_TEXT, owned, and its first line shown. */
	char *text;
	uint32_t text_first;
	uint64_t next_ns;
	uint64_t next_naming_ns;
	/* CPU time of wallprof and its children until the last look, and its
	 * share of the time since the one before. */
	uint64_t cost_ns;
	double cost;
	bool dirty;
};

/* The stack of the selected thread as text, which the caller owns; NULL: no
 * memory. */
char *wp_cmd_top_draw_stack(struct wp_cmd_top *top);

/* Draw all of it. */
void wp_cmd_top_draw(struct wp_cmd_top *top);

#endif
