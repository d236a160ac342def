/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a dump.
 *
 * Layer: output.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <time.h>

#include "dump_maker.h"

#define S UINT64_C(1000000000)

static char *text_with(const struct wp_dump *d, bool group, bool peers)
{
	struct wp_write_dump_options options = { .group = group,
						 .peers = peers };
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(wp_write_dump_text(d, &options, f), 0);
	fclose(f);
	return text;
}

/* The texts with and without --group. */
static void assert_text(struct wp_dump *d, bool group, const char *want)
{
	char *text = text_with(d, group, false);

	assert_string_equal(text, want);
	free(text);
}

static void assert_has(const struct wp_dump *d, const char *want)
{
	char *text = text_with(d, false, false);

	if (!strstr(text, want))
		fail_msg("not in the dump:\n%s\nthe dump:\n%s", want, text);
	free(text);
}

/* [state: reason, ...] of a thread alone. */
static void assert_state(struct wp_dump *d, uint32_t thread, const char *want)
{
	char *text = text_with(d, false, false), begin[64], *at, *end;

	snprintf(begin, sizeof(begin), "\nthread %d \"",
		 d->threads[thread].tid);
	at = strstr(text, begin);
	assert_non_null(at);
	at = strchr(at, '[');
	assert_non_null(at);
	end = strchr(at, '\n');
	assert_non_null(end);
	*end = '\0';
	assert_string_equal(at, want);
	free(text);
}

static const char deadlock_text[] =
	"DEADLOCK: 2 threads wait for each other\n"
	"  thread 4243 \"a\" holds mutex 0x55aa10, wants mutex 0x55aa60 held by"
	" thread 4244 \"b\", at take_b ab.c:21\n"
	"  thread 4244 \"b\" holds mutex 0x55aa60, wants mutex 0x55aa10 held by"
	" thread 4243 \"a\", at take_a ab.c:33\n"
	"\n"
	"process 4242 \"./server --port 80\", user www-data,"
	" 2026-11-21 14:30:12 UTC\n"
	"3 threads, 1 stopped for 38 us\n"
	"\n"
	"thread 4242 \"server\" [waiting: join of thread 4243 \"a\", stuck] cpu 1,"
	" at main server.c:55\n"
	"  in futex 0x7f01 WAIT_BITSET\n"
	"  #0  main server.c:55  server\n"
	"\n"
	"thread 4243 \"a\" [waiting: lock mutex 0x55aa60 held by thread 4244 \"b\","
	" 3 min, stuck], at take_b ab.c:21\n"
	"  #0  __lll_lock_wait lowlevellock.c:49  libc.so.6\n"
	"  #1  take_b ab.c:21  ab\n"
	"\n"
	"thread 4244 \"b\" [waiting: lock recursive mutex 0x55aa10 held by"
	" thread 4243 \"a\", 12 s, stuck], at take_a ab.c:33\n"
	"  #0  take_a ab.c:33  ab\n";

static void a_deadlock_comes_first_and_the_main_thread_after(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	make_deadlock(&d);
	assert_text(&d, false, deadlock_text);
	/* Nothing is alike: the same. */
	assert_text(&d, true, deadlock_text);
	wp_dump_clear(&d);
}

static void a_thread_may_wait_for_itself(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	add_process(&d, 42, "x");
	set_mutex(add_thread(&d, 42, "x", WP_STATE_WAITING, WP_WAIT_LOCK), 0x10,
		  42);
	add_frame(&d, "twice", "x.c", 3, "x");
	set_site(&d);
	add_edge(&d, WP_EDGE_LOCK, 0, 0, 42, "mutex 0x10");
	add_cycle(&d, 0, 1);
	assert_has(&d,
		   "DEADLOCK: thread 42 \"x\" waits for itself\n"
		   "  thread 42 \"x\" holds mutex 0x10, wants mutex 0x10 held"
		   " by itself, at twice x.c:3\n\nprocess 42 ");
	assert_state(&d, 0,
		     "[waiting: lock mutex 0x10 held by itself],"
		     " at twice x.c:3");
	wp_dump_clear(&d);
}

