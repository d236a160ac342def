/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of a dump, read back by jansson: it refuses what is not UTF-8 and,
 * asked to, members that come twice.  End-to-end tests check documents against
 * the schema with a program that is not ours.
 *
 * Layer: output.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <time.h>

#include "dump_maker.h"

static char *json_of(const struct wp_dump *d)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(wp_write_dump_json(d, f), 0);
	fclose(f);
	assert_int_equal(strlen(text), len);
	for (const char *p = text; *p; p++)
		assert_true(*p == '\n' || (*p >= 0x20 && *p <= 0x7f));
	return text;
}

static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (!root)
		fail_msg("%s, line %d: %s", error.text, error.line, text);
	return root;
}

static json_t *load(const struct wp_dump *d)
{
	char *text = json_of(d);
	json_t *root = parse(text);

	free(text);
	return root;
}

/* OBJECT is what TEXT says, members in any order. */
static void assert_json(const json_t *value, const char *text)
{
	json_t *want = parse(text);
	char *have = json_dumps(value, JSON_ENCODE_ANY);

	if (!json_equal(value, want))
		fail_msg("have %s\nwant %s", have, text);
	free(have);
	json_decref(want);
}

static json_t *at(json_t *object, const char *key, size_t i)
{
	json_t *val = json_array_get(json_object_get(object, key), i);

	assert_non_null(val);
	return val;
}

static const char deadlock_thread[] =
	"{\"tid\": 4243, \"name\": \"a\", \"state\": \"waiting\", \"wait\": \"lock\","
	" \"syscall\": \"\", \"call\": \"\", \"cpu\": null,"
	" \"waited_ns\": 190000000000, \"timed\": false, \"open_ended\": false,"
	" \"still\": false, \"stuck\": true, \"moved\": false, \"waiters\": 0, \"site\": 1,"
	" \"truncated\": \"\","
	" \"lock\": {\"kind\": \"mutex\", \"type\": \"\", \"access\": \"\","
	"  \"address\": \"0x55aa60\", \"variable\": \"\", \"holder\": \"thread\", \"owner_tid\": 4244,"
	"  \"readers\": 0},"
	" \"frames\": ["
	"  {\"address\": \"0xbeef\", \"function\": \"__lll_lock_wait\","
	"   \"file\": \"./nptl/lowlevellock.c\", \"line\": 49,"
	"   \"module\": \"libc.so.6\", \"inlined\": false, \"kernel\": false,"
	"   \"guessed\": false},"
	"  {\"address\": \"0xffffffffffffffff\", \"function\": \"take_b\","
	"   \"file\": \"/src/ab.c\", \"line\": 21, \"module\": \"ab\","
	"   \"inlined\": true, \"kernel\": false, \"guessed\": false}]}";

static void a_document_has_all_of_the_dump(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;
	json_t *root, *process, *threads;

	(void)state;
	make_deadlock(&d);
	add_root(&d, 2, 5);
	d.frames[0].pc_avma = 0xbeef;
	d.frames[1].pc_avma = UINT64_MAX;
	d.frames[1].inlined = true;
	root = load(&d);
	process = at(root, "processes", 0);
	threads = json_object_get(process, "threads");
	assert_int_equal(json_array_size(threads), 3);
	assert_json(json_array_get(threads, 0), deadlock_thread);
	assert_int_equal(json_array_clear(threads), 0);
	assert_json(
		process,
		"{\"pid\": 4242, \"ppid\": 1,"
		" \"command_line\": \"./server --port 80\","
		" \"user\": \"www-data\", \"error\": \"\", \"peer\": false,"
		" \"catches_signals\": false, \"stuck\": false, \"hold\": \"\","
		" \"pause_ns\": 38000, \"stopped\": 1, \"lost\": 0, \"unchosen\": 0,"
		" \"go_version\": \"\", \"go_error\": \"\","
		" \"lost_goroutines\": 0,"
		" \"threads\": [], \"goroutines\": []}");
	assert_int_equal(json_array_clear(json_object_get(root, "processes")),
			 0);
	assert_json(
		root,
		"{\"wallprof\": \"" WP_VERSION "\","
		" \"time\": \"2026-11-21T14:30:12.345Z\","
		" \"interval_seconds\": null, \"processes\": [],"
		" \"edges\": ["
		"  {\"kind\": \"lock\", \"what\": \"mutex 0x55aa60\","
		"   \"from_tid\": 4243, \"to_tid\": 4244, \"to_pid\": 4242},"
		"  {\"kind\": \"lock\", \"what\": \"mutex 0x55aa10\","
		"   \"from_tid\": 4244, \"to_tid\": 4243, \"to_pid\": 4242},"
		"  {\"kind\": \"join\", \"what\": \"thread 4243\","
		"   \"from_tid\": 4242, \"to_tid\": 4243, \"to_pid\": 4242}],"
		" \"deadlocks\": [[0, 1]],"
		" \"roots\": [{\"tid\": 4242, \"waiters\": 5}]}");
	json_decref(root);
	wp_dump_clear(&d);
}

