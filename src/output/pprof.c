/* SPDX-License-Identifier: Apache-2.0 */
/* pprof.c - write google/pprof's proto/profile.proto, gzip-compressed.
 *
 * Ids are given and written in the order of first use.  So they are dense from 1,
 * which Parca asks for, and nothing unused is written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "escape.h"
#include "pprof_fields.h"
#include "pprof_timeline.h"
#include "pprof_writer.h"
#include "wallprof/hash.h"
#include "wallprof/output.h"

/* Bytes that are gathered before they are compressed. */
enum {
	CHUNK = 1 << 16,
};

uint32_t wp_pprof_scratch_id(struct wp_pprof_writer *w)
{
	uint32_t id = 0;

	if (w->scratch.rc)
		w->buf.rc = w->scratch.rc;
	else if (w->scratch.len)
		id = wp_intern_add(&w->strings, w->scratch.data,
				   w->scratch.len);
	wp_buf_reset(&w->scratch);
	if (id != UINT32_MAX)
		return id;
	w->buf.rc = -ENOMEM;
	return 0;
}

static uint32_t add_text(struct wp_pprof_writer *w, const char *s)
{
	wp_escape_file(&w->scratch, s);
	return wp_pprof_scratch_id(w);
}

uint32_t wp_pprof_text_id(struct wp_pprof_writer *w, const char *s)
{
	uint64_t at = wp_hash_u64((uintptr_t)s) % WP_PPROF_TEXTS;

	if (w->text_ids[at].text != s) {
		w->text_ids[at].text = s;
		w->text_ids[at].id = add_text(w, s);
	}
	return w->text_ids[at].id;
}

uint32_t wp_pprof_str_id(struct wp_pprof_writer *w, uint32_t id)
{
	if (id >= w->profile->strings.len)
		return 0;
	if (!w->string_id[id])
		w->string_id[id] = add_text(w, wp_profile_str(w->profile, id)) +
				   1;
	return w->string_id[id] - 1;
}

static void flush(struct wp_pprof_writer *w)
{
	if (w->buf.len >= CHUNK)
		wp_gzip_add(&w->gz, &w->buf);
}

static void put_value_type(struct wp_pprof_writer *w, unsigned int field,
			   const char *type, const char *unit)
{
	size_t begin = wp_proto_begin(&w->buf, field);

	wp_proto_uint(&w->buf, VALUE_TYPE_TYPE, wp_pprof_text_id(w, type));
	wp_proto_uint(&w->buf, VALUE_TYPE_UNIT, wp_pprof_text_id(w, unit));
	wp_proto_end(&w->buf, begin);
}

static void put_types(struct wp_pprof_writer *w)
{
	const struct wp_profile_meta *meta = &w->profile->meta;
	struct wp_columns c = wp_columns_of(meta, w->kind);

	for (unsigned int i = 0; i < c.n; i++)
		put_value_type(w, PROFILE_SAMPLE_TYPE, c.v[i].type,
			       c.v[i].unit);
	wp_proto_uint(&w->buf, PROFILE_DEFAULT_SAMPLE_TYPE,
		      wp_pprof_text_id(w, c.v[c.main].type));
	put_value_type(w, PROFILE_PERIOD_TYPE, c.v[c.period].type,
		       c.v[c.period].unit);
	/* Of waits and threads every one is counted. */
	wp_proto_int(&w->buf, PROFILE_PERIOD,
		     w->kind == WP_PROFILE_WALL ? meta->period_ns :
		     w->kind == WP_PROFILE_HEAP ? meta->heap_period :
						  1);
}

static void put_sample(struct wp_pprof_writer *w,
		       const struct wp_profile_sample *s)
{
	const struct wp_profile_stack *stack =
		&w->profile->stacks[s->key.stack];
	const uint32_t *loc = w->profile->loc_pool + stack->loc_first;
	struct wp_columns c = wp_columns_of(&w->profile->meta, w->kind);
	size_t begin, packed;

	if (!wp_profile_is_sample(w->profile, w->kind, s))
		return;
	w->number[s - w->profile->sets[w->kind].samples] = ++w->nwritten;
	begin = wp_proto_begin(&w->buf, PROFILE_SAMPLE);
	packed = wp_proto_begin(&w->buf, SAMPLE_LOCATION_ID);
	for (uint32_t i = 0; i < stack->nlocs; i++)
		wp_proto_varint(&w->buf, wp_ids_of(&w->locations, loc[i]));
	wp_proto_end(&w->buf, packed);
	packed = wp_proto_begin(&w->buf, SAMPLE_VALUE);
	for (unsigned int i = 0; i < c.n; i++)
		wp_proto_varint(&w->buf, wp_columns_value(s, &c.v[i]));
	wp_proto_end(&w->buf, packed);
	wp_pprof_put_labels(w, s);
	wp_proto_end(&w->buf, begin);
	flush(w);
}

