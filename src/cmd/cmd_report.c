/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_report.c - see cmd_report.h. */
#include "cmd_report.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <string.h>

#include "exit_status.h"
#include "messages.h"
#include "option_values.h"
#include "output_file.h"
#include "wallprof/enum_name.h"
#include "wallprof/io.h"

enum {
	OPT_FULL = 256,
	/* Most bytes of a file that is read. */
	FILE_MAX = 1 << 29,
};

static const char help[] =
	"usage: wallprof report FILE.pb.gz [-o OUT] [-f FORMAT] [--full]\n"
	"       wallprof diff BEFORE.pb.gz AFTER.pb.gz [-o OUT.html] [--full]\n"
	"\n"
	"report prints a saved profile, anybody's pprof file, or writes it as OUT:\n"
	".html, .speedscope.json, .firefox.json, .svg, .folded, .txt.  What happened\n"
	"when is there if the profile was recorded with --timeline.\n"
	"diff prints which functions take more or less, per second of recording, or\n"
	"draws it (red grew, blue shrank).\n"
	"\n"
	"  -o, --output FILE    its ending says the format; - is standard output\n"
	"  -f, --format FORMAT  html, speedscope, firefox, svg, folded or text\n"
	"      --full           every function, however small\n"
	"  -h, --help           print this and exit\n"
	"\n"
	"Exit status: 0 written, 2 not, 64 wrong usage.\n";

struct request {
	const char *output;
	/* -1: to be found. */
	int format;
	bool full;
	bool help;
	/* Names of files, borrowed from argv. */
	char **files;
	int nfiles;
};

static int parse(struct request *ret, int argc, char **argv, struct wp_err *err)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "format", required_argument, NULL, 'f' },
		{ "full", no_argument, NULL, OPT_FULL },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static const char *const formats[] = { WP_FORMATS(WP_ENUM_TEXT) };
	struct request r = { .format = -1 };
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":o:f:h", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			r.output = optarg;
			break;
		case 'f':
			r.format = wp_option_word("-f", optarg, formats,
						  WP_NFORMATS, err);
			if (r.format < 0)
				return r.format;
			break;
		case OPT_FULL:
			r.full = true;
			break;
		case 'h':
			r.help = true;
			break;
		default:
			return wp_err_set(err, -EINVAL, "%s: %s %s", argv[0],
					  c == ':' ? "an argument is missing "
						     "after" :
						     "no option",
					  argv[optind - 1]);
		}
	}
	r.files = argv + optind;
	r.nfiles = argc - optind;
	if (!r.help && r.format < 0)
		r.format = r.output ? wp_option_format(r.output, WP_FORMAT_TEXT,
						       err) :
				      WP_FORMAT_TEXT;
	*ret = r;
	return r.help || r.format >= 0 ? 0 : -EINVAL;
}

/* Read PATH into PROFILE, which the caller clears in any case. */
static int read_profile(struct wp_profile *profile, const char *path,
			struct wp_err *err)
{
	struct wp_err why = WP_ERR_INIT;
	struct wp_text text = WP_TEXT_INIT;
	int rc = wp_profile_init(profile);

	if (rc)
		return wp_err_set(err, rc, "no memory");
	rc = wp_text_read(&text, AT_FDCWD, path, FILE_MAX);
	if (rc)
		wp_err_set(&why, rc, "%s",
			   rc == -EOVERFLOW ? "over 512 MiB" : strerror(-rc));
	else
		rc = wp_pprof_read(profile, text.data, text.len, &why);
	wp_text_clear(&text);
	return rc ? wp_err_set(err, rc, "cannot read %s: %s", path, why.msg) :
		    0;
}

/* Text and folded stacks are of time. */
static int check_unit(const struct wp_profile *profile, int format,
		      struct wp_err *err)
{
	const char *unit = wp_profile_str(profile, profile->meta.value_unit);

