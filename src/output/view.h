/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - a frame to be shown; an inlined function is a frame of its own. */
#ifndef WP_VIEW_H
#define WP_VIEW_H

#include <stdbool.h>

#include "wallprof/profile.h"

struct wp_view {
	/* Equal for frames of the same function. */
	uint64_t id;
	/* Its location, and its level of inlining there. */
	uint32_t loc;
	uint32_t level;
	/* Unescaped, borrowed from the profile.
	 * FUNCTION is NULL where only the address is known; FILE and MODULE,
	 * base names, may be empty. */
	const char *function;
	const char *file;
	const char *module;
	uint32_t line;
	bool guessed;
	bool kernel;
	bool inlined;
	/* A text about the stack, "[truncated: ...]", no frame. */
	bool text;
	char address[24];
};

/* The function, or the address; valid for VIEW's life. */
static inline const char *wp_view_name(const struct wp_view *view)
{
	return view->function ? view->function : view->address;
}

/* Set VIEW to level LEVEL of location LOC: inlined functions come first. */
void wp_view_set(const struct wp_profile *profile, uint32_t loc, uint32_t level,
		 struct wp_view *view);

/* Call EACH for the frames of STACK, from its root to its leaf if ROOT_FIRST, else
 * from its leaf to its root, until EACH returns false. */
void wp_view_walk(const struct wp_profile *profile, uint32_t stack,
		  bool root_first,
		  bool (*each)(void *ctx, const struct wp_view *view),
		  void *ctx);

#endif
