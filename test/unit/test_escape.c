/* SPDX-License-Identifier: Apache-2.0 */
/* Text from a target made fit to be shown.
 *
 * Layer: output.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../src/output/escape.h"

static void assert_escaped(void (*escape)(struct wp_buf *, const char *),
			   const char *in, const char *want)
{
	struct wp_buf buf = WP_BUF_INIT;
	/* No byte past the end, so that an over-read is seen. */
	char *exact = test_malloc(strlen(in) + 1);

	memcpy(exact, in, strlen(in) + 1);
	escape(&buf, exact);
	wp_buf_char(&buf, '\0');
	assert_string_equal(buf.data, want);
	wp_buf_clear(&buf);
	test_free(exact);
}

static void good_text_is_left_alone(void **state)
{
	static const char *const good[] = {
		"",
		"main",
		"std::vector<int, a>::f(char const*)",
		"h\xc3\xa9ros",
		"\xe2\x82\xac",
		"\xf0\x9f\x98\x80",
		"\xf4\x8f\xbf\xbf",
		"back\\slash",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_escaped(wp_escape_terminal, good[i], good[i]);
		assert_escaped(wp_escape_file, good[i], good[i]);
		assert_escaped(wp_escape_folded, good[i], good[i]);
	}
}

/* RFC 3629, section 10 and Unicode table 3-7: what is not well-formed. */
static void bad_utf8_is_replaced(void **state)
{
	static const struct {
		const char *in;
		const char *terminal;
		const char *file;
	} rows[] = {
		{ "a\xff"
		  "b",
		  "a\\xffb",
		  "a\xef\xbf\xbd"
		  "b" },
		{ "\x80", "\\x80", "\xef\xbf\xbd" },
		/* Overlong '/' and NUL. */
		{ "\xc0\xaf", "\\xc0\\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xe0\x80\x80", "\\xe0\\x80\\x80",
		  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		/* A surrogate; past U+10FFFF. */
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80",
		  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80",
		  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		/* Cut short, at the end and before good text. */
		{ "\xe2\x82", "\\xe2\\x82", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xe2\x82z", "\\xe2\\x82z", "\xef\xbf\xbd\xef\xbf\xbdz" },
		{ "\xf0", "\\xf0", "\xef\xbf\xbd" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_escaped(wp_escape_terminal, rows[i].in,
			       rows[i].terminal);
		assert_escaped(wp_escape_file, rows[i].in, rows[i].file);
		assert_escaped(wp_escape_folded, rows[i].in, rows[i].file);
	}
}

static void controls_are_shown_not_obeyed(void **state)
{
	static const struct {
		const char *in;
		const char *want;
		const char *folded;
	} rows[] = {
		{ "\x1b[31m", "\\x1b[31m", "?[31m" },
		{ "a\nb\tc\r", "a\\x0ab\\x09c\\x0d", "a?b?c?" },
		{ "\x7f", "\\x7f", "?" },
		/* CSI as one C1 character; line separator; right-to-left
		 * override; byte order mark. */
		{ "\xc2\x9b"
		  "31m",
		  "\\u009b31m", "?31m" },
		{ "\xe2\x80\xa8", "\\u2028", "?" },
		{ "\xe2\x80\xaetxt", "\\u202etxt", "?txt" },
		{ "\xef\xbb\xbf", "\\ufeff", "?" },
		/* No characters of XML. */
		{ "\xef\xbf\xbe\xef\xbf\xbf", "\\ufffe\\uffff", "??" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_escaped(wp_escape_terminal, rows[i].in, rows[i].want);
		assert_escaped(wp_escape_file, rows[i].in, rows[i].want);
		assert_escaped(wp_escape_folded, rows[i].in, rows[i].folded);
	}
	assert_escaped(wp_escape_folded, "a;b c", "a:b c");
}

static void every_byte_pair_ends_as_printable_utf8(void **state)
{
	(void)state;
	for (unsigned int i = 1; i < 0x10000; i++) {
		char in[] = { (char)(i & 0xff), (char)(i >> 8), 0 };
		struct wp_buf buf = WP_BUF_INIT;
		size_t n, at = 0;
		uint32_t code;

		if (!in[0])
			continue;
		wp_escape_file(&buf, in);
		for (; at < buf.len; at += n) {
			n = wp_utf8_next(buf.data + at, buf.len - at, &code);
			assert_int_not_equal(n, 0);
			assert_false(wp_utf8_is_control(code));
		}
		wp_buf_clear(&buf);
	}
}

static void long_names_lose_their_middle(void **state)
{
	static const struct {
		const char *in;
		size_t width;
		const char *want;
	} rows[] = {
		{ "abcdefghij", 0, "abcdefghij" },
		{ "abcdefghij", 10, "abcdefghij" },
		{ "abcdefghij", 9, "abc...hij" },
		{ "abcdefghij", 8, "abc...ij" },
		{ "abcdefghij", 4, "a..." },
		{ "abcdefghij", 3, "..." },
		{ "abcdefghij", 1, "." },
		/* Seven characters of two bytes each. */
		{ "\xc3\xa0\xc3\xa1\xc3\xa2\xc3\xa3\xc3\xa4\xc3\xa5\xc3\xa6", 5,
		  "\xc3\xa0...\xc3\xa6" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_buf buf = WP_BUF_INIT;

		wp_escape_fit(&buf, rows[i].in, strlen(rows[i].in),
			      rows[i].width);
		wp_buf_char(&buf, '\0');
		assert_string_equal(buf.data, rows[i].want);
		wp_buf_clear(&buf);
	}
}

static void a_line_is_made_tame_in_place(void **state)
{
	char line[] = "a\n\x1b[2J\xff \xc3\xa9 \xc2\x9b \xe2\x80\xae\xe2\x80";

	(void)state;
	wp_utf8_tame(line);
	assert_string_equal(line, "a??[2J? \xc3\xa9 ?? ?????");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_text_is_left_alone),
		cmocka_unit_test(bad_utf8_is_replaced),
		cmocka_unit_test(a_line_is_made_tame_in_place),
		cmocka_unit_test(controls_are_shown_not_obeyed),
		cmocka_unit_test(every_byte_pair_ends_as_printable_utf8),
		cmocka_unit_test(long_names_lose_their_middle),
	};

	return cmocka_run_group_tests_name("escape", tests, NULL, NULL);
}
