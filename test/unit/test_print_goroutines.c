/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: output.  Goroutines of a dump made by hand, as text and as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>

#include "dump_maker.h"

static struct wp_dump_frame *add_go_frame(struct wp_dump *d, const char *name,
					  uint32_t line,
					  struct wp_dump_stack *stack)
{
	struct wp_dump_frame *f = wp_dump_add_frame(d);

	assert_non_null(f);
	f->function = f->system_name = add_text(d, name);
	f->file = add_text(d, "/src/main.go");
	f->module = add_text(d, "server");
	f->line = line;
	stack->nframes++;
	stack->site = stack->nframes;
	return f;
}

static struct wp_dump_goroutine *add_goroutine(struct wp_dump *d, uint64_t id,
					       const char *reason)
{
	struct wp_dump_goroutine *g = wp_dump_add_goroutine(d);

	assert_non_null(g);
	g->id = id;
	g->state = add_text(d, "waiting");
	g->reason = add_text(d, reason);
	g->first_label = d->nlabels;
	d->processes[0].ngoroutines++;
	return g;
}

/* Three that wait alike, of which one has a label, and one that runs. */
static void make(struct wp_dump *d)
{
	struct wp_dump_process *p = add_process(d, 42, "server");
	struct wp_dump_goroutine *g;
	struct wp_dump_label *label;
	struct wp_dump_stack stack = { 0 }, created = { 0 };

	p->go_version = add_text(d, "go1.22.3");
	add_thread(d, 42, "server", WP_STATE_RUNNING, WP_WAIT_NONE);
	stack.first_frame = d->nframes;
	add_go_frame(d, "runtime.gopark", 1, &stack);
	add_go_frame(d, "main.wait", 7, &stack);
	stack.site = 1;
	created.first_frame = d->nframes;
	add_go_frame(d, "main.main", 12, &created);
	for (uint64_t id = 7; id < 10; id++) {
		g = add_goroutine(d, id, "chan receive");
		g->stack = stack;
		g->created = created;
		g->parent_id = 1;
		g->waited_ns = id * UINT64_C(1000000000);
	}
	label = wp_dump_add_label(d);
	label->key = add_text(d, "shard");
	label->value = add_text(d, "a\x1b");
	g->nlabels = 1;
	g = add_goroutine(d, 11, "");
	g->state = add_text(d, "running");
	g->tid = 43;
	g->locked_tid = 43;
	d->processes[0].nlost_goroutines = 5;
}

static void assert_written(struct wp_dump *d, bool group, const char *want)
{
	const struct wp_write_dump_options options = { .group = group };
	char *text = NULL, *at;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(wp_write_dump_text(d, &options, f), 0);
	fclose(f);
	at = strstr(text, "\n4 goroutines");
	assert_non_null(at);
	assert_string_equal(at + 1, want);
	free(text);
}

static const char running[] = "goroutine 11 [running] on thread 43 locked to"
			      " thread 43\n"
			      "  [no stack: it runs]\n";

static void each_has_its_state_labels_frames_and_creator(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;
	char want[2048];

	(void)state;
	make(&d);
	snprintf(want, sizeof(want),
		 "4 goroutines of go1.22.3, 5 more not read\n\n"
		 "thread 42 \"server\" [running]\n"
		 "  [no stack: no stack was read]\n\n"
		 "goroutine 7 [chan receive, at most 7 s], at main.wait"
		 " main.go:7\n"
		 "  #0  runtime.gopark main.go:1  server\n"
		 "  #1  main.wait main.go:7  server\n"
		 "  created by main.main main.go:12 in goroutine 1\n\n"
		 "goroutine 8 [chan receive, at most 8 s], at main.wait"
		 " main.go:7\n"
		 "  #0  runtime.gopark main.go:1  server\n"
		 "  #1  main.wait main.go:7  server\n"
		 "  created by main.main main.go:12 in goroutine 1\n\n"
		 "goroutine 9 [chan receive, at most 9 s], at main.wait"
		 " main.go:7\n"
		 "  labels \"shard\": \"a\\x1b\"\n"
		 "  #0  runtime.gopark main.go:1  server\n"
		 "  #1  main.wait main.go:7  server\n"
		 "  created by main.main main.go:12 in goroutine 1\n\n%s",
		 running);
	assert_written(&d, false, want);
	wp_dump_clear(&d);
}

