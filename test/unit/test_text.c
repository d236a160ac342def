/* SPDX-License-Identifier: Apache-2.0 */
/* The text report.
 *
 * Layer: output.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile_maker.h"
#include "wallprof/output.h"

static char *text_of_kind(struct wp_profile *p, enum wp_profile_kind kind,
			  const struct wp_report_options *options)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	wp_profile_add_up(p);
	assert_int_equal(wp_write_text(p, kind, options, f), 0);
	fclose(f);
	return text;
}

static char *text_with(struct wp_profile *p,
		       const struct wp_report_options *options)
{
	return text_of_kind(p, WP_PROFILE_WALL, options);
}

static char *text_of(struct wp_profile *p, bool full, unsigned int width)
{
	struct wp_report_options options = { .full = full, .width = width };

	return text_with(p, &options);
}

static void assert_has(const char *text, const char *want)
{
	if (!strstr(text, want))
		fail_msg("not in the report:\n%s\nthe report:\n%s", want, text);
}

static void assert_lacks(const char *text, const char *what)
{
	if (strstr(text, what))
		fail_msg("in the report:\n%s\nthe report:\n%s", what, text);
}

static const char server_report[] =
	"pid 100: /usr/bin/server --port 80\n"
	"2023-11-14 22:13:20 UTC, 10.0 s on the clock, 100 Hz asked,"
	" 99.8 Hz achieved\n"
	"4 threads, 4000 samples, 40.0 s of thread time\n"
	"the target exited with status 3\n"
	"\n"
	"Thread time adds up the time of every thread: two threads that wait for"
	" 10 s\n"
	"make 20 s.  Shares are of all thread time; in a call tree, of its threads'.\n"
	"\n"
	"Thread time by state\n"
	"      time    share\n"
	"    8.90 s   22.2 %  running\n"
	"    10.0 s   25.0 %  runnable (waits for a CPU)\n"
	"    21.1 s   52.8 %  waiting\n"
	"    12.0 s   30.0 %    lock\n"
	"    12.0 s   30.0 %      0xdead0\n"
	"    9.00 s   22.5 %    poll\n"
	"    9.00 s   22.5 %      fd 5 epoll\n"
	"    100 ms    0.2 %    syscall:membarrier\n"
	"\n"
	"Where threads wait\n"
	"      time    share  for         at\n"
	"    12.0 s   30.0 %  lock        work (pool.c:9)\n"
	"    9.00 s   22.5 %  poll        serve (server.c:40)\n"
	"    100 ms    0.2 %  syscall:membarrier work (pool.c:9)\n"
	"\n"
	"Functions by their own time\n"
	"      self    share   on CPU    total  function\n"
	"    12.0 s   30.0 %    0.0 %   30.0 %  __lll_lock_wait (libc.so.6)\n"
	"    10.0 s   25.0 %    0.0 %   25.0 %  [no stack: memory not readable]\n"
	"    9.00 s   22.5 %    0.0 %   22.5 %  epoll_wait (libc.so.6)\n"
	"    7.90 s   19.8 %   19.8 %   19.8 %  hot;loop\\x0a(int)\n"
	"    1.00 s    2.5 %    2.5 %    2.5 %  parse_inline (parse.h)\n"
	"    100 ms    0.2 %    0.0 %    0.2 %  syscall (libc.so.6)\n"
	"  ... 6 more functions with less or no time of their own\n"
	"\n"
	"Call tree of work-* (2 threads, 20.0 s): running 39.5 %, waiting 60.5 %\n"
	"   60.5 %    12.1 s  + start_thread (libc.so.6)\n"
	"                     | work (pool.c:9)\n"
	"   60.0 %    12.0 s  | + __lll_lock_wait (libc.so.6)  [waiting: lock]\n"
	"   39.5 %    7.90 s  + [truncated: no unwind info in anonymous memory]\n"
	"                       hot;loop\\x0a(int)  [running]\n"
	"  (1 branch under 1 % not shown, 0.5 % together)\n"
	"\n"
	"Call tree of server (tid 100, 10.0 s): running 10.0 %, waiting 90.0 %\n"
	"  100.0 %    10.0 s  main (server.c:12)\n"
	"                     serve (server.c:40)\n"
	"   90.0 %    9.00 s  + epoll_wait (libc.so.6)  [waiting: poll]\n"
	"   10.0 %    1.00 s  + handle (server.c:80)\n"
	"                       parse_inline (parse.h:7) [inlined]  [running]\n"
	"\n"
	"Call tree of \\x1b[31m\\xff;e\xc3\xa9\\x0a (tid 103, 10.0 s):"
	" runnable 100.0 %\n"
	"  100.0 %    10.0 s  [no stack: memory not readable]  [runnable]\n"
	"\n"
	"How it was recorded\n"
	"  ticks: 998, 2 missed, 100.0 Hz asked, 99.8 Hz achieved\n"
	"  threads: 4 with a sample, 4 watched\n"
	"  samples: 4000, 3000 read without a stop, 1000 in a stop\n"
	"  stacks: 44.8 % of wall time, 88.8 % of CPU time without a whole stack;"
	" no unwind info: 19.8 %, 88.8 %; memory not readable: 25 %, 0 %\n"
	"  stops: 1000 made, 1 EINTR repaired\n"
	"  pauses: p50 12.0 us, p99 40.0 us, max 90.0 us,"
	" 0.150 % of the recording in all\n"
	"  cost: sampling took 0.43 % of a core,"
	" stops of the target's threads 0.15 % of the time\n"
	"  lost: nothing\n";

static void server_gives_the_known_report(void **state)
{
	struct wp_profile p;
	char *text;

	(void)state;
	make_server(&p);
	text = text_of(&p, false, 0);
	assert_string_equal(text, server_report);
	free(text);
	wp_profile_clear(&p);
}

static void full_report_shows_what_is_small(void **state)
{
	struct wp_profile p;
	char *text;

	(void)state;
	make_server(&p);
	text = text_of(&p, true, 0);
	assert_has(text, "    0.5 %    100 ms  | + syscall (libc.so.6)"
			 "  [waiting: syscall:membarrier]\n");
	assert_has(text, "       0 s    0.0 %    0.0 %   25.0 %  main "
			 "(server.c)\n");
	assert_lacks(text, "not shown");
	free(text);
	wp_profile_clear(&p);
}

static void no_line_of_names_is_wider_than_asked(void **state)
{
	struct wp_profile p;
	char *text, *line, *rest;
	uint32_t t;

	(void)state;
	make_server(&p);
	t = mk_thread(&p, 9, "a-thread-with-a-name-that-is-too-long-to-be-one");
	mk_sample(&p, t, 0, WP_STATE_WAITING, WP_WAIT_SOCKET,
		  "fd 7 tcp [2001:db8:aaaa:bbbb:cccc:dddd:eeee:1]:12345 -> "
		  "[2001:db8:aaaa:bbbb:cccc:dddd:eeee:2]:5432",
		  100, 1000000000);
	text = text_of(&p, false, 80);
	assert_has(text, "      fd 7 tcp [2001:db8:aaa");
	/* The counters are never cut. */
	*strstr(text, "\nHow it was recorded") = '\0';
	for (line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		assert_true(strlen(line) <= 82);
	free(text);
	wp_profile_clear(&p);
}

