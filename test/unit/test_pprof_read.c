/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: output.  wp_pprof_read: what was written is read again, and nothing harms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../src/output/gzip.h"
#include "../../src/output/lanes.h"
#include "pprof_maker.h"
#include "timeline_maker.h"
#include "wallprof/budget.h"
#include "wallprof/output.h"

static struct wp_profile p, q;
/* The file of P. */
static char *file;
static size_t len;

static int setup(void **state)
{
	FILE *out = open_memstream(&file, &len);

	(void)state;
	wp_budget_set(WP_BUDGET_DEFAULT);
	make_timeline(&p);
	wp_profile_add_up(&p);
	assert_int_equal(wp_write_pprof(&p, WP_PROFILE_WALL, out), 0);
	fclose(out);
	assert_int_equal(wp_profile_init(&q), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wp_profile_clear(&p);
	wp_profile_clear(&q);
	free(file);
	return 0;
}

static int read_as(struct wp_profile *profile, const void *data, size_t n,
		   struct wp_err *err)
{
	*err = (struct wp_err)WP_ERR_INIT;
	return wp_pprof_read(profile, data, n, err);
}

static void what_was_written_is_read(void **state)
{
	const struct wp_sample_set *was = &p.sets[WP_PROFILE_WALL],
				   *is = &q.sets[WP_PROFILE_WALL];
	struct wp_err err;

	(void)state;
	assert_int_equal(read_as(&q, file, len, &err), 0);
	assert_int_equal(q.nthreads, p.nthreads);
	assert_int_equal(is->nsamples, was->nsamples);
	for (uint32_t i = 0; i < was->nsamples; i++) {
		assert_int_equal(is->samples[i].wall_ns,
				 was->samples[i].wall_ns);
		assert_int_equal(is->samples[i].key.state,
				 was->samples[i].key.state);
		assert_int_equal(is->samples[i].key.wait,
				 was->samples[i].key.wait);
		assert_string_equal(
			wp_profile_str(&q, is->samples[i].key.syscall),
			wp_profile_str(&p, was->samples[i].key.syscall));
		assert_string_equal(
			wp_profile_str(&q, is->samples[i].key.object),
			wp_profile_str(&p, was->samples[i].key.object));
	}
	assert_int_equal(q.threads[1].tid, 101);
	assert_string_equal(wp_profile_str(&q, q.threads[1].name), "work-1");
	assert_int_equal(q.meta.duration_ns, p.meta.duration_ns);
	assert_int_equal(q.meta.pid, 100);
	assert_string_equal(wp_profile_str(&q, q.meta.command_line),
			    "/usr/bin/server --port 80");
	assert_string_equal(wp_profile_str(&q, q.meta.exe), "/usr/bin/server");
	assert_false(q.meta.stateless);
	assert_int_equal(q.meta.value_type, 0);
}

/* Write KIND of P in place of the file, and read that into Q. */
static void write_and_read(enum wp_profile_kind kind)
{
	FILE *out;
	struct wp_err err;

	free(file);
	out = open_memstream(&file, &len);
	wp_profile_add_up(&p);
	assert_int_equal(wp_write_pprof(&p, kind, out), 0);
	fclose(out);
	assert_int_equal(read_as(&q, file, len, &err), 0);
}

/* As prctl(PR_SET_NAME, "") leaves it. */
static void a_process_without_a_name_is_read(void **state)
{
	static const char *const names[] = { "", "nginx" };

	(void)state;
	for (int32_t i = 0; i < 2; i++) {
		const struct wp_profile_process process = {
			.pid = i + 1,
			.name = mk_str(&p, names[i]),
		};

		assert_int_equal(wp_profile_add_process(&p, &process), i);
	}
	p.threads[1].process = 1;
	write_and_read(WP_PROFILE_WALL);
	assert_int_equal(q.nprocesses, 2);
	for (uint32_t i = 0; i < q.nthreads; i++) {
		const struct wp_profile_process *process =
			wp_profile_process_of(&q, &q.threads[i]);

		assert_non_null(process);
		assert_string_equal(wp_profile_str(&q, process->name),
				    process->pid == 2 ? "nginx" : "[no name]");
	}
}

/* As runtime/pprof lets a program set them. */
static void labels_of_a_program_are_not_taken_for_ours(void **state)
{
	static const char *const keys[] = { "state", "wait",	"object",
					    "pid",   "process", "thread",
					    "tid",   "runtime", "woken by",
					    "kind",  "label.x" };
	const struct wp_sample_set *was = &p.sets[WP_PROFILE_WALL],
				   *is = &q.sets[WP_PROFILE_WALL];
	char *plain;
	size_t n;

	(void)state;
	p.labels = calloc(sizeof(keys) / sizeof(*keys), sizeof(*p.labels));
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		p.labels[p.nlabels++] = (struct wp_profile_label){
			mk_str(&p, keys[i]), mk_str(&p, "running")
		};
	for (uint32_t i = 1; i < p.nthreads; i++) {
		p.threads[i].part = WP_GOROUTINE_OWN;
		p.threads[i].nlabels = p.nlabels;
	}
	write_and_read(WP_PROFILE_WALL);
	assert_true(q.meta.is_of_goroutines);
	assert_int_equal(q.nprocesses, 0);
	for (uint32_t i = 0; i < is->nsamples; i++)
		assert_string_not_equal(
			wp_profile_str(&q, is->samples[i].key.object),
			"running");
	for (int i = 0; i < WP_NSTATES; i++) {
		uint64_t ns = 0;

		for (uint32_t k = 0; k < was->nsamples; k++)
			if (was->samples[k].key.state == i)
				ns += was->samples[k].wall_ns;
		for (uint32_t k = 0; k < is->nsamples; k++)
			if (is->samples[k].key.state == i)
				ns -= is->samples[k].wall_ns;
		assert_int_equal(ns, 0);
	}
	assert_int_equal(wp_gzip_unpack(file, len, 1 << 20, &plain, &n), 0);
	assert_non_null(memmem(plain, n, "label.state", 11));
	assert_non_null(memmem(plain, n, "label.label.x", 13));
	assert_null(memmem(plain, n, "label.kind", 10));
	free(plain);
}

/* 9,600 goroutines in two entries, apart by a label; two of Go's scheduler, which is
 * none. */
static void goroutines_are_as_many_as_there_were(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < p.nthreads; i++) {
		p.threads[i].part = i < 3 ? WP_GOROUTINE_OWN :
					    WP_GOROUTINE_SCHEDULER;
		p.threads[i].is_counted = i < 3;
		p.threads[i].nmore = i == 1 ? 9000 : i == 2 ? 598 : 0;
	}
	write_and_read(WP_PROFILE_WALL);
	/* The first of timeline_maker.h is a thread. */
	assert_int_equal(p.sums[WP_PROFILE_WALL].threads, 9601);
	assert_int_equal(q.sums[WP_PROFILE_WALL].threads, 9601);
}

