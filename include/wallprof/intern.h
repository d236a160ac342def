/* SPDX-License-Identifier: Apache-2.0 */
/* intern.h - a table of strings, each kept once and named by an id.
 *
 * Layer: base.
 */
#ifndef WP_INTERN_H
#define WP_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"
#include "wallprof/index.h"

/* Id 0 is "" always.  Ids are dense, in order of first sight. */
struct wp_intern {
	/* The strings, NUL-terminated, end to end; owned. */
	char *text;
	size_t text_len;
	size_t text_cap;
	/* off[id]: where string ID starts in TEXT; off[0..len), owned. */
	uint32_t *off;
	uint32_t len;
	uint32_t cap;
	/* Ids by string. */
	struct wp_index index;
};

#define WP_INTERN_INIT                                                         \
	{                                                                      \
		0                                                              \
	}

/* The id of S (N bytes, no NUL inside; the rest is cut at one).  Returns the
 * id, or UINT32_MAX when there is no memory or the text is over 1 GiB.
 */
uint32_t wp_intern_add(struct wp_intern *in, const char *s, size_t n);
uint32_t wp_intern_add_str(struct wp_intern *in, const char *s);

/* The id of S; UINT32_MAX: it is not in the table. */
uint32_t wp_intern_find(const struct wp_intern *in, const char *s);

/* The string of ID, "" for one that was never given out.  Valid until the next
 * add. */
const char *wp_intern_str(const struct wp_intern *in, uint32_t id);

/* Drop each string I with TO[I] 0; the others are renumbered in their order.  0; -ENOMEM, and
 * nothing is changed. */
WP_MUST_CHECK
int wp_intern_keep(struct wp_intern *in, const uint32_t *to);

void wp_intern_clear(struct wp_intern *in);

#endif