static void a_lock_has_the_name_of_its_variable(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	add_process(&d, 42, "x");
	set_mutex(add_thread(&d, 42, "x", WP_STATE_WAITING, WP_WAIT_LOCK), 0x10,
		  42);
	d.threads[0].variable = wp_intern_add_str(&d.strings, "job\033+8");
	add_edge(&d, WP_EDGE_LOCK, 0, 0, 42, "mutex 0x10");
	add_cycle(&d, 0, 1);
	assert_has(&d, "holds mutex 0x10 <job\\x1b+8>, wants mutex 0x10"
		       " <job\\x1b+8> held by itself");
	assert_state(&d, 0,
		     "[waiting: lock mutex 0x10 <job\\x1b+8> held by itself]");
	wp_dump_clear(&d);
}

static void a_process_may_wait_for_itself(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	add_process(&d, 42, "x");
	add_thread(&d, 42, "x", WP_STATE_WAITING, WP_WAIT_PIPE);
	add_edge(&d, WP_EDGE_PIPE, 0, UINT32_MAX, 42, "pipe:[7]");
	add_cycle(&d, 0, 1);
	assert_has(&d,
		   "DEADLOCK: thread 42 \"x\" waits for its own process\n"
		   "  thread 42 \"x\" waits for its own process (pipe:[7])\n"
		   "\nprocess 42 ");
	wp_dump_clear(&d);
}

/* 42 waits for its child 43, which waits for a lock of 44, and that one for a
 * file lock of 42. */
static void make_peers(struct wp_dump *d)
{
	struct wp_dump_thread *t;

	add_process(d, 42, "./parent");
	t = add_thread(d, 42, "parent", WP_STATE_WAITING, WP_WAIT_CHILD);
	t->call.text = add_text(d, "wait4 pid 43 \"child\"");
	add_frame(d, "wait4", "", 0, "libc.so.6");
	add_frame(d, "reap", "/src/p.c", 9, "parent");
	set_site(d);
	add_process(d, 43, "./parent")->is_peer = true;
	t = add_thread(d, 43, "child", WP_STATE_WAITING, WP_WAIT_LOCK);
	set_mutex(t, 0x20, 45);
	add_process(d, 44, "./other")->is_peer = true;
	add_thread(d, 44, "other", WP_STATE_RUNNING, WP_WAIT_NONE);
	t = add_thread(d, 45, "w", WP_STATE_WAITING, WP_WAIT_LOCK);
	t->lock.kind = WP_LOCK_FILE;
	add_edge(d, WP_EDGE_CHILD, 0, UINT32_MAX, 43, "child");
	add_edge(d, WP_EDGE_LOCK, 1, 3, 44, "mutex 0x20");
	add_edge(d, WP_EDGE_FILE_LOCK, 3, UINT32_MAX, 42, "flock /x.lock");
	add_cycle(d, 0, 3);
}

static const char peers_head[] =
	"DEADLOCK: 3 threads of several processes wait for each other\n"
	"  thread 42 \"parent\" of process 42 holds flock /x.lock, waits for"
	" process 43 \"child\" (child), at reap p.c:9\n"
	"  thread 43 \"child\" of process 43 wants mutex 0x20 held by"
	" thread 45 \"w\" of process 44\n"
	"  thread 45 \"w\" of process 44 holds mutex 0x20, wants flock /x.lock held"
	" by process 42 \"parent\"\n"
	"\n"
	"process 42 \"./parent\", 2026-11-21 14:30:12 UTC\n"
	"1 thread, none stopped\n"
	"\n"
	"thread 42 \"parent\" [waiting: child, waits for process 43 \"child\"],"
	" at reap p.c:9\n"
	"  in wait4 pid 43 \"child\"\n"
	"  #0  wait4  libc.so.6\n"
	"  #1  reap p.c:9  parent\n"
	"\n";

static const char peers_short[] =
	"process 43 \"child\" was looked at because a wait led there;"
	" --follow-processes prints it\n"
	"process 44 \"other\" was looked at because a wait led there;"
	" --follow-processes prints it\n";

static const char peers_full[] =
	"process 43 \"./parent\", 2026-11-21 14:30:12 UTC\n"
	"1 thread, none stopped\n"
	"\n"
	"thread 43 \"child\" [waiting: lock mutex 0x20 held by thread 45 \"w\""
	" of process 44]\n"
	"  [no stack: no stack was read]\n"
	"\n"
	"process 44 \"./other\", 2026-11-21 14:30:12 UTC\n"
	"2 threads, none stopped\n"
	"\n"
	"thread 44 \"other\" [running]\n"
	"  [no stack: no stack was read]\n"
	"\n"
	"thread 45 \"w\" [waiting: lock flock /x.lock held by"
	" process 42 \"parent\"]\n"
	"  [no stack: no stack was read]\n";

