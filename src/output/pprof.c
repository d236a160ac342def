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
#include "gzip.h"
#include "ids.h"
#include "pprof_fields.h"
#include "pprof_timeline.h"
#include "proto.h"
#include "wallprof/output.h"

/* Bytes that are gathered before they are compressed. */
enum {
	CHUNK = 1 << 16,
};

struct writer {
	const struct wp_profile *profile;
	enum wp_profile_kind kind;
	struct wp_gzip gz;
	struct wp_buf buf;
	/* The strings to write, valid UTF-8. */
	struct wp_intern strings;
	/* Per string of the profile its id in STRINGS + 1; 0: not used.
	 * Owned. */
	uint32_t *string_id;
	struct wp_buf scratch;
	struct wp_ids locations;
	struct wp_ids functions;
	/* The profile's, and after them the kernel's. */
	struct wp_ids mappings;
	/* Id 1 is a mapping made for a main binary without samples. */
	bool own_main;
	/* By sample: its number in the file, from 1; 0: not written.  Owned. */
	uint32_t *number;
	uint32_t nwritten;
};

/* The id of the text in SCRATCH, which is emptied. */
static uint32_t scratch_id(struct writer *w)
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

static uint32_t text_id(struct writer *w, const char *s)
{
	wp_escape_file(&w->scratch, s);
	return scratch_id(w);
}

/* The id of the profile's string ID. */
static uint32_t str_id(struct writer *w, uint32_t id)
{
	if (id >= w->profile->strings.len)
		return 0;
	if (!w->string_id[id])
		w->string_id[id] = text_id(w, wp_profile_str(w->profile, id)) +
				   1;
	return w->string_id[id] - 1;
}

static void flush(struct writer *w)
{
	if (w->buf.len >= CHUNK)
		wp_gzip_add(&w->gz, &w->buf);
}

static void put_value_type(struct writer *w, unsigned int field,
			   const char *type, const char *unit)
{
	size_t begin = wp_proto_begin(&w->buf, field);

	wp_proto_uint(&w->buf, VALUE_TYPE_TYPE, text_id(w, type));
	wp_proto_uint(&w->buf, VALUE_TYPE_UNIT, text_id(w, unit));
	wp_proto_end(&w->buf, begin);
}

static void put_types(struct writer *w)
{
	const struct wp_profile_meta *meta = &w->profile->meta;
	struct wp_columns c = wp_columns_of(meta, w->kind);

	for (unsigned int i = 0; i < c.n; i++)
		put_value_type(w, PROFILE_SAMPLE_TYPE, c.v[i].type,
			       c.v[i].unit);
	wp_proto_uint(&w->buf, PROFILE_DEFAULT_SAMPLE_TYPE,
		      text_id(w, c.v[c.main].type));
	put_value_type(w, PROFILE_PERIOD_TYPE, c.v[c.period].type,
		       c.v[c.period].unit);
	/* Of waits and threads every one is counted. */
	wp_proto_int(&w->buf, PROFILE_PERIOD,
		     w->kind == WP_PROFILE_WALL ? meta->period_ns :
		     w->kind == WP_PROFILE_HEAP ? meta->heap_period :
						  1);
}

static void put_label(struct writer *w, const char *key, uint32_t str)
{
	size_t begin = wp_proto_begin(&w->buf, SAMPLE_LABEL);

	wp_proto_uint(&w->buf, LABEL_KEY, text_id(w, key));
	wp_proto_uint(&w->buf, LABEL_STR, str);
	wp_proto_end(&w->buf, begin);
}

static void put_number(struct writer *w, const char *key, int64_t num,
		       const char *unit)
{
	size_t begin = wp_proto_begin(&w->buf, SAMPLE_LABEL);

	wp_proto_uint(&w->buf, LABEL_KEY, text_id(w, key));
	wp_proto_int(&w->buf, LABEL_NUM, num);
	wp_proto_uint(&w->buf, LABEL_NUM_UNIT, text_id(w, unit));
	wp_proto_end(&w->buf, begin);
}