	if (!profile->meta.value_type || !strcmp(unit, "nanoseconds") ||
	    format == WP_FORMAT_HTML || format == WP_FORMAT_SVG ||
	    format == WP_FORMAT_SPEEDSCOPE)
		return 0;
	return wp_err_set(
		err, -EINVAL,
		"its values (%s) are %s, no times: give -o FILE.html, "
		".svg or .speedscope.json",
		wp_profile_str(profile, profile->meta.value_type), unit);
}

static int mark_idle(struct wp_profile *profile, struct wp_err *err)
{
	int rc = wp_idle_mark(profile);

	return rc ? wp_err_set(err, rc, "no memory") : 0;
}

static int write_report(const struct request *r,
			const struct wp_profile *profile, struct wp_err *err)
{
	const struct wp_report_options options = { r->full, wp_output_width() };
	struct wp_output_file out = WP_OUTPUT_FILE_INIT;
	int rc = check_unit(profile, r->format, err);

	if (!rc)
		rc = wp_output_file_open(&out, r->output, err);
	if (rc)
		return rc;
	rc = wp_write_profile(profile, WP_PROFILE_WALL,
			      (enum wp_format)r->format, &options, out.stream);
	return wp_output_file_commit(&out, rc, err);
}

static int write_diff(const struct request *r, const struct wp_profile *before,
		      const struct wp_profile *after, struct wp_err *err)
{
	struct wp_output_file out = WP_OUTPUT_FILE_INIT;
	int rc = wp_output_file_open(&out, r->output, err);

	if (rc)
		return rc;
	rc = r->format == WP_FORMAT_HTML ?
		     wp_write_html_diff(before, after, WP_PROFILE_WALL,
					out.stream) :
		     wp_write_diff(before, after, WP_PROFILE_WALL, r->full,
				   out.stream);
	return wp_output_file_commit(&out, rc, err);
}

static int usage(const char *what)
{
	wp_say("wallprof: %s (wallprof report --help tells more)", what);
	return WP_EXIT_USAGE;
}

static int end(int rc, const struct wp_err *err)
{
	if (rc)
		wp_say("wallprof: %s", err->msg);
	return rc ? WP_EXIT_NOTHING : WP_EXIT_WHOLE;
}

int wp_cmd_report(int argc, char **argv)
{
	struct wp_err err = WP_ERR_INIT;
	struct wp_profile profile;
	struct request r;
	int rc;

	if (parse(&r, argc, argv, &err))
		return usage(err.msg);
	if (r.help)
		return fputs(help, stdout) < 0 || fflush(stdout) ?
			       WP_EXIT_NOTHING :
			       WP_EXIT_WHOLE;
	if (r.nfiles != 1)
		return usage("report wants one FILE.pb.gz");
	if (r.format == WP_FORMAT_JSON || r.format == WP_FORMAT_PPROF)
		return usage("report writes html, speedscope, firefox, svg, "
			     "folded or text");
	rc = read_profile(&profile, r.files[0], &err);
	if (!rc)
		rc = mark_idle(&profile, &err);
	if (!rc)
		rc = write_report(&r, &profile, &err);
	wp_profile_clear(&profile);
	return end(rc, &err);
}

int wp_cmd_diff(int argc, char **argv)
{
	struct wp_err err = WP_ERR_INIT;
	struct wp_profile before, after;
	struct request r;
	int rc, rc_after;

	if (parse(&r, argc, argv, &err))
		return usage(err.msg);
	if (r.help)
		return fputs(help, stdout) < 0 || fflush(stdout) ?
			       WP_EXIT_NOTHING :
			       WP_EXIT_WHOLE;
	if (r.nfiles != 2)
		return usage("diff wants BEFORE.pb.gz and AFTER.pb.gz");
	if (r.format != WP_FORMAT_HTML && r.format != WP_FORMAT_TEXT)
		return usage("diff writes html or text");
	rc = read_profile(&before, r.files[0], &err);
	rc_after = read_profile(&after, r.files[1], &err);
	if (!rc)
		rc = rc_after;
	if (!rc)
		rc = write_diff(&r, &before, &after, &err);
	wp_profile_clear(&before);
	wp_profile_clear(&after);
	return end(rc, &err);
}
