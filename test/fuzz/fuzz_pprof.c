/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_pprof.c - pprof files of anybody, read and written in every format.
 *
 * Layer: output.
 */
#include <errno.h>

#include "fuzz.h"
#include "wallprof/output.h"

static void write_as(const struct wp_profile *profile, enum wp_format format)
{
	static const struct wp_report_options options = { .full = true };
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	FUZZ_CHECK(out);
	FUZZ_CHECK(!wp_write_profile(profile, WP_PROFILE_WALL, format, &options,
				     out));
	fclose(out);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wp_err err = WP_ERR_INIT;
	struct wp_profile profile;
	int rc;

	FUZZ_CHECK(!wp_profile_init(&profile));
	rc = wp_pprof_read(&profile, data, size, &err);
	FUZZ_CHECK(rc == 0 || rc == -EBADMSG || rc == -EOVERFLOW);
	FUZZ_CHECK(rc == 0 || err.msg[0]);
	/* Of the rest nobody asks. */
	if (!rc) {
		write_as(&profile, WP_FORMAT_HTML);
		write_as(&profile, WP_FORMAT_SPEEDSCOPE);
		write_as(&profile, WP_FORMAT_FIREFOX);
		write_as(&profile, WP_FORMAT_SVG);
		write_as(&profile, WP_FORMAT_FOLDED);
		write_as(&profile, WP_FORMAT_TEXT);
	}
	wp_profile_clear(&profile);
	return 0;
}
