/* SPDX-License-Identifier: Apache-2.0 */
/* html.c - a page that shows a profile: html/ with data in it.
 *
 * The data stand in the page as gzip in base64, so no text of a target can end the
 * element that holds them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base64.h"
#include "gzip.h"
#include "html_data.h"
#include "wallprof/output.h"

/* The page, as the Makefile joins it of html/: the data go where their marks
 * stand. */
__asm__(".section .rodata\n"
	"wp_html_page:\n"
	".incbin \"page.html\"\n"
	".byte 0\n"
	".previous\n");
extern const char wp_html_page[] __attribute__((visibility("hidden")));

/* Add to PACKED the data of PROFILE, packed. */
static int pack(struct wp_buf *packed, const struct wp_profile *profile,
		enum wp_profile_kind kind)
{
	struct wp_buf plain = WP_BUF_INIT;
	int rc = wp_html_data_write(profile, kind, &plain);

	if (!rc)
		wp_gzip_pack(&plain, packed);
	wp_buf_clear(&plain);
	return rc ? rc : packed->rc;
}

/* Write *PAGE up to MARK and PACKED in its place; *PAGE goes on behind it. */
static int write_part(const char **page, const char *mark,
		      const struct wp_buf *packed, FILE *out)
{
	const char *at = strstr(*page, mark);

	fwrite(*page, 1, (size_t)(at - *page), out);
	*page = at + strlen(mark);
	return wp_base64_write(packed->data, packed->len, out);
}

static int write_page(const struct wp_buf *data, const struct wp_buf *base,
		      FILE *out)
{
	const char *page = wp_html_page;
	int rc;

	errno = 0;
	rc = write_part(&page, "@DATA@", data, out);
	if (!rc)
		rc = write_part(&page, "@BASE@", base, out);
	fputs(page, out);
	if (!rc && (fflush(out) || ferror(out)))
		rc = errno ? -errno : -EIO;
	return rc;
}

/* BEFORE may be NULL. */
static int write_both(const struct wp_profile *before,
		      const struct wp_profile *after, enum wp_profile_kind kind,
		      FILE *out)
{
	struct wp_buf data = WP_BUF_INIT, base = WP_BUF_INIT;
	int rc = pack(&data, after, kind);

	if (!rc && before)
		rc = pack(&base, before, before->meta.read_kind);
	if (!rc)
		rc = write_page(&data, &base, out);
	wp_buf_clear(&data);
	wp_buf_clear(&base);
	return rc;
}

int wp_write_html(const struct wp_profile *profile, enum wp_profile_kind kind,
		  FILE *out)
{
	return write_both(NULL, profile, kind, out);
}

int wp_write_html_diff(const struct wp_profile *before,
		       const struct wp_profile *after, FILE *out)
{
	return write_both(before, after, after->meta.read_kind, out);
}