/* f calls itself 1 to 40 deep, then g waits: the same as one call. */
static void recursion_is_one_frame_unless_full(void **state)
{
	static const struct maker_symbol symbols[] = {
		{ 0x10, "g", "", 0 },
		{ 0x20, "f", "", 0 },
		{ 0x30, "main", "", 0 },
	};
	struct wp_profile p;
	uint32_t t;
	char *text;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	t = mk_thread(&p, 7, "t");
	for (uint32_t depth = 1; depth <= 40; depth++) {
		uint64_t pcs[64] = { 0x10 };

		for (uint32_t i = 1; i <= depth; i++)
			pcs[i] = 0x21;
		pcs[depth + 1] = 0x31;
		mk_sample(&p, t, mk_stack(&p, pcs, WP_END_ROOT, 0),
			  WP_STATE_WAITING, WP_WAIT_SLEEP, "", 1, 1000000);
	}
	mk_lines(&p, symbols, 3);
	text = text_of(&p, false, 0);
	assert_has(text, "  100.0 %   40.0 ms  main\n"
			 "                     f  (recursive, up to 40 deep)\n"
			 "                     g  [waiting: sleep]\n");
	/* Once per stack, however often it is on it. */
	assert_has(text, "   40.0 ms  100.0 %    0.0 %  100.0 %  g\n");
	free(text);
	text = text_of(&p, true, 0);
	assert_has(text, "       0 s    0.0 %    0.0 %  100.0 %  f\n");
	/* Each level has its own g; the guides end at some width. */
	assert_has(text, "  100.0 %   40.0 ms  main\n"
			 "                     f\n"
			 "   97.5 %   39.0 ms  + f\n");
	assert_has(text, "[31 deep] ");
	free(text);
	wp_profile_clear(&p);
}

