/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_report.c - see cmd_report.h. */
#include "cmd_report.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "exit_status.h"
#include "messages.h"
#include "output_file.h"
#include "signals.h"
#include "wallprof/io.h"
#include "wallprof/output.h"

/* Most bytes of a file that is read. */
enum { FILE_MAX = 1 << 29 };

/* Read PATH into PROFILE, which the caller clears in any case. */
static int read_profile(struct wp_profile *profile, const char *path,
			struct wp_err *err)
{
	struct wp_err why = WP_ERR_INIT;
	struct wp_text text = WP_TEXT_INIT;
	int rc = wp_profile_init(profile);

	if (rc)
		return wp_err_set(err, rc, "no memory");
	rc = wp_text_take(&text, path, FILE_MAX);
	if (rc)
		wp_err_set(&why, rc, "%s",
			   rc == -EOVERFLOW ? "over 512 MiB" : strerror(-rc));
	else
		rc = wp_pprof_read(profile, text.data, text.len, &why);
	wp_text_clear(&text);
	return rc ? wp_err_set(err, rc, "cannot read %s: %s",
			       strcmp(path, "-") ? path : "standard input",
			       why.msg) :
		    0;
}

/* Text and the Firefox Profiler are of time. */
static int check_unit(const struct wp_profile *profile, enum wp_format format,
		      struct wp_err *err)
{
	const char *unit = wp_profile_str(profile, profile->meta.value_unit);

	if (!profile->meta.value_type || !strcmp(unit, "nanoseconds") ||
	    format == WP_FORMAT_HTML || format == WP_FORMAT_SVG ||
	    format == WP_FORMAT_SPEEDSCOPE || format == WP_FORMAT_FOLDED)
		return 0;
	return wp_err_set(
		err, -EINVAL,
		"its values (%s) are %s, no times: give -o FILE.html, "
		".svg, .folded or .speedscope.json",
		wp_profile_str(profile, profile->meta.value_type), unit);
}

static int mark_idle(struct wp_profile *profile, struct wp_err *err)
{
	int rc = wp_idle_mark(profile);

	return rc ? wp_err_set(err, rc, "no memory") : 0;
}

static void remove_file(const void *out)
{
	wp_output_file_remove(out);
}

/* Open OUT as O says; a signal that ends wallprof leaves no part of it, until
 * commit_output. */
static int open_output(struct wp_output_file *out, const struct wp_options *o,
		       struct wp_err *err)
{
	int rc;

	/* Past RLIMIT_FSIZE write(2) fails instead. */
	signal(SIGXFSZ, SIG_IGN);
	if (!wp_output_file_is_stream(o->output))
		wp_signals_end_at_once(remove_file, out);
	rc = wp_output_file_open(out, o->output, err);
	if (rc)
		return rc;
	/* What is written in its place is not left half done.  What a pipe is given
	 * ends by SIGPIPE: "| head" has nothing to say. */
	if (out->is_cut)
		wp_signals_put_off(2);
	else if (!wp_output_file_is_kept(out))
		signal(SIGPIPE, SIG_DFL);
	return 0;
}

static int commit_output(struct wp_output_file *out, int rc, struct wp_err *err)
{
	rc = wp_output_file_commit(out, rc, err);
	wp_signals_leave();
	return rc;
}

static int write_report(const struct wp_options *o,
			const struct wp_profile *profile, struct wp_err *err)
{
	const struct wp_report_options options = wp_output_file_style(o->output,
								      o->full);
	struct wp_output_file out = WP_OUTPUT_FILE_INIT;
	int rc = check_unit(profile, o->format, err);

	if (!rc)
		rc = open_output(&out, o, err);
	if (rc)
		return rc;
	rc = wp_write_profile(profile, profile->meta.read_kind, o->format,
			      &options, out.stream);
	return commit_output(&out, rc, err);
}

static int write_diff(const struct wp_options *o,
		      const struct wp_profile *before,
		      const struct wp_profile *after, struct wp_err *err)
{
	struct wp_output_file out = WP_OUTPUT_FILE_INIT;
	int rc = open_output(&out, o, err);

	if (rc)
		return rc;
	rc = o->format == WP_FORMAT_HTML ?
		     wp_write_html_diff(before, after, out.stream) :
		     wp_write_diff(before, after, o->full, out.stream);
	return commit_output(&out, rc, err);
}

/* What a command that only reads files ends with. */
static int end(int rc, const struct wp_err *err)
{
	if (rc)
		wp_say("wallprof: %s", err->msg);
	return rc ? WP_EXIT_NOTHING : WP_EXIT_WHOLE;
}

int wp_cmd_report(const struct wp_options *options)
{
	struct wp_err err = WP_ERR_INIT;
	struct wp_profile profile;
	int rc = read_profile(&profile, options->files[0], &err);

	if (!rc)
		rc = mark_idle(&profile, &err);
	if (!rc)
		rc = write_report(options, &profile, &err);
	wp_profile_clear(&profile);
	return end(rc, &err);
}

int wp_cmd_diff(const struct wp_options *options)
{
	struct wp_err err = WP_ERR_INIT;
	struct wp_profile before, after;
	int rc = read_profile(&before, options->files[0], &err);
	int rc_after = read_profile(&after, options->files[1],
				    rc ? NULL : &err);

	if (!rc)
		rc = rc_after;
	if (!rc)
		rc = wp_diff_check(&before, &after, &err);
	if (!rc)
		rc = write_diff(options, &before, &after, &err);
	wp_profile_clear(&before);
	wp_profile_clear(&after);
	return end(rc, &err);
}
