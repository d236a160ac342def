/* SPDX-License-Identifier: Apache-2.0 */
/* firefox.c - JSON of the Firefox Profiler: threads by time, waits as markers.
 *
 * "Processed" profile, preprocessedProfileVersion 66, in the layout that samply
 * writes (samply cd249936, fxprof-processed-profile); profiler.firefox.com reads
 * older versions for good.  The state is the category of a stack's last frame, so
 * each leaf is a stack of its own per category.  Weights are milliseconds.
 */
#include "firefox.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "category.h"
#include "json_text.h"
#include "wallprof/output.h"

enum {
	CHUNK = 1 << 16,
	/* Threads that are shown at once; the others are a click away. */
	VISIBLE = 60,
};

static void flush(struct wp_firefox *f)
{
	if (f->out.len >= CHUNK)
		wp_buf_write(&f->out, f->file);
}

void wp_firefox_begin(struct wp_firefox *f, const char *before,
		      const char *name)
{
	wp_buf_printf(&f->out, "%s\"%s\":[", before, name);
	f->comma = false;
}

void wp_firefox_next(struct wp_firefox *f)
{
	if (f->comma)
		wp_buf_char(&f->out, ',');
	f->comma = true;
	flush(f);
}

void wp_firefox_end(struct wp_firefox *f)
{
	wp_buf_char(&f->out, ']');
}

void wp_firefox_uint(struct wp_firefox *f, uint64_t n)
{
	wp_firefox_next(f);
	wp_buf_printf(&f->out, "%" PRIu64, n);
}

void wp_firefox_ms(struct wp_firefox *f, uint64_t ns)
{
	wp_firefox_next(f);
	wp_buf_printf(&f->out, "%" PRIu64 ".%06" PRIu64, ns / 1000000,
		      ns % 1000000);
}

/* An array NAME of N times TEXT. */
static void put_same(struct wp_firefox *f, const char *name, uint32_t n,
		     const char *text)
{
	wp_firefox_begin(f, ",", name);
	for (uint32_t i = 0; i < n; i++) {
		wp_firefox_next(f);
		wp_buf_str(&f->out, text);
	}
	wp_firefox_end(f);
}

static uint32_t string_id(struct wp_firefox *f, const char *s)
{
	uint32_t id = wp_intern_add_str(&f->strings, s);

	if (id != UINT32_MAX)
		return id;
	f->out.rc = -ENOMEM;
	return 0;
}

uint32_t wp_firefox_stack(struct wp_firefox *f, const struct wp_sample_key *key)
{
	uint32_t leaf = key ? f->nodes.leaf[key->stack] : 0, i;
	unsigned int category = leaf ? wp_category_of(key) : 0;

	if (!leaf)
		return UINT32_MAX;
	i = wp_pairs_add(&f->leaves, leaf - 1, category);
	if (i == UINT32_MAX ||
	    wp_pairs_add(&f->leaf_frames, f->nodes.v[leaf - 1].frame,
			 category) == UINT32_MAX) {
		f->out.rc = -ENOMEM;
		return UINT32_MAX;
	}
	return f->nodes.n + i;
}

static void put_categories(struct wp_firefox *f)
{
	struct wp_buf name = WP_BUF_INIT;

	wp_firefox_begin(f, "", "categories");
	wp_firefox_next(f);
	wp_buf_str(&f->out, "{\"name\":\"Other\",\"color\":\"grey\","
			    "\"subcategories\":[\"Other\"]}");
	for (unsigned int i = 0; i < WP_NCATEGORIES; i++) {
		wp_buf_reset(&name);
		wp_category_name(&name, i);
		wp_buf_char(&name, '\0');
		if (name.rc)
			break;
		wp_firefox_next(f);
		wp_buf_printf(&f->out,
			      "{\"name\":\"%s\",\"color\":\"%s\","
			      "\"subcategories\":[\"Other\"]}",
			      name.data, wp_category_firefox(i));
	}
	wp_firefox_end(f);
	wp_buf_clear(&name);
}

/* Has THREAD samples?  The Firefox Profiler wants a thread, if none has any. */
static bool is_put(const struct wp_firefox *f, uint32_t thread)
{
	return !f->lanes.nrows ||
	       f->lanes.first[thread] < f->lanes.first[thread + 1];
}

static void put_visible(struct wp_firefox *f)
{
	uint32_t n = 0;

	wp_firefox_begin(f, ",", "initialVisibleThreads");
	for (uint32_t i = 0; i < f->profile->nthreads && n < VISIBLE; i++)
		if (is_put(f, i))
			wp_firefox_uint(f, n++);
	wp_firefox_end(f);
}