static void peers_are_a_line_each_unless_asked_for(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	make_peers(&d);
	for (int peers = 0; peers < 2; peers++) {
		char *text = text_with(&d, false, peers);
		size_t n = strlen(peers_head);

		assert_int_equal(strncmp(text, peers_head, n), 0);
		assert_string_equal(text + n, peers ? peers_full : peers_short);
		free(text);
	}
	wp_dump_clear(&d);
}

static void waits_for_many_processes_are_cut(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	add_process(&d, 42, "x");
	add_thread(&d, 42, "x", WP_STATE_WAITING, WP_WAIT_PIPE);
	add_thread(&d, 43, "y", WP_STATE_WAITING, WP_WAIT_LOCK);
	add_edge(&d, WP_EDGE_PIPE, 0, UINT32_MAX, 50, "pipe:[7]");
	/* They need not lie together. */
	add_edge(&d, WP_EDGE_FILE_LOCK, 1, UINT32_MAX, 60, "flock \x1b[1m");
	add_edge(&d, WP_EDGE_PIPE, 0, 1, 42, "pipe:[7]");
	assert_state(&d, 0,
		     "[waiting: pipe, waits for process 50 or thread 43"
		     " \"y\"]");
	assert_state(&d, 1,
		     "[waiting: lock flock \\x1b[1m held by"
		     " process 60]");
	for (int32_t pid = 51; pid < 55; pid++)
		add_edge(&d, WP_EDGE_PIPE, 0, UINT32_MAX, pid, "pipe:[7]");
	assert_state(&d, 0,
		     "[waiting: pipe, waits for process 50 or thread 43"
		     " \"y\" or process 51 or 3 more]");
	d.threads[1].wait = WP_WAIT_FILE;
	assert_state(&d, 1,
		     "[waiting: file, flock \\x1b[1m held by"
		     " process 60]");
	add_edge(&d, WP_EDGE_FILE_LOCK, 1, UINT32_MAX, 61, "flock \x1b[1m");
	assert_state(&d, 1,
		     "[waiting: file, flock \\x1b[1m held by"
		     " process 60 and process 61]");
	wp_dump_clear(&d);
}

static void roots_are_named_with_their_waits(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;
	struct wp_dump_thread *t;

	(void)state;
	add_process(&d, 4242, "s");
	t = add_thread(&d, 4250, "worker-7", WP_STATE_WAITING, WP_WAIT_SLEEP);
	t->times.waited_ns = 12 * S;
	add_frame(&d, "flush_log", "log.c", 88, "s");
	set_site(&d);
	add_thread(&d, 4251, "r", WP_STATE_RUNNING, WP_WAIT_NONE);
	add_root(&d, 0, 7);
	add_root(&d, 1, 2);
	assert_has(&d, "ROOT: 7 threads wait, directly or through others, for"
		       " thread 4250 \"worker-7\" [waiting: sleep, 12 s], at"
		       " flush_log log.c:88\n"
		       "ROOT: 2 threads wait, directly or through others, for"
		       " thread 4251 \"r\" [running]\n\nprocess 4242 ");
	add_process(&d, 99, "p")->is_peer = true;
	assert_has(&d, " for thread 4251 \"r\" of process 4242 [running]\n");
	wp_dump_clear(&d);
}