/* As a recording of all processes has them: 70,000 names of functions, and a call that
 * has no name of its own here. */
static void a_call_is_named_beside_many_functions(void **state)
{
	static const char *const strings[] = {
		"",	   "wall", "nanoseconds",     "state",
		"waiting", "wait", "syscall:odd_call"
	};
	struct wp_buf b = WP_BUF_INIT;
	struct wp_err err;
	size_t at, in;

	(void)state;
	put_type(&b, 1, 2);
	put_strings(&b, strings, 7);
	for (unsigned int i = 0; i < 70000; i++) {
		char name[16];
		const char *s = name;

		snprintf(name, sizeof(name), "f%u", i);
		put_strings(&b, &s, 1);
	}
	at = wp_proto_begin(&b, 2);
	wp_proto_uint(&b, 2, 7);
	for (unsigned int key = 3; key <= 5; key += 2) {
		in = wp_proto_begin(&b, 3);
		wp_proto_uint(&b, 1, key);
		wp_proto_uint(&b, 2, key + 1);
		wp_proto_end(&b, in);
	}
	wp_proto_end(&b, at);
	assert_int_equal(b.rc, 0);
	assert_int_equal(read_as(&q, b.data, b.len, &err), 0);
	assert_int_equal(q.sets[WP_PROFILE_WALL].nsamples, 1);
	assert_string_equal(
		wp_profile_str(&q,
			       q.sets[WP_PROFILE_WALL].samples[0].key.syscall),
		"odd_call");
	wp_buf_clear(&b);
}

