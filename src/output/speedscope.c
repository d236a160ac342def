/* SPDX-License-Identifier: Apache-2.0 */
/* speedscope.c - JSON of speedscope: a sampled profile for each thread.
 *
 * https://www.speedscope.app/file-format-schema.json (npm speedscope, 1.25.0).  The
 * format knows no state: it is a last frame, "[waiting: lock]".  Time in which a
 * thread was not watched has no frame, so that all threads have one clock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "call_nodes.h"
#include "category.h"
#include "columns.h"
#include "json_text.h"
#include "lanes.h"
#include "processes.h"
#include "wallprof/output.h"
#include "wallprof/vec.h"

enum { CHUNK = 1 << 16 };

struct scope {
	const struct wp_profile *profile;
	struct wp_lanes lanes;
	struct wp_call_nodes nodes;
	/* path[0..cap): frames of one stack. */
	uint32_t *path;
	uint32_t cap;
	struct wp_buf out;
	struct wp_buf name;
	FILE *file;
};

static void flush(struct scope *s)
{
	if (s->out.len >= CHUNK)
		wp_buf_write(&s->out, s->file);
}

/* Add the string that is in s->name, and empty it. */
static void put_name(struct scope *s)
{
	wp_buf_char(&s->name, '\0');
	if (s->name.rc)
		s->out.rc = s->name.rc;
	else
		wp_json_text(&s->out, s->name.data);
	wp_buf_reset(&s->name);
}

static void put_frames(struct scope *s)
{
	for (uint32_t i = 0; i < s->nodes.nframes; i++) {
		struct wp_view view;

		wp_call_nodes_view(&s->nodes, i, &view);
		wp_buf_str(&s->out, i ? ",\n{\"name\":" : "{\"name\":");
		wp_json_text(&s->out, wp_view_name(&view));
		if (*view.file || *view.module) {
			wp_buf_str(&s->out, ",\"file\":");
			wp_json_text(&s->out,
				     *view.file ? view.file : view.module);
		}
		if (view.line)
			wp_buf_printf(&s->out, ",\"line\":%" PRIu32, view.line);
		wp_buf_char(&s->out, '}');
		flush(s);
	}
	for (unsigned int i = 0; i < WP_NCATEGORIES; i++) {
		wp_buf_str(&s->out, s->nodes.nframes || i ? ",\n{\"name\":" :
							    "{\"name\":");
		wp_buf_char(&s->name, '[');
		wp_category_name(&s->name, i);
		wp_buf_char(&s->name, ']');
		put_name(s);
		wp_buf_char(&s->out, '}');
	}
}

/* The stack of KEY, root first. */
static void put_stack(struct scope *s, const struct wp_sample_key *key)
{
	uint32_t n = 0;

	for (uint32_t at = s->nodes.leaf[key->stack]; at;
	     at = s->nodes.v[at - 1].parent) {
		if (WP_VEC_ROOM(s->path, n, s->cap, 1)) {
			s->out.rc = -ENOMEM;
			return;
		}
		s->path[n++] = s->nodes.v[at - 1].frame;
	}
	while (n--)
		wp_buf_printf(&s->out, "%" PRIu32 ",", s->path[n]);
	wp_buf_printf(&s->out, "%" PRIu32,
		      s->nodes.nframes + wp_category_of(key));
}

static void put_samples(struct scope *s, uint32_t thread, uint64_t start)
{
	wp_buf_str(&s->out, "\"samples\":[");
	if (start)
		wp_buf_str(&s->out, "[]");
	for (uint32_t i = s->lanes.first[thread];
	     i < s->lanes.first[thread + 1]; i++) {
		struct wp_lane_row row = wp_lanes_row(&s->lanes, thread, i);

		wp_buf_str(&s->out,
			   start || i > s->lanes.first[thread] ? ",\n[" : "[");
		if (row.key)
			put_stack(s, row.key);
		wp_buf_char(&s->out, ']');
		flush(s);
	}
}

static void put_thread(struct scope *s, uint32_t thread, const char *unit)
{
	const struct wp_profile_thread *t = &s->profile->threads[thread];
	uint64_t start = s->lanes.timed[thread] ?
				 wp_lanes_start_ns(&s->lanes, thread) :
				 0;
	uint64_t end = start;

	for (uint32_t i = s->lanes.first[thread];
	     i < s->lanes.first[thread + 1]; i++)
		end += wp_lanes_row(&s->lanes, thread, i).value;
	wp_buf_str(&s->out, "{\"type\":\"sampled\",\"name\":");
	wp_processes_title(&s->name, s->profile, t);
	wp_processes_id(&s->name, t);
	wp_buf_str(&s->name, s->lanes.timed[thread] ? "" : ", sums");
	put_name(s);
	wp_buf_printf(&s->out,
		      ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64
		      ",\n",
		      unit, end);
	put_samples(s, thread, start);
	wp_buf_str(&s->out, "],\n\"weights\":[");
	if (start)
		wp_buf_printf(&s->out, "%" PRIu64, start);
	for (uint32_t i = s->lanes.first[thread];
	     i < s->lanes.first[thread + 1]; i++) {
		wp_buf_printf(&s->out, "%s%" PRIu64,
			      start || i > s->lanes.first[thread] ? "," : "",
			      wp_lanes_row(&s->lanes, thread, i).value);
		flush(s);
	}
	wp_buf_str(&s->out, "]}");
}

static void put_all(struct scope *s, enum wp_profile_kind kind)
{
	const struct wp_profile_meta *meta = &s->profile->meta;
	const char *unit = wp_columns_unit(s->profile, kind);
	bool first = true;

	wp_buf_str(&s->out, "{\"$schema\":\"https://www.speedscope.app/"
			    "file-format-schema.json\",\n\"name\":");
	wp_buf_str(&s->name, wp_profile_str(s->profile, meta->command_line));
	if (meta->pid)
		wp_buf_printf(&s->name, " (%d)", meta->pid);
	put_name(s);
	wp_buf_str(&s->out, ",\"exporter\":\"wallprof " WP_VERSION "\","
			    "\n\"shared\":{\"frames\":[\n");
	put_frames(s);
	wp_buf_str(&s->out, "]},\n\"profiles\":[\n");
	for (uint32_t i = 0; i < s->profile->nthreads; i++) {
		if (s->lanes.first[i] == s->lanes.first[i + 1])
			continue;
		wp_buf_str(&s->out, first ? "" : ",\n");
		first = false;
		put_thread(s, i,
			   strcmp(unit, "nanoseconds") &&
					   strcmp(unit, "bytes") ?
				   "none" :
				   unit);
	}
	wp_buf_str(&s->out, "]}\n");
}

int wp_write_speedscope(const struct wp_profile *profile,
			enum wp_profile_kind kind, FILE *out)
{
	struct scope s = { .profile = profile, .file = out };
	int rc = wp_lanes_init(&s.lanes, profile, kind);
	int nodes_rc = wp_call_nodes_init(&s.nodes, profile, kind);

	if (!rc)
		rc = nodes_rc;
	if (!rc) {
		put_all(&s, kind);
		rc = wp_buf_finish(&s.out, out);
	} else {
		wp_buf_clear(&s.out);
	}
	wp_buf_clear(&s.name);
	free(s.path);
	wp_call_nodes_clear(&s.nodes);
	wp_lanes_clear(&s.lanes);
	return rc;
}
