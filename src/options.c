/* options.c - see options.h. */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wallprof/clock.h"

const char wp_options_help[] =
"wallprof - what is this process doing, and what is it waiting for?\n"
"\n"
"usage: wallprof [options] -p PID\n"
"       wallprof [options] -- COMMAND [ARG...]\n"
"\n"
"Samples every thread of a process by wall clock, running or waiting, and\n"
"shows where its time goes.  Ctrl-C ends a recording and still writes it.\n"
"\n"
"What to record\n"
"  -p, --pid PID          a running process\n"
"  -- COMMAND ARG...      start COMMAND and record until it exits\n"
"  -t, --thread GLOB      only threads whose name matches, such as 'worker-*'\n"
"  -d, --duration TIME    stop after 30, 30s, 5m; 0 (default): until the\n"
"                         target exits or Ctrl-C\n"
"  -r, --rate HZ          samples per second of each thread, 1 to 1000;\n"
"                         default 100\n"
"  -i, --interval TIME    the same as time between samples, such as 10ms\n"
"  -k, --kernel           add the kernel's stack of waiting threads\n"
"      --profile LIST     which profiles; \"wall\" is the one there is\n"
"\n"
"What to write\n"
"  -o, --output FILE      .pb.gz pprof, .folded flame graph input, .txt text;\n"
"                         - is standard output; default: a text report there\n"
"  -f, --format FORMAT    pprof, folded or text, whatever the file's name\n"
"      --report           with -o FILE: print the text report as well\n"
"      --full             text report: nothing pruned\n"
"  -q, --quiet            only errors on standard error\n"
"  -v, --verbose          more about the recording on standard error\n"
"\n"
"How to sample\n"
"      --stop MODE        auto (default): only running threads are stopped,\n"
"                         each for microseconds; all: those at one instant;\n"
"                         never: running threads have no stack\n"
"      --max-stopped PCT  bound on the target's time lost in stops, default\n"
"                         1%; 0 for no bound\n"
"      --max-depth N      frames kept of a stack, default 512\n"
"      --unwinder NAME    rows (default) or libunwind\n"
"\n"
"      --version          print the version and exit\n"
"  -h, --help             print this and exit\n"
"\n"
"Exit status: 0 recorded; 1 recorded, but over 10 % of the samples have no\n"
"whole stack or over half of the ticks were missed; 2 nothing recorded; 64\n"
"wrong usage.\n";

enum {
	OPT_FULL = 256,
	OPT_REPORT,
	OPT_PROFILE,
	OPT_STOP,
	OPT_MAX_STOPPED,
	OPT_MAX_DEPTH,
	OPT_UNWINDER,
	OPT_VERSION,
	OPT_THREADS,
	OPT_TIMEOUT,
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
	{ "stop", required_argument, NULL, OPT_STOP },
	{ "max-stopped", required_argument, NULL, OPT_MAX_STOPPED },
	{ "max-depth", required_argument, NULL, OPT_MAX_DEPTH },
	{ "unwinder", required_argument, NULL, OPT_UNWINDER },
	{ "report", no_argument, NULL, OPT_REPORT },
	{ "full", no_argument, NULL, OPT_FULL },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, 'h' },
	{ "threads", optional_argument, NULL, OPT_THREADS },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ NULL, 0, NULL, 0 },
};

static int parse_pid(pid_t *ret, const char *text, struct wp_err *err)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno || pid < 1 ||
	    pid > INT32_MAX)
		return wp_err_set(err, -EINVAL,
				  "-p wants a process id, not \"%s\" (pgrep "
				  "NAME finds one)", text);
	*ret = (pid_t)pid;
	return 0;
}

/* A number with a unit; UNIT_NS is for one without, 0 when it must have one. */
static int parse_time(uint64_t *ret_ns, const char *text, double unit_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {
		{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 },
		{ "m", 60e9 }, { "min", 60e9 }, { "h", 3600e9 },
	};
	char *end;
	double val = strtod(text, &end);

	if (!isdigit((unsigned char)text[0]) || !isfinite(val))
		return -EINVAL;
	if (*end)
		unit_ns = 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(end, units[i].name))
			unit_ns = units[i].ns;
	if (unit_ns <= 0 || val * unit_ns > 1e18)
		return -EINVAL;
	*ret_ns = (uint64_t)(val * unit_ns);
	return 0;
}

static int parse_duration(uint64_t *ret, const char *text, struct wp_err *err)
{
	if (parse_time(ret, text, 1e9))
		return wp_err_set(err, -EINVAL,
				  "-d wants a time such as 30, 30s or 5m, not "
				  "\"%s\"", text);
	return 0;
}

