/* SPDX-License-Identifier: Apache-2.0 */
/* option_pairs.c - options that go only with another: see option_check.h. */
#include "option_check.h"

#include <errno.h>

#include "option_table.h"

static int check_heap(const struct wp_option_parse *p, struct wp_err *err)
{
	static const struct {
		int option;
		const char *name;
	} of_heap[] = {
		{ WP_OPT_HEAP_RATE, "--heap-rate" },
		{ WP_OPT_MAX_OVERHEAD, "--max-overhead" },
		{ WP_OPT_HEAP_ANYWAY, "--heap-anyway" },
		{ WP_OPT_HEAP_LARGE, "--heap-large" },
		{ WP_OPT_HEAP_CENSUS, "--heap-census" },
		{ WP_OPT_HEAP_PROBE, "--heap-probe" },
	};

	for (size_t i = 0; i < sizeof(of_heap) / sizeof(*of_heap); i++)
		if (wp_option_is_given(p, of_heap[i].option) &&
		    !p->o.sampler.heap)
			return wp_err_set(err, -EINVAL,
					  "%s goes with --profile heap",
					  of_heap[i].name);
		else if (p->o.sampler.heap_census &&
			 of_heap[i].option != WP_OPT_HEAP_CENSUS &&
			 wp_option_is_given(p, of_heap[i].option))
			return wp_err_set(err, -EINVAL,
					  "--heap-census makes no probes: "
					  "leave out %s",
					  of_heap[i].name);
	if (p->o.sampler.heap_census && p->o.command)
		return wp_err_set(err, -EINVAL,
				  "--heap-census is of a process that runs: "
				  "of a command nothing is left to be counted");
	return 0;
}

static int check_timeline(const struct wp_option_parse *p, struct wp_err *err)
{
	const struct wp_options *o = &p->o;
	bool has_room = wp_format_shows_time(o->format) ||
			(o->format == WP_FORMAT_PPROF && o->sampler.wall);

	if (wp_option_is_given(p, WP_OPT_TIMELINE) && !has_room)
		return wp_err_set(err, -EINVAL,
				  "--timeline is kept in the pprof file of a "
				  "wall profile: give -o FILE.pb.gz, or -o "
				  "FILE.html, which has one in any case");
	if (wp_option_is_given(p, WP_OPT_TIMELINE_SIZE) &&
	    o->action == WP_ACTION_RECORD && !o->sampler.note_holders)
		return wp_err_set(err, -EINVAL,
				  "--timeline-size goes with --timeline, or "
				  "with -o FILE.html, .speedscope.json or "
				  ".firefox.json");
	return 0;
}

/* Of a dump. */
static int check_text(const struct wp_option_parse *p, struct wp_err *err)
{
	const struct wp_options *o = &p->o;

	if (o->group && o->format != WP_FORMAT_TEXT)
		return wp_err_set(err, -EINVAL, "--group is of text");
	if (o->follow_processes && o->format != WP_FORMAT_TEXT &&
	    o->format != WP_FORMAT_JSON)
		return wp_err_set(err, -EINVAL,
				  "--follow-processes is of text and json");
	return 0;
}

static int check_block_rate(const struct wp_option_parse *p, struct wp_err *err)
{
	const struct wp_sampler_options *s = &p->o.sampler;

	if (!wp_option_is_given(p, WP_OPT_BLOCK_RATE) || s->block)
		return 0;
	if (!s->wake)
		return wp_err_set(err, -EINVAL,
				  "--block-rate goes with --profile block or "
				  "wake");
	/* A wake takes no time. */
	return s->block_rate.ns ? wp_err_set(err, -EINVAL,
					     "--block-rate of a wake profile "
					     "is one of N wakes: 1/N") :
				  0;
}

int wp_option_check_pairs(const struct wp_option_parse *parse,
			  struct wp_err *err)
{
	int rc = check_heap(parse, err);

	if (!rc)
		rc = check_timeline(parse, err);
	if (!rc)
		rc = check_text(parse, err);
	if (!rc)
		rc = check_block_rate(parse, err);
	if (!rc && wp_option_is_given(parse, WP_OPT_PUSH_INTERVAL) &&
	    !parse->o.push)
		rc = wp_err_set(err, -EINVAL, "--push-interval wants --push");
	return rc;
}
