/* SPDX-License-Identifier: Apache-2.0 */
/* The pprof writer, read back by a decoder that shares no code with it.
 *
 * Layer: output.
 *
 * With a file name as its argument it writes the test's profile there, for
 * the tests that have other programs read it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "profile_maker.h"
#include "wallprof/output.h"

/* A message being read: [p, end). */
struct message {
	const unsigned char *p;
	const unsigned char *end;
};

struct field {
	uint64_t number;
	uint64_t val;
	struct message bytes;
};

static uint64_t varint(struct message *m)
{
	uint64_t val = 0;
	unsigned int shift = 0;

	do {
		assert_true(m->p < m->end);
		assert_true(shift < 64);
		val |= (uint64_t)(*m->p & 0x7f) << shift;
		shift += 7;
	} while (*m->p++ & 0x80);
	return val;
}

static bool next(struct message *m, struct field *f)
{
	uint64_t tag;

	if (m->p == m->end)
		return false;
	tag = varint(m);
	*f = (struct field){ .number = tag >> 3 };
	if ((tag & 7) == 0) {
		f->val = varint(m);
	} else {
		assert_int_equal(tag & 7, 2);
		f->val = varint(m);
		assert_true(f->val <= (uint64_t)(m->end - m->p));
		f->bytes = (struct message){ m->p, m->p + f->val };
		m->p += f->val;
	}
	return true;
}

/* The INDEXth field NUMBER of M; fails when there is none. */
static struct field get(struct message m, uint64_t number, unsigned int index)
{
	struct field f;

	while (next(&m, &f))
		if (f.number == number && !index--)
			return f;
	fail_msg("no field %" PRIu64, number);
	return f;
}

static unsigned int count(struct message m, uint64_t number)
{
	unsigned int n = 0;
	struct field f;

	while (next(&m, &f))
		n += f.number == number;
	return n;
}

static uint64_t number_in(struct message m, uint64_t number)
{
	struct field f;

	while (next(&m, &f))
		if (f.number == number)
			return f.val;
	return 0;
}

/* String INDEX of profile M, for one comparison. */
static const char *string(struct message m, uint64_t index)
{
	static char text[4096];
	struct field f = get(m, 6, (unsigned int)index);

	assert_true(f.val < sizeof(text));
	memcpy(text, f.bytes.p, f.val);
	text[f.val] = '\0';
	return text;
}

static unsigned char raw[1 << 20];

static struct message write_and_inflate(const struct wp_profile *p)
{
	z_stream z = { .next_out = raw, .avail_out = sizeof(raw) };
	char *data = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&data, &len);

	assert_non_null(f);
	assert_int_equal(wp_write_pprof(p, WP_PROFILE_WALL, f), 0);
	fclose(f);
	/* 16: insist on a gzip header. */
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	z.next_in = (Bytef *)data;
	z.avail_in = (uInt)len;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	assert_int_equal(inflateEnd(&z), Z_OK);
	free(data);
	return (struct message){ raw, raw + z.total_out };
}

static int setup(void **state)
{
	struct wp_profile *p = malloc(sizeof(*p));

	make_server(p);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	wp_profile_clear(*state);
	free(*state);
	return 0;
}

static void ids_are_dense_from_one(void **state)
{
	static const unsigned int tables[] = { 3, 4, 5 };
	struct message m = write_and_inflate(*state);

	for (size_t t = 0; t < 3; t++)
		for (unsigned int i = 0; i < count(m, tables[t]); i++)
			assert_int_equal(
				number_in(get(m, tables[t], i).bytes, 1),
				i + 1);
	/* Nine addresses, one of them of two functions, and two texts that
	 * end a stack. */
	assert_int_equal(count(m, 4), 11);
	assert_int_equal(count(m, 5), 12);
	assert_int_equal(count(m, 3), 3);
}