static int parse_rate(uint64_t *ret_ns, const char *text, struct wp_err *err)
{
	char *end;
	double hz = strtod(text, &end);

	if (!isdigit((unsigned char)text[0]) ||
	    (*end && strcasecmp(end, "hz")) || !(hz >= 1 && hz <= 1000))
		return wp_err_set(err, -EINVAL,
				  "-r wants samples per second from 1 to 1000, "
				  "not \"%s\"", text);
	*ret_ns = (uint64_t)(1e9 / hz);
	return 0;
}

static int parse_interval(uint64_t *ret_ns, const char *text,
			  struct wp_err *err)
{
	uint64_t ns;

	if (parse_time(&ns, text, 0) || ns < WP_NS_PER_MS || ns > WP_NS_PER_S)
		return wp_err_set(err, -EINVAL,
				  "-i wants a time with its unit from 1ms to "
				  "1s, not \"%s\"", text);
	*ret_ns = ns;
	return 0;
}

static int parse_share(double *ret, const char *text, struct wp_err *err)
{
	char *end;
	double percent = strtod(text, &end);

	if (!isdigit((unsigned char)text[0]) || (*end && strcmp(end, "%")) ||
	    !(percent >= 0 && percent <= 100))
		return wp_err_set(err, -EINVAL,
				  "--max-stopped wants percent from 0 to 100, "
				  "not \"%s\"", text);
	*ret = percent / 100;
	return 0;
}

static int parse_depth(uint32_t *ret, const char *text, struct wp_err *err)
{
	char *end;
	long depth = strtol(text, &end, 10);

	if (!isdigit((unsigned char)text[0]) || *end || depth < 1 ||
	    depth > MAX_DEPTH)
		return wp_err_set(err, -EINVAL,
				  "--max-depth wants a number from 1 to %d, not "
				  "\"%s\"", MAX_DEPTH, text);
	*ret = (uint32_t)depth;
	return 0;
}

/* The index of TEXT in NAMES[0..n), or -EINVAL with a list of them. */
static int parse_word(const char *option, const char *text,
		      const char *const *names, int n, struct wp_err *err)
{
	char list[128] = "";
	size_t len = 0;

	for (int i = 0; i < n; i++) {
		if (!strcmp(text, names[i]))
			return i;
		if (len < sizeof(list))
			len += (size_t)snprintf(list + len, sizeof(list) - len,
						"%s%s", !i ? "" :
						i + 1 < n ? ", " : " or ",
						names[i]);
	}
	return wp_err_set(err, -EINVAL, "%s wants %s, not \"%s\"", option, list,
			  text);
}

static const char *const format_names[] = {
#define X(id, text) text,
	WP_FORMATS(X)
#undef X
};

static const char *const stop_names[] = {
#define X(id, text) text,
	WP_STOP_MODES(X)
#undef X
};

static bool ends_in(const char *s, const char *tail)
{
	size_t n = strlen(s), m = strlen(tail);

	return n >= m && !strcmp(s + n - m, tail);
}

/* The format that FILE's ending names, or -EINVAL. */
static int format_of(const char *file, struct wp_err *err)
{
	static const struct {
		const char *ending;
		enum wp_format format;
	} endings[] = {
		{ ".pb.gz", WP_FORMAT_PPROF }, { ".pprof", WP_FORMAT_PPROF },
		{ ".prof", WP_FORMAT_PPROF }, { ".folded", WP_FORMAT_FOLDED },
		{ ".collapsed", WP_FORMAT_FOLDED }, { ".txt", WP_FORMAT_TEXT },
	};

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
		if (ends_in(file, endings[i].ending))
			return (int)endings[i].format;
	if (!strncmp(file, "/dev/", 5) || !strcmp(file, "-"))
		return WP_FORMAT_PPROF;
	return wp_err_set(err, -EINVAL,
			  "\"%s\" ends in none of .pb.gz, .folded, .txt: say "
			  "the format with -f pprof, folded or text", file);
}

static int parse_profiles(const char *text, struct wp_err *err)
{
	if (!strcmp(text, "wall"))
		return 0;
	return wp_err_set(err, -EINVAL,
			  "--profile: \"%s\" is not there yet; this version "
			  "has wall", text);
}