static void long_chain_loses_its_middle_unless_full(void **state)
{
	struct wp_profile p;
	uint64_t pcs[41];
	uint32_t t;
	char *text;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	t = mk_thread(&p, 7, "t");
	for (uint64_t i = 0; i < 40; i++)
		pcs[i] = 0x1000 - 0x10 * i + (i > 0);
	pcs[40] = 0;
	mk_sample(&p, t, mk_stack(&p, pcs, WP_END_ROOT, 0), WP_STATE_RUNNING,
		  WP_WAIT_NONE, "", 1, 1000000);
	mk_lines(&p, NULL, 0);
	text = text_of(&p, false, 0);
	assert_has(text, "                     0xde0\n"
			 "                     ... 28 calls ...\n"
			 "                     0xfb0\n");
	free(text);
	text = text_of(&p, true, 0);
	assert_has(text, "                     0xde0\n"
			 "                     0xdf0\n");
	assert_lacks(text, "calls ...");
	free(text);
	wp_profile_clear(&p);
}

/* A thousand leaves of a thousandth each are one remark; their caller stays. */
static void small_branches_are_counted(void **state)
{
	struct wp_profile p;
	uint32_t t;
	char *text;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	t = mk_thread(&p, 7, "t");
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t pcs[] = { 0x1000 + i, 0x11, 0 };

		mk_sample(&p, t, mk_stack(&p, pcs, WP_END_ROOT, 0),
			  WP_STATE_RUNNING, WP_WAIT_NONE, "", 1, 1000000);
	}
	mk_lines(&p, NULL, 0);
	text = text_of(&p, false, 0);
	assert_has(text, "  100.0 %    1.00 s  0x10\n"
			 "  (1000 branches under 1 % not shown,"
			 " 100.0 % together)\n");
	free(text);
	wp_profile_clear(&p);
}

static void one_stack_in_several_states_shows_them(void **state)
{
	static const uint64_t pcs[] = { 0x1000, 0x11, 0 },
			      outer[] = { 0x10, 0 };
	struct wp_profile p;
	uint32_t t, s;
	char *text;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	t = mk_thread(&p, 7, "t");
	s = mk_stack(&p, pcs, WP_END_ROOT, 0);
	mk_sample(&p, t, s, WP_STATE_RUNNING, WP_WAIT_NONE, "", 1, 60);
	mk_sample(&p, t, s, WP_STATE_WAITING, WP_WAIT_DISK, "", 1, 20);
	mk_sample(&p, t, s, WP_STATE_WAITING, WP_WAIT_NONE, "", 1, 10);
	s = mk_stack(&p, outer, WP_END_ROOT, 0);
	mk_sample(&p, t, s, WP_STATE_STOPPED, WP_WAIT_NONE, "", 1, 10);
	mk_lines(&p, NULL, 0);
	text = text_of(&p, false, 0);
	assert_has(text, "0x10  [itself 10.0 %: stopped]\n");
	assert_has(text, "+ 0x1000  [running 60.0 %, waiting: disk 20.0 %,"
			 " waiting 10.0 %]\n");
	assert_has(text, "   10.0 %    not known\n");
	free(text);
	wp_profile_clear(&p);
}