static void what_is_set_is_told(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;
	struct wp_dump_thread *t;
	struct wp_dump_process *p;
	json_t *root, *process;

	(void)state;
	p = add_process(&d, 42, "");
	p->is_peer = p->catches_signals = p->stuck = true;
	p->nlost = UINT32_MAX;
	p->nunchosen = 9;
	p->pause_ns = UINT64_MAX;
	p->hold = WP_HOLD_FROZEN;
	p->error = add_text(&d, "gone");
	t = add_thread(&d, 42, "", WP_STATE_WAITING, WP_WAIT_SYSCALL);
	t->call.timed = t->open_ended = t->times.still = true;
	t->waiters = 3;
	t->times.cpu = 0;
	t->times.waited_ns = 0;
	t->call.nr = SYS_bpf;
	t->call.text = add_text(&d, "bpf 1");
	t->stack.end = WP_END_DEPTH_LIMIT;
	t->lock.kind = WP_LOCK_RWLOCK_WRITE;
	t->lock.holder = WP_HOLDER_READERS;
	t->lock.readers = 7;
	t->lock.type = NULL;
	t->variable = add_text(&d, "job+8");
	add_frame(&d, "", "", 0, "")->kernel = true;
	d.frames[0].guessed = true;
	d.frames[0].pc_avma = 0;
	add_edge(&d, WP_EDGE_PIPE, 0, UINT32_MAX, 77, "pipe:[1]");
	d.interval_ns = 2500000000;
	root = load(&d);
	process = at(root, "processes", 0);
	assert_json(
		at(process, "threads", 0),
		"{\"tid\": 42, \"name\": \"\", \"state\": \"waiting\","
		" \"wait\": \"syscall\", \"syscall\": \"bpf\","
		" \"call\": \"bpf 1\", \"cpu\": 0, \"waited_ns\": 0,"
		" \"timed\": true, \"open_ended\": true, \"still\": true,"
		" \"stuck\": false, \"moved\": false, \"waiters\": 3, \"site\": null,"
		" \"truncated\": \"depth limit\","
		" \"lock\": {\"kind\": \"rwlock\", \"type\": \"\","
		"  \"access\": \"write\", \"address\": \"0x0\","
		"  \"variable\": \"job+8\", \"holder\": \"readers\", \"owner_tid\": null,"
		"  \"readers\": 7},"
		" \"frames\": ["
		"  {\"address\": \"0x0\", \"function\": \"\", \"file\": \"\","
		"   \"line\": null, \"module\": \"\", \"inlined\": false,"
		"   \"kernel\": true, \"guessed\": true}]}");
	json_array_clear(json_object_get(process, "threads"));
	assert_json(
		process,
		"{\"pid\": 42, \"ppid\": 1, \"command_line\": \"\","
		" \"user\": \"\", \"error\": \"gone\", \"peer\": true,"
		" \"catches_signals\": true, \"stuck\": true, \"hold\": \"frozen\","
		" \"pause_ns\": 9223372036854775807, \"stopped\": 0,"
		" \"lost\": 4294967295, \"unchosen\": 9,"
		" \"go_version\": \"\", \"go_error\": \"\","
		" \"lost_goroutines\": 0,"
		" \"threads\": [], \"goroutines\": []}");
	assert_json(at(root, "edges", 0),
		    "{\"kind\": \"pipe\", \"what\": \"pipe:[1]\","
		    " \"from_tid\": 42, \"to_tid\": null, \"to_pid\": 77}");
	assert_true(json_real_value(
			    json_object_get(root, "interval_seconds")) == 2.5);
	json_decref(root);
	wp_dump_clear(&d);
}