static void header_says_what_was_measured(void **state)
{
	struct message m = write_and_inflate(*state), type;

	assert_string_equal(string(m, 0), "");
	assert_int_equal(count(m, 1), 2);
	type = get(m, 1, 0).bytes;
	assert_string_equal(string(m, number_in(type, 1)), "samples");
	assert_string_equal(string(m, number_in(type, 2)), "count");
	type = get(m, 1, 1).bytes;
	assert_string_equal(string(m, number_in(type, 1)), "wall");
	assert_string_equal(string(m, number_in(type, 2)), "nanoseconds");
	assert_string_equal(string(m, number_in(m, 14)), "wall");
	assert_int_equal(number_in(m, 9), 1700000000123456789);
	assert_int_equal(number_in(m, 10), 10000000000);
	assert_int_equal(number_in(m, 12), 10000000);
	assert_string_equal(string(m, get(m, 13, 0).val),
			    "command: /usr/bin/server --port 80");
}

static void main_binary_is_the_first_mapping(void **state)
{
	struct message m = write_and_inflate(*state), map;

	map = get(m, 3, 0).bytes;
	assert_string_equal(string(m, number_in(map, 5)), "/usr/bin/server");
	assert_string_equal(string(m, number_in(map, 6)), "00ff");
	assert_int_equal(number_in(map, 2), EXE_START);
	assert_int_equal(number_in(map, 3), EXE_START + 0x10000);
	assert_int_equal(number_in(map, 4), 0x1000);
	assert_int_equal(number_in(map, 7), 1);
	assert_int_equal(number_in(map, 8), 0);
	map = get(m, 3, 2).bytes;
	assert_string_equal(string(m, number_in(map, 5)), "[anon]");
}

static void a_main_binary_without_samples_is_still_first(void **state)
{
	struct wp_profile *p = *state;
	struct message m, map;

	p->meta.exe = mk_str(p, "/bin/other");
	m = write_and_inflate(p);
	assert_int_equal(count(m, 3), 4);
	map = get(m, 3, 0).bytes;
	assert_string_equal(string(m, number_in(map, 5)), "/bin/other");
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(number_in(get(m, 3, i).bytes, 1), i + 1);
	/* The first location is in libc. */
	map = get(m, 3, (unsigned int)number_in(get(m, 4, 0).bytes, 2) - 1)
		      .bytes;
	assert_string_equal(string(m, number_in(map, 5)), "/usr/lib/libc.so.6");
}

static void sample_has_values_and_labels(void **state)
{
	struct message m = write_and_inflate(*state), s, values, label;

	assert_int_equal(count(m, 2), 9);
	s = get(m, 2, 0).bytes;
	assert_int_equal(get(s, 1, 0).val, 3);
	values = get(s, 2, 0).bytes;
	assert_int_equal(varint(&values), 900);
	assert_int_equal(varint(&values), 9000000000);
	assert_ptr_equal(values.p, values.end);
	assert_int_equal(count(s, 3), 5);
	label = get(s, 3, 0).bytes;
	assert_string_equal(string(m, number_in(label, 1)), "thread");
	assert_string_equal(string(m, number_in(label, 2)), "server");
	label = get(s, 3, 1).bytes;
	assert_string_equal(string(m, number_in(label, 1)), "tid");
	assert_int_equal(number_in(label, 3), 100);
	assert_string_equal(string(m, number_in(label, 4)), "id");
	label = get(s, 3, 2).bytes;
	assert_string_equal(string(m, number_in(label, 2)), "waiting");
	label = get(s, 3, 3).bytes;
	assert_string_equal(string(m, number_in(label, 1)), "wait");
	assert_string_equal(string(m, number_in(label, 2)), "poll");
	label = get(s, 3, 4).bytes;
	assert_string_equal(string(m, number_in(label, 1)), "object");
	assert_string_equal(string(m, number_in(label, 2)), "fd 5 epoll");
	/* One that runs waits for nothing. */
	assert_int_equal(count(get(m, 2, 1).bytes, 3), 3);
	/* A call without a row of its own is named. */
	label = get(get(m, 2, 4).bytes, 3, 3).bytes;
	assert_string_equal(string(m, number_in(label, 2)),
			    "syscall:membarrier");
}

