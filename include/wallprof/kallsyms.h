/* SPDX-License-Identifier: Apache-2.0 */
/* kallsyms.h - names of the kernel's functions.
 *
 * Layer: proc.
 */
#ifndef WP_KALLSYMS_H
#define WP_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"

struct wp_kallsym {
	uint64_t avma;
	/* Offset of the name in the table's text. */
	uint32_t name;
};

struct wp_kallsyms {
	/* v[0..len), sorted by address; owned. */
	struct wp_kallsym *v;
	size_t len, cap;
	/* The names, NUL-terminated: text[0..text_len), owned. */
	char *text;
	size_t text_len, text_cap;
	/* /proc/kallsyms was read, or could not be. */
	bool read;
};

#define WP_KALLSYMS_INIT                                                       \
	{                                                                      \
		0                                                              \
	}

/* The name of the kernel function that holds AVMA, or NULL.  /proc/kallsyms is
 * read at the first call; without CAP_SYSLOG, or with kernel.kptr_restrict, it
 * has no addresses and nothing is found.  Valid until TABLE is cleared. */
const char *wp_kallsyms_find(struct wp_kallsyms *table, uint64_t avma);

/* Add the functions in TEXT[0..len), lines like "ffffffff81000000 T _text
 * [module]" (kernel/kallsyms.c, s_show); data and lines with address 0 are left
 * out.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_kallsyms_parse(struct wp_kallsyms *table, const char *text, size_t len);

void wp_kallsyms_clear(struct wp_kallsyms *table);

#endif