static void holders_are_told_as_far_as_they_are_known(void **state)
{
	static const struct {
		enum wp_lock_kind kind;
		enum wp_holder holder;
		int32_t owner;
		uint32_t readers;
		const char *type, *want;
	} rows[] = {
		{ WP_LOCK_RWLOCK_WRITE, WP_HOLDER_READERS, 0, 3, "",
		  "rwlock 0x10 for writing held by 3 readers (not recorded"
		  " who)" },
		{ WP_LOCK_RWLOCK_WRITE, WP_HOLDER_READERS, 0, 1, "",
		  "rwlock 0x10 for writing held by 1 reader (not recorded"
		  " who)" },
		{ WP_LOCK_RWLOCK_READ, WP_HOLDER_THREAD, 43, 0, "",
		  "rwlock 0x10 for reading held by thread 43 \"y\"" },
		{ WP_LOCK_FUTEX, WP_HOLDER_NOT_RECORDED, 0, 0, "",
		  "futex 0x10, holder not recorded" },
		{ WP_LOCK_MUTEX, WP_HOLDER_GONE, 4250, 0, "robust",
		  "robust mutex 0x10, held by thread 4250, which is in the"
		  " process no more (it ended, or a fork copied the lock)" },
		{ WP_LOCK_MUTEX, WP_HOLDER_GONE, 0, 0, "",
		  "mutex 0x10, held by a thread, which is in the process no"
		  " more (it ended, or a fork copied the lock)" },
		{ WP_LOCK_MUTEX, WP_HOLDER_THREAD, 77, 0, "PI",
		  "PI mutex 0x10 held by thread 77" },
		{ WP_LOCK_MUTEX, WP_HOLDER_NONE, 0, 0, NULL, "mutex 0x10" },
	};
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	add_process(&d, 42, "x");
	add_thread(&d, 42, "x", WP_STATE_WAITING, WP_WAIT_LOCK);
	add_thread(&d, 43, "y", WP_STATE_RUNNING, WP_WAIT_NONE);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char want[256];

		d.threads[0].lock = (struct wp_lock){
			.kind = rows[i].kind,
			.holder = rows[i].holder,
			.avma = 0x10,
			.owner_tid = rows[i].owner,
			.readers = rows[i].readers,
			.type = rows[i].type
		};
		snprintf(want, sizeof(want), "[waiting: lock %s]",
			 rows[i].want);
		assert_state(&d, 0, want);
	}
	wp_dump_clear(&d);
}

static void states_and_reasons_have_their_words(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;
	struct wp_dump_thread *t;

	(void)state;
	add_process(&d, 42, "x");
	t = add_thread(&d, 42, "x", WP_STATE_RUNNABLE, WP_WAIT_NONE);
	assert_state(&d, 0, "[runnable]");
	t->state = WP_STATE_STOPPED;
	assert_state(&d, 0, "[stopped]");
	t->state = WP_STATE_WAITING;
	assert_state(&d, 0, "[waiting]");
	t->wait = WP_WAIT_POLL;
	assert_state(&d, 0, "[waiting: poll]");
	t->wait = WP_WAIT_LOCK;
	assert_state(&d, 0, "[waiting: lock]");
	t->wait = WP_WAIT_SYSCALL;
	t->call.nr = SYS_membarrier;
	assert_state(&d, 0, "[waiting: syscall:membarrier]");
	t->call.nr = 99999;
	assert_state(&d, 0, "[waiting: syscall:syscall_99999]");
	/* A condvar's mutex is not what is waited for. */
	t->wait = WP_WAIT_CONDVAR;
	t->lock.kind = WP_LOCK_FUTEX;
	t->lock.avma = 0x30;
	assert_state(&d, 0, "[waiting: condvar]");
	t->wait = WP_WAIT_FUTEX;
	assert_state(&d, 0, "[waiting: futex 0x30]");
	t->wait = WP_WAIT_JOIN;
	assert_state(&d, 0, "[waiting: join]");
	t->lock.kind = WP_LOCK_JOIN;
	t->lock.owner_tid = 77;
	t->lock.holder = WP_HOLDER_GONE;
	assert_state(&d, 0,
		     "[waiting: join of thread 77, which is in the"
		     " process no more]");
	wp_dump_clear(&d);
}

static void times_are_short(void **state)
{
	static const struct {
		uint64_t ns;
		const char *want;
	} rows[] = {
		{ 0, "0 us" },
		{ 999999, "999 us" },
		{ 1000000, "1 ms" },
		{ 340 * S / 1000, "340 ms" },
		{ S - 1, "999 ms" },
		{ S, "1 s" },
		{ 3 * S / 2, "1.5 s" },
		{ 10 * S + S / 2, "10 s" },
		{ 120 * S - 1, "119 s" },
		{ 190 * S, "3 min" },
		{ 3600 * S, "1 h" },
		{ 7530 * S, "2 h 5 min" },
		{ 48 * 3600 * S, "2 d" },
		{ 76 * 3600 * S, "3 d 4 h" },
		{ UINT64_MAX - 1, "213503 d 23 h" },
	};
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	add_process(&d, 42, "x");
	add_thread(&d, 42, "x", WP_STATE_WAITING, WP_WAIT_POLL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char want[64];

		d.threads[0].times.waited_ns = rows[i].ns;
		snprintf(want, sizeof(want), "[waiting: poll, %s]",
			 rows[i].want);
		assert_state(&d, 0, want);
	}
	wp_dump_clear(&d);
}