static void put_wait(struct writer *w, const struct wp_sample_key *key)
{
	const char *syscall = wp_profile_str(w->profile, key->syscall);

	wp_buf_str(&w->scratch, wp_wait_name((enum wp_wait)key->wait));
	if (key->wait == WP_WAIT_SYSCALL && *syscall) {
		wp_buf_char(&w->scratch, ':');
		wp_escape_file(&w->scratch, syscall);
	}
	put_label(w, "wait", scratch_id(w));
}

static bool has_label(const struct writer *w, const struct wp_profile_thread *t,
		      const char *key)
{
	for (uint32_t i = 0; i < t->nlabels; i++) {
		const struct wp_profile_label *label =
			&w->profile->labels[t->first_label + i];

		if (!strcmp(wp_profile_str(w->profile, label->key), key))
			return true;
	}
	return false;
}

/* The program's own labels, as runtime/pprof writes them; state and wait reason
 * unless it has labels of these names. */
static void put_goroutine_labels(struct writer *w,
				 const struct wp_sample_key *key,
				 const struct wp_profile_thread *t)
{
	if (!has_label(w, t, "state"))
		put_label(w, "state",
			  text_id(w, wp_types_state_name(
					     (enum wp_state)key->state)));
	if (str_id(w, key->object) && !has_label(w, t, "wait"))
		put_label(w, "wait", str_id(w, key->object));
	for (uint32_t i = 0; i < t->nlabels; i++) {
		const struct wp_profile_label *label =
			&w->profile->labels[t->first_label + i];
		uint32_t value = str_id(w, label->value);

		/* Without text it would be a number. */
		put_label(w, wp_profile_str(w->profile, label->key),
			  value ? value : text_id(w, "\"\""));
	}
}

/* Are the samples what a Go program has noted of all its goroutines? */
static bool is_noted(const struct writer *w)
{
	return w->kind != WP_PROFILE_GOROUTINE && w->profile->nthreads &&
	       w->profile->threads[0].is_goroutines;
}

static void put_bytes(struct writer *w, const char *text)
{
	if (*text)
		put_number(w, "bytes", atoll(text), "bytes");
}

static void put_known(struct writer *w, const char *key, uint32_t id)
{
	if (str_id(w, id))
		put_label(w, key, str_id(w, id));
}

static void put_labels(struct writer *w, const struct wp_profile_sample *s)
{
	const struct wp_sample_key *key = &s->key;
	const struct wp_profile_thread *t = &w->profile->threads[key->thread];
	const struct wp_profile_process *process = wp_profile_process_of(
		w->profile, t);
	uint32_t name = str_id(w, t->name);

	if (is_noted(w)) {
		put_bytes(w, wp_profile_str(w->profile, key->object));
		return;
	}
	if (t->is_goroutines) {
		put_goroutine_labels(w, key, t);
		return;
	}
	put_label(w, "thread", name ? name : text_id(w, "[no name]"));
	/* pprof does not show a unit that it does not know; without a unit it
	 * shows the key. */
	put_number(w, "tid", t->tid, "id");
	if (process && wp_profile_is_of_many(w->profile)) {
		put_number(w, "pid", process->pid, "id");
		put_label(w, "process", str_id(w, process->name));
		put_known(w, "cgroup", process->cgroup);
		put_known(w, "container", process->container);
		put_known(w, "unit", process->unit);
	}
	put_label(w, "state",
		  text_id(w, wp_types_state_name((enum wp_state)key->state)));
	if (key->wait != WP_WAIT_NONE)
		put_wait(w, key);
	if (str_id(w, key->object))
		put_label(w,
			  w->kind == WP_PROFILE_BLOCK ? "woken by" : "object",
			  str_id(w, key->object));
	if (t->idle)
		put_label(w, "idle", text_id(w, "true"));
	/* Standard errors are made of these. */
	if (s->looks)
		put_number(w, "looks", (int64_t)s->looks, "count");
	if (s->exact_ns)
		put_number(w, "exact", (int64_t)s->exact_ns, "nanoseconds");
	if (w->kind == WP_PROFILE_THREADCREATE && s->count)
		put_number(w, "lifetime", (int64_t)(s->wall_ns / s->count),
			   "nanoseconds");
}

static void put_sample(struct writer *w, const struct wp_profile_sample *s)
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
	put_labels(w, s);
	wp_proto_end(&w->buf, begin);
	flush(w);
}

static void put_location(struct writer *w, uint32_t id)
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

