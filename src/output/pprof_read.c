/* SPDX-License-Identifier: Apache-2.0 */
/* pprof_read.c - read anybody's pprof file (proto/profile.proto of
 * github.com/google/pprof) into a profile.
 *
 * The file is not trusted: each index is checked, and what is allocated is bounded
 * by the file's size.  The string table may come last, so the message is read more
 * than once.
 */
#include "pprof_read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gzip.h"
#include "pprof_fields.h"
#include "wallprof/output.h"
#include "wallprof/vec.h"

enum {
	/* Most bytes of an unpacked file. */
	UNPACKED_MAX = 1 << 29,
	/* Most strings, elements with an id, and lines: two bytes of a file may be a
	 * string or a line, eight an element, and cost more of memory. */
	STRINGS_MAX = 1 << 24,
	ELEMENTS_MAX = 1 << 22,
	LINES_MAX = 1 << 24,
};

bool wp_pprof_next(struct wp_reader *r, struct wp_pprof_field *ret)
{
	uint64_t tag, len;

	if (!wp_reader_left(r))
		return false;
	tag = wp_read_uleb(r);
	*ret = (struct wp_pprof_field){ .number = (uint32_t)(tag >> 3) };
	switch (tag & 7) {
	case 0:
		ret->value = wp_read_uleb(r);
		break;
	case 1:
		ret->value = wp_read_u64(r);
		break;
	case 2:
		len = wp_read_uleb(r);
		if (len > wp_reader_left(r)) {
			r->failed = true;
			return false;
		}
		ret->is_bytes = true;
		ret->bytes = wp_reader_of(r->pos, (size_t)len);
		wp_read_skip(r, len);
		break;
	case 5:
		ret->value = wp_read_u32(r);
		break;
	default:
		r->failed = true;
	}
	if (!ret->number || tag >> 35)
		r->failed = true;
	return !r->failed;
}

bool wp_pprof_number(struct wp_pprof_field *field, uint64_t *ret)
{
	if (field->is_bytes) {
		if (!wp_reader_left(&field->bytes))
			return false;
		*ret = wp_read_uleb(&field->bytes);
		return !field->bytes.failed;
	}
	*ret = field->value;
	field->is_bytes = true;
	field->bytes = wp_reader_of("", 0);
	return true;
}

void wp_pprof_bad(struct wp_pprof *p, const char *what)
{
	if (!p->rc)
		p->rc = wp_err_set(p->err, -EBADMSG, "no valid pprof file: %s",
				   what);
}

uint32_t wp_pprof_str(struct wp_pprof *p, uint64_t index)
{
	if (index < p->nstrings)
		return p->strings[index];
	wp_pprof_bad(p, "a string that is not in the table");
	return 0;
}

const char *wp_pprof_text(struct wp_pprof *p, uint32_t id)
{
	return wp_profile_str(p->profile, id);
}

void wp_pprof_no_memory(struct wp_pprof *p)
{
	p->rc = p->rc ? p->rc : -ENOMEM;
}

const char *wp_pprof_told(struct wp_pprof *p, uint32_t id)
{
	enum { LEAST = 1 << 20, PER_BYTE = 16 };
	const char *text = wp_pprof_text(p, id);

	p->ntold += strlen(text);
	if (p->ntold <= LEAST + PER_BYTE * wp_reader_left(&p->all))
		return text;
	wp_pprof_bad(
		p, "its comments and labels have more text than a file of its "
		   "size can tell of");
	return "";
}

uint32_t wp_pprof_tail(struct wp_pprof *p, uint32_t id, size_t n)
{
	/* The strings move when one is added. */
	char *copy = strdup(wp_pprof_text(p, id) + n);
	uint32_t tail = copy ? wp_intern_add_str(&p->profile->strings, copy) :
			       UINT32_MAX;

	free(copy);
	if (tail != UINT32_MAX)
		return tail;
	wp_pprof_no_memory(p);
	return 0;
}

static void read_string(struct wp_pprof *p, const struct wp_pprof_field *f)
{
	static const char call[] = "syscall:";
	uint32_t id = wp_intern_add(&p->profile->strings,
				    (const char *)f->bytes.pos,
				    wp_reader_left(&f->bytes));

	if (p->nstrings == STRINGS_MAX)
		wp_pprof_bad(p, "over 16,777,216 strings");
	else if (id == UINT32_MAX ||
		 WP_VEC_ROOM(p->strings, p->nstrings, p->cap_strings, 1))
		wp_pprof_no_memory(p);
	else
		p->strings[p->nstrings++] = id;
	/* A sample's key has room for a small id of the call's name: before the ids of
	 * all functions. */
	if (!p->rc && !strncmp(wp_pprof_text(p, id), call, strlen(call)))
		(void)wp_pprof_tail(p, id, strlen(call));
}