static void hostile_names_become_printable_utf8(void **state)
{
	struct message m = write_and_inflate(*state), label;

	label = get(get(m, 2, 8).bytes, 3, 0).bytes;
	assert_string_equal(string(m, number_in(label, 2)),
			    "\\x1b[31m\xef\xbf\xbd;e\xc3\xa9\\x0a");
}

static void inlined_function_is_the_first_line(void **state)
{
	struct message m = write_and_inflate(*state), loc, line;

	/* The second sample's leaf. */
	struct message ids = get(get(m, 2, 1).bytes, 1, 0).bytes;

	loc = get(m, 4, (unsigned int)varint(&ids) - 1).bytes;
	assert_int_equal(number_in(loc, 3), EXE_START + 0x300);
	assert_int_equal(count(loc, 4), 2);
	line = get(loc, 4, 0).bytes;
	assert_int_equal(number_in(line, 2), 7);
	line = get(m, 5, (unsigned int)number_in(line, 1) - 1).bytes;
	assert_string_equal(string(m, number_in(line, 2)), "parse_inline");
	assert_string_equal(string(m, number_in(line, 4)), "/src/parse.h");
}

static void cut_stack_ends_in_a_text(void **state)
{
	struct message m = write_and_inflate(*state), ids, loc, line;

	/* The jit's stack: its frame, then the text, in no mapping. */
	ids = get(get(m, 2, 3).bytes, 1, 0).bytes;
	varint(&ids);
	loc = get(m, 4, (unsigned int)varint(&ids) - 1).bytes;
	assert_ptr_equal(ids.p, ids.end);
	assert_int_equal(number_in(loc, 2), 0);
	assert_int_equal(number_in(loc, 3), 0);
	line = get(m, 5, (unsigned int)number_in(get(loc, 4, 0).bytes, 1) - 1)
		       .bytes;
	assert_string_equal(string(m, number_in(line, 2)),
			    "[truncated: no unwind info in anonymous memory]");
}

static void sample_of_nothing_is_left_out(void **state)
{
	struct wp_profile *p = *state;

	mk_sample(p, 0, 0, WP_STATE_EXITING, WP_WAIT_NONE, "", 0, 0);
	assert_int_equal(count(write_and_inflate(p), 2), 9);
}

static void profile_without_samples_is_written(void **state)
{
	struct wp_profile p;
	struct message m;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	assert_int_equal(wp_profile_locate(&p), 0);
	m = write_and_inflate(&p);
	assert_int_equal(count(m, 2), 0);
	assert_string_equal(string(m, 0), "");
	wp_profile_clear(&p);
}

static void full_disk_is_an_error(void **state)
{
	FILE *f = fopen("/dev/full", "w");

	if (!f)
		skip();
	assert_int_equal(wp_write_pprof(*state, WP_PROFILE_WALL, f), -ENOSPC);
	fclose(f);
}

static int write_file(const char *path)
{
	struct wp_profile p;
	FILE *f = fopen(path, "w");
	int rc;

	if (!f)
		return 1;
	make_server(&p);
	rc = wp_write_pprof(&p, WP_PROFILE_WALL, f);
	wp_profile_clear(&p);
	return fclose(f) || rc;
}

int main(int argc, char **argv)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(ids_are_dense_from_one),
		T(header_says_what_was_measured),
		T(main_binary_is_the_first_mapping),
		T(a_main_binary_without_samples_is_still_first),
		T(sample_has_values_and_labels),
		T(hostile_names_become_printable_utf8),
		T(inlined_function_is_the_first_line),
		T(cut_stack_ends_in_a_text),
		T(sample_of_nothing_is_left_out),
		T(profile_without_samples_is_written),
		T(full_disk_is_an_error),
	};

	if (argc == 2)
		return write_file(argv[1]);
	return cmocka_run_group_tests_name("pprof", tests, NULL, NULL);
}