static void threads_that_share_an_entry_are_counted(void **state)
{
	(void)state;
	p.threads[1].is_shared = true;
	p.threads[1].nmore = 56;
	p.counters.threads_shared = 57;
	write_and_read(WP_PROFILE_WALL);
	assert_int_equal(q.sums[WP_PROFILE_WALL].threads,
			 p.sums[WP_PROFILE_WALL].threads);
	assert_int_equal(p.sums[WP_PROFILE_WALL].threads, p.nthreads + 56);
}

/* The text report of KIND of PROFILE; the caller frees it. */
static char *report_of(const struct wp_profile *profile,
		       enum wp_profile_kind kind)
{
	const struct wp_report_options options = { .full = true };
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	assert_int_equal(wp_write_text(profile, kind, &options, out), 0);
	fclose(out);
	return text;
}

/* What TEXT says of samples, between its head and how it was recorded. */
static char *body_of(char *text)
{
	char *body = strstr(text, "Delay adds up");

	assert_non_null(body);
	*strstr(body, "How it was recorded") = '\0';
	return body;
}

static void waits_are_read_as_the_kind_that_they_are(void **state)
{
	static const enum wp_profile_kind kinds[] = { WP_PROFILE_BLOCK,
						      WP_PROFILE_MUTEX,
						      WP_PROFILE_WAKE };

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct wp_sample_key key = { .object = mk_str(&p, "main (7)"),
					     .wait = WP_WAIT_LOCK,
					     .state = WP_STATE_WAITING };
		char *was, *is;

		assert_int_equal(
			wp_profile_add_sample(&p, kinds[i], &key, 3, 4000000),
			0);
		write_and_read(kinds[i]);
		assert_int_equal(q.meta.read_kind, kinds[i]);
		assert_int_equal(q.meta.value_type, 0);
		assert_int_equal(q.sets[WP_PROFILE_WALL].nsamples, 0);
		was = report_of(&p, kinds[i]);
		is = report_of(&q, kinds[i]);
		assert_string_equal(body_of(is), body_of(was));
		free(was);
		free(is);
		wp_profile_clear(&q);
		assert_int_equal(wp_profile_init(&q), 0);
	}
}

static void folded(const struct wp_profile *profile, char **ret)
{
	size_t n;
	FILE *out = open_memstream(ret, &n);

	assert_int_equal(wp_write_folded(profile, WP_PROFILE_WALL, out), 0);
	fclose(out);
}

static void stacks_are_those_that_were_written(void **state)
{
	char *was, *is, *name;
	struct wp_err err;

	(void)state;
	/* What harms a terminal was made harmless when it was written. */
	p.threads[3].name = mk_str(&p, "x");
	folded(&p, &was);
	assert_int_equal(read_as(&q, file, len, &err), 0);
	q.threads[3].name = mk_str(&q, "x");
	folded(&q, &is);
	while ((name = strstr(is, "hot:loop\\x0a")))
		memmove(name + strlen("hot:loop?"),
			name + strlen("hot:loop\\x0a"),
			strlen(name + strlen("hot:loop\\x0a")) + 1),
			memcpy(name, "hot:loop?", strlen("hot:loop?"));
	assert_string_equal(is, was);
	free(was);
	free(is);
}