static void two_looks_tell_who_did_not_run(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	add_process(&d, 42, "x")->nlost = 2;
	add_thread(&d, 42, "x", WP_STATE_WAITING, WP_WAIT_POLL);
	add_thread(&d, 43, "y", WP_STATE_WAITING, WP_WAIT_POLL);
	d.threads[0].times.still = true;
	d.threads[0].times.waited_ns = 190 * S;
	d.interval_ns = 2 * S;
	assert_has(&d, "\n2 threads, none stopped, 2 more came and went unread,"
		       " looked at twice, 2 s apart\n");
	d.processes[0].nunchosen = 9;
	assert_has(&d, " unread, 9 not chosen by -t, looked at twice");
	assert_state(&d, 0, "[waiting: poll, 3 min, still for 2 s]");
	assert_state(&d, 1, "[waiting: poll]");
	wp_dump_clear(&d);
}

static void frames_say_what_they_are(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	add_process(&d, 42, "x");
	add_thread(&d, 42, "x", WP_STATE_WAITING, WP_WAIT_POLL);
	add_frame(&d, "do_poll", "", 0, "")->kernel = true;
	add_frame(&d, "poll", "", 0, "libc.so.6");
	add_frame(&d, "tiny", "a/t.h", 4, "x")->inlined = true;
	add_frame(&d, "libq.so.1+0x12", "", 0, "libq.so.1")->guessed = true;
	add_frame(&d, "", "", 0, "")->pc_avma = 0xbeef;
	d.threads[0].stack.end = WP_END_NO_INFO;
	d.threads[0].stack.end_module = add_text(&d, "libq.so.1");
	assert_has(&d, "thread 42 \"x\" [waiting: poll]\n"
		       "  #0  do_poll [kernel]\n"
		       "  #1  poll  libc.so.6\n"
		       "  #2  tiny t.h:4  x [inlined]\n"
		       "  #3  libq.so.1+0x12 [guessed]\n"
		       "  #4  0xbeef\n"
		       "  [truncated: no unwind info in libq.so.1]\n");
	d.threads[0].stack.nframes = 0;
	d.threads[0].stack.end = WP_END_UNREADABLE;
	d.threads[0].stack.end_module = 0;
	assert_has(&d, "\n  [no stack: memory not readable]\n");
	wp_dump_clear(&d);
}

static void a_site_without_a_file_has_its_module(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	add_process(&d, 42, "x");
	add_thread(&d, 42, "x", WP_STATE_WAITING, WP_WAIT_POLL);
	for (int i = 0; i < 11; i++)
		add_frame(&d, "work", "", 0, "libq.so.1");
	set_site(&d);
	assert_state(&d, 0, "[waiting: poll], at work libq.so.1");
	assert_has(&d, "\n  #9  work  libq.so.1\n  #10 work  libq.so.1\n");
	wp_dump_clear(&d);
}

static void names_of_the_target_are_harmless(void **state)
{
	static const char evil[] = "a\" [running]\n\x1b[2J\xff\\";
	struct wp_dump d = WP_DUMP_INIT;
	struct wp_dump_thread *t;
	char *text;

	(void)state;
	add_process(&d, 42, evil)->user = add_text(&d, evil);
	t = add_thread(&d, 42, evil, WP_STATE_WAITING, WP_WAIT_SYSCALL);
	t->call.text = t->stack.end_module = add_text(&d, evil);
	t->stack.end = WP_END_BAD_INFO;
	add_frame(&d, evil, evil, 1, evil);
	set_site(&d);
	add_edge(&d, WP_EDGE_SOCKET, 0, 0, 42, evil);
	add_cycle(&d, 0, 1);
	add_process(&d, 50, "")->error = add_text(&d, evil);
	add_process(&d, 51, "")->is_peer = true;
	add_thread(&d, 51, evil, WP_STATE_RUNNING, WP_WAIT_NONE);
	assert_has(&d, "\nthread 42 \"a\\\" [running]\\x0a\\x1b[2J\\xff\\\\\""
		       " [waiting: syscall:,"
		       " waits for itself], at a\" [running]");
	assert_has(&d, "process 50: could not be looked at: a\" [running]"
		       "\\x0a\\x1b[2J\\xff\\\n");
	for (int group = 0; group < 2; group++) {
		text = text_with(&d, group, true);
		for (const char *p = text; *p; p++)
			assert_true(*p == '\n' || (*p >= 0x20 && *p < 0x7f));
		free(text);
	}
	wp_dump_clear(&d);
}

