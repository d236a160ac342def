/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: output.  wp_pprof_read: no file makes more work than one of its size may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "pprof_maker.h"
#include "wallprof/output.h"

static int read_bytes(const struct wp_buf *b, struct wp_err *err)
{
	struct wp_profile profile;
	int rc;

	*err = (struct wp_err)WP_ERR_INIT;
	assert_int_equal(wp_profile_init(&profile), 0);
	rc = wp_pprof_read(&profile, b->data, b->len, err);
	wp_profile_clear(&profile);
	return rc;
}

/* A message of the file: FIELD, with the id 1. */
static size_t begin_element(struct wp_buf *b, unsigned int field)
{
	size_t at = wp_proto_begin(b, field);

	wp_proto_uint(b, 1, 1);
	return at;
}

/* Put a profile whose stack of DEPTH frames has NLINES functions in each. */
static void put_inlined(struct wp_buf *b, unsigned int depth,
			unsigned int nlines)
{
	static const char *const strings[] = { "", "wall", "nanoseconds" };
	size_t at, line;

	put_type(b, 1, 2);
	at = wp_proto_begin(b, 2);
	for (unsigned int i = 0; i < depth; i++)
		wp_proto_uint(b, 1, 1);
	wp_proto_uint(b, 2, 1000);
	wp_proto_end(b, at);
	at = begin_element(b, 4);
	for (unsigned int i = 0; i < nlines; i++) {
		line = begin_element(b, 4);
		wp_proto_end(b, line);
	}
	wp_proto_end(b, at);
	at = begin_element(b, 5);
	wp_proto_end(b, at);
	put_strings(b, strings, 3);
}

static void stacks_that_unfold_to_much_are_refused(void **state)
{
	static const struct {
		unsigned int depth, nlines;
		int rc;
	} rows[] = {
		{ 1, 1000, 0 },
		{ 1000, 1, 0 },
		{ 1000, 1000, 0 },
		{ 2000, 2000, -EBADMSG },
		/* A big file tells of many. */
		{ 300000, 4, 0 },
	};
	struct wp_err error;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_buf b = WP_BUF_INIT;

		put_inlined(&b, rows[i].depth, rows[i].nlines);
		assert_int_equal(read_bytes(&b, &error), rows[i].rc);
		wp_buf_clear(&b);
	}
}

/* Put samples FROM to TO of DEPTH frames each, which differ in those, or if they have
 * none, in their tid. */
static void put_many(struct wp_buf *b, unsigned int from, unsigned int to,
		     unsigned int depth)
{
	size_t at, in;

	for (unsigned int i = from; i < to; i++) {
		at = wp_proto_begin(b, 2);
		in = wp_proto_begin(b, 1);
		for (unsigned int k = 0; k < depth; k++)
			wp_buf_char(b, k < 32 && (i >> k & 1) ? 2 : 1);
		wp_proto_end(b, in);
		wp_proto_uint(b, 2, 1);
		in = wp_proto_begin(b, 3);
		wp_proto_uint(b, 1, 3);
		wp_proto_uint(b, 3, depth ? 1 : i + 1);
		wp_proto_end(b, in);
		wp_proto_end(b, at);
	}
}

static void too_many_samples_are_refused(void **state)
{
	static const char *const strings[] = { "", "wall", "nanoseconds",
					       "tid" };
	static const struct {
		unsigned int n, depth;
		const char *says;
	} rows[] = {
		{ (1 << 22) + 1, 0, "4,194,304" },
		{ (1 << 13) + 1, 1 << 13, "67,108,864" },
	};
	struct wp_err error;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_buf b = WP_BUF_INIT;
		size_t at;

		put_type(&b, 1, 2);
		put_strings(&b, strings, 4);
		for (unsigned int id = 1; id <= 2; id++) {
			at = wp_proto_begin(&b, 4);
			wp_proto_uint(&b, 1, id);
			wp_proto_end(&b, at);
		}
		put_many(&b, 0, rows[i].n - 1, rows[i].depth);
		assert_int_equal(read_bytes(&b, &error), 0);
		put_many(&b, rows[i].n - 1, rows[i].n, rows[i].depth);
		assert_int_equal(read_bytes(&b, &error), -EBADMSG);
		assert_non_null(strstr(error.msg, rows[i].says));
		wp_buf_clear(&b);
	}
}

/* Put a profile that tells of a text of LEN bytes that begins as BEGIN does, N times: as
 * a comment, or as the label KEY of N samples. */
static void put_told(struct wp_buf *b, const char *begin, size_t size,
		     unsigned int n, const char *key)
{
	const char *strings[] = { "", "wall", "nanoseconds", key ? key : "",
				  NULL };
	char *text = malloc(size + 1);
	size_t at, in;

	assert_non_null(text);
	memset(text, '1', size);
	text[size] = '\0';
	memcpy(text, begin, strlen(begin));
	strings[4] = text;
	put_type(b, 1, 2);
	put_strings(b, strings, 5);
	free(text);
	for (unsigned int i = 0; i < n && !key; i++)
		wp_proto_uint(b, 13, 4);
	for (unsigned int i = 0; i < n && key; i++) {
		at = wp_proto_begin(b, 2);
		wp_proto_uint(b, 2, 1);
		in = wp_proto_begin(b, 3);
		wp_proto_uint(b, 1, 3);
		wp_proto_uint(b, 2, 4);
		wp_proto_end(b, in);
		wp_proto_end(b, at);
	}
}

static void text_that_is_told_again_and_again_is_refused(void **state)
{
	enum { MB = 1 << 20 };
	static const struct {
		const char *begin;
		size_t size;
		unsigned int n;
		const char *key;
		int rc;
	} rows[] = {
		{ "", MB, 10, NULL, 0 },
		{ "", MB, 20, NULL, -EBADMSG },
		{ "command: ", MB, 20, NULL, -EBADMSG },
		{ "syscall:", MB, 10, "wait", 0 },
		{ "syscall:", MB, 20, "wait", -EBADMSG },
		{ "", MB, 20, "tid", -EBADMSG },
		{ "", MB, 20, "pid", -EBADMSG },
		/* As a long recording has it. */
		{ "syscall:", strlen("syscall:rt_sigtimedwait_time32"), 300000,
		  "wait", 0 },
	};
	struct wp_err error;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_buf b = WP_BUF_INIT;

		put_told(&b, rows[i].begin, rows[i].size, rows[i].n,
			 rows[i].key);
		assert_int_equal(read_bytes(&b, &error), rows[i].rc);
		wp_buf_clear(&b);
	}
}

/* Each is two bytes of a file. */
static void too_many_strings_are_refused(void **state)
{
	static const char *const none[1] = { "" };
	struct wp_buf b = WP_BUF_INIT;
	struct wp_err error;

	(void)state;
	for (unsigned int i = 0; i < (1 << 24); i++)
		put_strings(&b, none, 1);
	/* No sample types, then. */
	assert_int_equal(read_bytes(&b, &error), -EBADMSG);
	assert_null(strstr(error.msg, "16,777,216"));
	put_strings(&b, none, 1);
	assert_int_equal(read_bytes(&b, &error), -EBADMSG);
	assert_non_null(strstr(error.msg, "16,777,216"));
	wp_buf_clear(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_that_unfold_to_much_are_refused),
		cmocka_unit_test(too_many_samples_are_refused),
		cmocka_unit_test(text_that_is_told_again_and_again_is_refused),
		cmocka_unit_test(too_many_strings_are_refused),
	};

	return cmocka_run_group_tests_name("pprof_bounds", tests, NULL, NULL);
}