static void an_empty_dump_is_a_document(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;
	json_t *root = load(&d);

	(void)state;
	assert_json(root, "{\"wallprof\": \"" WP_VERSION "\","
			  " \"time\": \"1970-01-01T00:00:00.000Z\","
			  " \"interval_seconds\": null, \"processes\": [],"
			  " \"edges\": [], \"deadlocks\": [], \"roots\": []}");
	json_decref(root);
	wp_dump_clear(&d);
}

static void processes_follow_each_other(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;
	json_t *root;

	(void)state;
	add_process(&d, 42, "");
	add_thread(&d, 42, "x", WP_STATE_RUNNING, WP_WAIT_NONE);
	add_process(&d, 43, "");
	add_process(&d, 44, "");
	add_thread(&d, 44, "y", WP_STATE_RUNNING, WP_WAIT_NONE);
	add_thread(&d, 45, "z", WP_STATE_RUNNING, WP_WAIT_NONE);
	root = load(&d);
	for (size_t i = 0; i < 3; i++) {
		json_t *process = at(root, "processes", i), *threads;

		threads = json_object_get(process, "threads");
		assert_int_equal(
			json_integer_value(json_object_get(process, "pid")),
			42 + i);
		assert_int_equal(json_array_size(threads), i == 1 ? 0 :
							   i	  ? 2 :
								    1);
	}
	assert_int_equal(
		json_integer_value(json_object_get(
			at(at(root, "processes", 2), "threads", 1), "tid")),
		45);
	json_decref(root);
	wp_dump_clear(&d);
}

/* Frames that differ in one part only, and more of them than are kept. */
static void frames_are_not_mixed(void **state)
{
	enum { N = 10000, KINDS = 6 };
	struct wp_dump d = WP_DUMP_INIT;
	json_t *root, *frames;

	(void)state;
	add_process(&d, 42, "");
	add_thread(&d, 42, "x", WP_STATE_RUNNING, WP_WAIT_NONE);
	for (uint32_t i = 0; i < N; i++) {
		struct wp_dump_frame *f = add_frame(&d, "f", "", i / KINDS + 1,
						    i % KINDS == 1 ? "x" : "");

		f->inlined = i % KINDS == 2;
		f->kernel = i % KINDS == 3;
		f->guessed = i % KINDS == 4;
		f->pc_avma += i % KINDS == 5;
	}
	root = load(&d);
	frames = json_object_get(at(at(root, "processes", 0), "threads", 0),
				 "frames");
	assert_int_equal(json_array_size(frames), N);
	for (uint32_t i = 0; i < N; i++) {
		const struct wp_dump_frame *f = &d.frames[i];
		json_t *have = json_array_get(frames, i);
		const char *module, *address;
		int inlined, kernel, guessed, line;

		assert_int_equal(json_unpack(have,
					     "{s:s, s:s, s:i, s:b, s:b,"
					     " s:b}",
					     "address", &address, "module",
					     &module, "line", &line, "inlined",
					     &inlined, "kernel", &kernel,
					     "guessed", &guessed),
				 0);
		assert_int_equal(strtoull(address, NULL, 16), f->pc_avma);
		assert_string_equal(module, wp_dump_str(&d, f->module));
		assert_int_equal(line, f->line);
		assert_int_equal(inlined, f->inlined);
		assert_int_equal(kernel, f->kernel);
		assert_int_equal(guessed, f->guessed);
	}
	json_decref(root);
	wp_dump_clear(&d);
}