static void timeline_is_that_which_was_written(void **state)
{
	struct wp_lanes was, is;
	struct wp_err err;

	(void)state;
	assert_int_equal(read_as(&q, file, len, &err), 0);
	assert_int_equal(wp_lanes_init(&was, &p, WP_PROFILE_WALL), 0);
	assert_int_equal(wp_lanes_init(&is, &q, WP_PROFILE_WALL), 0);
	assert_int_equal(is.nrows, was.nrows);
	for (uint32_t t = 0; t < p.nthreads; t++) {
		assert_int_equal(is.first[t + 1], was.first[t + 1]);
		for (uint32_t i = was.first[t]; i < was.first[t + 1]; i++) {
			struct wp_lane_row a = wp_lanes_row(&was, t, i);
			struct wp_lane_row b = wp_lanes_row(&is, t, i);

			assert_int_equal(a.value, b.value);
			assert_int_equal(a.key->state, b.key->state);
			assert_int_equal(a.holder, b.holder);
		}
	}
	wp_lanes_clear(&was);
	wp_lanes_clear(&is);
}

static void counters_come_from_the_comments(void **state)
{
	struct wp_err err;
	bool ticks = false;

	(void)state;
	assert_int_equal(read_as(&q, file, len, &err), 0);
	for (uint32_t i = 0; i < q.ncomments; i++)
		ticks |= !strncmp(wp_profile_str(&q, q.comments[i]),
				  "ticks: 998, 2 missed", 20);
	assert_true(ticks);
	assert_int_equal((int)(q.meta.achieved_hz * 10), 998);
}

/* Read DATA[0..n) from memory of just that size. */
static int read_exactly(const char *data, size_t n)
{
	char *copy = malloc(n ? n : 1);
	struct wp_profile profile;
	struct wp_err err;
	int rc;

	memcpy(copy, data, n);
	assert_int_equal(wp_profile_init(&profile), 0);
	rc = read_as(&profile, copy, n, &err);
	assert_true(rc == 0 || rc == -EBADMSG || rc == -EOVERFLOW);
	assert_true(rc == 0 || err.msg[0]);
	wp_profile_clear(&profile);
	free(copy);
	return rc;
}

static void every_prefix_is_safe(void **state)
{
	char *plain;
	size_t n;

	(void)state;
	assert_int_equal(wp_gzip_unpack(file, len, 1 << 20, &plain, &n), 0);
	assert_int_equal(read_exactly(plain, n), 0);
	for (size_t i = 0; i < n; i++)
		(void)read_exactly(plain, i);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(read_exactly(file, i), -EBADMSG);
	free(plain);
}

static void every_flipped_bit_is_safe(void **state)
{
	char *plain;
	size_t n;

	(void)state;
	assert_int_equal(wp_gzip_unpack(file, len, 1 << 20, &plain, &n), 0);
	for (size_t i = 0; i < 8 * n; i++) {
		plain[i / 8] ^= (char)(1 << i % 8);
		(void)read_exactly(plain, n);
		plain[i / 8] ^= (char)(1 << i % 8);
	}
	free(plain);
}

/* Each compressed apart, the second of more bytes than there is room for at first. */
static void streams_unpack_to_what_was_packed(void **state)
{
	struct wp_buf plain = WP_BUF_INIT, packed = WP_BUF_INIT;
	char *out = NULL;
	size_t n;

	(void)state;
	wp_buf_str(&plain, "one");
	wp_gzip_pack(&plain, &packed);
	wp_buf_reset(&plain);
	for (int i = 0; i < 100000; i++)
		wp_buf_printf(&plain, "%d ", i * 7919);
	wp_gzip_pack(&plain, &packed);
	assert_int_equal(packed.rc, 0);
	assert_in_range(packed.len, 1, plain.len / 2);
	assert_int_equal(wp_gzip_unpack(packed.data, packed.len, plain.len + 3,
					&out, &n),
			 0);
	assert_int_equal(n, plain.len + 3);
	assert_memory_equal(out, "one", 3);
	assert_memory_equal(out + 3, plain.data, plain.len);
	free(out);
	for (size_t i = 0; i < 200; i++)
		assert_int_equal(wp_gzip_unpack(packed.data, packed.len - 1 - i,
						1 << 30, &out, &n),
				 -EBADMSG);
	wp_buf_clear(&packed);
	wp_buf_clear(&plain);
}