static void those_that_are_alike_are_written_once(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;
	char want[2048];

	(void)state;
	make(&d);
	snprintf(want, sizeof(want),
		 "4 goroutines of go1.22.3, 5 more not read\n\n"
		 "thread 42 \"server\" [running]\n"
		 "  [no stack: no stack was read]\n\n"
		 "2 goroutines [chan receive, at most 8 s] at"
		 " main.wait main.go:7: 7, 8\n"
		 "  #0  runtime.gopark main.go:1  server\n"
		 "  #1  main.wait main.go:7  server\n"
		 "  created by main.main main.go:12\n\n"
		 "goroutine 9 [chan receive, at most 9 s], at main.wait"
		 " main.go:7\n"
		 "  labels \"shard\": \"a\\x1b\"\n"
		 "  #0  runtime.gopark main.go:1  server\n"
		 "  #1  main.wait main.go:7  server\n"
		 "  created by main.main main.go:12 in goroutine 1\n\n%s",
		 running);
	assert_written(&d, true, want);
	wp_dump_clear(&d);
}

/* One in FUNCTIONS, innermost first, which CREATOR created, as Go's runtime prints it. */
static void assert_as_go(const char *const *functions, const char *creator,
			 const char *want)
{
	struct wp_dump d = WP_DUMP_INIT;
	struct wp_dump_goroutine *g;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	add_process(&d, 42, "server");
	g = add_goroutine(&d, 7, "chan receive");
	g->waited_ns = UINT64_MAX;
	for (; *functions; functions++)
		add_go_frame(&d, *functions, 7, &g->stack);
	g->created.first_frame = d.nframes;
	if (creator)
		add_go_frame(&d, creator, 12, &g->created);
	assert_int_equal(wp_write_dump_go(&d, f), 0);
	fclose(f);
	assert_string_equal(text, want);
	free(text);
	wp_dump_clear(&d);
}

static void go_does_not_print_what_generic_functions_are_made_for(void **state)
{
	static const char *const functions[] = {
		"runtime.gopark",
		"main.park[go.shape.struct { main.a [4]int }]",
		"main.(*list[go.shape.int]).each.func1", "main.odd]a[b", NULL
	};

	(void)state;
	assert_as_go(functions, "main.start[go.shape.[]int,string]",
		     "goroutine 7 [chan receive]:\n"
		     "main.park[...](...)\n\t/src/main.go:7\n"
		     "main.(*list[...]).each.func1(...)\n\t/src/main.go:7\n"
		     "main.odd]a[b(...)\n\t/src/main.go:7\n"
		     "created by main.start[...]\n\t/src/main.go:12\n");
}

static void go_prints_a_panic_below_what_it_runs(void **state)
{
	static const char *const functions[] = { "runtime.gopark",
						 "main.cleanUp",
						 "runtime.gopanic", "main.f",
						 NULL };
	/* Nothing that is printed is above. */
	static const char *const innermost[] = { "runtime.gopark",
						 "runtime.gopanic", "main.f",
						 NULL };
	static const char *const alone[] = { "runtime.gopanic", NULL };

	(void)state;
	assert_as_go(functions, NULL,
		     "goroutine 7 [chan receive]:\n"
		     "main.cleanUp(...)\n\t/src/main.go:7\n"
		     "panic(...)\n\t/src/main.go:7\n"
		     "main.f(...)\n\t/src/main.go:7\n");
	assert_as_go(innermost, NULL,
		     "goroutine 7 [chan receive]:\n"
		     "main.f(...)\n\t/src/main.go:7\n");
	assert_as_go(alone, NULL, "");
}

static void add_wait(struct wp_dump *d, uint32_t goroutine, const char *kind,
		     uint64_t avma, const char *text)
{
	struct wp_dump_goroutine *g = &d->goroutines[goroutine];
	struct wp_dump_wait *wait;

	if (!g->nwaits++)
		g->first_wait = d->nwaits;
	wait = wp_dump_add_wait(d);
	assert_non_null(wait);
	wait->kind = add_text(d, kind);
	wait->avma = avma;
	wait->fd = avma ? 0 : 12;
	wait->is_channel = !strcmp(kind, "channel");
	wait->text = add_text(d, text);
}

static void assert_has(struct wp_dump *d, const char *want)
{
	const struct wp_write_dump_options options = { .group = true };
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_int_equal(wp_write_dump_text(d, &options, f), 0);
	fclose(f);
	if (!strstr(text, want))
		fail_msg("no %s in %s", want, text);
	free(text);
}

static void what_they_wait_for_is_said(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	make(&d);
	add_wait(&d, 0, "sync.Mutex", 0xc0010, "held");
	add_wait(&d, 1, "sync.Mutex", 0xc0010, "not held");
	add_wait(&d, 2, "fd", 0, "tcp a\x1b, to read");
	assert_has(&d, "5 more not read\n2 goroutines wait for sync.Mutex "
		       "0xc0010, held; Go does not note by whom\n");
	assert_has(&d, ": 7, 8\n  wait for sync.Mutex 0xc0010, held\n  #0");
	assert_has(&d, "  waits for fd 12 tcp a\\x1b, to read\n  #0");
	d.waits[1].avma = 0xc0020;
	assert_has(&d, ": 7, 8\n  wait for 2 objects: sync.Mutex 0xc0010, held;"
		       " sync.Mutex 0xc0020, not held\n");
	d.goroutines[1].nwaits = 0;
	assert_has(&d, ": 7, 8\n  wait for sync.Mutex 0xc0010, held; of 1 not"
		       " known\n");
	wp_dump_clear(&d);
}