/* Enter INDEX as that of the element called ID. */
static void enter(struct wp_pprof *p, struct wp_pairs *ids, uint64_t id,
		  uint32_t index)
{
	uint32_t i = wp_pairs_add(ids, id, 0);

	if (i == UINT32_MAX || index == UINT32_MAX)
		wp_pprof_no_memory(p);
	else if (ids->v[i].total)
		wp_pprof_bad(p, "two elements with one id");
	else if (ids->len > ELEMENTS_MAX)
		wp_pprof_bad(p, "over 4,194,304 functions, locations or "
				"mappings");
	else
		ids->v[i].mark = index;
	if (!p->rc)
		ids->v[i].total = 1;
}

static void read_mapping(struct wp_pprof *p, struct wp_reader r)
{
	struct wp_profile_mapping m = { 0 };
	struct wp_pprof_field f;
	uint64_t id = 0;
	uint32_t index = WP_MAPPING_KERNEL;

	while (!p->rc && wp_pprof_next(&r, &f)) {
		if (f.number == MAPPING_ID)
			id = f.value;
		else if (f.number == MAPPING_START)
			m.start_avma = f.value;
		else if (f.number == MAPPING_LIMIT)
			m.end_avma = f.value;
		else if (f.number == MAPPING_OFFSET)
			m.off = f.value;
		else if (f.number == MAPPING_FILENAME)
			m.path = wp_pprof_str(p, f.value);
		else if (f.number == MAPPING_BUILD_ID)
			m.build_id = wp_pprof_str(p, f.value);
		else if (f.number == MAPPING_HAS_FUNCTIONS)
			m.has_functions = f.value;
		else if (f.number == MAPPING_HAS_FILENAMES)
			m.has_filenames = f.value;
		else if (f.number == MAPPING_HAS_LINE_NUMBERS)
			m.has_line_numbers = f.value;
		else if (f.number == MAPPING_HAS_INLINE_FRAMES)
			m.has_inline_frames = f.value;
	}
	if (r.failed)
		wp_pprof_bad(p, "a mapping is cut short");
	if (p->rc)
		return;
	/* The first is the main program's. */
	if (p->profile->nmappings == 1 && !p->profile->meta.exe)
		p->profile->meta.exe = m.path;
	if (strncmp(wp_pprof_text(p, m.path), "[kernel", 7)) {
		index = wp_profile_add_mapping(p->profile, &m);
		if (index == UINT32_MAX)
			wp_pprof_no_memory(p);
	}
	/* WP_MAPPING_KERNEL looks like a failure. */
	enter(p, &p->mappings, id, index == WP_MAPPING_KERNEL ? 0 : index);
}

static void read_function(struct wp_pprof *p, struct wp_reader r)
{
	struct wp_profile_function fn = { 0 };
	struct wp_pprof_field f;
	uint64_t id = 0;

	while (!p->rc && wp_pprof_next(&r, &f)) {
		if (f.number == FUNCTION_ID)
			id = f.value;
		else if (f.number == FUNCTION_NAME)
			fn.name = wp_pprof_str(p, f.value);
		else if (f.number == FUNCTION_SYSTEM_NAME)
			fn.system_name = wp_pprof_str(p, f.value);
		else if (f.number == FUNCTION_FILENAME)
			fn.file = wp_pprof_str(p, f.value);
		else if (f.number == FUNCTION_START_LINE)
			fn.start_line = (uint32_t)f.value;
	}
	if (r.failed)
		wp_pprof_bad(p, "a function is cut short");
	if (!p->rc)
		enter(p, &p->functions, id,
		      wp_profile_add_function(p->profile, &fn));
}

/* The index of the element called ID, which must be there. */
static uint32_t find(struct wp_pprof *p, struct wp_pairs *ids, uint64_t id,
		     const char *lack)
{
	uint32_t i = wp_pairs_add(ids, id, 0);

	if (i == UINT32_MAX)
		wp_pprof_no_memory(p);
	else if (!ids->v[i].total)
		wp_pprof_bad(p, lack);
	return p->rc ? 0 : ids->v[i].mark;
}

