/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - see options.h. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "option_values.h"
#include "output_file.h"
#include "wallprof/clock.h"
#include "wallprof/enum_name.h"

enum {
	OPT_FULL = 256,
	OPT_REPORT,
	OPT_PROFILE,
	OPT_STOP,
	OPT_SCAN,
	OPT_MAX_STOPPED,
	OPT_MAX_MEMORY,
	OPT_MAX_DEPTH,
	OPT_UNWINDER,
	OPT_VERSION,
	OPT_THREADS,
	OPT_TIMEOUT,
	OPT_CHECK,
	OPT_KILL_AFTER,
	OPT_DUMP_TIME,
	OPT_ON_DEADLOCK,
	OPT_GROUP,
	OPT_FOLLOW,
	OPT_BLOCK_RATE,
	OPT_OWN_THREADS,
	OPT_TIMELINE,
	OPT_TIMELINE_SIZE,
	TIMELINE_MIB = 64,
	OWN_THREADS = 30000,
	MAX_DEPTH = 65536,
};

static const struct option long_options[] = {
	{ "pid", required_argument, NULL, 'p' },
	{ "duration", required_argument, NULL, 'd' },
	{ "output", required_argument, NULL, 'o' },
	{ "rate", required_argument, NULL, 'r' },
	{ "interval", required_argument, NULL, 'i' },
	{ "format", required_argument, NULL, 'f' },
	{ "thread", required_argument, NULL, 't' },
	{ "kernel", no_argument, NULL, 'k' },
	{ "profile", required_argument, NULL, OPT_PROFILE },
	{ "block-rate", required_argument, NULL, OPT_BLOCK_RATE },
	{ "stop", required_argument, NULL, OPT_STOP },
	{ "scan", required_argument, NULL, OPT_SCAN },
	{ "max-stopped", required_argument, NULL, OPT_MAX_STOPPED },
	{ "max-memory", required_argument, NULL, OPT_MAX_MEMORY },
	{ "max-depth", required_argument, NULL, OPT_MAX_DEPTH },
	{ "own-threads", required_argument, NULL, OPT_OWN_THREADS },
	{ "timeline", no_argument, NULL, OPT_TIMELINE },
	{ "timeline-size", required_argument, NULL, OPT_TIMELINE_SIZE },
	{ "unwinder", required_argument, NULL, OPT_UNWINDER },
	{ "report", no_argument, NULL, OPT_REPORT },
	{ "full", no_argument, NULL, OPT_FULL },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, 'h' },
	{ "threads", optional_argument, NULL, OPT_THREADS },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "check", no_argument, NULL, OPT_CHECK },
	{ "kill-after", required_argument, NULL, OPT_KILL_AFTER },
	{ "dump-time", required_argument, NULL, OPT_DUMP_TIME },
	{ "on-deadlock", required_argument, NULL, OPT_ON_DEADLOCK },
	{ "group", no_argument, NULL, OPT_GROUP },
	{ "follow-processes", no_argument, NULL, OPT_FOLLOW },
	{ NULL, 0, NULL, 0 },
};

static const char *const format_names[] = { WP_FORMATS(WP_ENUM_TEXT) };
static const char *const stop_names[] = { WP_STOP_MODES(WP_ENUM_TEXT) };

static const char *const scan_names[] = {
	[WP_SCAN_AUTO] = "auto",
	[WP_SCAN_BPF] = "bpf",
	[WP_SCAN_PROC] = "proc",
};

static bool is_word(const char *text, size_t n, const char *word)
{
	return n == strlen(word) && !memcmp(text, word, n);
}

/* "wall,cpu": any of them, in any order. */
static int parse_profiles(struct wp_options *o, const char *text,
			  struct wp_err *err)
{
	struct wp_sampler_options *s = &o->sampler;
	struct {
		const char *name;
		bool *on;
		enum wp_profile_kind kind;
	} const words[] = {
		{ "wall", &s->wall, WP_PROFILE_WALL },
		{ "cpu", &s->cpu, WP_PROFILE_WALL },
		{ "block", &s->block, WP_PROFILE_BLOCK },
		{ "mutex", &s->mutex, WP_PROFILE_MUTEX },
		{ "threadcreate", &s->thread_starts, WP_PROFILE_THREADCREATE },
	};
	const size_t nwords = sizeof(words) / sizeof(*words);

