/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol buffer encoding, against the bytes of the specification.
 *
 * Layer: output.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "../../src/output/proto.h"

static void assert_bytes(struct wp_buf *buf, const char *want, size_t n)
{
	assert_int_equal(buf->rc, 0);
	assert_int_equal(buf->len, n);
	assert_memory_equal(buf->data, want, n);
	wp_buf_clear(buf);
}

#define ASSERT_BYTES(buf, want) assert_bytes(buf, want, sizeof(want) - 1)

static void varints_are_as_specified(void **state)
{
	struct wp_buf buf = WP_BUF_INIT;

	(void)state;
	wp_proto_varint(&buf, 0);
	ASSERT_BYTES(&buf, "\0");
	wp_proto_varint(&buf, 127);
	ASSERT_BYTES(&buf, "\x7f");
	wp_proto_varint(&buf, 128);
	ASSERT_BYTES(&buf, "\x80\x01");
	/* protobuf.dev, "Encoding": 150 is 9601. */
	wp_proto_varint(&buf, 150);
	ASSERT_BYTES(&buf, "\x96\x01");
	wp_proto_varint(&buf, UINT64_MAX);
	ASSERT_BYTES(&buf, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

static void fields_are_as_specified(void **state)
{
	struct wp_buf buf = WP_BUF_INIT;

	(void)state;
	wp_proto_uint(&buf, 1, 150);
	ASSERT_BYTES(&buf, "\x08\x96\x01");
	wp_proto_bytes(&buf, 2, "testing", 7);
	ASSERT_BYTES(&buf, "\x12\x07testing");
	wp_proto_int(&buf, 1, -2);
	ASSERT_BYTES(&buf, "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
	wp_proto_uint(&buf, 16, 1);
	ASSERT_BYTES(&buf, "\x80\x01\x01");
}

static void zero_is_left_out_but_an_empty_element_is_not(void **state)
{
	struct wp_buf buf = WP_BUF_INIT;

	(void)state;
	wp_proto_uint(&buf, 1, 0);
	assert_int_equal(buf.len, 0);
	wp_proto_bytes(&buf, 6, "", 0);
	ASSERT_BYTES(&buf, "\x32\0");
}

static void messages_nest(void **state)
{
	struct wp_buf buf = WP_BUF_INIT;
	size_t outer, inner;

	(void)state;
	outer = wp_proto_begin(&buf, 3);
	inner = wp_proto_begin(&buf, 1);
	wp_proto_uint(&buf, 1, 150);
	wp_proto_end(&buf, inner);
	wp_proto_uint(&buf, 2, 1);
	wp_proto_end(&buf, outer);
	ASSERT_BYTES(&buf, "\x1a\x07\x0a\x03\x08\x96\x01\x10\x01");
}

/* Of 127, 128 and 16384 bytes: the length takes one, two and three. */
static void long_messages_have_long_lengths(void **state)
{
	static const struct {
		size_t len;
		const char *head;
	} rows[] = {
		{ 127, "\x0a\x7f" },
		{ 128, "\x0a\x80\x01" },
		{ 16384, "\x0a\x80\x80\x01" },
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct wp_buf buf = WP_BUF_INIT;
		size_t begin = wp_proto_begin(&buf, 1);
		size_t head = strlen(rows[i].head);

		wp_buf_char(&buf, 'a');
		wp_buf_fill(&buf, 'b', rows[i].len - 2);
		wp_buf_char(&buf, 'c');
		wp_proto_end(&buf, begin);
		assert_int_equal(buf.len, head + rows[i].len);
		assert_memory_equal(buf.data, rows[i].head, head);
		assert_int_equal(buf.data[head], 'a');
		assert_int_equal(buf.data[head + 1], 'b');
		assert_int_equal(buf.data[buf.len - 1], 'c');
		wp_buf_clear(&buf);
	}
}

static void errors_stick(void **state)
{
	struct wp_buf buf = { .rc = -ENOMEM };
	size_t begin;

	(void)state;
	begin = wp_proto_begin(&buf, 1);
	wp_proto_bytes(&buf, 2, "x", 1);
	wp_proto_end(&buf, begin);
	wp_buf_printf(&buf, "%d", 1);
	assert_int_equal(buf.len, 0);
	assert_int_equal(wp_buf_finish(&buf, stderr), -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(varints_are_as_specified),
		cmocka_unit_test(fields_are_as_specified),
		cmocka_unit_test(zero_is_left_out_but_an_empty_element_is_not),
		cmocka_unit_test(messages_nest),
		cmocka_unit_test(long_messages_have_long_lengths),
		cmocka_unit_test(errors_stick),
	};

	return cmocka_run_group_tests_name("proto", tests, NULL, NULL);
}