static void threads_are_grouped_by_name_less_digits(void **state)
{
	static const char *const names[] = {
		"io-1", "io-22", "io-", "main", "main", "7", "x9y8",
	};
	static const uint64_t pcs[] = { 0x10, 0 };
	struct wp_profile p;
	char *text;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	for (uint32_t i = 0; i < 7; i++)
		mk_sample(&p, mk_thread(&p, 10 + (int32_t)i, names[i]),
			  mk_stack(&p, pcs, WP_END_ROOT, 0), WP_STATE_WAITING,
			  WP_WAIT_POLL, "", 1, 1000000000);
	mk_lines(&p, NULL, 0);
	text = text_of(&p, false, 0);
	assert_has(text, "Call tree of io-* (2 threads, 2.00 s)");
	assert_has(text, "Call tree of io- (tid 12, 1.00 s)");
	assert_has(text, "Call tree of main (2 threads, 2.00 s)");
	assert_has(text, "Call tree of 7 (tid 15, 1.00 s)");
	assert_has(text, "Call tree of x9y8 (tid 16, 1.00 s)");
	free(text);
	wp_profile_clear(&p);
}

static void site_is_above_the_machinery_of_waiting(void **state)
{
	static const struct maker_symbol symbols[] = {
		{ LIBC_START + 1, "__futex_abstimed_wait", "", 0 },
		{ EXE_START + 0x1f, "void std::condition_variable::wait<f>(g)",
		  "", 0 },
		{ EXE_START + 0x2f, "Queue<std::string>::pop(int)", "q.h", 5 },
		{ EXE_START + 0x3f, "main", "", 0 },
	};
	static const uint64_t pcs[] = { LIBC_START + 1, EXE_START + 0x20,
					EXE_START + 0x30, EXE_START + 0x40, 0 };
	struct wp_profile p;
	char *text;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	mk_mapping(&p, LIBC_START, "/lib/libc.so.6", "");
	mk_mapping(&p, EXE_START, "/bin/x", "");
	mk_sample(&p, mk_thread(&p, 1, "t"), mk_stack(&p, pcs, WP_END_ROOT, 0),
		  WP_STATE_WAITING, WP_WAIT_CONDVAR, "", 1, 1000000000);
	mk_lines(&p, symbols, 4);
	text = text_of(&p, false, 0);
	assert_has(text,
		   "  condvar     Queue<std::string>::pop(int) (q.h:5)\n");
	free(text);
	wp_profile_clear(&p);
}

static void counters_that_lost_something_say_so(void **state)
{
	struct wp_profile p;
	char *text;

	(void)state;
	make_server(&p);
	p.counters.samples_lost = 3;
	p.counters.threads_lost = 4;
	p.counters.objects_dropped = 6;
	p.counters.stops_refused = 5;
	p.counters.eintrs_left = 2;
	p.counters.execs = 1;
	text = text_of(&p, false, 0);
	assert_has(text, "  lost: 3 samples could not be taken,"
			 " 4 threads ended before a first sample,"
			 " 6 times an object of a wait, or who ended it, was"
			 " left out, as there are too many\n");
	assert_has(text,
		   "1 EINTR repaired, 2 EINTR left (close, or the kernel does"
		   " not tell a call's argument), 5 refused by the kernel\n");
	assert_has(text,
		   "threads: 4 with a sample, 4 watched, 4 ended before a first"
		   " sample, 1 x exec\n");
	free(text);
	wp_profile_clear(&p);
}

/* Three threads of a pool that wait for work, one that waits in the midst of it, one
 * that waits for a lock, and one that works. */