	s->wall = s->cpu = s->block = s->mutex = s->thread_starts = false;
	o->kinds = 0;
	for (const char *p = text; *p || p == text;) {
		size_t n = strcspn(p, ","), i = 0;

		while (i < nwords && !is_word(p, n, words[i].name))
			i++;
		if (i == nwords)
			return wp_err_set(err, -EINVAL,
					  "--profile wants wall, "
					  "cpu, block, mutex, threadcreate or "
					  "several (wall,cpu,block), not "
					  "\"%s\"",
					  text);
		*words[i].on = true;
		o->kinds |= 1u << words[i].kind;
		p += n + (p[n] == ',');
	}
	return 0;
}

/* The command line so far. */
struct parsing {
	struct wp_options o;
	/* -1: to be found. */
	int format;
	/* NULL: not given. */
	const char *interval;
	/* The last option given that only a recording, and only a dump, has. */
	const char *of_recording;
	const char *of_dump;
	bool stop_given;
	bool block_rate_given;
};

static int set_action(struct parsing *p, enum wp_action action,
		      struct wp_err *err)
{
	if (p->o.action != WP_ACTION_RECORD && p->o.action != action)
		return wp_err_set(err, -EINVAL,
				  "--threads, --check and "
				  "--timeout: give one of them");
	p->o.action = action;
	return 0;
}

static int parse_hang_option(struct parsing *p, int c, const char *arg,
			     struct wp_err *err)
{
	static const char *const on_deadlock[] = { "exit", "wait" };
	struct wp_options *o = &p->o;
	int rc;

	switch (c) {
	case OPT_THREADS:
		if (arg && strcmp(arg, "dump"))
			return wp_err_set(err, -EINVAL,
					  "--threads knows "
					  "\"dump\", not \"%s\"",
					  arg);
		return set_action(p, WP_ACTION_THREADS, err);
	case OPT_CHECK:
		return set_action(p, WP_ACTION_CHECK, err);
	case OPT_TIMEOUT:
		rc = set_action(p, WP_ACTION_TIMEOUT, err);
		return rc ? rc :
			    wp_option_duration(&o->timeout_ns, "--timeout", arg,
					       err);
	case OPT_KILL_AFTER:
		p->of_dump = "--kill-after";
		return wp_option_duration(&o->kill_after_ns, "--kill-after",
					  arg, err);
	case OPT_DUMP_TIME:
		p->of_dump = "--dump-time";
		return wp_option_duration(&o->dump_time_ns, "--dump-time", arg,
					  err);
	case OPT_ON_DEADLOCK:
		p->of_dump = "--on-deadlock";
		rc = wp_option_word("--on-deadlock", arg, on_deadlock, 2, err);
		o->exit_on_deadlock = rc == 0;
		return rc < 0 ? rc : 0;
	case OPT_GROUP:
		p->of_dump = "--group";
		o->group = true;
		return 0;
	case OPT_FOLLOW:
		p->of_dump = "--follow-processes";
		o->follow_processes = true;
		return 0;
	default:
		return -EINVAL;
	}
}

static int parse_sampler_option(struct parsing *p, int c, const char *arg,
				struct wp_err *err)
{
	static const char *const unwinders[] = { "rows", "libunwind" };
	struct wp_sampler_options *s = &p->o.sampler;
	int rc;

	switch (c) {
	case 'r':
		p->of_recording = "-r";
		return wp_option_rate(&s->interval_ns, arg, err);
	case 'i':
		p->interval = arg;
		return 0;
	case 't':
		s->thread_glob = arg;
		return 0;
	case 'k':
		s->kernel = true;
		return 0;
	case OPT_STOP:
		rc = wp_option_word("--stop", arg, stop_names, WP_NSTOP_MODES,
				    err);
		s->stop = (enum wp_stop_mode)(rc < 0 ? 0 : rc);
		p->stop_given = true;
		return rc < 0 ? rc : 0;
	case OPT_SCAN:
		p->of_recording = "--scan";
		rc = wp_option_word("--scan", arg, scan_names, WP_NSCAN_MODES,
				    err);
		s->scan = (enum wp_scan_mode)(rc < 0 ? 0 : rc);
		return rc < 0 ? rc : 0;
	case OPT_MAX_STOPPED:
		p->of_recording = "--max-stopped";
		return wp_option_share(&s->max_stopped, arg, err);
	case OPT_MAX_MEMORY:
		return wp_option_size(&p->o.max_memory, "--max-memory", arg,
				      err);
	case OPT_MAX_DEPTH:
		return wp_option_number(&s->max_depth, "--max-depth", arg,
					MAX_DEPTH, err);
	case OPT_OWN_THREADS:
		p->of_recording = "--own-threads";
		return wp_option_number(&s->own_threads, "--own-threads", arg,
					INT32_MAX, err);
	case OPT_UNWINDER:
		rc = wp_option_word("--unwinder", arg, unwinders, 2, err);
		s->backend = rc == 1 ? WP_UNWIND_LIBUNWIND : WP_UNWIND_ROWS;
		return rc < 0 ? rc : 0;
	default:
		return parse_hang_option(p, c, arg, err);
	}
}

