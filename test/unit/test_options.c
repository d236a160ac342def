/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: cmd.  src/options.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "../../src/cmd/options.h"

enum { ARGS_MAX = 12 };

#define TEN(n)                                                                 \
	n "0," n "1," n "2," n "3," n "4," n "5," n "6," n "7," n "8," n "9,"
#define TEN_HANGS                                                              \
	"idle=1s,idle=1s,idle=1s,idle=1s,idle=1s,idle=1s,idle=1s,idle=1s,"     \
	"idle=1s,idle=1"

/* Parse a command line of words parted by blanks. */
static int parse(struct wp_options *o, const char *line, struct wp_err *err)
{
	static char text[256];
	static char *argv[ARGS_MAX + 1];
	int argc = 0;
	char *save, *word;

	assert_true(strlen(line) < sizeof(text));
	memcpy(text, line, strlen(line) + 1);
	for (word = strtok_r(text, " ", &save); word;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	argv[argc] = NULL;
	/* getopt keeps where it was; 0 makes glibc begin anew. */
	optind = 0;
	return wp_options_parse(o, argc, argv, err);
}

static void defaults_record_until_the_end_as_text(void **state)
{
	struct wp_options o;

	(void)state;
	assert_int_equal(parse(&o, "wallprof -p 42", NULL), 0);
	assert_int_equal(o.pid, 42);
	assert_null(o.command);
	assert_int_equal(o.duration_ns, 0);
	assert_int_equal(o.format, WP_FORMAT_TEXT);
	assert_int_equal(o.sampler.interval_ns, 10000000);
	assert_int_equal(o.sampler.stop, WP_STOP_AUTO);
	assert_int_equal(o.sampler.max_depth, 512);
	assert_true(o.sampler.max_stopped > 0.0099 &&
		    o.sampler.max_stopped < 0.0101);
}

static void processes_are_chosen_by_name_group_or_all(void **state)
{
	struct wp_options o;

	(void)state;
	assert_int_equal(parse(&o, "w --name a* --name b --cgroup /x", NULL),
			 0);
	assert_string_equal(o.globs[0], "a*");
	assert_string_equal(o.globs[1], "b");
	assert_null(o.globs[2]);
	assert_string_equal(o.cgroups[0], "/x");
	assert_false(o.all);
	assert_true(o.sampler.many);
	assert_int_equal(parse(&o, "w --all -- ls", NULL), 0);
	assert_true(o.all && o.sampler.many && o.command);
	/* Always on: it must not cost much. */
	assert_true(o.sampler.max_cpu == 0.05);
	assert_int_equal(parse(&o, "w --all --max-cpu 0", NULL), 0);
	assert_true(o.sampler.max_cpu == 0);
	assert_int_equal(parse(&o, "w dump --tree 5 -p 6,7", NULL), 0);
	assert_int_equal(o.npids, 3);
	assert_true(o.tree);
	/* The sampler has one process at a time. */
	assert_false(o.sampler.many);
	assert_int_equal(parse(&o, "w check --name x", NULL), 0);
	assert_int_equal(parse(&o, "w -p 5 --max-cpu 2.5%", NULL), 0);
	assert_true(o.sampler.max_cpu == 0.025);
	assert_int_equal(parse(&o, "w -p 5", NULL), 0);
	assert_false(o.sampler.many);
	assert_true(o.sampler.max_cpu == 0);
}

static void units_are_understood(void **state)
{
	static const struct {
		const char *line;
		uint64_t duration_ns;
		uint64_t interval_ns;
	} rows[] = {
		{ "w -p 1 -d 30", 30000000000, 10000000 },
		{ "w -p 1 -d 30s", 30000000000, 10000000 },
		{ "w -p 1 -d 1.5", 1500000000, 10000000 },
		{ "w -p 1 -d 5m", 300000000000, 10000000 },
		{ "w -p 1 -d 1h", 3600000000000, 10000000 },
		{ "w -p 1 -d 250ms", 250000000, 10000000 },
		{ "w -p 1 -d 0", 0, 10000000 },
		{ "w -p 1 -d 0.0e5", 0, 10000000 },
		{ "w -p 1 -d .5", 500000000, 10000000 },
		{ "w -p 1 -d .5ms", 500000, 10000000 },
		{ "w -p 1 -d 1e2", 100000000000, 10000000 },
		{ "w -p 1 -d 1d", 86400000000000, 10000000 },
		/* 0 would be "no limit". */
		{ "w -p 1 -d 1e-10", 1, 10000000 },
		{ "w -p 1 -d 1e-400", 1, 10000000 },
		{ "w -p 1 -d 0.00000000000000000000001ns", 1, 10000000 },
		{ "w -p 1 -r 1000", 0, 1000000 },
		{ "w -p 1 -F 99", 0, 10101010 },
		{ "w -p 1 -r 1", 0, 1000000000 },
		{ "w -p 1 -r 250Hz", 0, 4000000 },
		{ "w -p 1 -i 20ms", 0, 20000000 },
		{ "w -p 1 -i 20ms -r 500", 0, 2000000 },
		{ "w -p 1 -r 500 -i 20ms", 0, 20000000 },
		{ "w -p 1 --interval 2500us", 0, 2500000 },
		{ "w -p 1 -i 1s", 0, 1000000000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_options o;

		assert_int_equal(parse(&o, rows[i].line, NULL), 0);
		assert_int_equal(o.duration_ns, rows[i].duration_ns);
		assert_int_equal(o.sampler.interval_ns, rows[i].interval_ns);
	}
}

static void no_share_but_0_lifts_the_limit(void **state)
{
	static const char *const tiny[] = { "1e-9%", "1e-320", "1e-400%",
					    ".0001" };
	struct wp_options o;

	(void)state;
	for (size_t i = 0; i < sizeof(tiny) / sizeof(*tiny); i++) {
		char line[64];

		snprintf(line, sizeof(line), "w -p 1 --max-stopped %s",
			 tiny[i]);
		assert_int_equal(parse(&o, line, NULL), 0);
		assert_true(o.sampler.max_stopped > 0);
	}
	assert_int_equal(parse(&o, "w -p 1 --max-stopped 0e5", NULL), 0);
	assert_true(o.sampler.max_stopped == 0);
}

static void the_ending_names_the_format(void **state)
{
	static const struct {
		const char *line;
		enum wp_format format;
	} rows[] = {
		{ "w -p 1 -o x.pb.gz", WP_FORMAT_PPROF },
		{ "w -p 1 -o a/b.pprof", WP_FORMAT_PPROF },
		{ "w -p 1 -o x.folded", WP_FORMAT_FOLDED },
		{ "w -p 1 -o x.txt", WP_FORMAT_TEXT },
		{ "w -p 1 -o x.html", WP_FORMAT_HTML },
		{ "w -p 1 -o x.speedscope.json", WP_FORMAT_SPEEDSCOPE },
		{ "w -p 1 -o x.firefox.json", WP_FORMAT_FIREFOX },
		{ "w -p 1 -o x.svg", WP_FORMAT_SVG },
		{ "w --threads -p 1 -o x.html", WP_FORMAT_HTML },
		{ "w -p 1 -o x -f folded", WP_FORMAT_FOLDED },
		{ "w -p 1 -o x.txt -f pprof", WP_FORMAT_PPROF },
		{ "w -p 1 -o /dev/full", WP_FORMAT_PPROF },
		{ "w --threads -p 1 -o /dev/full", WP_FORMAT_TEXT },
		{ "w --threads -p 1 -o x.json", WP_FORMAT_JSON },
		{ "w --threads -p 1 -o x.pb.gz", WP_FORMAT_PPROF },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_options o;

		assert_int_equal(parse(&o, rows[i].line, NULL), 0);
		assert_int_equal(o.format, rows[i].format);
	}
}

#define BIT(kind) (1u << WP_PROFILE_##kind)

static void profiles_come_in_any_order(void **state)
{
	static const struct {
		const char *line;
		unsigned int kinds;
		bool wall, cpu, block, mutex, thread_starts;
	} rows[] = {
		{ "w -p 1", BIT(WALL), .wall = true, .cpu = true },
		{ "w -p 1 --profile wall", BIT(WALL), .wall = true },
		{ "w -p 1 --profile cpu", BIT(WALL), .cpu = true },
		{ "w -p 1 --profile cpu,wall", BIT(WALL), .wall = true,
		  .cpu = true },
		{ "w -p 1 --profile=block", BIT(BLOCK), .block = true },
		{ "w -p 1 --profile mutex,block", BIT(BLOCK) | BIT(MUTEX),
		  .block = true, .mutex = true },
		{ "w -p 1 --profile threadcreate", BIT(THREADCREATE),
		  .thread_starts = true },
		{ "w -p 1 --profile threadcreate,mutex,block,cpu,wall",
		  BIT(WALL) | BIT(BLOCK) | BIT(MUTEX) | BIT(THREADCREATE), true,
		  true, true, true, true },
		{ "w -p 1 --profile block,block", BIT(BLOCK), .block = true },
		/* The last one counts. */
		{ "w -p 1 --profile block --profile cpu", BIT(WALL),
		  .cpu = true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_options o;

		assert_int_equal(parse(&o, rows[i].line, NULL), 0);
		assert_int_equal(o.kinds, rows[i].kinds);
		assert_int_equal(o.sampler.wall, rows[i].wall);
		assert_int_equal(o.sampler.cpu, rows[i].cpu);
		assert_int_equal(o.sampler.block, rows[i].block);
		assert_int_equal(o.sampler.mutex, rows[i].mutex);
		assert_int_equal(o.sampler.thread_starts,
				 rows[i].thread_starts);
	}
}

static void goroutines_are_a_profile_of_a_dump(void **state)
{
	static const char *const bad[] = {
		"w -p 1 --profile goroutine",
		"w -p 1 --profile wall,goroutine",
		"w --threads -p 1 --profile wall",
		"w --threads -p 1 --profile wall,goroutine",
		"w --threads -p 1 --profile goroutine -f json",
		"w --threads -p 1 --profile goroutine",
		"w --check -p 1 --profile goroutine",
	};
	struct wp_options o;

	(void)state;
	assert_int_equal(parse(&o,
			       "w --threads -p 1 --profile goroutine -f folded",
			       NULL),
			 -EINVAL);
	assert_int_equal(
		parse(&o, "w --threads -p 1 --profile goroutine -o g.pb.gz",
		      NULL),
		0);
	assert_int_equal(o.kinds, BIT(GOROUTINE));
	assert_int_equal(o.action, WP_ACTION_DUMP);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(parse(&o, bad[i], NULL), -EINVAL);
}

static void block_rates_are_shares_or_times(void **state)
{
	static const struct {
		const char *line;
		uint32_t every;
		uint64_t ns;
	} rows[] = {
		{ "w -p 1 --profile block", 0, 0 },
		{ "w -p 1 --profile block --block-rate 1/100", 100, 0 },
		{ "w -p 1 --profile block --block-rate 1/1", 1, 0 },
		{ "w -p 1 --block-rate 1/7 --profile wall,block", 7, 0 },
		{ "w -p 1 --profile block --block-rate 10us", 0, 10000 },
		{ "w -p 1 --profile block --block-rate 1ms", 0, 1000000 },
		{ "w -p 1 --profile block --block-rate 1", 0, 1 },
		{ "w -p 1 --profile block --block-rate 1h", 0,
		  UINT64_C(3600000000000) },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_options o;

		assert_int_equal(parse(&o, rows[i].line, NULL), 0);
		assert_int_equal(o.sampler.block_rate.every, rows[i].every);
		assert_int_equal(o.sampler.block_rate.ns, rows[i].ns);
	}
}

static void a_command_keeps_its_own_options(void **state)
{
	struct wp_options o;

	(void)state;
	assert_int_equal(parse(&o, "w -d 3 -- ls -l -p 7", NULL), 0);
	assert_int_equal(o.pid, 0);
	assert_string_equal(o.command[0], "ls");
	assert_string_equal(o.command[2], "-p");
	assert_int_equal(o.duration_ns, 3000000000);
}

static void a_dump_has_options_of_its_own(void **state)
{
	static const char *const dumps[] = {
		"w --threads -p 7",	 "w --threads dump -p 7",
		"w -p 7 --threads",	 "w --threads=dump -p 7",
		"w -p 7 --threads dump",
	};
	struct wp_options o;

	(void)state;
	for (size_t i = 0; i < sizeof(dumps) / sizeof(*dumps); i++) {
		assert_int_equal(parse(&o, dumps[i], NULL), 0);
		assert_int_equal(o.action, WP_ACTION_DUMP);
		assert_int_equal(o.pid, 7);
		assert_int_equal(o.sampler.stop, WP_STOP_ALL);
	}
	assert_int_equal(parse(&o, "w --threads -p 7 --stop=never", NULL), 0);
	assert_int_equal(o.sampler.stop, WP_STOP_NEVER);
	assert_int_equal(parse(&o, "w --check -p 7", NULL), 0);
	assert_int_equal(o.action, WP_ACTION_CHECK);
	assert_int_equal(o.look_interval_ns, 2000000000);
	assert_int_equal(parse(&o, "w -i 500ms --check -p 7", NULL), 0);
	assert_int_equal(o.look_interval_ns, 500000000);
	assert_int_equal(parse(&o, "w --check -i 5 -p 7", NULL), 0);
	assert_int_equal(o.look_interval_ns, 5000000000);
	assert_int_equal(parse(&o, "w --timeout 5m -- ls -p", NULL), 0);
	assert_int_equal(o.action, WP_ACTION_RUN);
	assert_int_equal(o.timeout_ns, 300000000000);
	assert_int_equal(o.kill_after_ns, 5000000000);
	assert_false(o.exit_on_deadlock);
	assert_string_equal(o.command[1], "-p");
	assert_int_equal(
		parse(&o, "w --timeout 5 --on-deadlock exit -- ls", NULL), 0);
	assert_true(o.exit_on_deadlock);
}

static void words_name_commands_and_processes(void **state)
{
	static const struct {
		const char *line;
		enum wp_action action;
		pid_t pid;
		const char *name, *command;
	} rows[] = {
		{ "w 7", WP_ACTION_RECORD, .pid = 7 },
		{ "w record 7", WP_ACTION_RECORD, .pid = 7 },
		{ "w redis-server", WP_ACTION_RECORD, .name = "redis-server" },
		{ "w -d 5 redis-server -o x.html", WP_ACTION_RECORD,
		  .name = "redis-server" },
		{ "w record dump", WP_ACTION_RECORD, .name = "dump" },
		{ "w record -- ls", WP_ACTION_RECORD, .command = "ls" },
		{ "w dump 7", WP_ACTION_DUMP, .pid = 7 },
		{ "w dump -p 7", WP_ACTION_DUMP, .pid = 7 },
		{ "w -q dump x --group", WP_ACTION_DUMP, .name = "x" },
		{ "w x --threads", WP_ACTION_DUMP, .name = "x" },
		{ "w dump --threads 7", WP_ACTION_DUMP, .pid = 7 },
		{ "w check 7 -i 1s", WP_ACTION_CHECK, .pid = 7 },
		{ "w run 60 ls -l", WP_ACTION_RUN, .command = "ls" },
		{ "w run 60 -- ls -l", WP_ACTION_RUN, .command = "ls" },
		{ "w run --timeout 60 ls -l", WP_ACTION_RUN, .command = "ls" },
		{ "w run --timeout 60 -- 5", WP_ACTION_RUN, .command = "5" },
		{ "w --timeout 60 ls", WP_ACTION_RUN, .command = "ls" },
	};
	struct wp_options o;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(parse(&o, rows[i].line, NULL), 0);
		assert_int_equal(o.action, rows[i].action);
		assert_int_equal(o.pid, rows[i].pid);
		assert_int_equal(!!o.name, !!rows[i].name);
		if (rows[i].name)
			assert_string_equal(o.name, rows[i].name);
		assert_int_equal(!!o.command, !!rows[i].command);
		if (rows[i].command)
			assert_string_equal(o.command[0], rows[i].command);
		if (o.action == WP_ACTION_RUN)
			assert_int_equal(o.timeout_ns, 60000000000);
	}
	assert_int_equal(parse(&o, "w run ls -l", NULL), 0);
	assert_int_equal(o.timeout_ns, 0);
	assert_string_equal(o.command[1], "-l");
}

static void saved_files_are_read_by_words(void **state)
{
	struct wp_options o;

	(void)state;
	assert_int_equal(parse(&o, "w report a.pb.gz -o b.html", NULL), 0);
	assert_int_equal(o.action, WP_ACTION_REPORT);
	assert_int_equal(o.format, WP_FORMAT_HTML);
	assert_int_equal(o.nfiles, 1);
	assert_string_equal(o.files[0], "a.pb.gz");
	assert_int_equal(parse(&o, "w diff a --full -- -b", NULL), 0);
	assert_int_equal(o.action, WP_ACTION_DIFF);
	assert_true(o.full);
	assert_string_equal(o.files[1], "-b");
}

static void help_is_of_a_command_if_one_is_named(void **state)
{
	struct wp_options o;

	(void)state;
	assert_int_equal(parse(&o, "w", NULL), 0);
	assert_int_equal(o.ask, WP_ASK_NOTHING);
	assert_int_equal(parse(&o, "w -V", NULL), 0);
	assert_int_equal(o.ask, WP_ASK_VERSION);
	assert_int_equal(parse(&o, "w --help", NULL), 0);
	assert_int_equal(o.ask, WP_ASK_HELP);
	assert_false(o.action_given);
	assert_int_equal(parse(&o, "w help check", NULL), 0);
	assert_int_equal(o.ask, WP_ASK_HELP);
	assert_true(o.action_given);
	assert_int_equal(o.action, WP_ACTION_CHECK);
}

static void thread_globs_add_up(void **state)
{
	struct wp_options o;

	(void)state;
	assert_int_equal(parse(&o, "w 1 -t a* -t !b", NULL), 0);
	assert_string_equal(o.sampler.thread_globs[0], "a*");
	assert_string_equal(o.sampler.thread_globs[1], "!b");
	assert_null(o.sampler.thread_globs[2]);
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *line;
		const char *says;
	} rows[] = {
		{ "w -q", "nothing to record" },
		{ "w -p abc", "process id" },
		{ "w -p -5", "process id" },
		{ "w -p 0", "process id" },
		{ "w -p 99999999999", "process id" },
		{ "w -p 1x", "process id" },
		{ "w -p", "wants an argument" },
		{ "w -p 1 -d", "wants an argument" },
		{ "w -p 1 -d soon", "-d wants" },
		{ "w -p 1 -d 5parsecs", "-d wants" },
		{ "w -p 1 -d inf", "-d wants" },
		{ "w -p 1 -r 0", "1 to 1000" },
		{ "w -p 1 -r 1001", "1 to 1000" },
		{ "w -p 1 -i 10", "unit" },
		{ "w -p 1 -i 10us", "1ms to" },
		{ "w -p 1 -i 2s", "1ms to" },
		{ "w -p 1 -f bmp", "firefox, svg, json or go" },
		{ "w -p 1 -o x.bmp", "-f" },
		{ "w leaks 1 -o x.firefox.json", "a heap profile is of bytes" },
		{ "w -p 1 --profile wall,heap -f firefox",
		  "a heap profile is of bytes" },
		{ "w -p 1 --profile threadcreate -f firefox",
		  "threadcreate counts threads" },
		{ "w dump 1 -o x.firefox.json", "a dump counts threads" },
		{ "w -p 1 --stop=sometimes", "auto, all or never" },
		{ "w -p 1 --max-stopped 101", "0 to 100" },
		{ "w -p 1 --max-depth 0", "1 to" },
		{ "w -p 1 --nonsense", "no option --nonsense" },
		{ "w -p 1 --durration 5", "did you mean --duration?" },
		{ "w -p 1 --ouput=x",
		  "no option --ouput: did you mean --output?" },
		{ "w dump --gruop 1", "did you mean --group?" },
		{ "w -p 1 --quiet=5", "--quiet takes no argument" },
		{ "w -p 1 -Z", "no option -Z" },
		{ "w -p 1 ls", "goes after --" },
		{ "w sleep 1", "wallprof -- sleep 1" },
		{ "w sleep 1 -d 5", "wallprof -- sleep 1 -d 5" },
		{ "w -d 5 sleep 1", "wallprof -- sleep 1" },
		{ "w 42 43", "or several by -p A,B (a command" },
		{ "w dump 42 43", "one process at a time, or several" },
		{ "w top 42 43", "one process at a time" },
		{ "w --tree nginx", "--tree wants a process id" },
		{ "w redis --tree 5", "give the PID of the first" },
		{ "w run 30 --timeout 60 ls", "given twice" },
		{ "w leaks 1 -k", "not for leaks" },
		{ "w dump 1 --group -f json", "is of text" },
		{ "w dump 1 --follow-processes -o x.pb.gz", "text and json" },
		{ "w -p 1 --timeline", "pprof file of a wall profile" },
		{ "w -p 1 --timeline --profile heap -o x.pb.gz",
		  "pprof file of a wall profile" },
		{ "w -p 1 -o x.pb.gz --timeline-size 1G", "goes with" },
		{ "w -p 1 --profile wake --block-rate 10us", "1/N" },
		{ "w dump -p 42 -p 43 -o x.pb.gz", "is text or json" },
		{ "w top 42,43", "top looks at one process at a time" },
		{ "w -p 42,", "-p wants a process id" },
		{ "w -p ,42", "-p wants a process id" },
		{ "w -p 42,,43", "-p wants a process id" },
		{ "w -p 42,x", "-p wants a process id" },
		{ "w dump --children 42",
		  "--children is for record, serve and leaks" },
		{ "w --all --max-cpu half", "--max-cpu wants percent" },
		{ "w --all --profile heap", "not of all processes" },
		{ "w serve --push http://me:secret@host x", "--push-auth" },
		/* 127 bytes end within a word, and the rest is not what was said. */
		{ "w serve --hang-when " TEN_HANGS "," TEN_HANGS "s x",
		  "is too long" },
		{ "w serve -p " TEN("1") TEN("2") TEN("3") TEN("4") TEN("5")
			  TEN("6") TEN("7") "8",
		  "serve records 64 processes at most" },
		{ "w serve --push-auth file x", "--push-auth wants --push" },
		{ "w serve --push-interval 5s x",
		  "--push-interval wants --push" },
		{ "w serve --on-hang d --hang-when idle=0 x",
		  "of more than 0" },
		{ "w serve --on-hang d --hang-when runnable=0s x",
		  "of more than 0" },
		{ "w 42 --goroutine-ids -t x",
		  "--goroutine-ids goes with a wall profile" },
		{ "w serve --push http://h --push-interval 11m x",
		  "sends 660 s at once, of which --keep has the last 600 s" },
		{ "w serve --push http://h --keep 10s x", "a longer --keep" },
		{ "w top --all 42",
		  "--all is for record, dump, check and serve" },
		{ "w leaks 1 --profile wall,block",
		  "--profile is for record and dump, not for leaks" },
		{ "w leaks 1 -r 10", "-r is for record, top and serve" },
		{ "w serve x -o y.html", "-o is for" },
		{ "w serve x -f text", "-f is for" },
		{ "w run --cgroup x ls",
		  "--cgroup is for record, dump, check, serve and leaks" },
		{ "w dmup 42", "did you mean dump?" },
		{ "w dump redis nginx", "one process at a time" },
		{ "w -p 1 -- ls", "not both" },
		{ "w --threads", "give its PID" },
		{ "w --threads -- ls", "give its PID" },
		{ "w --threads=all -p 1", "dump" },
		{ "w --threads stop -p 1", "goes after --" },
		{ "w --threads --check -p 1",
		  "--threads and --check: give one" },
		{ "w dump --check 1", "dump and --check: give one" },
		{ "w --threads -p 1 -d 3",
		  "-d is for record, top and leaks, not for dump" },
		{ "w --threads -p 1 -i 2s", "-i is for" },
		{ "w --check", "give its PID" },
		{ "w --check -p 1 -i 10ms", "50ms" },
		{ "w --check -p 1 -t x", "-t is for" },
		{ "w --timeout 5 -p 1", "is for dump and check" },
		{ "w --timeout 5", "wants a command" },
		{ "w --timeout soon -- ls", "--timeout wants" },
		{ "w --timeout 5 --kill-after x -- ls", "--kill-after wants" },
		{ "w --timeout 5 --on-deadlock=x -- ls", "exit or wait" },
		{ "w --timeout 5 -f pprof -- ls", "text or json" },
		{ "w --check -p 1 -o x.html", "text or json" },
		{ "w -p 1 --timeline-size 0", "such as 64M" },
		{ "w -p 1 --timeline-size 5T", "such as 64M" },
		{ "w -p 1 --timeline-size 5Mx", "such as 64M" },
		{ "w -p 1 --timeline-size 99999999999999G", "such as 64M" },
		{ "w -p 1 --group",
		  "--group is for dump, check and run, not for record" },
		{ "w -p 1 -f json", "json is for" },
		{ "w -p 1 --profile goroutine", "goroutine" },
		{ "w -p 1 --heap-rate 64K", "goes with --profile heap" },
		{ "w -p 1 --heap-anyway", "goes with --profile heap" },
		{ "w -p 1 --heap-large", "goes with --profile heap" },
		{ "w -p 1 --heap-census", "goes with --profile heap" },
		{ "w -p 1 --profile heap --heap-census --heap-large",
		  "leave out --heap-large" },
		{ "w leaks 1 --heap-census --heap-rate 64K",
		  "leave out --heap-rate" },
		{ "w --profile heap --heap-census -- ls",
		  "of a process that runs" },
		{ "w -p 1 --profile heap --heap-rate 0", "such as 64M" },
		{ "w -p 1 --profile heap --heap-large=0", "such as 64M" },
		{ "w -p 1 --profile heap --max-overhead 101",
		  "--max-overhead wants percent" },
		{ "w -p 1 --profile heap --heap-probe x", "auto, session" },
		{ "w -p 1,2 --profile heap --heap-census", "single process" },
		{ "w -p 1,2 --profile heap --heap-probe session",
		  "single process" },
		{ "w -p 1 --profile ,", "--profile wants" },
		{ "w -p 1 --profile wall,,cpu", "--profile wants" },
		{ "w -p 1 --profile wal", "--profile wants" },
		{ "w -p 1 --profile walls", "--profile wants" },
		{ "w -p 1 --profile wall;cpu", "--profile wants" },
		{ "w -p 1 --profile Block", "--profile wants" },
		{ "w -p 1 --profile block,mutex -f pprof", "several files" },
		{ "w -p 1 --profile wall,block -o /dev/null", "several files" },
		{ "w -p 1 --profile wall,block -f folded -o -",
		  "several files" },
		{ "w -p 1 --block-rate 1/10", "goes with --profile block" },
		{ "w -p 1 --profile mutex --block-rate 10us",
		  "goes with --profile block" },
		{ "w -p 1 --profile block --block-rate 1/0", "wants 1/N" },
		{ "w -p 1 --profile block --block-rate 1/-3", "wants 1/N" },
		{ "w -p 1 --profile block --block-rate 1/2x", "wants 1/N" },
		{ "w -p 1 --profile block --block-rate 1/", "wants 1/N" },
		{ "w -p 1 --profile block --block-rate 2/3", "wants 1/N" },
		{ "w -p 1 --profile block --block-rate 1/99999999999",
		  "wants 1/N" },
		{ "w -p 1 --profile block --block-rate 0", "wants 1/N" },
		{ "w -p 1 --profile block --block-rate -1us", "wants 1/N" },
		{ "w -p 1 --profile block --block-rate 2h", "wants 1/N" },
		{ "w -p 1 --profile block --block-rate often", "wants 1/N" },
		{ "w -p 1 --report", "beside -o FILE" },
		{ "w -p 1 --report -o /dev/stdout -f text", "beside -o FILE" },
		{ "w -p 1 --profile wall,block -f folded -o /dev/fd/1",
		  "several files" },
		{ "w -p 1 -d 0x1", "wants a time" },
		{ "w -p 1 -d 0x1p3", "wants a time" },
		{ "w -p 1 -d .", "wants a time" },
		{ "w -p 1 -d +1", "wants a time" },
		{ "w -p 1 -d inf", "wants a time" },
		{ "w -p 1 -d 1e400", "wants a time" },
		{ "w -p 1 -d 5days", "wants a time" },
		{ "w -p 1 -r 0x10", "wants samples" },
		{ "w -p 1 --max-stopped 0x1", "wants percent" },
		{ "w -p 1 --profile block --block-rate 1/+2", "wants 1/N" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_err err = WP_ERR_INIT;
		struct wp_options o;

		if (parse(&o, rows[i].line, &err) != -EINVAL ||
		    !strstr(err.msg, rows[i].says))
			fail_msg("%s: \"%s\"", rows[i].line, err.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_record_until_the_end_as_text),
		cmocka_unit_test(processes_are_chosen_by_name_group_or_all),
		cmocka_unit_test(units_are_understood),
		cmocka_unit_test(no_share_but_0_lifts_the_limit),
		cmocka_unit_test(the_ending_names_the_format),
		cmocka_unit_test(profiles_come_in_any_order),
		cmocka_unit_test(goroutines_are_a_profile_of_a_dump),
		cmocka_unit_test(block_rates_are_shares_or_times),
		cmocka_unit_test(a_command_keeps_its_own_options),
		cmocka_unit_test(a_dump_has_options_of_its_own),
		cmocka_unit_test(words_name_commands_and_processes),
		cmocka_unit_test(saved_files_are_read_by_words),
		cmocka_unit_test(help_is_of_a_command_if_one_is_named),
		cmocka_unit_test(thread_globs_add_up),
		cmocka_unit_test(what_is_wrong_is_said),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