/* In, and what a reader gets. */
static const struct {
	const char *name, *want;
} hostile[] = {
	{ "\"}],\\ \x01\n", "\"}],\\ \x01\n" },
	{ "\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd" },
	/* Cut short, overlong, a surrogate, too large. */
	{ "x\xe2\x82", "x\xef\xbf\xbd\xef\xbf\xbd" },
	{ "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },
	{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	{ "\xf4\x90\x80\x80",
	  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	{ "\xe2\x80\xae\xc2\x9b", "\xe2\x80\xae\xc2\x9b" },
	{ "\xf0\x9f\x90\x9b\xc3\xa9", "\xf0\x9f\x90\x9b\xc3\xa9" },
	{ "\xef\xbf\xbe\xef\xbb\xbf", "\xef\xbf\xbe\xef\xbb\xbf" },
};

static void names_may_be_any_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		struct wp_dump d = WP_DUMP_INIT;
		struct wp_dump_thread *t;
		json_t *root, *thread;

		add_process(&d, 42, hostile[i].name);
		t = add_thread(&d, 42, hostile[i].name, WP_STATE_WAITING,
			       WP_WAIT_NONE);
		t->call.text = t->stack.end_module = t->name;
		t->stack.end = WP_END_NO_INFO;
		d.processes[0].user = d.processes[0].error = t->name;
		add_frame(&d, hostile[i].name, hostile[i].name, 1,
			  hostile[i].name);
		add_edge(&d, WP_EDGE_PIPE, 0, 0, 42, hostile[i].name);
		root = load(&d);
		thread = at(at(root, "processes", 0), "threads", 0);
		assert_string_equal(
			json_string_value(json_object_get(thread, "name")),
			hostile[i].want);
		assert_string_equal(
			json_string_value(json_object_get(
				at(thread, "frames", 0), "function")),
			hostile[i].want);
		json_decref(root);
		wp_dump_clear(&d);
	}
}

static void every_prefix_of_a_name_is_safe(void **state)
{
	static const char name[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9b\xff";

	(void)state;
	for (size_t n = 0; n < sizeof(name); n++) {
		struct wp_dump d = WP_DUMP_INIT;
		char prefix[sizeof(name)];

		memcpy(prefix, name, n);
		prefix[n] = '\0';
		add_process(&d, 42, prefix);
		json_decref(load(&d));
		wp_dump_clear(&d);
	}
}

static void a_full_device_is_told(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;
	FILE *f = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(f);
	make_deadlock(&d);
	assert_int_equal(wp_write_dump_json(&d, f), -ENOSPC);
	fclose(f);
	/* Found while threads are still to come. */
	for (int i = 0; i < 1000; i++)
		add_thread(&d, 5000 + i, "w", WP_STATE_RUNNING, WP_WAIT_NONE);
	f = fopen("/dev/full", "w");
	assert_non_null(f);
	assert_int_equal(wp_write_dump_json(&d, f), -ENOSPC);
	fclose(f);
	wp_dump_clear(&d);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The time is printed for people; the bound holds under a sanitizer. */
static void many_threads_are_no_matter(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;
	FILE *f = fopen("/dev/null", "w");
	int n = 2000;
	double begin;

	(void)state;
	assert_non_null(f);
	add_process(&d, 1, "x");
	for (int i = 0; i < n; i++) {
		add_thread(&d, 1 + i, "worker", WP_STATE_WAITING, WP_WAIT_POLL);
		for (uint32_t k = 0; k < 20; k++)
			add_frame(&d, "frame_of_a_pool", "/src/pool.c", k,
				  "pool");
	}
	begin = seconds();
	assert_int_equal(wp_write_dump_json(&d, f), 0);
	print_message("%d threads: %.0f ms\n", n, (seconds() - begin) * 1e3);
	assert_true(seconds() - begin < 20);
	fclose(f);
	wp_dump_clear(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_document_has_all_of_the_dump),
		cmocka_unit_test(what_is_set_is_told),
		cmocka_unit_test(an_empty_dump_is_a_document),
		cmocka_unit_test(processes_follow_each_other),
		cmocka_unit_test(frames_are_not_mixed),
		cmocka_unit_test(names_may_be_any_bytes),
		cmocka_unit_test(every_prefix_of_a_name_is_safe),
		cmocka_unit_test(a_full_device_is_told),
		cmocka_unit_test(many_threads_are_no_matter),
	};

	return cmocka_run_group_tests_name("dump_json", tests, NULL, NULL);
}