static void make_pool(struct wp_profile *p)
{
	static const struct maker_symbol symbols[] = {
		{ EXE_START + 0x10f, "pool_main", "/src/pool.c", 9 },
		{ EXE_START + 0x20f, "request", "/src/pool.c", 20 },
		{ EXE_START + 0x30f, "query", "/src/pool.c", 30 },
		{ EXE_START + 0x40f, "fetch", "/src/pool.c", 40 },
		{ EXE_START + 0x50f, "ask", "/src/pool.c", 50 },
		{ LIBC_START + 0x100, "pthread_cond_wait", "", 0 },
		{ LIBC_START + 0x20f, "start_thread", "", 0 },
	};
	static const uint64_t parked[] = { LIBC_START + 0x100,
					   EXE_START + 0x110,
					   LIBC_START + 0x210, 0 };
	static const uint64_t deep[] = { LIBC_START + 0x100, EXE_START + 0x510,
					 EXE_START + 0x410,  EXE_START + 0x310,
					 EXE_START + 0x210,  EXE_START + 0x110,
					 LIBC_START + 0x210, 0 };

	assert_int_equal(wp_profile_init(p), 0);
	mk_mapping(p, LIBC_START, "/usr/lib/libc.so.6", "");
	mk_mapping(p, EXE_START, "/usr/bin/pool", "");
	for (int32_t tid = 1; tid <= 6; tid++)
		mk_sample(p, mk_thread(p, tid, tid < 4 ? "parked" : "busy"),
			  mk_stack(p, tid == 4 ? deep : parked, WP_END_ROOT, 0),
			  tid == 6 ? WP_STATE_RUNNING : WP_STATE_WAITING,
			  tid == 6 ? WP_WAIT_NONE :
			  tid == 5 ? WP_WAIT_LOCK :
				     WP_WAIT_CONDVAR,
			  "", 100, 1000000000);
	mk_lines(p, symbols, sizeof(symbols) / sizeof(*symbols));
}

static void idle_threads_are_one_line(void **state)
{
	struct wp_profile p;
	char *text;

	(void)state;
	make_pool(&p);
	assert_int_equal(wp_idle_mark(&p), 0);
	text = text_of(&p, false, 0);
	assert_has(text, "6 threads, 600 samples, 6.00 s of thread time\n");
	assert_has(text, "Idle: 3 of 6 threads, 3.00 s: each waited");
	assert_has(text, "    1.00 s   33.3 %  running\n");
	assert_has(text, "    1.00 s   33.3 %    condvar\n");
	assert_has(text, "    1.00 s   33.3 %  condvar     ask (pool.c:50)\n");
	assert_lacks(text, "parked");
	free(text);
	text = text_of(&p, true, 0);
	assert_lacks(text, "Idle");
	assert_has(text, "    4.00 s   66.7 %    condvar\n");
	assert_has(text, "parked");
	free(text);
	wp_profile_clear(&p);
}

static void a_thread_that_did_anything_else_is_not_idle(void **state)
{
	static const uint64_t other[] = { EXE_START + 0x110, 0 };
	struct wp_profile p;

	(void)state;
	make_pool(&p);
	mk_sample(&p, 0, mk_stack(&p, other, WP_END_ROOT, 0), WP_STATE_RUNNING,
		  WP_WAIT_NONE, "", 1, 5000000);
	mk_sample(&p, 1, mk_stack(&p, other, WP_END_ROOT, 0), WP_STATE_RUNNING,
		  WP_WAIT_NONE, "", 1, 20000000);
	assert_int_equal(wp_profile_locate(&p), 0);
	assert_int_equal(wp_idle_mark(&p), 0);
	assert_true(p.threads[0].idle);
	assert_false(p.threads[1].idle);
	assert_true(p.threads[2].idle);
	wp_profile_clear(&p);
}

/* Where nothing else happens, waiting is what there is to say. */
static void a_process_is_not_idle_as_a_whole(void **state)
{
	struct wp_profile p;

	(void)state;
	make_pool(&p);
	for (uint32_t i = 3; i < 6; i++)
		p.sets[WP_PROFILE_WALL].samples[i].wall_ns = 0;
	assert_int_equal(wp_idle_mark(&p), 0);
	for (uint32_t i = 0; i < 6; i++)
		assert_false(p.threads[i].idle);
	wp_profile_clear(&p);
}