static int parse_option(struct parsing *p, int c, const char *arg,
			struct wp_err *err)
{
	struct wp_options *o = &p->o;

	switch (c) {
	case 'p':
		return wp_option_pid(&o->pid, arg, err);
	case 'd':
		p->of_recording = "-d";
		return wp_option_duration(&o->duration_ns, "-d", arg, err);
	case 'o':
		o->output = arg;
		return 0;
	case 'f':
		p->format = wp_option_word("-f", arg, format_names, WP_NFORMATS,
					   err);
		return p->format < 0 ? p->format : 0;
	case 'q':
		o->quiet = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case OPT_TIMELINE:
		p->of_recording = "--timeline";
		o->sampler.note_holders = true;
		return 0;
	case OPT_TIMELINE_SIZE:
		p->of_recording = "--timeline-size";
		return wp_option_size(&o->timeline_size, "--timeline-size", arg,
				      err);
	case OPT_REPORT:
		p->of_recording = "--report";
		o->report = true;
		return 0;
	case OPT_FULL:
		p->of_recording = "--full";
		o->full = true;
		return 0;
	case OPT_PROFILE:
		p->of_recording = "--profile";
		return parse_profiles(o, arg, err);
	case OPT_BLOCK_RATE:
		p->of_recording = "--block-rate";
		p->block_rate_given = true;
		return wp_option_block_rate(&o->sampler.block_rate, arg, err);
	case 'h':
		o->action = WP_ACTION_HELP;
		return 0;
	case OPT_VERSION:
		o->action = WP_ACTION_VERSION;
		return 0;
	default:
		return parse_sampler_option(p, c, arg, err);
	}
}

static int check_target(const struct wp_options *o, struct wp_err *err)
{
	if (o->action == WP_ACTION_TIMEOUT) {
		if (o->pid)
			return wp_err_set(err, -EINVAL,
					  "--timeout runs a "
					  "command, and ends it: -p is for "
					  "--threads and --check");
		return o->command ?
			       0 :
			       wp_err_set(err, -EINVAL,
					  "--timeout wants -- and a command");
	}
	if (o->action != WP_ACTION_RECORD)
		return o->pid && !o->command ?
			       0 :
			       wp_err_set(
				       err, -EINVAL,
				       "%s looks at a running process: give -p "
				       "PID (--timeout runs a command)",
				       o->action == WP_ACTION_CHECK ?
					       "--check" :
					       "--threads");
	if (o->pid && o->command)
		return wp_err_set(err, -EINVAL,
				  "give either -p PID or a command, not both");
	if (!o->pid && !o->command)
		return wp_err_set(err, -EINVAL,
				  "nothing to record: give -p PID, or -- and a "
				  "command");
	return 0;
}

static int check_format(struct parsing *p, struct wp_err *err)
{
	struct wp_options *o = &p->o;
	bool dump = o->action != WP_ACTION_RECORD;

	if (p->format < 0)
		p->format = o->output ? wp_option_format(o->output,
							 dump ? WP_FORMAT_TEXT :
								WP_FORMAT_PPROF,
							 err) :
					WP_FORMAT_TEXT;
	if (p->format < 0)
		return p->format;
	o->format = (enum wp_format)p->format;
	o->sampler.note_holders |= !dump && wp_format_shows_time(o->format);
	if (o->format == WP_FORMAT_JSON && !dump)
		return wp_err_set(err, -EINVAL,
				  "json is for --threads, "
				  "--check and --timeout");
	if (dump && o->action != WP_ACTION_THREADS &&
	    o->format != WP_FORMAT_TEXT && o->format != WP_FORMAT_JSON)
		return wp_err_set(err, -EINVAL,
				  "--check and --timeout write text or json");
	if (o->format != WP_FORMAT_TEXT && o->kinds & (o->kinds - 1) &&
	    wp_output_file_is_stream(o->output))
		return wp_err_set(err, -EINVAL,
				  "several profiles want several "
				  "files: give -o FILE");
	if (o->format == WP_FORMAT_PPROF && isatty(STDOUT_FILENO) &&
	    wp_output_file_is_stdout(o->output))
		return wp_err_set(err, -EINVAL,
				  "a pprof file is not for a terminal: give -o "
				  "FILE.pb.gz");
	return 0;
}