static void put_location(struct wp_pprof_writer *w, uint32_t id)
{
	const struct wp_profile *profile = w->profile;
	const struct wp_profile_location *loc =
		&profile->locations[w->locations.index[id - 1]];
	size_t begin = wp_proto_begin(&w->buf, PROFILE_LOCATION);
	uint32_t mapping = loc->mapping == WP_MAPPING_KERNEL ?
				   profile->nmappings :
				   loc->mapping;

	wp_proto_uint(&w->buf, LOCATION_ID, id);
	if (mapping != WP_MAPPING_NONE)
		wp_proto_uint(&w->buf, LOCATION_MAPPING_ID,
			      wp_ids_of(&w->mappings, mapping) + w->own_main);
	wp_proto_uint(&w->buf, LOCATION_ADDRESS, loc->avma);
	for (uint32_t i = 0; i < loc->nlines; i++) {
		const struct wp_profile_line *line =
			&profile->lines[loc->line_first + i];
		size_t at = wp_proto_begin(&w->buf, LOCATION_LINE);

		wp_proto_uint(&w->buf, LINE_FUNCTION_ID,
			      wp_ids_of(&w->functions, line->function));
		wp_proto_uint(&w->buf, LINE_LINE, line->line);
		wp_proto_end(&w->buf, at);
	}
	wp_proto_end(&w->buf, begin);
	flush(w);
}

static void put_function(struct wp_pprof_writer *w, uint32_t id)
{
	const struct wp_profile_function *f =
		&w->profile->functions[w->functions.index[id - 1]];
	uint32_t name = wp_pprof_str_id(w, f->name);
	size_t begin = wp_proto_begin(&w->buf, PROFILE_FUNCTION);

	wp_proto_uint(&w->buf, FUNCTION_ID, id);
	wp_proto_uint(&w->buf, FUNCTION_NAME,
		      name ? name : wp_pprof_text_id(w, "[no name]"));
	wp_proto_uint(&w->buf, FUNCTION_SYSTEM_NAME,
		      wp_pprof_str_id(w, f->system_name));
	wp_proto_uint(&w->buf, FUNCTION_FILENAME, wp_pprof_str_id(w, f->file));
	wp_proto_uint(&w->buf, FUNCTION_START_LINE, f->start_line);
	wp_proto_end(&w->buf, begin);
	flush(w);
}

static void put_mapping_of(struct wp_pprof_writer *w, uint32_t id,
			   const struct wp_profile_mapping *m, uint32_t file)
{
	size_t begin = wp_proto_begin(&w->buf, PROFILE_MAPPING);

	wp_proto_uint(&w->buf, MAPPING_ID, id);
	wp_proto_uint(&w->buf, MAPPING_START, m->start_avma);
	wp_proto_uint(&w->buf, MAPPING_LIMIT, m->end_avma);
	wp_proto_uint(&w->buf, MAPPING_OFFSET, m->off);
	wp_proto_uint(&w->buf, MAPPING_FILENAME, file);
	wp_proto_uint(&w->buf, MAPPING_BUILD_ID,
		      wp_pprof_str_id(w, m->build_id));
	wp_proto_uint(&w->buf, MAPPING_HAS_FUNCTIONS, m->has_functions);
	wp_proto_uint(&w->buf, MAPPING_HAS_FILENAMES, m->has_filenames);
	wp_proto_uint(&w->buf, MAPPING_HAS_LINE_NUMBERS, m->has_line_numbers);
	wp_proto_uint(&w->buf, MAPPING_HAS_INLINE_FRAMES, m->has_inline_frames);
	wp_proto_end(&w->buf, begin);
}

static void put_mapping(struct wp_pprof_writer *w, uint32_t id)
{
	static const struct wp_profile_mapping kernel = {
		.has_functions = true,
	};
	uint32_t index = w->mappings.index[id - 1];
	const struct wp_profile_mapping *m;
	uint32_t file;

	if (index == w->profile->nmappings) {
		put_mapping_of(w, id + w->own_main, &kernel,
			       wp_pprof_text_id(w, "[kernel.kallsyms]"));
		return;
	}
	m = &w->profile->mappings[index];
	file = wp_pprof_str_id(w, m->path);
	put_mapping_of(w, id + w->own_main, m,
		       file ? file : wp_pprof_text_id(w, "[anon]"));
}

/* Give the main binary's mapping the first id. */
static void choose_main(struct wp_pprof_writer *w)
{
	static const struct wp_profile_mapping none;
	uint32_t exe = w->profile->meta.exe;

	if (!wp_pprof_str_id(w, exe))
		return;
	for (uint32_t i = 1; i < w->profile->nmappings; i++) {
		if (w->profile->mappings[i].path == exe) {
			wp_ids_of(&w->mappings, i);
			return;
		}
	}
	w->own_main = true;
	put_mapping_of(w, 1, &none, wp_pprof_str_id(w, exe));
}

static void put_comment(void *ctx, const char *line)
{
	struct wp_pprof_writer *w = ctx;
	uint32_t id;

	wp_escape_file(&w->scratch, line);
	id = wp_pprof_scratch_id(w);
	wp_proto_uint(&w->buf, PROFILE_COMMENT, id);
}

