/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: symbolize.  src/namer_wire.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/symbolize/namer_protocol.h"

static const struct wp_symbol_line two_levels[] = {
	{ "f(int)", "_Z1fi", "a.cc", 7, 3 },
	{ "main", "main", "", 0, 0 },
};
static const uint8_t id[] = { 0xab, 0, 0xcd };

/* Parse from memory of exactly LEN bytes. */
static ssize_t parse(struct wp_protocol_message *ret, const void *data,
		     size_t len, uint8_t **ret_copy)
{
	uint8_t *copy = malloc(len ? len : 1);
	ssize_t n;

	assert_non_null(copy);
	memcpy(copy, data, len);
	n = wp_protocol_parse(ret, copy, len);
	if (ret_copy)
		*ret_copy = copy;
	else
		free(copy);
	return n;
}

static void add_all(struct wp_protocol_buf *wire)
{
	const struct wp_symbol_has has = { .functions = true,
					   .line_numbers = true,
					   .dwarf_loss = WP_DWARF_TOO_LARGE };
	const struct wp_debug_query by_id = { WP_DEBUG_BY_ID, 9,   true, id,
					      sizeof(id),     NULL };
	const struct wp_debug_query by_link = {
		WP_DEBUG_BY_LINK, 9, false, NULL, 0, "x.debug"
	};

	assert_int_equal(wp_protocol_add_answer(wire, two_levels, 2), 0);
	assert_int_equal(wp_protocol_add_has(wire, 0x01020304, &has), 0);
	assert_int_equal(wp_protocol_add_open(wire, &by_id, 5), 0);
	assert_int_equal(wp_protocol_add_open(wire, &by_link, 0), 0);
	assert_int_equal(
		wp_protocol_add_end(wire, WP_PROTOCOL_NO_SANDBOX, EPERM), 0);
}

static void messages_come_out_as_they_went_in(void **state)
{
	struct wp_protocol_buf wire = WP_PROTOCOL_INIT;
	struct wp_protocol_message *m = malloc(sizeof(*m));
	const uint8_t *at;

	(void)state;
	assert_non_null(m);
	add_all(&wire);
	at = wire.data;

	at += wp_protocol_parse(m, at, wire.len);
	assert_int_equal(m->kind, WP_PROTOCOL_ANSWER);
	assert_int_equal(m->answer.n, 2);
	assert_string_equal(m->answer.lines[0].function, "f(int)");
	assert_string_equal(m->answer.lines[0].system_name, "_Z1fi");
	assert_string_equal(m->answer.lines[0].file, "a.cc");
	assert_int_equal(m->answer.lines[0].line, 7);
	assert_int_equal(m->answer.lines[0].start_line, 3);
	assert_string_equal(m->answer.lines[1].file, "");

	at += wp_protocol_parse(m, at, wire.len);
	assert_int_equal(m->kind, WP_PROTOCOL_HAS);
	assert_int_equal(m->has.module, 0x01020304);
	assert_true(m->has.has.functions && m->has.has.line_numbers);
	assert_false(m->has.has.filenames || m->has.has.inline_frames ||
		     m->has.has.debug_file);
	assert_int_equal(m->has.has.dwarf_loss, WP_DWARF_TOO_LARGE);

	at += wp_protocol_parse(m, at, wire.len);
	assert_int_equal(m->kind, WP_PROTOCOL_OPEN);
	assert_int_equal(m->open.query.kind, WP_DEBUG_BY_ID);
	assert_int_equal(m->open.query.module, 9);
	assert_true(m->open.query.of_debug);
	assert_int_equal(m->open.nth, 5);
	assert_int_equal(m->open.query.id_len, sizeof(id));
	assert_memory_equal(m->open.query.id, id, sizeof(id));

	at += wp_protocol_parse(m, at, wire.len);
	assert_int_equal(m->open.query.kind, WP_DEBUG_BY_LINK);
	assert_string_equal(m->open.query.name, "x.debug");

	at += wp_protocol_parse(m, at, wire.len);
	assert_int_equal(m->kind, WP_PROTOCOL_END);
	assert_int_equal(m->end.how, WP_PROTOCOL_NO_SANDBOX);
	assert_int_equal(m->end.error, EPERM);
	assert_ptr_equal(at, wire.data + wire.len);
	free(wire.data);
	free(m);
}

static void strings_and_levels_are_cut_at_their_limits(void **state)
{
	static char text[2 * WP_PROTOCOL_STRING_MAX];
	struct wp_symbol_line lines[WP_PROTOCOL_LEVELS_MAX + 1];
	struct wp_protocol_buf wire = WP_PROTOCOL_INIT;
	struct wp_protocol_message *m = malloc(sizeof(*m));

	(void)state;
	assert_non_null(m);
	memset(text, 'x', sizeof(text) - 1);
	for (size_t i = 0; i <= WP_PROTOCOL_LEVELS_MAX; i++)
		lines[i] = (struct wp_symbol_line){ text, text, text, 1, 1 };
	assert_int_equal(wp_protocol_add_answer(&wire, lines,
						WP_PROTOCOL_LEVELS_MAX + 1),
			 0);
	/* What the writer makes of too much, the reader takes. */
	assert_int_equal(wp_protocol_parse(m, wire.data, wire.len), wire.len);
	assert_int_equal(m->answer.n, WP_PROTOCOL_LEVELS_MAX);
	assert_int_equal(strlen(m->answer.lines[0].function),
			 WP_PROTOCOL_STRING_MAX - 1);
	free(wire.data);
	free(m);
}