static void read_line(struct wp_pprof *p, struct wp_reader r, uint32_t loc)
{
	struct wp_profile_line line = { 0 };
	struct wp_pprof_field f;
	uint64_t function = 0;

	while (wp_pprof_next(&r, &f)) {
		if (f.number == LINE_FUNCTION_ID)
			function = f.value;
		else if (f.number == LINE_LINE)
			line.line = (uint32_t)f.value;
	}
	if (r.failed)
		wp_pprof_bad(p, "a line is cut short");
	line.function = find(p, &p->functions, function,
			     "a line of a function that is not there");
	if (p->profile->nlines >= LINES_MAX)
		wp_pprof_bad(p, "over 16,777,216 lines");
	if (!p->rc && wp_profile_add_line(p->profile, loc, line))
		wp_pprof_no_memory(p);
}

/* wallprof's own texts in place of frames have no address. */
static void find_text(struct wp_pprof *p, struct wp_profile_location *loc)
{
	const struct wp_profile_line *line;
	uint32_t name;

	if (loc->avma || loc->mapping != WP_MAPPING_NONE || loc->nlines != 1)
		return;
	line = &p->profile->lines[loc->line_first];
	name = p->profile->functions[line->function].name;
	if (wp_pprof_text(p, name)[0] == '[')
		loc->text = name;
}

static void read_location(struct wp_pprof *p, struct wp_reader r)
{
	struct wp_profile *profile = p->profile;
	uint32_t index = profile->nlocations;
	struct wp_reader again = r;
	struct wp_pprof_field f;
	uint64_t id = 0, mapping = 0;

	if (WP_VEC_ROOM(profile->locations, index, profile->cap_locations, 1)) {
		wp_pprof_no_memory(p);
		return;
	}
	profile->locations[profile->nlocations++] =
		(struct wp_profile_location){ 0 };
	while (wp_pprof_next(&r, &f)) {
		if (f.number == LOCATION_ID)
			id = f.value;
		else if (f.number == LOCATION_MAPPING_ID)
			mapping = f.value;
		else if (f.number == LOCATION_ADDRESS)
			profile->locations[index].avma = f.value;
	}
	if (r.failed)
		wp_pprof_bad(p, "a location is cut short");
	if (mapping) {
		uint32_t m = find(p, &p->mappings, mapping,
				  "a location in a mapping that is not there");

		profile->locations[index].mapping = m ? m : WP_MAPPING_KERNEL;
	}
	while (!p->rc && wp_pprof_next(&again, &f))
		if (f.number == LOCATION_LINE && f.is_bytes)
			read_line(p, f.bytes, index);
	if (!p->rc)
		find_text(p, &profile->locations[index]);
	enter(p, &p->locations, id, index);
}

static void read_sample_type(struct wp_pprof *p, struct wp_reader r)
{
	struct wp_pprof_type type = wp_pprof_read_type(p, r);

	if (p->ntypes == WP_PPROF_TYPES_MAX)
		wp_pprof_bad(p, "its sample types");
	if (!p->rc)
		p->types[p->ntypes++] = type;
}

static void read_comment(struct wp_pprof *p, uint32_t id)
{
	struct wp_profile *profile = p->profile;
	const char *text = wp_pprof_told(p, id);
	static const char command[] = "command: ", pid[] = "pid: ",
			  target[] = "target: ", kind[] = "kind: ",
			  entries[] = "entries: ";
	const char *asked = strstr(text, " Hz asked, ");
	double hz = asked && !strncmp(text, "ticks: ", 7) ?
			    strtod(asked + 11, NULL) :
			    0;

	if (isfinite(hz) && hz > 0)
		profile->meta.achieved_hz = hz;
	if (!strncmp(text, command, strlen(command)))
		profile->meta.command_line = wp_pprof_tail(p, id,
							   strlen(command));
	else if (!strncmp(text, pid, strlen(pid)))
		profile->meta.pid = (int32_t)strtol(text + strlen(pid), NULL,
						    10);
	else if (!strncmp(text, target, strlen(target)))
		profile->meta.target_end = wp_pprof_tail(p, id, strlen(target));
	else if (!strncmp(text, kind, strlen(kind)))
		p->kind = wp_pprof_kind(text + strlen(kind));
	else if (!strncmp(text, entries, strlen(entries)))
		p->entries = wp_pprof_tail(p, id, strlen(entries));
	else if (WP_VEC_ROOM(profile->comments, profile->ncomments,
			     profile->cap_comments, 1))
		wp_pprof_no_memory(p);
	else
		profile->comments[profile->ncomments++] = id;
}

/* Call EACH for the fields NUMBER of the whole message that are bytes. */
static void each(struct wp_pprof *p, uint32_t number,
		 void (*each_one)(struct wp_pprof *p, struct wp_reader r))
{
	struct wp_reader r = p->all;
	struct wp_pprof_field f;

	while (!p->rc && wp_pprof_next(&r, &f))
		if (f.number == number && f.is_bytes)
			each_one(p, f.bytes);
}