/* What a thread did to others is told, however little it did for itself. */
static void who_holds_wakes_or_makes_is_not_left_out(void **state)
{
	static const enum wp_profile_kind of_doers[] = {
		WP_PROFILE_MUTEX, WP_PROFILE_WAKE, WP_PROFILE_THREADCREATE,
		WP_PROFILE_HEAP
	};
	const struct wp_report_options options = { 0 };
	struct wp_profile p;
	char line[256], *text;

	(void)state;
	make_pool(&p);
	assert_int_equal(wp_idle_mark(&p), 0);
	assert_true(p.threads[0].idle);
	p.meta.is_of_allocations = true;
	for (size_t i = 0; i < 4; i++) {
		struct wp_sample_key key =
			p.sets[WP_PROFILE_WALL].samples[0].key;

		assert_int_equal(wp_profile_add_sample(&p, of_doers[i], &key, 1,
						       1000000000),
				 0);
		text = text_of_kind(&p, of_doers[i], &options);
		assert_lacks(text, "Idle:");
		assert_has(text, "Call tree of parked (tid 1, ");
		free(text);
		assert_int_equal(
			wp_report_most(&p, of_doers[i], line, sizeof(line)), 0);
		assert_has(line, "100.0 %");
	}
	wp_profile_clear(&p);
}

/* It may be a holder's: what waits is not told. */
static void a_file_of_delays_has_no_idle_threads(void **state)
{
	struct wp_profile p;

	(void)state;
	make_pool(&p);
	p.meta.value_type = mk_str(&p, "delay");
	assert_int_equal(wp_idle_mark(&p), 0);
	for (uint32_t i = 0; i < 6; i++)
		assert_false(p.threads[i].idle);
	wp_profile_clear(&p);
}

/* The server's 40 s beside a main thread that waits for children. */
static void wait_for_children(struct wp_profile *p, uint64_t s,
			      const char *object)
{
	static const uint64_t pcs[] = { LIBC_START + 0x500, 0 };

	mk_sample(p, 0, mk_stack(p, pcs, WP_END_ROOT, 0), WP_STATE_WAITING,
		  WP_WAIT_CHILD, object, 1, s * 1000000000);
	wp_profile_add_up(p);
}

static void long_waits_for_children_are_a_hint(void **state)
{
	struct wp_profile p;
	char text[256];

	(void)state;
	make_server(&p);
	assert_false(wp_child_hint(&p, text, sizeof(text)));
	wait_for_children(&p, 39, "child 7 (cc)");
	assert_false(wp_child_hint(&p, text, sizeof(text)));
	/* Two stacks, one child. */
	wait_for_children(&p, 2, "child 7 (cc)");
	assert_true(wp_child_hint(&p, text, sizeof(text)));
	assert_string_equal(text,
			    "50.6 % of the time this process waited for child 7"
			    " (cc): record it with wallprof -p PID, or with"
			    " wallprof -- COMMAND");
	wait_for_children(&p, 30, "child 8 (ld)");
	wait_for_children(&p, 29, "");
	assert_true(wp_child_hint(&p, text, sizeof(text)));
	assert_non_null(strstr(text, "71.4 % of the time this process waited "
				     "for children, most for child 7 (cc):"));
	/* Of several it is among those that are recorded. */
	p.meta.is_of_many = true;
	assert_false(wp_child_hint(&p, text, sizeof(text)));
	wp_profile_clear(&p);
}

static void head_tells_only_what_a_file_says(void **state)
{
	struct wp_profile p;
	char *text;

	(void)state;
	make_server(&p);
	p.meta.was_read = true;
	p.meta.achieved_hz = 0;
	p.meta.time_ns = 0;
	text = text_of(&p, false, 0);
	assert_has(text, "\n10.0 s on the clock, 100 Hz asked\n");
	assert_lacks(text, "1970");
	free(text);
	p.meta.duration_ns = p.meta.period_ns = 0;
	text = text_of(&p, false, 0);
	assert_lacks(text, "on the clock");
	assert_lacks(text, "\n\n\n");
	free(text);
	wp_profile_clear(&p);
}