/* A message that is not all there is no error, and never half a message. */
static void every_prefix_is_safe(void **state)
{
	struct wp_protocol_buf wire = WP_PROTOCOL_INIT;
	struct wp_protocol_message *m = malloc(sizeof(*m));
	size_t len;

	(void)state;
	assert_non_null(m);
	add_all(&wire);
	for (size_t at = 0; at < wire.len; at += len) {
		len = (size_t)wp_protocol_parse(m, wire.data + at,
						wire.len - at);
		assert_in_range(len, 6, wire.len - at);
		for (size_t n = 0; n < len; n++)
			assert_int_equal(parse(m, wire.data + at, n, NULL), 0);
	}
	free(wire.data);
	free(m);
}

struct bad {
	const char *what;
	uint8_t bytes[40];
	size_t len;
};

static void malformed_messages_are_refused(void **state)
{
	static const struct bad bad[] = {
		{ "no kind", { 0, 0, 0, 0 }, 4 },
		{ "over the limit", { 1, 0, 64, 0, 1 }, 5 },
		{ "negative", { 0xff, 0xff, 0xff, 0xff, 1 }, 5 },
		{ "kind 0", { 1, 0, 0, 0, 0 }, 5 },
		{ "kind 5", { 1, 0, 0, 0, 5 }, 5 },
		{ "no level", { 2, 0, 0, 0, 1, 0 }, 6 },
		{ "more levels than bytes", { 2, 0, 0, 0, 1, 64 }, 6 },
		{ "too many levels", { 2, 0, 0, 0, 1, 65 }, 6 },
		{ "no NUL", { 4, 0, 0, 0, 1, 1, 'f', 'g' }, 8 },
		{ "string ends in the next message",
		  { 3, 0, 0, 0, 1, 1, 'f', 0, 0, 0, 0, 0, 0, 0, 0 },
		  15 },
		{ "no function", { 13, 0, 0, 0, 1, 1, 0, 's', 0, 0 }, 17 },
		{ "bytes too many", { 7, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0 }, 11 },
		{ "bytes too few", { 5, 0, 0, 0, 2, 1, 0, 0, 0 }, 9 },
		{ "kind of file",
		  { 13, 0, 0, 0, 3, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
		  17 },
		{ "build-id over its limit",
		  { 13, 0, 0, 0, 3, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 65, 0 },
		  17 },
		{ "build-id longer than the message",
		  { 13, 0, 0, 0, 3, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 64, 0 },
		  17 },
		{ "end", { 6, 0, 0, 0, 4, 3, 0, 0, 0, 0 }, 10 },
	};
	struct wp_protocol_message *m = malloc(sizeof(*m));

	(void)state;
	assert_non_null(m);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (parse(m, bad[i].bytes, bad[i].len, NULL) != -EBADMSG)
			fail_msg("%s is taken", bad[i].what);
	free(m);
}

static bool is_inside(const char *s, const uint8_t *data, size_t len)
{
	const uint8_t *p = (const uint8_t *)s;

	return p >= data && p < data + len &&
	       memchr(p, 0, len - (size_t)(p - data));
}

static void assert_sane(const struct wp_protocol_message *m,
			const uint8_t *data, size_t len)
{
	switch (m->kind) {
	case WP_PROTOCOL_ANSWER:
		assert_in_range(m->answer.n, 1, WP_PROTOCOL_LEVELS_MAX);
		for (uint32_t i = 0; i < m->answer.n; i++) {
			const struct wp_symbol_line *l = &m->answer.lines[i];

			assert_true(is_inside(l->function, data, len));
			assert_true(is_inside(l->system_name, data, len));
			assert_true(is_inside(l->file, data, len));
			assert_true(*l->function && *l->system_name);
		}
		break;
	case WP_PROTOCOL_OPEN:
		assert_true(m->open.query.kind < WP_NDEBUG_KINDS);
		assert_true(is_inside(m->open.query.name, data, len));
		assert_true(m->open.query.id + m->open.query.id_len <=
			    data + len);
		break;
	case WP_PROTOCOL_HAS:
		break;
	case WP_PROTOCOL_END:
		assert_true(m->end.how < WP_NPROTOCOL_ENDS);
		break;
	default:
		fail_msg("kind %d", m->kind);
	}
}

/* What is parsed lies in the message, whatever it says. */
static void mutations_are_refused_or_sane(void **state)
{
	struct wp_protocol_buf wire = WP_PROTOCOL_INIT;
	struct wp_protocol_message *m = malloc(sizeof(*m));
	unsigned int seed = 1, taken = 0;

	(void)state;
	assert_non_null(m);
	add_all(&wire);
	for (unsigned int i = 0; i < 20000; i++) {
		uint8_t *was = malloc(wire.len), *copy;
		ssize_t n;

		assert_non_null(was);
		memcpy(was, wire.data, wire.len);
		for (int k = rand_r(&seed) % 4; k >= 0; k--)
			was[(size_t)rand_r(&seed) % wire.len] = (uint8_t)rand_r(
				&seed);
		for (size_t at = 0; at < wire.len; at += (size_t)n) {
			n = parse(m, was + at, wire.len - at, &copy);
			assert_true(n >= -EBADMSG &&
				    n <= (ssize_t)(wire.len - at));
			if (n > 0)
				assert_sane(m, copy, (size_t)n);
			taken += n > 0;
			free(copy);
			if (n <= 0)
				break;
		}
		free(was);
	}
	/* Not all by the first length. */
	assert_true(taken > 20000);
	free(wire.data);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_come_out_as_they_went_in),
		cmocka_unit_test(strings_and_levels_are_cut_at_their_limits),
		cmocka_unit_test(every_prefix_is_safe),
		cmocka_unit_test(malformed_messages_are_refused),
		cmocka_unit_test(mutations_are_refused_or_sane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