static void put_meta(struct wp_firefox *f)
{
	const struct wp_profile_meta *m = &f->profile->meta;

	wp_buf_str(&f->out, "{\"meta\":{");
	put_categories(f);
	wp_buf_printf(&f->out,
		      ",\"interval\":%.6f,\"startTime\":%.3f,\"product\":",
		      /* Unless it is known, the Firefox Profiler's own. */
		      m->period_ns > 0 ? (double)m->period_ns / 1e6 : 1,
		      (double)m->time_ns / 1e6);
	wp_json_text(&f->out, wp_profile_str(f->profile, m->command_line));
	wp_buf_str(
		&f->out,
		",\"debug\":false,\"extensions\":{\"length\":0,\"baseURL\":[],"
		"\"id\":[],\"name\":[]},\"preprocessedProfileVersion\":66,"
		"\"processType\":0,\"oscpu\":\"Linux\",\"sampleUnits\":{"
		"\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":"
		"\"\xc2\xb5s\"},\"symbolicated\":true,\"pausedRanges\":[],"
		"\"version\":24,\"usesOnlyOneStackType\":true,"
		"\"sourceCodeIsNotOnSearchfox\":true,"
		"\"importedFrom\":\"wallprof " WP_VERSION "\","
		"\"markerSchema\":[{\"name\":\"wait\",\"chartLabel\":"
		"\"{marker.name}\",\"tooltipLabel\":\"{marker.name}\","
		"\"tableLabel\":\"{marker.name} {marker.data.object} "
		"{marker.data.holder}\",\"display\":[\"marker-chart\","
		"\"marker-table\",\"timeline-overview\"],\"fields\":[{\"key\":"
		"\"object\",\"label\":\"On\",\"format\":\"string\"},{\"key\":"
		"\"holder\",\"label\":\"Held by\",\"format\":\"string\"}]}]");
	put_visible(f);
	wp_buf_str(&f->out, "},\"libs\":[],\"pages\":[],\"counters\":[],"
			    "\"profilerOverhead\":[],\"threads\":[");
	f->comma = false;
}

static void put_stack_table(struct wp_firefox *f)
{
	uint32_t n = f->nodes.n, leaves = f->leaves.len;

	wp_firefox_begin(f, "\n],\"shared\":{\"stackTable\":{", "frame");
	for (uint32_t i = 0; i < n; i++)
		wp_firefox_uint(f, f->nodes.v[i].frame);
	for (uint32_t i = 0; i < leaves; i++)
		wp_firefox_uint(
			f,
			f->nodes.nframes +
				wp_pairs_add(&f->leaf_frames,
					     f->nodes.v[f->leaves.v[i].a].frame,
					     f->leaves.v[i].b));
	wp_firefox_end(f);
	wp_firefox_begin(f, ",", "prefixOffset");
	for (uint32_t i = 0; i < n + leaves; i++) {
		uint64_t node = i < n ? i : f->leaves.v[i - n].a;
		uint32_t parent = f->nodes.v[node].parent;

		wp_firefox_uint(f, parent ? i + 1 - parent : 0);
	}
	wp_firefox_end(f);
	wp_buf_printf(&f->out, ",\"length\":%" PRIu32 "}", n + leaves);
}

static void put_frame_table(struct wp_firefox *f)
{
	uint32_t n = f->nodes.nframes, all = n + f->leaf_frames.len;

	wp_buf_printf(&f->out, ",\n\"frameTable\":{\"length\":%" PRIu32, all);
	wp_firefox_begin(f, ",", "func");
	for (uint32_t i = 0; i < all; i++)
		wp_firefox_uint(f, i < n ? i : f->leaf_frames.v[i - n].a);
	wp_firefox_end(f);
	wp_firefox_begin(f, ",", "category");
	for (uint32_t i = 0; i < all; i++)
		wp_firefox_uint(f, i < n ? 0 :
					   WP_FIREFOX_CATEGORY +
						   f->leaf_frames.v[i - n].b);
	wp_firefox_end(f);
	wp_firefox_begin(f, ",", "line");
	for (uint32_t i = 0; i < all; i++) {
		uint64_t frame = i < n ? i : f->leaf_frames.v[i - n].a;
		uint32_t line = f->nodes.frames[frame].line;

		wp_firefox_next(f);
		if (line)
			wp_buf_printf(&f->out, "%" PRIu32, line);
		else
			wp_buf_str(&f->out, "null");
	}
	wp_firefox_end(f);
	put_same(f, "subcategory", all, "0");
	put_same(f, "column", all, "null");
	put_same(f, "address", all, "-1");
	put_same(f, "nativeSymbol", all, "null");
	put_same(f, "inlineDepth", all, "0");
	put_same(f, "innerWindowID", all, "null");
	put_same(f, "originalLocation", all, "null");
	wp_buf_char(&f->out, '}');
}

