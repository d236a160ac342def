/* SPDX-License-Identifier: Apache-2.0 */
/* html.c - a page that shows a profile: html/ with data in it.
 *
 * The data stand in the page as gzip in base64, so no text of a target can end the
 * element that holds them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "gzip.h"
#include "html_data.h"
#include "wallprof/output.h"

/* The page, as the Makefile joins it of html/: the data go where MARK stands. */
__asm__(".section .rodata\n"
	"wp_html_page:\n"
	".incbin \"page.html\"\n"
	".byte 0\n"
	".previous\n");
extern const char wp_html_page[] __attribute__((visibility("hidden")));

static const char mark[] = "@DATA@";

static int write_page(const char *data, size_t n, FILE *out)
{
	const char *at = strstr(wp_html_page, mark);
	int rc;

	errno = 0;
	fwrite(wp_html_page, 1, (size_t)(at - wp_html_page), out);
	rc = wp_base64_write(data, n, out);
	fputs(at + strlen(mark), out);
	if (!rc && (fflush(out) || ferror(out)))
		rc = errno ? -errno : -EIO;
	return rc;
}

int wp_write_html(const struct wp_profile *profile, enum wp_profile_kind kind,
		  FILE *out)
{
	char *data = NULL;
	size_t n = 0;
	FILE *memory = open_memstream(&data, &n);
	struct wp_gzip gz;
	int rc, end;

	if (!memory)
		return -ENOMEM;
	rc = wp_gzip_init(&gz, memory);
	if (!rc)
		rc = wp_html_data_write(profile, kind, &gz);
	end = wp_gzip_finish(&gz);
	if (fclose(memory) && !end)
		end = -ENOMEM;
	if (!rc)
		rc = end;
	if (!rc)
		rc = write_page(data, n, out);
	free(data);
	return rc;
}