/* If they are all that waited, they are what there is to say. */
static void waits_of_idle_threads_alone_are_shown(void **state)
{
	static const struct maker_symbol symbols[] = { { 0x10, "park", "",
							 0 } };
	static const uint64_t park[] = { 0x10, 0 };
	const struct wp_report_options options = { 0 };
	struct wp_sample_key key = { .state = WP_STATE_WAITING };
	struct wp_profile p;
	char *text;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	key.stack = mk_stack(&p, park, WP_END_ROOT, 0);
	for (int32_t i = 1; i <= 2; i++) {
		key.thread = mk_thread(&p, i, "worker");
		p.threads[key.thread].idle = true;
		assert_int_equal(wp_profile_add_sample(&p, WP_PROFILE_BLOCK,
						       &key, 1, 1000000000),
				 0);
	}
	mk_lines(&p, symbols, 1);
	text = text_of_kind(&p, WP_PROFILE_BLOCK, &options);
	assert_lacks(text, "Idle:");
	assert_lacks(text, "No thread waited");
	assert_has(text, "100.0 %  park");
	assert_has(text, "Call tree of worker");
	free(text);
	key.thread = mk_thread(&p, 3, "busy");
	assert_int_equal(wp_profile_add_sample(&p, WP_PROFILE_BLOCK, &key, 1,
					       1000000000),
			 0);
	text = text_of_kind(&p, WP_PROFILE_BLOCK, &options);
	assert_has(text, "Idle: 2 of 3 threads");
	assert_lacks(text, "worker");
	free(text);
	wp_profile_clear(&p);
}

static void no_rate_is_told_of_allocations(void **state)
{
	const struct wp_report_options options = { 0 };
	struct wp_profile p;
	char *text;

	(void)state;
	make_server(&p);
	text = text_of_kind(&p, WP_PROFILE_HEAP, &options);
	assert_has(text, "UTC, 10.0 s on the clock\n");
	free(text);
	wp_profile_clear(&p);
}

static void report_of_nothing_says_so(void **state)
{
	struct wp_profile p;
	char *text;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	mk_lines(&p, NULL, 0);
	text = text_of(&p, false, 0);
	assert_has(text, "No thread was seen for any time.");
	free(text);
	wp_profile_clear(&p);
}

/* What scrolls away is what was printed first. */
static void a_terminal_has_the_summary_last_and_what_to_type_next(void **state)
{
	struct wp_profile p;
	char *file, *terminal;

	(void)state;
	make_server(&p);
	p.meta.pid = 4711;
	p.meta.target_end = 0;
	file = text_of(&p, false, 0);
	terminal = text_of(&p, false, 100);
	assert_true(strstr(file, "Thread time by state") <
		    strstr(file, "Call tree of"));
	assert_lacks(file, "next: ");
	assert_true(strstr(terminal, "Call tree of") <
		    strstr(terminal, "How it was recorded"));
	assert_true(strstr(terminal, "How it was recorded") <
		    strstr(terminal, "Thread time by state"));
	assert_has(terminal, "\nnext: wallprof dump 4711, wallprof 4711 -d 30 "
			     "-o out.html, wallprof top 4711\n");
	free(file);
	free(terminal);
	wp_profile_clear(&p);
}

/* TEXT without sequences that begin or end a colour. */
static void strip_colours(char *text)
{
	char *to = text;

	for (const char *from = text; *from;) {
		if (!strncmp(from, "\033[", 2))
			from += strcspn(from, "m") + 1;
		else
			*to++ = *from++;
	}
	*to = '\0';
}

/* However few columns there are: a colour takes none of them. */
static void colours_change_nothing_else(void **state)
{
	struct wp_profile p;
	char *plain, *colour;

	(void)state;
	make_server(&p);
	for (unsigned int width = 1; width < 100; width++) {
		struct wp_report_options options = { .width = width };

		plain = text_with(&p, &options);
		options.colour = true;
		colour = text_with(&p, &options);
		assert_has(colour, "\033[32mrunning\033[0m\n");
		if (width > 80) {
			assert_has(colour, " (libc.so.6)  "
					   "\033[31m[waiting: lock]\033[0m\n");
			assert_has(colour, "  waiting\n    12.0 s   30.0 %    "
					   "\033[31mlock\033[0m\n");
		}
		strip_colours(colour);
		assert_string_equal(colour, plain);
		free(plain);
		free(colour);
	}
	wp_profile_clear(&p);
}