static void a_process_that_could_not_be_seen_says_why(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	add_process(&d, 42, "x")->error = add_text(&d, "not permitted");
	assert_text(&d, false,
		    "process 42: could not be looked at:"
		    " not permitted\n");
	/* Where a wait led to it, too. */
	d.processes[0].is_peer = true;
	assert_text(&d, true,
		    "process 42: could not be looked at:"
		    " not permitted\n");
	wp_dump_clear(&d);
	assert_text(&d, false, "");
}

/* Twelve workers and a pair in order of their numbers, and one alone. */
static void make_pool(struct wp_dump *d)
{
	struct wp_dump_thread *t;

	add_process(d, 99, "pool");
	t = add_thread(d, 99, "main", WP_STATE_WAITING, WP_WAIT_POLL);
	t->times.cpu = 0;
	add_frame(d, "main", "pool.c", 90, "pool");
	for (int i = 0; i < 14; i++) {
		char name[16];

		snprintf(name, sizeof(name), "w-%d", i);
		t = add_thread(d, 100 + i, name, WP_STATE_WAITING,
			       WP_WAIT_CONDVAR);
		t->times.waited_ns = (uint64_t)(3 + i) * S;
		t->times.still = i & 1;
		t->times.cpu = i;
		add_frame(d, "wait_for_work", "pool.c", 41, "pool");
		set_site(d);
		if (i == 4 || i == 7)
			t->lock.avma = 0x10;
	}
}

static const char pool_text[] =
	"process 99 \"pool\", 2026-11-21 14:30:12 UTC\n"
	"15 threads, none stopped, looked at twice, 1 s apart\n"
	"\n"
	"12 threads [waiting: condvar, 3 s to 16 s, 6 of 12 still for 1 s]"
	" at wait_for_work pool.c:41: 100 \"w-0\", 101 \"w-1\", 102 \"w-2\","
	" 103 \"w-3\", 105 \"w-5\", 106 \"w-6\", 108 \"w-8\", 109 \"w-9\""
	" and 4 more\n"
	"  #0  wait_for_work pool.c:41  pool\n"
	"\n"
	"2 threads [waiting: condvar, 7 s to 10 s, 1 of 2 still for 1 s]"
	" at wait_for_work pool.c:41: 104 \"w-4\", 107 \"w-7\"\n"
	"  #0  wait_for_work pool.c:41  pool\n"
	"\n"
	"thread 99 \"main\" [waiting: poll] cpu 0\n"
	"  #0  main pool.c:90  pool\n";

static void equal_stacks_are_printed_once(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;

	(void)state;
	make_pool(&d);
	d.interval_ns = S;
	assert_text(&d, true, pool_text);
	/* The same time in words, and all of them still. */
	for (uint32_t i = 1; i < d.nthreads; i++) {
		d.threads[i].times.waited_ns = (180 + i) * S;
		d.threads[i].times.still = true;
	}
	d.threads[3].times.waited_ns = UINT64_MAX;
	{
		char *text = text_with(&d, true, false);

		assert_non_null(strstr(text, "\n12 threads [waiting: condvar,"
					     " 3 min, still for 1 s] at "));
		free(text);
	}
	wp_dump_clear(&d);
}