static void gzip_bomb_is_refused(void **state)
{
	struct wp_buf zeros = WP_BUF_INIT;
	char *bomb = NULL, *out = NULL;
	size_t n, out_n;
	FILE *memory = open_memstream(&bomb, &n);
	struct wp_gzip gz;

	(void)state;
	assert_int_equal(wp_gzip_init(&gz, memory), 0);
	wp_buf_fill(&zeros, 0, 1 << 20);
	wp_gzip_add(&gz, &zeros);
	assert_int_equal(wp_gzip_finish(&gz), 0);
	fclose(memory);
	assert_int_equal(wp_gzip_unpack(bomb, n, (1 << 20) - 1, &out, &out_n),
			 -EOVERFLOW);
	assert_null(out);
	assert_int_equal(wp_gzip_unpack(bomb, n, 1 << 20, &out, &out_n), 0);
	assert_int_equal(out_n, 1 << 20);
	free(out);
	free(bomb);
	wp_buf_clear(&zeros);
}

static void profile_of_others_keeps_its_unit(void **state)
{
	static const char *const strings[] = { "",	"inuse_space", "bytes",
					       "main",	"objects",     "count",
					       "bytes2" };
	struct wp_buf b = WP_BUF_INIT;
	struct wp_err err;
	size_t at, line;

	(void)state;
	put_type(&b, 4, 5);
	put_type(&b, 1, 2);
	at = wp_proto_begin(&b, 2);
	wp_proto_uint(&b, 1, 7);
	wp_proto_uint(&b, 2, 3);
	wp_proto_uint(&b, 2, 4096);
	wp_proto_end(&b, at);
	at = wp_proto_begin(&b, 4);
	wp_proto_uint(&b, 1, 7);
	line = wp_proto_begin(&b, 4);
	wp_proto_uint(&b, 1, 9);
	wp_proto_end(&b, line);
	wp_proto_end(&b, at);
	at = wp_proto_begin(&b, 5);
	wp_proto_uint(&b, 1, 9);
	wp_proto_uint(&b, 2, 3);
	wp_proto_end(&b, at);
	put_strings(&b, strings, 7);
	assert_int_equal(read_as(&q, b.data, b.len, &err), 0);
	assert_string_equal(wp_profile_str(&q, q.meta.value_type),
			    "inuse_space");
	assert_string_equal(wp_profile_str(&q, q.meta.value_unit), "bytes");
	assert_true(q.meta.stateless);
	assert_int_equal(q.sets[WP_PROFILE_WALL].samples[0].wall_ns, 4096);
	assert_int_equal(q.sets[WP_PROFILE_WALL].samples[0].count, 3);
	wp_buf_clear(&b);
}

/* Put a profile of TYPE in UNIT with one sample of VALUE, without a stack. */
static void put_value(struct wp_buf *b, const char *type, const char *unit,
		      uint64_t value)
{
	const char *const strings[] = { "", type, unit };
	size_t at;

	put_type(b, 1, 2);
	at = wp_proto_begin(b, 2);
	wp_proto_uint(b, 2, value);
	wp_proto_end(b, at);
	put_strings(b, strings, 3);
}

/* As go tool pprof -proto -diff_base writes. */
static void value_that_is_no_amount_is_refused(void **state)
{
	static const struct {
		const char *unit;
		uint64_t value;
		const char *says;
	} rows[] = {
		{ "nanoseconds", (uint64_t)-1, "give both to wallprof diff" },
		{ "seconds", INT64_MAX / 1000000000 + 1, "over 2^63" },
	};
	struct wp_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_buf b = WP_BUF_INIT;

		put_value(&b, "cpu", rows[i].unit, rows[i].value);
		assert_int_equal(read_as(&q, b.data, b.len, &err), -EBADMSG);
		assert_non_null(strstr(err.msg, rows[i].says));
		wp_buf_clear(&b);
		wp_profile_clear(&q);
		assert_int_equal(wp_profile_init(&q), 0);
	}
}

static void read_anew(void)
{
	wp_profile_clear(&q);
	assert_int_equal(wp_profile_init(&q), 0);
}

