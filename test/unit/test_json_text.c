/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: output.  json_text.h and base64.h: text and bytes in files for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../../src/output/base64.h"
#include "../../src/output/json_text.h"

static void no_text_ends_its_string_or_the_element_around_it(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "\"\"" },
		{ "main", "\"main\"" },
		{ "a\"b\\c", "\"a\\\"b\\\\c\"" },
		{ "</script><!--", "\"\\u003c/script>\\u003c!--\"" },
		{ "\xc3\xa9\n\x01", "\"\xc3\xa9\\\\x0a\\\\x01\"" },
		{ "\xff\xe2\x80\xa8", "\"\xef\xbf\xbd\\\\u2028\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_buf buf = WP_BUF_INIT;

		wp_json_text(&buf, rows[i].text);
		wp_buf_char(&buf, '\0');
		assert_int_equal(buf.rc, 0);
		assert_string_equal(buf.data, rows[i].want);
		wp_buf_clear(&buf);
	}
}

static void base64_is_that_of_the_rfc(void **state)
{
	/* RFC 4648, section 10. */
	static const struct {
		const char *bytes, *want;
	} rows[] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
		{ "\xff\xfe\xfb", "//77" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char *text = NULL;
		size_t n = 0;
		FILE *out = open_memstream(&text, &n);

		assert_int_equal(wp_base64_write(rows[i].bytes,
						 strlen(rows[i].bytes), out),
				 0);
		fclose(out);
		assert_string_equal(text, rows[i].want);
		free(text);
	}
}

static void base64_of_any_length_is_whole(void **state)
{
	enum { N = 10000 };
	static const unsigned char zeros[N];

	(void)state;
	for (size_t len = N - 6; len <= N; len++) {
		char *text = NULL;
		size_t n = 0;
		FILE *out = open_memstream(&text, &n);

		assert_int_equal(wp_base64_write(zeros, len, out), 0);
		fclose(out);
		assert_int_equal(n, (len + 2) / 3 * 4);
		assert_int_equal(strspn(text, "A"), (len * 8 + 5) / 6);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			no_text_ends_its_string_or_the_element_around_it),
		cmocka_unit_test(base64_is_that_of_the_rfc),
		cmocka_unit_test(base64_of_any_length_is_whole),
	};

	return cmocka_run_group_tests_name("json_text", tests, NULL, NULL);
}
