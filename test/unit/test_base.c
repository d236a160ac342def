/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: base.  err, reader, intern, hash, types, io. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wallprof/base_name.h"
#include "wallprof/err.h"
#include "wallprof/hash.h"
#include "wallprof/intern.h"
#include "wallprof/reader.h"
#include "wallprof/types.h"

static void errors_carry_code_and_text(void **state)
{
	struct wp_err err = WP_ERR_INIT;

	(void)state;
	errno = 42;
	assert_int_equal(wp_err_set(&err, -EPERM, "thread %d", 7), -EPERM);
	assert_string_equal(err.msg, "thread 7");
	assert_int_equal(err.code, -EPERM);
	assert_int_equal(errno, 42);
	assert_int_equal(wp_err_set(NULL, -EPERM, "x"), -EPERM);
}

static void a_base_name_is_never_empty(void **state)
{
	(void)state;
	assert_string_equal(wp_base_name("/usr/lib/libc.so.6"), "libc.so.6");
	assert_string_equal(wp_base_name("prog"), "prog");
	assert_string_equal(wp_base_name("/"), "/");
	assert_true(wp_path_is_made("/memfd:jit (deleted)"));
	assert_true(wp_path_is_made("/dev/zero (deleted)"));
	assert_true(wp_path_is_made("/anon_hugepage (deleted)"));
	assert_true(wp_path_is_made("/SYSV00000000 (deleted)"));
	assert_true(wp_path_is_made(""));
	assert_false(wp_path_is_made("/usr/lib/libc.so.6"));
	assert_string_equal(wp_base_name("dir/"), "dir/");
	assert_string_equal(wp_base_name(""), "");
}