static void values_that_add_up_to_too_much_are_refused(void **state)
{
	const char *const strings[] = { "", "cpu", "nanoseconds" };
	struct wp_buf b = WP_BUF_INIT;
	struct wp_err err;

	(void)state;
	put_type(&b, 1, 2);
	for (int i = 0; i < 4; i++) {
		size_t at = wp_proto_begin(&b, 2);

		wp_proto_uint(&b, 2, UINT64_C(1) << 61);
		wp_proto_end(&b, at);
	}
	put_strings(&b, strings, 3);
	assert_int_equal(read_as(&q, b.data, b.len, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "over 2^63"));
	wp_buf_clear(&b);
	read_anew();
}

static void units_are_those_of_go_tool_pprof(void **state)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} rows[] = {
		{ "ns", 1 },
		{ "nanosecond", 1 },
		{ "us", 1000 },
		{ "microseconds", 1000 },
		{ "ms", 1000000 },
		{ "millisecond", 1000000 },
		{ "s", 1000000000 },
		{ "sec", 1000000000 },
		{ "seconds", 1000000000 },
		{ "minutes", UINT64_C(60000000000) },
		{ "hr", UINT64_C(3600000000000) },
	};
	struct wp_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_buf b = WP_BUF_INIT;

		put_value(&b, "wall", rows[i].unit, 3);
		assert_int_equal(read_as(&q, b.data, b.len, &err), 0);
		assert_int_equal(q.sets[WP_PROFILE_WALL].samples[0].wall_ns,
				 3 * rows[i].ns);
		assert_string_equal(wp_profile_str(&q, q.meta.value_unit),
				    "nanoseconds");
		wp_buf_clear(&b);
		read_anew();
	}
}

/* As pprof-nodejs writes. */
static void a_sample_may_count_under_another_name(void **state)
{
	static const char *const strings[] = { "", "sample", "count", "wall",
					       "microseconds" };
	struct wp_buf b = WP_BUF_INIT;
	struct wp_err err;
	size_t at;

	(void)state;
	put_type(&b, 1, 2);
	put_type(&b, 3, 4);
	at = wp_proto_begin(&b, 2);
	wp_proto_uint(&b, 2, 5);
	wp_proto_uint(&b, 2, 7);
	wp_proto_end(&b, at);
	put_strings(&b, strings, 5);
	assert_int_equal(read_as(&q, b.data, b.len, &err), 0);
	assert_int_equal(q.sets[WP_PROFILE_WALL].samples[0].count, 5);
	assert_int_equal(q.sets[WP_PROFILE_WALL].samples[0].wall_ns, 7000);
	wp_buf_clear(&b);
	read_anew();
}

static void a_types_name_is_no_escape_sequence(void **state)
{
	struct wp_buf b = WP_BUF_INIT;
	struct wp_err err;
	char *text;

	(void)state;
	put_value(&b, "\033]0;title\007", "nanoseconds", 5000000000);
	assert_int_equal(read_as(&q, b.data, b.len, &err), 0);
	text = report_of(&q, q.meta.read_kind);
	assert_non_null(strstr(text, "]0;title"));
	assert_null(strchr(text, '\033'));
	assert_null(strchr(text, '\007'));
	free(text);
	wp_buf_clear(&b);
	read_anew();
}

static void file_without_states_has_none_in_its_report(void **state)
{
	static const char *const types[] = { "wall", "cpu", "delay" };
	struct wp_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		struct wp_buf b = WP_BUF_INIT;
		char *text, of[32];

		put_value(&b, types[i], "nanoseconds", 5000000000);
		assert_int_equal(read_as(&q, b.data, b.len, &err), 0);
		text = report_of(&q, q.meta.read_kind);
		assert_null(strstr(text, "by state"));
		assert_null(strstr(text, "waiting"));
		assert_null(strstr(text, "on CPU"));
		assert_null(strstr(text, "hread time"));
		snprintf(of, sizeof(of), "5.00 s of %s\n", types[i]);
		assert_non_null(strstr(text, of));
		free(text);
		wp_buf_clear(&b);
		wp_profile_clear(&q);
		assert_int_equal(wp_profile_init(&q), 0);
	}
}

