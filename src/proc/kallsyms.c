/* SPDX-License-Identifier: Apache-2.0 */
/* kallsyms.c - see wallprof/kallsyms.h. */
#include "wallprof/kallsyms.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "text_scan.h"
#include "wallprof/io.h"
#include "wallprof/lower_bound.h"
#include "wallprof/vec.h"

enum { FILE_MAX = 128 << 20 };

static int add(struct wp_kallsyms *table, uint64_t avma, const char *name,
	       size_t len)
{
	if (WP_VEC_ROOM(table->v, table->len, table->cap, 1) ||
	    WP_VEC_ROOM(table->text, table->text_len, table->text_cap, len + 1))
		return -ENOMEM;
	if (table->text_len > UINT32_MAX)
		return -ENOMEM;
	table->v[table->len++] = (struct wp_kallsym){
		avma, (uint32_t)table->text_len
	};
	memcpy(table->text + table->text_len, name, len);
	table->text[table->text_len + len] = '\0';
	table->text_len += len + 1;
	return 0;
}

/* "ADDRESS TYPE NAME[\t[MODULE]]" */
static int parse_line(struct wp_kallsyms *table, const char *p, const char *eol)
{
	struct wp_text_scan c = { p, eol, false };
	uint64_t avma = wp_text_scan_number(&c, 16);
	const char *name = c.p + 3, *end;

	if (c.bad || !avma || eol - c.p < 4 || c.p[0] != ' ' ||
	    !memchr("tTwW", c.p[1], 4) || c.p[2] != ' ')
		return 0;
	for (end = name; end < eol && *end != '\t' && *end != ' ';)
		end++;
	return end > name ? add(table, avma, name, (size_t)(end - name)) : 0;
}

static int by_avma(const void *a, const void *b)
{
	const struct wp_kallsym *x = a, *y = b;

	return (x->avma > y->avma) - (x->avma < y->avma);
}

int wp_kallsyms_parse(struct wp_kallsyms *table, const char *text, size_t len)
{
	const char *p = text, *end = text + len;
	int rc = 0;

	while (p < end && !rc) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		/* A line that was cut has lost a part of its name. */
		if (!nl)
			break;
		rc = parse_line(table, p, nl);
		p = nl + 1;
	}
	if (table->len)
		qsort(table->v, table->len, sizeof(*table->v), by_avma);
	return rc;
}

static void read_table(struct wp_kallsyms *table)
{
	struct wp_text text = WP_TEXT_INIT;

	table->read = true;
	if (!wp_text_read(&text, AT_FDCWD, "/proc/kallsyms", FILE_MAX) &&
	    wp_kallsyms_parse(table, text.data, text.len))
		table->len = 0;
	wp_text_clear(&text);
}

const char *wp_kallsyms_find(struct wp_kallsyms *table, uint64_t avma)
{
	size_t n;

	if (!table->read)
		read_table(table);
	n = WP_LOWER_BOUND(table->len, i, table->v[i].avma <= avma);
	return n ? table->text + table->v[n - 1].name : NULL;
}

void wp_kallsyms_clear(struct wp_kallsyms *table)
{
	free(table->v);
	free(table->text);
	*table = (struct wp_kallsyms)WP_KALLSYMS_INIT;
}