static void groups_differ_in_any_part_of_the_wait(void **state)
{
	struct wp_dump d = WP_DUMP_INIT;
	struct wp_dump_thread *t;
	uint32_t n = 10;
	char *text;

	(void)state;
	add_process(&d, 1, "x");
	for (uint32_t i = 0; i < n; i++) {
		add_thread(&d, 1 + (int32_t)i, "x", WP_STATE_WAITING,
			   WP_WAIT_SYSCALL);
		add_frame(&d, "f", "", 0, "x");
		add_frame(&d, "g", "", 0, "x");
	}
	t = d.threads;
	/* The first two are alike. */
	t[1].name = add_text(&d, "other");
	t[2].call.nr = SYS_bpf;
	t[3].state = WP_STATE_STOPPED;
	t[4].wait = WP_WAIT_POLL;
	t[5].stack.nframes = 1;
	d.frames[t[6].stack.first_frame].pc_avma++;
	d.frames[t[7].stack.first_frame + 1].function = add_text(&d, "h");
	t[8].stack.end = WP_END_DEPTH_LIMIT;
	t[9].lock.owner_tid = 3;
	text = text_with(&d, true, false);
	assert_non_null(strstr(text, "\n2 threads [waiting: syscall:]:"
				     " 1 \"x\", 2 \"other\"\n"));
	for (uint32_t i = 2; i < n; i++) {
		char want[32];

		snprintf(want, sizeof(want), "\nthread %d ", t[i].tid);
		assert_non_null(strstr(text, want));
	}
	free(text);
	wp_dump_clear(&d);
}

static void a_full_device_is_told(void **state)
{
	struct wp_write_dump_options options = { 0 };
	struct wp_dump d = WP_DUMP_INIT;
	FILE *f = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(f);
	make_deadlock(&d);
	assert_int_equal(wp_write_dump_text(&d, &options, f), -ENOSPC);
	fclose(f);
	wp_dump_clear(&d);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Half of N threads wait for one lock, the others wait in stacks of their own
 * for a process each. */
static void make_large(struct wp_dump *d, uint32_t n)
{
	struct wp_dump_thread *t;

	add_process(d, 1, "x");
	for (uint32_t i = 0; i < n; i++) {
		t = add_thread(d, (int32_t)(n - i), "worker", WP_STATE_WAITING,
			       WP_WAIT_LOCK);
		set_mutex(t, 0x10, (int32_t)n / 2);
		for (uint32_t k = 0; k < 20; k++)
			add_frame(d, "frame_of_a_pool", "/src/pool.c", k,
				  "pool");
		set_site(d);
		if (i & 1)
			d->frames[d->nframes - 1].pc_avma = i;
		if (i & 1)
			add_edge(d, WP_EDGE_PIPE, i, UINT32_MAX, (int32_t)i,
				 "pipe");
	}
}

/* Quadratic work over so many would be minutes under a sanitizer: the times are
 * printed for people, the bound is far from both. */
static void many_threads_are_no_matter(void **state)
{
	struct wp_write_dump_options options = { 0 };
	struct wp_dump d = WP_DUMP_INIT;
	uint32_t n = 20000;
	double begin;

	(void)state;
	make_large(&d, n);
	for (int group = 0; group < 2; group++) {
		FILE *f = fopen("/dev/null", "w");

		assert_non_null(f);
		options.group = group;
		begin = seconds();
		assert_int_equal(wp_write_dump_text(&d, &options, f), 0);
		print_message("%u threads%s: %.0f ms\n", n,
			      group ? " in groups" : "",
			      (seconds() - begin) * 1e3);
		assert_true(seconds() - begin < 20);
		fclose(f);
	}
	wp_dump_clear(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_deadlock_comes_first_and_the_main_thread_after),
		cmocka_unit_test(a_thread_may_wait_for_itself),
		cmocka_unit_test(a_lock_has_the_name_of_its_variable),
		cmocka_unit_test(a_process_may_wait_for_itself),
		cmocka_unit_test(peers_are_a_line_each_unless_asked_for),
		cmocka_unit_test(waits_for_many_processes_are_cut),
		cmocka_unit_test(roots_are_named_with_their_waits),
		cmocka_unit_test(holders_are_told_as_far_as_they_are_known),
		cmocka_unit_test(states_and_reasons_have_their_words),
		cmocka_unit_test(times_are_short),
		cmocka_unit_test(two_looks_tell_who_did_not_run),
		cmocka_unit_test(frames_say_what_they_are),
		cmocka_unit_test(a_site_without_a_file_has_its_module),
		cmocka_unit_test(names_of_the_target_are_harmless),
		cmocka_unit_test(a_process_that_could_not_be_seen_says_why),
		cmocka_unit_test(equal_stacks_are_printed_once),
		cmocka_unit_test(groups_differ_in_any_part_of_the_wait),
		cmocka_unit_test(a_full_device_is_told),
		cmocka_unit_test(many_threads_are_no_matter),
	};

	return cmocka_run_group_tests_name("dump_text", tests, NULL, NULL);
}
