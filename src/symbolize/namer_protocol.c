/* SPDX-License-Identifier: Apache-2.0 */
/* namer_protocol.c - see namer_protocol.h. */
#include "namer_protocol.h"

#include <errno.h>
#include <string.h>

#include "wallprof/reader.h"
#include "wallprof/vec.h"

enum {
	HEADER = 4,
	ID_MAX = 64,
	HAS_FUNCTIONS = 1,
	HAS_FILENAMES = 2,
	HAS_LINE_NUMBERS = 4,
	HAS_INLINE_FRAMES = 8,
	HAS_DEBUG_FILE = 16,
	/* The bits from here: enum wp_dwarf_loss. */
	DWARF_LOSS_SHIFT = 5,
};

int wp_protocol_add_bytes(struct wp_protocol_buf *buf, const void *data,
			  size_t n)
{
	if (WP_VEC_ROOM(buf->data, buf->len, buf->cap, n))
		return -ENOMEM;
	if (n)
		memcpy(buf->data + buf->len, data, n);
	buf->len += n;
	return 0;
}

static int put_u8(struct wp_protocol_buf *buf, uint8_t val)
{
	return wp_protocol_add_bytes(buf, &val, 1);
}

static int put_u32(struct wp_protocol_buf *buf, uint32_t val)
{
	const uint8_t bytes[4] = { (uint8_t)val, (uint8_t)(val >> 8),
				   (uint8_t)(val >> 16), (uint8_t)(val >> 24) };

	return wp_protocol_add_bytes(buf, bytes, sizeof(bytes));
}

static int put_str(struct wp_protocol_buf *buf, const char *s)
{
	size_t n = strnlen(s, WP_PROTOCOL_STRING_MAX - 1);
	int rc = wp_protocol_add_bytes(buf, s, n);

	return rc ? rc : put_u8(buf, 0);
}

static int begin(struct wp_protocol_buf *buf, enum wp_protocol_kind kind)
{
	int rc = put_u32(buf, 0);

	return rc ? rc : put_u8(buf, (uint8_t)kind);
}

/* Fill in the length of the message at START, or take it back if RC says so. */
static int finish(struct wp_protocol_buf *buf, size_t start, int rc)
{
	size_t n = buf->len - start - HEADER;

	if (rc) {
		buf->len = start;
		return rc;
	}
	for (unsigned int i = 0; i < HEADER; i++)
		buf->data[start + i] = (uint8_t)(n >> 8 * i);
	return 0;
}

static int put_line(struct wp_protocol_buf *buf,
		    const struct wp_symbol_line *line)
{
	int rc = put_str(buf, line->function);

	if (!rc)
		rc = put_str(buf, line->system_name);
	if (!rc)
		rc = put_str(buf, line->file);
	if (!rc)
		rc = put_u32(buf, line->line);
	return rc ? rc : put_u32(buf, line->start_line);
}

int wp_protocol_add_answer(struct wp_protocol_buf *buf,
			   const struct wp_symbol_line *lines, uint32_t n)
{
	size_t start = buf->len;
	int rc = begin(buf, WP_PROTOCOL_ANSWER);

	if (n > WP_PROTOCOL_LEVELS_MAX)
		n = WP_PROTOCOL_LEVELS_MAX;
	if (!rc)
		rc = put_u8(buf, (uint8_t)n);
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = put_line(buf, &lines[i]);
	return finish(buf, start, rc);
}

int wp_protocol_add_has(struct wp_protocol_buf *buf, uint32_t module,
			const struct wp_symbol_has *has)
{
	uint8_t flags = (uint8_t)((has->functions ? HAS_FUNCTIONS : 0) |
				  (has->filenames ? HAS_FILENAMES : 0) |
				  (has->line_numbers ? HAS_LINE_NUMBERS : 0) |
				  (has->inline_frames ? HAS_INLINE_FRAMES : 0) |
				  (has->debug_file ? HAS_DEBUG_FILE : 0) |
				  (unsigned int)has->dwarf_loss
					  << DWARF_LOSS_SHIFT);
	size_t start = buf->len;
	int rc = begin(buf, WP_PROTOCOL_HAS);

	if (!rc)
		rc = put_u32(buf, module);
	if (!rc)
		rc = put_u8(buf, flags);
	return finish(buf, start, rc);
}

int wp_protocol_add_open(struct wp_protocol_buf *buf,
			 const struct wp_debug_query *query, uint32_t nth)
{
	size_t start = buf->len;
	uint32_t id_len = query->id_len < ID_MAX ? query->id_len : ID_MAX;
	int rc = begin(buf, WP_PROTOCOL_OPEN);

	if (!rc)
		rc = put_u8(buf, (uint8_t)query->kind);
	if (!rc)
		rc = put_u8(buf, query->of_debug);
	if (!rc)
		rc = put_u32(buf, query->module);
	if (!rc)
		rc = put_u32(buf, nth);
	if (!rc)
		rc = put_u8(buf, (uint8_t)id_len);
	if (!rc)
		rc = wp_protocol_add_bytes(buf, query->id, id_len);
	if (!rc)
		rc = put_str(buf, query->name ? query->name : "");
	return finish(buf, start, rc);
}