static void long_messages_are_cut_not_overrun(void **state)
{
	struct wp_err err = WP_ERR_INIT;
	char text[2000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	wp_err_set(&err, -EPERM, "%s", text);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
}

static void numbers_are_little_endian(void **state)
{
	static const uint8_t bytes[] = { 1, 2,	3,  4,	5,  6,	7, 8,
					 9, 10, 11, 12, 13, 14, 15 };
	struct wp_reader r = wp_reader_of(bytes, sizeof(bytes));

	(void)state;
	assert_int_equal(wp_read_u8(&r), 1);
	assert_int_equal(wp_read_u16(&r), 0x0302);
	assert_int_equal(wp_read_u32(&r), 0x07060504);
	assert_true(wp_read_u64(&r) == UINT64_C(0x0f0e0d0c0b0a0908));
	assert_false(r.failed);
	assert_int_equal(wp_reader_left(&r), 0);
}

/* DWARF 5, 7.6, figures C.1 and C.2. */
static void leb128_examples_of_the_standard(void **state)
{
	static const struct {
		uint8_t bytes[10];
		size_t len;
		bool sign;
		int64_t want;
	} rows[] = {
		{ { 2 }, 1, false, 2 },
		{ { 127 }, 1, false, 127 },
		{ { 0x80, 1 }, 2, false, 128 },
		{ { 57 | 0x80, 100 }, 2, false, 12857 },
		{ { 2 }, 1, true, 2 },
		{ { 0x7e }, 1, true, -2 },
		{ { 127 | 0x80, 0 }, 2, true, 127 },
		{ { 1 | 0x80, 0x7f }, 2, true, -127 },
		{ { 0x80, 0x7f }, 2, true, -128 },
		{ { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1 },
		  10,
		  false,
		  -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_reader r = wp_reader_of(rows[i].bytes, rows[i].len);
		int64_t val = rows[i].sign ? wp_read_sleb(&r) :
					     (int64_t)wp_read_uleb(&r);

		assert_true(val == rows[i].want);
		assert_false(r.failed);
	}
}

static void past_the_end_is_zero_for_good(void **state)
{
	static const uint8_t bytes[] = { 0xff, 0xff, 0xff };
	struct wp_reader r = wp_reader_of(bytes, sizeof(bytes));

	(void)state;
	assert_int_equal(wp_read_u32(&r), 0);
	assert_true(r.failed);
	assert_int_equal(wp_read_u8(&r), 0);
	r = wp_reader_of(bytes, sizeof(bytes));
	assert_int_equal(wp_read_uleb(&r), 0);
	assert_true(r.failed);
	r = wp_reader_of(bytes, sizeof(bytes));
	assert_null(wp_read_cstr(&r));
	r = wp_reader_of(bytes, sizeof(bytes));
	wp_read_skip(&r, UINT64_MAX);
	assert_true(r.failed);
	r = wp_reader_of(NULL, 0);
	assert_true(r.failed);
}

static void overlong_leb128_fails(void **state)
{
	uint8_t bytes[12] = { 0 };
	struct wp_reader r = wp_reader_of(bytes, sizeof(bytes));

	(void)state;
	memset(bytes, 0x80, sizeof(bytes));
	assert_int_equal(wp_read_uleb(&r), 0);
	assert_true(r.failed);
}

static void equal_strings_have_one_id(void **state)
{
	struct wp_intern in = WP_INTERN_INIT;
	char name[32];

	(void)state;
	assert_int_equal(wp_intern_add_str(&in, ""), 0);
	assert_int_equal(wp_intern_add_str(&in, "a"), 1);
	for (unsigned int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		assert_int_equal(wp_intern_add_str(&in, name), i + 2);
	}
	for (unsigned int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		assert_int_equal(wp_intern_add_str(&in, name), i + 2);
		assert_string_equal(wp_intern_str(&in, i + 2), name);
	}
	assert_int_equal(wp_intern_add(&in, "abc", 1), 1);
	assert_string_equal(wp_intern_str(&in, 999999), "");
	wp_intern_clear(&in);
	assert_string_equal(wp_intern_str(&in, 1), "");
}

static void a_prefix_is_another_string(void **state)
{
	struct wp_intern in = WP_INTERN_INIT;
	uint32_t ab = wp_intern_add_str(&in, "ab");

	(void)state;
	assert_int_not_equal(wp_intern_add_str(&in, "a"), ab);
	assert_int_not_equal(wp_intern_add_str(&in, "abc"), ab);
	assert_int_equal(wp_intern_add(&in, "a\0b", 3),
			 wp_intern_add_str(&in, "a"));
	wp_intern_clear(&in);
}

static void every_enum_value_has_a_name(void **state)
{
	(void)state;
	for (int i = 0; i < WP_NSTATES; i++)
		assert_true(wp_types_state_name((enum wp_state)i)[0]);
	for (int i = 1; i < WP_NWAITS; i++)
		assert_true(wp_wait_name((enum wp_wait)i)[0]);
	for (int i = 0; i < WP_NSTACK_ENDS; i++)
		assert_true(wp_stack_end_text((enum wp_stack_end)i)[0]);
	assert_string_equal(wp_wait_name(WP_NWAITS), "unknown");
}

static void a_return_address_is_looked_up_in_the_call(void **state)
{
	struct wp_frame frame = { 0x1000, 1, WP_FRAME_RETURN };

	(void)state;
	assert_int_equal(wp_frame_lookup_avma(&frame), 0xfff);
	frame.flags = WP_FRAME_SIGNAL;
	assert_int_equal(wp_frame_lookup_avma(&frame), 0x1000);
}

/* Long inputs are hashed in blocks, the rest by words, the rest by bytes. */
static void each_byte_and_the_length_count_in_a_hash(void **state)
{
	uint64_t seen[1 + 8 * 160];
	uint8_t bytes[160] = { 0 };
	size_t n = 0;

	(void)state;
	for (size_t len = 0; len <= sizeof(bytes); len++)
		seen[n++] = wp_hash_bytes(0, bytes, len);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = 1;
		seen[n++] = wp_hash_bytes(0, bytes, sizeof(bytes));
		bytes[i] = 0x80;
		seen[n++] = wp_hash_bytes(0, bytes, sizeof(bytes));
		bytes[i] = 0;
	}
	/* Words that change places; another seed. */
	bytes[0] = bytes[40] = 1;
	seen[n++] = wp_hash_bytes(0, bytes, sizeof(bytes));
	bytes[0] = bytes[40] = 0;
	bytes[8] = bytes[32] = 1;
	seen[n++] = wp_hash_bytes(0, bytes, sizeof(bytes));
	seen[n++] = wp_hash_bytes(1, bytes, sizeof(bytes));
	assert_int_equal(seen[n - 2], wp_hash_bytes(0, bytes, sizeof(bytes)));
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(seen[i], seen[j]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_carry_code_and_text),
		cmocka_unit_test(a_base_name_is_never_empty),
		cmocka_unit_test(long_messages_are_cut_not_overrun),
		cmocka_unit_test(numbers_are_little_endian),
		cmocka_unit_test(leb128_examples_of_the_standard),
		cmocka_unit_test(past_the_end_is_zero_for_good),
		cmocka_unit_test(overlong_leb128_fails),
		cmocka_unit_test(equal_strings_have_one_id),
		cmocka_unit_test(a_prefix_is_another_string),
		cmocka_unit_test(every_enum_value_has_a_name),
		cmocka_unit_test(a_return_address_is_looked_up_in_the_call),
		cmocka_unit_test(each_byte_and_the_length_count_in_a_hash),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