/* go tool pprof: period is "the number of events between sampled occurrences" of
 * period_type, whose unit it has. */
static void period_is_of_its_type(void **state)
{
	static const struct {
		const char *type, *unit;
		uint64_t period;
		int64_t ns;
	} rows[] = {
		/* Go's; Node's. */
		{ "cpu", "nanoseconds", 10000000, 10000000 },
		{ "wall", "microseconds", 1000, 1000000 },
		{ "contentions", "count", 1, 0 },
		{ "space", "bytes", 524288, 0 },
		{ "cpu", "count", 1000, 0 },
		{ "wall", "seconds", INT64_MAX, 0 },
		{ "wall", "nanoseconds", (uint64_t)-1, 0 },
	};
	struct wp_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_buf b = WP_BUF_INIT;
		size_t at = wp_proto_begin(&b, 11);

		wp_proto_uint(&b, 1, 1);
		wp_proto_uint(&b, 2, 2);
		wp_proto_end(&b, at);
		wp_proto_uint(&b, 12, rows[i].period);
		put_value(&b, rows[i].type, rows[i].unit, 1);
		assert_int_equal(read_as(&q, b.data, b.len, &err), 0);
		assert_int_equal(q.meta.period_ns, rows[i].ns);
		wp_buf_clear(&b);
		wp_profile_clear(&q);
		assert_int_equal(wp_profile_init(&q), 0);
	}
}

/* What is read is bounded by the file's size. */
static void budget_of_a_recording_bounds_no_file(void **state)
{
	wp_budget_set(0);
	stacks_are_those_that_were_written(state);
	assert_int_equal(q.sets[WP_PROFILE_WALL].nsamples,
			 p.sets[WP_PROFILE_WALL].nsamples);
	assert_int_equal(q.timeline.n, p.timeline.n);
	assert_int_equal(q.timeline.window_ns, 0);
	assert_int_equal(q.counters.stacks_dropped, 0);
}

static void what_is_no_profile_is_said_to_be_none(void **state)
{
	static const char *const rows[] = { "",
					    "hello, world",
					    "\x1f\x8b",
					    "\x1f\x8b\x08 nonsense",
					    "PK\x03\x04",
					    "\x7f"
					    "ELF" };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(read_exactly(rows[i], strlen(rows[i])),
				 -EBADMSG);
}

static int write_file(const char *path)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	setup(NULL);
	assert_int_equal(fwrite(file, 1, len, out), len);
	fclose(out);
	return teardown(NULL);
}

/* With an argument, writes the file of timeline_maker.h there. */
int main(int argc, char **argv)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(what_was_written_is_read),
		T(a_process_without_a_name_is_read),
		T(labels_of_a_program_are_not_taken_for_ours),
		T(goroutines_are_as_many_as_there_were),
		T(a_call_is_named_beside_many_functions),
		T(threads_that_share_an_entry_are_counted),
		T(waits_are_read_as_the_kind_that_they_are),
		T(stacks_are_those_that_were_written),
		T(timeline_is_that_which_was_written),
		T(counters_come_from_the_comments),
		T(every_prefix_is_safe),
		T(every_flipped_bit_is_safe),
		T(streams_unpack_to_what_was_packed),
		T(gzip_bomb_is_refused),
		T(profile_of_others_keeps_its_unit),
		T(value_that_is_no_amount_is_refused),
		T(values_that_add_up_to_too_much_are_refused),
		T(units_are_those_of_go_tool_pprof),
		T(a_sample_may_count_under_another_name),
		T(a_types_name_is_no_escape_sequence),
		T(period_is_of_its_type),
		T(file_without_states_has_none_in_its_report),
		T(budget_of_a_recording_bounds_no_file),
		T(what_is_no_profile_is_said_to_be_none),
	};

	if (argc > 1)
		return write_file(argv[1]);
	return cmocka_run_group_tests_name("pprof_read", tests, NULL, NULL);
}