static int check(struct parsing *p, struct wp_err *err)
{
	struct wp_options *o = &p->o;
	bool dump = o->action != WP_ACTION_RECORD;
	int rc;

	if (o->action == WP_ACTION_HELP || o->action == WP_ACTION_VERSION)
		return 0;
	rc = check_target(o, err);
	if (rc)
		return rc;
	if (dump && p->of_recording)
		return wp_err_set(err, -EINVAL, "%s is for recordings",
				  p->of_recording);
	if (!dump && p->of_dump)
		return wp_err_set(err, -EINVAL,
				  "%s goes with --threads, "
				  "--check or --timeout",
				  p->of_dump);
	/* Part of the threads is no ground for a verdict. */
	if (o->sampler.thread_glob && dump && o->action != WP_ACTION_THREADS)
		return wp_err_set(err, -EINVAL,
				  "-t is for recordings and "
				  "--threads");
	if (o->report && wp_output_file_is_stdout(o->output))
		return wp_err_set(err, -EINVAL,
				  "--report goes beside -o FILE; without -o it "
				  "is what is printed");
	if (dump && !p->stop_given)
		o->sampler.stop = WP_STOP_ALL;
	if (dump)
		o->sampler.cpu = false;
	if (p->block_rate_given && !o->sampler.block)
		return wp_err_set(err, -EINVAL,
				  "--block-rate goes with --profile block");
	if (p->interval && o->action == WP_ACTION_CHECK)
		rc = wp_option_look_interval(&o->look_interval_ns, p->interval,
					     err);
	else if (p->interval && dump)
		rc = wp_err_set(err, -EINVAL,
				"-i is for recordings and "
				"--check");
	else if (p->interval)
		rc = wp_option_interval(&o->sampler.interval_ns, p->interval,
					err);
	return rc ? rc : check_format(p, err);
}

static int parse_all(struct parsing *p, int argc, char **argv,
		     struct wp_err *err)
{
	opterr = 0;
	for (;;) {
		int at = optind, rc;
		/* '+': the command's own options are not ours. */
		int c = getopt_long(argc, argv, "+:p:d:o:r:i:f:t:kqvh",
				    long_options, NULL);

		if (c == -1)
			return 0;
		if (c == ':' || c == '?')
			return wp_option_bad(argv, at, c, err);
		rc = parse_option(p, c, optarg, err);
		if (rc)
			return rc;
		/* "--threads dump" reads as well as --threads. */
		if (c == OPT_THREADS && !optarg && optind < argc &&
		    !strcmp(argv[optind], "dump"))
			optind++;
	}
}

int wp_options_parse(struct wp_options *ret, int argc, char **argv,
		     struct wp_err *err)
{
	struct parsing p = {
		.o = { .kinds = 1u << WP_PROFILE_WALL,
		       .sampler = { .wall = true,
				    .cpu = true,
				    .interval_ns = 10 * WP_NS_PER_MS,
				    .max_stopped = 0.01,
				    .max_depth = 512,
				    .own_threads = OWN_THREADS },
		       .timeline_size = (size_t)TIMELINE_MIB << 20,
		       .look_interval_ns = 2 * WP_NS_PER_S,
		       .kill_after_ns = 5 * WP_NS_PER_S,
		       .dump_time_ns = 10 * WP_NS_PER_S },
		.format = -1,
	};
	int rc = parse_all(&p, argc, argv, err);

	if (rc)
		return rc;
	if (optind < argc) {
		if (strcmp(argv[optind - 1], "--"))
			return wp_err_set(err, -EINVAL,
					  "\"%s\": a command goes after --, a "
					  "process after -p",
					  argv[optind]);
		p.o.command = argv + optind;
	}
	rc = check(&p, err);
	if (rc)
		return rc;
	*ret = p.o;
	return 0;
}
