/* SPDX-License-Identifier: Apache-2.0 */
/* formats.c - see wp_write_profile of wallprof/output.h. */
#include <errno.h>

#include "wallprof/output.h"

int wp_write_profile(const struct wp_profile *profile,
		     enum wp_profile_kind kind, enum wp_format format,
		     const struct wp_report_options *options, FILE *out)
{
	switch (format) {
	case WP_FORMAT_PPROF:
		return wp_write_pprof(profile, kind, out);
	case WP_FORMAT_FOLDED:
		return wp_write_folded(profile, kind, out);
	case WP_FORMAT_TEXT:
		return wp_write_text(profile, kind, options, out);
	case WP_FORMAT_HTML:
		return wp_write_html(profile, kind, out);
	case WP_FORMAT_SPEEDSCOPE:
		return wp_write_speedscope(profile, kind, out);
	case WP_FORMAT_FIREFOX:
		return wp_write_firefox(profile, kind, out);
	case WP_FORMAT_SVG:
		return wp_write_svg(profile, kind, out);
	default:
		return -EINVAL;
	}
}