int wp_protocol_add_end(struct wp_protocol_buf *buf, enum wp_protocol_end how,
			int error)
{
	size_t start = buf->len;
	int rc = begin(buf, WP_PROTOCOL_END);

	if (!rc)
		rc = put_u8(buf, (uint8_t)how);
	if (!rc)
		rc = put_u32(buf, (uint32_t)error);
	return finish(buf, start, rc);
}

/* A string of at most MAX bytes with its NUL; "" (and R failed) if it is
 * longer. */
static const char *read_str(struct wp_reader *r, size_t max)
{
	const char *s = wp_read_cstr(r);

	if (s && strlen(s) < max)
		return s;
	r->failed = true;
	return "";
}

static void read_answer(struct wp_reader *r, struct wp_protocol_message *m)
{
	uint32_t n = wp_read_u8(r);

	if (!n || n > WP_PROTOCOL_LEVELS_MAX)
		r->failed = true;
	for (uint32_t i = 0; i < n && !r->failed; i++) {
		struct wp_symbol_line *line = &m->answer.lines[i];

		line->function = read_str(r, WP_PROTOCOL_STRING_MAX);
		line->system_name = read_str(r, WP_PROTOCOL_STRING_MAX);
		line->file = read_str(r, WP_PROTOCOL_STRING_MAX);
		line->line = wp_read_u32(r);
		line->start_line = wp_read_u32(r);
		if (!*line->function || !*line->system_name)
			r->failed = true;
	}
	m->answer.n = n;
}

static void read_has(struct wp_reader *r, struct wp_protocol_message *m)
{
	uint8_t flags;

	m->has.module = wp_read_u32(r);
	flags = wp_read_u8(r);
	m->has.has = (struct wp_symbol_has){
		.functions = flags & HAS_FUNCTIONS,
		.filenames = flags & HAS_FILENAMES,
		.line_numbers = flags & HAS_LINE_NUMBERS,
		.inline_frames = flags & HAS_INLINE_FRAMES,
		.debug_file = flags & HAS_DEBUG_FILE,
		.dwarf_loss = (enum wp_dwarf_loss)(flags >> DWARF_LOSS_SHIFT),
	};
}

static void read_open(struct wp_reader *r, struct wp_protocol_message *m)
{
	struct wp_debug_query *query = &m->open.query;
	uint8_t kind = wp_read_u8(r);

	*query = (struct wp_debug_query){ 0 };
	if (kind >= WP_NDEBUG_KINDS)
		r->failed = true;
	else
		query->kind = (enum wp_debug_kind)kind;
	query->of_debug = wp_read_u8(r);
	query->module = wp_read_u32(r);
	m->open.nth = wp_read_u32(r);
	query->id_len = wp_read_u8(r);
	query->id = r->pos;
	if (query->id_len > ID_MAX)
		r->failed = true;
	wp_read_skip(r, query->id_len);
	query->name = read_str(r, WP_PROTOCOL_STRING_MAX);
}

static void read_end(struct wp_reader *r, struct wp_protocol_message *m)
{
	uint8_t how = wp_read_u8(r);

	if (how >= WP_NPROTOCOL_ENDS)
		r->failed = true;
	else
		m->end.how = (enum wp_protocol_end)how;
	m->end.error = (int)(wp_read_u32(r) & 0xfff);
}

static void read_message(struct wp_reader *r, struct wp_protocol_message *m)
{
	m->kind = (enum wp_protocol_kind)wp_read_u8(r);
	switch (m->kind) {
	case WP_PROTOCOL_ANSWER:
		read_answer(r, m);
		break;
	case WP_PROTOCOL_HAS:
		read_has(r, m);
		break;
	case WP_PROTOCOL_OPEN:
		read_open(r, m);
		break;
	case WP_PROTOCOL_END:
		read_end(r, m);
		break;
	default:
		r->failed = true;
	}
}

ssize_t wp_protocol_parse(struct wp_protocol_message *ret, const void *data,
			  size_t len)
{
	struct wp_reader r = wp_reader_of(data, len);
	uint32_t n;

	if (len < HEADER)
		return 0;
	n = wp_read_u32(&r);
	if (!n || n > WP_PROTOCOL_MESSAGE_MAX)
		return -EBADMSG;
	if (n > len - HEADER)
		return 0;
	r = wp_reader_of((const uint8_t *)data + HEADER, n);
	read_message(&r, ret);
	return r.failed || wp_reader_left(&r) ? -EBADMSG : (ssize_t)n + HEADER;
}