static int parse_option(struct wp_options *o, int c, const char *arg,
			int *format, struct wp_err *err)
{
	static const char *const unwinders[] = { "rows", "libunwind" };
	int rc;

	switch (c) {
	case 'p':
		return parse_pid(&o->pid, arg, err);
	case 'd':
		return parse_duration(&o->duration_ns, arg, err);
	case 'o':
		o->output = arg;
		return 0;
	case 'r':
		return parse_rate(&o->sampler.interval_ns, arg, err);
	case 'i':
		return parse_interval(&o->sampler.interval_ns, arg, err);
	case 'f':
		*format = parse_word("-f", arg, format_names, WP_NFORMATS, err);
		return *format < 0 ? *format : 0;
	case 't':
		o->sampler.thread_glob = arg;
		return 0;
	case 'k':
		o->sampler.kernel = true;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case OPT_REPORT:
		o->report = true;
		return 0;
	case OPT_FULL:
		o->full = true;
		return 0;
	case OPT_PROFILE:
		return parse_profiles(arg, err);
	case OPT_STOP:
		rc = parse_word("--stop", arg, stop_names, WP_NSTOP_MODES, err);
		o->sampler.stop = (enum wp_stop_mode)(rc < 0 ? 0 : rc);
		return rc < 0 ? rc : 0;
	case OPT_MAX_STOPPED:
		return parse_share(&o->sampler.max_stopped, arg, err);
	case OPT_MAX_DEPTH:
		return parse_depth(&o->sampler.max_depth, arg, err);
	case OPT_UNWINDER:
		rc = parse_word("--unwinder", arg, unwinders, 2, err);
		o->sampler.backend = rc == 1 ? WP_UNWIND_LIBUNWIND :
					       WP_UNWIND_ROWS;
		return rc < 0 ? rc : 0;
	case 'h':
		o->action = WP_ACTION_HELP;
		return 0;
	case OPT_VERSION:
		o->action = WP_ACTION_VERSION;
		return 0;
	case OPT_THREADS:
		return wp_err_set(err, -EINVAL,
				  "--threads is not there yet in this version");
	case OPT_TIMEOUT:
		return wp_err_set(err, -EINVAL,
				  "--timeout is not there yet in this version");
	default:
		return -EINVAL;
	}
}

static int check(struct wp_options *o, int format, struct wp_err *err)
{
	if (o->action != WP_ACTION_RECORD)
		return 0;
	if (o->pid && o->command)
		return wp_err_set(err, -EINVAL,
				  "give either -p PID or a command, not both");
	if (!o->pid && !o->command)
		return wp_err_set(err, -EINVAL,
				  "nothing to record: give -p PID, or -- and a "
				  "command");
	if (o->report && (!o->output || !strcmp(o->output, "-")))
		return wp_err_set(err, -EINVAL,
				  "--report goes beside -o FILE; without -o it "
				  "is what is printed");
	if (format < 0)
		format = o->output ? format_of(o->output, err) :
				     WP_FORMAT_TEXT;
	if (format < 0)
		return format;
	o->format = (enum wp_format)format;
	if (o->format == WP_FORMAT_PPROF && isatty(STDOUT_FILENO) &&
	    (!o->output || !strcmp(o->output, "-")))
		return wp_err_set(err, -EINVAL,
				  "a pprof file is not for a terminal: give -o "
				  "FILE.pb.gz");
	return 0;
}

/* What getopt found wrong at argv[at], in words. */
static int bad_option(char **argv, int at, int c, struct wp_err *err)
{
	const char *word = argv[at] ? argv[at] : "";

	if (c == ':')
		return wp_err_set(err, -EINVAL, "%s wants an argument", word);
	if (optopt && optopt < 256)
		return wp_err_set(err, -EINVAL, "no option -%c", optopt);
	return wp_err_set(err, -EINVAL, "no option %s", word);
}

int wp_options_parse(struct wp_options *ret, int argc, char **argv,
		     struct wp_err *err)
{
	struct wp_options o = {
		.sampler = { .interval_ns = 10 * WP_NS_PER_MS,
			     .max_stopped = 0.01, .max_depth = 512 },
	};
	int format = -1, c, rc;

	opterr = 0;
	for (;;) {
		int at = optind;

		/* '+': the command's own options are not ours. */
		c = getopt_long(argc, argv, "+:p:d:o:r:i:f:t:kqvh",
				long_options, NULL);
		if (c == -1)
			break;
		if (c == ':' || c == '?')
			return bad_option(argv, at, c, err);
		rc = parse_option(&o, c, optarg, &format, err);
		if (rc)
			return rc;
	}
	if (optind < argc) {
		if (strcmp(argv[optind - 1], "--"))
			return wp_err_set(err, -EINVAL,
					  "\"%s\": a command goes after --, a "
					  "process after -p", argv[optind]);
		o.command = argv + optind;
	}
	rc = check(&o, format, err);
	if (rc)
		return rc;
	*ret = o;
	return 0;
}