static void put_func_table(struct wp_firefox *f)
{
	uint32_t n = f->nodes.nframes;

	wp_buf_printf(&f->out, ",\n\"funcTable\":{\"length\":%" PRIu32, n);
	wp_firefox_begin(f, ",", "name");
	for (uint32_t i = 0; i < n; i++)
		wp_firefox_uint(f, f->frame_name[i]);
	wp_firefox_end(f);
	/* Source I is the file of function I. */
	wp_firefox_begin(f, ",", "source");
	for (uint32_t i = 0; i < n; i++)
		wp_firefox_uint(f, i);
	wp_firefox_end(f);
	put_same(f, "isJS", n, "false");
	put_same(f, "relevantForJS", n, "false");
	put_same(f, "resource", n, "-1");
	put_same(f, "lineNumber", n, "null");
	put_same(f, "columnNumber", n, "null");
	put_same(f, "originalLocation", n, "null");
	wp_buf_printf(&f->out, "},\n\"sources\":{\"length\":%" PRIu32, n);
	wp_firefox_begin(f, ",", "filename");
	for (uint32_t i = 0; i < n; i++)
		wp_firefox_uint(f, f->frame_file[i]);
	wp_firefox_end(f);
	put_same(f, "id", n, "null");
	put_same(f, "startLine", n, "1");
	put_same(f, "startColumn", n, "1");
	put_same(f, "sourceMapURL", n, "null");
	put_same(f, "content", n, "null");
	wp_buf_char(&f->out, '}');
}

static void put_shared(struct wp_firefox *f)
{
	put_stack_table(f);
	put_frame_table(f);
	put_func_table(f);
	wp_buf_str(&f->out,
		   ",\n\"nativeSymbols\":{\"length\":0,\"address\":[],"
		   "\"functionSize\":[],\"libIndex\":[],\"name\":[]},"
		   "\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],"
		   "\"host\":[],\"type\":[]},\"sourceLocationTable\":{"
		   "\"length\":0,\"source\":[],\"line\":[],\"column\":[]}");
	wp_firefox_begin(f, ",", "stringArray");
	for (uint32_t i = 0; i < f->strings.len; i++) {
		wp_firefox_next(f);
		wp_json_text(&f->out, wp_intern_str(&f->strings, i));
	}
	wp_buf_str(&f->out, "]}}\n");
}

static void put_threads(struct wp_firefox *f)
{
	bool comma = false;

	for (uint32_t i = 0; i < f->profile->nthreads; i++) {
		if (!is_put(f, i))
			continue;
		if (comma)
			wp_buf_str(&f->out, ",\n");
		comma = true;
		wp_firefox_thread(f, i);
	}
}

/* Names of categories are strings 1 to WP_NCATEGORIES, those of frames follow. */
static int add_strings(struct wp_firefox *f)
{
	struct wp_buf name = WP_BUF_INIT;

	string_id(f, "");
	for (unsigned int i = 0; i < WP_NCATEGORIES; i++) {
		wp_buf_reset(&name);
		wp_category_name(&name, i);
		wp_buf_char(&name, '\0');
		if (!name.rc)
			string_id(f, name.data);
	}
	f->frame_name = calloc((size_t)f->nodes.nframes + 1,
			       sizeof(*f->frame_name));
	f->frame_file = calloc((size_t)f->nodes.nframes + 1,
			       sizeof(*f->frame_file));
	for (uint32_t i = 0;
	     i < f->nodes.nframes && f->frame_name && f->frame_file; i++) {
		struct wp_view view;

		wp_call_nodes_view(&f->nodes, i, &view);
		f->frame_name[i] = string_id(f, wp_view_name(&view));
		f->frame_file[i] = string_id(f, *view.file ? view.file :
							     view.module);
	}
	if (name.rc || !f->frame_name || !f->frame_file)
		f->out.rc = -ENOMEM;
	wp_buf_clear(&name);
	return f->out.rc;
}

int wp_write_firefox(const struct wp_profile *profile,
		     enum wp_profile_kind kind, FILE *out)
{
	struct wp_firefox f = { .profile = profile,
				.leaves = WP_PAIRS_INIT,
				.leaf_frames = WP_PAIRS_INIT,
				.strings = WP_INTERN_INIT,
				.file = out };
	int rc = wp_lanes_init(&f.lanes, profile, kind);
	int nodes_rc = wp_call_nodes_init(&f.nodes, profile, kind);

	if (!rc)
		rc = nodes_rc;
	if (!rc)
		rc = add_strings(&f);
	if (!rc) {
		put_meta(&f);
		put_threads(&f);
		put_shared(&f);
		rc = wp_buf_finish(&f.out, out);
	} else {
		wp_buf_clear(&f.out);
	}
	free(f.frame_name);
	free(f.frame_file);
	wp_intern_clear(&f.strings);
	wp_pairs_clear(&f.leaves);
	wp_pairs_clear(&f.leaf_frames);
	wp_call_nodes_clear(&f.nodes);
	wp_lanes_clear(&f.lanes);
	return rc;
}