static void a_select_waits_for_any_of_its_channels(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	make(&d);
	for (uint32_t i = 0; i < 2; i++) {
		add_wait(&d, i, "channel", 0xc0100, "unbuffered");
		add_wait(&d, i, "channel", 0xc0200, "3 of 10 values");
	}
	for (uint64_t i = 0; i < 5; i++)
		add_wait(&d, 2, "channel", 0xc0300 + i, "");
	assert_has(&d, ": 7, 8\n  wait for channel 0xc0100, unbuffered or "
		       "channel 0xc0200, 3 of 10 values\n");
	/* All of one that is alone. */
	assert_has(&d, "  waits for channel 0xc0300 or channel 0xc0301 or "
		       "channel 0xc0302 or channel 0xc0303 or channel 0xc0304"
		       "\n");
	/* One of the group has another beside these. */
	d.goroutines[1].nwaits = 1;
	assert_has(&d, ": 7, 8\n  wait for 2 channels: channel 0xc0100, "
		       "unbuffered (2); channel 0xc0200, 3 of 10 values\n");
	wp_dump_clear(&d);
}

static void what_cannot_be_read_is_said(void **state)
{
	const struct wp_write_dump_options options = { .group = false };
	struct wp_dump d = WP_DUMP_INIT;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	make(&d);
	d.processes[0].ngoroutines = 0;
	d.processes[0].go_error = add_text(&d, "built by a Go that is not "
					       "known");
	assert_int_equal(wp_write_dump_text(&d, &options, f), 0);
	fclose(f);
	assert_non_null(strstr(text, "\ngoroutines could not be read: built by "
				     "a Go that is not known\n"));
	/* Nor is the number of those that are lost left out if that is all. */
	assert_non_null(strstr(text, "\n0 goroutines of go1.22.3, 5 more not "
				     "read\n"));
	free(text);
	wp_dump_clear(&d);
}

static void json_has_all_of_them(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;
	json_t *root, *process, *g, *want;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	make(&d);
	add_wait(&d, 0, "channel", 0xc0100, "unbuffered");
	assert_int_equal(wp_write_dump_json(&d, f), 0);
	fclose(f);
	root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	process = json_array_get(json_object_get(root, "processes"), 0);
	assert_string_equal(
		json_string_value(json_object_get(process, "go_version")),
		"go1.22.3");
	g = json_array_get(json_object_get(process, "goroutines"), 3);
	want = json_loads("{\"id\": 11, \"parent_id\": null,"
			  " \"state\": \"running\", \"reason\": \"\","
			  " \"waited_ns\": null, \"tid\": 43,"
			  " \"locked_tid\": 43, \"labels\": [],"
			  " \"waits_for\": [], \"site\": null,"
			  " \"truncated\": \"\", \"frames\": [],"
			  " \"created_by\": []}",
			  0, NULL);
	assert_true(json_equal(g, want));
	json_decref(want);
	g = json_array_get(json_object_get(process, "goroutines"), 0);
	want = json_loads("[{\"kind\": \"channel\", \"address\": \"0xc0100\","
			  " \"fd\": null, \"length\": 0, \"capacity\": 0,"
			  " \"text\": \"unbuffered\"}]",
			  0, NULL);
	assert_true(json_equal(json_object_get(g, "waits_for"), want));
	json_decref(want);
	g = json_array_get(json_object_get(process, "goroutines"), 2);
	want = json_loads("[[\"shard\", \"a\\u001b\"]]", 0, NULL);
	assert_true(json_equal(json_object_get(g, "labels"), want));
	assert_int_equal(json_array_size(json_object_get(g, "frames")), 2);
	assert_int_equal(json_array_size(json_object_get(g, "created_by")), 1);
	json_decref(want);
	json_decref(root);
	free(text);
	wp_dump_clear(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_has_its_state_labels_frames_and_creator),
		cmocka_unit_test(those_that_are_alike_are_written_once),
		cmocka_unit_test(
			go_does_not_print_what_generic_functions_are_made_for),
		cmocka_unit_test(go_prints_a_panic_below_what_it_runs),
		cmocka_unit_test(what_they_wait_for_is_said),
		cmocka_unit_test(a_select_waits_for_any_of_its_channels),
		cmocka_unit_test(what_cannot_be_read_is_said),
		cmocka_unit_test(json_has_all_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