/* The string table, and whether the whole is well-formed. */
static void read_strings(struct wp_pprof *p)
{
	struct wp_reader r = p->all;
	struct wp_pprof_field f;

	while (!p->rc && wp_pprof_next(&r, &f))
		if (f.number == PROFILE_STRING_TABLE && f.is_bytes)
			read_string(p, &f);
	if (r.failed)
		wp_pprof_bad(p, "it is cut short, or something else");
	else if (!p->rc && !p->nstrings)
		wp_pprof_bad(p, "it has no strings");
}

/* The sample type that is shown: the default one, else the last. */
static unsigned int read_head(struct wp_pprof *p)
{
	struct wp_profile_meta *meta = &p->profile->meta;
	struct wp_reader r = p->all;
	struct wp_pprof_field f;
	struct wp_pprof_type period_type = { 0 };
	uint32_t shown = 0;
	int64_t period = 0;
	uint64_t n;

	while (!p->rc && wp_pprof_next(&r, &f)) {
		if (f.number == PROFILE_SAMPLE_TYPE && f.is_bytes)
			read_sample_type(p, f.bytes);
		else if (f.number == PROFILE_PERIOD_TYPE && f.is_bytes)
			period_type = wp_pprof_read_type(p, f.bytes);
		else if (f.number == PROFILE_TIME_NANOS)
			meta->time_ns = (int64_t)f.value;
		else if (f.number == PROFILE_DURATION_NANOS)
			meta->duration_ns = (int64_t)f.value;
		else if (f.number == PROFILE_PERIOD)
			period = (int64_t)f.value;
		else if (f.number == PROFILE_DEFAULT_SAMPLE_TYPE)
			shown = wp_pprof_str(p, f.value);
		else if (f.number == PROFILE_COMMENT)
			while (!p->rc && wp_pprof_number(&f, &n))
				read_comment(p, wp_pprof_str(p, n));
	}
	if (!p->rc && !p->ntypes)
		wp_pprof_bad(p, "it has no sample types");
	meta->period_ns = wp_pprof_period(p, period, &period_type);
	if (meta->duration_ns < 0)
		meta->duration_ns = 0;
	for (unsigned int i = 0; i < p->ntypes; i++)
		if (shown && p->types[i].type == shown)
			return i;
	return p->ntypes ? p->ntypes - 1 : 0;
}

static void read_all(struct wp_pprof *p)
{
	unsigned int shown;

	read_strings(p);
	shown = p->rc ? 0 : read_head(p);
	if (p->rc)
		return;
	wp_pprof_choose_columns(p, shown);
	p->profile->meta.read_kind = p->kind;
	p->profile->meta.was_read = p->profile->meta.stateless = true;
	each(p, PROFILE_MAPPING, read_mapping);
	each(p, PROFILE_FUNCTION, read_function);
	each(p, PROFILE_LOCATION, read_location);
	wp_pprof_read_samples(p);
	each(p, PROFILE_WALLPROF_TIMELINE, wp_pprof_read_timeline);
	wp_pprof_read_entries(p);
	if (!p->rc)
		wp_profile_add_up(p->profile);
}

int wp_pprof_read(struct wp_profile *profile, const void *data, size_t n,
		  struct wp_err *err)
{
	struct wp_pprof p = { .profile = profile,
			      .nbytes = n,
			      .kind = WP_PROFILE_WALL,
			      .err = err,
			      .mappings = WP_PAIRS_INIT,
			      .functions = WP_PAIRS_INIT,
			      .locations = WP_PAIRS_INIT,
			      .threads = WP_PAIRS_INIT,
			      .processes = WP_PAIRS_INIT };
	char *unpacked = NULL;

	if (n >= 2 && !memcmp(data, "\x1f\x8b", 2)) {
		size_t len = 0;

		p.rc = wp_gzip_unpack(data, n, UNPACKED_MAX, &unpacked, &len);
		p.all = wp_reader_of(unpacked, len);
	} else {
		p.all = wp_reader_of(n ? data : "", n);
	}
	if (!p.rc)
		read_all(&p);
	if (p.rc == -ENOMEM)
		wp_err_set(err, p.rc, "no memory");
	else if (p.rc && !err->code)
		wp_err_set(err, p.rc,
			   p.rc == -EOVERFLOW ? "over 512 MiB unpacked" :
						"no valid gzip stream");
	free(unpacked);
	free(p.strings);
	free(p.samples);
	free(p.frames);
	wp_pairs_clear(&p.mappings);
	wp_pairs_clear(&p.functions);
	wp_pairs_clear(&p.locations);
	wp_pairs_clear(&p.threads);
	wp_pairs_clear(&p.processes);
	return p.rc;
}