static void most_of_the_time_is_one_line(void **state)
{
	struct wp_profile p;
	char line[256];

	(void)state;
	make_server(&p);
	wp_profile_add_up(&p);
	assert_int_equal(
		wp_report_most(&p, WP_PROFILE_WALL, line, sizeof(line)), 0);
	assert_string_equal(line, "30.0 % waiting: lock at work (pool.c)");
	assert_int_equal(
		wp_report_most(&p, WP_PROFILE_BLOCK, line, sizeof(line)), 0);
	assert_string_equal(line, "");
	wp_profile_clear(&p);
}

static void full_disk_is_an_error(void **state)
{
	struct wp_report_options options = { .width = 80 };
	FILE *f = fopen("/dev/full", "w");
	struct wp_profile p;

	(void)state;
	if (!f)
		skip();
	make_server(&p);
	assert_int_equal(wp_write_text(&p, WP_PROFILE_WALL, &options, f),
			 -ENOSPC);
	fclose(f);
	wp_profile_clear(&p);
}

/* CPU samples have no wall time, by which the trees of others are ranked. */
static void cpu_samples_alone_have_a_tree(void **state)
{
	static const uint64_t pcs[] = { EXE_START + 0x300, 0 };
	static const struct maker_symbol symbols[] = {
		{ EXE_START + 0x300, "spin", "/src/spin.c", 3 },
	};
	struct wp_sample_key key = { .state = WP_STATE_RUNNING };
	struct wp_profile p;
	char *text;

	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	mk_mapping(&p, EXE_START, "/usr/bin/spin", "");
	key.thread = mk_thread(&p, 100, "spin");
	key.stack = mk_stack(&p, pcs, WP_END_ROOT, 0);
	assert_int_equal(wp_profile_add_cpu(&p, &key, 100, 1000000000), 0);
	p.meta.has_cpu = true;
	p.meta.has_wall = false;
	mk_lines(&p, symbols, 1);
	text = text_of(&p, false, 0);
	assert_has(text, "1 thread, 100 CPU samples, 1.00 s of CPU time");
	/* In the table of functions, and in the tree. */
	assert_has(strstr(text, "spin (spin.c)") + 1, "spin (spin.c:3)");
	free(text);
	wp_profile_clear(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_gives_the_known_report),
		cmocka_unit_test(full_report_shows_what_is_small),
		cmocka_unit_test(cpu_samples_alone_have_a_tree),
		cmocka_unit_test(no_line_of_names_is_wider_than_asked),
		cmocka_unit_test(recursion_is_one_frame_unless_full),
		cmocka_unit_test(long_chain_loses_its_middle_unless_full),
		cmocka_unit_test(small_branches_are_counted),
		cmocka_unit_test(one_stack_in_several_states_shows_them),
		cmocka_unit_test(threads_are_grouped_by_name_less_digits),
		cmocka_unit_test(site_is_above_the_machinery_of_waiting),
		cmocka_unit_test(counters_that_lost_something_say_so),
		cmocka_unit_test(idle_threads_are_one_line),
		cmocka_unit_test(a_thread_that_did_anything_else_is_not_idle),
		cmocka_unit_test(a_process_is_not_idle_as_a_whole),
		cmocka_unit_test(who_holds_wakes_or_makes_is_not_left_out),
		cmocka_unit_test(a_file_of_delays_has_no_idle_threads),
		cmocka_unit_test(long_waits_for_children_are_a_hint),
		cmocka_unit_test(head_tells_only_what_a_file_says),
		cmocka_unit_test(waits_of_idle_threads_alone_are_shown),
		cmocka_unit_test(no_rate_is_told_of_allocations),
		cmocka_unit_test(report_of_nothing_says_so),
		cmocka_unit_test(
			a_terminal_has_the_summary_last_and_what_to_type_next),
		cmocka_unit_test(colours_change_nothing_else),
		cmocka_unit_test(most_of_the_time_is_one_line),
		cmocka_unit_test(full_disk_is_an_error),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