static void put_comments(struct wp_pprof_writer *w)
{
	const struct wp_profile_meta *meta = &w->profile->meta;
	const char *end = wp_profile_str(w->profile, meta->target_end);
	struct wp_buf line = WP_BUF_INIT;
	char hint[512];

	wp_buf_printf(&line, "command: %s",
		      wp_profile_str(w->profile, meta->command_line));
	wp_buf_char(&line, '\0');
	if (meta->pid)
		wp_buf_printf(&line, "pid: %d%c", meta->pid, '\0');
	wp_buf_printf(&line, "wallprof: %s, stop mode %s", WP_VERSION,
		      wp_profile_str(w->profile, meta->stop_mode));
	wp_buf_char(&line, '\0');
	wp_buf_printf(&line, "kind: %s%c", wp_profile_kind_name(w->kind), '\0');
	if (meta->source[w->kind]) {
		wp_buf_printf(
			&line, "%s: %s", wp_profile_kind_name(w->kind),
			wp_profile_str(w->profile, meta->source[w->kind]));
		wp_buf_char(&line, '\0');
	}
	if (*end) {
		wp_buf_printf(&line, "target: %s", end);
		wp_buf_char(&line, '\0');
	}
	if (wp_child_hint(w->profile, hint, sizeof(hint))) {
		wp_buf_str(&line, hint);
		wp_buf_char(&line, '\0');
	}
	for (size_t i = 0; !line.rc && i < line.len;
	     i += strlen(line.data + i) + 1)
		put_comment(w, line.data + i);
	if (line.rc)
		w->buf.rc = line.rc;
	wp_buf_clear(&line);
	if (!wp_pprof_is_noted(w))
		wp_counters_lines(w->profile, w->kind, put_comment, w);
}

/* In an order in which each is complete when its turn comes. */
static void put_tables(struct wp_pprof_writer *w)
{
	for (uint32_t id = 1; id <= w->locations.n; id++)
		put_location(w, id);
	for (uint32_t id = 1; id <= w->functions.n; id++)
		put_function(w, id);
	for (uint32_t id = 1; id <= w->mappings.n; id++)
		put_mapping(w, id);
	/* Last, as all others add strings. */
	wp_proto_bytes(&w->buf, PROFILE_STRING_TABLE, "", 0);
	for (uint32_t id = 1; id < w->strings.len; id++) {
		const char *s = wp_intern_str(&w->strings, id);

		wp_proto_bytes(&w->buf, PROFILE_STRING_TABLE, s, strlen(s));
		flush(w);
	}
}

static void put_entries(struct wp_pprof_writer *w)
{
	struct wp_buf line = WP_BUF_INIT;

	if (wp_pprof_list_entries(w, &line))
		put_comment(w, line.data);
	if (line.rc)
		w->buf.rc = line.rc;
	wp_buf_clear(&line);
}

static void put_profile(struct wp_pprof_writer *w)
{
	const struct wp_profile_meta *meta = &w->profile->meta;
	const struct wp_sample_set *set = &w->profile->sets[w->kind];

	put_types(w);
	wp_proto_int(&w->buf, PROFILE_TIME_NANOS, meta->time_ns);
	wp_proto_int(&w->buf, PROFILE_DURATION_NANOS, meta->duration_ns);
	put_comments(w);
	choose_main(w);
	for (uint32_t i = 0; i < set->nsamples; i++)
		put_sample(w, &set->samples[i]);
	if (w->kind == WP_PROFILE_WALL && meta->has_wall &&
	    w->profile->timeline.n)
		wp_pprof_put_timeline(&w->buf, w->profile, w->number);
	if (!wp_pprof_is_noted(w))
		put_entries(w);
	put_tables(w);
}

int wp_write_pprof(const struct wp_profile *profile, enum wp_profile_kind kind,
		   FILE *out)
{
	struct wp_pprof_writer w = { .profile = profile, .kind = kind };
	int rc, end;

	rc = wp_gzip_init(&w.gz, out);
	w.number = calloc((size_t)profile->sets[kind].nsamples + 1,
			  sizeof(*w.number));
	w.string_id = calloc((size_t)profile->strings.len + 1,
			     sizeof(*w.string_id));
	if (!w.string_id || !w.number ||
	    wp_intern_add(&w.strings, "", 0) == UINT32_MAX ||
	    wp_ids_init(&w.locations, profile->nlocations) ||
	    wp_ids_init(&w.functions, profile->nfunctions) ||
	    wp_ids_init(&w.mappings, profile->nmappings + 1))
		rc = -ENOMEM;
	if (!rc) {
		put_profile(&w);
		wp_gzip_add(&w.gz, &w.buf);
	}
	end = wp_gzip_finish(&w.gz);
	if (!rc)
		rc = end;
	wp_ids_clear(&w.locations);
	wp_ids_clear(&w.functions);
	wp_ids_clear(&w.mappings);
	free(w.string_id);
	free(w.number);
	wp_intern_clear(&w.strings);
	wp_buf_clear(&w.scratch);
	wp_buf_clear(&w.buf);
	return rc;
}