static void put_function(struct writer *w, uint32_t id)
{
	const struct wp_profile_function *f =
		&w->profile->functions[w->functions.index[id - 1]];
	uint32_t name = str_id(w, f->name);
	size_t begin = wp_proto_begin(&w->buf, PROFILE_FUNCTION);

	wp_proto_uint(&w->buf, FUNCTION_ID, id);
	wp_proto_uint(&w->buf, FUNCTION_NAME,
		      name ? name : text_id(w, "[no name]"));
	wp_proto_uint(&w->buf, FUNCTION_SYSTEM_NAME, str_id(w, f->system_name));
	wp_proto_uint(&w->buf, FUNCTION_FILENAME, str_id(w, f->file));
	wp_proto_uint(&w->buf, FUNCTION_START_LINE, f->start_line);
	wp_proto_end(&w->buf, begin);
	flush(w);
}

static void put_mapping_of(struct writer *w, uint32_t id,
			   const struct wp_profile_mapping *m, uint32_t file)
{
	size_t begin = wp_proto_begin(&w->buf, PROFILE_MAPPING);

	wp_proto_uint(&w->buf, MAPPING_ID, id);
	wp_proto_uint(&w->buf, MAPPING_START, m->start_avma);
	wp_proto_uint(&w->buf, MAPPING_LIMIT, m->end_avma);
	wp_proto_uint(&w->buf, MAPPING_OFFSET, m->off);
	wp_proto_uint(&w->buf, MAPPING_FILENAME, file);
	wp_proto_uint(&w->buf, MAPPING_BUILD_ID, str_id(w, m->build_id));
	wp_proto_uint(&w->buf, MAPPING_HAS_FUNCTIONS, m->has_functions);
	wp_proto_uint(&w->buf, MAPPING_HAS_FILENAMES, m->has_filenames);
	wp_proto_uint(&w->buf, MAPPING_HAS_LINE_NUMBERS, m->has_line_numbers);
	wp_proto_uint(&w->buf, MAPPING_HAS_INLINE_FRAMES, m->has_inline_frames);
	wp_proto_end(&w->buf, begin);
}

static void put_mapping(struct writer *w, uint32_t id)
{
	static const struct wp_profile_mapping kernel = {
		.has_functions = true,
	};
	uint32_t index = w->mappings.index[id - 1];
	const struct wp_profile_mapping *m;
	uint32_t file;

	if (index == w->profile->nmappings) {
		put_mapping_of(w, id + w->own_main, &kernel,
			       text_id(w, "[kernel.kallsyms]"));
		return;
	}
	m = &w->profile->mappings[index];
	file = str_id(w, m->path);
	put_mapping_of(w, id + w->own_main, m,
		       file ? file : text_id(w, "[anon]"));
}

/* Give the main binary's mapping the first id. */
static void choose_main(struct writer *w)
{
	static const struct wp_profile_mapping none;
	uint32_t exe = w->profile->meta.exe;

	if (!str_id(w, exe))
		return;
	for (uint32_t i = 1; i < w->profile->nmappings; i++) {
		if (w->profile->mappings[i].path == exe) {
			wp_ids_of(&w->mappings, i);
			return;
		}
	}
	w->own_main = true;
	put_mapping_of(w, 1, &none, str_id(w, exe));
}

static void put_comment(void *ctx, const char *line)
{
	struct writer *w = ctx;
	uint32_t id;

	wp_escape_file(&w->scratch, line);
	id = scratch_id(w);
	wp_proto_uint(&w->buf, PROFILE_COMMENT, id);
}

static void put_comments(struct writer *w)
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
	if (!is_noted(w))
		wp_counters_lines(w->profile, w->kind, put_comment, w);
}

/* In an order in which each is complete when its turn comes. */
static void put_tables(struct writer *w)
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

static void put_profile(struct writer *w)
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
	if (w->kind == WP_PROFILE_WALL && w->profile->timeline.n)
		wp_pprof_put_timeline(&w->buf, w->profile, w->number);
	put_tables(w);
}

int wp_write_pprof(const struct wp_profile *profile, enum wp_profile_kind kind,
		   FILE *out)
{
	struct writer w = { .profile = profile, .kind = kind };
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
